"""Measures of sets at rows, each a difference of two entries of one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Positions


@final
@dataclass(frozen=True, eq=False)
class Measures:
    """Probability P_u and contrast R_u of U sets at N rows.

    P_u = law[stop_u] − law[start_u] + law[missing_u], and R_u likewise: of runs of the
    values of a column the entries are cumulative sums. Entry 0 of both tables is 0.

    Parameters
    ----------
    law, contrast : array (C, N)
        The tables.
    start, stop, missing : array (U,)
        Entries; 0 for nothing.
    """

    law: Array
    contrast: Array
    start: Positions
    stop: Positions
    missing: Positions

    @classmethod
    def of_sets(cls, P: Array, R: Array) -> Measures:
        """Those that are known set by set, (U, N) each."""
        nothing = np.zeros((1, P.shape[1]))
        zero = np.zeros(len(P), dtype=np.intp)
        entries = np.arange(1, len(P) + 1)
        return cls(
            np.concatenate([nothing, P]),
            np.concatenate([nothing, R]),
            zero,
            entries,
            zero,
        )

    def of(self, sets: Positions) -> tuple[Array, Array]:
        """P and R of some of the sets, (u, N) each."""
        start, stop = self.start[sets], self.stop[sets]
        P = self.law[stop] - self.law[start]
        R = self.contrast[stop] - self.contrast[start]
        entries = self.missing[sets]
        with_missing = np.flatnonzero(entries)
        if len(with_missing) > 0:
            P[with_missing] += self.law[entries[with_missing]]
            R[with_missing] += self.contrast[entries[with_missing]]
        return P, R


@final
@dataclass(frozen=True, eq=False)
class SetMeasures:
    """Probability P_u and contrast R_u of U sets at N rows, each known by itself.

    Parameters
    ----------
    law, contrast : array (U, N)
        P and R.
    """

    law: Array
    contrast: Array

    def of(self, sets: Positions) -> tuple[Array, Array]:
        """P and R of some of the sets, (u, N) each."""
        return self.law[sets], self.contrast[sets]
