"""Gaussian noise on numbers: the law of SmoothGrad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from propopt._typing import Array
from propopt.sampling.laws.coded import CodedLaw
from propopt.sampling.laws.intervals import IntervalCells
from propopt.sampling.laws.known import Cells, KnownCells
from propopt.structures.boxes import Sets
from propopt.tables.atoms import Atoms


@final
@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """V ~ N(x, diag(δ²)): means E f(V) and their gradients by x.

    Of a set A = (low, high] of numbers P = Φ(b) − Φ(a), with a = (low − x)/δ and
    b = (high − x)/δ, and R = ∂P/∂x = −(φ(b) − φ(a))/δ. A number that is missing gets no
    noise, and its contrast is δ_missing − p, with p of the observed values. Categories
    get no noise, and their contrast is that of the data law, with the frequencies that
    are given.

    Parameters
    ----------
    scale : array (D,)
        δ ≥ 0, 0 for numbers that get no noise; not read for categories.
    shares : tuple of array (K,) or None (D,)
        The frequencies of categories; None for numbers.
    observed : tuple of Atoms or None (D,), optional
        The observed values of numbers; without them a missing one has no contrast.
    """

    scale: Array
    shares: tuple[Array | None, ...]
    observed: tuple[Atoms | None, ...] | None = None

    def knows(self, sets: Sets) -> KnownCells:
        """Sets as intervals and as codes, each once."""
        return KnownCells.of(sets, self._cells)

    def _cells(self, j: int, sets: Sets) -> Cells:
        shares = self.shares[j]
        if shares is not None:
            return CodedLaw(shares).cells(sets)
        return IntervalCells.of(sets, float(self.scale[j]), j, self.observed)
