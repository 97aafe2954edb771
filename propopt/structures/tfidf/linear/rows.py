"""One linear output of a model: a weight for each feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from propopt._typing import Array, Positions, Values
from propopt.structures.networks import Affine, Chain, Network, Scaling


@final
@dataclass(frozen=True, eq=False)
class LinearRow:
    """λᵀ x + λ_0, or with thresholds Σ_v λ_v 1{x_v > t_v} + λ_0.

    Parameters
    ----------
    coefficients : array (V,)
        λ.
    intercept : float
        λ_0.
    thresholds : array (V,) or None
        t.
    """

    coefficients: Values
    intercept: float
    thresholds: Values | None = None

    @classmethod
    def of_network(
        cls, network: Network, cotangents: Array, n_inputs: int
    ) -> LinearRow:
        """Σ_k c_k times score k of an affine network."""
        at_zero, pullback = network.linearized(np.zeros((1, n_inputs)))
        return cls(pullback(cotangents[None])[0], float(at_zero[0] @ cotangents))

    @classmethod
    def added(cls, rows: Sequence[LinearRow], weights: Sequence[float]) -> LinearRow:
        """The weighted sum of rows without thresholds."""
        pairs = list(zip(weights, rows, strict=True))
        coefficients = np.sum([w * row.coefficients for w, row in pairs], axis=0)
        return cls(coefficients, sum(w * row.intercept for w, row in pairs))

    def times(self, factor: float) -> LinearRow:
        """All weights times a factor."""
        return replace(
            self,
            coefficients=factor * self.coefficients,
            intercept=factor * self.intercept,
        )

    def placed(self, columns: Positions, n_features: int) -> LinearRow:
        """The same of a table of which it was given some columns."""
        wide = np.zeros(n_features)
        np.add.at(wide, columns, self.coefficients)
        thresholds = None
        if self.thresholds is not None:
            thresholds = np.zeros(n_features)
            thresholds[columns] = self.thresholds
        return LinearRow(wide, self.intercept, thresholds)


def is_affine(network: Network) -> bool:
    """Whether its scores are sums of weighted features, and nothing else."""
    match network:
        case Affine() | Scaling():
            return True
        case Chain(inner, outer):
            return is_affine(inner) and is_affine(outer)
        case _:
            return False
