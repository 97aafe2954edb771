"""H⁻¹ of losses over single entries, such as words that documents share.

With the P entries of W that count as unknowns, H = a I + c BᵀB couples a word of one
document with the same word of others alone: it comes apart into a small matrix for each
word, and so does its inverse. Where rows add up over entries of their own, A w = t, the
inverse among what that leaves is

    H⁻¹ − MᵀS⁻¹M,   M = A H⁻¹,   S = A H⁻¹Aᵀ.

All other entries are zero in every explanation, and have no variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from propopt._typing import Array, Attributions, Positions, Sparse
from propopt.batches import Budget
from propopt.curvature.inverse import Hessian
from propopt.errors import Refused
from propopt.linear.components import Components
from propopt.linear.conjugate_gradients import conjugate_gradients
from propopt.linear.parts import inverse_by_parts, inverse_size
from propopt.losses import PropertyLoss
from propopt.losses.entries import Support
from propopt.maps import OverPoints


MOST_ENTRIES = 2**25
"""Numbers of an inverse that is kept: half a gigabyte, and seconds."""

_MOST_ROWS = 4_000
"""Rows that add up: S is dense."""

_MOST_STEPS: Final = 2_000
_REDUCTION: Final = 1e-26
"""Of the energy of the residual: thirteen digits."""

_COLUMNS: Final = Budget(2**26)


@final
@dataclass(frozen=True, eq=False)
class OfEntries(Hessian):
    """H⁻¹ between the entries that count, zero at all others.

    Parameters
    ----------
    support : Support
        The entries.
    terms : tuple of (float, PropertyLoss)
        Squared losses of W with weights above zero, one of them gradient matching.
    sums : sparse matrix (R, P), optional
        A, whose rows have no entry in common.
    """

    support: Support
    terms: tuple[tuple[float, PropertyLoss], ...]
    sums: Sparse | None = None

    def solve(self, E: Array) -> Array:
        e = self.support.values(E)[:, 0]
        if self.sums is None and "_inverse" not in vars(self):
            return self.support.expanded(self._iterated(e)[:, None])
        w = self._inverse @ e
        if self.sums is not None:
            w -= self._borne.T @ la.cho_solve(self._factor, self.sums @ w)
        return self.support.expanded(w[:, None])

    def inverse_block(self, row: int) -> Array:
        return self.block_of(row, np.arange(self.support.shape[1]))

    def block_of(self, row: int, features: Positions) -> Array:
        wanted = row * self.support.shape[1] + features
        own = np.searchsorted(self.support.places, wanted)
        own = np.minimum(own, len(self.support.places) - 1)
        counts = np.flatnonzero(self.support.places[own] == wanted)
        inner = self._inverse[own[counts]][:, own[counts]].toarray()
        if self.sums is not None:
            M = self._borne[:, own[counts]].toarray()
            inner -= M.T @ la.cho_solve(self._factor, M)
        block = np.zeros((len(features), len(features)))
        block[np.ix_(counts, counts)] = inner
        return block

    def inverse_diagonal(self) -> Attributions:
        """The diagonal of H⁻¹, zero where no entry counts.

        Raises
        ------
        Refused
            If the inverse is too large.
        """
        variances = self._inverse.diagonal()
        if self.sums is not None:
            L, lower = self._factor
            for some in _COLUMNS.blocks(len(variances), 8 * self.sums.shape[0]):
                M = self._borne[:, some].toarray()
                borne = la.solve_triangular(L, M, lower=lower, trans=0 if lower else 1)
                variances[some] -= (borne**2).sum(axis=0)
        return self.support.expanded(np.maximum(variances, 0.0)[:, None])

    @property
    def _is_affordable(self) -> bool:
        return inverse_size(self._parts) <= MOST_ENTRIES

    @cached_property
    def _matrix(self) -> Sparse:
        """H (P, P)."""
        size = len(self.support.places)
        H = sp.csr_array((size, size))
        for c, loss in self.terms:
            match self.support.loss(loss).map:
                case OverPoints(gram=gram):
                    H = H + c * gram
                case _:
                    H = H + c * sp.eye_array(size)
        return sp.csr_array(H)

    @cached_property
    def _parts(self) -> Components:
        return Components.of(self._matrix)

    @cached_property
    def _inverse(self) -> Sparse:
        """H⁻¹ (P, P) without sums."""
        if not self._is_affordable:
            raise Refused(
                "entries that are coupled, such as a word of many documents, have an "
                f"inverse of {inverse_size(self._parts):,.0f} numbers, and at most "
                f"{MOST_ENTRIES:,} are kept; ask for fewer points at a time"
            )
        return inverse_by_parts(self._matrix, self._parts)

    @cached_property
    def _borne(self) -> Sparse:
        """M (R, P)."""
        assert self.sums is not None
        return sp.csc_array(self.sums @ self._inverse)

    @cached_property
    def _factor(self) -> tuple[Array, bool]:
        """The Cholesky factor of S (R, R)."""
        assert self.sums is not None
        n_rows = self.sums.shape[0]
        if n_rows > _MOST_ROWS:
            raise Refused(
                f"{n_rows:,} rows add up, and what that leaves is known for at most "
                f"{_MOST_ROWS:,}; ask for fewer points at a time"
            )
        S = (self._borne @ self.sums.T).toarray()
        return la.cho_factor((S + S.T) / 2.0)

    def _iterated(self, e: Array) -> Array:
        """H⁻¹e by conjugate gradients."""
        w, diagonal = np.zeros_like(e), self._matrix.diagonal()
        conjugate_gradients(
            lambda v: self._matrix @ v,
            w,
            e.copy(),
            precondition=lambda r: r / diagonal,
            most_steps=_MOST_STEPS,
            reduction=_REDUCTION,
        )
        return w
