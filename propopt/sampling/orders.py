"""Shapley values by drawn orders of the columns, in blocks that tell their error.

In an order of the columns, those of x take the place of those of a background row b
one after the other, and the change of f at each step belongs to its column. The mean
over all orders and background rows is the Shapley value. Each order is walked backwards
too, with the same b: that leaves out what is odd in the order (Mitchell et al. 2022).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Points
from propopt.batches import Budget
from propopt.sampling.drawn.uniforms import N_BLOCKS


_BLOCKS: Final = Budget(2**25)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Orders:
    """Draws of orders and background rows, their own for each point.

    Parameters
    ----------
    value : callable
        f at points (n, D), as an array (n,).
    background : array (B, D)
        What columns are before they are those of x.
    n_pairs : int
        Orders for each point, each walked forwards and backwards; a multiple of the
        number of blocks.
    """

    value: Callable[[Points], Array]
    background: Points
    n_pairs: int = 100

    def blocks(self, points: Points, rng: np.random.Generator) -> Array:
        """Unbiased estimates (10, N, D) from disjoint blocks of draws.

        Parameters
        ----------
        points : array (N, D)
            x, in rows.
        rng : numpy.random.Generator
            Where orders and rows are drawn from.
        """
        at_points = self.value(points)
        at_background = self.value(self.background)
        totals = np.zeros((N_BLOCKS, *points.shape))
        n_each = -(-self.n_pairs // N_BLOCKS)
        for block in range(N_BLOCKS):
            for _ in range(n_each):
                order = np.argsort(rng.random(points.shape), axis=1)
                rows = rng.integers(len(self.background), size=len(points))
                ends = at_background[rows], at_points
                for walked in (order, order[:, ::-1]):
                    totals[block] += self._changes(points, rows, walked, ends)
        return totals / (2 * n_each)

    def _changes(
        self,
        points: Points,
        rows: NDArray[np.intp],
        order: NDArray[np.intp],
        ends: tuple[Array, Array],
    ) -> Array:
        """The change of f in each column (N, D), along one order for each point."""
        n_points, n_columns = points.shape
        changes = np.empty(points.shape)
        rank = np.argsort(order, axis=1)
        copies = max(n_columns - 1, 1)
        for some in _BLOCKS.blocks(n_points, 8 * n_columns * copies):
            steps = np.arange(1, n_columns)[:, None]
            taken = rank[some, None, :] < steps  # (n, D − 1, D)
            x, b = points[some, None], self.background[rows[some], None]
            mixed = np.where(taken, x, b).reshape(-1, n_columns)
            between = self.value(mixed).reshape(-1, n_columns - 1)
            first, last = (end[some, None] for end in ends)
            along = np.diff(np.hstack([first, between, last]), axis=1)
            np.put_along_axis(changes[some], order[some], along, axis=1)
        return changes
