"""Cholesky factors of s I + b P for a sparse P, and what they cost, before any is made.

* **Banded**, in the order of points that has the smaller bandwidth w: as they come, or
  by reverse Cuthill and McKee. N w² operations; chains, paths, neighbours of points on
  a line.
* **Sparse**, by minimum degree. A forest has no fill: its leaves go first. Of other
  graphs the envelope in the order of Cuthill and McKee bounds it from above, loosely.
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


Kind: TypeAlias = Literal["banded", "sparse"]

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
        A permutation that makes P narrow; None where the points are in order.
    heights : array (N,)
        How far left of the diagonal each row of the ordered P reaches.
    kind : {"banded", "sparse"}
        What is cheaper.
    """

    P: Sparse
    order: NDArray[np.intp] | None
    heights: NDArray[np.intp]
    kind: Kind

    @classmethod
    def of(cls, P: Sparse) -> Elimination:
        """The cheaper kind, by an estimate of seconds."""
        matrix = sp.csr_array(P)
        order, heights = None, _heights(matrix, None)
        if heights.max(initial=0) > NARROW:
            other = np.asarray(reverse_cuthill_mckee(matrix, symmetric_mode=True))
            found = _heights(matrix, other)
            if found.max() < heights.max():
                order, heights = other.astype(np.intp), found
        banded = cls(matrix, order, heights, "banded")
        sparse = cls(matrix, order, heights, "sparse")
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
                return _Banded.of(self._band, self.order, shift, weight)
            return _Sparse.of(self.P, shift, weight)
        except (la.LinAlgError, RuntimeError) as error:
            raise SolverFailure(
                f"{shift:.1e} I + {weight:.1e} P has no Cholesky factor to rounding: "
                "the similarities of the graph are of too many sizes"
            ) from error

    @cached_property
    def _band(self) -> Array:
        """The lower band of the ordered P: row k holds its k-th subdiagonal."""
        entries = self.P.tocoo()
        row, column = entries.coords
        if self.order is not None:
            rank = _inverse(self.order)
            row, column = rank[row], rank[column]
        lower = row >= column
        band = np.zeros((self.bandwidth + 1, len(self.heights)))
        band[(row - column)[lower], column[lower]] = entries.data[lower]
        return band

    @cached_property
    def _is_forest(self) -> bool:
        n_nodes = len(self.heights)
        n_trees, _ = connected_components(self.P, directed=False)
        n_edges = sp.tril(self.P, k=-1).count_nonzero()
        return bool(n_edges == n_nodes - n_trees)

    @cached_property
    def _fill(self) -> float:
        """Entries of the factor, or a bound."""
        if self._is_forest:
            return 2.0 * len(self.heights)
        return float(self.heights.sum()) + len(self.heights)

    @cached_property
    def _operations(self) -> float:
        if self._is_forest:
            return 2.0 * len(self.heights)
        return float((self.heights.astype(np.float64) ** 2).sum())


@final
@dataclass(frozen=True, eq=False)
class _Banded(Factor):
    lower: Array
    order: NDArray[np.intp] | None

    @classmethod
    def of(
        cls, band: Array, order: NDArray[np.intp] | None, shift: float, weight: float
    ) -> _Banded:
        matrix = weight * band
        matrix[0] += shift
        lower = la.cholesky_banded(
            matrix, overwrite_ab=True, lower=True, check_finite=False
        )
        return cls(lower, order)

    def solve(self, R: Array) -> Array:
        ordered = R if self.order is None else R[self.order]
        found = la.cho_solve_banded((self.lower, True), ordered, check_finite=False)
        if self.order is None:
            return np.asarray(found)
        W = np.empty_like(R)
        W[self.order] = found
        return W


@final
@dataclass(frozen=True, eq=False)
class _Sparse(Factor):
    factors: spla.SuperLU

    @classmethod
    def of(cls, P: Sparse, shift: float, weight: float) -> _Sparse:
        # positive definite: no pivoting
        matrix = sp.csc_array(weight * P + shift * sp.eye_array(P.shape[0]))
        factors = spla.splu(
            matrix,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        return cls(factors)

    def solve(self, R: Array) -> Array:
        return np.asarray(self.factors.solve(np.asfortranarray(R)))


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
