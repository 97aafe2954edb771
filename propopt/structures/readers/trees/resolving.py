"""Trees of the columns that a model sees, as trees of the columns of the table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Truths
from propopt.structures.boxes import Tree
from propopt.structures.readers.trees.fans import Fan, fanned
from propopt.structures.readers.trees.pipelines.views import (
    CodedColumn,
    Curved,
    Same,
    Steps,
    View,
)
from propopt.structures.readers.trees.questions import (
    Numbers,
    Questions,
    code_runs,
    ends_asked,
)


def resolved(trees: Sequence[Tree], view: View, numbers: Numbers) -> list[Tree] | None:
    """The same trees, asking for columns of the table in float64.

    Parameters
    ----------
    trees : sequence of Tree
        By the columns of the view; codes are whole numbers.
    view : View
        What the columns are.
    numbers : callable
        What the model makes of what it is given.

    Returns
    -------
    list of Tree or None
        None if numbers are asked for so many categories that a tree would be too large,
        or a column is seen through a map that may fall.
    """
    if _are_of_table(trees, view):
        return list(trees)
    ends = ends_asked(trees)
    if any(isinstance(view.sources[k], Curved) for k in ends):
        return None
    columns = _columns(ends, view, numbers)
    whole = []
    for tree in trees:
        found = _of_table(tree, columns)
        if found is None:
            return None
        whole.append(found)
    return whole


def _are_of_table(trees: Sequence[Tree], view: View) -> bool:
    """Whether trees ask for numbers of the table as they are."""
    in_place = all(source == Same(k) for k, source in enumerate(view.sources))
    return view.plain and in_place and not any(tree.left_codes for tree in trees)


def _of_table(tree: Tree, columns: Mapping[int, _Column]) -> Tree | None:
    asking = _Asking(tree)
    for k in np.unique(tree.feature[tree.feature >= 0]).tolist():
        columns[k].put(asking, np.flatnonzero(tree.feature == k))
    return fanned(asking.tree(), asking.fans)


def _columns(
    ends: Mapping[int, Array], view: View, numbers: Numbers
) -> Mapping[int, _Column]:
    """What the model sees in each column that it asks for."""
    asked = Questions(view, numbers)
    numeric = [k for k in ends if not isinstance(view.sources[k], CodedColumn)]
    missing, cuts = asked.missing(numeric), asked.cuts(ends)
    columns: dict[int, _Column] = {}
    for k in ends:
        match view.sources[k]:
            case CodedColumn(column):
                columns[k] = _Categories(column, asked.codes(k))
            case Steps(column) as source:
                columns[k] = _Runs(column, missing[k], *asked.steps(k, source))
            case source:
                columns[k] = _Numbers(source.column, missing[k], ends[k], cuts[k])
    return columns


class _Asking:
    """The nodes of a tree, while they are made to ask for columns of the table."""

    def __init__(self, tree: Tree) -> None:
        self.model = tree
        self.feature, self.threshold = tree.feature.copy(), tree.threshold.copy()
        self.missing_left = tree.missing_left.copy()
        self.left_codes: dict[int, Truths] = {}
        self.fans: dict[int, Fan] = {}

    def tree(self) -> Tree:
        """The tree, but for its nodes with fans."""
        return replace(
            self.model,
            feature=self.feature,
            threshold=self.threshold,
            missing_left=self.missing_left,
            left_codes=self.left_codes,
        )

    def goes_left(self, node: int, values: Array) -> Truths:
        """Whether the model sends what it sees to the left."""
        tree, missing = self.model, np.isnan(values)
        listed = tree.left_codes.get(node)
        if listed is None:
            left = values <= tree.threshold[node]
        else:
            ends, runs = code_runs(listed)
            left = runs[np.searchsorted(ends, values)]
        return np.where(missing, tree.missing_left[node], left)


class _Column(ABC):
    """A column that the model sees."""

    @abstractmethod
    def put(self, asking: _Asking, nodes: NDArray[np.intp]) -> None:
        """Make nodes that ask for it ask for a column of the table."""


@final
@dataclass(frozen=True, eq=False)
class _Numbers(_Column):
    """Numbers, seen through a nondecreasing map.

    Parameters
    ----------
    column : int
        The column of the table, as in all others.
    missing : float
        What is seen of missing numbers.
    ends : array (T,)
        All that is compared with what is seen, increasing.
    cuts : array (T,)
        The largest numbers of which at most that is seen.
    """

    column: int
    missing: float
    ends: Array
    cuts: Array

    def put(self, asking: _Asking, nodes: NDArray[np.intp]) -> None:
        thresholds = asking.model.threshold[nodes]
        asking.feature[nodes] = self.column
        asking.threshold[nodes] = self._cuts(thresholds)
        if not np.isnan(self.missing):
            asking.missing_left[nodes] = self.missing <= thresholds
        for node in set(nodes.tolist()) & set(asking.model.left_codes):
            self._put_codes(asking, node)

    def _put_codes(self, asking: _Asking, node: int) -> None:
        ends, runs = code_runs(asking.model.left_codes[node])
        missing = asking.goes_left(node, np.array([self.missing]))
        asking.missing_left[node] = missing[0]
        asking.fans[node] = Fan.of(self._cuts(ends), runs)

    def _cuts(self, thresholds: Array) -> Array:
        return self.cuts[np.searchsorted(self.ends, thresholds)]


@final
@dataclass(frozen=True, eq=False)
class _Runs(_Column):
    """Numbers, of which something is seen that is constant between some ends.

    Parameters
    ----------
    column, missing
        As of :class:`_Numbers`.
    ends : array (m − 1,)
        Where what is seen changes, increasing.
    seen : array (m,)
        What is seen of numbers up to each end, and beyond the last.
    """

    column: int
    missing: float
    ends: Array
    seen: Array

    def put(self, asking: _Asking, nodes: NDArray[np.intp]) -> None:
        asking.feature[nodes] = self.column
        for node in nodes.tolist():
            left = asking.goes_left(node, np.append(self.seen, self.missing))
            asking.missing_left[node] = left[-1]
            asking.fans[node] = Fan.of(self.ends, left[:-1])


@final
@dataclass(frozen=True, eq=False)
class _Categories(_Column):
    """A category.

    Parameters
    ----------
    column : int
        The column of the table.
    seen : array (K,)
        What is seen of each code.
    """

    column: int
    seen: Array

    def put(self, asking: _Asking, nodes: NDArray[np.intp]) -> None:
        asking.feature[nodes] = self.column
        for node in nodes.tolist():
            asking.left_codes[node] = asking.goes_left(node, self.seen)
