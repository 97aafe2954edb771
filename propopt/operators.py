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
    def apply(self, w: Array, out: Array) -> None:
        """Write the product with one vector (N,) to ``out``.

        Memory that is given costs nothing; new memory of millions of entries costs more
        than the product itself.
        """

    @final
    def __matmul__(self, W: Array) -> Array:
        """The product with W, of shape (N,) or (N, k)."""
        columns = np.ascontiguousarray(W.T, dtype=np.float64).reshape(-1, self.size)
        products = np.empty_like(columns)
        for w, out in zip(columns, products, strict=True):
            self.apply(w, out)
        return products.T.reshape(W.shape)

    @final
    def toarray(self) -> Array:
        """The matrix, dense."""
        require_memory(16.0 * self.size**2, "a dense matrix of points", "use krylov")
        return self @ np.eye(self.size)


SLAB = 100_000  # entries


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

    def apply(self, w: Array, out: Array) -> None:
        block, product = w.reshape(self.box), out.reshape(self.box)
        # a slab of planes at a time: its passes run in cache, three times faster
        n_planes = max(1, SLAB * self.box[0] // self.size)
        for first in range(0, self.box[0], n_planes):
            self._slab(block, product, first, min(first + n_planes, self.box[0]))

    def _slab(self, block: Array, product: Array, first: int, last: int) -> None:
        """Planes ``first`` to ``last`` of the product."""
        slab = product[first:last]
        slab[...] = 0.0
        for axis in range(1, len(self.box)):
            step = np.diff(block[first:last], axis=axis)
            before = (slice(None),) * axis
            slab[(*before, slice(1, None))] += step
            slab[(*before, slice(None, -1))] -= step
        below = max(first - 1, 0)
        step = np.diff(block[below : last + 1], axis=0)
        slab[: len(step) - (first - below)] -= step[first - below :]
        slab[below + 1 - first :] += step[: last - 1 - below]
        slab *= 2.0


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

    def apply(self, w: Array, out: Array) -> None:
        # L w = diag(S1) w − S w with S = K − I: the diagonals cancel
        np.multiply(self.degrees, w, out=out)
        out -= self._kernel(w)
        out *= 2.0

    def _kernel(self, w: Array) -> Array:
        """K w, one axis after the other; each turns the block by one axis."""
        block = w.reshape([len(kernel) for kernel in self.kernels])
        for kernel in self.kernels:
            block = np.tensordot(block, kernel, axes=(0, 0))
        return block.ravel()
