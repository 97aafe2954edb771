"""Products M W that lose nothing to a large mean of W.

A row of a sparse matrix of differences is scaled after its difference is taken, for
differences of floating-point numbers are right to their last digit. Where there are no
such rows, what is constant on components is taken out of W first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array, Sparse
from propopt.linear.components import Components
from propopt.linear.rounding import EPSILON, Rounding


class ExactProduct(ABC):
    """M @ W of a matrix M (E, N), for W (N, D)."""

    @abstractmethod
    def __call__(self, W: Array) -> Array:
        """M W."""

    @abstractmethod
    def energy(self, W: Array) -> float:
        """‖M W‖²."""

    @abstractmethod
    def rounding(self, W: Array) -> Rounding:
        """See :meth:`LinearMap.rounding`."""


@final
class _Differences(ExactProduct):
    """M sparse; each row is scaled to ±1 first, so that it takes exact differences."""

    def __init__(self, matrix: Sparse) -> None:
        rows = sp.csr_array(matrix)
        self._heights = abs(rows).max(axis=1).toarray().ravel()
        signs = rows.data / np.repeat(self._heights, np.diff(rows.indptr))
        self._unit = sp.csr_array((signs, rows.indices, rows.indptr), rows.shape)

    def __call__(self, W: Array) -> Array:
        R = np.asarray(self._unit @ W)
        R *= self._heights[:, None]
        return R

    def energy(self, W: Array) -> float:
        R = self._unit @ W
        return float(np.einsum("ed,ed->e", R, R) @ self._heights**2)

    def rounding(self, W: Array) -> Rounding:
        del W
        return Rounding(0.0, 0.0)


@final
class _Sums(ExactProduct):
    """M dense; what is constant on components is taken out of W."""

    def __init__(self, matrix: Array, components: Components | None) -> None:
        self._matrix = matrix
        self._components = components

    def __call__(self, W: Array) -> Array:
        return np.asarray(self._matrix @ centred(W, self._components))

    def energy(self, W: Array) -> float:
        R = self(W)
        return float(np.vdot(R, R))

    def rounding(self, W: Array) -> Rounding:
        size = float(np.linalg.norm(self._matrix))
        rate = 4.0 * EPSILON * float(np.linalg.norm(centred(W, self._components)))
        return Rounding(rate * size, 2.0 * rate * size**2)


def product_of(matrix: Sparse | Array, components: Components | None) -> ExactProduct:
    """Products with a matrix that takes what is constant on components to zero."""
    if isinstance(matrix, np.ndarray):
        return _Sums(matrix, components)
    return _Differences(matrix)


def centred(W: Array, components: Components | None) -> Array:
    """W less what is constant on components; W itself where constants cost."""
    return W if components is None else components.centred(W)
