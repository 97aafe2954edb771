"""Trees that are written node by node."""

from __future__ import annotations

import numpy as np

from propopt._typing import Truths
from propopt.structures.boxes import Tree


class NodeList:
    """The nodes of a tree so far.

    A place is where a node is put: 2 i for the left of node i, 2 i + 1 for its right,
    and :attr:`root`.

    Examples
    --------
    >>> nodes = NodeList()
    >>> left, right = nodes.split(nodes.root, 3, 0.5, False)
    >>> nodes.leaf(left, 1.0)
    >>> nodes.leaf(right, 2.0)
    >>> nodes.tree().left
    array([ 1, -1, -1])
    """

    root = -1

    def __init__(self) -> None:
        self._rows: list[tuple[int, float, bool, float]] = []
        self._children: list[int] = []
        self._left_codes: dict[int, Truths] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def split(
        self,
        place: int,
        feature: int,
        threshold: float,
        missing_left: bool,
        left_codes: Truths | None = None,
    ) -> tuple[int, int]:
        """Put a node that asks; the places of its children."""
        node = self._put(place, (feature, threshold, missing_left, 0.0))
        if left_codes is not None:
            self._left_codes[node] = left_codes
        return 2 * node, 2 * node + 1

    def leaf(self, place: int, value: float) -> None:
        """Put a leaf."""
        self._put(place, (-1, np.inf, False, value))

    def tree(self) -> Tree:
        """The tree."""
        feature, threshold, missing_left, value = zip(*self._rows, strict=True)
        return Tree.of(
            feature,
            threshold,
            self._children[::2],
            self._children[1::2],
            value,
            missing_left,
            self._left_codes,
        )

    def _put(self, place: int, row: tuple[int, float, bool, float]) -> int:
        node = len(self._rows)
        self._rows.append(row)
        self._children += [-1, -1]
        if place >= 0:
            self._children[place] = node
        return node
