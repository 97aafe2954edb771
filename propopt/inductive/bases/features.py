"""Independent features, and those of any graph or kernel; what ``features`` may be.

Smoothness is tr(W Q Wᵀ) with a symmetric matrix Q of features. Everything else knows
Q = V diag(ς) Vᵀ by its eigenvalues and by three actions of V alone, so that a basis
whose V is never formed (see :mod:`images`) is one more subclass of
:class:`FeatureBasis`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg as la

from propopt._typing import Array
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.functions import ImageShape
from propopt.graphs.base import Graph
from propopt.inductive.bases.base import (
    FeatureBasis,
    positive_eigenbasis,
    require_room,
)
from propopt.inductive.bases.images import GridFeatures


@final
@dataclass(frozen=True)
class IndependentFeatures(FeatureBasis):
    """No feature is similar to another: V = I, and smoothness is zero.

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
@dataclass(frozen=True, eq=False)
class DenseFeatures(FeatureBasis):
    """An eigenbasis that is stored, D² numbers; see the two constructors.

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
    >>> DenseFeatures.of_graph(po.chain_graph(3)).eigenvalues.round(6)
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
        # one zero per component of the graph comes out as rounding: it is a zero, and
        # a constant along it is free
        rounding = len(values) * np.finfo(float).eps * max(values[-1], 0.0)
        return cls(np.where(values <= 10 * rounding, 0.0, values), vectors)

    @classmethod
    def of_kernel(cls, kernel_matrix: object) -> DenseFeatures:
        """The basis of 2 tr(W K_s⁻¹ Wᵀ), Q = 2K_s⁻¹ (Tadesse et al. 2024, Eq. 9).

        The factor two is that of :class:`propopt.KernelRobustness`, for features.

        Raises
        ------
        InvalidInput
            If K_s is not symmetric and positive definite to rounding.
        """
        values, vectors = positive_eigenbasis(kernel_matrix, "features")
        return cls(2.0 / values, vectors)

    def rotate(self, rows: Array) -> Array:
        return rows @ self.vectors

    def unrotate(self, rows: Array) -> Array:
        return rows @ self.vectors.T

    def unrotate_variances(self, variances: Array) -> Array:
        return variances @ np.square(self.vectors).T


def read_features(features: object, n_features: int) -> FeatureBasis:
    """The basis of a graph, an image's grid, a kernel matrix, None, or itself."""
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
