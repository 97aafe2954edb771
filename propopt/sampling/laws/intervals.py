"""Intervals of numbers under gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.special import ndtr

from propopt._typing import Array, Positions, Truths
from propopt.structures.boxes import Sets
from propopt.tables.atoms import Atoms, atoms_of


@final
@dataclass(frozen=True, eq=False)
class IntervalCells:
    """Sets low < V ≤ high, with or without missing, of V ~ N(x, δ²), V = x if δ = 0.

    Parameters
    ----------
    low, high : array (U,)
        Ends, low ≤ high.
    missing : array (U,)
        Whether NaN is in.
    scale : float
        δ.
    column : int
        The position of the column.
    observed : tuple of Atoms or None (D,), optional
        The observed values of numbers, against which a missing one is held.
    """

    low: Array
    high: Array
    missing: Truths
    scale: float
    column: int
    observed: tuple[Atoms | None, ...] | None

    @classmethod
    def of(
        cls,
        sets: Sets,
        scale: float,
        column: int,
        observed: tuple[Atoms | None, ...] | None,
    ) -> IntervalCells:
        """Those of a column of numbers; a set of NaN alone has low ≥ high there."""
        high = np.maximum(sets.low, sets.high)
        return cls(sets.low, high, sets.missing, scale, column, observed)

    @property
    def keys(self) -> tuple[Array, Array, Truths]:
        """Equal for equal sets."""
        return self.low, self.high, self.missing

    @property
    def full(self) -> Truths:
        """Which hold all numbers and missing."""
        return (self.low == -np.inf) & (self.high == np.inf) & self.missing

    @property
    def empty(self) -> Truths:
        """Which hold nothing."""
        return (self.low >= self.high) & ~self.missing

    def take(self, chosen: Positions) -> IntervalCells:
        """Those that are chosen."""
        return IntervalCells(
            self.low[chosen],
            self.high[chosen],
            self.missing[chosen],
            self.scale,
            self.column,
            self.observed,
        )

    @cached_property
    def _ends(self) -> Array:
        return np.unique(np.concatenate([self.low, self.high]))

    @property
    def n_entries(self) -> int:
        """Those of its tables: one for each end, and one for missing."""
        return len(self._ends) + 1

    @property
    def entries(self) -> tuple[Positions, Positions, Positions]:
        """Of each set its start, its stop and missing, −1 for none, (U,) each."""
        return (
            np.searchsorted(self._ends, self.low),
            np.searchsorted(self._ends, self.high),
            np.where(self.missing, len(self._ends), -1),
        )

    def fill(self, x: Array, law: Array, contrast: Array) -> None:
        """Fill tables (entries, n): Φ and its derivative by x at each end."""
        if self.scale == 0.0:  # a number that gets no noise
            law[:-1], contrast[:-1] = x <= self._ends[:, None], 0.0
        else:
            z = (self._ends[:, None] - x) / self.scale
            law[:-1], contrast[:-1] = ndtr(z), _density(z) / -self.scale
        absent = np.isnan(x)
        law[-1], contrast[-1] = absent, 0.0
        if absent.any():
            law[:-1, absent] = 0.0
            contrast[:, absent] = self._effect[:, None]

    @cached_property
    def _effect(self) -> Array:
        """δ_missing − p up to each end, and of missing; 0 where nothing is observed."""
        nothing = np.zeros(self.n_entries)
        if self.observed is None:
            return nothing
        atoms = atoms_of(self.observed, self.column)
        if len(atoms.values) == 0:
            return nothing
        below = np.full(len(self._ends), -np.inf)
        return np.append(-atoms.share_between(below, self._ends), 1.0)


def _density(z: Array) -> Array:
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi))
