"""Draws under the data law, and slopes from them: paired, or cross-fitted in blocks.

- :class:`~propopt.laws.draws.Design`: what is drawn around which rows;
  :class:`~propopt.laws.draws.Control`: what is taken off.
- :class:`~propopt.laws.draws.Sample`: draws and values, which can grow.

Slopes of each block of draws, with a line that was fitted to the other blocks. With z_j
= (V_j − v̄_j)/√Var_j, independent, of mean 0 and variance 1 by the law itself,

slope_j = E f z_j / √Var_j = (γ_j + E (f − γ_0 − γᵀz) z_j) / √Var_j  for any γ

that does not depend on the draws. The least squares fit over the other blocks is such a
γ, and what is left of f scatters less than f, so each block is unbiased and has little
scatter. Of a linear f nothing is left. A function m whose mean and slopes are known
exactly is one more term, γ_m (m − E m), which adds γ_m times its slopes.

Contrasts of a few values, from the same draw with another value in one column. Where
the contrast r of a column is no slope, the attribution is an effect or a difference,
and since Σ_v r_v = 0 it is

Σ_v r_v E f(v, V_−j) = E Σ_v −r_v (f(V) − f(v, V_−j)):

what changes when V_j becomes v and all else stays. Of a function that does not depend
on column j this is 0 in every draw. So it is for slopes, with V_j' another draw of V_j:

Cov(V_j, f(V)) / Var V_j = E ½ (V_j − V_j') (f(V) − f(V_j', V_−j)) / Var V_j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Points, Truths, Values
from propopt.base.errors import InvalidInput
from propopt.base.resources import row_blocks
from propopt.laws.column_laws import CodedLaw, ColumnLaw, NumericLaw
from propopt.laws.data_law import DataLaw


# ---- Attributions under a law, estimated from draws, with blocks that tell their error


_RIDGE: Final = 1e-10
"""Of the scatter of each term: what makes terms solvable that move together."""

_STILL: Final = 1e-12
"""A term with less scatter, of its sum of squares, did not move but for rounding."""


class BlockSlopes(NamedTuple):
    """Estimates from each of B blocks, at n rows."""

    means: Array
    """Of f, (B, n)."""

    slopes: Array
    """E f z_j, (B, n, D)."""


KnownTerm: TypeAlias = tuple[Array, Array, Array]
"""A function m at the draws (n, B, s), and its exact E m (n,) and E m z_j (n, D)."""


def cross_fitted(z: Array, f: Array, known: KnownTerm | None = None) -> BlockSlopes:
    """Means and slopes of f from each block; z (n, B, s, D), f (n, B, s)."""
    n_features = z.shape[-1]
    terms = z
    if known is not None:
        values, centers, own = known
        centred = values - centers[:, None, None]
        terms = np.concatenate([z, centred[..., None]], axis=-1)
    level, gamma = _fits_of_others(terms, f)
    left = f - level[..., None] - (terms @ gamma[..., None])[..., 0]
    means = level + left.mean(axis=-1)
    # the mean of what is left times z_j
    products = np.swapaxes(z, -1, -2) @ left[..., None]
    slopes = gamma[..., :n_features] + products[..., 0] / z.shape[-2]
    if known is not None:
        # m − E m has mean 0, and the slopes of m
        slopes = slopes + gamma[..., -1:] * own[:, None, :]
    return BlockSlopes(np.moveaxis(means, 1, 0), np.moveaxis(slopes, 1, 0))


def _fits_of_others(terms: Array, f: Array) -> tuple[Array, Array]:
    """γ_0 (n, B) and γ (n, B, p) for each block, by least squares over the others.

    A term that never moved in the others has no part in it.
    """
    n_blocks, n_draws = f.shape[1:]
    n_others = (n_blocks - 1) * n_draws
    transposed = np.swapaxes(terms, -1, -2)
    gram = _of_others(transposed @ terms)
    moments = _of_others((transposed @ f[..., None])[..., 0])
    centers = _of_others(terms.sum(axis=-2)) / n_others
    level = _of_others(f.sum(axis=-1)) / n_others
    squares = np.diagonal(gram, axis1=-2, axis2=-1).copy()
    gram -= n_others * centers[..., :, None] * centers[..., None, :]
    moments -= n_others * centers * level[..., None]
    scatter = np.diagonal(gram, axis1=-2, axis2=-1)
    moved = scatter > _STILL * squares
    gram *= moved[..., :, None] & moved[..., None, :]
    ridge = np.where(moved, _RIDGE * scatter, 1.0)
    gram += ridge[..., None] * np.eye(gram.shape[-1])
    moments = np.where(moved, moments, 0.0)
    gamma = np.asarray(np.linalg.solve(gram, moments[..., None])[..., 0])
    return level - (gamma * centers).sum(axis=-1), gamma


def _of_others(sums: Array) -> Array:
    """Sums over all other blocks than each, from those over each (n, B, ...)."""
    return np.asarray(sums.sum(axis=1, keepdims=True) - sums)


# ---- Contrasts of a few values, from the same draw with another value in one column


MOST_EACH: Final = 16
"""Of so many other values each is tried in every draw; of more, one that is drawn."""


class OtherValues(NamedTuple):
    """Other values of one column, with what the change of f counts."""

    rows: NDArray[np.intp]
    """The rows at which they are tried, (T,)."""

    values: Array
    """What the column becomes, in each draw, (T, S)."""

    weights: Array
    """The attribution is the mean of weight · (f(V) − f with the value), (T, S)."""


def other_values(
    law: ColumnLaw, x: Array, samples: Array, uniforms: Array, paired: bool
) -> Iterator[OtherValues]:
    """Those of one column; x (n,), samples (n, S), uniforms (S,)."""
    match law:
        case CodedLaw():
            yield from _others(law, x, uniforms)
        case NumericLaw() if len(law.values) > 0:
            yield from _of_missing(law, x, uniforms)
            present = np.flatnonzero(~np.isnan(x))
            if len(law.values) == 2:
                yield _other_of_two(law, present, samples)
            elif len(law.values) > 2 and paired:
                yield _redrawn(law, present, x, samples, uniforms)


def n_other_values(law: ColumnLaw, x: Array, paired: bool) -> NDArray[np.intp]:
    """How many each row has in one draw, (n,)."""
    counts = np.zeros(len(x), dtype=np.intp)
    match law:
        case CodedLaw():
            own = law.shares[x.astype(np.intp)] > 0.0
            n_codes = int((law.shares > 0.0).sum())
            each = n_codes <= MOST_EACH
            counts[:] = n_codes - own if each else 1
        case NumericLaw() if len(law.values) > 0:
            m, absent = len(law.values), np.isnan(x)
            counts[absent] = m if m <= MOST_EACH else 1
            counts[~absent] = m == 2 or (m > 2 and paired)
    return counts


def _of_missing(law: NumericLaw, x: Array, uniforms: Array) -> Iterator[OtherValues]:
    """Observed values in place of none: the effect δ_missing − p."""
    rows, n_draws = np.flatnonzero(np.isnan(x)), len(uniforms)
    if len(law.values) > MOST_EACH:
        values = np.tile(_inverse(law.values, law.shares, uniforms), (len(rows), 1))
        yield OtherValues(rows, values, np.ones(values.shape))
        return
    for value, share in zip(law.values, law.shares, strict=True):
        shape = (len(rows), n_draws)
        yield OtherValues(rows, np.full(shape, value), np.full(shape, share))


def _others(law: CodedLaw, x: Array, uniforms: Array) -> Iterator[OtherValues]:
    """Other categories than that of the row: the effect δ_x − p."""
    codes = np.flatnonzero(law.shares > 0.0)
    if len(codes) > MOST_EACH:
        samples = _inverse(codes, law.shares[codes], uniforms)
        values = np.tile(samples, (len(x), 1))
        yield OtherValues(np.arange(len(x)), values, np.ones(values.shape))
        return
    for code in codes:
        rows = np.flatnonzero(x != code)
        shape = (len(rows), len(uniforms))
        yield OtherValues(
            rows, np.full(shape, float(code)), np.full(shape, law.shares[code])
        )


def _other_of_two(
    law: NumericLaw, rows: NDArray[np.intp], samples: Array
) -> OtherValues:
    """f(v_2, ·) − f(v_1, ·), over v_2 − v_1, whichever of them V_j is."""
    low, high = law.values
    is_low = samples[rows] == low
    slope = 1.0 / law.extent
    return OtherValues(
        rows, np.where(is_low, high, low), np.where(is_low, -slope, slope)
    )


def _redrawn(
    law: NumericLaw, rows: NDArray[np.intp], x: Array, samples: Array, uniforms: Array
) -> OtherValues:
    """½ (V_j − V_j') / Var V_j, with V_j' another draw of V_j."""
    again = law.quantiles(x[rows], uniforms)
    _, variances = law.moments(x[rows])
    return OtherValues(rows, again, 0.5 * (samples[rows] - again) / variances[:, None])


def _inverse(values: NDArray[np.generic], shares: Array, uniforms: Array) -> Array:
    """The inverse cdf of shares on values, at uniforms (S,)."""
    cumulative = np.cumsum(shares)
    at = np.searchsorted(cumulative / cumulative[-1], uniforms, side="right")
    return np.asarray(values[np.minimum(at, len(values) - 1)], dtype=np.float64)


N_BLOCKS: Final = 10
"""Blocks of draws: enough to tell their scatter, few enough to leave most to others."""


# ---- What is drawn around which rows, and what is taken off what is estimated


Evaluator: TypeAlias = Callable[[Points], Values]


@final
@dataclass(frozen=True, eq=False)
class Control:
    """A function near f whose means and attributions are known exactly."""

    evaluate: Evaluator  # m at points (n, D)
    means: Values  # (N,): E m(V) at each row
    attributions: Attributions  # (N, D): those of m at each row


@final
@dataclass(frozen=True, eq=False)
class Design:
    """What is drawn, and where."""

    law: DataLaw  # of the columns, and their contrasts
    points: Points  # shape (N, D)
    seed: int  # of the uniform numbers that all rows have in common
    # whether slopes are taken by pairs, as effects are; else by least squares
    paired: bool = False
    control: Control | None = None  # what is taken off f

    @property
    def per_draw(self) -> int:
        """Evaluations of f in one draw, all rows together."""
        counts = [
            n_other_values(column, x, self.paired).sum()
            for column, x in zip(self.law.columns, self.points.T, strict=True)
        ]
        return len(self.points) + int(sum(counts))

    @property
    def fewest(self) -> int:
        """The fewest draws that slopes can be made of."""
        return fewest_draws(self.law, self.paired, self.control is not None)

    @cached_property
    def moving(self) -> Truths:
        """Which columns are terms of the least squares, in whatever rows, (D,)."""
        return moving_columns(self.law) & (not self.paired)

    @cached_property
    def fitted(self) -> Truths:
        """Where slopes are by least squares, (N, D)."""
        return self.law.has_slopes(self.points) & (not self.paired)

    def uniforms(self, start: int, stop: int) -> tuple[Array, Array]:
        """Those of V and those of alternatives, (B · s, D) each, from each block.

        Each block has a stream of its own, which can be drawn on without a change of
        what was drawn.
        """
        width = self.points.shape[1]
        streams = [np.random.default_rng([self.seed, b]) for b in range(N_BLOCKS)]
        blocks = [rng.random((stop, 2 * width))[start:] for rng in streams]
        both = np.stack(blocks).reshape(-1, 2 * width)
        return both[:, :width], both[:, width:]


def fewest_draws(law: DataLaw, paired: bool, controlled: bool) -> int:
    """The fewest draws: fits over nine of ten blocks need two for each term."""
    n_moving = 0 if paired else int(moving_columns(law).sum())
    terms = 1 + n_moving + controlled
    return N_BLOCKS * -(-2 * terms // (N_BLOCKS - 1))


def moving_columns(law: DataLaw) -> Truths:
    """Which columns have draws of several numbers, (D,)."""
    return np.array(
        [
            isinstance(column, NumericLaw) and len(column.values) > 1
            for column in law.columns
        ]
    )


# ---- Means and slopes at rows, by cross-fitted least squares on what was drawn there


def fitted(
    design: Design, rows: slice, V: Array, values: Array, known: Array | None
) -> BlockSlopes:
    """Those of each block, (B, n) and (B, n, D); 0 in columns that do not move.

    V (n, B, s, D), values (n, B, s), known (n, B, s).
    """
    columns = np.flatnonzero(design.moving)
    means, variances = design.law.moments(design.points[rows])
    centers, squares = means[:, columns], variances[:, columns]
    moves = squares > 0.0
    scales = np.sqrt(np.where(moves, squares, 1.0))
    z = _standard(V[..., columns], moves, centers, scales)
    term = None
    if design.control is not None and known is not None:
        exact = design.control.attributions[rows][:, columns]
        term = known, design.control.means[rows], exact * scales
    fit = cross_fitted(z, values, term)
    slopes = np.zeros((*fit.means.shape, V.shape[-1]))
    slopes[..., columns] = fit.slopes / scales
    return BlockSlopes(fit.means, slopes)


def _standard(V: Array, moves: Truths, centers: Array, scales: Array) -> Array:
    """Draws of mean 0 and variance 1 under the law; 0 where nothing moves."""
    locations = np.where(moves, centers, 0.0)[:, None, None]
    z = (V - locations) / scales[:, None, None]
    return np.where(moves[:, None, None], z, 0.0)


# ---- Sums over draws of contrasts by pairs, block by block


@final
@dataclass(frozen=True, eq=False)
class PairSums:
    """Σ c, Σ m, Σ cm and Σ m² of contrasts c of f and m of a function that is known.

    Draws are added one after the other, so that sums do not depend on how many were
    added at a time.
    """

    sums: Array  # (4, N, B, D): the four sums

    def add(self, rows: slice, c: Array) -> None:
        """Add draws of contrasts (n, B, s, D) at some rows."""
        for s in range(c.shape[2]):
            self.sums[0, rows] += c[:, :, s]

    def add_controlled(self, rows: slice, c: Array, m: Array) -> None:
        """The same, with those of the function that is known."""
        self.add(rows, c)
        for s in range(c.shape[2]):
            self.sums[1, rows] += m[:, :, s]
            self.sums[2, rows] += c[:, :, s] * m[:, :, s]
            self.sums[3, rows] += m[:, :, s] ** 2

    def means(self, n_draws: int) -> Array:
        """Mean contrasts of each block of so many draws, (B, N, D)."""
        return np.moveaxis(self.sums[0] / n_draws, 1, 0)

    def controlled(self, n_draws: int, known: Array) -> Array:
        """The same with γ (m − E m) taken off, γ by the other blocks, (B, N, D).

        known (N, D).
        """
        c, m, cm, mm = self.sums.sum(axis=2, keepdims=True) - self.sums
        n_others = n_draws * (N_BLOCKS - 1)
        covariance, variance = cm - c * m / n_others, mm - m**2 / n_others
        moved = variance > 1e-12 * mm
        gamma = np.where(moved, covariance, 0.0) / np.where(moved, variance, 1.0)
        own = self.sums[:2] / n_draws
        values = own[0] - gamma * (own[1] - known[:, None, :])
        return np.moveaxis(values, 1, 0)


# ---- Values at draws around rows, and contrasts by pairs there


def _values(evaluate: Evaluator, V: Array) -> Array:
    """Values of f at points (..., D)."""
    return evaluate(V.reshape(-1, V.shape[-1])).reshape(V.shape[:-1])


def _contrasts(
    design: Design,
    evaluate: Evaluator,
    points: Array,  # (n, D)
    V: Array,  # (n, S, D): draws around them
    uniforms: Array,  # (S, D): for alternatives that are drawn
    f: Array,  # (n, S): values there
) -> Array:
    """Contrasts by pairs in each draw, 0 in other columns, (n, S, D)."""
    result = np.zeros(V.shape)
    for j, column in enumerate(design.law.columns):
        of_column = points[:, j], V[:, :, j], uniforms[:, j]
        for rows, others, weights in other_values(column, *of_column, design.paired):
            if len(rows) == 0:
                continue
            changed = V[rows]
            changed[:, :, j] = others
            result[rows, :, j] += weights * (f[rows] - _values(evaluate, changed))
    return result


def _parts(start: int, stop: int, width: int, n_rows: int) -> Iterator[slice]:
    """Draws of each block of which tables are built at once."""
    for part in row_blocks(stop - start, width, copies=N_BLOCKS * n_rows):
        yield slice(start + part.start, start + part.stop)


# ---- Values of a function at draws around rows, and what they estimate


@final
@dataclass(frozen=True, eq=False)
class Sample:
    """Draws around rows, and the values of f there; more can be drawn without waste.

    The numbers that are drawn are those of the first ``n_draws`` of streams that never
    change, so that a sample that has grown is the sample that was large at once.
    """

    design: Design  # what is drawn
    evaluate: Evaluator  # f at points (n, D)
    values: Array  # (N, B, s): f(V) in each draw of each block
    known: Array | None  # (N, B, s): those of the control
    pairs: PairSums  # contrasts by pairs
    fit: BlockSlopes  # means and slopes by least squares

    @classmethod
    def of(cls, design: Design, evaluate: Evaluator, n_draws: int) -> Sample:
        """The first draws."""
        if n_draws < design.fewest:
            raise InvalidInput(
                f"n_draws: {n_draws} draws are too few for the slopes of "
                f"{design.points.shape[1]} features; give at least {design.fewest}"
            )
        shape = (len(design.points), N_BLOCKS, 0)
        known = None if design.control is None else np.empty(shape)
        n_rows, width = design.points.shape
        none = PairSums(np.zeros((4, n_rows, N_BLOCKS, width)))
        fit = BlockSlopes(np.empty(0), np.empty(0))
        empty = cls(design, evaluate, np.empty(shape), known, none, fit)
        return empty.extended(n_draws)

    @property
    def n_draws(self) -> int:
        """Draws around each row, all blocks together."""
        return N_BLOCKS * self.values.shape[2]

    @property
    def evaluations(self) -> int:
        """Rows that f was evaluated at."""
        return self.n_draws * self.design.per_draw

    def extended(self, n_draws: int) -> Sample:
        """The sample with more draws, so that there are ``n_draws`` around each row."""
        if n_draws % N_BLOCKS or n_draws < self.n_draws:
            raise InvalidInput(
                f"n_draws: expected a multiple of {N_BLOCKS} from {self.n_draws} on, "
                f"got {n_draws}"
            )
        start, stop = self.n_draws // N_BLOCKS, n_draws // N_BLOCKS
        n_rows, width = self.design.points.shape
        shape = (n_rows, N_BLOCKS, stop)
        values, pairs = np.empty(shape), PairSums(self.pairs.sums.copy())
        values[:, :, :start] = self.values
        known = None if self.known is None else np.empty(shape)
        if known is not None:
            known[:, :, :start] = self.known
        fit = BlockSlopes(
            np.empty((N_BLOCKS, n_rows)), np.empty((N_BLOCKS, n_rows, width))
        )
        grown = replace(self, values=values, known=known, pairs=pairs, fit=fit)
        grown.fill(start, stop)
        return grown

    def fill(self, start: int, stop: int) -> None:
        """Draw ``start`` to ``stop`` of each block around all rows; fit all draws."""
        n_rows, width = self.design.points.shape
        first, second = self.design.uniforms(0, stop)
        for rows in row_blocks(n_rows, width, copies=N_BLOCKS * stop):
            V = self.design.law.draws(self.design.points[rows], first)
            blocks = V.reshape(len(V), N_BLOCKS, stop, width)
            others = second.reshape(N_BLOCKS, stop, width)
            for draws in _parts(start, stop, width, len(V)):
                self._fill_some(rows, draws, blocks[:, :, draws], others[:, draws])
            known = None if self.known is None else self.known[rows]
            fit = fitted(self.design, rows, blocks, self.values[rows], known)
            self.fit.means[:, rows], self.fit.slopes[:, rows] = fit

    def _fill_some(self, rows: slice, draws: slice, V: Array, uniforms: Array) -> None:
        """Values at some draws (n, B, s, D) around some rows, and contrasts there."""
        width = V.shape[-1]
        points, flat = self.design.points[rows], V.reshape(len(V), -1, width)
        alternatives = uniforms.reshape(-1, width)

        def of(evaluate: Evaluator, table: Array) -> Array:
            f = _values(evaluate, flat)
            table[rows, :, draws] = f.reshape(V.shape[:3])
            given = points, flat, alternatives, f
            return _contrasts(self.design, evaluate, *given).reshape(V.shape)

        contrasts = of(self.evaluate, self.values)
        if self.design.control is None or self.known is None:
            self.pairs.add(rows, contrasts)
        else:
            known = of(self.design.control.evaluate, self.known)
            self.pairs.add_controlled(rows, contrasts, known)

    def blocks(self) -> BlockSlopes:
        """Means of f and attributions from each block of draws, each unbiased."""
        slopes = np.where(self.design.fitted, self.fit.slopes, self._paired())
        return BlockSlopes(self.fit.means, slopes)

    def _paired(self) -> Array:
        """Attributions by pairs, (B, N, D)."""
        n_draws = self.n_draws // N_BLOCKS
        control = self.design.control
        if control is None:
            return self.pairs.means(n_draws)
        return self.pairs.controlled(n_draws, control.attributions)
