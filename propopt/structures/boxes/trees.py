"""Trees as arrays of nodes, and the sets of values that lead to their leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from propopt._typing import Array, Positions, Truths
from propopt.errors import InvalidInput
from propopt.structures.boxes.maps import ColumnMap, SameColumn, largest_at_most
from propopt.structures.boxes.sets import Sets


@final
@dataclass(frozen=True, eq=False)
class Tree:
    """A binary tree; node 0 is its root.

    Node i sends x left if x_k ≤ threshold, k = ``feature[i]``, or, where it has
    ``left_codes``, if the code x_k is one of them; NaN goes left where
    ``missing_left``; all else goes right.

    Parameters
    ----------
    feature : array (n,)
        The column of the model that each node asks for; −1 at leaves.
    threshold : array (n,)
        In float64, and such that "x ≤ threshold" for x in float64 is what the model
        decides, whatever precision and comparison are its own.
    missing_left : array (n,)
        Whether NaN goes left.
    left, right : array (n,)
        The children; not read at leaves.
    value : array (n,)
        What a leaf adds to the output; not read elsewhere.
    left_codes : mapping of a node to an array (K,)
        Which codes go left; codes that are not in the array go right.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.structures.boxes import Boxes
    >>> stump = Tree.of([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 1, 3])
    >>> Boxes.of_trees([stump], base=10.0, n_columns=1).value(np.array([[0.5], [0.6]]))
    array([11., 13.])
    """

    feature: Positions
    threshold: Array
    missing_left: Truths
    left: Positions
    right: Positions
    value: Array
    left_codes: Mapping[int, Truths] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        feature: Sequence[int] | Positions,
        threshold: Sequence[float] | Array,
        left: Sequence[int] | Positions,
        right: Sequence[int] | Positions,
        value: Sequence[float] | Array,
        missing_left: Sequence[bool] | Truths | None = None,
        left_codes: Mapping[int, Truths] | None = None,
    ) -> Tree:
        """The tree of any sequences; without ``missing_left`` NaN goes right."""
        nowhere = np.zeros(len(feature), dtype=bool)
        return cls(
            np.asarray(feature, np.intp),
            np.asarray(threshold, np.float64),
            nowhere if missing_left is None else np.asarray(missing_left, bool),
            np.asarray(left, np.intp),
            np.asarray(right, np.intp),
            np.asarray(value, np.float64),
            {} if left_codes is None else left_codes,
        )

    @cached_property
    def reached(self) -> Truths:
        """Which nodes belong to the tree: others may be left over from pruning."""
        reached = np.zeros(len(self.feature), dtype=bool)
        front = np.array([0])
        while len(front) > 0:
            reached[front] = True
            asking = front[self.feature[front] >= 0]
            front = np.concatenate([self.left[asking], self.right[asking]])
        return reached

    @property
    def leaves(self) -> Positions:
        """Its leaves, in the order of nodes."""
        return np.flatnonzero(self.reached & (self.feature < 0))

    @property
    def inner(self) -> Positions:
        """Its nodes that ask, in their order."""
        return np.flatnonzero(self.reached & (self.feature >= 0))


class LeafSets(NamedTuple):
    """What leads to leaves: a leaf is reached if all its sets hold the point."""

    leaf: Positions
    """The leaf that each set leads to, (E,), increasing; counted from 0."""

    sets: Sets
    """The sets (E), of each leaf one for each column that is asked for."""

    values: Array
    """Values of the leaves, (L,)."""


def leaf_sets(tree: Tree, columns: Sequence[ColumnMap]) -> LeafSets:
    """The sets that lead to each leaf of a tree, as sets of columns of the table.

    Parameters
    ----------
    tree : Tree
        Of columns of the model.
    columns : sequence of ColumnMap
        What each column of the model is.
    """
    leaves, inner = tree.leaves, tree.inner
    sides = _sides(tree, inner, columns)
    leaf, side = _ways_up(tree, leaves, inner)
    order = np.lexsort([sides.column[side], leaf])
    leaf, sets = leaf[order], sides.take(side[order])
    if len(leaf) == 0:
        return LeafSets(leaf, sets, tree.value[leaves])
    changes = (np.diff(leaf) != 0) | (np.diff(sets.column) != 0)
    starts = np.flatnonzero(np.concatenate([[True], changes]))
    return LeafSets(leaf[starts], sets.intersections(starts), tree.value[leaves])


def _ways_up(
    tree: Tree, leaves: Positions, inner: Positions
) -> tuple[Positions, Positions]:
    """Each leaf with each side of a node on its way, left ones before right ones."""
    n, n_inner = len(tree.feature), len(inner)
    parent, side = np.full(n, -1), np.full(n, -1)
    for i, children in enumerate((tree.left[inner], tree.right[inner])):
        parent[children] = inner
        side[children] = np.arange(n_inner) + i * n_inner
    who, nodes = np.arange(len(leaves)), leaves
    found: list[tuple[Positions, Positions]] = []
    while len(who) > 0:
        below = parent[nodes] >= 0
        who, nodes = who[below], nodes[below]
        found.append((who, side[nodes]))
        nodes = parent[nodes]
    return (
        np.concatenate([who for who, _ in found]),
        np.concatenate([sides for _, sides in found]),
    )


def _sides(tree: Tree, inner: Positions, columns: Sequence[ColumnMap]) -> Sets:
    """What goes left at each inner node, then what goes right, by the table."""
    found = list(_asked(tree, inner, columns))
    if not found:
        return Sets.of_numbers([], [], [], [])
    places = [np.concatenate([at, at + len(inner)]) for at, _ in found]
    sets = Sets.concatenate([sets for _, sets in found])
    return sets.take(np.argsort(np.concatenate(places)))


def _asked(
    tree: Tree, inner: Positions, columns: Sequence[ColumnMap]
) -> Iterator[tuple[Positions, Sets]]:
    """Which inner nodes, and the sets of their left sides, then of their right ones."""
    feature = tree.feature[inner]
    asked = np.unique(feature).tolist()
    same = [k for k in asked if _is_as_it_is(columns[k])]
    if same:
        at = np.flatnonzero(np.isin(feature, same))
        source = np.array([column.source for column in columns])[feature[at]]
        cuts, missing = tree.threshold[inner[at]], tree.missing_left[inner[at]]
        _refuse_codes(tree, inner[at], source)
        yield at, _intervals(source, cuts, missing)
    for k in sorted(set(asked) - set(same)):
        at = np.flatnonzero(feature == k)
        of_column = _asked_numbers if columns[k].n_codes is None else _asked_codes
        yield at, of_column(tree, inner[at], columns[k])


def _is_as_it_is(column: ColumnMap) -> bool:
    return isinstance(column, SameColumn) and column.n_codes is None


def _refuse_codes(tree: Tree, nodes: Positions, source: Positions) -> None:
    for node, j in zip(nodes.tolist(), source.tolist(), strict=True):
        if node in tree.left_codes:
            raise InvalidInput(
                f"column {j}: the model asks for categories of a column that is "
                "numeric in the table; declare it categorical, "
                "data=po.TableSchema.of(X, categorical=[...])"
            )


def _intervals(source: Positions, cuts: Array, missing: Truths) -> Sets:
    """All up to each cut, with NaN where ``missing``, and then the rest."""
    nothing = np.full(len(cuts), np.inf)
    return Sets.of_numbers(
        np.concatenate([source, source]),
        np.concatenate([-nothing, cuts]),
        np.concatenate([cuts, nothing]),
        np.concatenate([missing, ~missing]),
    )


def _asked_numbers(tree: Tree, nodes: Positions, column: ColumnMap) -> Sets:
    """Intervals of a numeric column of the table that the model sees otherwise."""
    source = np.full(len(nodes), column.source)
    _refuse_codes(tree, nodes, source)
    cuts = largest_at_most(column, tree.threshold[nodes])
    missing = _goes_left(tree, nodes, column(np.array([np.nan])))[:, 0]
    return _intervals(source, cuts, missing)


def _asked_codes(tree: Tree, nodes: Positions, column: ColumnMap) -> Sets:
    """Codes of a categorical column of the table."""
    codes = np.arange(column.n_codes or 0, dtype=np.float64)
    left = _goes_left(tree, nodes, column(codes))
    return Sets.of_codes(
        np.full(2 * len(nodes), column.source), np.concatenate([left, ~left])
    )


def _goes_left(tree: Tree, nodes: Positions, values: Array) -> Truths:
    """Whether nodes send values that the model sees to the left, (nodes, values)."""
    known = ~np.isnan(values)
    left = np.empty((len(nodes), len(values)), dtype=bool)
    left[:, known] = values[known] <= tree.threshold[nodes, None]
    for i, listed in _listed(tree, nodes):
        left[i, known] = _in(listed, values[known])
    left[:, ~known] = tree.missing_left[nodes, None]
    return left


def _listed(tree: Tree, nodes: Positions) -> Iterator[tuple[int, Truths]]:
    for i, node in enumerate(nodes.tolist()):
        if node in tree.left_codes:
            yield i, tree.left_codes[node]


def _in(listed: Truths, codes: Array) -> Truths:
    inside = (codes >= 0) & (codes < len(listed))
    found = np.zeros(len(codes), dtype=bool)
    found[inside] = listed[codes[inside].astype(np.intp)]
    return found
