"""Typed linear maps A and penalties φ of losses.

The structure of a loss is the class of its map: solvers ``match`` on it. The same
code serves NumPy arrays and cvxpy expressions, as it uses only ``@`` and row-major
``flatten``. Residuals have one axis for :class:`PerPoint` and two for all others.

Products are accurate for a large mean (:mod:`propopt.losses.linear_algebra`).

Convex penalties φ ≥ 0 of residuals R: a loss is φ(A(W) − T). Each has a value, a
cvxpy expression, a proximal operator (for splitting) and a conjugate (for lower
bounds): for any dual Y,
``weight·φ(R) ≥ ⟨Y, R⟩ − conjugate(Y, weight)``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Sparse
from propopt.base.checks import largest_entry
from propopt.losses.linear_algebra import (
    EPSILON,
    Components,
    ExactProduct,
    Rounding,
    centred,
)
from propopt.losses.operators import LatticeLaplacian, Operator


if TYPE_CHECKING:
    import cvxpy as cp

CvxpyExpression: TypeAlias = "cp.Expression"
CvxpyConstraint: TypeAlias = "cp.Constraint"


class LinearMap(ABC):
    """A linear map A of attributions W (N, D)."""

    @abstractmethod
    def __call__(self, W: Any) -> Any:
        """Apply A to a NumPy array or a cvxpy expression W of shape (N, D)."""

    @abstractmethod
    def adjoint(self, R: Array) -> Attributions:
        """The adjoint Aᵀ(R), shape (N, D), for R of the shape of A(W)."""

    def energy(self, W: Attributions) -> float:
        """The squared norm ‖A(W)‖²."""
        R = self(W)
        return float(np.vdot(R, R))

    def normal(self, W: Attributions) -> Attributions:
        """The product AᵀA(W) in the fastest way, for iterations."""
        return self.adjoint(self(W))

    def gradient(self, W: Attributions) -> Attributions:
        """The product AᵀA(W) by exact differences A(W), for proofs."""
        return self.adjoint(self(W))

    def rounding(self, W: Attributions) -> Rounding:
        """Bounds of rounding errors of A(W) and of AᵀA(W)."""
        del W
        return 0.0, 0.0

    @abstractmethod
    def flat(self, shape: tuple[int, int]) -> Sparse:
        """The matrix of A on row-major W: ``A(W).ravel() == flat @ W.ravel()``."""

    @abstractmethod
    def flat_rows(self, shape: tuple[int, int]) -> int:
        """The number of entries of A(W), without computing it."""


@final
@dataclass(frozen=True)
class Identity(LinearMap):
    """The identity map W ↦ W."""

    def __call__(self, W: Any) -> Any:
        return W

    def adjoint(self, R: Array) -> Attributions:
        return R

    def flat(self, shape: tuple[int, int]) -> Sparse:
        return sp.eye_array(shape[0] * shape[1], format="csr")

    def flat_rows(self, shape: tuple[int, int]) -> int:
        return shape[0] * shape[1]


@dataclass(frozen=True, eq=False)
class Coupling(LinearMap):
    """A matrix B that couples points, or features."""

    matrix: Sparse | Array  # (E, N) or (E, D): B
    # coupled parts; B maps constants on each to zero
    components: Components | None = None
    # BᵀB of a lattice, if it is one
    lattice: LatticeLaplacian | None = None

    @cached_property
    def sees_all_but_constants(self) -> bool:
        """Whether the null space of B is the constants on each part."""
        parts = self.components
        matrix = self.matrix
        if not isinstance(matrix, np.ndarray):  # rows are differences within parts
            return parts is not None
        n_free = 0 if parts is None else parts.count
        return int(np.linalg.matrix_rank(matrix)) == matrix.shape[1] - n_free

    @cached_property
    def _gram(self) -> Sparse | Array:
        return self.matrix.T @ self.matrix

    @cached_property
    def _fast_gram(self) -> Sparse | Array:
        """BᵀB, dense if nearly full, as products are six times faster."""
        gram = self._gram
        full = not isinstance(gram, np.ndarray) and 4 * gram.nnz > gram.shape[0] ** 2
        return dense_matrix(gram) if full else gram

    @cached_property
    def _product(self) -> ExactProduct:
        return ExactProduct(self.matrix, self.components)


@final
class OverPoints(Coupling):
    """The map W ↦ B W with B (E, N): couples points, the same for all features."""

    def __call__(self, W: Any) -> Any:
        return self._product(W) if isinstance(W, np.ndarray) else self.matrix @ W

    def adjoint(self, R: Array) -> Attributions:
        return self.matrix.T @ R

    def energy(self, W: Attributions) -> float:
        return self._product.energy(W)

    def normal(self, W: Attributions) -> Attributions:
        return self._fast_gram @ W

    def gradient(self, W: Attributions) -> Attributions:
        return self._product.normal(W)

    def rounding(self, W: Attributions) -> Rounding:
        return self._product.rounding(W)

    def flat(self, shape: tuple[int, int]) -> Sparse:
        return sp.kron(self.matrix, sp.eye_array(shape[1]), format="csr")

    def flat_rows(self, shape: tuple[int, int]) -> int:
        return self.matrix.shape[0] * shape[1]

    @property
    def gram(self) -> Sparse | Array:
        """The Gram matrix BᵀB (N, N), sparse if B is."""
        return self._gram


@final
@dataclass(frozen=True, eq=False)
class ImplicitOverPoints(LinearMap):
    """The map W ↦ B W given by BᵀB only, for graphs too large to list edges."""

    gram: Operator  # (N, N): BᵀB
    # makes the same map with listed edges, for programs that need them
    explicit: Callable[[], OverPoints]
    # parts of the points; B maps constants on each to zero
    components: Components | None = None

    def __call__(self, W: Any) -> Any:
        return self.explicit()(W)

    def adjoint(self, R: Array) -> Attributions:
        return self.explicit().adjoint(R)

    def energy(self, W: Attributions) -> float:
        if isinstance(self.gram, LatticeLaplacian):  # depends on differences only
            return self.gram.energy(np.ascontiguousarray(W))
        columns = centred(W, self.components).T
        return math.fsum(self.gram.energy(np.ascontiguousarray(w)) for w in columns)

    def normal(self, W: Attributions) -> Attributions:
        return self.gram @ W

    def gradient(self, W: Attributions) -> Attributions:
        if isinstance(self.gram, LatticeLaplacian):
            return self.gram @ W
        return self.gram @ centred(W, self.components)

    def rounding(self, W: Attributions, energy: float | None = None) -> Rounding:
        """Bounds of rounding errors; ``energy`` is ‖A(W)‖², if computed."""
        if isinstance(self.gram, LatticeLaplacian):
            energy = self.energy(W) if energy is None else energy
            return 0.0, self.gram.product_rounding(energy)
        size = float(np.linalg.norm(centred(W, self.components)))
        return 0.0, self.gram.rounding * size

    def flat(self, shape: tuple[int, int]) -> Sparse:
        return self.explicit().flat(shape)

    def flat_rows(self, shape: tuple[int, int]) -> int:
        return self.explicit().flat_rows(shape)


@final
class OverFeatures(Coupling):
    """The map W ↦ W Cᵀ with C (E, D): couples features, the same for all points."""

    def __call__(self, W: Any) -> Any:
        if isinstance(W, np.ndarray):
            return self._product(W.T).T
        return W @ self.matrix.T

    def adjoint(self, R: Array) -> Attributions:
        return R @ self.matrix

    def energy(self, W: Attributions) -> float:
        return self._product.energy(W.T)

    def normal(self, W: Attributions) -> Attributions:
        return W @ self._fast_gram

    def rounding(self, W: Attributions) -> Rounding:
        return self._product.rounding(W.T)

    def flat(self, shape: tuple[int, int]) -> Sparse:
        return sp.kron(sp.eye_array(shape[0]), self.matrix, format="csr")

    def flat_rows(self, shape: tuple[int, int]) -> int:
        return shape[0] * self.matrix.shape[0]

    @cached_property
    def gram(self) -> Array:
        """The Gram matrix CᵀC, dense (D, D)."""
        return dense_matrix(self._gram)


@final
@dataclass(frozen=True, eq=False)
class OverEntries(LinearMap):
    """The map W ↦ B w of the present entries w (P,) of W."""

    matrix: Sparse  # (E, P): B, with differences of entries as rows
    # (P,): indices of the entries in row-major W, increasing
    entries: NDArray[np.intp]
    shape: tuple[int, int]  # of W
    # parts of the entries; B maps constants on each to zero
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
        del shape  # fixed by the map
        return self._selected

    def flat_rows(self, shape: tuple[int, int]) -> int:
        del shape
        return int(self.matrix.shape[0])

    @cached_property
    def gram(self) -> Sparse:
        """The Gram matrix BᵀB (P, P), sparse."""
        return sp.csr_array(self.matrix.T @ self.matrix)

    @property
    def diagonal(self) -> Array:
        """The diagonal of AᵀA, in the shape of W."""
        return self._placed(self.gram.diagonal())

    @cached_property
    def _selected(self) -> Sparse:
        """The matrix B (E, N·D), zero at all other entries."""
        columns = self.entries[self.matrix.indices]
        shape = (self.matrix.shape[0], math.prod(self.shape))
        rows = (self.matrix.data, columns, self.matrix.indptr)
        return sp.csr_array(rows, shape, copy=True)  # others may sort it

    def _placed(self, values: Array) -> Attributions:
        W = np.zeros(math.prod(self.shape))
        W[self.entries] = values
        return W.reshape(self.shape)

    @cached_property
    def _product(self) -> ExactProduct:
        return ExactProduct(self.matrix, self.components)


@final
@dataclass(frozen=True, eq=False)
class RowSums(LinearMap):
    """The map W ↦ W v: weighted sums over the features of each point."""

    weights: Array  # (D,) or (N, D): v, or v_n of each point: then W ↦ Σ_d v_nd w_nd

    def __call__(self, W: Any) -> Any:
        if self.weights.ndim == 1:
            return W @ self.weights[:, None]
        if isinstance(W, np.ndarray):
            return (W * self.weights).sum(axis=1, keepdims=True)
        sums = self.flat(self.weights.shape) @ W.flatten(order="C")
        return sums.reshape((len(self.weights), 1), order="C")

    def adjoint(self, R: Array) -> Attributions:
        return R * self.weights

    def rounding(self, W: Attributions) -> Rounding:
        size = float(np.linalg.norm(self.weights, axis=-1).max())
        rate = 4.0 * EPSILON * float(np.linalg.norm(W))
        return rate * size, 2.0 * rate * size**2

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
    """The map w_n ↦ Z_n w_n with Z (N, M, D): a separate regression per point."""

    designs: Array

    def __call__(self, W: Any) -> Any:
        return self.blocks @ W.flatten(order="C")

    def adjoint(self, R: Array) -> Attributions:
        n_points, _, n_features = self.designs.shape
        return (self.blocks.T @ R).reshape(n_points, n_features)

    def rounding(self, W: Attributions) -> Rounding:
        sizes = abs(self.blocks)
        terms = sizes @ np.abs(W).ravel()
        rate = EPSILON * self.designs.shape[2]
        of_gradient = 2.0 * rate * float(np.linalg.norm(sizes.T @ terms))
        return rate * float(np.linalg.norm(terms)), of_gradient

    def flat(self, shape: tuple[int, int]) -> Sparse:
        del shape  # fixed by the designs
        return self.blocks

    def flat_rows(self, shape: tuple[int, int]) -> int:
        return shape[0] * self.designs.shape[1]

    @cached_property
    def blocks(self) -> Sparse:
        """The block-diagonal matrix of Z_1, …, Z_N, shape (N·M, N·D)."""
        n, m, d = self.designs.shape
        columns = np.repeat(np.arange(n * d).reshape(n, d), m, axis=0)
        rows = np.arange(n * m + 1) * d
        shape = (n * m, n * d)
        return sp.csr_array((self.designs.ravel(), columns.ravel(), rows), shape=shape)


def dense_matrix(matrix: Sparse | Array | Operator) -> Array:
    """Convert a sparse or dense matrix to a NumPy array."""
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


# ---- Convex penalties φ ≥ 0 of residuals R


class Penalty(ABC):
    """A convex function φ ≥ 0 with φ(0) = 0.

    It is homogeneous, φ(tR) = t^degree φ(R), or :meth:`scaled` says how it changes with
    the unit of R.
    """

    degree: int

    def scaled(self, size: float) -> Penalty:
        """The penalty φ(size·R)/size^degree of R: φ itself where it is homogeneous.

        Solvers normalise W by it. Without it they return a poor W for a penalty that
        is not homogeneous, and the certificate has a large gap.
        """
        del size
        return self

    @abstractmethod
    def value(self, R: Array) -> float:
        """The value φ(R)."""

    @final
    def expression(self, R: CvxpyExpression) -> CvxpyExpression:
        """φ(R) for a cvxpy expression R; zero if R has no entries."""
        import cvxpy as cp

        return self._expression(R) if R.size else cp.Constant(0.0)

    @abstractmethod
    def _expression(self, R: CvxpyExpression) -> CvxpyExpression:
        """φ(R) for a nonempty cvxpy expression R."""

    @abstractmethod
    def prox(self, V: Array, step: float) -> Array:
        """The proximal operator argmin_R  step·φ(R) + ½‖R − V‖²."""

    @abstractmethod
    def conjugate(self, Y: Array, weight: float) -> float:
        """The conjugate sup_R ⟨Y, R⟩ − weight·φ(R), for Y from :meth:`shrink`."""

    def polar(self, Y: Array) -> float:
        """The smallest weight for which the conjugate at Y is finite, here any."""
        del Y
        return 0.0

    def shrink(self, Y: Array, weight: float) -> Array:
        """A point close to Y with a finite conjugate; Y itself if it has one."""
        del weight
        return Y


@final
@dataclass(frozen=True)
class Squared(Penalty):
    """The sum of squares Σ r²."""

    degree = 2

    def value(self, R: Array) -> float:
        return float(np.vdot(R, R))

    def _expression(self, R: CvxpyExpression) -> CvxpyExpression:
        import cvxpy as cp

        return cp.sum_squares(R)

    def prox(self, V: Array, step: float) -> Array:
        return V / (1.0 + 2.0 * step)

    def conjugate(self, Y: Array, weight: float) -> float:
        return float(np.vdot(Y, Y)) / (4.0 * weight)


@final
@dataclass(frozen=True)
class Absolute(Penalty):
    """The sum of absolute values Σ |r|."""

    degree = 1

    def value(self, R: Array) -> float:
        return float(np.abs(R).sum())

    def _expression(self, R: CvxpyExpression) -> CvxpyExpression:
        import cvxpy as cp

        return cp.sum(cp.abs(R))

    def prox(self, V: Array, step: float) -> Array:
        return np.sign(V) * np.maximum(np.abs(V) - step, 0.0)

    def conjugate(self, Y: Array, weight: float) -> float:
        del Y, weight
        return 0.0

    def polar(self, Y: Array) -> float:
        return largest_entry(Y)

    def shrink(self, Y: Array, weight: float) -> Array:
        return np.clip(Y, -weight, weight)


@final
@dataclass(frozen=True, eq=False)
class GroupMax(Penalty):
    """The sum of group maxima Σ_g max_{e ∈ g} ‖r_e‖² over rows r_e of R (E, D).

    Groups are consecutive rows.
    """

    starts: NDArray[np.intp]  # the first row of each group; groups are not empty
    n_rows: int  # E

    degree = 2

    def value(self, R: Array) -> float:
        largest = np.maximum.reduceat(_row_sizes(R), self.starts)
        return float((largest**2).sum())

    def _expression(self, R: CvxpyExpression) -> CvxpyExpression:
        import cvxpy as cp

        norms = cp.norm(R, 2, axis=1)
        if len(self.starts) == 1:
            return cp.square(cp.max(norms))
        largest = cp.max(
            norms[self._members.ravel()].reshape(self._members.shape, "C"), axis=1
        )
        return cp.sum_squares(largest)

    def prox(self, V: Array, step: float) -> Array:
        # rows longer than r are cut to r, where Σ_e (‖v_e‖ − r)₊ = 2·step·r
        norms = _row_sizes(V)
        bound = self._level(norms, 2.0 * step)[self.group]
        shorter = np.divide(bound, norms, out=np.ones_like(norms), where=norms > bound)
        return V * shorter[:, None]

    def conjugate(self, Y: Array, weight: float) -> float:
        sums = np.add.reduceat(_row_sizes(Y), self.starts)
        return float((sums**2).sum()) / (4.0 * weight)

    def _level(self, sizes: Array, slack: float) -> Array:
        """For each group the root r of Σ (s − r)₊ = slack·r.

        With the k largest active, r_k = Σ_{i≤k} s_i/(k + slack) never exceeds the root
        and equals it for the right k: the root is their maximum.
        """
        order = np.lexsort((-sizes, self.group))
        totals = np.cumsum(sizes[order])
        before = np.concatenate([[0.0], totals])[self.starts]
        rank = np.arange(len(sizes)) - self.starts[self.group] + 1
        roots = (totals - before[self.group]) / (rank + slack)
        return np.maximum.reduceat(roots, self.starts)

    @cached_property
    def group(self) -> NDArray[np.intp]:
        """The group of each row."""
        sizes = np.diff(self.starts, append=self.n_rows)
        return np.repeat(np.arange(len(self.starts)), sizes)

    @cached_property
    def _members(self) -> NDArray[np.intp]:
        """Rows of each group, (groups, largest size), padded with the last row."""
        sizes = np.diff(self.starts, append=self.n_rows)
        offsets = np.minimum(np.arange(sizes.max()), sizes[:, None] - 1)
        return self.starts[:, None] + offsets


def _row_sizes(R: Array) -> Array:
    return np.sqrt(np.einsum("ed,ed->e", R, R))
