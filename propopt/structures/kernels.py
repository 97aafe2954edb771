"""Kernels at centers, with scores as weighted sums, and gaussian class densities.

A kernel is evaluated for all pairs of points and centers, and comes with the
pullback of that matrix: cotangents C (n, M) to Σ_m C_nm ∂k(x_n, z_m)/∂x_n (n, D), by
products of matrices and never by an array (n, M, D).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist

from propopt.base.arrays import Array, Points
from propopt.structures.scores import Network, Pullback


# ---- Kernels at centers, of which weighted sums are scores


class Kernel(ABC):
    """A differentiable kernel k(x, z) of two points."""

    @abstractmethod
    def linearized(self, points: Points, centers: Array) -> tuple[Array, Pullback]:
        """The kernel matrix k(x_n, z_m), (N, M), and its pullback to the points."""

    @property
    def n_parts(self) -> int:
        """The number of elementary kernels in it, including itself."""
        return 1


@dataclass(frozen=True)
class Radial(Kernel):
    """A kernel of the scaled distance, k(x, z) = φ(‖(x − z) / ℓ‖²)."""

    shape: str  # a key of RADIAL
    lengthscale: Any  # ℓ: a number, or an array (D,)

    def linearized(self, points: Points, centers: Array) -> tuple[Array, Pullback]:
        """The kernel matrix, and the pullback Σ_m C_nm 2φ′_nm (x_n − z_m) / ℓ²."""
        origin = centers.mean(axis=0)  # differences of small numbers keep their digits
        x = (points - origin) / self.lengthscale
        z = (centers - origin) / self.lengthscale
        values, slopes = RADIAL[self.shape](cdist(x, z, "sqeuclidean"))

        def pullback(cotangents: Array) -> Array:
            pulls = 2.0 * cotangents * slopes
            return (x * pulls.sum(axis=1, keepdims=True) - pulls @ z) / self.lengthscale

        return values, pullback


@dataclass(frozen=True)
class InnerProduct(Kernel):
    """A kernel of the inner product, k(x, z) = ψ(xᵀz)."""

    shape: str  # a key of INNER_PRODUCTS
    settings: tuple[float, ...]  # further parameters of ψ

    def linearized(self, points: Points, centers: Array) -> tuple[Array, Pullback]:
        """The kernel matrix, and the pullback Σ_m C_nm ψ′_nm z_m."""
        values, slopes = INNER_PRODUCTS[self.shape](points @ centers.T, *self.settings)
        return values, lambda cotangents: (cotangents * slopes) @ centers


_Both: TypeAlias = tuple[Array, Array]


def _gaussian(s: Array) -> _Both:
    values = np.exp(-0.5 * s)
    return values, -0.5 * values


def _matern32(s: Array) -> _Both:
    t = np.sqrt(3.0 * s)
    decay = np.exp(-t)
    return (1.0 + t) * decay, -1.5 * decay


def _matern52(s: Array) -> _Both:
    t = np.sqrt(5.0 * s)
    decay = np.exp(-t)
    return (1.0 + t + t * t / 3.0) * decay, -5.0 / 6.0 * (1.0 + t) * decay


RADIAL: Final[Mapping[str, Callable[[Array], _Both]]] = {
    "gaussian": _gaussian,  # exp(−s/2)
    "Matérn 3/2": _matern32,  # (1 + t) exp(−t), t = √(3s)
    "Matérn 5/2": _matern52,  # (1 + t + t²/3) exp(−t), t = √(5s)
}
"""φ and φ′ as functions of the squared scaled distance s."""


def _polynomial(p: Array, gamma: float, offset: float, degree: float) -> _Both:
    base = gamma * p + offset
    return base**degree, degree * gamma * base ** (degree - 1)


def _constant(p: Array, constant: float) -> _Both:
    return np.full(p.shape, constant), np.zeros(p.shape)


INNER_PRODUCTS: Final[Mapping[str, Callable[..., _Both]]] = {
    "polynomial": _polynomial,  # (γ p + c)^degree
    "constant": _constant,  # c; white noise is 0 off the data, so that c = 0
}
"""ψ and ψ′ as functions of the inner product p."""


@dataclass(frozen=True)
class KernelPair(Kernel):
    """The sum of two kernels, or their product."""

    first: Kernel
    second: Kernel
    is_product: bool

    @property
    def n_parts(self) -> int:
        return 1 + self.first.n_parts + self.second.n_parts

    def linearized(self, points: Points, centers: Array) -> tuple[Array, Pullback]:
        """The kernel matrix, and the sum of both pullbacks, or the product rule."""
        first, through_first = self.first.linearized(points, centers)
        second, through_second = self.second.linearized(points, centers)
        if not self.is_product:
            return first + second, lambda C: through_first(C) + through_second(C)
        return first * second, (
            lambda C: through_first(C * second) + through_second(C * first)
        )


@dataclass(frozen=True)
class KernelFeatures(Network):
    """Features k_m(x) = k(x, z_m), of which kernel machines are affine functions."""

    kernel: Kernel  # k
    # (M, D): the points z_m: support vectors, training points or landmarks
    centers: Array

    @property
    def n_scores(self) -> int:
        return len(self.centers)

    @property
    def width(self) -> int:
        """Four numbers for each center and each part of the kernel."""
        return 4 * len(self.centers) * self.kernel.n_parts

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """The kernel matrix, and the map C ↦ Σ_m C_nm ∂k(x_n, z_m)/∂x_n."""
        return self.kernel.linearized(points, self.centers)


# ---- Log-densities of gaussian classes, up to a common term


@dataclass(frozen=True)
class GaussianClasses(Network):
    """Log-densities of gaussian classes, z_k(x) = −½ ‖B_kᵀ(x − μ_k)‖² + c_k."""

    means: Array  # (K, D): μ_k
    # (D, R_k): B_k, with B_k B_kᵀ the precision of class k; (D,) of a diagonal one
    whitenings: tuple[Array, ...]
    offsets: Array  # (K,): c_k

    @property
    def n_scores(self) -> int:
        return len(self.offsets)

    @property
    def width(self) -> int:
        """The whitened points of all classes, and twice as much for one class."""
        return sum(B.shape[-1] for B in self.whitenings) + 2 * self.means.shape[1]

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scores, and the map C ↦ −Σ_k C_nk B_k B_kᵀ (x_n − μ_k)."""
        whitened = [
            (points - mean) @ B if B.ndim == 2 else (points - mean) * B
            for mean, B in zip(self.means, self.whitenings, strict=True)
        ]
        squares = np.stack([(white**2).sum(axis=1) for white in whitened], axis=1)

        def pullback(cotangents: Array) -> Array:
            pulled = np.zeros(points.shape)
            for k, (white, B) in enumerate(zip(whitened, self.whitenings, strict=True)):
                pull = cotangents[:, [k]] * white
                pulled -= pull @ B.T if B.ndim == 2 else pull * B
            return pulled

        return self.offsets - 0.5 * squares, pullback
