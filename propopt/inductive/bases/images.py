"""Pixels of images as features: eigenbases that are products of rows and columns.

A feature is a channel, a row and a column, V = I_C ⊗ V_row ⊗ V_col. An image M (H, W)
of rotated features is V_rowᵀ M V_col: O(D (H + W)) instead of D², and nothing of
size D² is formed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np
from scipy import fft

from propopt._typing import Array
from propopt.checks import read_count
from propopt.functions import ImageShape
from propopt.inductive.bases.base import FeatureBasis, positive_eigenbasis
from propopt.inductive.process.posterior import blocks


@final
@dataclass(frozen=True)
class GridFeatures(FeatureBasis):
    """Pixels with their up to four neighbours, by cosine transforms.

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
    >>> GridFeatures(po.ImageShape(1, 2, 2)).eigenvalues
    array([0., 4., 4., 8.])
    """

    shape: ImageShape

    @cached_property
    def eigenvalues(self) -> Array:
        # 2 (1 − cos t) = 4 sin²(t/2) keeps the digits of the smallest
        down, across = _path(self.shape.height), _path(self.shape.width)
        return np.tile(np.add.outer(down, across).ravel(), self.shape.channels)

    def rotate(self, rows: Array) -> Array:
        images = _images(rows, self.shape)
        return fft.dctn(images, axes=(-2, -1), norm="ortho").reshape(rows.shape)

    def unrotate(self, rows: Array) -> Array:
        images = _images(rows, self.shape)
        return fft.idctn(images, axes=(-2, -1), norm="ortho").reshape(rows.shape)

    def unrotate_variances(self, variances: Array) -> Array:
        down, across = _cosines(self.shape.height), _cosines(self.shape.width)
        return _both_sides(variances, self.shape, down**2, across**2)


@final
@dataclass(frozen=True, eq=False)
class KroneckerFeatures(FeatureBasis):
    """Pixels whose similarity is that of their rows times that of their columns.

    The basis of 2 tr(W K_s⁻¹ Wᵀ) with K_s = I_C ⊗ K_row ⊗ K_column (Tadesse et al.
    2024, Eq. 9): its eigenvectors are products of theirs, with ς_ab = 2/(ρ_a γ_b).
    Stores H² + W² + D numbers; see :meth:`of_kernels`.

    Parameters
    ----------
    shape : ImageShape
        Channels, height and width.
    spectrum : array (D,)
        ς, what ``eigenvalues`` gives.
    row_vectors : array (H, H)
        V_row, eigenvectors in columns.
    column_vectors : array (W, W)
        V_col.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.inductive import KroneckerFeatures
    >>> rows, columns = np.eye(2), np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> KroneckerFeatures.of_kernels(rows, columns).eigenvalues.round(6)
    array([4.      , 1.333333, 4.      , 1.333333])
    """

    shape: ImageShape
    spectrum: Array = field(repr=False)
    row_vectors: Array = field(repr=False)
    column_vectors: Array = field(repr=False)

    @classmethod
    def of_kernels(
        cls, row_kernel: object, column_kernel: object, channels: int = 1
    ) -> KroneckerFeatures:
        """From kernel matrices K_row (H, H) and K_column (W, W); O(H³ + W³).

        Parameters
        ----------
        row_kernel, column_kernel : array
            How similar rows are, and how similar columns are.
        channels : int
            C; channels are not similar to one another.

        Raises
        ------
        InvalidInput
            If a matrix is not symmetric and positive definite to rounding.
        """
        rho, row_vectors = positive_eigenbasis(row_kernel, "row_kernel")
        gamma, column_vectors = positive_eigenbasis(column_kernel, "column_kernel")
        count = read_count(channels, "channels")
        spectrum = np.tile(2.0 / np.outer(rho, gamma).ravel(), count)
        shape = ImageShape(count, len(rho), len(gamma))
        return cls(shape, spectrum, row_vectors, column_vectors)

    @property
    def eigenvalues(self) -> Array:
        return self.spectrum

    def rotate(self, rows: Array) -> Array:
        return _both_sides(rows, self.shape, self.row_vectors.T, self.column_vectors.T)

    def unrotate(self, rows: Array) -> Array:
        return _both_sides(rows, self.shape, self.row_vectors, self.column_vectors)

    def unrotate_variances(self, variances: Array) -> Array:
        # (V_row ⊗ V_col)² = V_row² ⊗ V_col², entry by entry
        down, across = self.row_vectors**2, self.column_vectors**2
        return _both_sides(variances, self.shape, down, across)


def _both_sides(rows: Array, shape: ImageShape, down: Array, across: Array) -> Array:
    """``down @ M @ across.T`` for every image M of the rows, in blocks of rows."""
    turned = np.empty(rows.shape)
    images, products = _images(rows, shape), _images(turned, shape)
    for part in blocks(len(images), 8 * shape.n_features):
        np.matmul(down, images[part] @ across.T, out=products[part])
    return turned


def _images(rows: Array, shape: ImageShape) -> Array:
    """Rows (..., D) as images (n, C, H, W)."""
    return rows.reshape(-1, *shape.sizes)


def _path(count: int) -> Array:
    """Eigenvalues of 2M for a path, ascending: 4 − 4 cos(πa/n) = 8 sin²(πa/2n)."""
    return np.asarray(8.0 * np.sin(np.pi * np.arange(count) / (2 * count)) ** 2)


def _cosines(count: int) -> Array:
    """Eigenvectors of a path in columns."""
    return np.asarray(fft.idct(np.eye(count), norm="ortho", axis=0))
