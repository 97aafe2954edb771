"""Bits that are independent under the weighted law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Attributions, Positions, Truths, Values


@final
@dataclass(frozen=True, eq=False)
class IndependentBits:
    """Bits of the columns of a table: Cov_Q(z) = diag(α_j (1 − α_j)).

    Parameters
    ----------
    alpha : array (n, D)
        Q(z_j = 1).
    log_weight : array (n,)
        Log E π.
    """

    alpha: Array
    log_weight: Values

    def at(self, rows: slice | Positions, /) -> IndependentBits:
        """Those of some situations."""
        return IndependentBits(self.alpha[rows], self.log_weight[rows])

    @property
    def variances(self) -> Array:
        """α_j (1 − α_j), (n, D)."""
        return np.asarray(self.alpha * (1.0 - self.alpha))

    def covariances(self, coefficients: Attributions, /) -> Array:
        """α_j (1 − α_j) b_j, (n, D)."""
        return np.asarray(self.variances * coefficients)

    def solved(
        self, vectors: Array, penalty: Values, kept: Truths | None = None, /
    ) -> Array:
        """x_j / (α_j (1 − α_j) + ρ), (n, S, D)."""
        return np.asarray(self._steepness(penalty, kept)[:, None] * vectors)

    def share_left(self, penalty: Values, kept: Truths | None = None, /) -> Array:
        """α_j (1 − α_j) / (α_j (1 − α_j) + ρ), (n, D)."""
        return np.asarray(self._steepness(penalty, kept) * self.variances)

    def _steepness(self, penalty: Values, kept: Truths | None) -> Array:
        with np.errstate(over="ignore"):
            steep = 1.0 / (self.variances + penalty[:, None])
        return steep if kept is None else np.where(kept, steep, 0.0)
