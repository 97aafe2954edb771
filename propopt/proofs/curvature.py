"""The squared losses of a program as one quadratic form, and its eigenbases.

If the similarities of a graph span many decades, eigenvalues of its Laplacian have the
rounding error of the largest. Those far below it are recomputed from the quadratic form
in their subspace. As a sum over edges,

    uᵀ P v = Σ_{i<j} −P_ij (u_i − u_j)(v_i − v_j),

it loses no digits to a heavy edge with equal values at its ends. This is repeated until
the smallest eigenvalue is close enough to the largest of its level.

The eigenbasis of a Gram matrix has one block for each connected component. The constant
vector of a component has the eigenvalue zero: its mean is subtracted from G before any
arithmetic. The other eigenvalues are computed from the entries of their component, so
that small ones keep their digits next to a component with large similarities. None is
set to zero for being small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias, final

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Sparse
from propopt.base.resources import few_threads, memory_refusal
from propopt.losses import Program
from propopt.losses.algebra import LossKind
from propopt.losses.linear_algebra import EPSILON, Components
from propopt.losses.maps import (
    ImplicitOverPoints,
    LinearMap,
    OverFeatures,
    OverPoints,
    dense_matrix,
)
from propopt.losses.operators import LatticeLaplacian, Operator


# ---- The squared losses that structured solvers share: a‖W − G‖² + b‖B W‖² + c‖W Cᵀ‖²


_COUPLED: Final[tuple[LossKind, ...]] = (
    "gradient-matching",
    "robustness",
    "smoothness",
)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """One squared loss of W itself, at most one over points and one over features."""

    G: Attributions  # (N, D): the target of the loss of W itself
    # BᵀB (N, N), sparse, dense or an operator, and CᵀC (D, D), dense
    P: Sparse | Array | Operator | None
    Q: Array | None
    # uncoupled parts on which B, or C, maps constants to zero
    point_parts: Components | None
    feature_parts: Components | None
    # indices of the three losses in the program
    positions: tuple[int | None, int | None, int | None]
    # P and Q of lattices, if they are
    lattices: tuple[LatticeLaplacian | None, LatticeLaplacian | None] = (None, None)

    @classmethod
    def of(cls, program: Program) -> Quadratic:
        """Take the squared losses of a program that the refusals below accept."""
        matching, over_points, over_features = [
            next(iter(program.kinds[kind]), None) for kind in _COUPLED
        ]
        assert matching is not None, (
            "the solver refuses programs without gradient matching"
        )
        # they have a Gram matrix and parts, by their kind
        points: Any = None if over_points is None else over_points.map
        features: Any = None if over_features is None else over_features.map
        index_of = {id(loss): index for index, loss in enumerate(program.losses)}
        return cls(
            lattices=(lattice_of(points), lattice_of(features)),
            G=np.broadcast_to(matching.target, program.shape),
            P=None if points is None else points.gram,
            Q=None if features is None else features.gram,
            point_parts=None if points is None else points.components,
            feature_parts=None if features is None else features.components,
            positions=(
                index_of[id(matching)],
                index_of.get(id(over_points)),
                index_of.get(id(over_features)),
            ),
        )

    @property
    def constants(self) -> Array:
        """Values of G, constant on each pair of parts, of a shape that broadcasts.

        Only the first loss depends on them, so the optimum for G is that for G minus
        these constants, plus the constants. Differences of nearly equal numbers are
        exact, so the remainder is as accurate as without an offset.
        """
        constants = self.G
        if self.P is not None:
            constants = _constants(constants, self.point_parts)
        if self.Q is not None:
            constants = _constants(constants.T, self.feature_parts).T
        return constants

    @cached_property
    def feature_basis(self) -> Eigenbasis:
        """The eigenbasis V of Q."""
        return Eigenbasis(self.Q, self.feature_parts, self.G.shape[1])

    def split(self, W: Attributions) -> tuple[Array, Array]:
        """Means over parts of points (D, p) and the rest (D, N), in the basis V.

        The constants of G are subtracted first.
        """
        rest = W - self.constants
        means = np.zeros((0, W.shape[1]))
        if self.point_parts is not None:
            means, rest = self.point_parts.split(rest)
        return self.feature_basis.forward(means.T), self.feature_basis.forward(rest.T)

    def joined(self, means: Array, rest: Array) -> Attributions:
        """The attributions (N, D) with these means and rest, as in :meth:`split`."""
        W = np.ascontiguousarray(self.feature_basis.backward(rest).T)
        if self.point_parts is not None:
            W += self.point_parts.spread(self.feature_basis.backward(means).T)
        W += self.constants
        return W

    def coefficients(self, weights: Array) -> tuple[float, float, float]:
        """The weights (a, b, c) of the three losses in a program."""
        matching, *others = self.positions
        assert matching is not None, "see of"
        b, c = [0.0 if index is None else float(weights[index]) for index in others]
        return float(weights[matching]), b, c

    def in_program_order(
        self, matching: float, over_points: float, over_features: float
    ) -> Array:
        """The three losses in the order of the program."""
        losses = (matching, over_points, over_features)
        placed = dict(zip(self.positions, losses, strict=True))
        placed.pop(None, None)
        return np.array([placed[index] for index in range(len(placed))])


def lattice_of(map_: LinearMap | None) -> LatticeLaplacian | None:
    """The matrix BᵀB of a map if it is that of a lattice, else None."""
    match map_:
        case ImplicitOverPoints(gram=LatticeLaplacian() as lattice):
            return lattice
        case OverPoints(lattice=lattice) | OverFeatures(lattice=lattice):
            return lattice
        case _:
            return None


def quadratic_refusal(program: Program) -> str | None:
    """The reason why the squared losses are not such a sum; None if they are."""
    for loss in (*program.kinds["robustness"], *program.kinds["smoothness"]):
        if loss.has_target:
            return f"{loss.name} couples attributions, and has a target"
    return curvature_refusal(program)


def curvature_refusal(program: Program) -> str | None:
    """The reason why their curvature is not that of such a sum, or None."""
    for loss in program.kinds["other squared"]:
        return f"{loss.name} is not a loss of W itself, over points or features"
    for kind in _COUPLED:
        count = len(program.kinds[kind])
        if count > 1:
            return f"it takes one {kind} loss, and there are {count}"
    if not program.kinds["gradient-matching"]:
        return "there is no squared gradient-matching loss"
    return None


def bounds_refusal(program: Program) -> str | None:
    """The reason why a program with bounds is refused; None without bounds."""
    if not program.bounds:
        return None
    return f"it takes no bounds, and {program.bounds[0]} is one"


def curve_refusal(program: Program) -> str | None:
    """The reason why the program is not only such a sum; None if it is."""
    return (
        bounds_refusal(program)
        or all_squared_refusal(program)
        or quadratic_refusal(program)
    )


def all_squared_refusal(program: Program) -> str | None:
    """The reason why not all losses are squared; None if they are."""
    for loss in (*program.kinds["sparsity"], *program.kinds["rest"]):
        return f"{loss.name} is not a squared loss"
    return None


def eigenbasis_refusal(program: Program) -> str | None:
    """The reason why the eigenbases exceed memory; None if they do not."""
    # a Gram matrix, its eigenvectors and LAPACK's workspace for each axis; of a
    # lattice nothing but coefficients
    n_points, n_features = program.shape
    n_bytes = 32.0 * n_features**2 + 80.0 * n_points * n_features
    if not any(lattice_of(loss.map) for loss in program.kinds["robustness"]):
        n_bytes = 32.0 * n_points**2 + 32.0 * n_features**2
    label = f"the eigenbasis of {n_points} points and {n_features} features"
    return memory_refusal(n_bytes, label, "the krylov solver works without it")


def _constants(G: Array, parts: Components | None) -> Array:
    """At each node the value at the first node of its part; zero without parts."""
    return np.zeros_like(G) if parts is None else parts.constants(G)


# ---- Eigenvectors of the Laplacian of similarities that span many decades


LEVEL = 1e-6
"""Eigenvalues this far below the largest have lost six digits, and are refined."""

COLUMNS = 2**24  # entries of a block of differences at once


def refine(P: Array, values: Array, vectors: Array, errors: Array) -> None:
    """Recompute small eigenvalues of a Laplacian P, in place, level by level."""
    form = _form_of(P)
    root = np.sqrt(len(P))
    norm = float(values[-1])
    last = len(values)
    while last > 0:
        small = int(np.searchsorted(values[:last], LEVEL * values[last - 1]))
        if small in (0, last):
            return
        U = vectors[:, :small]
        T = form(U)
        lower, turn = la.eigh(T)
        values[:small] = np.maximum(lower, 0.0)
        vectors[:, :small] = U @ turn
        vectors[:, :small] -= vectors[:, :small].mean(axis=0)
        residual = float(np.linalg.norm(T @ turn - turn * lower))
        # heavy edges amplify the last digits of vectors with equal values at their ends
        rounding = EPSILON * root * (float(lower[-1]) + EPSILON * root * norm)
        errors[:small] = residual + rounding
        last = small


def _form_of(P: Array) -> Callable[[Array], Array]:
    """A function U ↦ Uᵀ P U by differences along the edges, in blocks of columns."""
    i, j = np.nonzero(np.triu(P, k=1))
    n_edges = len(i)
    rows = np.arange(2 * n_edges + 1, step=2)
    signs = np.tile([1.0, -1.0], n_edges)
    ends = np.column_stack([i, j]).ravel()
    differences = sp.csr_array((signs, ends, rows), shape=(n_edges, len(P)))
    weights = -P[i, j][:, None]
    step = max(1, COLUMNS // max(n_edges, 1))

    def form(U: Array) -> Array:
        parts = []
        for first in range(0, U.shape[1], step):
            flow = differences @ U[:, first : first + step]
            flow *= weights
            parts.append(U.T @ (differences.T @ flow))
        T = np.concatenate(parts, axis=1)
        return (T + T.T) / 2.0

    return form


@final
class Eigenbasis:
    """An eigenbasis Uᵀ P U = diag(``values``), constants of components first."""

    def __init__(
        self,
        # (n, n): P, positive semidefinite; None means zero
        gram: Sparse | Array | Operator | None,
        # uncoupled parts on which constants have the eigenvalue zero
        parts: Components | None,
        size: int,  # n
    ) -> None:
        self._parts = parts
        self._blocks: list[_Block] = []
        if gram is not None:
            with few_threads(size):
                self._blocks.extend(self._diagonalised(gram))
        self._n_constants = size - sum([len(block.values) for block in self._blocks])

    @cached_property
    def values(self) -> Array:
        """The eigenvalues ≥ 0 of P, shape (n,)."""
        blocks = [block.values for block in self._blocks]
        return np.concatenate([np.zeros(self._n_constants), *blocks])

    @cached_property
    def errors(self) -> Array:
        """Bounds of the errors of the eigenvalues, shape (n,)."""
        blocks = [block.errors for block in self._blocks]
        return np.concatenate([np.zeros(self._n_constants), *blocks])

    def forward(self, X: Array) -> Array:
        """The coefficients Uᵀ X of X (n, k)."""
        if not self._blocks:
            return np.array(X, order="C")
        X_hat = np.empty(X.shape)
        R = X
        if self._parts is not None:
            means, R = self._parts.split(X)
            X_hat[: self._n_constants] = self._parts.lengths * means
        for block, rows in self._coefficients:
            X_hat[rows] = block.vectors.T @ R[block.nodes]
        return X_hat

    def backward(self, X_hat: Array) -> Array:
        """The vectors U X̂ for X̂ (n, k), with means added last."""
        if not self._blocks:
            return np.array(X_hat, order="C")
        X = np.zeros(X_hat.shape)
        for block, rows in self._coefficients:
            X[block.nodes] = block.vectors @ X_hat[rows]
        if self._parts is not None:
            X += self._parts.spread(X_hat[: self._n_constants] / self._parts.lengths)
        return X

    @cached_property
    def _coefficients(self) -> list[tuple[_Block, slice]]:
        """Each block with the indices of its coefficients."""
        first = self._n_constants
        pairs = []
        for block in self._blocks:
            last = first + len(block.values)
            pairs.append((block, slice(first, last)))
            first = last
        return pairs

    def _diagonalised(self, gram: Sparse | Array | Operator) -> Iterator[_Block]:
        P = dense_matrix(gram)
        if self._parts is None or self._parts.count == 1:
            if self._parts is None or len(P) > 1:
                yield _Block.of(P, slice(None), self._parts is not None)
            return
        for nodes in self._parts.members():
            if len(nodes) > 1:
                yield _Block.of(P[np.ix_(nodes, nodes)], nodes, True)


@final
@dataclass(frozen=True, eq=False)
class _Block:
    """Eigenvectors of one component with zero sums, or all of a matrix."""

    nodes: NDArray[np.intp] | slice
    values: Array
    errors: Array
    vectors: Array

    @classmethod
    def of(
        cls, P: Array, nodes: NDArray[np.intp] | slice, constants_are_free: bool
    ) -> _Block:
        if not constants_are_free:
            values, vectors = la.eigh(P)
            errors = _errors(P, values, vectors)
            return cls(nodes, np.maximum(values, 0.0), errors, vectors)
        # P + σ 11ᵀ/n with σ far above all eigenvalues: the constant comes last
        shift = 2.0 * _norm(P) or 1.0
        values, vectors = la.eigh(P + shift / len(P))
        values = values[:-1]
        vectors = vectors[:, :-1]
        vectors -= vectors.mean(axis=0)
        errors = _errors(P, values, vectors)
        # nothing off the diagonal is positive: the form is a sum of squares
        is_laplacian = not (np.triu(P, k=1) > 0.0).any()
        if values[0] < LEVEL * values[-1] and is_laplacian:
            refine(P, values, vectors, errors)
        return cls(nodes, np.maximum(values, 0.0), errors, vectors)


def _errors(P: Array, values: Array, vectors: Array) -> Array:
    """The residual ‖P U − U diag(values)‖ plus a bound of its rounding."""
    residual = float(np.linalg.norm(P @ vectors - vectors * values))
    return np.full(len(values), residual + EPSILON * np.sqrt(len(P)) * _norm(P))


def _norm(P: Array) -> float:
    """The largest row sum of absolute values, a bound of all eigenvalues."""
    return float(np.abs(P).sum(axis=1).max(initial=0.0))


@final
@dataclass(frozen=True, eq=False)
class Waves:
    """The eigenbasis of a lattice, by transforms and without storing it."""

    lattice: LatticeLaplacian

    @property
    def values(self) -> Array:
        """The eigenvalues ≥ 0 of P, shape (n,)."""
        return self.lattice.eigenvalues

    @cached_property
    def errors(self) -> Array:
        """Bounds of the errors of the eigenvalues, shape (n,)."""
        return 8.0 * EPSILON * self.values

    @property
    def rounding(self) -> float:
        """A bound of the relative rounding error of :meth:`forward`."""
        return self.lattice.transform_rounding

    def forward(self, X: Array) -> Array:
        """The coefficients Uᵀ X of X (n, k)."""
        columns = np.array(X.T, order="C")
        self.turn(columns)
        return columns.T

    def turn(self, columns: Array) -> None:
        """Replace each row x of contiguous columns (k, n) by Uᵀ x."""
        for column in columns:  # one fits into cache
            column[...] = self.lattice.forward(column, overwrite=True)

    def backward(self, X_hat: Array) -> Array:
        """The vectors U X̂ for X̂ (n, k), which may be overwritten."""
        columns = np.ascontiguousarray(X_hat.T)
        for column in columns:
            column[...] = self.lattice.backward(column)
        return columns.T


QuadraticBasis: TypeAlias = Eigenbasis | Waves


def eigenbases(quadratic: Quadratic) -> tuple[QuadraticBasis, QuadraticBasis]:
    """The eigenbases U over points and V over features."""
    points, features = quadratic.lattices
    return (
        Waves(points)
        if points is not None
        else Eigenbasis(quadratic.P, quadratic.point_parts, len(quadratic.G)),
        Waves(features) if features is not None else quadratic.feature_basis,
    )
