"""What LIME is asked about; limits that are not exact, with errors and the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final, final

import numpy as np

from propopt.base.arrays import Array, Indices, Mask, Points, Values
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput, Refused
from propopt.base.resources import (
    BATCH_BUDGET,
    Budget,
    DrawPlan,
    require_memory,
    row_blocks,
)
from propopt.base.terminal import progress_bar
from propopt.base.text import Reason
from propopt.functions.cost import cost_of
from propopt.functions.function import Function
from propopt.functions.means import CheckedStructure
from propopt.laws.draws import cross_fitted
from propopt.laws.perturbations import PERTURBED_POINTS
from propopt.laws.regressions import Neighbourhood
from propopt.laws.sampling import BlockEstimates, DrawCost, Pooled, stream_of
from propopt.lime.exact_limits import ExactLimits, Limits, bin_profiles, profile_means
from propopt.lime.fidelity import PAIRS_AT_MOST, exact_variance, n_pairs
from propopt.lime.laws.binned_columns import BinnedColumn, binned_columns
from propopt.lime.laws.lime_law import Draws, LimeLaw, draws_at
from propopt.losses.faithfulness import error_of_blocks
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import Labels


# ---- Values of a function at samples, in calls of bounded size


def evaluated(evaluate: Callable[[Points], Values], samples: Array) -> Array:
    """Values (...) at samples (..., D)."""
    flat = samples.reshape(-1, samples.shape[-1])
    parts = [evaluate(flat[some]) for some in row_blocks(*flat.shape)]
    return np.concatenate(parts).reshape(samples.shape[:-1])


RUN_DRAWS: Final = 4096
"""Of each row, for deviations that are known to 2 %."""


def values_around(
    evaluate: Callable[[Points], Values],
    law: LimeLaw,
    points: Points,
    widths: Values,
    uniforms: Array,  # (S, D): the same for all rows
    budget: Budget | None = None,
) -> Iterator[tuple[slice, Draws, Array]]:
    """Samples of Q around rows, block after block, with f there, (m, S)."""
    for some in (BATCH_BUDGET if budget is None else budget).blocks(
        len(points), 3 * uniforms.nbytes
    ):
        own = points[some]
        copies = np.broadcast_to(uniforms, (len(own), *uniforms.shape))
        draws = draws_at(law.columns, own, widths[some], copies)
        yield some, draws, evaluated(evaluate, draws.samples)


# ---- Neighbourhoods of a law of LIME: bits are regressed on, with the law's weights


def around_rows(
    law: LimeLaw,
    n_samples: int,  # S
    # whether the row itself is the first of them, with weight one and all its bits
    first_row: bool,
    points: Points,
    rng: np.random.Generator,
) -> Iterator[tuple[slice, Neighbourhood]]:
    """Samples of a law around points, in blocks, with their bits as regressors."""
    row_bytes = 8 * points.shape[1]
    for rows in PERTURBED_POINTS.blocks(len(points), row_bytes, n_samples):
        some = points[rows]
        draws = law.draw(some, n_samples, rng, first_row=first_row)
        if draws.weights.max(axis=1).min() < np.finfo(float).tiny:
            raise InvalidInput(
                f"law: its kernel width {law.kernel_width:g} is so small that all "
                "weights of a row vanish"
            )
        # 1 where a bit is not always the same, else 0
        tilts = law.tilts(some, np.full(len(some), np.inf))
        changes = np.stack([tilt.outside.any(axis=0) for tilt in tilts], axis=1)
        if not first_row:
            changes &= np.stack([tilt.alpha > 0.0 for tilt in tilts], axis=1)
        zeros, ones, own = (
            np.zeros(some.shape),
            np.ones(some.shape),
            changes.astype(float),
        )
        bits = draws.bits * own[:, None]
        near = Neighbourhood(draws.samples, bits, draws.weights, zeros, own, ones)
        yield rows, near


# ---- Uniform numbers that fill each column evenly, and terms that are made of them


MOST_OUTSIDE: Final = 3
"""Polynomials that are used."""

_FEWEST: Final = 20
"""Draws with a bit that a term needs, in the mean: fits to fewer add scatter."""


def stratified_uniforms(
    n_blocks: int, size: int, n_columns: int, rng: np.random.Generator
) -> Array:
    """Latin hypercubes (n_blocks, size, n_columns) (McKay et al. 1979).

    In each column one number from each of ``size`` equal parts; blocks are independent.
    """
    shape = n_blocks, size, n_columns
    parts = np.broadcast_to(np.arange(size)[:, None], shape)
    return np.asarray((rng.permuted(parts, axis=1) + rng.random(shape)) / size)


def terms(uniforms: Array, alpha: Array, n_outside: int) -> Array:
    """What least squares on draws of Q is made of: bits, and what varies beside them.

    A draw has z_j = 1[u_j < α_j]; given the bit, u is uniform on the rest. So the terms

    (z − α) / √(α (1 − α)),  z P_1(u / α) / √α,
    (1 − z) P_k((u − α) / (1 − α)) / √(1 − α),  k = 1, ..., K

    have mean 0, variance 1 and no correlation, and those behind the first D of them
    have mean 0 given any bits: they take scatter off f and leave β alone.
    """
    n_draws = np.prod(uniforms.shape[1:-1])
    a = alpha.reshape(len(alpha), *(1,) * (uniforms.ndim - 2), -1)
    both = (a > 0.0) & (a < 1.0)
    inside = uniforms < a
    safe = np.where(both, a, 0.5)
    bits = both * (inside - safe) / np.sqrt(safe * (1.0 - safe))
    if n_outside == 0:
        return np.asarray(bits)
    one = np.where(a > 0.0, a, 1.0)
    rest = np.where(a < 1.0, 1.0 - a, 1.0)
    kept_in, kept_out = a * n_draws >= _FEWEST, (1.0 - a) * n_draws >= _FEWEST
    within = inside * kept_in / np.sqrt(one) * _polynomials(uniforms / one)[0]
    position = (uniforms - a) / rest
    scale = ~inside * kept_out / np.sqrt(rest)
    without = [scale * P for P in _polynomials(position)[:n_outside]]
    return np.concatenate([bits, within, *without], axis=-1)


def _polynomials(v: Array) -> tuple[Array, Array, Array]:
    """Legendre's on [0, 1]: of mean 0 and variance 1, without correlation."""
    line, parabola = 2.0 * v - 1.0, v * (v - 1.0)
    return (
        np.sqrt(3.0) * line,
        np.sqrt(5.0) * (6.0 * parabola + 1.0),
        np.sqrt(7.0) * line * (10.0 * parabola + 1.0),
    )


# ---- Samples of a law without weights, which all rows share: f is called on them once


N_COMMON: Final = 8192
"""Draws that rows share."""

_STRATA: Final = 32
"""Of each column, of some 256 draws each."""


@final
@dataclass(frozen=True, eq=False)
class CommonDraws:
    """Samples in bins, and weights that make them those around any row.

    π depends on bits alone: E_Q h is Σ π h / Σ π over the same samples for all rows.
    """

    columns: tuple[BinnedColumn, ...]  # (D,): the law
    samples: Points  # (S, D): of the law without weights
    values: Values  # (S,): f there

    @classmethod
    def of(
        cls, law: LimeLaw, evaluate: Callable[[Points], Values], n_draws: int = N_COMMON
    ) -> CommonDraws | None:
        """Draws that depend on the law alone, not on rows; None if it has no bins."""
        own = binned_columns(law)
        columns = tuple(column for column in own if column is not None)
        if len(columns) < len(own):
            return None
        rng = np.random.default_rng(0)
        uniforms = stratified_uniforms(1, n_draws, len(columns), rng)
        anywhere, wide = np.zeros((1, len(columns))), np.full(1, np.inf)
        samples = draws_at(columns, anywhere, wide, uniforms).samples[0]
        return cls(columns, samples, evaluated(evaluate, samples))

    def weights(self, points: Points, widths: Values) -> Array:
        """π over its sum, around rows (n, D): (S, n)."""
        # log π = Σ_j (z_j − 1) / (2 ν²), and the largest is 0 at most
        agreed = np.zeros((len(self.samples), len(points)))
        for bins, others in zip(self.bins, self._bins_of(points), strict=True):
            agreed += bins[:, None] == others
        logs = 0.5 * (agreed - len(self.columns)) / widths**2
        weights = np.exp(logs - logs.max(axis=0))
        return np.asarray(weights / weights.sum(axis=0))

    def enough(self, points: Points, widths: Values) -> Mask:
        """Whether half of the samples count around rows, (n,)."""
        weights = self.weights(points, widths)
        return np.asarray((weights**2).sum(axis=0) * len(weights) <= 2.0)

    def bits(self, points: Points) -> Array:
        """The bits of the samples around rows, (n, S, D)."""
        result = np.empty((len(points), *self.samples.shape))
        for j, (bins, own) in enumerate(
            zip(self.bins, self._bins_of(points), strict=True)
        ):
            result[:, :, j] = bins == own[:, None]
        return result

    def variances(self, points: Points, widths: Values) -> Values:
        """Var_Q f around rows, (n,)."""
        weights = self.weights(points, widths)
        mean = self.values @ weights
        apart = (self.values[:, None] - mean) ** 2
        return np.asarray((weights * apart).sum(axis=0))

    def additive_variances(self, points: Points, widths: Values) -> Values:
        """Σ_j Var_Q E_Q[f | V_j] around rows, (n,), without bias but for strata.

        The scatter of the means of 32 strata of each column, less what samples inside
        them add to it, a part of S Σ w² / K of their scatter.
        """
        weights = self.weights(points, widths)
        total, n = np.zeros(len(points)), len(self.samples)
        centred = self.values[:, None] - self.values @ weights
        for x in self.samples.T:
            rank = np.empty(n, np.intp)
            rank[np.argsort(x, kind="stable")] = np.arange(n)
            ties = np.unique(x, return_inverse=True)[1].ravel()
            first = np.full(ties.max() + 1, n)
            np.minimum.at(first, ties, rank)
            stratum = first[ties] * _STRATA // n  # equal values stand together
            inside = np.eye(_STRATA)[stratum]
            mass = inside.T @ weights
            some = mass > 0.0
            level = np.zeros(mass.shape)
            np.divide(inside.T @ (weights * centred), mass, out=level, where=some)
            left = (weights**2 * (centred - level[stratum]) ** 2).T @ inside
            added = np.zeros(mass.shape)
            np.divide(left.T, mass, out=added, where=some)
            total += (mass * level**2).sum(axis=0) - added.sum(axis=0)
        return np.maximum(total, 0.0)

    def means(self, points: Points, widths: Values) -> list[tuple[Array, Array]]:
        """E_Q[f | b_j = b] and its error, (n, B_j) for each column; NaN of no sample.

        What the least squares fit of f by a number for each bin says is known without
        samples, as columns are independent; only what it leaves over is estimated.
        """
        weights, (total, additive, unfitted) = self.weights(points, widths), self._fit
        levels = []
        for column, x, own in zip(self.columns, points.T, additive, strict=True):
            tilt = column.tilt(x, widths)
            shares = tilt.alpha * tilt.inside + tilt.complement * tilt.outside
            levels.append(shares.T @ own)
        total, result = total + np.sum(levels, axis=0), []
        for bins, own, level in zip(self.bins, additive, levels, strict=True):
            inside = (bins[:, None] == np.arange(len(own))) * 1.0
            mass = weights.T @ inside
            extra, error = np.full((2, *mass.shape), np.nan)
            left = weights.T @ (unfitted[:, None] * inside)
            np.divide(left, mass, out=extra, where=mass > 0.0)
            apart = unfitted[:, None] - np.nan_to_num(extra)[:, bins].T
            square = (weights**2 * apart**2).T @ inside
            np.divide(np.sqrt(square), mass, out=error, where=mass > 0.0)
            result.append(((total - level)[:, None] + own + extra, error))
        return result

    @cached_property
    def bins(self) -> tuple[Indices, ...]:
        """The bins of the samples, D arrays (S,)."""
        return self._bins_of(self.samples)

    def _bins_of(self, points: Points) -> tuple[Indices, ...]:
        columns = zip(self.columns, points.T, strict=True)
        return tuple(column.bin_index(x) for column, x in columns)

    @cached_property
    def _fit(self) -> tuple[float, tuple[Array, ...], Values]:
        """A constant, a number for each bin of each column, and what they leave."""
        sizes = [len(column.shares) for column in self.columns]
        design = np.concatenate(
            [
                (bins[:, None] == np.arange(size)) * 1.0
                for bins, size in zip(self.bins, sizes, strict=True)
            ],
            axis=1,
        )
        constant = float(self.values.mean())
        numbers = np.linalg.lstsq(design, self.values - constant, rcond=1e-10)[0]
        left = self.values - constant - design @ numbers
        return constant, tuple(np.split(numbers, np.cumsum(sizes)[:-1])), left


# ---- Limits of LIME for functions that can only be called, with standard errors


LIME_BLOCKS: Final = 20
"""Each with an estimate of its own: their scatter is the error, known to a sixth."""

DRAWS_PER_TERM: Final = 4
"""A fit on fewer takes less scatter off than it adds."""

_WORTH_TIMING: Final = 10_000
"""Evaluations from which a few are timed, to say what all of them cost."""


def announced_cost(
    label: str,
    function: Function,
    points: Points,
    labels: Labels,
    evaluations: int,
    progress: bool | None,
) -> AbstractContextManager[None]:
    """Say what evaluations within cost, if they are many and that is long."""
    if evaluations < _WORTH_TIMING:
        return nullcontext()
    cost = cost_of(function, points, labels, evaluations)
    return cost.announced(label, function.calls, progress)


def estimate_limits(
    function: Function,
    law: LimeLaw,
    points: Points,  # shape (n, D)
    labels: Labels | None = None,
    draws: DrawPlan | None = None,
    progress: bool | None = None,
) -> Limits:
    """What LIME tends to for any function, from samples of the weighted law itself.

    Each of 20 blocks is unbiased: what the least squares fit of the other blocks says,
    and what it leaves over. All rows have the same uniform numbers.
    """
    draws = DrawPlan() if draws is None else draws
    cost = _cost(points, draws.n_samples)
    names = Labels() if labels is None else labels.of_columns()
    evaluate, widths = partial(function.value_at, labels=names), law.widths(points)
    first = cost.first(draws)
    told = draws.label("lime"), function, points, names, cost.of(first), progress
    announced = announced_cost(*told)
    with progress_bar("lime", len(points), progress) as bar, announced:

        def batch(n_draws: int, k: int) -> BlockEstimates:
            size, rng = n_draws // LIME_BLOCKS, stream_of(draws.seed, k)
            uniforms = stratified_uniforms(LIME_BLOCKS, size, points.shape[1], rng)
            # terms of what varies beside bits, as many as other blocks have draws for
            room = (LIME_BLOCKS - 1) * size // (DRAWS_PER_TERM * points.shape[1]) - 2
            n_outside = max(0, min(room, MOST_OUTSIDE))
            parts = []
            for some in _blocks(len(points), uniforms, n_outside):
                around = points[some], widths[some]
                parts.append(_estimates(evaluate, law, *around, uniforms, n_outside))
                done = (some.stop - some.start) * first / n_draws
                bar.advance(bar.task_ids[0], done if k == 0 else 0)
            return tuple(map(_joined, zip(*parts, strict=True)))

        drawn = Pooled.of(batch, cost, first).enough(draws)
    draws.warn_if_larger(drawn.error)
    slopes, means, intercepts = drawn.blocks
    tilts = law.tilts(points, widths)
    return Limits(
        slopes.mean(axis=0),
        means.mean(axis=0),
        np.stack([tilt.alpha for tilt in tilts], axis=1),
        np.sum([tilt.log_weight for tilt in tilts], axis=0),
        standard_errors=error_of_blocks(slopes),
        intercept_error=error_of_blocks(intercepts),
        n_draws=drawn.n_draws,
        evaluations=drawn.evaluations,
    )


def _joined(parts: Sequence[Array]) -> Array:
    """Blocks (B, n, ...) of all rows; in memory row by row, however many a part has."""
    by_row = np.concatenate([np.moveaxis(own, 0, 1) for own in parts])
    return np.moveaxis(by_row, 1, 0)


def _cost(points: Points, n_samples: int) -> DrawCost:
    """What draws around points cost; coefficients take the fewest of them."""
    n_columns = points.shape[1]
    fewest = 2 * (n_columns + 1) + LIME_BLOCKS
    if read_count(n_samples, "n_samples") < fewest:
        raise InvalidInput(
            f"n_samples: {n_samples} samples are too few for the coefficients of "
            f"{n_columns} columns; give at least {fewest}"
        )
    fewest = LIME_BLOCKS * -(-fewest // LIME_BLOCKS)
    return DrawCost(len(points), fewest=fewest, step=LIME_BLOCKS)


def _blocks(n_rows: int, uniforms: Array, n_outside: int) -> list[slice]:
    """Rows around which draws are held at once."""
    n_terms = 1 + (n_outside > 0) * (1 + n_outside)
    row_bytes = 3 * n_terms * uniforms.nbytes
    width = n_terms * uniforms.shape[2]
    label = f"fits of {width} terms to {uniforms[..., 0].size} samples"
    require_memory(
        row_bytes + 24.0 * LIME_BLOCKS * width**2, label, "use fewer samples"
    )
    return list(BATCH_BUDGET.blocks(n_rows, row_bytes))


def _estimates(
    evaluate: Callable[[Points], Values],
    law: LimeLaw,
    points: Points,
    widths: Values,
    uniforms: Array,  # (B, s, D): what is made samples, around each row
    n_outside: int,  # see terms
) -> BlockEstimates:
    """What each block of draws of Q says: β (B, n, D), E_Q f and β_0 (B, n)."""
    n_blocks, size, width = uniforms.shape
    shape = len(points), n_blocks, size, width
    copies = np.broadcast_to(uniforms, shape)
    tilts = law.tilts(points, widths)
    alpha = np.stack([tilt.alpha for tilt in tilts], axis=1)
    flat = copies.reshape(len(points), -1, width)
    draws = draws_at(law.columns, points, widths, flat)
    values = evaluated(evaluate, draws.samples).reshape(shape[:3])
    fit = cross_fitted(terms(copies, alpha, n_outside), values)
    # E f z̃_j with z̃_j = (z_j − α_j) / √(α_j (1 − α_j)) is β_j √(α_j (1 − α_j))
    spread = np.sqrt(alpha * (1.0 - alpha))
    slopes = fit.slopes[..., :width] / np.where(spread > 0.0, spread, 1.0)
    return slopes, fit.means, fit.means - (alpha * slopes).sum(axis=-1)


def checked_products(
    function: Function, reference: Points, points: Points, labels: Labels
) -> SumOfProducts | Reason:
    """The sum of products that a function is, if it is one at rows of both tables."""
    rows = np.concatenate([points, reference])
    return CheckedStructure.of(function, rows.shape[1]).at(rows, labels.of_columns())


# ---- What LIME is asked about: a function, a law, rows; kept so that more can be asked


@final
@dataclass(frozen=True, eq=False)
class LimeSubject:
    """A function, a law and rows; not saved with what was found about them."""

    function: Function  # f
    law: LimeLaw  # of the samples
    # what f was read as, and found to be at the rows at hand
    products: SumOfProducts | Reason
    points: Points  # (N, D): the rows, encoded
    labels: Labels
    reference: Points  # (R, D): rows of the table that the law was made of, encoded
    draws: DrawPlan  # for each row of limits that are estimated
    has_table: bool = True  # whether a table is known, and reference is not X
    # what depends on the function and the law alone, made once for all rows
    known: dict[str, Any] = field(default_factory=dict, repr=False)

    def of_rows(self, rows: Indices) -> LimeSubject:
        """The same, about some of the rows."""
        return self.at(self.points[rows], self.labels.of_positions(rows))

    def at(self, points: Points, labels: Labels) -> LimeSubject:
        """The same, about other rows."""
        return replace(self, points=points, labels=labels)

    @property
    def reason(self) -> str:
        """Why limits are estimated; empty where they are exact."""
        read = self.products
        return read.reason if isinstance(read, Reason) else ""

    @cached_property
    def exact(self) -> ExactLimits | None:
        """The limits of a sum of products; None of other functions."""
        read = self.products
        if isinstance(read, Reason):
            return None
        known: ExactLimits | None = self.known.get("exact")
        if known is None or known.function is not read:
            self.known["exact"] = known = ExactLimits(read, self.law)
        return known

    @cached_property
    def common(self) -> CommonDraws | None:
        """Samples that all rows share; None of laws whose columns are not in bins."""
        if "common" not in self.known:
            self.known["common"] = CommonDraws.of(self.law, self.evaluate)
        draws: CommonDraws | None = self.known["common"]
        return draws

    @property
    def evaluate(self) -> Callable[[Points], Values]:
        """F at encoded points: the model, which is faster than its sum of products."""
        names = self.labels.of_columns()
        return lambda points: self.function.value_at(points, names)

    def limits(
        self,
        points: Points | None = None,  # shape (n, D)
        widths: Values | None = None,  # shape (n,)
        *,
        progress: bool | None = False,
    ) -> Limits:
        """The limits at these rows, or at others, with widths of their own."""
        draws = self.draws if points is None else self.draws.first_batch
        points = self.points if points is None else points
        if self.exact is not None:
            return self.exact.of(points, widths)
        if widths is None:
            return self._estimated(self.law, points, progress, draws)
        several, alone = np.unique(widths), self.draws.first_batch
        parts = [
            self._estimated(self.law.with_width(w), points[widths == w], False, alone)
            for w in several.tolist()
        ]
        order = np.concatenate([np.flatnonzero(widths == w) for w in several])
        return Limits.joined(parts).at(np.argsort(order))

    def profiles(self, points: Points) -> tuple[Array, ...]:
        """h_j(b) = E_Q[f | b_j = b] at rows (n, D), (n, B_j) each; NaN if empty."""
        if self.exact is not None and None not in binned_columns(self.law):
            return bin_profiles(self.exact, points)
        columns = range(points.shape[1])
        return tuple(profile_means(self.limits, self.law, points, j) for j in columns)

    def _estimated(
        self, law: LimeLaw, points: Points, progress: bool | None, draws: DrawPlan
    ) -> Limits:
        return estimate_limits(self.function, law, points, self.labels, draws, progress)

    def variance(self) -> Values:
        """Var_Q f at the rows, (N,): by pairs of products, or drawn if too many."""
        read, law, points = self.products, self.law, self.points
        if (
            isinstance(read, SumOfProducts)
            and n_pairs(read, len(points)) <= PAIRS_AT_MOST
        ):
            result = exact_variance(read, law, points, law.widths(points))
            if result is not None:
                return result
        # from draws that rows share; where too few count, from even ones at rows
        widths, common = law.widths(points), self.common
        shared, variance = np.zeros(len(points), bool), np.empty(len(points))
        if common is not None:
            shared = common.enough(points, widths)
            if shared.any():
                variance[shared] = common.variances(points[shared], widths[shared])
        if shared.all():
            return variance
        rows, rng = np.flatnonzero(~shared), np.random.default_rng(self.draws.seed)
        (uniforms,) = stratified_uniforms(1, RUN_DRAWS, points.shape[1], rng)
        around = law, points[rows], widths[rows], uniforms
        for some, _, f in values_around(self.evaluate, *around):
            variance[rows[some]] = f.var(axis=1)
        return variance


def limits_or_estimates(
    subject: LimeSubject, progress: bool | None = False
) -> tuple[LimeSubject, Limits]:
    """The limits at the rows of a subject, estimated where exact ones are refused.

    A factor may have means that quadrature does not find; then the subject says so.
    """
    try:
        return subject, subject.limits(progress=progress)
    except Refused as refused:
        if subject.exact is None:
            raise
        estimated = replace(subject, products=Reason(str(refused)))
        return estimated, estimated.limits(progress=progress)
