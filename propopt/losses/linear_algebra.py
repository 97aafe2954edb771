"""Components of a matrix, exact products, LAPACK, conjugate gradients.

Constants on connected components cost a robustness loss nothing. Values are split as
W = M + R, where M is constant on each component and R sums to zero there. Squared
differences depend only on R, and ⟨M, R⟩ = 0: M can be subtracted before any arithmetic
and added afterwards, so that a large mean causes no rounding.

Preconditioned conjugate gradients solve one system in all of W or one per column. H
is symmetric and positive semidefinite, M⁻¹ positive definite. With the residual r = b −
Hx, z = M⁻¹r and the energy ε = ⟨r, z⟩, a step is

    p ← z + (ε/ε') p,   x ← x + (ε/⟨p, Hp⟩) p,   r ← r − (ε/⟨p, Hp⟩) Hp,

where ε' is the previous energy (Hestenes and Stiefel, 1952). The residual of the
recurrence drifts from b − Hx by rounding; for more digits, restart from x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, final

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.sparse.csgraph import connected_components

from propopt.base.arrays import Array, Edges, Sparse
from propopt.base.checks import largest_entry
from propopt.base.errors import SolverFailure
from propopt.base.resources import BATCH_BUDGET


@final
@dataclass(frozen=True, eq=False)
class Components:
    """A partition of nodes into parts, such as connected components."""

    # (N,): the part, 0 to p − 1, of each node; no part is empty
    labels: NDArray[np.integer]

    @classmethod
    def of(cls, coupled: Sparse) -> Components:
        """The connected components of a sparse matrix (N, N) of any signs."""
        _, labels = connected_components(coupled, directed=False)
        return cls(labels)

    @classmethod
    def single(cls, n_nodes: int) -> Components:
        """A partition with all nodes in one part."""
        return cls(np.zeros(n_nodes, dtype=np.int8))

    @classmethod
    def joined(cls, partitions: Sequence[Components]) -> Components:
        """The finest partition that all given partitions refine."""
        # link the nodes of a part to its first node
        n_nodes = len(partitions[0].labels)
        heads = [parts.heads for parts in partitions]
        tails = np.tile(np.arange(n_nodes), len(partitions))
        entries = (np.ones(len(tails)), (tails, np.concatenate(heads)))
        return cls.of(sp.csr_array(entries, shape=(n_nodes, n_nodes)))

    @cached_property
    def count(self) -> int:
        """The number of parts p."""
        return int(self.labels.max(initial=-1)) + 1

    @cached_property
    def sizes(self) -> Array:
        """The number of nodes of each part, shape (p,)."""
        return np.bincount(self.labels, minlength=self.count).astype(np.float64)

    @cached_property
    def lengths(self) -> Array:
        """The norm ‖1‖ of the constant on each part, shape (p, 1)."""
        return np.sqrt(self.sizes)[:, None]

    def split(self, W: Array) -> tuple[Array, Array]:
        """Split W (N, D) into means (p, D) and deviations R (N, D).

        The first node of each part is subtracted before averaging, so that deviations
        of constants are exactly zero.
        """
        first = self.firsts(W)
        R = W - self.spread(first)
        if self.count == 1:
            shift = R.mean(axis=0, keepdims=True)
        else:
            shift = self._indicator @ R / self.sizes[:, None]
        R -= self.spread(shift)
        return first + shift, R

    def firsts(self, W: Array) -> Array:
        """The values (p, D) at the first node of each part."""
        return W[self._first]

    def constants(self, W: Array) -> Array:
        """The value at the first node of its part, for each node."""
        return self.spread(self.firsts(W))

    def centred(self, W: Array) -> Array:
        """The deviations R, which sum to zero on each part."""
        return self.split(W)[1]

    def spread(self, means: Array) -> Array:
        """Means (p, D) expanded to M (N, D), the mean of the part at each node."""
        return means if self.count == 1 else means[self.labels]

    def members(self) -> list[NDArray[np.intp]]:
        """The nodes of each part, in order."""
        order = np.argsort(self.labels, kind="stable")
        return np.split(order, np.cumsum(self.sizes[:-1]).astype(np.intp))

    @cached_property
    def heads(self) -> NDArray[np.intp]:
        """The first node of the part of each node."""
        return self._first[self.labels]

    @cached_property
    def _first(self) -> NDArray[np.intp]:
        """The first node of each part."""
        return np.unique(self.labels, return_index=True)[1]

    @cached_property
    def _indicator(self) -> Sparse:
        """A matrix (p, N) with one row per part and ones at its nodes."""
        n_nodes = len(self.labels)
        entries = (np.ones(n_nodes), (self.labels, np.arange(n_nodes)))
        return sp.csr_array(entries, shape=(self.count, n_nodes))


_FEW_COLUMNS = 16


SLAB = 50_000
"""Entries that fit into cache."""


def slabs(W: Array) -> list[slice]:
    """Blocks of rows of W (N, D) that fit into cache."""
    n_rows = max(1, SLAB // max(1, W[:1].size))
    if len(W) <= n_rows:
        return [slice(None)]
    return [slice(first, first + n_rows) for first in range(0, len(W), n_rows)]


def plus_row(W: Array, row: Array) -> Array:
    """W plus a row (D,) or (1, D); by columns if few, six times faster."""
    result = np.empty(W.shape)
    if W.shape[1] > _FEW_COLUMNS:
        return np.add(W, row, out=result)
    for rows in slabs(W):
        for number, w, out in zip(row.ravel(), W[rows].T, result[rows].T, strict=True):
            np.add(w, number, out=out)
    return result


def incidence(pairs: Edges, n_nodes: int) -> Sparse:
    """The incidence matrix B (E, n): row e of B W is w_n − w_n' for e = (n, n')."""
    signs = np.tile([1.0, -1.0], len(pairs))
    rows = np.arange(len(pairs) + 1) * 2
    return sp.csr_array((signs, pairs.ravel(), rows), shape=(len(pairs), n_nodes))


# ---- Iterations: least squares, and preconditioned conjugate gradients


Action: TypeAlias = Callable[[Array], Array]
Number: TypeAlias = "float | Array"


def least_squares(A: Any, b: Array) -> Array:
    """The smallest x with the smallest ‖Ax − b‖, by LSMR to rounding."""
    limit = 20 * max(A.shape)
    x: Array = spla.lsmr(A, b, atol=1e-15, btol=1e-15, conlim=0.0, maxiter=limit)[0]
    return x


def conjugate_gradients(
    product: Action,
    x: Array,
    residual: Array,
    *,
    precondition: Action,
    most_steps: int,
    is_enough: Callable[[Array, Array], bool] = lambda _x, _residual: False,
    reduction: float = 0.0,
    per_column: bool = False,
) -> bool:
    """Solve Hx = b from a start, overwriting it, until a criterion holds.

    All entries of x form one system, or with ``per_column`` each column is a system.
    Returns whether it converged.
    """

    def inner(U: Array, V: Array) -> Number:
        return np.einsum("nd,nd->d", U, V) if per_column else float(np.vdot(U, V))

    direction = np.zeros_like(x)
    work = np.empty_like(x)
    energy: Number = 1.0
    goal: Number | None = None
    for step in range(most_steps + 1):
        if is_enough(x, residual):
            return True
        conditioned = precondition(residual)
        last = energy
        energy = inner(residual, conditioned)
        goal = reduction * energy if goal is None else goal
        if np.all(energy <= goal) if per_column else energy <= goal:
            return True
        if step == most_steps:
            break
        direction *= _quotient(energy, last)
        direction += conditioned
        image = product(direction)
        length = _quotient(energy, inner(direction, image))
        if not np.any(length):
            return True
        x += np.multiply(direction, length, out=work)
        residual -= np.multiply(image, length, out=work)
    return False


def _quotient(above: Number, below: Number) -> Number:
    """The quotient, zero for denominators ≤ 0: those systems are solved."""
    if isinstance(above, float):
        return above / below if below > 0.0 else 0.0
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0.0)


# ---- LAPACK routines without a SciPy function, with their error codes


def positive_inverse(matrix: Array) -> Array:
    """The inverse of a symmetric positive definite matrix, which is overwritten."""
    indefinite = "a matrix to invert is not positive definite in double precision"
    factor, info = lapack.dpotrf(matrix, lower=1, overwrite_a=1, clean=1)
    _require_done("dpotrf", info, indefinite)
    lower, info = lapack.dpotri(factor, lower=1, overwrite_c=1)
    _require_done("dpotri", info, indefinite)
    inverse: Array = lower + lower.T
    inverse.flat[:: len(matrix) + 1] *= 0.5
    return inverse


def tridiagonalised(matrix: Array) -> tuple[Array, Array, Array, Array]:
    """Reduce a symmetric matrix, overwritten, to K = Q T Qᵀ with tridiagonal T."""
    work, info = lapack.dsytrd_lwork(len(matrix), lower=1)
    _require_done("dsytrd_lwork", info)
    reduced, diagonal, off_diagonal, factors, info = lapack.dsytrd(
        # K is symmetric: its transpose is K in LAPACK's order, without a copy
        matrix.T,
        lower=1,
        lwork=int(work),
        overwrite_a=1,
    )
    _require_done("dsytrd", info)
    return np.asfortranarray(reduced[1:, :-1]), diagonal, off_diagonal, factors


def reflected(
    reflectors: Array, factors: Array, columns: Array, transpose: Literal["N", "T"]
) -> Array:
    """Q or Qᵀ times columns (n − 1, m), with Q of :func:`tridiagonalised`."""
    product_columns = np.array(columns, order="F")
    # dormqr writes to the reflectors and restores them: read-only memory maps, as of
    # joblib, have to be copied
    writable = np.require(reflectors, requirements=["F", "W"])
    arguments = ("L", transpose, writable, factors, product_columns)
    _, work, info = lapack.dormqr(*arguments, -1)
    _require_done("dormqr", info)
    product, _, info = lapack.dormqr(*arguments, int(work[0]), overwrite_c=1)
    _require_done("dormqr", info)
    return product


def _require_done(routine: str, info: int, failure: str = "it did not finish") -> None:
    """Raise :class:`SolverFailure` unless a routine reports success."""
    if info != 0:
        reason = failure if info > 0 else f"argument {-info} is invalid"
        raise SolverFailure(f"LAPACK's {routine}: {reason} (info = {info})")


def is_symmetric(matrix: Array) -> bool:
    """Whether a matrix is square and symmetric to 1e-8 of its largest entry."""
    if matrix.shape[0] != matrix.shape[1]:
        return False
    tolerance = 1e-8 * largest_entry(matrix)
    return np.allclose(matrix, matrix.T, rtol=0.0, atol=tolerance)


# ---- Inverses of block-diagonal sparse matrices


def inverse_size(parts: Components) -> float:
    """The number of entries Σ n_c² of the inverse."""
    return float((parts.sizes**2).sum())


def inverse_by_parts(H: Sparse, parts: Components) -> Sparse:
    """The inverse (P, P) of a matrix with uncoupled parts, in Σ n_c³ operations."""
    sizes = parts.sizes.astype(np.intp)
    order = np.argsort(parts.labels, kind="stable")
    starts = np.cumsum(sizes) - sizes
    within = np.empty(len(order), np.intp)  # index of each node within its part
    within[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    rows = np.concatenate([[0], np.cumsum(sizes[parts.labels])])
    columns = np.empty(rows[-1], np.intp)
    values = np.empty(rows[-1])
    for size in np.unique(sizes):
        nodes = order[starts[sizes == size][:, None] + np.arange(size)]
        entries = H[nodes.ravel()].tocoo()
        row, column = entries.coords
        blocks = np.zeros((nodes.size, size))
        blocks[row, within[column]] = entries.data
        here = rows[nodes][:, :, None] + np.arange(size)
        values[here] = _inverses(blocks.reshape(-1, size, size))
        columns[here] = nodes[:, None, :]
    return sp.csr_array((values, columns, rows), shape=H.shape)


def _inverses(blocks: Array) -> Array:
    """Exactly symmetric inverses of blocks (k, s, s)."""
    inverses = np.linalg.inv(blocks)
    return (inverses + inverses.transpose(0, 2, 1)) / 2.0


# ---- Rounding in double precision


EPSILON = float(np.finfo(float).eps)
"""The distance from one to the next number: twice the unit of rounding."""


Rounding: TypeAlias = tuple[float, float]
"""Bounds of the Frobenius norms of errors of A(W) and AᵀA(W)."""


# ---- Products M W that are accurate for a large mean of W


@final
class ExactProduct:
    """Products M W of a matrix M (E, N) that maps constants on components to zero.

    Each row of a sparse M is scaled to ±1 first, so that differences are exact. For a
    dense M constants on components are subtracted from W.
    """

    def __init__(self, matrix: Sparse | Array, components: Components | None) -> None:
        self._matrix = matrix
        self._components = components
        self._heights: Array | None = None
        if not isinstance(matrix, np.ndarray):
            rows = sp.csr_array(matrix)
            self._heights = abs(rows).max(axis=1).toarray().ravel()
            signs = rows.data / np.repeat(self._heights, np.diff(rows.indptr))
            self._matrix = sp.csr_array((signs, rows.indices, rows.indptr), rows.shape)

    def __call__(self, W: Array) -> Array:
        if self._heights is None:
            return self._matrix @ centred(W, self._components)
        R = self._matrix @ W
        R *= self._heights[:, None]
        return R

    def energy(self, W: Array) -> float:
        """The squared norm ‖M W‖²."""
        if self._heights is None:
            R = self(W)
            return float(np.vdot(R, R))
        squares = np.empty(len(self._heights))
        for rows in self._blocks(W):
            R = self._matrix[rows] @ W
            squares[rows] = np.einsum("ed,ed->e", R, R)
        return float(squares @ self._heights**2)

    def normal(self, W: Array) -> Array:
        """The product MᵀM W."""
        if self._heights is None:
            return self._matrix.T @ self(W)
        total = np.zeros(W.shape)
        for rows in self._blocks(W):
            R = self._matrix[rows] @ W
            # as by M and then by Mᵀ, whose entries are ± the heights
            R *= self._heights[rows, None]
            R *= self._heights[rows, None]
            total += self._matrix[rows].T @ R
        return total

    def _blocks(self, W: Array) -> list[slice]:
        """Blocks of rows of ±1, whose products with W fit into memory."""
        return BATCH_BUDGET.blocks(self._matrix.shape[0], 8 * W[:1].size)

    def rounding(self, W: Array) -> Rounding:
        """Bounds of rounding errors, see :meth:`LinearMap.rounding`."""
        if self._heights is not None:
            return 0.0, 0.0
        size = float(np.linalg.norm(self._matrix))
        rate = 4.0 * EPSILON * float(np.linalg.norm(centred(W, self._components)))
        return rate * size, 2.0 * rate * size**2


def centred(W: Array, components: Components | None) -> Array:
    """W without its constants on components; W itself without components."""
    return W if components is None else components.centred(W)
