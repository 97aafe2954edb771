"""What the error of an estimated target costs, from blocks of its draws.

For the target Ĝ = G + E the optimum Ŵ = W(Ĝ) has, measured with the true target, the
excess

    F_G(Ŵ) − F_G* = a² ⟨E, H⁻¹E⟩

where F is quadratic, and at most this with any further convex term, constraints on W
included. For F_Ĝ(V) ≥ F_Ĝ(Ŵ) + ⟨Δ, HΔ⟩ with Δ = V − Ŵ, and F_G − F_Ĝ is linear in V
with the slope 2aE, so that F_G(V) − F_G(Ŵ) ≥ ⟨Δ, HΔ⟩ + 2a⟨E, Δ⟩ ≥ −a²⟨E, H⁻¹E⟩.

Blocks Ĝ_b of draws, each unbiased, have the mean Ĝ. With their Gram matrix

    K_bc = a² ⟨Ĝ_b − Ĝ, H⁻¹(Ĝ_c − Ĝ)⟩

the excess is expected to be tr K/(B(B − 1)), however errors of different points go
together. It is a sum of squares Σ λ z², z ~ N(0, 1), which varies about its expectation
as χ²_ν/ν with ν = (Σ λ)²/Σ λ² (Satterthwaite 1946): the fewer degrees ν, the more the
errors are one and the same everywhere. K has n = B − 1 of them to each of the excess,
and independent ones, so that excess/(tr K/(B n)) ~ F(ν, nν). Both sums are unbiased:

    E tr² S = (Σ λ)² + 2 Σ λ²/n,  E tr S² = (1 + 1/n) Σ λ² + (Σ λ)²/n,  S = K/n.

Where K is too much work, the energies of n = B − 1 combinations of blocks are enough
(:func:`contrasts`): these have the mean tr K/n, and the variance 2 Σ λ².
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.special import fdtri

from propopt._typing import Array
from propopt.curvature.hessian import Diagonalized, Iterated, QuadraticPart
from propopt.curvature.inverse import Hessian


_LEVEL = 0.95
"""Of the interval in which the excess is to be expected."""

MOST_DEGREES = 1e6
"""Beyond these the excess is its expectation to within 0.3 %."""


@final
@dataclass(frozen=True, kw_only=True)
class Excess:
    """An estimate of a² ⟨E, H⁻¹E⟩, and how it varies.

    Parameters
    ----------
    value : float
        What is to be expected.
    spread : float
        The standard error of ``value``, by leaving out one block at a time; NaN for two
        blocks.
    degrees : float
        ν ≥ 1: the excess varies about its expectation as χ²_ν/ν.
    n_blocks : int
        B.
    """

    value: float
    spread: float
    degrees: float
    n_blocks: int

    @classmethod
    def of(cls, gram: Array) -> Excess:
        """From K (B, B), the Gram matrix of the deviations of the blocks."""
        n = len(gram) - 1
        return cls(
            value=float(np.trace(gram)) / (n * (n + 1)),
            spread=_spread(np.diag(gram)),
            degrees=_degrees(gram / n, n),
            n_blocks=n + 1,
        )

    @classmethod
    def of_energies(cls, energies: Array) -> Excess:
        """From a² ⟨E, H⁻¹E⟩ of the n contrasts of n + 1 blocks."""
        n, mean = len(energies), float(energies.mean())
        variance = float(energies.var(ddof=1)) if n > 1 else math.inf
        least = 2.0 * mean**2 / MOST_DEGREES
        return cls(
            value=mean / (n + 1),
            spread=math.sqrt(variance / n) / (n + 1) if n > 1 else math.nan,
            degrees=max(2.0 * mean**2 / max(variance, least), 1.0) if mean else 1.0,
            n_blocks=n + 1,
        )

    @property
    def interval(self) -> tuple[float, float]:
        """Where the excess of this very estimate lies with a probability of 95 %."""
        low, high = ratio_interval(self.degrees, self.n_blocks)
        return self.value * low, self.value * high


def ratio_interval(degrees: float, n_blocks: int) -> tuple[float, float]:
    """Quantiles of excess/expectation ~ F(ν, (B − 1)ν), symmetric in probability.

    Examples
    --------
    >>> low, high = ratio_interval(20.0, 10)
    >>> round(low, 2), round(high, 2)
    (0.47, 1.79)
    """
    tail = (1.0 - _LEVEL) / 2.0
    below = degrees * (n_blocks - 1)
    low, high = fdtri(degrees, below, np.array([tail, 1.0 - tail])).tolist()
    return low, high


def _spread(energies: Array) -> float:
    """√((B−1)/B Σ (ê_(b) − mean)²), where leaving out b takes K_bb B/(B−1) of tr K."""
    B = len(energies)
    if B < 3:
        return math.nan
    scatter = float(((energies - energies.mean()) ** 2).sum())
    return float(np.sqrt(scatter / (B * (B - 1)))) / (B - 2)


def _degrees(S: Array, n: int) -> float:
    """ν = (Σ λ)²/Σ λ² of n deviations, 1 or more; 1 for a single deviation."""
    if n < 2:
        return 1.0
    trace, squares = float(np.trace(S)), float((S**2).sum())
    own = (squares - trace**2 / n) * n**2 / ((n - 1) * (n + 2))  # Σ λ²
    smallest = trace**2 / MOST_DEGREES
    return max((trace**2 - 2.0 * own / n) / max(own, smallest), 1.0) if trace else 1.0


def contrasts(n_blocks: int) -> Array:
    """B − 1 orthonormal combinations of B blocks that leave out their mean, (B − 1, B).

    Of independent blocks they are independent, and each varies as a block does.

    Examples
    --------
    >>> C = contrasts(3)
    >>> bool(np.allclose(C @ C.T, np.eye(2)) and np.allclose(C @ np.ones(3), 0.0))
    True
    """
    # Helmert: each block against those before it
    rows = np.tril(np.ones((n_blocks - 1, n_blocks)))
    places = np.arange(1, n_blocks)
    rows[places - 1, places] = -places
    return np.asarray(rows / np.sqrt(places * (places + 1.0))[:, None])


@final
class Scatter:
    """The blocks of a target, as the quadratic part of an objective sees them.

    Parameters
    ----------
    part : QuadraticPart
        The squared losses.
    blocks : array (B, N, D)
        Ĝ_b.
    energy : callable, optional
        E (N, D) to what gives a² ⟨E, H⁻¹E⟩ for any weights, where that is cheap.
    """

    def __init__(
        self,
        part: QuadraticPart,
        blocks: Array,
        energy: Callable[[Array], Callable[[Array], float]] | None = None,
    ) -> None:
        self._part = part
        self._energy = energy
        self._deviations = blocks - blocks.mean(axis=0)
        self._coefficients: Array | None = None

    def excess(self, a: float, weights: Array) -> Excess:
        """What the error of the mean of the blocks costs."""
        if self._energies is None:
            return Excess.of(self.gram(a, weights))
        energies = [energy(weights) for energy in self._energies]
        return Excess.of_energies(np.array(energies))

    @cached_property
    def _energies(self) -> list[Callable[[Array], float]] | None:
        """Of each contrast, for any weights."""
        if self._energy is None:
            return None
        rows = contrasts(len(self._deviations))
        return [self._energy(np.tensordot(row, self._deviations, 1)) for row in rows]

    def gram(self, a: float, weights: Array) -> Array:
        """K_bc = a² ⟨Ĝ_b − Ĝ, H⁻¹(Ĝ_c − Ĝ)⟩, shape (B, B)."""
        H = self._part.hessian(weights)
        if isinstance(H, Diagonalized):
            # ⟨D_b, H⁻¹D_c⟩ = Σ (UᵀD_bV)(UᵀD_cV)/h
            Z = (self._turned(H) / np.sqrt(H.values)).reshape(len(self._deviations), -1)
            return np.asarray(a**2 * (Z @ Z.T))
        flat = self._deviations.reshape(len(self._deviations), -1)
        K = a * flat @ self.moved(a, H).reshape(len(flat), -1).T
        return np.asarray((K + K.T) / 2.0)

    def standard_errors(self, a: float, weights: Array) -> Array:
        """Of W(Ĝ), (N, D), where F is quadratic: between-block scatter of W(Ĝ_b)/√B."""
        moved = self.moved(a, self._part.hessian(weights))
        B = len(moved)
        return np.asarray(np.sqrt((moved**2).sum(axis=0) / (B * (B - 1))))

    def moved(self, a: float, H: Hessian) -> Array:
        """W(Ĝ_b) − W(Ĝ) = a H⁻¹(Ĝ_b − Ĝ), shape (B, N, D)."""
        near = H.roughly if isinstance(H, Iterated) else H
        return np.stack([a * near.solve(D) for D in self._deviations])

    def _turned(self, H: Diagonalized) -> Array:
        # the eigenbases of a part are the same for all weights
        if self._coefficients is None:
            self._coefficients = np.stack([H.turned(D) for D in self._deviations])
        return self._coefficients
