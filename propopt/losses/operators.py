"""Symmetric matrices as linear operators, for graphs too large to store."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import scipy.fft

from propopt.base.arrays import Array
from propopt.base.resources import require_memory
from propopt.base.text import shared
from propopt.losses.linear_algebra import EPSILON, SLAB


class Operator(ABC):
    """A symmetric positive semidefinite matrix (N, N) with ``@``."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of rows N."""

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (N, N) of the matrix."""
        return self.size, self.size

    @property
    @abstractmethod
    def largest(self) -> float:
        """An upper bound of the largest eigenvalue."""

    @abstractmethod
    def apply(self, w: Array, out: Array) -> None:
        """Write the product with one vector (N,) to ``out``, without new memory."""

    @abstractmethod
    def energy(self, w: Array) -> float:
        """The form wᵀ P w of a vector (N,), as a sum of squared differences."""

    @property
    def rounding(self) -> float:
        """A bound of ‖δ‖/‖w‖ for the rounding error δ of the product P w."""
        return EPSILON * self.largest

    def __matmul__(self, W: Array) -> Array:
        """The product with W, of shape (N,) or (N, k)."""
        columns = np.ascontiguousarray(W.T, dtype=np.float64).reshape(-1, self.size)
        products = np.empty_like(columns)
        for w, out in zip(columns, products, strict=True):
            self.apply(w, out)
        return products.T.reshape(W.shape)

    @final
    def toarray(self) -> Array:
        """The operator as a dense matrix (N, N)."""
        require_memory(16.0 * self.size**2, "a dense matrix of points", "use krylov")
        return self @ np.eye(self.size)


@final
@dataclass(frozen=True)
class LatticeLaplacian(Operator):
    """The Laplacian 2L of a box of points, with neighbours along each axis.

    Points are in row-major order.

    Its eigenvectors are products of cosines, one for each axis.
    """

    box: tuple[int, ...]
    # similarity of neighbours along each axis; ones by default
    weights: tuple[float, ...] = ()

    @cached_property
    def axes(self) -> list[tuple[int, float]]:
        """Axes with edges: index and similarity."""
        weights = self.weights or (1.0,) * len(self.box)
        return [
            (axis, weight)
            for axis, (n, weight) in enumerate(zip(self.box, weights, strict=True))
            if n > 1 and weight > 0.0
        ]

    @property
    def size(self) -> int:
        return int(np.prod(self.box))

    @property
    def largest(self) -> float:
        # no node has more than two neighbours per axis
        return 8.0 * sum(weight for _, weight in self.axes)

    def __matmul__(self, W: Array) -> Array:
        vectors = np.ascontiguousarray(W, dtype=np.float64)
        product = np.empty_like(vectors)
        self.apply(vectors, product)
        return product

    def apply(self, w: Array, out: Array) -> None:
        """Write the product with w, (N,) or (N, k), to ``out``."""
        shape = (*self.box, w.size // self.size)
        block = w.reshape(shape)
        product = out.reshape(shape)
        for first, last in self._slabs(w.size):
            self._slab(block, product, first, last)

    def energy(self, w: Array) -> float:
        """The form wᵀ P w of w, (N,) or (N, k), as a sum of squared differences."""
        block = w.reshape(*self.box, w.size // self.size)
        return 2.0 * math.fsum(
            weight * float(np.vdot(step, step))
            for first, last in self._slabs(w.size)
            for weight, step in self._steps(block, first, last)
        )

    def product_rounding(self, energy: float) -> float:
        """A bound of ‖δ‖ for the rounding error δ of P W; the energy is that of W.

        With P = BᵀB and d axes, |δ| ≤ (d + 1)ε |B|ᵀ|B W|, and ‖|B|ᵀ‖² is no more than
        :attr:`largest`.
        """
        rate = (len(self.axes) + 1.0) * EPSILON
        return rate * math.sqrt(self.largest * energy)

    @cached_property
    def eigenvalues(self) -> Array:
        """Eigenvalues (N,) in the order of :meth:`forward`, relatively accurate.

        A path of n points with similarity s has 8s sin²(πk/2n).
        """
        by_axis = [np.zeros(n) for n in self.box]
        for axis, weight in self.axes:
            n = self.box[axis]
            angles = np.pi * np.arange(n) / (2 * n)
            by_axis[axis] = 8.0 * weight * np.sin(angles) ** 2
        total = np.zeros(1)
        for values in by_axis:
            total = np.add.outer(total, values).ravel()
        return total

    def forward(self, w: Array, *, overwrite: bool = False) -> Array:
        """Coefficients of vectors (N,) or (N, k) in the eigenbasis, by transforms.

        ``overwrite`` allows overwriting w, as new memory costs a third of a transform.
        """
        return self._transformed(scipy.fft.dctn, w, overwrite)

    def backward(self, coefficients: Array) -> Array:
        """The vectors with these coefficients, which may be overwritten."""
        return self._transformed(scipy.fft.idctn, coefficients, overwrite=True)

    def _transformed(
        self, transform: Callable[..., Array], w: Array, overwrite: bool
    ) -> Array:
        block = w.reshape(*self.box, w.size // self.size)
        axes = [axis for axis, _ in self.axes]
        if axes:
            block = transform(block, axes=axes, norm="ortho", overwrite_x=overwrite)
        return block.reshape(w.shape)

    @property
    def transform_rounding(self) -> float:
        """A bound of the relative rounding error of :meth:`forward`.

        A transform of length n takes log₂ n levels, of at most 7 units of rounding each
        (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, Theorem 24.2);
        three times as many if n has large prime factors.
        """
        lengths = [self.box[axis] for axis, _ in self.axes]
        return 12.0 * EPSILON * sum(2.0 + math.log2(n) for n in lengths)

    def _slabs(self, n_entries: int) -> Iterator[tuple[int, int]]:
        """Yield first and last of the planes that fit into cache."""
        n_planes = max(1, SLAB * self.box[0] // n_entries)
        for first in range(0, self.box[0], n_planes):
            yield first, min(first + n_planes, self.box[0])

    def _steps(
        self, block: Array, first: int, last: int
    ) -> Iterator[tuple[float, Array]]:
        """Yield similarities and differences of neighbours in a range of planes."""
        for axis, weight in self.axes:
            planes = block[first : last + 1] if axis == 0 else block[first:last]
            yield weight, np.diff(planes, axis=axis)

    def _slab(self, block: Array, product: Array, first: int, last: int) -> None:
        """Compute planes ``first`` to ``last`` of the product."""
        slab = product[first:last]
        slab[...] = 0.0
        of_all = shared(weight for _, weight in self.axes)
        for axis, weight in self.axes:
            scale = 1.0 if of_all else 2.0 * weight
            before = (slice(None),) * axis
            below = max(first - 1, 0)
            planes = block[below : last + 1] if axis == 0 else block[first:last]
            step = np.diff(planes, axis=axis)
            if scale != 1.0:
                step *= scale
            if axis == 0:
                slab[: len(step) - (first - below)] -= step[first - below :]
                slab[below + 1 - first :] += step[: last - 1 - below]
            else:
                slab[(*before, slice(1, None))] += step
                slab[(*before, slice(None, -1))] -= step
        if of_all:
            slab *= 2.0 * of_all


@final
@dataclass(frozen=True, eq=False)
class ProductKernelLaplacian(Operator):
    """The Laplacian 2L of product similarities Π_d k_d(x_d, x'_d) on a grid.

    The kernel matrix is the Kronecker product of one small matrix per axis, so a
    product costs O(N Σ n_d) and nothing of size N² is formed.
    """

    kernels: tuple[Array, ...]  # (n_d, n_d): k_d with ones on the diagonal

    @property
    def size(self) -> int:
        return math.prod(self._box)

    @property
    def largest(self) -> float:
        return float(4.0 * self.degrees.max())

    @cached_property
    def degrees(self) -> Array:
        """The sum of similarities of each point to all others, shape (N,)."""
        return self._similar(np.ones(self.size))

    def apply(self, w: Array, out: Array) -> None:
        np.multiply(self.degrees, w, out=out)
        out -= self._similar(w)
        out *= 2.0

    def _similar(self, w: Array) -> Array:
        """The product S w for S = K − I, accurate for small similarities.

        With K_d = I + E_d, each axis changes S to E_d (I + S) + S.
        """
        total = np.zeros(self.size)
        inner = np.empty(self.size)
        for axis, off_diagonal in enumerate(self._off_diagonals):
            np.add(w, total, out=inner)
            total += self._along(axis, off_diagonal, inner)
        return total

    def energy(self, w: Array) -> float:
        """The form 2 Σ S (w − w')² over ordered pairs, axis by axis.

        With K = K₁ ⊗ K₂, diagonal D₁ ⊗ D₂ of its row sums, and K₁ = F₁ᵀF₁,

            D₁ ⊗ D₂ − K₁ ⊗ K₂ = (D₁ − K₁) ⊗ D₂ + F₁ᵀF₁ ⊗ (D₂ − K₂).

        The longest axis is last, as it needs no root.
        """
        parts = []
        for number, axis in enumerate(self._order):
            lines = np.moveaxis(w.reshape(self._box), axis, 0)
            lines = lines.reshape(self._box[axis], -1)
            weights = self._line_weights(axis, self._order[number + 1 :])
            parts.append(_pair_energy(lines, self.kernels[axis], weights))
            if axis in self._roots:
                w = self._along(axis, self._roots[axis], w)
        return math.fsum(parts)

    def _line_weights(self, axis: int, later: list[int]) -> Array:
        """Weights of lines along an axis: products of row sums over later axes."""
        weights = np.ones(1)
        for other, kernel in enumerate(self.kernels):
            if other != axis:
                sums = kernel.sum(axis=1) if other in later else np.ones(len(kernel))
                weights = np.multiply.outer(weights, sums).ravel()
        return weights

    def _along(self, axis: int, matrix: Array, w: Array) -> Array:
        after = math.prod(self._box[axis + 1 :])
        if after == 1:  # one product with BLAS
            return (w.reshape(-1, len(matrix)) @ matrix.T).ravel()
        return (matrix @ w.reshape(-1, len(matrix), after)).ravel()

    @property
    def _box(self) -> tuple[int, ...]:
        return tuple(len(kernel) for kernel in self.kernels)

    @cached_property
    def _order(self) -> list[int]:
        """The axes, shortest first."""
        return sorted(range(len(self._box)), key=self._box.__getitem__)

    @cached_property
    def _off_diagonals(self) -> list[Array]:
        """The matrices E_d = K_d − I of all axes."""
        return [kernel - np.eye(len(kernel)) for kernel in self.kernels]

    @cached_property
    def _roots(self) -> dict[int, Array]:
        """Roots F_d with K_d = F_dᵀF_d, for all axes except the last."""
        roots = {}
        for axis in self._order[:-1]:
            values, vectors = np.linalg.eigh(self.kernels[axis])
            roots[axis] = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        return roots


def _pair_energy(lines: Array, kernel: Array, weights: Array) -> float:
    """The sum Σ_{j,j'} k_jj' Σ_m weights_m (x_jm − x_j'm)², for lines x (n, M)."""
    diagonals = ((step, kernel.diagonal(step)) for step in range(1, len(kernel)))
    nonzero = [
        (step, similarities) for step, similarities in diagonals if similarities.any()
    ]
    size = max(1, SLAB // len(lines))
    parts = []
    for first in range(0, len(weights), size):
        x = np.ascontiguousarray(lines[:, first : first + size])
        for step, similarities in nonzero:
            squares = x[step:] - x[:-step]
            squares *= squares
            parts.append(
                float(similarities @ (squares @ weights[first : first + size]))
            )
    return 2.0 * math.fsum(parts)
