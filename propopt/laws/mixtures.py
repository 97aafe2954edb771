"""Mixtures of two rows that data never has, and the columns that belong together.

A Shapley value mixes columns of an explained row with columns of a background row. This
chapter finds which of these mixtures are never seen in a table, and why. Columns are
then independent, so that a column u with bins i of frequency p_i, and v with bins j,
would have E = n p_i p_j of n rows in a cell (i, j). The table has O rows in it.

**Pairs.** A cell is void if E ≥ 8 and O ≤ E/10. A pair counts if its evidence

    Σ_void (−log P(Poisson(E) ≤ O) − log T)  >  log(pairs / 0.01)

exceeds the limit for all pairs, where T cells of the pair have E ≥ 8. Bins have equal
numbers of rows, √(n/10) of them and at most 20; few values and frequent categories have
a bin each, and so have missing values.

**Nestings.** A category with more levels than bins, such as a postcode, is nested in a
column if 90 % of rows have the bin of most other rows of their level.

**Relations** of three and more columns, such as a ratio and its parts. In normal scores
z, with the precision matrix P, the other columns leave e_v = Σ_j P_vj z_j / P_vv of
column v, with the variance 1/P_vv. If that is at most 0.1, v and the columns with a
partial correlation of at least 0.3 are a relation. A mixture is never seen if |e_v|
exceeds its 99.5 % quantile in the table, each row left out once.

Φ_u − Φ_v is made only of mixtures that separate u and v. If data never has these, only
the sum of both is backed by data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, pdtr

from propopt.base.arrays import Array, Indices, Mask, Points, Values
from propopt.base.text import Reason


_MOST_ROWS: Final = 4_000
_FEWEST_ROWS: Final = 100
_WORK: Final = 4e9
"""The largest number of rows times squared bins of all columns."""

_MOST_BINS: Final = 20
_FEWEST_BINS: Final = 3
_PER_CELL: Final = 10.0
"""Expected rows of a cell, if there are fewer rows than for the most bins."""

_EXPECTED: Final = 8.0
_SEEN: Final = 0.1
"""A cell is void if it has this share of the expected rows, and these are enough."""

_LEVEL: Final = 0.01
"""The probability that a table of independent columns has a pair that counts."""

_NESTED: Final = 0.9
_UNEXPLAINED: Final = 0.1
_PARTIAL: Final = 0.3
_QUANTILE: Final = 0.995
_RIDGE: Final = 1e-4

_TOGETHER: Final = 0.4
"""Columns are one group from this mean share on, relative to a duplicate."""

_N_MIXED: Final = 1_000
"""Drawn mixtures: the standard error of their share is at most 1.6 %."""

_TIED: Final = 10
"""Columns that may identify the units of a panel: those with the most values."""


@final
@dataclass(frozen=True, eq=False)
class ColumnRelation:
    """Three or more columns, one of which follows from the others."""

    members: tuple[int, ...]
    coefficients: Values  # (C,): of all normal scores, 0 for others
    centre: float  # their mean Σ coefficient × score
    limit: float  # of |e|


@final
@dataclass(frozen=True, eq=False)
class Mixtures:
    """The mixtures of rows of a table that the table never has."""

    data: Points  # (n, D): numbers, codes of categories, NaN if missing
    is_category: Mask  # (D,)

    @classmethod
    def of(cls, points: Points, is_category: Mask) -> Self | Reason:
        """Take up to 4,000 rows of a table in canonical order, one row per unit."""
        n_columns = points.shape[1]
        if n_columns < 2:
            return Reason("none, as the model uses one column")
        most = min(_MOST_ROWS, int(_WORK / (n_columns * (_FEWEST_BINS + 1)) ** 2))
        data = one_row_per_unit(points[:most])
        if len(data) < _FEWEST_ROWS:
            return Reason(f"not estimated, as fewer than {_FEWEST_ROWS} rows are used")
        return cls(data, is_category)

    # ---- Bins

    @cached_property
    def n_bins(self) -> int:
        """The bins of a column; missing values have one more."""
        n, n_columns = self.data.shape
        affordable = math.sqrt(_WORK / n) / n_columns - 1.0
        count = min(math.sqrt(n / _PER_CELL), _MOST_BINS, affordable)
        return max(int(count), _FEWEST_BINS)

    @cached_property
    def _edges(self) -> list[Values]:
        """For each column the largest value of each bin, or the frequent categories."""
        edges = []
        for column, is_category in zip(self.data.T, self.is_category, strict=True):
            present = column[~np.isnan(column)]
            values, counts = np.unique(present, return_counts=True)
            if is_category:  # the last bin has all others
                frequent = np.argsort(-counts, kind="stable")[: self.n_bins - 1]
                values = values[np.sort(frequent)]
            elif len(values) > self.n_bins:
                levels = np.arange(1, self.n_bins + 1) / self.n_bins
                quantiles = np.quantile(present, levels, method="inverted_cdf")
                values = np.unique(quantiles)
            edges.append(values)
        return edges

    def bins_of(self, rows: Points) -> Indices:
        """The bins (N, D) of rows."""
        m = self.n_bins
        bins = np.full(rows.shape, m)
        for j, edges in enumerate(self._edges):
            if len(edges) == 0:
                continue
            x = rows[:, j]
            index = np.minimum(np.searchsorted(edges, x), len(edges) - 1)
            if self.is_category[j]:
                index = np.where(edges[index] == x, index, m - 1)
            bins[:, j] = np.where(np.isnan(x), m, index)
        return bins

    @cached_property
    def _indicators(self) -> NDArray[np.float32]:
        """Whether a row of the table is in a bin, (n, D, m + 1)."""
        n, n_columns = self.data.shape
        hot = np.zeros((n, n_columns, self.n_bins + 1), np.float32)
        hot[np.arange(n)[:, None], np.arange(n_columns), self.bins_of(self.data)] = 1.0
        return hot

    @cached_property
    def frequencies(self) -> Array:
        """The frequencies p (D, m + 1) of bins."""
        return self._indicators.mean(axis=0, dtype=np.float64)

    # ---- Pairs

    @cached_property
    def void(self) -> Mask:
        """Void cells (D, m + 1, D, m + 1) of pairs that count."""
        n, n_columns = self.data.shape
        p = self.frequencies
        hot = self._indicators.reshape(n, -1)
        seen = (hot.T @ hot).reshape(p.shape * 2)  # whole numbers, in any order of rows
        expected = n * np.einsum("ui,vj->uivj", p, p)
        tested = expected >= _EXPECTED
        void = tested & (seen <= _SEEN * expected)
        void[np.arange(n_columns), :, np.arange(n_columns)] = False
        u, i, v, j = np.nonzero(void)
        chance = pdtr(seen[u, i, v, j].astype(float), expected[u, i, v, j])
        n_tested = np.maximum(tested.sum(axis=(1, 3)), 1)
        evidence = np.zeros((n_columns, n_columns))
        surprise = -np.log(np.maximum(chance, 1e-300)) - np.log(n_tested[u, v])
        np.add.at(evidence, (u, v), surprise)
        n_pairs = n_columns * (n_columns - 1) / 2
        counts = evidence > math.log(n_pairs / _LEVEL)
        return np.asarray(void & counts[:, None, :, None])

    @cached_property
    def shares(self) -> Array:
        """The share Σ_void p_i p_j of mixtures of each pair (D, D) never seen."""
        p = self.frequencies
        return np.einsum("uivj,ui,vj->uv", self.void, p, p)

    # ---- Nestings

    @cached_property
    def nestings(self) -> dict[tuple[int, int], tuple[Values, Indices]]:
        """Categories with more levels than bins that determine another column.

        For each such pair the levels (L,), increasing, and the bin of each, (L,).
        """
        result = {}
        n, n_columns = self.data.shape
        m = self.n_bins
        bins = self.bins_of(self.data)
        for u in np.flatnonzero(self.is_category).tolist():
            levels, level = np.unique(self.data[:, u], return_inverse=True)
            if len(levels) <= m:
                continue
            for v in range(n_columns):
                cells = level * (m + 1) + bins[:, v]
                counts = np.bincount(cells, minlength=len(levels) * (m + 1))
                counts = counts.reshape(len(levels), m + 1)
                two = np.sort(counts, axis=1)[:, -2:]
                others = np.where(counts == two[:, 1:], two[:, :1], two[:, 1:])
                right = counts[counts - 1 > others].sum() / n  # of other rows
                chance = self.frequencies[v].max() + 2.5 / math.sqrt(n)
                if v != u and right >= _NESTED and right > chance:
                    result[u, v] = levels, counts.argmax(axis=1)
        return result

    # ---- Relations

    @cached_property
    def numeric(self) -> Indices:
        """The numeric columns that vary, (C,)."""
        is_number = ~self.is_category & (np.array([*map(len, self._edges)]) > 1)
        return np.flatnonzero(is_number)

    @cached_property
    def _in_order(self) -> list[Values]:
        """The values of each numeric column, increasing."""
        return [np.sort(x[~np.isnan(x)]) for x in self.data.T[self.numeric]]

    def scores(self, rows: Points) -> Array:
        """Standard normal quantiles (N, C) of ranks in the table; 0 if missing."""
        Z = np.zeros((len(rows), len(self.numeric)))
        for c, (j, values) in enumerate(zip(self.numeric, self._in_order, strict=True)):
            rank = np.searchsorted(values, rows[:, j])
            Z[:, c] = ndtri((rank + 0.5) / (len(values) + 1.0))
        return np.where(np.isnan(rows[:, self.numeric]), 0.0, Z)

    @cached_property
    def relations(self) -> list[ColumnRelation]:
        """Relations of three and more columns, those with the least variance first."""
        result: list[ColumnRelation] = []
        columns = self.numeric
        n = len(self.data)
        C = len(columns)
        if C < 3 or n < 5 * C:
            return result
        Z = self.scores(self.data)
        means = Z.mean(axis=0)
        deviations = Z.std(axis=0)
        Z = (Z - means) / deviations
        P = np.linalg.inv(Z.T @ Z / n + _RIDGE * np.eye(C))
        variances = 1.0 / np.diag(P)
        partial = np.abs(P) * np.sqrt(np.outer(variances, variances))
        left_out = np.maximum(1.0 - np.einsum("nc,cd,nd->n", Z, P, Z) / n, _UNEXPLAINED)
        for c in np.argsort(variances, kind="stable").tolist():
            inside = partial[c] >= _PARTIAL
            members = tuple(columns[inside].tolist())
            is_part = any(set(members) <= set(x.members) for x in result)
            left = variances[c] * n / (n - C)
            if is_part or len(members) < 3 or left > _UNEXPLAINED:
                continue
            of_units = np.where(inside, P[c] * variances[c], 0.0)
            errors = np.abs(Z @ of_units) / left_out
            limit = float(np.quantile(errors, _QUANTILE))
            coefficients = of_units / deviations
            centre = float(coefficients @ means)
            result.append(ColumnRelation(members, coefficients, centre, limit))
        return result

    # ---- Mixed rows

    def causes(
        self, x: Points, b: Points, is_x: Mask
    ) -> Iterator[tuple[tuple[int, ...], Mask]]:
        """For each cause its columns, and which mixtures (N, D) it says are never seen.

        A mixture has the columns ``is_x`` of a row of x, and the others of one of b.
        """
        bins_x = self.bins_of(x)
        bins_b = self.bins_of(b)
        mixed = np.where(is_x, x, b)
        bins = np.where(is_x, bins_x, bins_b)
        for u, v in np.argwhere(np.triu(self.shares > 0.0)).tolist():
            void = self.void[u, bins[:, u], v, bins[:, v]]
            yield (u, v), (is_x[:, u] != is_x[:, v]) & void
        for (u, v), (levels, bin_of) in self.nestings.items():
            index = np.searchsorted(levels, mixed[:, u])
            index = np.minimum(index, len(levels) - 1)
            outside = (levels[index] == mixed[:, u]) & (bin_of[index] != bins[:, v])
            yield (u, v), (is_x[:, u] != is_x[:, v]) & outside
        Z = self.scores(mixed) if self.relations else np.zeros((0, 0))
        for relation in self.relations:
            n_x = is_x[:, relation.members].sum(axis=1)
            is_split = (n_x > 0) & (n_x < len(relation.members))
            error = Z @ relation.coefficients - relation.centre
            yield relation.members, is_split & (np.abs(error) > relation.limit)

    def never_seen(
        self,
        background: Points,  # (M, D)
        players: Indices,  # (D,): of each column
        weights: Values | None = None,  # (M,): of the background
    ) -> tuple[float, tuple[int, ...]]:
        """The share of mixtures never seen, and the columns of the worst cause.

        Of the mixtures of rows of the table and background rows that the game of the
        players evaluates, 1,000 are drawn with a fixed seed. The coalition has the
        players before a random position in a random order. There are no columns if no
        mixture is never seen.
        """
        rng = np.random.default_rng(0)
        n_players = int(players.max()) + 1
        x = self.data[rng.integers(len(self.data), size=_N_MIXED)]
        b = background[rng.choice(len(background), _N_MIXED, p=weights)]
        rank = np.argsort(rng.random((_N_MIXED, n_players)), axis=1)
        is_x = rank < rng.integers(1, max(n_players, 2), size=(_N_MIXED, 1))
        unseen = np.zeros(_N_MIXED, bool)
        worst: tuple[int, ...] = ()
        most = 0
        for columns, mask in self.causes(x, b, is_x[:, players]):
            unseen |= mask
            count = int(mask.sum())
            if count > most:
                most = count
                worst = columns
        return float(unseen.mean()), worst

    # ---- Groups

    def groups(self) -> list[list[int]]:
        """Columns that belong together, two or more in each group.

        Average linkage of the shares of pairs, relative to the share of a duplicate.
        Columns of a relation or a nesting belong together, whatever their pairs.
        """
        lost = 1.0 - (self.frequencies**2).sum(axis=1)
        most = np.maximum(np.minimum.outer(lost, lost), _RIDGE)
        bound = np.minimum(self.shares / most, 1.0)
        joined = [*(x.members for x in self.relations)]
        joined += self.nestings
        for members in joined:
            bound[np.ix_(members, members)] = 1.0
        np.fill_diagonal(bound, 1.0)
        if np.triu(bound, 1).max() < _TOGETHER:
            return []
        # imported only here, as it takes longer than small tables
        from scipy.cluster.hierarchy import average, fcluster

        upper = np.triu_indices(len(bound), 1)
        tree = average(1.0 - bound[upper])
        cluster = fcluster(tree, 1.0 - _TOGETHER, "distance")
        groups = [np.flatnonzero(cluster == c).tolist() for c in np.unique(cluster)]
        return sorted(group for group in groups if len(group) > 1)


def one_row_per_unit(data: Points) -> Points:
    """The rows (n, D) of a table without repetitions: of a panel, one row per unit.

    Rows of a customer that repeat many attributes are not independent. Three columns of
    many values with the same ties identify the units.
    """
    n = len(data)
    codes = [np.unique(column, return_inverse=True)[1] for column in data.T]
    sizes = np.array([int(code.max(initial=-1)) + 1 for code in codes])
    order = np.argsort(-sizes, kind="stable")
    tied = [j for j in order.tolist() if _FEW < sizes[j] < _REPEATED * n][:_TIED]
    for u in tied:
        similar = [v for v in tied if abs(sizes[v] - sizes[u]) <= _SLACK * sizes[u]]
        joint = [len(np.unique(codes[u] * n + codes[v])) for v in similar]
        if sum(count <= (1.0 + _SLACK) * sizes[u] for count in joint) >= 3:  # with u
            return data[np.sort(np.unique(codes[u], return_index=True)[1])]
    return data


_FEW: Final = 50
_REPEATED: Final = 0.7
_SLACK: Final = 0.1
"""Columns of units have more values than these, and fewer than this share of rows."""
