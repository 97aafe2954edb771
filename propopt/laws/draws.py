"""Draws under the data law, and slopes from them: cross-fitted in blocks, or by pairs.

Slopes of each block of draws use a line fitted to the other blocks. With z_j
= (V_j − v̄_j)/√Var_j, independent, of mean 0 and variance 1 by the law itself,

slope_j = E f z_j / √Var_j = (γ_j + E (f − γ_0 − γᵀz) z_j) / √Var_j  for any γ

that does not depend on the draws. The least-squares fit over the other blocks is such a
γ, and the residual of f has a smaller variance, so each block is unbiased with little
variance. For a linear f the residual is zero. A control function m with exact mean and
slopes is one more term, γ_m (m − E m), which adds γ_m times its slopes.

Contrasts of a few values use the same draw with another value in one column. If the
contrast r of a column is not a slope, the attribution is an effect or a difference, and
as Σ_v r_v = 0 it is

Σ_v r_v E f(v, V_−j) = E Σ_v −r_v (f(V) − f(v, V_−j)):

the change when V_j becomes v and all other columns stay. For a function that does not
depend on column j this is 0 in every draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Indices, Mask, Points, Values
from propopt.base.errors import InvalidInput
from propopt.base.resources import require_memory, row_blocks
from propopt.laws.column_laws import CodedLaw, ColumnLaw, NumericLaw
from propopt.laws.data_law import DataLaw
from propopt.laws.regressions import LeastSquares, sums_of_other_blocks
from propopt.laws.sampling import DrawCost, Sampler
from propopt.losses.faithfulness import Estimate, relative_error
from propopt.tables.frames import Labels


_RIDGE: Final = 1e-10
"""Ridge relative to the variance of each term, for collinear terms."""

_STILL: Final = 1e-12
"""A variance below this share of the sum of squares is rounding."""


ExactTerm: TypeAlias = tuple[Array, Array, Array]
"""A function m at the draws (n, B, s), and its exact E m (n,) and E m z_j (n, D)."""


def cross_fitted(
    z: Array, f: Array, control: ExactTerm | None = None
) -> tuple[Array, Array]:
    """Cross-fitted means (B, n) and slopes (B, n, D), B blocks z (n, B, s, D)."""
    n_features = z.shape[-1]
    terms = z
    if control is not None:
        values, centers, control_slopes = control
        centred = values - centers[:, None, None]
        terms = np.concatenate([z, centred[..., None]], axis=-1)
    level, gamma = _fits_of_others(terms, f)
    residual = f - level[..., None] - (terms @ gamma[..., None])[..., 0]
    means = level + residual.mean(axis=-1)
    # the mean of the residual times z_j
    products = np.swapaxes(z, -1, -2) @ residual[..., None]
    slopes = gamma[..., :n_features] + products[..., 0] / z.shape[-2]
    if control is not None:
        # m − E m has mean 0, and the slopes of m
        slopes = slopes + gamma[..., -1:] * control_slopes[:, None, :]
    return np.moveaxis(means, 1, 0), np.moveaxis(slopes, 1, 0)


def _fits_of_others(terms: Array, f: Array) -> tuple[Array, Array]:
    """Fits γ_0 (n, B) and γ (n, B, p) for each block, over the other blocks."""
    n_blocks, n_draws = f.shape[1:]
    n_others = (n_blocks - 1) * n_draws
    equations = LeastSquares.of(terms, f)
    gram, moments = map(sums_of_other_blocks, (equations.gram, equations.moments))
    centers = sums_of_other_blocks(terms.sum(axis=-2)) / n_others
    level = sums_of_other_blocks(f.sum(axis=-1)) / n_others
    squares = np.diagonal(gram, axis1=-2, axis2=-1).copy()
    gram -= n_others * centers[..., :, None] * centers[..., None, :]
    moments -= n_others * centers * level[..., None]
    scatter = np.diagonal(gram, axis1=-2, axis2=-1)
    moved = scatter > _STILL * squares
    ridge = np.where(moved, _RIDGE * scatter, 1.0)
    gram *= moved[..., :, None] & moved[..., None, :]
    moving = LeastSquares(gram, np.where(moved, moments, 0.0))
    gamma = moving.ridged(ridge).solution
    return level - (gamma * centers).sum(axis=-1), gamma


# ---- Contrasts of a few values, by the same draw with another value in a column


MOST_EACH: Final = 16
"""Up to this many values, each is evaluated in every draw; else a drawn one."""


AlternativeValues: TypeAlias = tuple[Indices, Array, Array]
"""Alternative values of a column: rows (T,), values and weights in each draw (T, S).
Attributions are means of weight · (f(V) − f(alternative))."""


def alternative_values(
    law: ColumnLaw, x: Array, samples: Array, uniforms: Array
) -> Iterator[AlternativeValues]:
    """Alternative values of one column; x (n,), samples (n, S), uniforms (S,)."""
    if isinstance(law, CodedLaw):
        codes = np.flatnonzero(law.shares > 0.0)
        yield from _effects(codes, law.shares[codes], x, np.arange(len(x)), uniforms)
        return
    absent = np.isnan(x)
    yield from _effects(law.values, law.shares, x, np.flatnonzero(absent), uniforms)
    if len(law.values) == 2:
        # f(v_2, ·) − f(v_1, ·), over v_2 − v_1, whichever of them V_j is
        rows = np.flatnonzero(~absent)
        slope = 1.0 / law.extent
        low, high = law.values
        is_low = samples[rows] == low
        yield rows, np.where(is_low, high, low), np.where(is_low, -slope, slope)


def _effects(
    values: NDArray[np.generic],
    shares: Array,
    x: Array,
    rows: Indices,
    uniforms: Array,
) -> Iterator[AlternativeValues]:
    """Alternatives for f at rows minus its mean over values: δ_x − p."""
    if len(values) > MOST_EACH:
        cumulative = np.cumsum(shares)
        at = np.searchsorted(cumulative / cumulative[-1], uniforms, side="right")
        drawn = np.asarray(values[np.minimum(at, len(values) - 1)], dtype=np.float64)
        alternatives = np.tile(drawn, (len(rows), 1))
        yield rows, alternatives, np.ones(alternatives.shape)
        return
    for value, share in zip(values.tolist(), shares.tolist(), strict=True):
        others = rows[x[rows] != value]
        shape = len(others), len(uniforms)
        yield others, np.full(shape, float(value)), np.full(shape, share)


N_BLOCKS: Final = 10
"""Blocks of draws: enough to estimate errors, few enough for cross-fitting."""


# ---- The design of draws, and control functions


Evaluator: TypeAlias = Callable[[Points], Values]
Control: TypeAlias = tuple[Evaluator, Values, Attributions]
"""A function m close to f at points (n, D), and its exact means E m(V) (N,) and
attributions (N, D) at each row."""


@final
@dataclass(frozen=True, eq=False)
class Design:
    """The design of draws: law, rows, seed and control."""

    law: DataLaw  # of the columns, and their contrasts
    points: Points  # shape (N, D)
    seed: int  # of the uniform numbers that all rows have in common
    control: Control | None = None

    @cached_property
    def per_draw(self) -> int:
        """Evaluations of f in one draw, all rows together."""
        none = np.zeros((len(self.points), 1)), np.zeros(1)
        columns = zip(self.law.columns, self.points.T, strict=True)
        others = (
            other for law, x in columns for other in alternative_values(law, x, *none)
        )
        return len(self.points) + sum(len(rows) for rows, _, _ in others)

    @property
    def cost(self) -> DrawCost:
        """The cost of draws, with the minimum that slopes need."""
        fewest = fewest_draws(self.law, self.control is not None)
        return DrawCost(self.per_draw, fewest=fewest, step=N_BLOCKS)

    def uniforms(self, stop: int) -> tuple[Array, Array]:
        """Uniforms for V and for alternatives, (B · s, D) each, a stream per block."""
        width = self.points.shape[1]
        streams = [np.random.default_rng([self.seed, b]) for b in range(N_BLOCKS)]
        blocks = [rng.random((stop, 2 * width)) for rng in streams]
        both = np.stack(blocks).reshape(-1, 2 * width)
        return both[:, :width], both[:, width:]


def fewest_draws(law: DataLaw, controlled: bool) -> int:
    """The smallest number of draws: fits over nine blocks need two per term."""
    terms = 1 + int(moving_columns(law).sum()) + controlled
    return N_BLOCKS * -(-2 * terms // (N_BLOCKS - 1))


def moving_columns(law: DataLaw) -> Mask:
    """Whether each column has draws of several numbers, (D,)."""
    return np.array(
        [
            isinstance(column, NumericLaw) and len(column.values) > 1
            for column in law.columns
        ]
    )


def fitted(design: Design, rows: slice, V: Array, values: Array) -> tuple[Array, Array]:
    """Means and slopes of blocks V (n, B, s, D) from values (K, n, B, s), f first."""
    columns = np.flatnonzero(moving_columns(design.law))
    means, variances = design.law.moments(design.points[rows])
    centers = means[:, columns]
    squares = variances[:, columns]
    moves = squares > 0.0
    scales = np.sqrt(np.where(moves, squares, 1.0))
    # of mean 0 and variance 1 under the law; 0 for fixed columns
    locations = np.where(moves, centers, 0.0)[:, None, None]
    z = (V[..., columns] - locations) / scales[:, None, None]
    z = np.where(moves[:, None, None], z, 0.0)
    term = None
    if design.control is not None:
        _, means, attributions = design.control
        term = values[1], means[rows], attributions[rows][:, columns] * scales
    of_f, scaled = cross_fitted(z, values[0], term)
    slopes = np.zeros((*of_f.shape, V.shape[-1]))
    slopes[..., columns] = scaled / scales
    return of_f, slopes


def _values(evaluate: Evaluator, V: Array) -> Array:
    """The values of f at points (..., D)."""
    return evaluate(V.reshape(-1, V.shape[-1])).reshape(V.shape[:-1])


def _contrasts(
    law: DataLaw,
    evaluate: Evaluator,
    points: Array,  # (n, D)
    V: Array,  # (n, S, D): draws around them
    uniforms: Array,  # (S, D): for drawn alternatives
    f: Array,  # (n, S): values there
) -> Array:
    """Contrasts by pairs in each draw (n, S, D), 0 in other columns."""
    result = np.zeros(V.shape)
    for j, column in enumerate(law.columns):
        of_column = points[:, j], V[:, :, j], uniforms[:, j]
        for rows, others, weights in alternative_values(column, *of_column):
            if len(rows) == 0:
                continue
            changed = V[rows]
            changed[:, :, j] = others
            result[rows, :, j] += weights * (f[rows] - _values(evaluate, changed))
    return result


# ---- Values of a function at draws around rows, and the estimates from them


@final
@dataclass(frozen=True, eq=False)
class Sample(Sampler):
    """Draws around rows with the values of f; extending equals drawing all at once."""

    design: Design
    evaluate: Evaluator  # f at points (n, D)
    source: str  # a description of the estimate, without the number of draws
    labels: Labels  # names of points and features
    values: Array  # (K, N, B, s): f, then the control, in each draw of each block
    # (1 or 4, N, B, D): Σ c of contrasts by pairs of f, and Σ m, Σ cm and Σ m² with
    # those of the control, added draw by draw
    sums: Array
    # by least squares, from each block
    means: Array  # (B, N): of f
    slopes: Array  # (B, N, D)
    n_draws: int = 0  # around each row, all blocks together

    @classmethod
    def of(
        cls,
        design: Design,
        evaluate: Evaluator,
        n_draws: int,
        source: str = "",
        labels: Labels | None = None,
    ) -> Sample:
        """Make a sample with the first ``n_draws`` draws."""
        n_rows, width = design.points.shape
        fewest = design.cost.fewest
        if n_draws < fewest:
            raise InvalidInput(
                f"n_draws: {n_draws} draws are too few for the slopes of "
                f"{width} features; give at least {fewest}"
            )
        has_control = design.control is not None
        values = np.empty((1 + has_control, n_rows, N_BLOCKS, 0))
        sums = np.zeros((1 + 3 * has_control, n_rows, N_BLOCKS, width))
        none = np.empty(0)
        names = Labels() if labels is None else labels
        empty = cls(design, evaluate, source, names, values, sums, none, none)
        return empty.extended(n_draws)

    @property
    def cost(self) -> DrawCost:
        return self.design.cost

    @property
    def error(self) -> float:
        assert self.estimate.blocks is not None, "a sample has blocks"
        return relative_error(self.estimate.blocks)

    @cached_property
    def estimate(self) -> Estimate:
        """The estimate from all draws, with blocks for its error."""
        blocks = self.blocks
        law = self.design.law
        points = self.design.points
        return Estimate(
            values=blocks.mean(axis=0),
            source=f"{self.n_draws} draws, {self.source}",
            blocks=blocks,
            n_draws=self.n_draws,
            evaluations=self.evaluations,
            labels=self.labels,
            effects=law.has_effects(points),
        )

    def extended(self, n_draws: int) -> Sample:
        """The sample extended to ``n_draws`` draws around each row, tens of them."""
        n_rows, width = self.design.points.shape
        require_memory(
            16.0 * n_rows * n_draws,
            f"storing {n_draws:,} draws of {n_rows:,} rows",
            "explain fewer rows at a time, or draw less",
        )
        start = self.values.shape[3]
        stop = n_draws // N_BLOCKS
        values = np.empty((*self.values.shape[:3], stop))
        values[..., :start] = self.values
        grown = replace(
            self,
            values=values,
            sums=self.sums.copy(),
            means=np.empty((N_BLOCKS, n_rows)),
            slopes=np.empty((N_BLOCKS, n_rows, width)),
            n_draws=n_draws,
        )
        grown.fill(start, stop)
        return grown

    def fill(self, start: int, stop: int) -> None:
        """Draw from ``start`` to ``stop`` of each block around all rows; fit again."""
        n_rows, width = self.design.points.shape
        first, second = self.design.uniforms(stop)
        others = second.reshape(N_BLOCKS, stop, width)
        for rows in row_blocks(n_rows, width, copies=N_BLOCKS * stop):
            V = self.design.law.draws(self.design.points[rows], first)
            blocks = V.reshape(len(V), N_BLOCKS, stop, width)
            for part in row_blocks(stop - start, width, copies=N_BLOCKS * len(V)):
                draws = slice(start + part.start, start + part.stop)
                self._fill_some(rows, draws, blocks[:, :, draws], others[:, draws])
            fit = fitted(self.design, rows, blocks, self.values[:, rows])
            self.means[:, rows], self.slopes[:, rows] = fit

    def _fill_some(self, rows: slice, draws: slice, V: Array, uniforms: Array) -> None:
        """Values and contrasts at a range of draws (n, B, s, D) around some rows."""
        design = self.design
        width = V.shape[-1]
        points = design.points[rows]
        flat = V.reshape(len(V), -1, width)
        alternatives = uniforms.reshape(-1, width)
        changes = []
        control = [] if design.control is None else [design.control[0]]
        for k, evaluate in enumerate([self.evaluate, *control]):
            f = _values(evaluate, flat)
            self.values[k, rows, :, draws] = f.reshape(V.shape[:3])
            at = points, flat, alternatives, f
            changes.append(_contrasts(design.law, evaluate, *at).reshape(V.shape))
        for s in range(V.shape[2]):
            c, *controls = (change[:, :, s] for change in changes)
            self.sums[0, rows] += c
            for m in controls:
                self.sums[1, rows] += m
                self.sums[2, rows] += c * m
                self.sums[3, rows] += m**2

    @property
    def blocks(self) -> Array:
        """Unbiased attributions from each block of draws, (B, N, D)."""
        fitted = self.design.law.has_slopes(self.design.points)
        return np.where(fitted, self.slopes, np.moveaxis(self._paired(), 1, 0))

    def _paired(self) -> Array:
        """Attributions by pairs (N, B, D), with the control fitted to other blocks."""
        n_draws = self.values.shape[3]
        control = self.design.control
        means = self.sums / n_draws
        if control is None:
            return means[0]
        c, m, cm, mm = self.sums.sum(axis=2, keepdims=True) - self.sums
        n_others = n_draws * (N_BLOCKS - 1)
        covariance = cm - c * m / n_others
        variance = mm - m**2 / n_others
        moved = variance > _STILL * mm
        gamma = np.where(moved, covariance, 0.0) / np.where(moved, variance, 1.0)
        return means[0] - gamma * (means[1] - control[2][:, None, :])
