"""iLOCO of sets of features, with what is known of its error."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import pandas as pd

from propopt._typing import Array, Values
from propopt.errors import InvalidInput
from propopt.interactions.features import Places
from propopt.output.csv import write_csv


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class InteractionScores:
    """Scores of Q sets of r features: how much the features matter jointly.

    Of pairs a large score is a contribution beyond those of the two, and a very
    negative one that each stands in for the other.

    Parameters
    ----------
    sets : array of int (Q, r)
        Places of the features of each set, ascending.
    names : tuple (M,)
        Of the features.
    estimates : array (Q,)
        iLOCO_S, in ``units``.
    standard_errors : array (Q,)
        Of other rows.
    monte_carlo : array (Q,)
        Of other patches; zero where there are none.
    counts : array (Q,)
        Predictions that are averaged, where they are fewest.
    n_rows : int
        N, rows that were judged.
    n_candidates : int
        Sets among which these were chosen: corrections count all of them.
    method : str
        How predictors without features were had, in words.
    error : str
        Err, by its name.
    units : str
        Of the scores.
    notes : tuple of str
        What a reader has to know, a sentence each.
    """

    sets: Places
    names: tuple[Hashable, ...]
    estimates: Values
    standard_errors: Values
    monte_carlo: Values
    counts: Values
    n_rows: int
    n_candidates: int
    method: str
    error: str
    units: str
    notes: tuple[str, ...] = ()

    @property
    def order(self) -> int:
        """How many features a set has: of LOCO 1, of pairs 2."""
        return int(self.sets.shape[1])

    @property
    def total_errors(self) -> Values:
        """√(se² + se_mc²): of other rows and of other patches."""
        return np.hypot(self.standard_errors, self.monte_carlo)

    def matrix(self) -> Array:
        """Scores of pairs as a symmetric matrix (M, M); NaN where there is none.

        Raises
        ------
        InvalidInput
            If the sets are no pairs.
        """
        if self.order != 2:
            raise InvalidInput(f"matrix: expected pairs, got sets of {self.order}")
        matrix = np.full((len(self.names), len(self.names)), np.nan)
        first, second = self.sets.T
        matrix[first, second] = matrix[second, first] = self.estimates
        return matrix

    def to_frame(self) -> pd.DataFrame:
        """One row for each set: its features, score and errors."""
        columns = {
            f"feature_{k + 1}": [self.names[place] for place in self.sets[:, k]]
            for k in range(self.order)
        }
        return pd.DataFrame(
            {
                **columns,
                "estimate": self.estimates,
                "se": self.standard_errors,
                "se_mc": self.monte_carlo,
                "n_patches_min": self.counts,
            }
        )

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`; numbers read back to the same value."""
        write_csv(path, self.to_frame(), names_of_rows=False)
