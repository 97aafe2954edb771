"""Values against a background that nobody named, as a mixture of single-row values.

An interventional Shapley value is a mean over background rows, so that of any weighted
background

    Φ(λ) = Σ_m λ_m S_m,   λ ≥ 0,   Σ λ = 1,

with S_m the values against row m alone. The nearest mixture to given values is a least
squares fit over the simplex. It finds other samples, cluster means and single rows,
and leaves values of another model, factors and signs far away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from scipy.optimize import nnls

from propopt.base.arrays import Array, Attributions, Indices, Points
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.shapley import shapley_against
from propopt.structures.products.sums import Game, SumOfProducts


@final
@dataclass(frozen=True, eq=False)
class Mixture:
    """The nearest values to given ones against any weighted background."""

    weights: Array  # (M,): of the background rows that it has, with sum 1
    values: Attributions  # (N, D): Σ λ S at all rows
    left: float  # ‖V − Σ λ S‖ / ‖V‖ over the rows that add up

    @property
    def size(self) -> int:
        """The number of rows that carry all but a hundredth of the weight."""
        order = np.sort(self.weights)[::-1]
        return int(np.searchsorted(np.cumsum(order), 0.99) + 1)


N_POOL_ROWS: Final = 150
"""Background rows over which a mixture is fitted."""

N_FITTED: Final = 25
"""Audited rows at which it is fitted."""

_WORK: Final = 3e6
"""Leaves times background rows that a fit may count; fewer rows are tried above."""

_PRODUCTS: Final = 100
"""Leaves that a product of any functions costs as much as."""

_ENOUGH: Final = 0.01
"""Of the size of the values: what is left is no reason for more rows."""

_ROUNDS: Final = 6
"""Rows that are added where the first ones leave more."""

_HEAVY: Final = 1e3
"""Weight of the equation Σ λ = 1, relative to equations of typical size."""

_LEAST_WEIGHT: Final = 1.0 / 4000.0
"""Weight below which a row is left out of a fitted background."""


def mixture_of(
    structure: SumOfProducts,
    points: Points,  # (N, D)
    V: Attributions,
    good: Indices,  # rows that add up, at which it may be fitted
    observed: Points,  # rows that may be in the background
    made_up: Points,  # others that people take: means, medians, cluster centres
) -> Mixture | None:
    """The nearest mixture; None where too few rows add up, or values are all zero."""
    if len(good) < 2 or not V[good].any():
        return None
    at = good[np.unique(np.linspace(0, len(good) - 1, N_FITTED).astype(np.intp))]
    few, aim = points[at], V[at]
    each = len(structure.values) * (1 if isinstance(structure, Boxes) else _PRODUCTS)
    count = min(N_POOL_ROWS, max(int(_WORK / max(each, 1)), 40))
    spread = np.unique(np.linspace(0, len(observed) - 1, count).astype(np.intp))
    others = np.setdiff1d(np.arange(len(observed)), spread)[: 2 * count]
    rows = np.concatenate([observed[spread], made_up])

    def alone(rows: Points) -> Array:  # the values against each row, as vectors
        return shapley_against(structure, Game(rows)).alone(few).reshape(len(rows), -1)

    fit = _Fit(rows, alone(rows), aim.ravel())
    if fit.left > _ENOUGH and len(others):
        fit = fit.with_rows(observed[others], alone(observed[others]))
    for _ in range(_ROUNDS):
        before = fit.left
        if before <= _ENOUGH:
            break
        fit = fit.with_better(alone, observed)
        if fit.left > 0.98 * before:
            break
    is_used = fit.weights > _LEAST_WEIGHT
    rows, weights = fit.rows[is_used], fit.weights[is_used]
    weights = weights / weights.sum()
    values = shapley_against(structure, Game(rows, weights=weights)).values(points)
    size = float(np.linalg.norm(V[good]))
    missed = float(np.linalg.norm(V[good] - values[good])) / size
    return Mixture(weights, values, missed)


@final
class _Fit:
    """Least squares over the simplex of the current rows."""

    def __init__(self, rows: Points, S: Array, aim: Array) -> None:
        self.rows, self.S, self.aim = rows, S, aim
        heavy = _HEAVY * max(float(np.abs(aim).max()), 1e-300)
        system = np.vstack([S.T, np.full((1, len(S)), heavy)])
        weights, _ = nnls(system, np.append(aim, heavy), maxiter=30 * len(S))
        self.weights: Array = weights / max(float(weights.sum()), 1e-300)
        self.residual: Array = aim - self.weights @ S
        self.left = float(np.linalg.norm(self.residual) / np.linalg.norm(aim))

    def _gain(self, values: Array) -> float:
        """How much of the squared residual a step towards a row's values removes."""
        step = values - (self.aim - self.residual)
        along = max(float(step @ self.residual), 0.0)
        return along**2 / max(float(step @ step), 1e-300)

    def with_rows(self, rows: Points, S: Array) -> _Fit:
        """The fit with the more useful half of other rows."""
        gains = np.array([self._gain(values) for values in S])
        best = np.argsort(-gains)[: max(len(rows) // 2, 1)]
        return _Fit(
            np.concatenate([self.rows, rows[best]]),
            np.concatenate([self.S, S[best]]),
            self.aim,
        )

    def with_better(self, alone: Callable[[Points], Array], observed: Points) -> _Fit:
        """The fit with rows that differ in one observed value from its heaviest."""
        heavy = self.rows[np.argsort(-self.weights)[:_HEAVIEST]]
        moved = [heavy.mean(axis=0)]
        for column in range(observed.shape[1]):
            values = observed[:, column]
            cells = np.unique(values[~np.isnan(values)])
            at = np.unique(np.linspace(0, len(cells) - 1, _CELLS).astype(np.intp))
            for cell in cells[at] if len(cells) else cells:
                others = heavy.copy()
                others[:, column] = cell
                moved.extend(others)
        rows = np.stack(moved)
        return self.with_rows(rows, alone(rows))


_HEAVIEST: Final = 3
"""Rows whose values are exchanged."""

_CELLS: Final = 7
"""Values of a column that are tried in a row."""


def centres_of(observed: Points, counts: tuple[int, ...]) -> Points:
    """Cluster centres as summaries of tables have them, and at observed values."""
    from sklearn.cluster import KMeans

    parts = [np.zeros((0, observed.shape[1]))]
    if np.isnan(observed).any():
        return parts[0]
    for count in counts:
        if len(np.unique(observed, axis=0)) <= count:
            continue
        fitted = KMeans(n_clusters=count, random_state=0, n_init=10).fit(observed)
        centres = np.asarray(fitted.cluster_centers_, dtype=np.float64)
        nearest = np.abs(observed[None] - centres[:, None]).argmin(axis=1)
        parts += [centres, np.take_along_axis(observed, nearest, axis=0)]
    return np.concatenate(parts)
