"""Losses of the optimum from what the objective sees of G: masses at pairs (θ, ν).

With G = Σ ĝ u vᵀ over eigenvectors u of KᵀK (eigenvalue θ) and v of CᵀC (ν), the
optimum keeps the share h = a/(a + bθ + cν) of each part, so that with τ = ĝ²

    ‖W − G‖² = Σ τ (1 − h)²,   ‖K W‖² = Σ τ θ h²,   ‖W Cᵀ‖² = Σ τ ν h²,

and the optimum is Σ τ a (1 − h). An eigenvalue θ that is known to ±δ leaves the optimum
to ±b δ τ h²: that is its slope, ∂/∂θ τ a (1 − h) = b τ h².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from propopt._typing import Array


DIGITS = 1e-13
"""Masses are sums of many products: relative to them, they are known to within this."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Masses τ at nodes (θ, ν), and to what the nodes are known; arrays that broadcast.

    Parameters
    ----------
    theta, nu : array
        Eigenvalues over points and over features, ≥ 0; what costs nothing is at zero.
    tau : array
        The masses, which add up to ‖G‖².
    theta_error, nu_error : array
        θ and ν are known to within these; zero for constants.
    """

    theta: Array
    nu: Array
    tau: Array
    theta_error: Array
    nu_error: Array

    @classmethod
    def joined(cls, rules: Sequence[Nodes]) -> Nodes:
        """All nodes of some rules of one axis."""
        parts = zip(*(vars(rule).values() for rule in rules), strict=True)
        return cls(*map(np.concatenate, parts))

    def losses(self, abc: Array) -> Array:
        """Matching, over-points and over-features loss."""
        h, rest = self._shares(abc)
        kept = self.tau * h**2
        return np.array(
            [
                (self.tau * rest**2).sum(),
                (kept * self.theta).sum(),
                (kept * self.nu).sum(),
            ]
        )

    def optimum(self, abc: Array) -> float:
        """Σ τ a (1 − h): the smallest objective."""
        return float(abc[0] * (self.tau * self._shares(abc)[1]).sum())

    def rounding(self, abc: Array) -> float:
        """The optimum is known to within this: Σ τ h² (b δθ + c δν), and its digits."""
        h, _ = self._shares(abc)
        moved = float((self.tau * h**2 * self._moved(abc)).sum())
        return moved + DIGITS * self.optimum(abc)

    def losses_rounding(self, abc: Array) -> Array:
        """Each loss is known to within this; h to within h (b δθ + c δν)/(a + bθ + cν).

        Below that, losses cannot settle however long one goes on.
        """
        h, rest = self._shares(abc)
        moved = self._moved(abc) * h / abc[0]
        kept = self.tau * h**2
        return np.array(
            [
                (2.0 * self.tau * rest * h * moved).sum(),
                (kept * (self.theta_error + 2.0 * self.theta * moved)).sum(),
                (kept * (self.nu_error + 2.0 * self.nu * moved)).sum(),
            ]
        )

    def _shares(self, abc: Array) -> tuple[Array, Array]:
        """h, and 1 − h without cancellation."""
        a, b, c = abc
        stiffness = b * self.theta + c * self.nu
        h = a / (a + stiffness)
        return h, stiffness / a * h

    def _moved(self, abc: Array) -> Array:
        return abc[1] * self.theta_error + abc[2] * self.nu_error


NO_NODES = Nodes(*(np.zeros(0) for _ in range(5)))
