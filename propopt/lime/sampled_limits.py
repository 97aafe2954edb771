"""The subject of LIME: model, law and rows; and limits estimated from samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final, final

import numpy as np
from scipy.special import eval_sh_legendre, softmax

from propopt.base.arrays import Array, Indices, Mask, Points, Values, quotient
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
from propopt.lime.exact_limits import NO_PROFILE, ExactLimits, Limits, bin_profiles
from propopt.lime.laws.binned_columns import BinnedColumn, binned_columns
from propopt.lime.laws.lime_law import Draws, LimeLaw, draws_at
from propopt.losses.faithfulness import error_of_blocks
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import NO_NAMES, Labels


# ---- Values of a function at samples, in calls of bounded size


def evaluated(evaluate: Callable[[Points], Values], samples: Array) -> Array:
    """Values (...) at samples (..., D)."""
    flat = samples.reshape(-1, samples.shape[-1])
    parts = [evaluate(flat[block]) for block in row_blocks(*flat.shape)]
    return np.concatenate(parts).reshape(samples.shape[:-1])


RUN_DRAWS: Final = 4096
"""Draws around each row, for deviations with an error of 2 %."""


def values_around(
    evaluate: Callable[[Points], Values],
    law: LimeLaw,
    points: Points,
    widths: Values,
    uniforms: Array,  # (S, D): the same for all rows
    budget: Budget = BATCH_BUDGET,
) -> Iterator[tuple[slice, Draws, Array]]:
    """Samples of Q around blocks of rows, with the values of f, (m, S)."""
    for block in budget.blocks(len(points), 3 * uniforms.nbytes):
        rows = points[block]
        copies = np.broadcast_to(uniforms, (len(rows), *uniforms.shape))
        draws = draws_at(law.columns, rows, widths[block], copies)
        yield block, draws, evaluated(evaluate, draws.samples)


# ---- Neighbourhoods of a law of LIME: regressions on bits, with the weights of the law


def around_rows(
    law: LimeLaw,
    n_samples: int,  # S
    # whether the row itself is the first sample, with weight one and all bits one
    first_row: bool,
    points: Points,
    rng: np.random.Generator,
) -> Iterator[tuple[slice, Neighbourhood]]:
    """Samples of a law around points, in blocks, with their bits as regressors."""
    row_bytes = 8 * points.shape[1]
    for rows in PERTURBED_POINTS.blocks(len(points), row_bytes, n_samples):
        block = points[rows]
        draws = law.draw(block, n_samples, rng, first_row=first_row)
        if draws.weights.max(axis=1).min() < np.finfo(float).tiny:
            raise InvalidInput(
                f"law: the kernel width {law.kernel_width:g} is so small that all "
                "weights of a row round to zero"
            )
        # 1 for bits that vary, else 0
        tilts = law.tilts(block, np.full(len(block), np.inf))
        changes = np.stack([tilt.outside.any(axis=0) for tilt in tilts], axis=1)
        if not first_row:
            changes &= np.stack([tilt.alpha > 0.0 for tilt in tilts], axis=1)
        zeros = np.zeros(block.shape)
        ones = np.ones(block.shape)
        varies = changes.astype(float)
        bits = draws.bits * varies[:, None]
        yield (
            rows,
            Neighbourhood(draws.samples, bits, draws.weights, zeros, varies, ones),
        )


# ---- Uniform numbers that fill each column evenly, and regression terms of them


MOST_OUTSIDE: Final = 3
"""The number of polynomials of a column outside the bin."""

_FEWEST: Final = 20
"""The mean number of draws with a bit that a term needs: fits to fewer add noise."""


def stratified_uniforms(
    n_blocks: int, size: int, n_columns: int, rng: np.random.Generator
) -> Array:
    """Latin hypercubes (n_blocks, size, n_columns) (McKay et al. 1979).

    Each column has one number in each of ``size`` equal parts; blocks are independent.
    """
    shape = n_blocks, size, n_columns
    parts = np.broadcast_to(np.arange(size)[:, None], shape)
    return (rng.permuted(parts, axis=1) + rng.random(shape)) / size


def terms(uniforms: Array, alpha: Array, n_outside: int) -> Array:
    """The terms of least squares on draws of Q: bits, and polynomials within bits.

    A draw has z_j = 1[u_j < α_j]; given the bit, u is uniform on the rest. So the terms

    (z − α) / √(α (1 − α)),  z P_1(u / α) / √α,
    (1 − z) P_k((u − α) / (1 − α)) / √(1 − α),  k = 1, ..., K

    have mean 0, variance 1 and no correlation. Those after the first D have mean 0
    given any bits: they reduce the variance of f and do not change β.
    """
    n_draws = np.prod(uniforms.shape[1:-1])
    a = alpha.reshape(len(alpha), *(1,) * (uniforms.ndim - 2), -1)
    both = (a > 0.0) & (a < 1.0)
    inside = uniforms < a
    safe = np.where(both, a, 0.5)
    bits = both * (inside - safe) / np.sqrt(safe * (1.0 - safe))
    if n_outside == 0:
        return bits
    one = np.where(a > 0.0, a, 1.0)
    rest = np.where(a < 1.0, 1.0 - a, 1.0)
    many_inside = a * n_draws >= _FEWEST
    many_outside = (1.0 - a) * n_draws >= _FEWEST
    within = inside * many_inside / np.sqrt(one) * _polynomial(1, uniforms / one)
    position = (uniforms - a) / rest
    scale = ~inside * many_outside / np.sqrt(rest)
    without = [scale * _polynomial(k + 1, position) for k in range(n_outside)]
    return np.concatenate([bits, within, *without], axis=-1)


def _polynomial(degree: int, v: Array) -> Array:
    """A Legendre polynomial on [0, 1]: mean 0, variance 1, uncorrelated."""
    return np.sqrt(2.0 * degree + 1.0) * eval_sh_legendre(degree, v)


# ---- Samples of a law without weights, shared by all rows: f is evaluated once


N_COMMON: Final = 8192
"""The number of draws that rows share."""

_STRATA: Final = 32
"""The strata of each column, with some 256 draws each."""


@final
@dataclass(frozen=True, eq=False)
class CommonDraws:
    """Samples in bins that all rows share, weighted for each row.

    π depends only on bits: E_Q h is Σ π h / Σ π over the same samples for all rows.
    """

    columns: tuple[BinnedColumn, ...]  # (D,): the law
    samples: Points  # (S, D): of the law without weights
    values: Values  # (S,): f there

    @classmethod
    def of(
        cls, law: LimeLaw, evaluate: Callable[[Points], Values], n_draws: int = N_COMMON
    ) -> CommonDraws | None:
        """Draws that depend only on the law, not on rows; None if it has no bins."""
        columns = binned_columns(law)
        if columns is None:
            return None
        rng = np.random.default_rng(0)
        uniforms = stratified_uniforms(1, n_draws, len(columns), rng)
        anywhere = np.zeros((1, len(columns)))
        wide = np.full(1, np.inf)
        samples = draws_at(columns, anywhere, wide, uniforms).samples[0]
        return cls(columns, samples, evaluated(evaluate, samples))

    def weights(self, points: Points, widths: Values) -> Array:
        """The weights π over their sum, around rows (n, D): (S, n)."""
        # log π = Σ_j (z_j − 1) / (2 ν²)
        agreed = np.zeros((len(self.samples), len(points)))
        for bins, others in zip(self.bins, self._bins_of(points), strict=True):
            agreed += bins[:, None] == others
        return softmax(0.5 * (agreed - len(self.columns)) / widths**2, axis=0)

    def enough(self, points: Points, widths: Values) -> Mask:
        """Whether the samples around rows are worth half of their number, (n,)."""
        weights = self.weights(points, widths)
        return (weights**2).sum(axis=0) * len(weights) <= 2.0

    def bits(self, points: Points) -> Array:
        """The bits of the samples around rows, (n, S, D)."""
        pairs = zip(self.bins, self._bins_of(points), strict=True)
        bits = [bins == row_bins[:, None] for bins, row_bins in pairs]
        return np.stack(bits, axis=-1).astype(np.float64)

    def variances(self, points: Points, widths: Values) -> Values:
        """Var_Q f around rows, (n,)."""
        weights = self.weights(points, widths)
        values = self.values - self.values[0]  # of a constant exactly zero
        apart = (values[:, None] - values @ weights) ** 2
        return (weights * apart).sum(axis=0)

    def additive_variances(self, points: Points, widths: Values) -> Values:
        """Σ_j Var_Q E_Q[f | V_j] around rows, (n,), unbiased except for strata.

        The variance of the means of 32 strata of each column, minus the part that the
        samples within strata add to it: S Σ w² / K of their variance.
        """
        weights = self.weights(points, widths)
        total = np.zeros(len(points))
        n = len(self.samples)
        centred = self.values[:, None] - self.values @ weights
        for x in self.samples.T:
            # equal values share a stratum
            stratum = np.searchsorted(np.sort(x), x) * _STRATA // n
            inside = np.eye(_STRATA)[stratum]
            mass = inside.T @ weights
            level = quotient(inside.T @ (weights * centred), mass)
            squares = (weights**2 * (centred - level[stratum]) ** 2).T @ inside
            total += (mass * level**2).sum(axis=0)
            total -= quotient(squares.T, mass).sum(axis=0)
        return np.maximum(total, 0.0)

    def means(self, points: Points, widths: Values) -> list[tuple[Array, Array]]:
        """E_Q[f | b_j = b] and its error, (n, B_j) each; NaN for bins without samples.

        The least squares fit of f by a number for each bin has exact means, as columns
        are independent; only the residual is estimated from samples.
        """
        weights = self.weights(points, widths)
        total, additive, unfitted = self._fit
        levels = []
        for column, x, effects in zip(self.columns, points.T, additive, strict=True):
            tilt = column.tilt(x, widths)
            shares = tilt.alpha * tilt.inside + tilt.complement * tilt.outside
            levels.append(shares.T @ effects)
        total = total + np.sum(levels, axis=0)
        result = []
        for bins, effects, level in zip(self.bins, additive, levels, strict=True):
            inside = (bins[:, None] == np.arange(len(effects))) * 1.0
            mass = weights.T @ inside
            extra = quotient(weights.T @ (unfitted[:, None] * inside), mass, np.nan)
            apart = unfitted[:, None] - np.nan_to_num(extra)[:, bins].T
            square = (weights**2 * apart**2).T @ inside
            error = quotient(np.sqrt(square), mass, np.nan)
            result.append(((total - level)[:, None] + effects + extra, error))
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
        """A constant, an effect of each bin of each column, and residuals."""
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
        residuals = self.values - constant - design @ numbers
        return constant, tuple(np.split(numbers, np.cumsum(sizes)[:-1])), residuals


# ---- Limits of LIME for functions that can only be called, with standard errors


LIME_BLOCKS: Final = 20
"""Independent estimates: their scatter gives the error, itself to within a sixth."""

DRAWS_PER_TERM: Final = 4
"""A fit to fewer draws adds more noise than it removes."""

_WORTH_TIMING: Final = 10_000
"""The number of evaluations from which a few are timed, to announce the cost."""


def announced_cost(
    label: str,
    function: Function,
    points: Points,
    labels: Labels,
    evaluations: int,
    progress: bool | None,
) -> AbstractContextManager[None]:
    """A context that announces the cost of many evaluations, if they take long."""
    if evaluations < _WORTH_TIMING:
        return nullcontext()
    cost = cost_of(function, points, labels, evaluations)
    return cost.announced(label, function.calls, progress)


def estimate_limits(
    function: Function,
    law: LimeLaw,
    points: Points,  # shape (n, D)
    widths: Values | None = None,  # shape (n,)
    *,
    labels: Labels = NO_NAMES,
    draws: DrawPlan,
    progress: bool | None = None,
) -> Limits:
    """The limits of LIME for any function, from samples of the weighted law itself.

    Each of 20 blocks is unbiased: the least squares fit to the other blocks, plus its
    residual on this block. All rows have the same uniform numbers.
    """
    cost = _cost(points, draws.n_samples)
    names = labels.of_columns()
    evaluate = partial(function.value_at, labels=names)
    widths = law.widths(points, widths)
    first = cost.first(draws)
    announced = announced_cost(
        draws.label("lime"), function, points, names, cost.of(first), progress
    )
    with progress_bar("lime", len(points), progress) as advance, announced:

        def batch(n_draws: int, k: int) -> BlockEstimates:
            size = n_draws // LIME_BLOCKS
            rng = stream_of(draws.seed, k)
            uniforms = stratified_uniforms(LIME_BLOCKS, size, points.shape[1], rng)
            # terms within bits, as many as the draws of the other blocks allow
            room = (LIME_BLOCKS - 1) * size // (DRAWS_PER_TERM * points.shape[1]) - 2
            n_outside = max(0, min(room, MOST_OUTSIDE))
            parts = []
            for block in _blocks(len(points), uniforms, n_outside):
                parts.append(
                    _estimates(
                        evaluate, law, points[block], widths[block], uniforms, n_outside
                    )
                )
                done = (block.stop - block.start) * first / n_draws
                advance(done if k == 0 else 0)
            return tuple(map(_joined, zip(*parts, strict=True)))

        pooled = Pooled.of(batch, cost, first).enough(draws)
    draws.warn_if_larger(pooled.error)
    slopes, means = pooled.blocks
    tilts = law.tilts(points, widths)
    return Limits(
        slopes.mean(axis=0),
        means.mean(axis=0),
        np.stack([tilt.alpha for tilt in tilts], axis=1),
        np.sum([tilt.log_weight for tilt in tilts], axis=0),
        standard_errors=error_of_blocks(slopes),
        n_draws=pooled.n_draws,
        evaluations=pooled.evaluations,
    )


def _joined(parts: Sequence[Array]) -> Array:
    """Blocks (B, n, ...) of all rows, in memory row by row for any size of parts."""
    by_row = np.concatenate([np.moveaxis(part, 0, 1) for part in parts])
    return np.moveaxis(by_row, 1, 0)


def _cost(points: Points, n_samples: int) -> DrawCost:
    """The cost of draws around points, and the fewest that coefficients need."""
    n_columns = points.shape[1]
    fewest = 2 * (n_columns + 1) + LIME_BLOCKS
    if n_samples < fewest:
        raise InvalidInput(
            f"n_samples: {n_samples} samples are too few for the coefficients of "
            f"{n_columns} columns; give at least {fewest}"
        )
    fewest = LIME_BLOCKS * -(-fewest // LIME_BLOCKS)
    return DrawCost(len(points), fewest=fewest, step=LIME_BLOCKS)


def _blocks(n_rows: int, uniforms: Array, n_outside: int) -> list[slice]:
    """The blocks of rows with draws that are in memory together."""
    n_terms = 1 + (n_outside > 0) * (1 + n_outside)
    row_bytes = 3 * n_terms * uniforms.nbytes
    width = n_terms * uniforms.shape[2]
    label = f"fits of {width} terms to {uniforms[..., 0].size} samples"
    require_memory(
        row_bytes + 24.0 * LIME_BLOCKS * width**2, label, "use fewer samples"
    )
    return BATCH_BUDGET.blocks(n_rows, row_bytes)


def _estimates(
    evaluate: Callable[[Points], Values],
    law: LimeLaw,
    points: Points,
    widths: Values,
    uniforms: Array,  # (B, s, D): uniform numbers of the samples around each row
    n_outside: int,  # see terms
) -> BlockEstimates:
    """The estimates of each block of draws: β (B, n, D) and E_Q f (B, n)."""
    n_blocks, size, width = uniforms.shape
    shape = len(points), n_blocks, size, width
    copies = np.broadcast_to(uniforms, shape)
    alpha = np.stack([tilt.alpha for tilt in law.tilts(points, widths)], axis=1)
    flat = copies.reshape(len(points), -1, width)
    draws = draws_at(law.columns, points, widths, flat)
    values = evaluated(evaluate, draws.samples).reshape(shape[:3])
    means, slopes = cross_fitted(terms(copies, alpha, n_outside), values)
    # E f z̃_j with z̃_j = (z_j − α_j) / √(α_j (1 − α_j)) is β_j √(α_j (1 − α_j))
    spread = np.sqrt(alpha * (1.0 - alpha))
    return slopes[..., :width] / np.where(spread > 0.0, spread, 1.0), means


def checked_products(
    function: Function, reference: Points, points: Points, labels: Labels
) -> SumOfProducts | Reason:
    """The sum of products that equals the function at rows of both tables, if any."""
    rows = np.concatenate([points, reference])
    return CheckedStructure.of(function, rows.shape[1]).at(rows, labels.of_columns())


# ---- The subject of an explanation: a function, a law and rows, for more computations


@final
@dataclass(frozen=True, eq=False)
class LimeSubject:
    """A function, a law and rows of a table; not saved with their explanation."""

    function: Function  # f
    law: LimeLaw  # of the samples
    # the sum of products that equals f at the rows, or why there is none
    products: SumOfProducts | Reason
    points: Points  # (N, D): the rows as encoded numbers
    labels: Labels
    reference: Points  # (R, D): encoded rows of the table of the law
    draws: DrawPlan  # for each row with estimated limits
    # computations that depend only on the function and the law, for all rows
    cache: dict[str, Any] = field(default_factory=dict, repr=False)

    def of_rows(self, rows: Indices) -> LimeSubject:
        """The same function and law, with some of the rows."""
        return self.at(self.points[rows], self.labels.of_positions(rows))

    def at(self, points: Points, labels: Labels) -> LimeSubject:
        """The same function and law, with other rows."""
        return replace(self, points=points, labels=labels)

    @property
    def reason(self) -> str:
        """Why limits are estimated; empty if they are exact."""
        products = self.products
        return products.reason if isinstance(products, Reason) else ""

    @cached_property
    def exact(self) -> ExactLimits | None:
        """The exact limits of a sum of products; None for other functions."""
        products = self.products
        if isinstance(products, Reason):
            return None
        exact: ExactLimits | None = self.cache.get("exact")
        if exact is None or exact.function is not products:
            self.cache["exact"] = exact = ExactLimits(products, self.law)
        return exact

    @cached_property
    def common(self) -> CommonDraws | None:
        """The samples that all rows share; None for laws without bins."""
        if "common" not in self.cache:
            self.cache["common"] = CommonDraws.of(self.law, self.evaluate)
        return self.cache["common"]

    @property
    def evaluate(self) -> Callable[[Points], Values]:
        """The model as a function of encoded points, faster than its products."""
        names = self.labels.of_columns()
        return lambda points: self.function.value_at(points, names)

    def limits(
        self,
        points: Points | None = None,  # shape (n, D)
        widths: Values | None = None,  # shape (n,)
        *,
        progress: bool | None = False,
    ) -> Limits:
        """The limits at these rows, or at others with a kernel width for each."""
        draws = self.draws if points is None else self.draws.first_batch
        points = self.points if points is None else points
        if self.exact is not None:
            return self.exact.of(points, widths)
        return estimate_limits(
            self.function,
            self.law,
            points,
            widths,
            labels=self.labels,
            draws=draws,
            progress=progress,
        )

    def profiles(self, points: Points) -> tuple[Array, ...]:
        """The profiles h_j(b) = E_Q[f | b_j = b], (n, B_j) each; NaN in empty bins."""
        if self.exact is None:
            return tuple([means for means, _ in self.estimated_profiles(points)])
        return bin_profiles(self.exact, points)

    def estimated_profiles(self, points: Points) -> list[tuple[Array, Array]]:
        """Profiles from draws that all rows share, and their errors."""
        common = self.common
        if common is None:
            raise Refused(NO_PROFILE)
        widths = self.law.widths(points)
        if not common.enough(points, widths).all():
            raise Refused("at some row nearly all samples have a weight of zero")
        return common.means(points, widths)

    def variance(self) -> Values:
        """Var_Q f at the rows, (N,), from draws.

        Rows share them. If too few have weight for a row, it has draws of its own.
        """
        law = self.law
        points = self.points
        widths = law.widths(points)
        common = self.common
        shared = np.zeros(len(points), bool)
        variance = np.empty(len(points))
        if common is not None:
            shared = common.enough(points, widths)
            variance[shared] = common.variances(points[shared], widths[shared])
        rows = np.flatnonzero(~shared)
        if len(rows) == 0:
            return variance
        rng = np.random.default_rng(self.draws.seed)
        (uniforms,) = stratified_uniforms(1, RUN_DRAWS, points.shape[1], rng)
        for block, _, f in values_around(
            self.evaluate, law, points[rows], widths[rows], uniforms
        ):
            variance[rows[block]] = f.var(axis=1)
        return variance


def limits_or_estimates(
    subject: LimeSubject, progress: bool | None = False
) -> tuple[LimeSubject, Limits]:
    """The limits at the rows of a subject, estimated if exact ones are refused.

    Quadrature may fail for the means of a factor; then the subject has the reason.
    """
    try:
        return subject, subject.limits(progress=progress)
    except Refused as refused:
        if subject.exact is None:
            raise
        estimated = replace(subject, products=Reason(str(refused)))
        return estimated, estimated.limits(progress=progress)
