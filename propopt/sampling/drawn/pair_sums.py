"""Sums over draws of contrasts by pairs, block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.sampling.drawn.uniforms import N_BLOCKS


@final
@dataclass(frozen=True, eq=False)
class PairSums:
    """Σ c, Σ m, Σ cm and Σ m² of contrasts c of f and m of a function that is known.

    Draws are added one after the other, so that sums do not depend on how many were
    added at a time.

    Parameters
    ----------
    sums : array (4, N, B, D)
        The four sums.
    """

    sums: Array

    @classmethod
    def empty(cls, n_rows: int, n_features: int) -> PairSums:
        """Of no draws."""
        return cls(np.zeros((4, n_rows, N_BLOCKS, n_features)))

    def add(self, rows: slice, c: Array) -> None:
        """Add draws of contrasts (n, B, s, D) at some rows."""
        for s in range(c.shape[2]):
            self.sums[0, rows] += c[:, :, s]

    def add_controlled(self, rows: slice, c: Array, m: Array) -> None:
        """The same, with those of the function that is known."""
        self.add(rows, c)
        for s in range(c.shape[2]):
            self.sums[1, rows] += m[:, :, s]
            self.sums[2, rows] += c[:, :, s] * m[:, :, s]
            self.sums[3, rows] += m[:, :, s] ** 2

    def copy(self) -> PairSums:
        """The same sums, to be added to."""
        return PairSums(self.sums.copy())

    def means(self, n_draws: int) -> Array:
        """Mean contrasts of each block of so many draws, (B, N, D)."""
        return np.moveaxis(self.sums[0] / n_draws, 1, 0)

    def controlled(self, n_draws: int, known: Array) -> Array:
        """The same with γ (m − E m) taken off, γ by the other blocks, (B, N, D).

        Parameters
        ----------
        n_draws : int
            Of each block.
        known : array (N, D)
            E m, exactly.
        """
        c, m, cm, mm = self.sums.sum(axis=2, keepdims=True) - self.sums
        n_others = n_draws * (N_BLOCKS - 1)
        covariance, variance = cm - c * m / n_others, mm - m**2 / n_others
        moved = variance > 1e-12 * mm
        gamma = np.where(moved, covariance, 0.0) / np.where(moved, variance, 1.0)
        own = self.sums[:2] / n_draws
        values = own[0] - gamma * (own[1] - known[:, None, :])
        return np.moveaxis(values, 1, 0)
