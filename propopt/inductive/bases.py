"""Eigenbases of similar features, and of kernel matrices.

Smoothness is tr(W Q Wᵀ) with a symmetric matrix Q of features. :class:`FeatureBasis`
represents Q = V diag(ς) Vᵀ by its eigenvalues and three products with V.

Pixels of images as features: a feature is a channel, a row and a column, V = I_C ⊗
V_row ⊗ V_col. An image M (H, W) of rotated features is V_rowᵀ M V_col: O(D (H + W))
instead of D², and nothing of size D² is formed.

Eigenbases of kernel matrices rotate a few columns without being formed. K = Q T
Qᵀ with T tridiagonal and Q a product of Householder reflectors, and T = S diag(κ) Sᵀ.
Columns are rotated by Qᵀ, then by Sᵀ: for fewer columns than points this
is cheaper than to form U = Q S, which takes 40 % of a whole eigendecomposition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

import numpy as np
import scipy.linalg as la
from scipy import fft

from propopt.base.arrays import Array
from propopt.base.checks import read_array, read_count
from propopt.base.errors import InvalidInput
from propopt.base.resources import BATCH_BUDGET, require_memory
from propopt.base.suggestions import suggests_arguments
from propopt.functions import ImageShape
from propopt.losses.graphs.points import Graph
from propopt.losses.linear_algebra import is_symmetric, reflected, tridiagonalised


# ---- Eigenbases of similar features


class FeatureBasis(ABC):
    """An orthogonal basis V of the features with the eigenvalues ς of smoothness.

    The smoothness of attributions W is Σ_nj ς_j (W V)²_nj. Subclasses store what they
    need to apply V, which may be much less than V itself.
    """

    @property
    @abstractmethod
    def eigenvalues(self) -> Array:
        """Eigenvalues ς_j ≥ 0, (D,); zero for directions without a smoothness loss."""

    @abstractmethod
    def rotate(self, rows: Array) -> Array:
        """The product ``rows @ V`` for rows (..., D)."""

    @abstractmethod
    def unrotate(self, rows: Array) -> Array:
        """The product ``rows @ V.T`` for rows (..., D)."""

    @abstractmethod
    def unrotate_variances(self, variances: Array) -> Array:
        """Variances diag(V diag(s) Vᵀ) for each row s of ``variances`` (..., D)."""

    @final
    @property
    def n_features(self) -> int:
        """The number D of features."""
        return len(self.eigenvalues)


def positive_eigenbasis(kernel_matrix: object) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a positive definite matrix."""
    matrix = read_array(kernel_matrix, "features", ndim=2)
    if not is_symmetric(matrix):
        raise InvalidInput(
            f"features: expected a symmetric kernel matrix, got shape {matrix.shape}"
        )
    require_room(len(matrix))
    values, vectors = la.eigh(matrix)
    if values[0] <= len(values) * np.finfo(float).eps * abs(values[-1]):
        raise InvalidInput(
            "features: expected a positive definite kernel matrix; its smallest "
            f"eigenvalue is {values[0]:.3g}. Add jitter: K + 1e-8 * np.eye(len(K))"
        )
    return values, vectors


def require_room(n_features: int) -> None:
    """Refuse a dense eigenbasis that does not fit into memory."""
    require_memory(
        32.0 * n_features**2,
        f"a dense eigenbasis of {n_features} features",
        "give a FeatureBasis that does not store its eigenvectors, such as "
        "GridFeatures for images",
    )


# ---- Pixels of images as features


@final
@suggests_arguments
@dataclass(frozen=True)
class GridFeatures(FeatureBasis):
    """Features on a grid of pixels with up to four neighbours each.

    The basis of ``Smoothness(shape.pixel_graph())``: Q = 2M with the Laplacian M of a
    grid is diagonal in the DCT-II of each channel (Strang 1999), with eigenvalues ς_ab
    = 4 (2 − cos(πa/H) − cos(πb/W)). Rotation costs O(D log D) per row, and nothing is
    stored.

    Parameters
    ----------
    shape : ImageShape
        Channels, height and width.

    Examples
    --------
    >>> import propopt as po
    >>> from propopt.inductive import GridFeatures
    >>> GridFeatures(po.functions.ImageShape(1, 2, 2)).eigenvalues
    array([0., 4., 4., 8.])
    """

    shape: ImageShape

    @cached_property
    def eigenvalues(self) -> Array:
        # 2 (1 − cos t) = 4 sin²(t/2) keeps the digits of the smallest
        down = _path(self.shape.height)
        across = _path(self.shape.width)
        return np.tile(np.add.outer(down, across).ravel(), self.shape.channels)

    def rotate(self, rows: Array) -> Array:
        images = _images(rows, self.shape)
        return fft.dctn(images, axes=(-2, -1), norm="ortho").reshape(rows.shape)

    def unrotate(self, rows: Array) -> Array:
        images = _images(rows, self.shape)
        return fft.idctn(images, axes=(-2, -1), norm="ortho").reshape(rows.shape)

    def unrotate_variances(self, variances: Array) -> Array:
        down = _cosines(self.shape.height)
        across = _cosines(self.shape.width)
        return _both_sides(variances, self.shape, down**2, across**2)


def _both_sides(rows: Array, shape: ImageShape, down: Array, across: Array) -> Array:
    """``down @ M @ across.T`` for every image M of the rows, by blocks."""
    turned = np.empty(rows.shape)
    images = _images(rows, shape)
    products = _images(turned, shape)
    for part in BATCH_BUDGET.blocks(len(images), 8 * shape.n_features):
        np.matmul(down, images[part] @ across.T, out=products[part])
    return turned


def _images(rows: Array, shape: ImageShape) -> Array:
    """Rows (..., D) as images (n, C, H, W)."""
    return rows.reshape(-1, *shape.sizes)


def _path(count: int) -> Array:
    """Eigenvalues of 2M for a path, ascending: 4 − 4 cos(πa/n) = 8 sin²(πa/2n)."""
    return 8.0 * np.sin(np.pi * np.arange(count) / (2 * count)) ** 2


def _cosines(count: int) -> Array:
    """Eigenvectors of a path in columns."""
    return fft.idct(np.eye(count), norm="ortho", axis=0)


# ---- Independent features, and features of any graph or kernel


@final
@suggests_arguments
@dataclass(frozen=True)
class IndependentFeatures(FeatureBasis):
    """Features without similarities: V = I, and smoothness is zero.

    Parameters
    ----------
    count : int
        D.

    Examples
    --------
    >>> from propopt.inductive import IndependentFeatures
    >>> IndependentFeatures(3).eigenvalues
    array([0., 0., 0.])
    """

    count: int

    def __post_init__(self) -> None:
        read_count(self.count, "count")

    @property
    def eigenvalues(self) -> Array:
        return np.zeros(self.count)

    def rotate(self, rows: Array) -> Array:
        return rows

    def unrotate(self, rows: Array) -> Array:
        return rows

    def unrotate_variances(self, variances: Array) -> Array:
        return variances


@final
@suggests_arguments
@dataclass(frozen=True, eq=False)
class DenseFeatures(FeatureBasis):
    """The eigenvectors of a smoothness loss over D features, stored in D² numbers.

    Make it with :meth:`of_graph` or :meth:`of_kernel`.

    Parameters
    ----------
    spectrum : array (D,)
        ς, what ``eigenvalues`` gives.
    vectors : array (D, D)
        V, eigenvectors in columns.

    Examples
    --------
    >>> import propopt as po
    >>> from propopt.inductive import DenseFeatures
    >>> DenseFeatures.of_graph(po.graphs.chain_graph(3)).eigenvalues.round(6)
    array([0., 2., 6.])
    """

    spectrum: Array
    vectors: Array

    @property
    def eigenvalues(self) -> Array:
        return self.spectrum

    @classmethod
    def of_graph(cls, graph: Graph) -> DenseFeatures:
        """The basis of :class:`propopt.Smoothness`, Q = 2M with the Laplacian M."""
        require_room(graph.n_nodes)
        values, vectors = la.eigh(2.0 * np.asarray(graph.laplacian.toarray()))
        # the zero of each component of the graph has rounding, which is removed
        rounding = len(values) * np.finfo(float).eps * max(values[-1], 0.0)
        return cls(np.where(values <= 10 * rounding, 0.0, values), vectors)

    @classmethod
    def of_kernel(cls, kernel_matrix: object) -> DenseFeatures:
        """The basis of 2 tr(W K_s⁻¹ Wᵀ), Q = 2K_s⁻¹ (Tadesse et al. 2024, Eq. 9).

        The factor two is that of :class:`propopt.losses.KernelRobustness`, for
        features.

        Raises
        ------
        InvalidInput
            If K_s is not symmetric and positive definite to rounding.
        """
        values, vectors = positive_eigenbasis(kernel_matrix)
        return cls(2.0 / values, vectors)

    def rotate(self, rows: Array) -> Array:
        return rows @ self.vectors

    def unrotate(self, rows: Array) -> Array:
        return rows @ self.vectors.T

    def unrotate_variances(self, variances: Array) -> Array:
        return variances @ np.square(self.vectors).T


def read_features(features: object, n_features: int) -> FeatureBasis:
    """The basis of a graph, an image shape, a kernel matrix or None."""
    match features:
        case None:
            basis: FeatureBasis = IndependentFeatures(n_features)
        case FeatureBasis():
            basis = features
        case ImageShape():
            basis = GridFeatures(features)
        case Graph():
            basis = DenseFeatures.of_graph(features)
        case _:
            basis = DenseFeatures.of_kernel(features)
    if basis.n_features != n_features:
        raise InvalidInput(
            f"features: expected {n_features} features as in X, got {basis.n_features}"
        )
    return basis


# ---- Eigenbases of kernel matrices


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class KernelEigenbasis:
    """The eigenbasis of K = U diag(κ) Uᵀ, with U = Q S."""

    eigenvalues: Array  # (n,): κ ≥ 0, ascending
    reflectors: Array  # (n − 1, n − 1): of Q below its first row and column
    tau: Array  # (n − 1,): their factors τ, I − τ v vᵀ
    tridiagonal: Array  # (n, n): S

    @classmethod
    def of(cls, matrix: Array) -> KernelEigenbasis:
        """The eigenbasis of a positive semidefinite matrix, which is overwritten."""
        reflectors, diagonal, off_diagonal, tau = tridiagonalised(matrix)
        values, vectors = la.eigh_tridiagonal(diagonal, off_diagonal)
        return cls(
            eigenvalues=nonnegative(values),
            reflectors=reflectors,
            tau=tau,
            tridiagonal=vectors,
        )

    @cached_property
    def vectors(self) -> Array:
        """Eigenvectors U in columns, formed once in O(n³)."""
        return self._reflected(self.tridiagonal, "N")

    def rotate(self, columns: Array) -> Array:
        """The product of Uᵀ and columns (n, m)."""
        if 2 * columns.shape[1] >= len(self.eigenvalues):
            return self.vectors.T @ columns
        return self.tridiagonal.T @ self._reflected(columns, "T")

    def _reflected(self, columns: Array, transpose: Literal["N", "T"]) -> Array:
        """The product of Q or Qᵀ and columns (n, m)."""
        turned = np.array(columns, order="F")
        if len(self.tau) == 0:
            return turned
        turned[1:] = reflected(self.reflectors, self.tau, turned[1:], transpose)
        return turned


def eigenbasis(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a positive semidefinite matrix."""
    values, vectors = la.eigh(matrix)
    return nonnegative(values), vectors


def nonnegative(eigenvalues: Array) -> Array:
    """Ascending eigenvalues, with negative rounding set to zero."""
    if eigenvalues[0] < -1e-10 * max(eigenvalues[-1], 0.0):
        raise InvalidInput(
            "kernel: its matrix is not positive semidefinite (smallest eigenvalue "
            f"{eigenvalues[0]:.3g}, largest {eigenvalues[-1]:.3g})"
        )
    return np.maximum(eigenvalues, 0.0)
