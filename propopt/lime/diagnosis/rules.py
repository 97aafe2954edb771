"""The rules of diagnosis for tables and for documents."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt.base.arrays import Array, quotient
from propopt.base.errors import Refused
from propopt.lime.diagnosis.evidence import (
    Evidence,
    RowsEvidence,
    Rule,
    RuleOutcome,
    TextEvidence,
    rule,
)
from propopt.lime.exact_limits import bit_steps, share_outside, split_by_columns
from propopt.lime.finite_samples import first_row_shift
from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.lime.laws.gaussian_law import NormalColumn


# ---- Alignment artifacts: coefficients that come from cells in the row or column of
# the row's cell


_FLAT: Final = 0.1
"""f is flat in a cell if its standard deviation is below this part of |β_j|."""


@rule("alignment artifact", "share from outside the row's bins", above=0.8, weight=0.95)
def alignment(case: RowsEvidence) -> RuleOutcome | None:
    """Measure Σ_{m≥1} |β_j^(m)| / Σ_m |β_j^(m)|, the share from outside the row's bins.

    m is the number of other columns outside the bin of the row.
    """
    if case.subject.exact is None:
        return None
    parts = split_by_columns(case.subject.exact, case.points)
    outside = share_outside(parts)
    nonzero = case.depends & (case.beta != 0.0)
    distant = (outside > alignment.limit) & nonzero
    rows = np.flatnonzero(distant.any(axis=1))
    sd = np.full(len(outside), np.nan)
    sd[rows] = case.cell_sd(rows)
    flat = sd[:, None] < _FLAT * np.abs(case.beta)
    numbers = np.where(nonzero, outside, np.nan)
    return RuleOutcome(numbers, case.sizes, excused=~flat)


# ---- Profiles that a contrast of bins hides: their direction, and that they matter


SMALL_SHARE: Final = 0.1
"""A coefficient below this part of the range of the profile hides it."""

MATTERS: Final = 0.1
"""A column matters if its range is above this part of the largest of the row."""

_TINY: Final = float(np.finfo(float).tiny)


_ERRORS: Final = 3.0
"""Standard errors of estimates that count; errors of exact numbers are bounds."""


@rule(
    "sign against the profile",
    "coefficient / rise of the profile",
    below=0.0,
    weight=1.0,
    least=0.96,
)
def against_profile(case: RowsEvidence) -> RuleOutcome:
    """Measure β_j over the rise of a monotone profile: negative if signs differ."""
    numbers = np.full(case.beta.shape, np.nan)
    standard_errors = case.limits.standard_errors
    n_errors = 1.0 if standard_errors is None else _ERRORS
    for j, (profile, errors) in enumerate(case.profiles):
        column = case.law.columns[j]
        if not isinstance(column, BinnedColumn) or column.coded:
            continue  # categories have no order
        # without the bin of missing numbers, which comes last, and empty ones
        n_bins = len(column.edges) + 1
        filled = ~np.isnan(profile[:, :n_bins]).any(axis=0)
        h = profile[:, :n_bins][:, filled]
        error = errors[:, :n_bins][:, filled]
        if h.shape[1] < 3:
            continue  # for two bins the coefficient is the difference of their means
        allowed = n_errors * np.hypot(error[:, 1:], error[:, :-1])
        rise = h[:, -1] - h[:, 0]
        steps = np.diff(h, axis=1)
        direction = np.sign(rise)
        noise = n_errors * np.hypot(error[:, 0], error[:, -1])
        monotone = (direction[:, None] * steps >= -allowed).all(axis=1)
        monotone &= np.abs(rise) > noise
        zero = error.max(axis=1)
        if standard_errors is not None:
            zero = _ERRORS * standard_errors[:, j]
        beta = np.where(np.abs(case.beta[:, j]) > zero, case.beta[:, j], 0.0)
        numbers[monotone, j] = (direction * beta)[monotone] / np.abs(rise)[monotone]
    return RuleOutcome(numbers, case.sizes)


@rule(
    "cancellation by binning",
    "|coefficient| / range of the profile",
    below=SMALL_SHARE,
    weight=0.95,
)
def cancellation(case: RowsEvidence) -> RuleOutcome:
    """Measure |β_j| over the range of the profile."""
    ends = [(np.nanmin(h, axis=1), np.nanmax(h, axis=1)) for h, _ in case.profiles]
    low, high = np.stack(ends, axis=2)
    ranges = high - low
    shares = ranges / np.maximum(ranges.max(axis=1, keepdims=True), _TINY)
    ratio = quotient(np.abs(case.beta), ranges, np.nan, shares > MATTERS)
    return RuleOutcome(ratio, ranges / case.largest)


# ---- Weight collapse: the ridge and the row itself determine the result of a run


FLOOR: Final = 0.1
"""Shifts are compared with at least this part of the largest coefficient of the row."""


@rule(
    "weight collapse: ridge",
    "share that the ridge retains",
    below=0.95,
    weight=0.85,
    per="all",
)
def ridge_collapse(case: Evidence) -> RuleOutcome | None:
    """Measure the smallest part of a coefficient that the ridge retains."""
    if case.ridge == 0.0:
        return None
    retained = np.where(case.depends, case.finite.shrinkage, np.inf)
    # it depends only on the shares of bins, the width and D
    number = float(retained.min()) if case.depends.any() else np.nan
    return RuleOutcome(number, case.sizes.max())


@rule(
    "weight collapse: first row",
    "shift by the row / |coefficient|",
    above=0.1,
    weight=0.85,
)
def row_collapse(case: RowsEvidence) -> RuleOutcome | None:
    """Measure the shift of β_j by the row itself as a sample, over |β_j|."""
    if not case.first_row:
        return None
    shift = first_row_shift(case.limits, case.values, case.n_samples)
    # over a tenth of the largest for smaller coefficients: zeros are harmless
    ratio = np.abs(shift) / np.maximum(np.abs(case.beta), FLOOR * case.largest)
    stakes = np.abs(case.finite.coefficients - case.beta) / case.largest
    return RuleOutcome(ratio, stakes)


@rule(
    "weight collapse: samples",
    "effective samples / (10 × coefficients)",
    below=1.0,
    weight=0.85,
    per="all",
)
def sample_collapse(case: Evidence) -> RuleOutcome:
    """Measure n (E π)² / E π² over ten times the number of fitted coefficients."""
    n_fitted = case.beta.shape[1] + 1
    effective = float(case.n_samples * case.effective_share.min())
    return RuleOutcome(effective / (10.0 * n_fitted), 1.0)


# ---- Bandwidth fragility: another kernel width reverses the sign of the coefficient


@rule(
    "bandwidth fragility",
    "octaves from the width to a change of sign",
    below=1.0,
    weight=0.9,
)
def fragile_sign(case: Evidence) -> RuleOutcome | None:
    """Measure |log2(root / width)|: 1 for a root at half or twice the width."""
    signs = case.signs()
    if signs is None:
        return None
    roots, turned, wide = signs
    distance = np.abs(np.log2(roots / case.width))
    stakes = np.maximum(np.abs(case.beta), np.abs(wide)) / case.largest
    return RuleOutcome(distance, stakes, also=turned)


# ---- Hidden and reversed coefficients under normal samples weighted by distance


_LARGEST_STEP: Final = 1.0 / np.sqrt(2.0 * np.pi)
"""The largest possible θ/σ̃."""

_LEAST_OUTSIDE: Final = 30.0
"""The weight of samples outside a bin that a coefficient needs."""


def _normal(case: RowsEvidence) -> list[tuple[int, NormalColumn]]:
    """The columns of normal numbers that are never missing, by position."""
    columns = [
        (j, column)
        for j, column in enumerate(case.law.columns)
        if isinstance(column, NormalColumn)
    ]
    if not columns:
        raise Refused("samples are not normal")
    return [(j, column) for j, column in columns if not column.missing]


def _gains(case: RowsEvidence) -> Array:
    """E_Q[x_j | in the bin] − E_Q[x_j | outside], (N, D); NaN for other columns."""
    normal = [j for j, _ in _normal(case)]
    result = np.full(case.beta.shape, np.nan)
    result[:, normal] = np.nan_to_num(bit_steps(case.law, case.points)[0][:, normal])
    return np.where(case.depends, result, np.nan)


@rule(
    "switched off",
    "step of the weighted samples / largest step",
    below=0.1,
    weight=0.95,
)
def switched_off(case: RowsEvidence) -> RuleOutcome:
    """Measure |θ| / σ̃ over its largest possible value, with θ = −α (1 − α) g."""
    gain = _gains(case)
    step = np.full(case.beta.shape, np.nan)
    for j, _ in _normal(case):
        tilt = case.tilts[j]
        spread = tilt.alpha * tilt.complement / tilt.pieces.sd[0]
        step[:, j] = np.abs(gain[:, j]) * spread / _LARGEST_STEP
    return RuleOutcome(step, 1.0)


@rule("sign opposite to gradient", "factor on a slope", below=0.0, weight=0.9)
def opposite_sign(case: RowsEvidence) -> RuleOutcome:
    """Measure the gain, by which a slope is multiplied."""
    return RuleOutcome(_gains(case), case.sizes)


@rule(
    "no samples outside the bin",
    "weight of samples outside the bin",
    below=_LEAST_OUTSIDE,
    weight=0.85,
)
def none_outside(case: RowsEvidence) -> RuleOutcome:
    """Measure the weight of the samples of a run outside the bin."""
    _normal(case)  # refused where samples are not normal
    weight = case.n_samples * np.exp(case.limits.log_weight)
    outside = np.stack([tilt.complement for tilt in case.tilts], axis=1)
    count = np.where(case.depends, weight[:, None] * outside, np.nan)
    return RuleOutcome(count, case.sizes)


# ---- Low fidelity: the surrogate differs from the function, around the row or at it


@rule("low fidelity: r2", "R² of the surrogate", below=0.5, weight=0.8, per="row")
def low_r2(case: RowsEvidence) -> RuleOutcome:
    """Measure the share of Var_Q f that the surrogate explains."""
    r2 = case.limits.r2(case.scatter().variance)
    # the variance of additive functions within bins misleads nobody
    stakes = np.minimum(case.interactions, 1.0 - r2)
    return RuleOutcome(r2, stakes)


@rule(
    "low fidelity: local gap",
    "|output − sum of coefficients| / their scale",
    above=0.5,
    weight=0.7,
    per="row",
)
def local_gap(case: Evidence) -> RuleOutcome:
    """Measure |f − Σ β| at the row in deviations of f, or in the largest |β|."""
    gap = np.abs(case.values - case.at_row)
    size = case.gap_size
    ratio = quotient(gap, size)
    # in sd of f; for an additive f the surrogate is its mean over the row's cell
    stakes = np.minimum(ratio, np.sqrt(case.interactions))
    return RuleOutcome(ratio, stakes)


# ---- Noise: the signs that one run gives


@rule("noise", "|coefficient| / sd of one run", below=2.0, weight=0.85)
def noisy_coefficient(case: Evidence) -> RuleOutcome:
    """Measure |β_j|, or its distance from the median word, in deviations of a run."""
    sd = case.run_of_limits.standard_deviations
    contrast = case.contrast
    ratio = quotient(contrast, sd, np.nan, (sd > 0.0) & case.depends)
    # the coefficient of the wrong sign that two deviations can give: small ones hardly
    # mislead
    stakes = np.maximum(2.0 * (sd / case.largest) - contrast / case.largest, 0.0)
    return RuleOutcome(ratio, stakes)


# ---- Words: too few samples to distinguish them, or features that differ from words


@rule(
    "leaving one out",
    "weight share of texts without one word",
    above=0.8,
    weight=0.9,
    per="all",
)
def leaving_one_out(case: TextEvidence) -> RuleOutcome | None:
    """Measure the share of the weight of texts without one word."""
    if len(case.names) == 2:
        return None  # both have the same coefficients at all bandwidths
    shares = case.law.shares(len(case.names))
    return RuleOutcome(shares[-2] / shares.sum(), 1.0)


@rule(
    "words that are one feature", "words that feed one feature", above=1.0, weight=0.9
)
def shared_feature(case: TextEvidence) -> RuleOutcome | None:
    """Measure the number of words that feed one feature with this one."""
    if case.features is None or case.features.n_crossing:
        return None
    features = np.array(case.features.feature, object)
    same = features[:, None] == features
    return RuleOutcome(case.features.n_sharing.astype(np.float64), case.sizes @ same)


@rule(
    "features of several words",
    "vectorisers with such features",
    above=0.0,
    weight=0.5,
    per="row",
)
def crossing_features(case: TextEvidence) -> RuleOutcome | None:
    """Measure the number of vectorisers with such features."""
    if case.features is None:
        return None
    return RuleOutcome(float(case.features.n_crossing), 1.0)


@rule(
    "ignored words with coefficients",
    "|coefficient| / largest coefficient",
    above=0.1,
    weight=0.9,
)
def ignored_words(case: TextEvidence) -> RuleOutcome:
    """Measure |β_j| over the largest of the document."""
    numbers = np.where(case.depends, np.nan, case.sizes)
    return RuleOutcome(numbers, case.sizes)


# ---- The rules of diagnosis


# The severity of a finding is the weight of its rule times its stakes, from 0 to 1. A
# wrong sign or size leads to wrong conclusions about the model, however stable the
# number is: a sign against the profile has 0.96 and more, so that it comes first;
# alignment, cancellation and switched off columns 0.95, fragile and reversed signs 0.9,
# noise and collapsed weights 0.85, a surrogate that differs from f 0.7 to 0.8. A
# finding below 0.25 is a note. Findings that depend only on law, width and D (weights
# that collapse) appear once, for the worst row.
_OF_BOTH: Final[tuple[Rule[Evidence], ...]] = (
    fragile_sign,
    noisy_coefficient,
    ridge_collapse,
    sample_collapse,
    local_gap,
)

LIME_RULES: Final[tuple[Rule[RowsEvidence], ...]] = (
    against_profile,
    alignment,
    cancellation,
    *_OF_BOTH,
    row_collapse,
    low_r2,
    switched_off,
    opposite_sign,
    none_outside,
)
"""The rules for tables."""

TEXT_RULES: Final[tuple[Rule[TextEvidence], ...]] = (
    shared_feature,
    ignored_words,
    leaving_one_out,
    *_OF_BOTH,
    crossing_features,
)
"""The rules for documents."""
