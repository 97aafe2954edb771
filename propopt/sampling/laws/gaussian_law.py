"""Gaussian noise on numbers: the law of SmoothGrad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import ndtr

from propopt._typing import Array, Points, Positions, Truths
from propopt.sampling.laws.coded import CodedLaw
from propopt.structures.boxes import Measures, Sets
from propopt.tables.atoms import Atoms, atoms_of


@final
@dataclass(frozen=True, eq=False)
class GaussianLaw:
    """V ~ N(x, diag(δ²)): means E f(V) and their gradients by x.

    Of a set A = (low, high] of numbers P = Φ(b) − Φ(a), with a = (low − x)/δ and
    b = (high − x)/δ, and R = ∂P/∂x = −(φ(b) − φ(a))/δ. A number that is missing gets no
    noise, and its contrast is δ_missing − p, with p of the observed values. Categories
    get no noise, and their contrast is that of the data law, with the frequencies that
    are given.

    Parameters
    ----------
    scale : array (D,)
        δ > 0; not read for categories.
    shares : tuple of array (K,) or None (D,)
        The frequencies of categories; None for numbers.
    observed : tuple of Atoms or None (D,), optional
        The observed values of numbers; without them a missing one has no contrast.
    """

    scale: Array
    shares: tuple[Array | None, ...]
    observed: tuple[Atoms | None, ...] | None = None

    def knows(self, sets: Sets) -> KnownIntervals:
        """Each set as it is, in the order of columns."""
        return KnownIntervals(self, sets)


@final
@dataclass(frozen=True, eq=False)
class KnownIntervals:
    """Sets as a gaussian law knows them.

    Parameters
    ----------
    law : GaussianLaw
        The law.
    sets : Sets (U)
        The sets, in the order of their columns.
    """

    law: GaussianLaw
    sets: Sets

    @property
    def places(self) -> Positions:
        """All are told apart."""
        return np.arange(len(self.sets))

    @property
    def dropped(self) -> Truths:
        """Those that are empty."""
        return self.sets.empty

    @property
    def column(self) -> Positions:
        """Their columns."""
        return self.sets.column

    @property
    def row_bytes(self) -> int:
        """The memory that the measures of one row take."""
        return 64 * len(self.sets)

    def measures(self, points: Points) -> Measures:
        """Probabilities and their slopes at each row."""
        P = np.empty((len(self.sets), len(points)))
        R = np.empty(P.shape)
        for j in np.unique(self.sets.column).tolist():
            of_j = np.flatnonzero(self.sets.column == j)
            P[of_j], R[of_j] = self._of_column(j, self.sets.take(of_j), points[:, j])
        return Measures.of_sets(P, R)

    def _of_column(self, j: int, sets: Sets, x: Array) -> tuple[Array, Array]:
        shares = self.law.shares[j]
        if shares is None:
            P, R = _of_numbers(sets, x, float(self.law.scale[j]))
            absent = np.isnan(x)
            if absent.any():
                P[:, absent] = sets.missing[:, None]
                R[:, absent] = self._of_missing(j, sets)[:, None]
            return P, R
        P, R = np.empty((2, len(sets), len(x)))
        CodedLaw(shares).cells(sets).fill(x, P, R)
        return P, R

    def _of_missing(self, j: int, sets: Sets) -> Array:
        """δ_missing − p of sets, (U,); 0 where no value is observed."""
        if self.law.observed is None:
            return np.zeros(len(sets))
        atoms = atoms_of(self.law.observed, j)
        if len(atoms.values) == 0:
            return np.zeros(len(sets))
        return np.asarray(sets.missing - atoms.share_between(sets.low, sets.high))


def _of_numbers(sets: Sets, x: Array, scale: float) -> tuple[Array, Array]:
    # a set of NaN alone has low ≥ high
    ends, place = np.unique(
        [sets.low, np.maximum(sets.low, sets.high)], return_inverse=True
    )
    low, high = place.reshape(2, -1)
    z = (ends[:, None] - x) / scale
    below, slope = ndtr(z), -_density(z) / scale
    P, R = below[high] - below[low], slope[high] - slope[low]
    return P, R


def _density(z: Array) -> Array:
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi))
