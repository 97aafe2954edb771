"""The rules of diagnosis, of tables and of documents."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt.base.arrays import Array, Mask, Points
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
from propopt.lime.exact_limits import (
    bin_widths,
    bit_steps,
    inner_edges,
    nearest_edges,
)
from propopt.lime.fidelity import share_outside, split_by_columns
from propopt.lime.finite_samples import first_row_shift, ranking_chances
from propopt.lime.laws.binned_columns import binned_columns
from propopt.lime.laws.gaussian_law import GaussianLaw, NormalColumn
from propopt.lime.laws.lime_law import GlimeLaw, LimeLaw
from propopt.tables.frames import listed


# ---- Alignment artifacts: coefficients of what is far from the row, in its row or
# column


_FLAT: Final = 0.1
"""Of |β_j|: a standard deviation of f in the cell of the row below it is flat."""


@rule("alignment artifact", above=0.8, weight=0.95)
def alignment(case: RowsEvidence) -> RuleOutcome | Reason:
    """Its number is Σ_{m≥1} |β_j^(m)| / Σ_m |β_j^(m)| by columns that leave the row."""
    if case.subject.exact is None:
        return ESTIMATED
    parts = split_by_columns(case.subject.exact, case.points)
    outside, own = share_outside(parts), parts[:, 0]
    some = case.depends & (case.beta != 0.0)
    far = (outside > alignment.threshold) & some
    rows, sd = np.flatnonzero(far.any(axis=1)), np.full(len(outside), np.nan)
    sd[rows] = case.cell_sd(rows)
    flat = sd[:, None] < _FLAT * np.abs(case.beta)

    sentence = (
        "with the other columns in the bins of the row the coefficient is {own:.4g}, "
        "not {beta:.4g}: {share:.1f} % of it comes from where other columns are "
        "elsewhere, and in the cell of the row f has a standard deviation of {sd:.2g}"
    )
    told = {"own": own, "beta": case.beta, "share": 100.0 * outside, "sd": sd[:, None]}
    remedy = "do not read it as local: compare with a map of cells, or a gradient"
    other = {"f is not flat in the cell of the row": ~flat}
    numbers = np.where(some, outside, np.nan)
    return RuleOutcome(numbers, case.sizes, sentence, remedy, told, excuses=other)


# ---- What contrasts of bins hide of profiles: which way they go, and that they matter


SMALL_SHARE: Final = 0.1
"""Of the range of the profile: a smaller coefficient hides it."""

MATTERS: Final = 0.1
"""Of the largest range of the row: columns with less do not matter."""

_FEW: Final = 20
"""Of estimated coefficients so many are told with other bins."""

_TINY: Final = float(np.finfo(float).tiny)


_ERRORS: Final = 3.0
"""Standard errors of estimates; of exact numbers errors are bounds already."""


@rule("sign against the profile", below=0.0, weight=1.0, least=0.96)
def against_profile(case: RowsEvidence) -> RuleOutcome | Reason:
    """Its number is β_j over the rise of a monotone profile: < 0 if signs differ."""
    if None in binned_columns(case.law):
        return Reason("bins have no profile of their own, as weights are of distances")
    numbers = np.full(case.beta.shape, np.nan)
    ends = np.full((2, *case.beta.shape), np.nan)
    own_errors = case.limits.standard_errors
    exact = own_errors is None
    profiles = zip(case.profiles, case.profile_errors, strict=True)
    for j, (profile, errors) in enumerate(profiles):
        if case.coded[j]:
            continue  # categories have no order
        # without the bin of missing numbers, which comes last, and empty ones
        n_bins = len(inner_edges(case.law.columns[j])) + 1
        known = ~np.isnan(profile[:, :n_bins]).any(axis=0)
        h, error = profile[:, :n_bins][:, known], errors[:, :n_bins][:, known]
        if h.shape[1] < 3:
            continue  # of two bins the coefficient is the difference of their means
        allowed = (1.0 if exact else _ERRORS) * np.hypot(error[:, 1:], error[:, :-1])
        rise, steps = h[:, -1] - h[:, 0], np.diff(h, axis=1)
        way = np.sign(rise)
        far = (1.0 if exact else _ERRORS) * np.hypot(error[:, 0], error[:, -1])
        monotone = (way[:, None] * steps >= -allowed).all(axis=1) & (np.abs(rise) > far)
        zero = error.max(axis=1) if own_errors is None else _ERRORS * own_errors[:, j]
        beta = np.where(np.abs(case.beta[:, j]) > zero, case.beta[:, j], 0.0)
        numbers[monotone, j] = (way * beta)[monotone] / np.abs(rise)[monotone]
        ends[:, :, j] = h[:, 0], h[:, -1]

    low, high = ends
    sentence = (
        "over the bins of the column the mean of f {way} without exception, from "
        f"{case.about}{{low:.4g}} to {{high:.4g}}. The coefficient is {{sign}}, "
        "{beta:.4g}: it is a contrast of bins and not a slope"
    )
    told = {
        "way": np.where(high < low, "falls", "rises"),
        "sign": np.where(high < low, "positive", "negative"),
        "low": low,
        "high": high,
        "beta": case.beta,
    }
    remedy = 'read the profile, or ask po.explain(kind="slopes") for the slope there'
    return RuleOutcome(numbers, case.sizes, sentence, remedy, told)


@rule("cancellation by binning", below=SMALL_SHARE, weight=0.95)
def cancellation(case: RowsEvidence) -> RuleOutcome:
    """Its number is |β_j| over the range of the profile."""
    ends = [(np.nanmin(h, axis=1), np.nanmax(h, axis=1)) for h in case.profiles]
    low, high = np.stack(ends, axis=2)
    ranges = high - low
    shares = ranges / np.maximum(ranges.max(axis=1, keepdims=True), _TINY)
    some = shares > MATTERS
    ratio = np.full(ranges.shape, np.nan)
    np.divide(np.abs(case.beta), ranges, out=ratio, where=some)
    sentence = (
        f"the column moves the mean of f by {case.about}{{range:.4g}}, from "
        "{low:.4g} to {high:.4g} over its bins. Its coefficient is {beta:.4g}: "
        "the row's bin is near the mean of the others{otherwise}"
    )
    told = {"range": ranges, "low": low, "high": high, "beta": case.beta}
    told["otherwise"] = _with_other_bins(case, ratio < SMALL_SHARE)
    remedy = "look at the profile over all bins, or choose another number of bins"
    return RuleOutcome(ratio, ranges / case.largest, sentence, remedy, told)


def _with_other_bins(case: RowsEvidence, wanted: Mask) -> Array:
    """The end of a sentence: coefficients with one bin less and one more, (N, D)."""
    if case.subject.exact is None:
        wanted = wanted & (np.cumsum(wanted).reshape(wanted.shape) <= _FEW)
    told = np.full(wanted.shape, "", object)
    for j in np.flatnonzero(wanted.any(axis=0)).tolist():
        rows, own = np.flatnonzero(wanted[:, j]), len(inner_edges(case.law.columns[j]))
        values = {count: case.rebinned(rows, j, count) for count in (own, own + 2)}
        for k, n in enumerate(rows):
            known = [
                f"{value[k]:.4g} with {count} bins"
                for count, value in values.items()
                if not np.isnan(value[k])
            ]
            told[n, j] = f"; it is {' and '.join(known)}" if known else ""
    return told


# ---- Weight collapse: ridge and the row itself decide what a run says


FLOOR: Final = 0.1
"""Of the largest coefficient of the row: shifts are compared with no less."""


@rule("weight collapse: ridge", below=0.95, weight=0.85, per="all")
def ridge_collapse(case: Evidence) -> RuleOutcome | Reason:
    """Its number is the least that ridge leaves of a coefficient."""
    if case.ridge == 0.0:
        return Reason("runs have no ridge")
    left = np.where(case.depends, case.finite.shrinkage, np.inf)
    # it depends on the shares of bins, the width and D alone
    n, j = np.unravel_index(left.argmin(), left.shape)
    number = float(left[n, j]) if case.depends.any() else np.nan
    sentence = (
        f"the ridge of {case.ridge:g} leaves {100.0 * number:.1f} % of the coefficient "
        f"of {case.names[j]}: the mean of runs of {case.n_samples:,} samples is "
        f"{case.finite.coefficients[n, j]:.4g}, the limit {case.beta[n, j]:.4g}"
    )
    return RuleOutcome(number, case.sizes.max(), sentence, case.wider)


@rule("weight collapse: first row", above=0.1, weight=0.85)
def row_collapse(case: RowsEvidence) -> RuleOutcome | Reason:
    """Its number is what the row itself moves β_j by, over |β_j|."""
    if not case.first_row:
        return Reason("the row itself is no sample of a run")
    shift = first_row_shift(case.limits, case.values, case.n_samples)
    # of a tenth of the largest where the coefficient is smaller: no news of zeros
    ratio = np.abs(shift) / np.maximum(np.abs(case.beta), FLOOR * case.largest)
    means = case.finite.coefficients

    sentence = (
        "the row itself, the first sample of the package, shifts the coefficient by "
        "{shift:+.3g} (to the first order): the mean of runs of "
        f"{case.n_samples:,} samples is {{mean:.4g}}, the limit {{beta:.4g}}"
    )
    told = {"shift": shift, "mean": means, "beta": case.beta}
    stakes = np.abs(means - case.beta) / case.largest
    return RuleOutcome(ratio, stakes, sentence, case.wider, told)


@rule("weight collapse: samples", below=1.0, weight=0.85, per="all")
def sample_collapse(case: Evidence) -> RuleOutcome:
    """Its number is n (E π)² / E π², over ten for each number that is fitted."""
    n_fitted = case.beta.shape[1] + 1
    effective = float(case.n_samples * case.effective_share.min())
    sentence = (
        f"of {case.n_samples:,} samples {effective:.3g} count, for {n_fitted} "
        "coefficients"
    )
    return RuleOutcome(effective / (10.0 * n_fitted), 1.0, sentence, case.wider)


# ---- Edge proximity: a small step leads to another explanation


@rule("edge proximity", below=0.05, weight=0.35)
def edge_proximity(case: RowsEvidence) -> RuleOutcome:
    """Its number is the distance to the nearest edge in widths of the bin."""
    columns = zip(case.law.columns, case.points.T, strict=True)
    # distances in widths of the bin, edges, and numbers beyond them
    distance, edge, beyond = np.stack([nearest_edges(*own) for own in columns], axis=2)
    near = (distance < edge_proximity.threshold) & case.depends
    n, j = np.nonzero(near)
    adjacent = case.beta.copy()
    if len(n) > 0:
        points = case.points[n]
        points[np.arange(len(n)), j] = beyond[n, j]
        beta = case.quick.limits(points).coefficients
        adjacent[n, j] = beta[np.arange(len(n)), j]
    jumps = np.abs(adjacent - case.beta)

    sentence = (
        "the value is {share:.1f} % of a bin from the edge {edge:.6g}; beyond it the "
        f"coefficient is {case.about}{{adjacent:.4g}}, not {{beta:.4g}}"
    )
    told = {"edge": edge, "adjacent": adjacent, "beta": case.beta}
    told["share"] = 100.0 * distance
    remedy = "read both coefficients, or the profile over all bins"
    numbers = np.where(case.depends, distance, np.nan)
    alone = _alone(case, near, edge, beyond)
    other = {"no observed value is as near to the edge on its other side": alone}
    return RuleOutcome(
        numbers, jumps / case.largest, sentence, remedy, told, excuses=other
    )


def _alone(case: RowsEvidence, near: Mask, edges: Array, beyond: Array) -> Mask:
    """Where the table has no value just beyond an edge that is near, (N, D).

    Whole numbers lie on edges, and the next one is a step away. Without a table every
    value may occur.
    """
    alone = np.zeros(near.shape, dtype=bool)
    if not case.subject.has_table:
        return alone
    for j in np.flatnonzero(near.any(axis=0)):
        rows, observed = near[:, j], np.unique(case.subject.reference[:, j])
        x, edge, first = case.points[rows, j], edges[rows, j], beyond[rows, j]
        column = case.law.columns[j]
        reach = edge_proximity.threshold * bin_widths(column, x)
        above = (first > edge) | (x < edge)
        first = np.where(column.bin_index(edge) == column.bin_index(first), edge, first)
        low, high = np.where(above, (first, edge + reach), (edge - reach, first))
        n_below = np.searchsorted(observed, low)
        alone[rows, j] = n_below == np.searchsorted(observed, high, "right")
    return alone


# ---- Bandwidth fragility: another kernel width gives the coefficient another sign


@rule("bandwidth fragility", below=1.0, weight=0.9)
def fragile_sign(case: Evidence) -> RuleOutcome | Reason:
    """Its number is |log2(root / width)|: 1 for a root at half or twice the width."""
    signs = case.signs()
    if isinstance(signs, Reason):
        return signs
    distance = np.abs(np.log2(signs.roots / case.width))

    sentence = (
        f"the coefficient, {{beta:.4g}} at the kernel width {case.width:.4g}, is zero "
        "at {root:.4g} and changes its sign there; without weights it is {wide:.4g}"
    )
    told = {"beta": case.beta, "root": signs.roots, "wide": signs.wide}
    remedy = "see the path of coefficients over widths; read no sign here"
    stakes = np.maximum(np.abs(case.beta), np.abs(signs.wide)) / case.largest
    return RuleOutcome(distance, stakes, sentence, remedy, told, also=signs.turned)


# ---- What hides and turns coefficients under normal samples weighted by distance


_LARGEST_STEP: Final = 1.0 / np.sqrt(2.0 * np.pi)
"""Of θ/σ̃."""

_LEAST_OUTSIDE: Final = 30.0
"""Samples outside a bin, by weight, that a coefficient needs."""


def _normal(case: RowsEvidence) -> list[tuple[int, NormalColumn]]:
    """Columns of normal numbers that are never missing, where samples are normal."""
    law = case.law
    if not isinstance(law.law if isinstance(law, GlimeLaw) else law, GaussianLaw):
        raise Refused("samples are not normal")
    own = enumerate(law.columns)
    return [(j, c) for j, c in own if isinstance(c, NormalColumn) and not c.missing]


def _gains(case: RowsEvidence) -> Array:
    """E_Q[x_j | in the bin] − E_Q[x_j | outside], (N, D); NaN of no numbers."""
    normal = [j for j, _ in _normal(case)]
    result = np.full(case.beta.shape, np.nan)
    result[:, normal] = np.nan_to_num(bit_steps(case.law, case.points)[0][:, normal])
    return np.where(case.depends, result, np.nan)


def critical_bandwidths(law: LimeLaw, points: Points) -> Array:
    """The kernel widths at which a law hides columns from linear functions, (n, D).

    (u_j ν)² = σ_j² (2 ξ_j − q_j⁻ − q_j⁺) / (q_j⁻ + q_j⁺ − 2 μ_j), if that is positive:
    where the mean of the weighted samples crosses the middle of the bin, β_j = 0. NaN
    where the gain never changes its sign, and of columns that are not of numbers.
    """
    result = np.full(points.shape, np.nan)
    for j, column in enumerate(law.columns):
        if not isinstance(column, NormalColumn) or column.missing:
            continue
        x, bin_index = points[:, j], column.bin_index(points[:, j])
        low, high = column.ends[bin_index], column.ends[bin_index + 1]
        middle = np.where(np.isfinite(low + high), 0.5 * low + 0.5 * high, np.nan)
        # a bin around the mean has its middle there but for rounding
        off = middle - column.mean
        rounding = 16.0 * np.finfo(float).eps * (np.abs(low) + abs(column.mean))
        square = np.full(len(x), np.nan)
        np.divide(x - middle, off, out=square, where=np.abs(off) > rounding)
        root = np.sqrt(np.where(square > 0.0, square, np.nan))
        result[:, j] = root * column.scale / column.unit
    return result


@rule("switched off", below=0.1, weight=0.95)
def switched_off(case: RowsEvidence) -> RuleOutcome:
    """Its number is |θ| / σ̃ over the largest that it can be, θ = −α (1 − α) g."""
    gain, step = _gains(case), np.full(case.beta.shape, np.nan)
    critical = critical_bandwidths(case.law, case.points)
    tilts = case.law.tilts(case.points, case.law.widths(case.points))
    for j, _ in _normal(case):
        spread = tilts[j].alpha * tilts[j].complement / tilts[j].pieces.sd[0]
        step[:, j] = np.abs(gain[:, j]) * spread / _LARGEST_STEP

    # θ is 0 where the width is critical
    turned = "; at the kernel width {:.4g} it changes its sign"
    words = ["" if np.isnan(width) else turned.format(width) for width in critical.flat]
    sentence = (
        "the weighted samples have about the same density at both ends of the bin. Of "
        "a slope {gain:.3g} is left, whatever it is{turned}"
    )
    told = {"gain": gain, "turned": np.reshape(np.array(words, object), gain.shape)}
    remedy = "another kernel width or number of bins; compare with the gradient"
    return RuleOutcome(step, 1.0, sentence, remedy, told)


@rule("sign opposite to gradient", below=0.0, weight=0.9)
def opposite_sign(case: RowsEvidence) -> RuleOutcome:
    """Its number is the gain: what a slope is multiplied by."""
    gain = _gains(case)

    sentence = (
        "a slope becomes {gain:.3g} times itself. Where f increases in the column the "
        "coefficient, {beta:.4g}, is negative"
    )
    told = {"gain": gain, "beta": case.beta}
    remedy = "do not read the sign as that of the gradient"
    return RuleOutcome(gain, case.sizes, sentence, remedy, told)


@rule("no samples outside the bin", below=_LEAST_OUTSIDE, weight=0.85)
def none_outside(case: RowsEvidence) -> RuleOutcome:
    """Its number is the weight of the samples of a run outside the bin."""
    _normal(case)  # refused where samples are not normal
    weight = case.n_samples * np.exp(case.limits.log_weight)
    tilts = case.law.tilts(case.points, case.law.widths(case.points))
    outside = np.stack([tilt.complement for tilt in tilts], axis=1)
    count = np.where(case.depends, weight[:, None] * outside, np.nan)

    sentence = (
        f"of {case.n_samples:,} samples the weight {{count:.2g}} is outside the bin "
        "(1 − α = {outside:.2g}): a run has nothing to compare with"
    )
    told = {"count": count, "outside": outside}
    remedy = "a wider kernel, or exact limits"
    return RuleOutcome(count, case.sizes, sentence, remedy, told)


# ---- Low fidelity: the surrogate is not the function, around the row or at it


_REMEDY: Final = "look at interactions: main effects of bins cannot hold them"


@rule("low fidelity: r2", below=0.5, weight=0.8, per="row")
def low_r2(case: RowsEvidence) -> RuleOutcome:
    """Its number is the share of Var_Q f that the surrogate explains."""
    r2, interactions = case.limits.r2(case.scatter().variance), case.interactions

    sentence = (
        "the surrogate has {r2:.1f} % of the variance of f; interactions of columns "
        "have {rest:.1f} %, and the rest is within bins"
    )
    told = {"r2": 100.0 * r2, "rest": 100.0 * interactions}
    # what bins leave out of a sum of functions of one column misleads nobody
    stakes = np.minimum(interactions, 1.0 - r2)
    return RuleOutcome(r2, stakes, sentence, _REMEDY, told)


@rule("low fidelity: local gap", above=0.5, weight=0.7, per="row")
def local_gap(case: Evidence) -> RuleOutcome:
    """Its number is |f − Σ β| at the row in deviations of f, or in the largest |β|."""
    gap, size = np.abs(case.values - case.at_row), case.gap_size
    ratio = np.divide(gap, size, out=np.zeros(len(gap)), where=size > 0.0)

    sentence = (
        "f is {value:.4g} and the sum of all coefficients {at_row:.4g}, {ratio:.2g} "
        f"{case.gap_unit} away"
    )
    told = {"value": case.values, "at_row": case.at_row, "ratio": ratio}
    # in sd of f; of an additive f the surrogate is its mean over the row's cell
    stakes = np.minimum(ratio, np.sqrt(case.interactions))
    return RuleOutcome(ratio, stakes, sentence, _REMEDY, told)


# ---- Sampling mismatch: samples that are not like the data


_ALL_ROWS: Final = (
    "merge or condition on columns that go together, or explain them as a group"
)


@rule("sampling mismatch: correlation", above=0.8, weight=0.4, per="all")
def correlated_columns(case: RowsEvidence) -> RuleOutcome | Reason:
    """Its number is the largest |correlation| of two columns in the data."""
    if not case.subject.has_table:
        return Reason("it needs the table of the law; give it as data")
    used = np.flatnonzero(case.depends[0] & ~case.coded)
    table = case.subject.reference[:, used]
    if len(used) < 2:
        return Reason("fewer than two columns of numbers are used")
    # missing numbers are at the mean of the others
    apart = np.ma.masked_invalid(table)
    apart = (apart - apart.mean(axis=0)).filled(0.0)
    scale = apart.std(axis=0)
    scale[scale == 0.0] = np.inf
    unit = apart / scale
    correlation = np.abs(unit.T @ unit) / len(unit)
    np.fill_diagonal(correlation, 0.0)
    a, b = divmod(int(correlation.argmax()), len(used))
    count = int((correlation.max(axis=1) > correlated_columns.threshold).sum())
    sentence = (
        f"{case.names[used[a]]} and {case.names[used[b]]} have the correlation "
        f"{correlation[a, b]:.3f} in the data and none in the samples. Of "
        f"{len(used)} columns {count} have one above {correlated_columns.threshold}"
    )
    return RuleOutcome(float(correlation.max()), 1.0, sentence, _ALL_ROWS)


# ---- Noise: what one run says of signs and of ranks


MOST_NAMED: Final = 3
"""The largest coefficients, which a run is to name."""


@rule("noise", below=2.0, weight=0.85)
def noisy_coefficient(case: Evidence) -> RuleOutcome:
    """Its number is |β_j|, or what tells a word, over the deviation of a run."""
    sd, contrast = case.run.standard_deviations, case.contrast
    ratio = np.full(sd.shape, np.nan)
    np.divide(contrast, sd, out=ratio, where=(sd > 0.0) & case.depends)

    with np.errstate(divide="ignore"):
        needed = case.n_samples * (2.0 / np.maximum(ratio, case.least_ratio)) ** 2
    remedy = "{needed:.2g} samples put it at two standard deviations"
    if case.is_exact:
        remedy = (
            "the exact coefficient has no noise; a run needs {needed:.2g} samples for "
            "two standard deviations"
        )
    of_run = {"n": case.n_samples, "sd": sd, "ratio": ratio, "needed": needed}
    told = {"beta": case.beta, "contrast": contrast, "name": case.words, **of_run}
    # how large a coefficient of the wrong sign two deviations make: small ones mislead
    # hardly anybody
    stakes = np.maximum(2.0 * (sd / case.largest) - contrast / case.largest, 0.0)
    return RuleOutcome(ratio, stakes, case.noisy, remedy, told)


@rule("unstable ranking", below=0.9, weight=0.42, per="row")
def unstable_ranking(case: Evidence) -> RuleOutcome | Reason:
    """Its number is the probability that a run names the largest ones."""
    run = case.run
    if case.beta.shape[1] <= MOST_NAMED:
        return Reason(f"there are no more than {MOST_NAMED} {case.noun}s")
    chances = ranking_chances(run, case.beta, MOST_NAMED)
    # rivals that are swapped differ by two deviations of their difference at most
    third = np.argsort(np.abs(case.beta), axis=1)[:, [-MOST_NAMED]]
    noise = np.take_along_axis(run.standard_deviations, third, axis=1) / case.largest

    sentence = (
        f"a run of {run.n_samples:,} samples names the {MOST_NAMED} largest "
        "coefficients with probability {chance:.2f}"
    )
    remedy, told = "rank exact coefficients, or name fewer of them", {"chance": chances}
    return RuleOutcome(chances, 2.0 * np.sqrt(2.0) * noise, sentence, remedy, told)


# ---- Non-local weights: all samples count alike, however far they are


_ALL: Final = 0.1
"""Of the variance of f: with more of it in interactions, the width decides."""


@rule("non-local weights", above=0.95, weight=0.43, per="all")
def non_local_weights(case: RowsEvidence) -> RuleOutcome | Reason:
    """Its number is the median of (E π)² / E π², of law, width and D alone."""
    share = case.effective_share
    if not np.isfinite(case.law.kernel_width) or (share == 1.0).all():
        return Reason("samples have no weights")
    number, most = float(np.median(share)), float(case.interactions.max())
    sentence = (
        f"{100.0 * number:.2f} % of the samples count with the kernel width "
        f"{case.law.kernel_width:.4g}. The explanation is of the whole table, and "
        "a row enters by its bins alone. Interactions have "
        f"{100.0 * most:.1f} % of the variance of f, or less"
    )
    remedy = "a narrower kernel, see the path of coefficients over widths"
    # coefficients of a sum of functions of one column are the same at all widths
    return RuleOutcome(number, min(1.0, most / _ALL), sentence, remedy)


# ---- Words: what few samples tell apart, and what is not what the model sees


@rule("leaving one out", above=0.8, weight=0.9, per="all")
def leaving_one_out(case: TextEvidence) -> RuleOutcome | Reason:
    """Its number is the share of the weight of texts that lose one word."""
    if len(case.names) == 2:
        return Reason("of two words the coefficients are the same at all bandwidths")
    shares = case.law.shares(len(case.names))
    share = shares[-2] / shares.sum()
    sentence = (
        f"texts that lose one word have {100.0 * share:.0f} % of the weight: "
        "coefficients say what is lost with one word, and words that do nothing alone "
        "are not told from those that do"
    )
    remedy = "a wider kernel, to see what words do together"
    return RuleOutcome(share, 1.0, sentence, remedy)


_NOT_SEEN: Final = "what the model sees of texts is not known"
_OWN_WORDS: Final = "take the words of the vectoriser, words='model'"


@rule("words that are one feature", above=1.0, weight=0.9)
def shared_feature(case: TextEvidence) -> RuleOutcome | Reason:
    """Its number is how many words feed one feature with this one."""
    if case.seen is None or case.seen.crossing:
        several = "features of the model are made of several words"
        return Reason(_NOT_SEEN if case.seen is None else several)
    alike, beside = case.seen.alike, np.array(case.seen.beside, object)
    together, others = beside[:, None] == beside, np.full(len(beside), "", object)
    for j in np.flatnonzero(alike > shared_feature.threshold).tolist():
        own = np.flatnonzero(together[j] & (np.arange(len(beside)) != j)).tolist()
        others[j] = listed([case.names[k] for k in own], 3)
    sentence = (
        "{name!r} and {others} are one feature of the model, {feature!r}, and are "
        "deleted one by one: the coefficient {beta:.3g} is what it adds beside the "
        "others, not what the feature does"
    )
    told = {"name": case.words, "others": others, "feature": beside, "beta": case.beta}
    return RuleOutcome(
        alike.astype(np.float64), case.sizes @ together, sentence, _OWN_WORDS, told
    )


@rule("features of several words", above=0.0, weight=0.5, per="row")
def crossing_features(case: TextEvidence) -> RuleOutcome | Reason:
    """Its number is how many vectorisers have such features."""
    if case.seen is None:
        return Reason(_NOT_SEEN)
    remedy = (
        "read a coefficient as the effect of deleting a word with all features "
        f"that it is part of, or {_OWN_WORDS}"
    )
    crossing = case.seen.crossing
    return RuleOutcome(float(len(crossing)), 1.0, "; ".join(crossing), remedy)


@rule("ignored words with coefficients", above=0.1, weight=0.9)
def ignored_words(case: TextEvidence) -> RuleOutcome:
    """Its number is |β_j| over the largest of the document."""
    count = np.count_nonzero(~case.depends)

    sentence = (
        "the model ignores {name!r}; its coefficient {beta:.3g} is that of all "
        f"{count} such words, and comes of what other words do together"
    )
    numbers = np.where(case.depends, np.nan, case.sizes)
    remedy = "read coefficients less that of such words, or take a wider kernel"
    told = {"name": case.words, "beta": case.beta}
    return RuleOutcome(numbers, case.sizes, sentence, remedy, told)


# ---- The rules of diagnosis


# What misleads most: weights of rules times what is at stake, from 0 to 1. A sign or a
# size that is read wrongly changes what is concluded about the model, however stable
# the number is: a sign against the profile 0.96 and more, so that it comes first;
# alignment, cancellation and switched off columns 0.95, fragile and turned signs 0.9,
# noise and collapsed weights 0.85, a surrogate that is not f 0.7 to 0.8. Ranks, and
# weights that are not local, say less of any one number: 0.4. Cautions that leave the
# reading of this row as it is, such as a near edge, have less, so that they come after
# a misreading with half of the largest coefficient at stake. What has less than 0.25
# in the end is a note. What depends on law, width and D alone, weights that are not
# local or collapse, is told once, of the worst row.
_OF_BOTH: Final[tuple[Rule[Evidence], ...]] = (
    fragile_sign,
    noisy_coefficient,
    unstable_ranking,
    ridge_collapse,
    sample_collapse,
    local_gap,
)

LIME_RULES: Final[tuple[Rule[RowsEvidence], ...]] = (
    against_profile,
    alignment,
    cancellation,
    edge_proximity,
    *_OF_BOTH,
    row_collapse,
    non_local_weights,
    low_r2,
    correlated_columns,
    switched_off,
    opposite_sign,
    none_outside,
)
"""Those of tables; of a law to which one does not apply it says so."""

TEXT_RULES: Final[tuple[Rule[TextEvidence], ...]] = (
    shared_feature,
    ignored_words,
    leaving_one_out,
    *_OF_BOTH,
    crossing_features,
)
"""Those of documents."""
