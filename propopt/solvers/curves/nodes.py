"""Losses of the optimum from what the objective sees of G: masses at pairs (θ, ν).

With G = Σ ĝ u vᵀ over eigenvectors u of BᵀB (eigenvalue θ) and v of CᵀC (ν), the
optimum keeps the share h = a/(a + bθ + cν) of each part, so that with τ = ĝ²

    ‖W − G‖² = Σ τ (1 − h)²,   ‖B W‖² = Σ τ θ h²,   ‖W Cᵀ‖² = Σ τ ν h²,

and the optimum is Σ τ a (1 − h). A matrix BᵀB that is known to ΔP leaves the optimum to
within b ⟨W, ΔP W⟩: that is its slope.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from propopt._typing import Array


_DIGITS = 1e-13
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
        """The optimum is known to within this: b ‖W‖ ‖δθ W‖, its like, and its digits.

        For ⟨W, ΔP W⟩ ≤ ‖W‖ ‖ΔP W‖, where ΔP takes a unit eigenvector to at most δθ; W
        is the largest that it may be.
        """
        kept = self.tau * self._largest_share(abc) ** 2
        moved = sum(
            weight * _root_sum(kept * errors**2)
            for weight, errors in ((abc[1], self.theta_error), (abc[2], self.nu_error))
        )
        seen = np.maximum(self.theta_error, self.nu_error) > 0.0
        size = _root_sum(kept * seen)
        return 2.0 * size * moved + _DIGITS * self.optimum(abc)

    def losses_rounding(self, abc: Array) -> Array:
        """Each loss is known to within this; h to within h (b δθ + c δν)/(a + bθ + cν).

        Below that, losses cannot settle however long one goes on.
        """
        _, rest = self._shares(abc)
        h = self._largest_share(abc)
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

    def _largest_share(self, abc: Array) -> Array:
        """The share h where θ and ν are as small as they may be."""
        a, b, c = abc
        theta = np.maximum(self.theta - self.theta_error, 0.0)
        nu = np.maximum(self.nu - self.nu_error, 0.0)
        return np.asarray(a / (a + b * theta + c * nu))

    def _moved(self, abc: Array) -> Array:
        return abc[1] * self.theta_error + abc[2] * self.nu_error


def _root_sum(squares: Array) -> float:
    return float(np.sqrt(squares.sum()))


NO_NODES = Nodes(*(np.zeros(0) for _ in range(5)))
