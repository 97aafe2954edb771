"""Nodes that send several intervals of a column to each side, as nodes with one cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, final

import numpy as np

from propopt._typing import Array, Truths
from propopt.structures.boxes import Tree
from propopt.structures.readers.trees.nodes import NodeList


MOST_NODES: Final = 50_000
"""Of one tree: one that would have more is not made."""


class Span(NamedTuple):
    """Numbers low < x ≤ high, and whether NaN is with them."""

    low: float = -np.inf
    high: float = np.inf
    missing: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in it."""
        return not (self.missing or self.low < self.high)

    def up_to(self, end: float, *, missing: bool) -> Span:
        """Its numbers up to an end."""
        return Span(self.low, min(self.high, end), self.missing and missing)

    def beyond(self, end: float, *, missing: bool) -> Span:
        """Its numbers beyond an end."""
        return Span(max(self.low, end), self.high, self.missing and missing)


@final
@dataclass(frozen=True, eq=False)
class Fan:
    """What a node does with numbers, by runs of them.

    Parameters
    ----------
    ends : array (m,)
        Where the runs end, increasing to infinity.
    left : array (m,)
        Whether each goes left; it alternates.
    """

    ends: Array
    left: Truths

    @classmethod
    def of(cls, ends: Array, left: Truths) -> Fan:
        """The fan of any runs: up to each of m − 1 ends, and beyond the last."""
        ends = np.append(ends, np.inf)
        some = np.append(-np.inf, ends[:-1]) < ends
        ends, left = ends[some], left[some]
        last = np.append(left[1:] != left[:-1], True)
        return cls(ends[last], left[last])

    def runs_in(self, interval: Span) -> list[tuple[float, bool]]:
        """Ends and sides of the runs that numbers of an interval are in."""
        if interval.low >= interval.high:
            return []
        first = int(np.searchsorted(self.ends, interval.low, side="right"))
        last = int(np.searchsorted(self.ends, interval.high))
        ends, left = self.ends[first : last + 1], self.left[first : last + 1]
        return list(zip(ends.tolist(), left.tolist(), strict=True))


def fanned(tree: Tree, fans: Mapping[int, Fan]) -> Tree | None:
    """The tree whose nodes with fans do what they say; None if it is too large.

    Parameters
    ----------
    tree : Tree
        Of the columns of a table; thresholds of nodes with fans are not read.
    fans : mapping of a node to a Fan
        Of columns of numbers.
    """
    if not fans:
        return tree
    if all(len(fan.left) <= 2 for fan in fans.values()):
        return _cut_once(tree, fans)
    return _Growing(tree, fans).tree()


def _cut_once(tree: Tree, fans: Mapping[int, Fan]) -> Tree:
    """The same nodes, with one cut or none in each fan."""
    threshold, missing_left = tree.threshold.copy(), tree.missing_left.copy()
    left, right = tree.left.copy(), tree.right.copy()
    for node, fan in fans.items():
        threshold[node] = fan.ends[0]
        if not fan.left[0]:
            left[node], right[node] = right[node], left[node]
            missing_left[node] = not missing_left[node]
    return replace(
        tree, threshold=threshold, missing_left=missing_left, left=left, right=right
    )


class _Place(NamedTuple):
    """A node of the tree that is yet to grow."""

    node: int
    intervals: Mapping[int, Span]
    """What comes to it, by columns."""

    child: int
    """Where it is put among the new nodes."""


class _Growing:
    """A tree that grows node by node from another, without branches that none take."""

    def __init__(self, tree: Tree, fans: Mapping[int, Fan]) -> None:
        self.old, self.fans, self.new = tree, fans, NodeList()

    def tree(self) -> Tree | None:
        """The whole tree."""
        places = [_Place(0, {}, NodeList.root)]
        while places:
            if len(self.new) > MOST_NODES:
                return None
            places.extend(self._grow(places.pop()))
        return self.new.tree()

    def _grow(self, place: _Place) -> list[_Place]:
        """Write a node, or those of its fan; what is behind them is yet to grow."""
        node, old = place.node, self.old
        column = int(old.feature[node])
        if column < 0:
            self.new.leaf(place.child, float(old.value[node]))
            return []
        if node in old.left_codes:
            return self._grow_codes(place, column)
        interval = place.intervals.get(column, Span())
        return self._grow_numbers(place, column, interval)

    def _grow_codes(self, place: _Place, column: int) -> list[_Place]:
        codes = self.old.left_codes[place.node]
        left, right = self.new.split(place.child, column, np.inf, False, codes)
        return [
            place._replace(node=int(self.old.left[place.node]), child=left),
            place._replace(node=int(self.old.right[place.node]), child=right),
        ]

    def _grow_numbers(self, place: _Place, column: int, interval: Span) -> list[_Place]:
        """A chain of nodes, each of which sends its first run left."""
        missing_left = bool(self.old.missing_left[place.node])
        *runs, last = self._runs(place.node, interval)
        places = []
        for end, left in runs:
            missing = interval.missing and left == missing_left
            child, rest = self.new.split(place.child, column, end, missing)
            part = interval.up_to(end, missing=missing)
            places.append(self._behind(place, left, column, part, child))
            interval = interval.beyond(end, missing=not missing)
            place = place._replace(child=rest)
        _, left = last
        return [*places, self._behind(place, left, column, interval, place.child)]

    def _runs(self, node: int, interval: Span) -> list[tuple[float, bool]]:
        """Ends and sides of what comes to a node, with one for NaN alone."""
        cut = Fan.of(self.old.threshold[[node]], np.array([True, False]))
        runs = self.fans.get(node, cut).runs_in(interval)
        missing_left = bool(self.old.missing_left[node])
        if interval.missing and missing_left not in (left for _, left in runs):
            return [(-np.inf, missing_left), *runs]
        return runs

    def _behind(
        self, place: _Place, left: bool, column: int, interval: Span, child: int
    ) -> _Place:
        side = self.old.left if left else self.old.right
        intervals = {**place.intervals, column: interval}
        return _Place(int(side[place.node]), intervals, child)
