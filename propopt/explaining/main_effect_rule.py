"""Main effects of any row: centred partial dependence over a background.

g_j(x) = mean_b f(x_j, b elsewhere) − mean_b f(b). For a sum of products Σ_l v_l Π_u g_u
it is Σ_{u of j} c_u g_u(x_j) minus its mean, with c_u = mean_b Σ_{l with u} v_l Π_{w≠u}
g_w(b), exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Indices, Points, Values
from propopt.base.kernels import kernel
from propopt.functions import Function
from propopt.functions.means import CheckedStructure
from propopt.laws.background import Background
from propopt.laws.perturbations import PERTURBED_POINTS
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.effects import effect_tables, effects_of_players
from propopt.structures.boxes.shapley import BackgroundRows
from propopt.structures.products.sums import PlayerProducts, SumOfProducts
from propopt.tables.frames import Labels


@final
@dataclass(frozen=True, eq=False)
class MainEffectRule:
    """The rule that computes main effects of any row, with means shared by all rows."""

    function: Function  # f
    background: Background
    checked: CheckedStructure  # the structure of f
    of_column: Indices | None = (
        None  # (D,): the group of each column, if they have some
    )

    @classmethod
    def of(
        cls,
        function: Function,
        background: Background,
        labels: Labels,
        of_column: Indices | None = None,
    ) -> Self:
        """The rule for a function; its structure is checked on the background."""
        checked = CheckedStructure.of(function, background.points.shape[1])
        checked.at(background.points, labels.of_columns())
        return cls(function, background, checked, of_column)

    def at(self, points: Points, labels: Labels) -> Attributions:
        """Main effects G (N, D); independent of other rows if f has a structure."""
        if isinstance(self.checked.at(points, labels), SumOfProducts):
            return self._of_structure(points)
        names = labels.of_columns()
        G = partial_dependence(
            lambda x, _: self.function.value_at(x, names),
            points,
            self.background,
            self.of_column,
        )
        return G - self._base

    def of_rows(self, points: Points, labels: Labels) -> Attributions:
        """The main effects of rows, each independent of the other rows."""
        if isinstance(self.checked.structure, SumOfProducts):
            return self.at(points, labels)
        # a model may round one row and many rows differently
        return np.concatenate([self.at(row, labels) for row in points[:, None]])

    @cached_property
    def _base(self) -> float:
        values = self.function.value_at(self.background.points, Labels())
        return float(self.background.mean(values))

    @cached_property
    def _structure(self) -> SumOfProducts:
        """The sum of products, with a factor for each group of columns."""
        structure = self.checked.structure
        assert isinstance(structure, SumOfProducts), "the caller has checked it"
        if self.of_column is None:
            return structure
        return PlayerProducts.of_players(structure, self.of_column)

    @cached_property
    def _shared(self) -> tuple[Array, Array]:
        """The mean slope c_u of each factor u, and the mean of slope times factor."""
        structure = self._structure
        rows = self.background.points
        weights = self.background.weights
        if weights is None:
            weights = np.full(len(rows), 1.0 / len(rows))
        c, mean = np.zeros((2, structure.n_factors))
        for block, factors in structure.factors_at(rows):
            slopes = structure.slopes(factors)[1] * weights[block]
            c += slopes.sum(axis=1)
            mean += (slopes * factors).sum(axis=1)
        return c, mean

    @cached_property
    def _tree_rows(self) -> list[BackgroundRows]:
        """The background of compiled sums over leaves; empty for other structures."""
        boxes = self.checked.structure
        trees = boxes.trees if isinstance(boxes, Boxes) else None
        if trees is None or kernel("effects") is None:
            return []
        background = self.background
        nodes = trees.nodes.with_players(self.of_column)
        return BackgroundRows.parts(nodes, background.points, background.weights)

    @cached_property
    def _tables(self) -> dict[int, tuple[Array, Values]] | None:
        """Main effects of the cells of each column of trees."""
        return effect_tables(self._tree_rows) if self._tree_rows else None

    def _of_structure(self, points: Points) -> Attributions:
        """Exact main effects: Σ_{u of j} c_u g_u(x_j) minus its mean."""
        if self._tree_rows and self.of_column is not None:
            return effects_of_players(self._tree_rows, points)
        if self._tables is not None:
            G = np.zeros(points.shape)
            for j, (ends, values) in self._tables.items():
                G[:, j] = values[ends.searchsorted(points[:, j])]
            return G
        structure = self._structure
        c, mean = self._shared
        G = np.zeros((len(points), structure.n_columns))
        for rows, factors in structure.factors_at(points):
            for player in np.unique(structure.column).tolist():
                numbers = np.flatnonzero(structure.column == player)
                # one sum per row: no product of matrices, which adds in another order
                # for other numbers of rows
                parts = np.ascontiguousarray((c[numbers][:, None] * factors[numbers]).T)
                G[rows, player] = parts.sum(axis=1) - mean[numbers].sum()
        return G


def _distinct_rows(values: Points) -> tuple[Indices, Indices]:
    """An index of each distinct row of values (N, d), and the inverse."""
    codes = np.zeros(len(values), np.intp)
    for column in values.T:
        _, inverse = np.unique(column, return_inverse=True)
        both = codes * (inverse.max(initial=0) + 1) + inverse
        _, first, codes = np.unique(both, return_index=True, return_inverse=True)
    return first, codes


def partial_dependence(
    evaluate: Callable[[Points, int], Values],
    points: Points,
    background: Background,
    players: Indices | None = None,  # (D,): the group of each column
) -> Attributions:
    """Mean of f over the background with one column replaced by the point's, (N, D)."""
    player = np.arange(points.shape[1]) if players is None else players
    others = background.points
    G = np.empty((len(points), int(player.max()) + 1))
    for j in range(G.shape[1]):
        columns = np.flatnonzero(player == j)
        first, inverse = _distinct_rows(points[:, columns])
        distinct = points[first][:, columns]
        means = np.empty(len(distinct))
        for block in PERTURBED_POINTS.blocks(len(distinct), 8 * others.size):
            rows = np.repeat(others[None], len(distinct[block]), axis=0)
            rows[:, :, columns] = distinct[block, None]
            values = evaluate(rows.reshape(-1, rows.shape[2]), j)
            means[block] = background.mean(values.reshape(rows.shape[:2]))
        G[:, j] = means[inverse]
    return G
