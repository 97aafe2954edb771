"""The eigenbasis of a Gram matrix, one block for each connected component.

On each component the constant vector has the eigenvalue zero, and is known: it is taken
out of G before any arithmetic, as its mean. Every other eigenvalue is found among the
entries of its own component, so that small ones keep their digits beside a component
with large similarities. None is set to zero for being small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, final

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from propopt._typing import Array, Sparse
from propopt.curvature.levels import LEVEL, is_laplacian, refine
from propopt.linear.components import Components
from propopt.linear.rounding import EPSILON
from propopt.maps import dense_matrix
from propopt.operators import Operator


_Members: TypeAlias = NDArray[np.intp] | slice


@final
class Eigenbasis:
    """Uᵀ P U = diag(``values``), with the constants of the components first in U.

    Parameters
    ----------
    gram : matrix (n, n) or None
        P, positive semidefinite; None stands for zero.
    parts : Components or None
        Parts that P does not couple, on each of which constants cost nothing; None
        where P has no such parts.
    size : int
        n.
    """

    def __init__(
        self,
        gram: Sparse | Array | Operator | None,
        parts: Components | None,
        size: int,
    ) -> None:
        self._parts = parts
        self._blocks = () if gram is None else tuple(self._diagonalised(gram))
        self._n_constants = size - sum(len(block.values) for block in self._blocks)

    @cached_property
    def values(self) -> Array:
        """Eigenvalues ≥ 0, shape (n,)."""
        blocks = [block.values for block in self._blocks]
        return np.concatenate([np.zeros(self._n_constants), *blocks])

    @cached_property
    def errors(self) -> Array:
        """To what the eigenvalues are known, shape (n,)."""
        blocks = [block.errors for block in self._blocks]
        return np.concatenate([np.zeros(self._n_constants), *blocks])

    def forward(self, X: Array) -> Array:
        """Uᵀ X for X (n, k)."""
        if not self._blocks:
            return np.array(X, order="C")
        X_hat = np.empty(X.shape)
        R = X
        if self._parts is not None:
            means, R = self._parts.split(X)
            X_hat[: self._n_constants] = self._roots * means
        for block, rows in self._places():
            X_hat[rows] = block.vectors.T @ R[block.nodes]
        return X_hat

    def backward(self, X_hat: Array) -> Array:
        """U X̂ for X̂ (n, k); the means are added last."""
        if not self._blocks:
            return np.array(X_hat, order="C")
        X = np.zeros(X_hat.shape)
        for block, rows in self._places():
            X[block.nodes] = block.vectors @ X_hat[rows]
        if self._parts is not None:
            X += self._parts.spread(X_hat[: self._n_constants] / self._roots)
        return X

    @cached_property
    def _roots(self) -> Array:
        """‖1‖ on each component."""
        assert self._parts is not None, "only parts have constants"
        return np.sqrt(self._parts.sizes)[:, None]

    def _places(self) -> Iterator[tuple[_Block, slice]]:
        """Each block, and where its coefficients stand."""
        first = self._n_constants
        for block in self._blocks:
            last = first + len(block.values)
            yield block, slice(first, last)
            first = last

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
    """Eigenvectors of one component that add up to zero, or all of a matrix."""

    nodes: _Members
    values: Array
    errors: Array
    vectors: Array

    @classmethod
    def of(cls, P: Array, nodes: _Members, constants_are_free: bool) -> _Block:
        if not constants_are_free:
            values, vectors = la.eigh(P)
            errors = _errors(P, values, vectors)
            return cls(nodes, np.maximum(values, 0.0), errors, vectors)
        # P + σ 11ᵀ/n with σ far above all eigenvalues: the constant comes last
        shift = 2.0 * _norm(P) or 1.0
        values, vectors = la.eigh(P + shift / len(P))
        values, vectors = values[:-1], vectors[:, :-1]
        vectors -= vectors.mean(axis=0)
        errors = _errors(P, values, vectors)
        if values[0] < LEVEL * values[-1] and is_laplacian(P):
            refine(P, values, vectors, errors)
        return cls(nodes, np.maximum(values, 0.0), errors, vectors)


def _errors(P: Array, values: Array, vectors: Array) -> Array:
    """‖P U − U diag(values)‖, and what rounding may hide in that product."""
    residual = float(np.linalg.norm(P @ vectors - vectors * values))
    return np.full(len(values), residual + EPSILON * np.sqrt(len(P)) * _norm(P))


def _norm(P: Array) -> float:
    """The largest sum of absolute values in a row: no eigenvalue is larger."""
    return float(np.abs(P).sum(axis=1).max(initial=0.0))
