"""Shapley values of sums of boxes, exactly: every order of the columns, every row.

v(S) is the mean over background rows b of f(x on S, b elsewhere). A box v Π 1[A_u]
whose sets hold x alone in p columns, b alone in q, and both in all others, gives

    v (p−1)! q!/(p+q)!  to each of the p columns,  −v p! (q−1)!/(p+q)!  to each of the q

(Lundberg et al. 2020, interventional feature perturbation). One with a set that holds
neither gives nothing. Background rows count by the sets of a box that hold them: few
kinds of them are different, however many rows there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Attributions, Points
from propopt.batches import Budget
from propopt.errors import Refused
from propopt.structures.boxes.boxes import Boxes


MOST_SETS: Final = 62
"""Of one path: one bit each of a 64-bit word."""

_BLOCKS: Final = Budget(2**25)
_Masks = NDArray[np.int64]


@final
@dataclass(frozen=True, eq=False)
class BoxShapley:
    """Shapley values of a sum of boxes against background rows.

    Parameters
    ----------
    boxes : Boxes
        f.
    leaf : array (M,)
        Of each pattern the box.
    pattern : array (M,)
        Which sets of its path hold a background row, one bit each; different for one
        box.
    share : array (M,)
        The share of background rows with this pattern in this box.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.structures.boxes import Boxes, Tree
    >>> stump = Tree.of([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 1, 3])
    >>> f = Boxes.of_trees([stump], n_columns=2)
    >>> shap = BoxShapley.of(f, background=np.array([[0.0, 0.0], [1.0, 0.0]]))
    >>> shap.values(np.array([[1.0, 5.0]]))
    array([[1., 0.]])
    """

    boxes: Boxes
    leaf: NDArray[np.intp]
    pattern: _Masks
    share: Array

    @classmethod
    def of(cls, boxes: Boxes, background: Points) -> BoxShapley:
        """Made ready for background rows (B, D).

        Raises
        ------
        Refused
            If a path has more than 62 sets.
        """
        n_sets = boxes.paths.shape[1]
        if n_sets > MOST_SETS:
            raise Refused(
                f"a path asks for {n_sets} columns, and Shapley values are counted "
                f"for at most {MOST_SETS}"
            )
        held = _masks(boxes, background)
        leaf = np.repeat(np.arange(len(held)), held.shape[1])
        pairs = np.stack([leaf, held.ravel()], axis=1)
        kinds, counts = np.unique(pairs, axis=0, return_counts=True)
        share = counts / len(background)
        return cls(boxes, kinds[:, 0].astype(np.intp), kinds[:, 1], share)

    def values(self, points: Points) -> Attributions:
        """Shapley values of points (N, D), exactly 0.0 where no box asks."""
        held = _masks(self.boxes, points)
        return np.stack([self._of_row(row) for row in held.T])

    def _of_row(self, held: _Masks) -> Array:
        """Those of one point; ``held`` (L,) are the sets that hold it."""
        x = held[self.leaf]
        both = np.flatnonzero((x | self.pattern) == self._full)  # others give nothing
        only_x = x[both] & ~self.pattern[both]
        only_b = self.pattern[both] & ~x[both]
        p, q = np.bitwise_count(only_x), np.bitwise_count(only_b)
        leaf = self.leaf[both]
        size = self.boxes.values[leaf] * self.share[both]
        gains, losses = size * _GAINS[p, q], size * _GAINS[q, p]
        phi = np.zeros(self.boxes.n_columns)
        for place, column in enumerate(self._columns):
            bit = np.int64(1) << np.int64(place)
            change = np.where(only_x & bit, gains, 0.0)
            change -= np.where(only_b & bit, losses, 0.0)
            phi += np.bincount(column[leaf], change, len(phi) + 1)[:-1]
        return phi

    @cached_property
    def _full(self) -> _Masks:
        """All sets of the path, of each pattern."""
        return _words(self.boxes.paths >= 0)[self.leaf]

    @cached_property
    def _columns(self) -> NDArray[np.intp]:
        """The column of each set of each path (K, L), D where there is none."""
        paths, D = self.boxes.paths.T, self.boxes.n_columns
        return np.where(paths >= 0, self.boxes.sets.column[paths], D)


def _masks(boxes: Boxes, points: Points) -> _Masks:
    """Which sets of each path hold each point, one bit each, shape (L, N)."""
    held = np.empty((len(boxes.paths), len(points)), np.int64)
    n_sets, width = len(boxes.sets), boxes.paths.shape[1]
    for rows in _BLOCKS.blocks(len(points), max(1, n_sets + len(boxes.paths) * 8)):
        inside = boxes.sets.contain(points[rows])
        inside = np.concatenate([inside, np.zeros((1, inside.shape[1]), bool)])
        words = np.zeros((len(boxes.paths), inside.shape[1]), np.int64)
        for place in range(width):
            words |= inside[boxes.paths[:, place]].astype(np.int64) << place
        held[:, rows] = words
    return held


def _words(truths: NDArray[np.bool_]) -> _Masks:
    """Truths (L, K) as bits."""
    bits = np.int64(1) << np.arange(truths.shape[1], dtype=np.int64)
    return np.asarray(truths @ bits)


def _gains() -> Array:
    """(p−1)! q!/(p+q)! = 1/((p+q) C(p+q−1, q)) for p ≥ 1."""
    gains = np.zeros((MOST_SETS + 1, MOST_SETS + 1))
    for p in range(1, MOST_SETS + 1):
        for q in range(MOST_SETS + 1 - p):
            gains[p, q] = 1.0 / ((p + q) * math.comb(p + q - 1, q))
    return gains


_GAINS: Final = _gains()
