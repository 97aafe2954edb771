"""Linear maps W ↦ A(W), typed by the axis on which they act.

The structure of a loss is the class of its map: solvers ``match`` on it. One text
serves NumPy arrays and cvxpy expressions alike, for it uses only ``@`` and row-major
``flatten``. Residuals have one axis for :class:`PerPoint` and two for all others.

Arrays lose nothing to a large mean (:mod:`propopt.linear.products`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Array, Attributions, Sparse
from propopt.linear.components import Components
from propopt.linear.products import ExactProduct, centred, product_of
from propopt.linear.rounding import EPSILON, Rounding
from propopt.operators import Operator


class LinearMap(ABC):
    """A linear map A of attributions W (N, D)."""

    @abstractmethod
    def __call__(self, W: Any) -> Any:
        """A(W), for a NumPy array or a cvxpy expression of shape (N, D)."""

    @abstractmethod
    def adjoint(self, R: Array) -> Attributions:
        """Aᵀ(R), shape (N, D), for R of the shape of A(W)."""

    @abstractmethod
    def energy(self, W: Attributions) -> float:
        """‖A(W)‖²."""

    @abstractmethod
    def normal(self, W: Attributions) -> Attributions:
        """AᵀA(W), as fast as it can be had: for iterations."""

    def gradient(self, W: Attributions) -> Attributions:
        """AᵀA(W) by way of A(W), whose differences are exact: for proofs."""
        return self.adjoint(self(W))

    def rounding(self, W: Attributions) -> Rounding:
        """What rounding may do to A(W) and to its gradient, beyond their last digits.

        Nothing where A(W) is a difference of numbers as they are in memory.
        """
        del W
        return Rounding(0.0, 0.0)

    @abstractmethod
    def flat(self, shape: tuple[int, int]) -> Sparse:
        """The matrix of A on row-major W: ``A(W).ravel() == flat @ W.ravel()``."""

    @abstractmethod
    def flat_rows(self, shape: tuple[int, int]) -> int:
        """The number of entries of A(W), without forming anything."""


@final
@dataclass(frozen=True)
class Identity(LinearMap):
    """W ↦ W."""

    def __call__(self, W: Any) -> Any:
        return W

    def adjoint(self, R: Array) -> Attributions:
        return R

    def energy(self, W: Attributions) -> float:
        return _square(W)

    def normal(self, W: Attributions) -> Attributions:
        return W

    def flat(self, shape: tuple[int, int]) -> Sparse:
        return sp.eye_array(shape[0] * shape[1], format="csr")

    def flat_rows(self, shape: tuple[int, int]) -> int:
        return shape[0] * shape[1]


@final
@dataclass(frozen=True, eq=False)
class OverPoints(LinearMap):
    """W ↦ B W with B (E, N): couples points, each feature alike.

    Parameters
    ----------
    matrix : matrix (E, N)
        B.
    components : Components, optional
        Parts of the points; B maps what is constant on each to zero.
    """

    matrix: Sparse | Array
    components: Components | None = None

    def __call__(self, W: Any) -> Any:
        return self._product(W) if isinstance(W, np.ndarray) else self.matrix @ W

    def adjoint(self, R: Array) -> Attributions:
        return np.asarray(self.matrix.T @ R)

    def energy(self, W: Attributions) -> float:
        return self._product.energy(W)

    def normal(self, W: Attributions) -> Attributions:
        return np.asarray(self._fast_gram @ W)

    def rounding(self, W: Attributions) -> Rounding:
        return self._product.rounding(W)

    def flat(self, shape: tuple[int, int]) -> Sparse:
        return sp.kron(self.matrix, sp.eye_array(shape[1]), format="csr")

    def flat_rows(self, shape: tuple[int, int]) -> int:
        return self.matrix.shape[0] * shape[1]

    @cached_property
    def sees_all_but_constants(self) -> bool:
        """True if B takes the constants of each part to zero, and nothing else."""
        return _sees_all_but_constants(self.matrix, self.components)

    @cached_property
    def gram(self) -> Sparse | Array:
        """BᵀB (N, N), sparse where B is."""
        return self.matrix.T @ self.matrix

    @cached_property
    def _fast_gram(self) -> Sparse | Array:
        return _for_products(self.gram)

    @cached_property
    def _product(self) -> ExactProduct:
        return product_of(self.matrix, self.components)


@final
@dataclass(frozen=True, eq=False)
class ImplicitOverPoints(LinearMap):
    """W ↦ B W, known by BᵀB alone: for graphs too large to list their edges.

    Parameters
    ----------
    gram : Operator (N, N)
        BᵀB.
    explicit : callable
        Gives the same map with its edges listed, for programs that need them.
    components : Components, optional
        Parts of the points; B maps what is constant on each to zero.
    """

    gram: Operator
    explicit: Callable[[], OverPoints]
    components: Components | None = None

    def __call__(self, W: Any) -> Any:
        return self.explicit()(W)

    def adjoint(self, R: Array) -> Attributions:
        return self.explicit().adjoint(R)

    def energy(self, W: Attributions) -> float:
        columns = centred(W, self.components).T
        return math.fsum(self.gram.energy(np.ascontiguousarray(w)) for w in columns)

    def normal(self, W: Attributions) -> Attributions:
        return self.gram @ W

    def gradient(self, W: Attributions) -> Attributions:
        return self.gram @ centred(W, self.components)

    def rounding(self, W: Attributions) -> Rounding:
        size = float(np.linalg.norm(centred(W, self.components)))
        return Rounding(0.0, self.gram.rounding * size)

    def flat(self, shape: tuple[int, int]) -> Sparse:
        return self.explicit().flat(shape)

    def flat_rows(self, shape: tuple[int, int]) -> int:
        return self.explicit().flat_rows(shape)


@final
@dataclass(frozen=True, eq=False)
class OverFeatures(LinearMap):
    """W ↦ W Cᵀ with C (E, D): couples features, each point alike.

    Parameters
    ----------
    matrix : matrix (E, D)
        C.
    components : Components, optional
        Parts of the features; C maps what is constant on each to zero.
    """

    matrix: Sparse | Array
    components: Components | None = None

    def __call__(self, W: Any) -> Any:
        if isinstance(W, np.ndarray):
            return self._product(W.T).T
        return W @ self.matrix.T

    def adjoint(self, R: Array) -> Attributions:
        return np.asarray(R @ self.matrix)

    def energy(self, W: Attributions) -> float:
        return self._product.energy(W.T)

    def normal(self, W: Attributions) -> Attributions:
        return np.asarray(W @ self._fast_gram)

    def rounding(self, W: Attributions) -> Rounding:
        return self._product.rounding(W.T)

    def flat(self, shape: tuple[int, int]) -> Sparse:
        return sp.kron(sp.eye_array(shape[0]), self.matrix, format="csr")

    def flat_rows(self, shape: tuple[int, int]) -> int:
        return shape[0] * self.matrix.shape[0]

    @cached_property
    def sees_all_but_constants(self) -> bool:
        """True if C takes the constants of each part to zero, and nothing else."""
        return _sees_all_but_constants(self.matrix, self.components)

    @cached_property
    def gram(self) -> Array:
        """CᵀC, dense (D, D)."""
        return dense_matrix(self.matrix.T @ self.matrix)

    @cached_property
    def _fast_gram(self) -> Sparse | Array:
        return _for_products(self.matrix.T @ self.matrix)

    @cached_property
    def _product(self) -> ExactProduct:
        return product_of(self.matrix, self.components)


@final
@dataclass(frozen=True, eq=False)
class OverEntries(LinearMap):
    """W ↦ B w with the entries w (P,) of W that are present: couples these alone.

    What W is elsewhere counts nothing. On its entries B is what the matrix of
    :class:`OverPoints` is on points.

    Parameters
    ----------
    matrix : sparse matrix (E, P)
        B, whose rows are differences of entries.
    entries : array of int (P,)
        Where the entries stand in W, row by row, in increasing order.
    shape : (int, int)
        That of W.
    components : Components
        Parts of the entries; B maps what is constant on each to zero.
    """

    matrix: Sparse
    entries: NDArray[np.intp]
    shape: tuple[int, int]
    components: Components

    def __call__(self, W: Any) -> Any:
        if isinstance(W, np.ndarray):
            return self._product(W.ravel()[self.entries, None])[:, 0]
        return self._selected @ W.flatten(order="C")

    def adjoint(self, R: Array) -> Attributions:
        return self._placed(self.matrix.T @ R)

    def energy(self, W: Attributions) -> float:
        return self._product.energy(W.ravel()[self.entries, None])

    def normal(self, W: Attributions) -> Attributions:
        return self._placed(self.gram @ W.ravel()[self.entries])

    def flat(self, shape: tuple[int, int]) -> Sparse:
        del shape  # it is known
        return self._selected

    def flat_rows(self, shape: tuple[int, int]) -> int:
        del shape
        return int(self.matrix.shape[0])

    @cached_property
    def gram(self) -> Sparse:
        """BᵀB (P, P), sparse."""
        return sp.csr_array(self.matrix.T @ self.matrix)

    @property
    def diagonal(self) -> Array:
        """That of AᵀA, in the shape of W."""
        return self._placed(self.gram.diagonal())

    @cached_property
    def _selected(self) -> Sparse:
        """B (E, N·D), zero at all other entries."""
        columns = self.entries[self.matrix.indices]
        shape = (self.matrix.shape[0], math.prod(self.shape))
        rows = (self.matrix.data, columns, self.matrix.indptr)
        return sp.csr_array(rows, shape, copy=True)  # others sort what they are given

    def _placed(self, values: Array) -> Attributions:
        W = np.zeros(math.prod(self.shape))
        W[self.entries] = values
        return W.reshape(self.shape)

    @cached_property
    def _product(self) -> ExactProduct:
        return product_of(self.matrix, self.components)


@final
@dataclass(frozen=True, eq=False)
class RowSums(LinearMap):
    """W ↦ W v, one column: weighted sums over features, each point by itself.

    Parameters
    ----------
    weights : array (D,) or (N, D)
        v, or v_n of each point: then W ↦ Σ_d v_nd w_nd.
    """

    weights: Array

    def __call__(self, W: Any) -> Any:
        if self.weights.ndim == 1:
            return W @ self.weights[:, None]
        if isinstance(W, np.ndarray):
            return (W * self.weights).sum(axis=1, keepdims=True)
        sums = self.flat(self.weights.shape) @ W.flatten(order="C")
        return sums.reshape((len(self.weights), 1), order="C")

    def adjoint(self, R: Array) -> Attributions:
        return np.asarray(R * self.weights)

    def energy(self, W: Attributions) -> float:
        return _square(self(W))

    def normal(self, W: Attributions) -> Attributions:
        return self.adjoint(self(W))

    def rounding(self, W: Attributions) -> Rounding:
        size = float(np.linalg.norm(self.weights, axis=-1).max())
        rate = 4.0 * EPSILON * float(np.linalg.norm(W))
        return Rounding(rate * size, 2.0 * rate * size**2)

    def flat(self, shape: tuple[int, int]) -> Sparse:
        if self.weights.ndim == 1:
            return sp.kron(sp.eye_array(shape[0]), self.weights[None], format="csr")
        starts = np.arange(shape[0] + 1) * shape[1]
        entries = (self.weights.ravel(), np.arange(self.weights.size), starts)
        return sp.csr_array(entries, shape=(shape[0], self.weights.size), copy=True)

    def flat_rows(self, shape: tuple[int, int]) -> int:
        return shape[0]


@final
@dataclass(frozen=True, eq=False)
class PerPoint(LinearMap):
    """w_n ↦ Z_n w_n with Z (N, M, D): a regression of its own at each point."""

    designs: Array

    def __call__(self, W: Any) -> Any:
        return self.blocks @ W.flatten(order="C")

    def adjoint(self, R: Array) -> Attributions:
        n_points, _, n_features = self.designs.shape
        return np.asarray(self.blocks.T @ R).reshape(n_points, n_features)

    def energy(self, W: Attributions) -> float:
        return _square(self(W))

    def normal(self, W: Attributions) -> Attributions:
        return self.adjoint(self(W))

    def rounding(self, W: Attributions) -> Rounding:
        sizes = abs(self.blocks)
        terms = sizes @ np.abs(W).ravel()
        rate = EPSILON * self.designs.shape[2]
        return Rounding(
            rate * float(np.linalg.norm(terms)),
            2.0 * rate * float(np.linalg.norm(sizes.T @ terms)),
        )

    def flat(self, shape: tuple[int, int]) -> Sparse:
        del shape  # the designs know it
        return self.blocks

    def flat_rows(self, shape: tuple[int, int]) -> int:
        return shape[0] * self.designs.shape[1]

    @cached_property
    def blocks(self) -> Sparse:
        """diag(Z_1, …, Z_N), shape (N·M, N·D)."""
        n, m, d = self.designs.shape
        columns = np.repeat(np.arange(n * d).reshape(n, d), m, axis=0)
        rows = np.arange(n * m + 1) * d
        shape = (n * m, n * d)
        return sp.csr_array((self.designs.ravel(), columns.ravel(), rows), shape=shape)


def dense_matrix(matrix: Sparse | Array | Operator) -> Array:
    """``matrix`` as a NumPy array."""
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())


def _sees_all_but_constants(matrix: Sparse | Array, parts: Components | None) -> bool:
    """By the rank; the rows of a sparse matrix are differences within parts."""
    if not isinstance(matrix, np.ndarray):
        return parts is not None
    n_free = 0 if parts is None else parts.count
    return int(np.linalg.matrix_rank(matrix)) == matrix.shape[1] - n_free


def _for_products(gram: Sparse | Array) -> Sparse | Array:
    """A Gram matrix, dense where it is nearly full: products are six times faster."""
    full = not isinstance(gram, np.ndarray) and 4 * gram.nnz > gram.shape[0] ** 2
    return dense_matrix(gram) if full else gram


def _square(R: Array) -> float:
    return float(np.vdot(R, R))
