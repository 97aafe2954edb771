"""A column of categories: the category of a row, and its contrast with all others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from propopt._typing import Array, Positions, Truths
from propopt.sampling.laws.measures import Measure
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.ranks import ranks


@final
@dataclass(frozen=True, eq=False)
class CodedLaw:
    """A category stays what it is; its contrast is δ_x − p: an effect.

    Parameters
    ----------
    shares : array (K,)
        The share p of each code among the reference rows.
    """

    shares: Array

    @classmethod
    def of(cls, column: Array, n_codes: int) -> CodedLaw:
        """That of a column of codes of reference rows."""
        counts = np.bincount(column.astype(np.intp), minlength=n_codes)
        return cls(counts / len(column))

    @property
    def spread(self) -> float:
        """Always 1: effects are not scaled."""
        return 1.0

    def has_slope(self, x: Array) -> Truths:
        """Nowhere."""
        return np.zeros(len(x), dtype=bool)

    def law(self, x: float) -> Measure:
        """All on x."""
        return Measure(np.array([x]), np.ones(1))

    def contrast(self, x: float) -> Measure:
        """1 on x, less the shares of all codes."""
        masses = -self.shares
        masses[int(x)] += 1.0
        return Measure(np.arange(len(masses), dtype=np.float64), masses)

    def moments(self, x: Array) -> tuple[Array, Array]:
        """Codes have no scatter."""
        return x.copy(), np.zeros(len(x))

    def quantiles(self, x: Array, uniforms: Array) -> Array:
        """Draws, all of them x, shape (n, S)."""
        return np.tile(x[:, None], (1, len(uniforms)))

    def cells(self, sets: Sets) -> CodedCells:
        """Sets of codes of this column."""
        return CodedCells(self, sets.members[sets.group][:, : len(self.shares)])


@final
@dataclass(frozen=True, eq=False)
class CodedCells:
    """Sets of codes of a column.

    Parameters
    ----------
    law : CodedLaw
        That of the column.
    members : array (U, K)
        Which codes are in.
    """

    law: CodedLaw
    members: Truths

    @property
    def keys(self) -> tuple[Positions]:
        """Equal for equal sets."""
        return (ranks(self.members.T),)

    @property
    def full(self) -> Truths:
        """Which hold all codes."""
        return np.asarray(self.members.all(axis=1))

    @property
    def empty(self) -> Truths:
        """Which hold none."""
        return np.asarray((~self.members).all(axis=1))

    def take(self, chosen: Positions) -> CodedCells:
        """Those that are chosen."""
        return CodedCells(self.law, self.members[chosen])

    @cached_property
    def _tables(self) -> tuple[Array, Array]:
        """P and R of each set at each code, (U, K)."""
        inside = self.members.astype(float)
        shares = np.where(self.members, self.law.shares, 0.0).sum(axis=1)
        return inside, inside - shares[:, None]

    @property
    def n_entries(self) -> int:
        """Those of its tables: one for each set."""
        return len(self.members)

    @property
    def entries(self) -> tuple[Positions, Positions, Positions]:
        """Of each set its own, −1 for none, (U,)."""
        nothing = np.full(len(self.members), -1)
        return nothing, np.arange(len(self.members)), nothing

    def fill(self, x: Array, law: Array, contrast: Array) -> None:
        """Fill tables (U, n): law and contrast of each set at each code."""
        codes = x.astype(np.intp)
        P, R = self._tables
        law[:], contrast[:] = P[:, codes], R[:, codes]
