"""The rules of diagnosis for tables and for documents."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt.base.arrays import Array
from propopt.base.errors import Refused
from propopt.base.text import Reason
from propopt.lime.diagnosis.evidence import (
    ESTIMATED,
    Evidence,
    RowsEvidence,
    Rule,
    RuleOutcome,
    TextEvidence,
    rule,
)
from propopt.lime.exact_limits import bit_steps, share_outside, split_by_columns
from propopt.lime.finite_samples import first_row_shift
from propopt.lime.laws.gaussian_law import GaussianLaw, NormalColumn
from propopt.lime.laws.lime_law import GlimeLaw
from propopt.tables.frames import listed


# ---- Alignment artifacts: coefficients that come from cells in the row or column of
# the row's cell


_FLAT: Final = 0.1
"""f is flat in a cell if its standard deviation is below this part of |β_j|."""


@rule("alignment artifact", "share from outside the row's bins", above=0.8, weight=0.95)
def alignment(case: RowsEvidence) -> RuleOutcome | Reason:
    """Measure Σ_{m≥1} |β_j^(m)| / Σ_m |β_j^(m)|, the share from outside the row's bins.

    m is the number of other columns outside the bin of the row.
    """
    if case.subject.exact is None:
        return ESTIMATED
    parts = split_by_columns(case.subject.exact, case.points)
    outside = share_outside(parts)
    inside = parts[:, 0]
    nonzero = case.depends & (case.beta != 0.0)
    distant = (outside > alignment.threshold) & nonzero
    rows = np.flatnonzero(distant.any(axis=1))
    sd = np.full(len(outside), np.nan)
    sd[rows] = case.cell_sd(rows)
    flat = sd[:, None] < _FLAT * np.abs(case.beta)

    sentence = (
        "with the other columns in the bins of the row the coefficient is "
        "{inside:.4g}, not {beta:.4g}: {share:.1f} % of it comes from other bins of "
        "these columns, and in the cell of the row f has a standard deviation of "
        "{sd:.2g}"
    )
    fields = {
        "inside": inside,
        "beta": case.beta,
        "share": 100.0 * outside,
        "sd": sd[:, None],
    }
    remedy = "do not read it as local: compare with a map of cells, or a gradient"
    other = {"f is not flat in the cell of the row": ~flat}
    numbers = np.where(nonzero, outside, np.nan)
    return RuleOutcome(numbers, case.sizes, sentence, remedy, fields, excuses=other)


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
    ends = np.full((2, *case.beta.shape), np.nan)
    standard_errors = case.limits.standard_errors
    exact = standard_errors is None
    for j, (profile, errors) in enumerate(case.profiles):
        if case.coded[j]:
            continue  # categories have no order
        # without the bin of missing numbers, which comes last, and empty ones
        n_bins = case.n_bins[j]
        filled = ~np.isnan(profile[:, :n_bins]).any(axis=0)
        h = profile[:, :n_bins][:, filled]
        error = errors[:, :n_bins][:, filled]
        if h.shape[1] < 3:
            continue  # for two bins the coefficient is the difference of their means
        allowed = (1.0 if exact else _ERRORS) * np.hypot(error[:, 1:], error[:, :-1])
        rise = h[:, -1] - h[:, 0]
        steps = np.diff(h, axis=1)
        direction = np.sign(rise)
        noise = (1.0 if exact else _ERRORS) * np.hypot(error[:, 0], error[:, -1])
        monotone = (direction[:, None] * steps >= -allowed).all(axis=1)
        monotone &= np.abs(rise) > noise
        zero = error.max(axis=1)
        if standard_errors is not None:
            zero = _ERRORS * standard_errors[:, j]
        beta = np.where(np.abs(case.beta[:, j]) > zero, case.beta[:, j], 0.0)
        numbers[monotone, j] = (direction * beta)[monotone] / np.abs(rise)[monotone]
        ends[:, :, j] = h[:, 0], h[:, -1]

    low, high = ends
    sentence = (
        "from bin to bin the mean output always {direction}, from "
        f"{case.about}{{low:.4g}} to {{high:.4g}}. The coefficient is {{sign}}, "
        "{beta:.4g}: it compares this bin with the others, and is not a slope"
    )
    fields = {
        "direction": np.where(high < low, "falls", "rises"),
        "sign": np.where(high < low, "positive", "negative"),
        "low": low,
        "high": high,
        "beta": case.beta,
    }
    remedy = "read the profile, or the slope of po.explain(model, X, kind='slopes')"
    return RuleOutcome(numbers, case.sizes, sentence, remedy, fields)


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
    some = shares > MATTERS
    ratio = np.full(ranges.shape, np.nan)
    np.divide(np.abs(case.beta), ranges, out=ratio, where=some)
    sentence = (
        f"the column moves the mean output by {case.about}{{range:.4g}}, from "
        "{low:.4g} to {high:.4g} over its bins. Its coefficient is {beta:.4g}, as the "
        "mean of this bin is close to that of the others"
    )
    fields = {"range": ranges, "low": low, "high": high, "beta": case.beta}
    remedy = "look at the profile over all bins, or choose another number of bins"
    return RuleOutcome(ratio, ranges / case.largest, sentence, remedy, fields)


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
def ridge_collapse(case: Evidence) -> RuleOutcome | Reason:
    """Measure the smallest part of a coefficient that the ridge retains."""
    if case.ridge == 0.0:
        return Reason("runs have no ridge")
    retained = np.where(case.depends, case.finite.shrinkage, np.inf)
    # it depends only on the shares of bins, the width and D
    n, j = np.unravel_index(retained.argmin(), retained.shape)
    number = float(retained[n, j]) if case.depends.any() else np.nan
    sentence = (
        f"the ridge of {case.ridge:g} retains {100.0 * number:.1f} % of the "
        f"coefficient of {case.names[j]}: the mean of runs of {case.n_samples:,} "
        "samples is "
        f"{case.finite.coefficients[n, j]:.4g}, the limit {case.beta[n, j]:.4g}"
    )
    return RuleOutcome(number, case.sizes.max(), sentence, case.wider)


@rule(
    "weight collapse: first row",
    "shift by the row / |coefficient|",
    above=0.1,
    weight=0.85,
)
def row_collapse(case: RowsEvidence) -> RuleOutcome | Reason:
    """Measure the shift of β_j by the row itself as a sample, over |β_j|."""
    if not case.first_row:
        return Reason("the row itself is not a sample of a run")
    shift = first_row_shift(case.limits, case.values, case.n_samples)
    # over a tenth of the largest for smaller coefficients: zeros are harmless
    ratio = np.abs(shift) / np.maximum(np.abs(case.beta), FLOOR * case.largest)
    means = case.finite.coefficients

    sentence = (
        "the row itself, the first sample of the package, shifts the coefficient by "
        "{shift:+.3g} (to the first order): the mean of runs of "
        f"{case.n_samples:,} samples is {{mean:.4g}}, the limit {{beta:.4g}}"
    )
    fields = {"shift": shift, "mean": means, "beta": case.beta}
    stakes = np.abs(means - case.beta) / case.largest
    return RuleOutcome(ratio, stakes, sentence, case.wider, fields)


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
    sentence = (
        f"{case.n_samples:,} samples are worth {effective:.3g} without weights, for "
        f"{n_fitted} coefficients"
    )
    return RuleOutcome(effective / (10.0 * n_fitted), 1.0, sentence, case.wider)


# ---- Bandwidth fragility: another kernel width reverses the sign of the coefficient


@rule(
    "bandwidth fragility",
    "octaves from the width to a change of sign",
    below=1.0,
    weight=0.9,
)
def fragile_sign(case: Evidence) -> RuleOutcome | Reason:
    """Measure |log2(root / width)|: 1 for a root at half or twice the width."""
    signs = case.signs()
    if isinstance(signs, Reason):
        return signs
    distance = np.abs(np.log2(signs.roots / case.width))

    sentence = (
        f"the coefficient, {{beta:.4g}} at the kernel width {case.width:.4g}, is zero "
        "at {root:.4g} and changes its sign there; without weights it is {wide:.4g}"
    )
    fields = {"beta": case.beta, "root": signs.roots, "wide": signs.wide}
    remedy = "look at the path of coefficients over widths; the sign has no meaning"
    stakes = np.maximum(np.abs(case.beta), np.abs(signs.wide)) / case.largest
    return RuleOutcome(distance, stakes, sentence, remedy, fields, also=signs.turned)


# ---- Hidden and reversed coefficients under normal samples weighted by distance


_LARGEST_STEP: Final = 1.0 / np.sqrt(2.0 * np.pi)
"""The largest possible θ/σ̃."""

_LEAST_OUTSIDE: Final = 30.0
"""The weight of samples outside a bin that a coefficient needs."""


def _normal(case: RowsEvidence) -> list[tuple[int, NormalColumn]]:
    """The columns of normal numbers that are never missing, by position."""
    law = case.law
    if not isinstance(law.law if isinstance(law, GlimeLaw) else law, GaussianLaw):
        raise Refused("samples are not normal")
    return [
        (j, column)
        for j, column in enumerate(law.columns)
        if isinstance(column, NormalColumn) and not column.missing
    ]


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

    sentence = (
        "the weighted samples have about the same density at both ends of the bin: any "
        "slope is multiplied by {gain:.3g}"
    )
    remedy = "another kernel width or number of bins; compare with the gradient"
    return RuleOutcome(step, 1.0, sentence, remedy, {"gain": gain})


@rule("sign opposite to gradient", "factor on a slope", below=0.0, weight=0.9)
def opposite_sign(case: RowsEvidence) -> RuleOutcome:
    """Measure the gain, by which a slope is multiplied."""
    gain = _gains(case)

    sentence = (
        "a slope is multiplied by {gain:.3g}: if f increases in the column, the "
        "coefficient is negative; here it is {beta:.4g}"
    )
    fields = {"gain": gain, "beta": case.beta}
    remedy = "do not read the sign as that of the gradient"
    return RuleOutcome(gain, case.sizes, sentence, remedy, fields)


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

    sentence = (
        f"among {case.n_samples:,} samples the weight outside the bin is {{count:.2g}} "
        "(1 − α = {outside:.2g}): a run has nothing to compare with"
    )
    fields = {"count": count, "outside": outside}
    remedy = "a wider kernel, or exact limits"
    return RuleOutcome(count, case.sizes, sentence, remedy, fields)


# ---- Low fidelity: the surrogate differs from the function, around the row or at it


_REMEDY: Final = "look at interactions, which main effects of bins cannot represent"


@rule("low fidelity: r2", "R² of the surrogate", below=0.5, weight=0.8, per="row")
def low_r2(case: RowsEvidence) -> RuleOutcome:
    """Measure the share of Var_Q f that the surrogate explains."""
    r2 = case.limits.r2(case.scatter().variance)
    interactions = case.interactions

    sentence = (
        "the surrogate explains an estimated {r2:.1f} % of the variance of f; "
        "{rest:.1f} % is in interactions of columns, the rest within bins"
    )
    fields = {"r2": 100.0 * r2, "rest": 100.0 * interactions}
    # the variance of additive functions within bins misleads nobody
    stakes = np.minimum(interactions, 1.0 - r2)
    return RuleOutcome(r2, stakes, sentence, _REMEDY, fields)


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
    ratio = np.divide(gap, size, out=np.zeros(len(gap)), where=size > 0.0)

    sentence = (
        "f is {value:.4g} and the sum of all coefficients {at_row:.4g}, {ratio:.2g} "
        f"{case.gap_unit} away"
    )
    fields = {"value": case.values, "at_row": case.at_row, "ratio": ratio}
    # in sd of f; for an additive f the surrogate is its mean over the row's cell
    stakes = np.minimum(ratio, np.sqrt(case.interactions))
    return RuleOutcome(ratio, stakes, sentence, _REMEDY, fields)


# ---- Noise: the signs that one run gives


@rule("noise", "|coefficient| / sd of one run", below=2.0, weight=0.85)
def noisy_coefficient(case: Evidence) -> RuleOutcome:
    """Measure |β_j|, or its distance from the median word, in deviations of a run."""
    sd = case.run_of_limits.standard_deviations
    contrast = case.contrast
    ratio = np.full(sd.shape, np.nan)
    np.divide(contrast, sd, out=ratio, where=(sd > 0.0) & case.depends)

    with np.errstate(divide="ignore"):
        needed = case.n_samples * (2.0 / np.maximum(ratio, case.least_ratio)) ** 2
    remedy = "a run of {needed:.2g} samples, for two standard deviations"
    if case.is_exact:
        remedy = (
            "the exact coefficient has no noise; a run needs {needed:.2g} samples for "
            "two standard deviations"
        )
    of_run = {"n": case.n_samples, "sd": sd, "ratio": ratio, "needed": needed}
    fields = {"beta": case.beta, "contrast": contrast, "name": case.words, **of_run}
    # the coefficient of the wrong sign that two deviations can give: small ones hardly
    # mislead
    stakes = np.maximum(2.0 * (sd / case.largest) - contrast / case.largest, 0.0)
    return RuleOutcome(ratio, stakes, case.noisy, remedy, fields)


# ---- Words: too few samples to distinguish them, or features that differ from words


@rule(
    "leaving one out",
    "weight share of texts without one word",
    above=0.8,
    weight=0.9,
    per="all",
)
def leaving_one_out(case: TextEvidence) -> RuleOutcome | Reason:
    """Measure the share of the weight of texts without one word."""
    if len(case.names) == 2:
        return Reason("two words have the same coefficients at all bandwidths")
    shares = case.law.shares(len(case.names))
    share = shares[-2] / shares.sum()
    sentence = (
        f"texts without one word have {100.0 * share:.0f} % of the weight: "
        "coefficients are effects of deleting single words, and words that act only "
        "together look like inactive words"
    )
    remedy = "a wider kernel, to see how words act together"
    return RuleOutcome(share, 1.0, sentence, remedy)


_NO_VECTORISER: Final = "the model has no known vectoriser"
_MODEL_WORDS: Final = "take the words of the vectoriser, words='model'"


@rule(
    "words that are one feature", "words that feed one feature", above=1.0, weight=0.9
)
def shared_feature(case: TextEvidence) -> RuleOutcome | Reason:
    """Measure the number of words that feed one feature with this one."""
    if case.features is None:
        return Reason(_NO_VECTORISER)
    if case.features.crossing:
        return Reason("features of the model are made of several words")
    counts = case.features.n_sharing
    features = np.array(case.features.feature, object)
    same = features[:, None] == features
    others = np.full(len(features), "", object)
    for j in np.flatnonzero(counts > shared_feature.threshold).tolist():
        sharing = np.flatnonzero(same[j] & (np.arange(len(features)) != j)).tolist()
        others[j] = listed([case.names[k] for k in sharing], 3)
    sentence = (
        "{name!r} and {others} are one feature of the model, {feature!r}, and are "
        "deleted separately: the coefficient {beta:.3g} is the effect of this word "
        "with the others in the text, not the effect of the feature"
    )
    fields = {
        "name": case.words,
        "others": others,
        "feature": features,
        "beta": case.beta,
    }
    return RuleOutcome(
        counts.astype(np.float64), case.sizes @ same, sentence, _MODEL_WORDS, fields
    )


@rule(
    "features of several words",
    "vectorisers with such features",
    above=0.0,
    weight=0.5,
    per="row",
)
def crossing_features(case: TextEvidence) -> RuleOutcome | Reason:
    """Measure the number of vectorisers with such features."""
    if case.features is None:
        return Reason(_NO_VECTORISER)
    remedy = (
        "read a coefficient as the effect of deleting a word from all features that "
        f"contain it, or {_MODEL_WORDS}"
    )
    crossing = case.features.crossing
    return RuleOutcome(float(len(crossing)), 1.0, "; ".join(crossing), remedy)


@rule(
    "ignored words with coefficients",
    "|coefficient| / largest coefficient",
    above=0.1,
    weight=0.9,
)
def ignored_words(case: TextEvidence) -> RuleOutcome:
    """Measure |β_j| over the largest of the document."""
    count = np.count_nonzero(~case.depends)

    sentence = (
        "the model ignores {name!r}; its coefficient {beta:.3g} is that of all "
        f"{count} such words, and comes from joint effects of other words"
    )
    numbers = np.where(case.depends, np.nan, case.sizes)
    remedy = "subtract the coefficient of such words, or take a wider kernel"
    fields = {"name": case.words, "beta": case.beta}
    return RuleOutcome(numbers, case.sizes, sentence, remedy, fields)


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
"""The rules for tables; a rule that does not apply to a law gives the reason."""

TEXT_RULES: Final[tuple[Rule[TextEvidence], ...]] = (
    shared_feature,
    ignored_words,
    leaving_one_out,
    *_OF_BOTH,
    crossing_features,
)
"""The rules for documents."""
