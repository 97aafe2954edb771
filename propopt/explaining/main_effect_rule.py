"""How main effects of any row are made: centred partial dependence over a background.

g_j(x) = mean_b f(x_j, b elsewhere) − mean_b f(b). Of a sum of products Σ_l v_l Π_u g_u
it is Σ_{u of j} c_u g_u(x_j) less its mean, with c_u = mean_b Σ_{l with u} v_l Π_{w≠u}
g_w(b), exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Self, cast, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Indices, Points, Values
from propopt.base.resources import BATCH_BUDGET
from propopt.functions import Function
from propopt.functions.means import CheckedStructure
from propopt.laws.background import Background
from propopt.laws.perturbations import PERTURBED_POINTS
from propopt.laws.players import Players
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.sets import Sets
from propopt.structures.boxes.shapley import OrderedBoxes
from propopt.structures.products.sums import PlayerProducts, SumOfProducts
from propopt.tables.frames import Labels


_MOST_CELLS: Final = 2**26
"""Cells times sets of which tables of main effects are made."""


class _JoinedTables(NamedTuple):
    """Main effects by cells of C columns, in E cells; each begins with an end at −∞."""

    columns: Indices  # (C,)
    column: Indices  # (E,): the column of each end
    ends: Array  # (E,): the upper ends of cells but for the last
    starts: Indices  # (C,): the first end of each column
    values: Values  # (E,): those of cells, the last one's too


@final
@dataclass(frozen=True, eq=False)
class MainEffectRule:
    """How main effects of any row are made, with the means that all rows share."""

    function: Function  # f
    background: Background
    checked: CheckedStructure  # what f is read as
    players: Players | None = None  # of the columns, where groups of them are one

    @classmethod
    def of(
        cls,
        function: Function,
        background: Background,
        labels: Labels,
        players: Players | None = None,
    ) -> Self:
        """Of a function that is compared with what it is read as, on its background."""
        checked = CheckedStructure.of(function, background.points.shape[1])
        checked.at(background.points, labels.of_columns())
        return cls(function, background, checked, players)

    @property
    def by(self) -> str:
        """Where they come from."""
        is_read = isinstance(self.checked.structure, SumOfProducts)
        return "read from the model" if is_read else "by its answers"

    def at(self, points: Points, labels: Labels) -> Attributions:
        """G (N, D); of f that is read the same for a row whatever stands beside it."""
        read = self.checked.at(points, labels)
        if isinstance(read, SumOfProducts):
            if self.players is not None:
                return self._of_players(points)
            return self._of_products(read, points)
        names = labels.of_columns()
        G = partial_dependence(
            lambda x, _: self.function.value_at(x, names),
            points,
            self.background,
            None if self.players is None else self.players.of_column,
        )
        return np.asarray(G - self._base)

    def of_rows(self, points: Points, labels: Labels) -> Attributions:
        """The same of each row as if it was asked alone."""
        if isinstance(self.checked.structure, SumOfProducts):
            return self.at(points, labels)
        # a model may answer many rows in other digits than one asked alone
        return np.concatenate([self.at(row, labels) for row in points[:, None]])

    @cached_property
    def _base(self) -> float:
        values = self.function.value_at(self.background.points, Labels())
        return float(self.background.mean(values))

    @cached_property
    def _read(self) -> SumOfProducts:
        """The sum of products, by players where groups are one."""
        read = self.checked.structure
        assert isinstance(read, SumOfProducts), "it is read"
        if self.players is None:
            return read
        return PlayerProducts.of_players(read, self.players.of_column)

    @cached_property
    def _shared(self) -> tuple[Array, Array]:
        """Of each factor u its mean slope c_u, and the mean of slope times factor."""
        read, rows = self._read, self.background.points
        weights, own = self.background.weights, self.checked.structure
        if isinstance(own, Boxes):
            players = None if self.players is None else self.players.of_column
            return OrderedBoxes.of(own, players).shares(rows, weights)
        c, mean = np.zeros((2, read.n_factors))
        for some, known in read.factors_at(rows):
            slopes = read.slopes(known)[1]
            if weights is None:
                c += slopes.sum(axis=1) / len(rows)
                mean += (slopes * known).sum(axis=1) / len(rows)
            else:
                c += slopes @ weights[some]
                mean += (slopes * known) @ weights[some]
        return c, mean

    def _of_products(self, read: SumOfProducts, points: Points) -> Attributions:
        """Σ_{u of j} c_u g_u(x_j) less its mean over the background, exactly."""
        G = np.zeros(points.shape)
        if self._tables is not None:
            if len(points) == 1:
                return self._of_row(points)
            for j, (ends, values) in self._tables.items():
                G[:, j] = values[ends.searchsorted(points[:, j])]
            return G
        for j in read.columns.tolist():
            distinct, place = distinct_values(points[:, j])
            G[:, j] = self._of_column(j, distinct)[place]
        return G

    def _of_row(self, points: Points) -> Attributions:
        """The same of one row (1, D), from the ends of all columns at once."""
        joined, G = self._joined, np.zeros(points.shape)
        if len(joined.columns):
            # NaN is behind all ends
            passed = ~(points[0, joined.column] <= joined.ends)
            cell = np.add.reduceat(passed, joined.starts, dtype=np.intp)
            # the first end of each column is no cell, for all values are above −∞
            G[0, joined.columns] = joined.values[joined.starts - 1 + cell]
        return G

    @cached_property
    def _joined(self) -> _JoinedTables:
        """Tables of all columns behind each other."""
        tables = self._tables or {}
        columns = np.array(list(tables), np.intp)
        lengths = [1 + len(ends) for ends, _ in tables.values()]
        starts = np.cumsum([0, *lengths])[:-1]
        ends = [np.append(-np.inf, ends) for ends, _ in tables.values()]
        none = np.zeros(0)
        return _JoinedTables(
            columns=columns,
            column=np.repeat(columns, lengths),
            ends=np.concatenate([none, *ends]),
            starts=starts,
            values=np.concatenate([none, *(values for _, values in tables.values())]),
        )

    def _of_column(self, j: int, values: Values) -> Values:
        """Main effects of column j, each as if it was asked alone."""
        (c, mean), g = self._shared, np.zeros(len(values))
        for numbers, factors in self._read.of_column(j):
            # sums along rows of their own: no product of matrices, which adds in
            # another order for other numbers of rows
            parts = np.ascontiguousarray((c[numbers][:, None] * factors.at(values)).T)
            g += parts.sum(axis=1) - mean[numbers].sum()
        return g

    @cached_property
    def _tables(self) -> dict[int, tuple[Array, Values]] | None:
        """Of trees by column the ends of cells in which main effects are the same.

        With the main effect of each cell; None where rows are as quickly asked.
        """
        read = self._read
        if not isinstance(read, Boxes):
            return None
        cells = {
            j: np.unique(np.concatenate([own.cells for own in _sets_of(read, j)]))
            for j in read.columns.tolist()
        }
        counts = np.bincount(read.column, minlength=read.n_columns)
        if sum(len(x) * int(counts[j]) for j, x in cells.items()) > _MOST_CELLS:
            return None
        tables = {}
        for j, x in cells.items():
            values = np.empty(len(x))
            for some in BATCH_BUDGET.blocks(len(x), 24 * int(counts[j])):
                values[some] = self._of_column(j, x[some])
            tables[j] = x[:-1], values  # the last cell is behind all ends
        return tables

    def _of_players(self, points: Points) -> Attributions:
        """The same of joint factors of players, one sum along rows of its own each."""
        read, (c, mean) = self._read, self._shared
        G = np.zeros((len(points), read.n_columns))
        for rows, known in read.factors_at(points):
            for player in range(read.n_columns):
                own = np.flatnonzero(read.column == player)
                parts = np.ascontiguousarray((c[own][:, None] * known[own]).T)
                G[rows, player] = parts.sum(axis=1) - mean[own].sum()
        return G


def _sets_of(read: Boxes, j: int) -> list[Sets]:
    """The sets of a column, by families."""
    return [cast(Sets, own) for _, own in read.of_column(j)]


def distinct_values(values: Values) -> tuple[Values, Indices]:
    """The distinct values of a column, missing ones as one, and where each stands."""
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, place.reshape(values.shape)


def _distinct_rows(values: Points) -> tuple[Indices, Indices]:
    """A place of each distinct row of values (N, d), and which each row is."""
    codes = np.zeros(len(values), np.intp)
    for column in values.T:
        _, place = distinct_values(column)
        both = codes * (place.max(initial=0) + 1) + place
        _, first, codes = np.unique(both, return_index=True, return_inverse=True)
    return first, codes


def partial_dependence(
    ask: Callable[[Points, int], Values],
    points: Points,
    background: Background,
    players: Indices | None = None,  # (D,): of the columns, where some are one
) -> Attributions:
    """The mean over the background with each column's value of each point, (N, D)."""
    own = np.arange(points.shape[1]) if players is None else players
    others = background.points
    G = np.empty((len(points), int(own.max()) + 1))
    for j in range(G.shape[1]):
        columns = np.flatnonzero(own == j)
        first, place = _distinct_rows(points[:, columns])
        distinct = points[first][:, columns]
        means = np.empty(len(distinct))
        for some in PERTURBED_POINTS.blocks(len(distinct), 8 * others.size):
            rows = np.repeat(others[None], len(distinct[some]), axis=0)
            rows[:, :, columns] = distinct[some, None]
            asked = ask(rows.reshape(-1, rows.shape[2]), j)
            means[some] = background.mean(asked.reshape(rows.shape[:2]))
        G[:, j] = means[place]
    return G
