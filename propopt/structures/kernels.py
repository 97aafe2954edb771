"""Scores that are sums of kernels at centers, and densities of classes.

A kernel is evaluated for all pairs of points and centers at once, and comes with the
pullback of that matrix: cotangents C (n, M) to Σ_m C_nm ∂k(x_n, z_m)/∂x_n (n, D), by
products of matrices and never by an array (n, M, D).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.spatial.distance import cdist

from propopt.base.arrays import Array, Points
from propopt.structures.networks import Network, Pullback


# ---- Scores that are weighted sums of a kernel at centers, z(x) = Σ_m k(x, z_m) a_m +
# b


class Kernel(ABC):
    """A differentiable kernel k(x, z)."""

    @abstractmethod
    def linearized(self, points: Points, centers: Array) -> tuple[Array, Pullback]:
        """The matrix k(x_n, z_m), shape (n, M), and its pullback to the points."""

    @property
    def n_parts(self) -> int:
        """How many kernels it is made of, itself among them."""
        return 1


class Radial(Kernel):
    """A kernel of the scaled distance, k(x, z) = φ(‖(x − z) / ℓ‖²).

    Subclasses have ``lengthscale``, a number or an array (D,), and give φ and φ′.
    """

    lengthscale: Any

    @abstractmethod
    def profile(self, squares: Array) -> tuple[Array, Array]:
        """φ and φ′ at squared distances."""

    @final
    def linearized(self, points: Points, centers: Array) -> tuple[Array, Pullback]:
        """The matrix, and Σ_m C_nm 2φ′_nm (x_n − z_m) / ℓ²."""
        origin = centers.mean(axis=0)  # differences of small numbers keep their digits
        x = (points - origin) / self.lengthscale
        z = (centers - origin) / self.lengthscale
        values, slopes = self.profile(cdist(x, z, "sqeuclidean"))

        def pullback(cotangents: Array) -> Array:
            pulls = 2.0 * cotangents * slopes
            return (x * pulls.sum(axis=1, keepdims=True) - pulls @ z) / self.lengthscale

        return values, pullback


@dataclass(frozen=True)
class Gaussian(Radial):
    """The squared exponential, φ(s) = exp(−s/2)."""

    lengthscale: Any

    def profile(self, squares: Array) -> tuple[Array, Array]:
        values = np.exp(-0.5 * squares)
        return values, -0.5 * values


@dataclass(frozen=True)
class Matern32(Radial):
    """Matérn with ν = 3/2, φ(s) = (1 + t) exp(−t), t = √(3s), φ′ = −3/2 exp(−t)."""

    lengthscale: Any

    def profile(self, squares: Array) -> tuple[Array, Array]:
        t = np.sqrt(3.0 * squares)
        decay = np.exp(-t)
        return (1.0 + t) * decay, -1.5 * decay


@dataclass(frozen=True)
class Matern52(Radial):
    """Matérn with ν = 5/2, φ(s) = (1 + t + t²/3) exp(−t), t = √(5s).

    Its slope is φ′ = −5/6 (1 + t) exp(−t).
    """

    lengthscale: Any

    def profile(self, squares: Array) -> tuple[Array, Array]:
        t = np.sqrt(5.0 * squares)
        decay = np.exp(-t)
        return (1.0 + t + t * t / 3.0) * decay, -5.0 / 6.0 * (1.0 + t) * decay


@dataclass(frozen=True)
class RationalQuadratic(Radial):
    """A mixture of gaussians, φ(s) = (1 + s / 2α)^(−α)."""

    lengthscale: Any
    alpha: float

    def profile(self, squares: Array) -> tuple[Array, Array]:
        base = 1.0 + squares / (2.0 * self.alpha)
        values = base**-self.alpha
        return values, -0.5 * values / base


@dataclass(frozen=True)
class Periodic(Radial):
    """A periodic kernel, φ(s) = exp(−2 sin²(π r / p) / w²), r = √s."""

    width: float
    period: float
    lengthscale: Any = 1.0

    def profile(self, squares: Array) -> tuple[Array, Array]:
        # φ′ = −(π / p w²) φ sin(2πr/p) / r,  and sin(2πr/p) / r = (2π/p) sinc(2r/p)
        r = np.sqrt(squares)
        values = np.exp(-2.0 * (np.sin(np.pi * r / self.period) / self.width) ** 2)
        rate = 2.0 * (np.pi / (self.period * self.width)) ** 2
        return values, -rate * values * np.sinc(2.0 * r / self.period)


class InnerProduct(Kernel):
    """A kernel of the inner product, k(x, z) = ψ(xᵀz)."""

    @abstractmethod
    def profile(self, products: Array) -> tuple[Array, Array]:
        """ψ and ψ′ at inner products."""

    @final
    def linearized(self, points: Points, centers: Array) -> tuple[Array, Pullback]:
        """The matrix, and Σ_m C_nm ψ′_nm z_m."""
        values, slopes = self.profile(points @ centers.T)
        return values, lambda cotangents: (cotangents * slopes) @ centers


@dataclass(frozen=True)
class Linear(InnerProduct):
    """The inner product itself, ψ(p) = p + c."""

    offset: float = 0.0

    def profile(self, products: Array) -> tuple[Array, Array]:
        return products + self.offset, np.ones(products.shape)


@dataclass(frozen=True)
class Polynomial(InnerProduct):
    """A power, ψ(p) = (γ p + c)^degree."""

    gamma: float
    offset: float
    degree: float

    def profile(self, products: Array) -> tuple[Array, Array]:
        base = self.gamma * products + self.offset
        return base**self.degree, self.degree * self.gamma * base ** (self.degree - 1)


@dataclass(frozen=True)
class Tanh(InnerProduct):
    """The "sigmoid" kernel, ψ(p) = tanh(γ p + c)."""

    gamma: float
    offset: float

    def profile(self, products: Array) -> tuple[Array, Array]:
        values = np.tanh(self.gamma * products + self.offset)
        return values, self.gamma * (1.0 - values * values)


@dataclass(frozen=True)
class Constant(Kernel):
    """The same for every pair, k = c; also white noise, which is 0 off the data."""

    constant: float

    def linearized(self, points: Points, centers: Array) -> tuple[Array, Pullback]:
        """The matrix, and zeros."""
        values = np.full((len(points), len(centers)), self.constant)
        return values, lambda _: np.zeros(points.shape)


@dataclass(frozen=True)
class KernelSum(Kernel):
    """The sum of two kernels."""

    first: Kernel
    second: Kernel

    @property
    def n_parts(self) -> int:
        return 1 + self.first.n_parts + self.second.n_parts

    def linearized(self, points: Points, centers: Array) -> tuple[Array, Pullback]:
        """The matrix, and the sum of both pullbacks."""
        first, through_first = self.first.linearized(points, centers)
        second, through_second = self.second.linearized(points, centers)
        return first + second, lambda C: through_first(C) + through_second(C)


@dataclass(frozen=True)
class KernelProduct(Kernel):
    """The product of two kernels."""

    first: Kernel
    second: Kernel

    @property
    def n_parts(self) -> int:
        return 1 + self.first.n_parts + self.second.n_parts

    def linearized(self, points: Points, centers: Array) -> tuple[Array, Pullback]:
        """The matrix, and the product rule."""
        first, through_first = self.first.linearized(points, centers)
        second, through_second = self.second.linearized(points, centers)

        def pullback(cotangents: Array) -> Array:
            return through_first(cotangents * second) + through_second(
                cotangents * first
            )

        return first * second, pullback


@dataclass(frozen=True)
class KernelPower(Kernel):
    """A power of a kernel, k^p."""

    kernel: Kernel
    exponent: float

    @property
    def n_parts(self) -> int:
        return 1 + self.kernel.n_parts

    def linearized(self, points: Points, centers: Array) -> tuple[Array, Pullback]:
        """The matrix, and the chain rule with p k^(p − 1)."""
        base, through_base = self.kernel.linearized(points, centers)
        slopes = self.exponent * base ** (self.exponent - 1.0)
        return base**self.exponent, lambda C: through_base(C * slopes)


@dataclass(frozen=True)
class KernelMachine(Network):
    """Scores z(x) = A k(x) + b with k_m(x) = k(x, z_m)."""

    kernel: Kernel  # k
    # (M, D): the points z_m: support vectors, training points or landmarks
    centers: Array
    weights: Array  # (K, M): the matrix A
    intercepts: Array  # (K,): the vector b

    @property
    def n_scores(self) -> int:
        return len(self.weights)

    @property
    def width(self) -> int:
        """Four numbers for each center and each part of the kernel, and the scores."""
        return 4 * len(self.centers) * self.kernel.n_parts + self.n_scores

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scores, and the map C ↦ Σ_m (C A)_nm ∂k(x_n, z_m)/∂x_n."""
        matrix, through_kernel = self.kernel.linearized(points, self.centers)
        scores = matrix @ self.weights.T + self.intercepts
        return scores, lambda cotangents: through_kernel(cotangents @ self.weights)


# ---- Log-densities of gaussian classes, up to what all classes share


@dataclass(frozen=True)
class GaussianClasses(Network):
    """Classes with covariances of their own, z_k(x) = −½ ‖B_kᵀ(x − μ_k)‖² + c_k."""

    means: Array  # (K, D): μ_k
    # (D, R_k): b_k, with B_k B_kᵀ the precision of class k
    whitenings: tuple[Array, ...]
    offsets: Array  # (K,): c_k

    @property
    def n_scores(self) -> int:
        """The number K of classes."""
        return len(self.offsets)

    @property
    def width(self) -> int:
        """Points as each class sees them, and one of these twice more."""
        return sum(B.shape[1] for B in self.whitenings) + 2 * self.means.shape[1]

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scores, and the map C ↦ −Σ_k C_nk B_k B_kᵀ (x_n − μ_k)."""
        whitened = [
            (points - mean) @ B
            for mean, B in zip(self.means, self.whitenings, strict=True)
        ]
        squares = np.stack([(white**2).sum(axis=1) for white in whitened], axis=1)

        def pullback(cotangents: Array) -> Array:
            pulled = np.zeros(points.shape)
            for k, (white, B) in enumerate(zip(whitened, self.whitenings, strict=True)):
                pulled -= (cotangents[:, [k]] * white) @ B.T
            return pulled

        return self.offsets - 0.5 * squares, pullback


@dataclass(frozen=True)
class IndependentGaussians(Network):
    """Classes of independent features, z_k(x) = −½ Σ_d P_kd (x_d − μ_kd)² + c_k."""

    means: Array  # (K, D): μ
    precisions: Array  # (K, D): P
    offsets: Array  # (K,): c

    @property
    def n_scores(self) -> int:
        """The number K of classes."""
        return len(self.offsets)

    @property
    def width(self) -> int:
        """The scores, and one set of differences."""
        return self.n_scores + 2 * self.means.shape[1]

    def scores(self, points: Points) -> Array:
        squares = [
            ((points - mean) ** 2) @ precision
            for mean, precision in zip(self.means, self.precisions, strict=True)
        ]
        return self.offsets - 0.5 * np.stack(squares, axis=1)

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scores, and the map C ↦ C (P ∘ μ) − x ∘ (C P)."""
        weighted = self.precisions * self.means

        def pullback(cotangents: Array) -> Array:
            return cotangents @ weighted - points * (cotangents @ self.precisions)

        return self.scores(points), pullback
