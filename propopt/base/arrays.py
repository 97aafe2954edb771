"""Array aliases, each with its shape, and sparse tables as arrays.

Symbols: N points, D features, M residuals or samples per point, E edges.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


Array: TypeAlias = NDArray[np.float64]
"""A float64 array of any shape."""

Points: TypeAlias = NDArray[np.float64]
"""Inputs X, shape (N, D)."""

Values: TypeAlias = NDArray[np.float64]
"""Model outputs f(X), shape (N,)."""

Attributions: TypeAlias = NDArray[np.float64]
"""Attributions W or gradients G, shape (N, D)."""

Indices: TypeAlias = NDArray[np.intp]
"""Positions in other arrays, of any shape."""

Mask: TypeAlias = NDArray[np.bool_]
"""Truth values, such as which rows are selected, of any shape."""

Edges: TypeAlias = NDArray[np.intp]
"""Node pairs (n, n') with n < n', shape (E, 2)."""

Sparse: TypeAlias = sp.csr_array
"""A sparse matrix in compressed rows."""


def quotient(
    above: NDArray[Any] | float,
    below: NDArray[Any],
    otherwise: NDArray[Any] | float = 0.0,
    where: Mask | None = None,
) -> Array:
    """Quotients, and other numbers where the divisor is not above zero.

    ``where`` is another condition for quotients.
    """
    numbers = np.full(np.broadcast(above, below).shape, otherwise)
    is_defined = below > 0.0 if where is None else where
    return np.divide(above, below, out=numbers, where=is_defined)


def largest_first(numbers: NDArray[Any]) -> Indices:
    """The positions of numbers from the largest on; equal ones keep their order."""
    return np.argsort(-numbers, kind="stable")


def filled(table: Any, absent: float) -> Array:
    """A sparse table as a dense one, with a number for entries that it lacks."""
    array = np.full(table.shape, absent)
    entries = table.tocoo()
    array[entries.row, entries.col] = entries.data
    return array
