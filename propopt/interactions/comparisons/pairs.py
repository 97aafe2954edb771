"""Scores of pairs of features without intervals."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import pandas as pd

from propopt._typing import Array, Values
from propopt.checks import read_count
from propopt.interactions.features import Places, pairs_matrix
from propopt.output.csv import write_csv


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class PairScores:
    """How strongly pairs of features interact in one fitted model, by some method.

    Of the same table it has the pairs of :class:`InteractionScores`, in their order;
    no method of this kind knows an error of its scores.

    Parameters
    ----------
    sets : array of int (Q, 2)
        Places of the features of each pair, ascending.
    names : tuple (M,)
        Of the features.
    estimates : array (Q,)
        The scores, none of them negative.
    method : str
        What they are called.
    units : str
        Of the scores.
    n_rows : int
        Rows over which they are taken together.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.interactions import h_statistic
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> scores = h_statistic(lambda X: X[:, 0] * X[:, 1] + X[:, 2], X)
    >>> scores.top(1)[["feature_1", "feature_2"]]
       feature_1  feature_2
    0          0          1
    """

    sets: Places
    names: tuple[Hashable, ...]
    estimates: Values
    method: str
    units: str
    n_rows: int

    def matrix(self) -> Array:
        """Scores as a symmetric matrix (M, M); NaN on the diagonal."""
        return pairs_matrix(self.estimates, self.sets, len(self.names))

    def to_frame(self) -> pd.DataFrame:
        """One row for each pair: ``feature_1``, ``feature_2`` and ``estimate``."""
        first, second = ([self.names[place] for place in side] for side in self.sets.T)
        return pd.DataFrame(
            {"feature_1": first, "feature_2": second, "estimate": self.estimates}
        )

    def top(self, k: int = 10) -> pd.DataFrame:
        """The k pairs with the largest scores, largest first.

        Raises
        ------
        InvalidInput
            If k is no integer ≥ 1.
        """
        order = np.argsort(-self.estimates, kind="stable")[: read_count(k, "k")]
        return self.to_frame().iloc[order]

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`; numbers read back to the same value."""
        write_csv(path, self.to_frame(), names_of_rows=False)
