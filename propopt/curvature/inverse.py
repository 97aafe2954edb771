"""What is asked of the inverse of half a Hessian."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from propopt._typing import Array, Attributions, Positions


class Hessian(ABC):
    """H⁻¹ of the quadratic part of an objective, for W of shape (N, D)."""

    @abstractmethod
    def solve(self, E: Array) -> Array:
        """H⁻¹E, shape (N, D)."""

    def energy(self, E: Array) -> float:
        """⟨E, H⁻¹E⟩ ≥ 0."""
        return float(np.vdot(E, self.solve(E)))

    @abstractmethod
    def inverse_block(self, row: int) -> Array:
        """The entries of H⁻¹ between the features of one point, shape (D, D)."""

    def block_of(self, row: int, features: Positions) -> Array:
        """Those between some of its features, shape (d, d)."""
        return np.asarray(self.inverse_block(row)[np.ix_(features, features)])

    @abstractmethod
    def inverse_diagonal(self) -> Attributions:
        """The diagonal of H⁻¹, shape (N, D)."""
