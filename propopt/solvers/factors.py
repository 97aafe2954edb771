"""Cholesky factors of s I + b P for a sparse P, and what they cost, before any is made.

* **Banded**, in the order of points that has the smaller bandwidth w: as they come, or
  by reverse Cuthill and McKee. N w² operations; chains, paths, neighbours of points on
  a line.
* **Sparse**. A forest has no fill where each node comes before its parent, as it does
  in the reversed order of breadth. Other graphs go by minimum degree; the envelope in
  the order of Cuthill and McKee bounds their fill from above, loosely.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, final

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from propopt._typing import Array, Sparse
from propopt.errors import SolverFailure


_Kind: TypeAlias = Literal["banded", "sparse"]

# seconds, by measurement
BAND_NODE, BAND_ENTRY, BAND_OPERATION = 1.3e-7, 2e-8, 5e-10
BAND_SOLVE_NODE, BAND_SOLVE_ENTRY = 5e-8, 4e-9
SPARSE_ENTRY, SPARSE_OPERATION, SPARSE_SOLVE = 1.7e-6, 1e-9, 2.5e-8
NARROW = 4  # a bandwidth that no other order is tried for
BYTES_PER_ENTRY = 16.0  # a factor and the matrix that it is made of, or its indices


class Factor(ABC):
    """(s I + b P)⁻¹ as an action."""

    @abstractmethod
    def solve(self, R: Array) -> Array:
        """The solution for right-hand sides R (N, k)."""


@final
@dataclass(frozen=True, eq=False)
class Elimination:
    """How s I + b P is factorised for any s > 0 and b ≥ 0.

    Parameters
    ----------
    P : sparse matrix (N, N)
        Symmetric and positive semidefinite.
    order : array (N,) or None
        A permutation that makes P narrow, or puts leaves first; None where the points
        are in order, or minimum degree is to find one.
    heights : array (N,)
        How far left of the diagonal each row of a narrow P reaches, which bounds the
        entries of each row of the factor.
    kind : {"banded", "sparse"}
        What is cheaper.
    """

    P: Sparse
    order: NDArray[np.intp] | None
    heights: NDArray[np.intp]
    kind: _Kind

    @classmethod
    def of(cls, P: Sparse) -> Elimination:
        """The cheaper kind, by an estimate of seconds."""
        matrix = sp.csr_array(P)
        order, heights = _narrow(matrix)
        banded = cls(matrix, order, heights, "banded")
        sparse = cls(matrix, None, heights, "sparse")
        if _is_forest(matrix):
            one_each = np.ones_like(heights)
            sparse = cls(matrix, _by_breadth(matrix), one_each, "sparse")
        return min(banded, sparse, key=lambda choice: choice.seconds(1))

    @property
    def bandwidth(self) -> int:
        """w, in the order that was found."""
        return int(self.heights.max(initial=0))

    def seconds(self, n_columns: int) -> float:
        """An estimate for one factor and so many right-hand sides."""
        n_nodes, w = len(self.heights), self.bandwidth
        if self.kind == "banded":
            factor = BAND_NODE + w * (BAND_ENTRY + w * BAND_OPERATION)
            solve = BAND_SOLVE_NODE + w * BAND_SOLVE_ENTRY
            return n_nodes * (factor + n_columns * solve)
        factor = self._fill * SPARSE_ENTRY + self._operations * SPARSE_OPERATION
        return factor + n_columns * self._fill * SPARSE_SOLVE

    @property
    def n_bytes(self) -> float:
        """An estimate of the memory of one factor."""
        if self.kind == "banded":
            return BYTES_PER_ENTRY * len(self.heights) * (self.bandwidth + 1.0)
        return BYTES_PER_ENTRY * self._fill

    def factor(self, shift: float, weight: float) -> Factor:
        """The factor of ``shift`` I + ``weight`` P.

        Raises
        ------
        SolverFailure
            If rounding leaves no positive definite matrix.
        """
        try:
            if self.kind == "banded":
                factor: Factor = _Banded.of(self._band, shift, weight)
            else:
                factor = _Sparse.of(self._ordered, shift, weight, self._column_order)
        except (la.LinAlgError, RuntimeError) as error:
            raise SolverFailure(
                f"{shift:.1e} I + {weight:.1e} P has no Cholesky factor to rounding: "
                "the similarities of the graph are of too many sizes"
            ) from error
        return factor if self.order is None else _Ordered(factor, self.order)

    @cached_property
    def _ordered(self) -> Sparse:
        return self.P if self.order is None else self.P[self.order][:, self.order]

    @property
    def _column_order(self) -> str:
        return "MMD_AT_PLUS_A" if self.order is None else "NATURAL"

    @cached_property
    def _band(self) -> Array:
        """The lower band of the ordered P: row k holds its k-th subdiagonal."""
        entries = self._ordered.tocoo()
        row, column = entries.coords
        lower = row >= column
        band = np.zeros((self.bandwidth + 1, len(self.heights)))
        band[(row - column)[lower], column[lower]] = entries.data[lower]
        return band

    @cached_property
    def _fill(self) -> float:
        """A bound of the entries of the factor."""
        return float(self.heights.sum()) + len(self.heights)

    @cached_property
    def _operations(self) -> float:
        return float((self.heights.astype(np.float64) ** 2).sum())


@final
@dataclass(frozen=True, eq=False)
class _Ordered(Factor):
    inner: Factor
    order: NDArray[np.intp]

    def solve(self, R: Array) -> Array:
        W = np.empty_like(R)
        W[self.order] = self.inner.solve(R[self.order])
        return W


@final
@dataclass(frozen=True, eq=False)
class _Banded(Factor):
    lower: Array

    @classmethod
    def of(cls, band: Array, shift: float, weight: float) -> _Banded:
        matrix = weight * band
        matrix[0] += shift
        lower = la.cholesky_banded(
            matrix, overwrite_ab=True, lower=True, check_finite=False
        )
        return cls(lower)

    def solve(self, R: Array) -> Array:
        factor = (self.lower, True)
        return np.asarray(la.cho_solve_banded(factor, R, check_finite=False))


@final
@dataclass(frozen=True, eq=False)
class _Sparse(Factor):
    factors: spla.SuperLU

    @classmethod
    def of(cls, P: Sparse, shift: float, weight: float, order: str) -> _Sparse:
        # positive definite: no pivoting
        matrix = sp.csc_array(weight * P + shift * sp.eye_array(P.shape[0]))
        factors = spla.splu(
            matrix,
            permc_spec=order,
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        return cls(factors)

    def solve(self, R: Array) -> Array:
        return np.asarray(self.factors.solve(np.asfortranarray(R)))


def _is_forest(P: sp.csr_array) -> bool:
    n_trees, _ = connected_components(P, directed=False)
    n_edges = sp.tril(P, k=-1).count_nonzero()
    return bool(n_edges == P.shape[0] - n_trees)


def _by_breadth(P: sp.csr_array) -> NDArray[np.intp]:
    return np.asarray(reverse_cuthill_mckee(P, symmetric_mode=True)).astype(np.intp)


def _narrow(P: sp.csr_array) -> tuple[NDArray[np.intp] | None, NDArray[np.intp]]:
    """The order of the smaller bandwidth, None for the present one, and its heights."""
    heights = _heights(P, None)
    if heights.max(initial=0) <= NARROW:
        return None, heights
    order = _by_breadth(P)
    others = _heights(P, order)
    return (order, others) if others.max() < heights.max() else (None, heights)


def _heights(P: sp.csr_array, order: NDArray[np.integer] | None) -> NDArray[np.intp]:
    """For each row of the ordered P how far its first entry is from the diagonal."""
    n_nodes = P.shape[0]
    rank = np.arange(n_nodes) if order is None else _inverse(order)
    first = np.arange(n_nodes)
    rows = np.repeat(rank, np.diff(P.indptr))
    np.minimum.at(first, rows, rank[P.indices])
    return np.arange(n_nodes) - first


def _inverse(order: NDArray[np.integer]) -> NDArray[np.intp]:
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank
