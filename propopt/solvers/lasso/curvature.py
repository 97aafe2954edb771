"""The curvature of squared losses, H = 2(I + βP + γQ), as products and bounds.

β = b/a and γ = c/a for a‖W − G‖² + b tr(Wᵀ P W) + c tr(W Q Wᵀ), divided by a. Newton's
method needs products with H, a diagonal bound M ≽ H for its gradient steps, and an
approximate inverse for conjugate gradients. Attributions are stored as the product
likes them: points in rows for stored matrices, features in rows (columns of W
contiguous) for operators, which take one column at a time, on two threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import scipy.fft
import scipy.linalg as la
import scipy.sparse as sp

from propopt._typing import Array, Attributions, Sparse
from propopt.curvature.quadratic import Quadratic
from propopt.maps import dense_matrix
from propopt.operators import LatticeLaplacian, Operator, ProductKernelLaplacian
from propopt.threads import for_each_column


DENSITY = 0.1  # products with a stored matrix are faster dense from here on
PRECONDITIONED = 30.0  # β‖P‖ from which two cosine transforms a step pay for themselves


class Curvature(ABC):
    """H = 2(I + βP + γQ) on attributions in a layout of its own.

    Parameters
    ----------
    beta, gamma : float
        Weights of P and Q, relative to that of the identity.
    """

    def __init__(self, beta: float, gamma: float) -> None:
        self.beta = beta
        self.gamma = gamma

    @abstractmethod
    def stored(self, W: Attributions) -> Array:
        """A contiguous copy of W (N, D) in this layout."""

    @abstractmethod
    def restored(self, X: Array) -> Attributions:
        """W (N, D) from this layout."""

    @abstractmethod
    def product(self, X: Array) -> Array:
        """H X, a new array."""

    @property
    @abstractmethod
    def bound(self) -> Array:
        """A diagonal M ≽ H, of a shape that broadcasts."""

    @abstractmethod
    def precondition(self, R: Array) -> Array:
        """An approximation of H⁻¹R, symmetric and positive definite; a new array."""

    def guess(self, X: Array) -> Array | None:
        """H⁻¹X where it is known exactly, else None."""
        del X
        return None


@final
class StoredCurvature(Curvature):
    """P is a matrix, sparse or dense; points in rows."""

    def __init__(
        self,
        P: Sparse | Array | None,
        Q: Array | None,
        beta: float,
        gamma: float,
    ) -> None:
        super().__init__(beta, gamma)
        self._P = P
        self._Q = Q

    def stored(self, W: Attributions) -> Array:
        return np.array(W, order="C")

    def restored(self, X: Array) -> Attributions:
        return X

    def product(self, X: Array) -> Array:
        product = 2.0 * X
        if self._P is not None and self.beta:
            coupled = self._P @ X
            coupled *= 2.0 * self.beta
            product += coupled
        if self._Q is not None and self.gamma:
            product += X @ ((2.0 * self.gamma) * self._Q)
        return product

    @cached_property
    def bound(self) -> Array:
        # |P|1 bounds P, for symmetric P (Gershgorin)
        over_points = _row_sums(self._P) * self.beta
        over_features = _row_sums(self._Q) * self.gamma
        return np.asarray(2.0 + 2.0 * np.add.outer(over_points, over_features))

    def precondition(self, R: Array) -> Array:
        _, V = self._feature_basis
        if V is None:
            return np.asarray(R * self._inverse_diagonal)
        return np.asarray(((R @ V) * self._inverse_diagonal) @ V.T)

    @cached_property
    def _inverse_diagonal(self) -> Array:
        over_points = self._points_diagonal * self.beta
        over_features = self._feature_basis[0] * self.gamma
        return np.asarray(0.5 / (1.0 + np.add.outer(over_points, over_features)))

    @property
    def _points_diagonal(self) -> Array:
        return np.zeros(1) if self._P is None else diagonal(self._P)

    @cached_property
    def _feature_basis(self) -> tuple[Array, Array | None]:
        if self._Q is None or self.gamma == 0.0:
            return np.zeros(1), None
        values, vectors = la.eigh(self._Q)
        return np.maximum(values, 0.0), vectors


@final
class OperatorCurvature(Curvature):
    """P is known by its action on a column; features in rows.

    A lattice is diagonal under the cosine transform, which then is the preconditioner
    (exact where no attribution is zero); other operators have none but a diagonal.
    """

    def __init__(
        self,
        P: Operator,
        Q: Array | None,
        beta: float,
        gamma: float,
        basis: CosineBasis | None,
    ) -> None:
        super().__init__(beta, gamma)
        self._P = P
        self._Q = Q
        worthwhile = beta * P.largest >= PRECONDITIONED
        self._basis = basis if worthwhile else None

    def stored(self, W: Attributions) -> Array:
        return np.array(W.T, order="C")

    def restored(self, X: Array) -> Attributions:
        return np.ascontiguousarray(X.T)

    def product(self, X: Array) -> Array:
        product = np.empty_like(X)

        def fill(column: int) -> None:
            row = product[column]
            self._P.apply(X[column], row)
            row *= 2.0 * self.beta
            row += X[column]
            row += X[column]

        for_each_column(fill, *X.shape)
        if self._Q is not None and self.gamma:
            product += ((2.0 * self.gamma) * self._Q) @ X
        return product

    @cached_property
    def bound(self) -> Array:
        over_features = _row_sums(self._Q) * self.gamma
        # P ≼ 2·diag(P) for a Laplacian of similarities ≥ 0
        over_points = (2.0 * self.beta) * diagonal(self._P)
        return np.asarray(2.0 + 2.0 * np.add.outer(over_features, over_points))

    def precondition(self, R: Array) -> Array:
        if self._basis is None:
            return R / (0.5 * (2.0 + self.bound))
        return self._inverse(self._basis, R)

    def guess(self, X: Array) -> Array | None:
        return None if self._basis is None else self._inverse(self._basis, X)

    def _inverse(self, basis: CosineBasis, R: Array) -> Array:
        values, V = self._feature_basis
        nu = np.broadcast_to(values, len(R))
        turned = R.copy() if V is None else V.T @ R

        def divide(column: int) -> None:
            eigenvalues = (2.0 * self.beta) * basis.values
            eigenvalues += 2.0 * (1.0 + self.gamma * nu[column])
            spectrum = basis.forward(turned[column])
            spectrum /= eigenvalues
            turned[column] = basis.backward(spectrum)

        for_each_column(divide, *R.shape)
        return turned if V is None else V @ turned

    @cached_property
    def _feature_basis(self) -> tuple[Array, Array | None]:
        if self._Q is None:
            return np.zeros(1), None
        values, vectors = la.eigh(self._Q)
        return np.maximum(values, 0.0), vectors


@final
class CosineBasis:
    """The eigenbasis of :class:`LatticeLaplacian`: the cosine transform of the box.

    A path of n points has the eigenvalues 2 − 2cos(πk/n); those of a box add up.
    """

    def __init__(self, laplacian: LatticeLaplacian) -> None:
        self.box = laplacian.box

    @cached_property
    def values(self) -> Array:
        """Eigenvalues, shape (N,), in the order of :meth:`forward`."""
        total = np.zeros(1)
        for n in self.box:
            path = 4.0 - 4.0 * np.cos(np.pi * np.arange(n) / n)
            total = np.add.outer(total, path).ravel()
        return total

    def forward(self, w: Array) -> Array:
        """Coefficients of one vector (N,)."""
        transformed = scipy.fft.dctn(w.reshape(self.box), norm="ortho")
        return np.asarray(transformed).ravel()

    def backward(self, coefficients: Array) -> Array:
        """The vector (N,) of these coefficients, which are overwritten."""
        block = coefficients.reshape(self.box)
        vector = scipy.fft.idctn(block, norm="ortho", overwrite_x=True)
        return np.asarray(vector).ravel()


@final
@dataclass(frozen=True, eq=False)
class Couplings:
    """P and Q, as products with them are fastest.

    Parameters
    ----------
    P : matrix or None
        (N, N), sparse, dense or an operator.
    Q : array or None
        (D, D).
    """

    P: Sparse | Array | Operator | None
    Q: Array | None

    @classmethod
    def of(cls, quadratic: Quadratic) -> Couplings:
        """Those of a quadratic."""
        P = quadratic.P
        if P is not None and not isinstance(P, np.ndarray | Operator):
            P = sp.csr_array(P)  # by rows, for products write each row once
            if P.nnz > DENSITY * P.shape[0] ** 2:
                P = dense_matrix(P)
        return cls(P, quadratic.Q)

    @property
    def dense_size(self) -> int:
        """N where products with P are dense; zero where BLAS has nothing to share."""
        return len(self.P) if isinstance(self.P, np.ndarray) else 0

    def curvature(self, beta: float, gamma: float) -> Curvature:
        """H = 2(I + βP + γQ)."""
        if isinstance(self.P, Operator):
            return OperatorCurvature(self.P, self.Q, beta, gamma, self._cosine_basis)
        return StoredCurvature(self.P, self.Q, beta, gamma)

    @cached_property
    def _cosine_basis(self) -> CosineBasis | None:
        if isinstance(self.P, LatticeLaplacian):
            return CosineBasis(self.P)
        return None


def _row_sums(matrix: Sparse | Array | None) -> Array:
    return (
        np.zeros(1) if matrix is None else np.asarray(abs(matrix).sum(axis=1)).ravel()
    )


def diagonal(matrix: Sparse | Array | Operator) -> Array:
    """The diagonal; of an operator without one, half of its largest eigenvalue.

    A Laplacian of similarities ≥ 0 is at most twice its diagonal.
    """
    if isinstance(matrix, ProductKernelLaplacian):
        return 2.0 * matrix.degrees
    if isinstance(matrix, Operator):
        return np.array([0.5 * matrix.largest])
    return np.asarray(matrix.diagonal())
