"""Functions that are sums of boxes: what trees and sums of trees are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np

from propopt._typing import Array, Attributions, Points, Positions, Values
from propopt.batches import Budget
from propopt.structures.boxes.maps import ColumnMap, SameColumn
from propopt.structures.boxes.sets import Sets
from propopt.structures.boxes.trees import LeafSets, Tree, leaf_sets
from propopt.structures.products.measures import Measures
from propopt.structures.products.paths import padded_paths
from propopt.structures.products.products import Products
from propopt.structures.products.sum_of_products import SumOfProducts


VALUES_AT_ONCE: Final = Budget(2**25)
"""The largest array that is built at once; its size never changes a result."""

DOUBLE_TOLERANCE: Final = 1e-9
"""How far sums in float64 may be from the model, over the range of f."""

SINGLE_TOLERANCE: Final = 2e-5
"""The same for models that sum in float32."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Boxes:
    """f(x) = base + Σ_l v_l Π_{u in path l} 1[x_j(u) ∈ A_u]: a sum of boxes.

    Each set A_u is of one column, and a path has one set of a column at most. So the
    mean of f under independent columns, and any contrast in one column, are sums of
    products of measures of the sets: nothing is sampled.

    Parameters
    ----------
    base : float
        What is added to all boxes.
    values : array (L,)
        v, of the leaves.
    paths : array (L, K)
        The sets of each box, padded with −1 at the end.
    sets : Sets (U)
        The different sets.
    n_columns : int
        D, the number of columns of the table.
    tolerance : float
        How far the boxes may be from the model, over the range of f.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.structures.boxes import Boxes, Tree
    >>> stump = Tree.of([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 1, 3])
    >>> boxes = Boxes.of_trees([stump, stump], n_columns=2)
    >>> boxes
    Boxes(4 boxes of 2 sets in 2 columns)
    >>> (0.5 * boxes + boxes).value(np.array([[0.0, 7.0], [1.0, 7.0]]))
    array([3., 9.])
    """

    base: float
    values: Array
    paths: Positions
    sets: Sets
    n_columns: int
    tolerance: float = DOUBLE_TOLERANCE

    @classmethod
    def of_trees(
        cls,
        trees: Sequence[Tree],
        base: float = 0.0,
        *,
        n_columns: int,
        maps: Sequence[ColumnMap] | None = None,
        tolerance: float = DOUBLE_TOLERANCE,
    ) -> Boxes:
        """The sum of trees.

        Parameters
        ----------
        trees : sequence of Tree
            Their ``feature`` counts the columns of the model.
        base : float
            What is added to their sum.
        n_columns : int
            D, the number of columns of the table.
        maps : sequence of ColumnMap, optional
            What each column of the model is of the table; by default the model sees
            the table as it is.
        tolerance : float
            How far sums in the precision of the model may be from those in float64.

        Raises
        ------
        InvalidInput
            If a tree asks for categories of a column that is numeric in the table.
        """
        columns = tuple(map(SameColumn, range(n_columns))) if maps is None else maps
        leaves = [leaf_sets(tree, columns) for tree in trees]
        return _boxes(leaves, base, n_columns, tolerance)

    @classmethod
    def constant(cls, value: float, n_columns: int) -> Boxes:
        """A constant function of D columns."""
        return cls.of_trees([], value, n_columns=n_columns)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.values)} boxes of {len(self.sets)} sets "
            f"in {self.n_columns} columns)"
        )

    def __add__(self, other: object) -> Boxes:
        if isinstance(other, int | float | np.integer | np.floating):
            return replace(self, base=self.base + float(other))
        if not isinstance(other, Boxes) or other.n_columns != self.n_columns:
            return NotImplemented
        return Boxes.sum_of([self, other])

    __radd__ = __add__

    def __mul__(self, weight: object) -> Boxes:
        if not isinstance(weight, int | float | np.integer | np.floating):
            return NotImplemented
        number = float(weight)
        return replace(self, base=number * self.base, values=number * self.values)

    __rmul__ = __mul__
    __array_ufunc__ = None  # numbers of NumPy multiply from the left too

    def scaled(self, weight: float) -> Boxes:
        """``weight`` · f."""
        return self * weight

    @classmethod
    def sum_of(cls, parts: Sequence[Boxes]) -> Boxes:
        """The sum of several, at least one, of the same number of columns."""
        starts = np.cumsum([0, *(len(part.sets) for part in parts)])
        width = max(part.paths.shape[1] for part in parts)
        paths = [
            _widened(np.where(part.paths >= 0, part.paths + start, -1), width)
            for part, start in zip(parts, starts, strict=False)
        ]
        return Boxes(
            sum(part.base for part in parts),
            np.concatenate([part.values for part in parts]),
            np.concatenate(paths),
            Sets.concatenate([part.sets for part in parts]),
            parts[0].n_columns,
            max(part.tolerance for part in parts),
        ).merged()

    @property
    def products(self) -> Products:
        """What f is of the measures of its sets."""
        column = self.sets.column
        return Products(self.base, self.values, self.paths, column, self.n_columns)

    def as_products(self) -> SumOfProducts:
        """The same function, its factors the indicators of its sets."""
        return SumOfProducts(self.products, (self.sets,), self.tolerance)

    @property
    def columns(self) -> Positions:
        """The columns that f depends on, increasing."""
        used = np.unique(self.paths)
        return np.unique(self.sets.column[used[used >= 0]])

    def value(self, points: Points) -> Values:
        """Values of f at points: sums over the boxes that each is in.

        Parameters
        ----------
        points : array (N, D)
            Numbers, NaN where they are missing, and codes.

        Returns
        -------
        array (N,)
        """
        values = np.empty(len(points))
        for rows in VALUES_AT_ONCE.blocks(len(points), max(1, 8 * len(self.sets))):
            inside = self.sets.contain(points[rows])
            values[rows] = self._values_inside(inside)
        return values

    def terms(self, points: Points) -> Values:
        """|base| + Σ_l |v_l| of the boxes around each point: what rounding is of."""
        whole = replace(self, base=abs(self.base), values=np.abs(self.values))
        return whole.value(points)

    def _values_inside(self, inside: np.ndarray) -> Values:
        """Sums over boxes all of whose sets hold a point, from (U, n) truths."""
        n_points = inside.shape[1]
        # eight points in a byte; the last row is for no set
        packed = np.packbits(inside, axis=1)
        packed = np.concatenate([packed, np.full((1, packed.shape[1]), 255, np.uint8)])
        total = np.full(n_points, self.base)
        for some in VALUES_AT_ONCE.blocks(len(self.values), 16 * n_points):
            held = np.bitwise_and.reduce(packed[self.paths[some]], axis=1)
            held = np.unpackbits(held, axis=1, count=n_points)
            total += self.values[some] @ held
        return total

    def contrasts(self, P: Array, R: Array) -> tuple[Values, Attributions]:
        """Means of f and its contrasts in each column, from measures of the sets.

        E f = base + Σ_l v_l Π_{u in path l} P_u,
        contrast_j = Σ_l v_l R_u Π_{w ≠ u} P_w,  u the set of column j in path l.

        Parameters
        ----------
        P : array (U, N)
            The probability of each set under the law of its column, for N rows.
        R : array (U, N)
            Its measure under the contrast of its column, a signed measure of total
            mass zero.

        Returns
        -------
        array (N,)
            Means.
        array (N, D)
            Contrasts; exactly 0.0 in columns that no box asks for.
        """
        return self.products.contrasts(Measures.of_sets(P, R))

    def merged(self) -> Boxes:
        """With each set once, and no box that is empty."""
        sets, places = self.sets.unique()
        merged = self.products.with_factors(places, self.sets.empty, sets.column)
        return replace(self, sets=sets, values=merged.values, paths=merged.paths)


def _boxes(
    leaves: Sequence[LeafSets], base: float, n_columns: int, tolerance: float
) -> Boxes:
    if not leaves:
        nothing = Sets.of_numbers([], [], [], [])
        empty = np.zeros((0, 0), np.intp)
        return Boxes(base, np.zeros(0), empty, nothing, n_columns, tolerance)
    counts = np.cumsum([0, *(len(part.values) for part in leaves)])
    leaf = np.concatenate(
        [part.leaf + start for part, start in zip(leaves, counts, strict=False)]
    )
    values = np.concatenate([part.values for part in leaves])
    sets = Sets.concatenate([part.sets for part in leaves])
    paths = padded_paths(leaf, np.arange(len(sets)), len(values))
    return Boxes(base, values, paths, sets, n_columns, tolerance).merged()


def _widened(paths: Positions, width: int) -> Positions:
    return np.pad(paths, ((0, 0), (0, width - paths.shape[1])), constant_values=-1)
