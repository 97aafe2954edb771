"""Symmetric matrices known by their action alone, for graphs too large to store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.memory import require_memory


class Operator(ABC):
    """A symmetric positive semidefinite matrix (N, N) with ``@``."""

    @property
    @abstractmethod
    def size(self) -> int:
        """N."""

    @property
    def shape(self) -> tuple[int, int]:
        """(N, N)."""
        return self.size, self.size

    @property
    @abstractmethod
    def largest(self) -> float:
        """An upper bound of the largest eigenvalue."""

    @abstractmethod
    def apply(self, w: Array) -> Array:
        """The product with one vector (N,)."""

    @final
    def __matmul__(self, W: Array) -> Array:
        """The product with W, of shape (N,) or (N, k)."""
        if W.ndim == 1:
            return self.apply(W)
        # a column at a time, and contiguous: the work is bound by memory traffic
        columns = [self.apply(np.ascontiguousarray(column)) for column in W.T]
        return np.stack(columns, axis=1)

    @final
    def toarray(self) -> Array:
        """The matrix, dense."""
        require_memory(16.0 * self.size**2, "a dense matrix of points", "use krylov")
        return self @ np.eye(self.size)


@final
@dataclass(frozen=True)
class LatticeLaplacian(Operator):
    """2L of a box of lattice points in row-major order, neighbours at similarity one.

    The product costs two passes over W per axis; nothing is stored.
    """

    box: tuple[int, ...]

    @property
    def size(self) -> int:
        return int(np.prod(self.box))

    @property
    def largest(self) -> float:
        return 8.0 * len(self.box)  # no node has more than two neighbours per axis

    def apply(self, w: Array) -> Array:
        block = w.reshape(self.box)
        product = np.zeros_like(block)
        for axis in range(len(self.box)):
            step = np.diff(block, axis=axis)
            ahead, behind = _halves(axis)
            product[ahead] += step
            product[behind] -= step
        product *= 2.0
        return product.reshape(w.shape)


def _halves(axis: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """All but the first, and all but the last, along one axis."""
    before = (slice(None),) * axis
    return (*before, slice(1, None)), (*before, slice(None, -1))


@final
@dataclass(frozen=True, eq=False)
class ProductKernelLaplacian(Operator):
    """2L of similarities s(x, x') = Π_d k_d(x_d, x'_d) on a product grid, x ≠ x'.

    The kernel matrix is the Kronecker product of one small matrix per axis, so a
    product costs O(N Σ n_d) and nothing of size N² is formed.

    Parameters
    ----------
    kernels : tuple of arrays (n_d, n_d)
        k_d with ones on the diagonal, in the order of the axes; row-major points.
    """

    kernels: tuple[Array, ...]

    @property
    def size(self) -> int:
        return int(np.prod([len(kernel) for kernel in self.kernels]))

    @property
    def largest(self) -> float:
        return float(4.0 * (self.degrees.max() - 1.0))

    @cached_property
    def degrees(self) -> Array:
        """Row sums of the kernel matrix, its diagonal included, shape (N,)."""
        sums = np.ones(1)
        for kernel in self.kernels:
            sums = np.multiply.outer(sums, kernel.sum(axis=1)).ravel()
        return sums

    def apply(self, w: Array) -> Array:
        # L w = diag(S1) w − S w with S = K − I: the diagonals cancel
        product = self.degrees * w
        product -= self._kernel(w)
        product *= 2.0
        return product

    def _kernel(self, w: Array) -> Array:
        """K w, one axis after the other; each turns the block by one axis."""
        block = w.reshape([len(kernel) for kernel in self.kernels])
        for kernel in self.kernels:
            block = np.tensordot(block, kernel, axes=(0, 0))
        return block.ravel()
