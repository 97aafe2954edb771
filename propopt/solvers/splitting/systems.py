"""Linear systems (δ_j I + P) w_j = r_j, one for each feature j, in a rotated basis.

With W̃ = W V for orthogonal V (D, D), the quadratic losses of structured solvers couple
points by P (N, N) alone. How the systems are solved depends on their size and on
how narrow the graph is, that is, on the bandwidth of P in the best order of points:

* dense, one shift δ: the inverse, from a Cholesky factor;
* dense, several shifts: the eigenbasis of P, good for all of them at once;
* larger or narrower (points in two or three dimensions): sparse LU;
* large and wide: conjugate gradients, all features at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from propopt._typing import Array, Attributions, Sparse
from propopt.linear.conjugate_gradients import OnePerColumn, conjugate_gradients
from propopt.linear.lapack import positive_inverse
from propopt.maps import dense_matrix


Layout: TypeAlias = Literal["dense", "lu", "cg"]

_SMALL = 300
"""Points up to which N×N matrices are always dense."""
_DENSE_POINTS = 2000
"""Points up to which they are if the graph is not narrow."""
LU_LIMIT = 2e10
"""Operations N·bandwidth² up to which a sparse LU is taken."""

_LARGEST = 1e12
"""Of P beside δ up to which a dense inverse of δI + P keeps digits."""

_REDUCTION = 1e-22
"""Of the energy of a residual, that is, 1e-11 of its size: what steps of ADMM need."""


class System(ABC):
    """The solution map of all the systems."""

    @abstractmethod
    def solve(self, R: Attributions) -> Attributions:
        """W with (δ_j I + P) w_j = r_j for each column j."""

    @abstractmethod
    def resistances(self, tails: NDArray[np.intp], heads: NDArray[np.intp]) -> Array:
        """(e_t − e_h)ᵀ (δ_j I + P)⁻¹ (e_t − e_h), or nearly, shape (k, 1) or (k, D)."""


def choose_layout(grams: Sequence[Sparse | Array]) -> Layout:
    """How systems with these matrices in P are best solved."""
    size = grams[0].shape[0] if grams else 0
    if size <= _SMALL or any(isinstance(gram, np.ndarray) for gram in grams):
        return "dense"
    bandwidth = _bandwidth(sum((abs(gram) for gram in grams[1:]), abs(grams[0])))
    if bandwidth <= size / 8 and size * bandwidth**2 <= LU_LIMIT:
        return "lu"
    if size <= _DENSE_POINTS:
        return "dense"
    return "lu" if size * bandwidth**2 <= LU_LIMIT else "cg"


def factorise(P: Sparse | Array, shifts: Array, layout: Layout) -> System:
    """The systems made ready for many right-hand sides."""
    distinct, groups = np.unique(shifts, return_inverse=True)
    match layout:
        case "dense" if len(distinct) == 1 and _is_invertible(P, float(distinct[0])):
            return Inverse.of(dense_matrix(P), float(distinct[0]))
        case "dense":
            return SharedEigenbasis.of(dense_matrix(P), shifts)
        case "lu":
            return SparseFactors.of(sp.csc_array(P), distinct, groups)
        case "cg":
            return ConjugateGradients(sp.csr_array(P), shifts)


@final
@dataclass(frozen=True, eq=False)
class Inverse(System):
    """(δI + P)⁻¹, dense."""

    inverse: Array

    @classmethod
    def of(cls, P: Array, shift: float) -> Inverse:
        """From the Cholesky factor of δI + P."""
        matrix = np.array(P, order="F")
        matrix.flat[:: len(matrix) + 1] += shift
        return cls(positive_inverse(matrix))

    def solve(self, R: Attributions) -> Attributions:
        return np.asarray(self.inverse @ R)

    def resistances(self, tails: NDArray[np.intp], heads: NDArray[np.intp]) -> Array:
        own = np.diagonal(self.inverse)
        return (own[tails] + own[heads] - 2 * self.inverse[tails, heads])[:, None]


@final
@dataclass(frozen=True, eq=False)
class SharedEigenbasis(System):
    """P = U diag(λ) Uᵀ: each system is diagonal, with entries δ_j + λ_i (N, D)."""

    vectors: Array
    entries: Array

    @classmethod
    def of(cls, P: Array, shifts: Array) -> SharedEigenbasis:
        """By a dense eigendecomposition."""
        values, vectors = la.eigh(P, check_finite=False)
        return cls(vectors, np.maximum(values, 0.0)[:, None] + shifts)

    def solve(self, R: Attributions) -> Attributions:
        return np.asarray(self.vectors @ ((self.vectors.T @ R) / self.entries))

    def resistances(self, tails: NDArray[np.intp], heads: NDArray[np.intp]) -> Array:
        return np.asarray(
            (self.vectors[tails] - self.vectors[heads]) ** 2 @ (1.0 / self.entries)
        )


@final
@dataclass(frozen=True, eq=False)
class SparseFactors(System):
    """A sparse LU factor for each distinct shift."""

    factors: tuple[spla.SuperLU, ...]
    groups: NDArray[np.intp]
    diagonals: Array

    @classmethod
    def of(cls, P: Sparse, distinct: Array, groups: NDArray[np.intp]) -> SparseFactors:
        """Symmetric positive definite: no pivoting, fill-reducing by minimum degree."""
        eye = sp.eye_array(P.shape[0], format="csc")
        factors = [
            spla.splu(
                sp.csc_array(P + shift * eye),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
            for shift in distinct
        ]
        return cls(tuple(factors), groups, P.diagonal()[:, None] + distinct[groups])

    def solve(self, R: Attributions) -> Attributions:
        if len(self.factors) == 1:
            return np.asarray(self.factors[0].solve(np.asarray(R)))
        W = np.empty_like(R)
        for group, factor in enumerate(self.factors):
            columns = self.groups == group
            W[:, columns] = factor.solve(np.asarray(R[:, columns]))
        return W

    def resistances(self, tails: NDArray[np.intp], heads: NDArray[np.intp]) -> Array:
        return np.asarray(1.0 / self.diagonals[tails] + 1.0 / self.diagonals[heads])


@final
@dataclass(frozen=True, eq=False)
class ConjugateGradients(System):
    """Conjugate gradients with the diagonal as preconditioner, nothing factorised."""

    P: Sparse
    shifts: Array

    def solve(self, R: Attributions) -> Attributions:
        diagonals = self._diagonals()
        W = np.zeros_like(R)
        conjugate_gradients(
            lambda V: self.P @ V + self.shifts * V,
            W,
            R.copy(),
            precondition=lambda residual: residual / diagonals,
            most_steps=2 * len(R),
            reduction=_REDUCTION,
            systems=OnePerColumn(),
        )
        return W

    def resistances(self, tails: NDArray[np.intp], heads: NDArray[np.intp]) -> Array:
        diagonals = self._diagonals()
        return np.asarray(1.0 / diagonals[tails] + 1.0 / diagonals[heads])

    def _diagonals(self) -> Array:
        return np.asarray(self.P.diagonal()[:, None] + self.shifts)


def _is_invertible(P: Sparse | Array, shift: float) -> bool:
    """Whether an inverse of δI + P keeps digits; where not, eigenvectors are stable."""
    return float(abs(P).sum(axis=1).max()) <= _LARGEST * shift


def _bandwidth(P: Sparse) -> float:
    """In the reverse Cuthill-McKee order; N·bandwidth² operations make a band LU."""
    order = reverse_cuthill_mckee(sp.csr_array(P), symmetric_mode=True)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    entries = P.tocoo()
    return float(np.abs(rank[entries.row] - rank[entries.col]).max(initial=0))
