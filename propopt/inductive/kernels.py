"""Similar inputs: covariances of points, as scikit-learn's kernels give them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from propopt._typing import Array, Points
from propopt.checks import read_nonnegative, read_positive
from propopt.errors import InvalidInput
from propopt.inductive.distances import cross_distances, typical_distance


_SEARCH = 100.0
"""A lengthscale is sought within this factor of where it starts."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PointKernel(ABC):
    """k(x, x') + jitter · [x and x' are the same point].

    Two rows with equal numbers are still two points: the jitter is that of
    ``KernelRobustness(K + jitter * np.eye(len(K)))``.

    Parameters
    ----------
    function : sklearn.gaussian_process.kernels.Kernel
        k. What it adds on the diagonal of ``k(X)`` alone (a ``WhiteKernel``) acts as
        jitter does.
    jitter : float
        At least zero.
    """

    function: Any
    jitter: float

    @abstractmethod
    def matrix(self, X: Points) -> Array:
        """K of the points X, shape (n, n), jitter included."""

    @abstractmethod
    def cross(self, X: Points, Z: Points) -> Array:
        """k(x, z) between different points, shape (n, m), without jitter."""

    def diagonal(self, X: Points) -> Array:
        """k(x, x) + jitter, shape (n,)."""
        return _finite(self.function.diag(X)) + self.jitter

    @property
    def theta(self) -> Array:
        """Logarithms of the free hyper-parameters."""
        return np.asarray(self.function.theta, dtype=np.float64)

    @property
    def bounds(self) -> Array:
        """Their limits, logarithms too, shape (len(theta), 2)."""
        return np.asarray(self.function.bounds, dtype=np.float64).reshape(-1, 2)

    def at(self, theta: Array) -> PointKernel:
        """This kernel with other hyper-parameters."""
        return replace(self, function=self.function.clone_with_theta(theta))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class AnyKernel(PointKernel):
    """A kernel of scikit-learn, as it computes itself."""

    def matrix(self, X: Points) -> Array:
        return _raised(_finite(self.function(X)), self.jitter)

    def cross(self, X: Points, Z: Points) -> Array:
        return _finite(self.function(X, Z))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RadialKernel(PointKernel):
    """A kernel of scikit-learn that depends on distances alone, given by its name."""

    def matrix(self, X: Points) -> Array:
        return _raised(self.cross(X, X), self.jitter)

    def cross(self, X: Points, Z: Points) -> Array:
        # a point at 0 and points at r on a line have the covariances k(r)
        apart = cross_distances(X, Z)
        on_a_line = self.function(np.zeros((1, 1)), apart.reshape(-1, 1))
        return _finite(on_a_line).reshape(apart.shape)


def read_kernel(
    kernel: object, lengthscale: object, points: Points, jitter: object
) -> PointKernel:
    """``"gaussian"``, ``"matern"`` (ν = 5/2) or a kernel of scikit-learn.

    A lengthscale of None is the median distance of different points, the rule of
    :func:`propopt.gaussian_graph`.
    """
    extra = read_nonnegative(jitter, "jitter")
    if isinstance(kernel, Kernel):
        return AnyKernel(function=_own(kernel, lengthscale, points), jitter=extra)
    if kernel not in ("gaussian", "matern"):
        raise InvalidInput(
            "kernel: expected 'gaussian', 'matern' or a scikit-learn kernel, got "
            f"{kernel!r}"
        )
    if lengthscale is None:
        lengthscale = typical_distance(points)
    length = read_positive(lengthscale, "lengthscale")
    limits = (length / _SEARCH, length * _SEARCH)
    if kernel == "gaussian":
        return RadialKernel(function=RBF(length, limits), jitter=extra)
    return RadialKernel(function=Matern(length, limits, nu=2.5), jitter=extra)


def _own(kernel: Any, lengthscale: object, points: Points) -> Any:
    """A copy of a kernel, refused with a lengthscale beside its own."""
    if lengthscale is not None:
        raise InvalidInput(
            "lengthscale: a kernel object has its own; give lengthscale=None"
        )
    _check_width(kernel, points)
    return clone(kernel)


def _check_width(kernel: Any, points: Points) -> None:
    """Refuse a kernel of another number of dimensions."""
    try:
        kernel(points[:1])
    except ValueError as error:
        raise InvalidInput(
            f"kernel: {error}; distances are measured in {points.shape[1]} columns"
        ) from None


def _finite(values: Any) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise InvalidInput(
            "kernel: some covariances are not finite; scale X or raise the lengthscale"
        )
    return array


def _raised(matrix: Array, jitter: float) -> Array:
    matrix[np.diag_indices_from(matrix)] += jitter
    return matrix
