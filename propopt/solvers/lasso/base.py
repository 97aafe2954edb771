"""The lasso behind sparse attributions, divided by the weight of gradient matching.

    F(W) = q(W) + λ‖W‖₁,   q(W) = ‖W − G‖² + β tr(Wᵀ P W) + γ tr(W Q Wᵀ).

q is 2-strongly convex. So for any |Y| ≤ λ

    F(W) − min F ≤ λ‖W‖₁ − ⟨Y, W⟩ + ‖∇q(W) + Y‖²/4,

and the Y for which that is smallest is 2W − ∇q(W), cut to ±λ, entry by entry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from propopt._typing import Array, Attributions


@dataclass(frozen=True, kw_only=True)
class LassoProblem:
    """The weights of one such problem, and the relative gap at which to stop.

    Parameters
    ----------
    beta, gamma : float
        β, γ ≥ 0.
    weight : float
        λ ≥ 0.
    tolerance : float
        The gap that is wanted, relative to :func:`objective_scale` of F(W) and F(0).
    """

    beta: float
    gamma: float
    weight: float
    tolerance: float


@dataclass(frozen=True, kw_only=True, eq=False)
class LassoOptimum:
    """A minimiser, its dual, and how good it is.

    Parameters
    ----------
    W : array (N, D)
        Attributions, with exact zeros.
    Y : array (N, D)
        |Y| ≤ λ, near −∇q(W).
    gap : float
        The proven relative gap.
    """

    W: Attributions
    Y: Array
    gap: float


class LassoMethod(ABC):
    """A method that holds G, P and Q, and minimises for any weights."""

    @abstractmethod
    def minimum(self, lasso: LassoProblem, start: LassoOptimum | None) -> LassoOptimum:
        """The optimum, from that for weights nearby where one is given."""


def best_dual(W: Array, slope: Array, weight: float) -> Array:
    """The |Y| ≤ λ with the smallest proven gap at W, where q has this slope."""
    return np.clip(2.0 * W - slope, -weight, weight)


def proven_gap(W: Array, slope: Array, weight: float) -> float:
    """λ‖W‖₁ − ⟨Y, W⟩ + ‖∇q(W) + Y‖²/4 for the best Y."""
    Y = best_dual(W, slope, weight)
    excess = weight * float(np.abs(W).sum()) - float(np.vdot(Y, W))
    Y += slope
    return max(excess, 0.0) + 0.25 * float(np.vdot(Y, Y))
