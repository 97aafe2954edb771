"""Errors of predictions that are made without some features: what all else reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.interactions.features import Features, Places
from propopt.interactions.subsets import subsets_of


@final
@dataclass(frozen=True, eq=False)
class LeftOutErrors:
    """Of q sets T of features, the errors of f^(−T), the predictor without them.

    Parameters
    ----------
    rows : array (N, q)
        Err(y_i, f^(−T)(x_i)), where row i had no part in that predictor.
    replicates : array (G, q)
        Means over the rows with one of G groups of patches left out; G is 0 where a
        predictor is no mean of patches.
    counts : array (q,)
        Over how many patches a prediction is averaged, in the row that has fewest.
    """

    rows: Array
    replicates: Array
    counts: Array


class LeftOut(Protocol):
    """Predictors without any set of features, judged on rows that they did not see."""

    @property
    def features(self) -> Features:
        """The M features that may be left out."""

    @property
    def row_weights(self) -> Array:
        """Of each row in means over the rows, shape (N,); they sum to N."""

    @property
    def row_groups(self) -> NDArray[np.intp] | None:
        """Which rows belong together, (N,), 0 to C − 1; None where each is its own."""

    @property
    def used(self) -> frozenset[int] | None:
        """Places of the features that some fitted learner uses; None of all.

        It uses a feature if, at some row of the table, its prediction changes when the
        values of that feature are exchanged between the rows.
        """

    def errors(self, sets: Places) -> LeftOutErrors:
        """Errors without each of q sets of one size t.

        Parameters
        ----------
        sets : array of int (q, t)
            Places of features, ascending in each row; of the empty set (1, 0).

        Raises
        ------
        InvalidInput
            If a set is left out by no patch at some row, with the number of patches
            that would do.
        """

    def judged_on(self, table: Any, y: NDArray[Any]) -> LeftOut:
        """The same predictors, judged on new rows, of which none had a part in them.

        Their scores are, up to the number of rows, the target of the intervals.

        Parameters
        ----------
        table : array or DataFrame (n, D)
            New rows.
        y : array (n,)
            Their target; of a classifier the places of classes.

        Raises
        ------
        InvalidInput
            If the fitted predictors are not there any more.
        """

    def predict(self, table: Any) -> Array:
        """What the whole predictor says, (n,) or probabilities (n, K).

        Parameters
        ----------
        table : array or DataFrame (n, D)
            New rows.

        Raises
        ------
        InvalidInput
            If the fitted predictors are not there any more.
        """


def signed_subsets(order: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Subsets T of a set S of so many features, by places in it, with (−1)^(|T| + 1).

    iLOCO_S = Σ_{T ⊆ S} (−1)^(|T| + 1) E[Err(f^(−T))], (Little, Zheng & Allen,
    Definition 2): of one feature LOCO, of two Err_j + Err_k − Err_jk − Err. It is the
    co-Möbius transform, at S, of the game v(A) = −E[Err(f on A)].

    Examples
    --------
    >>> list(signed_subsets(2))
    [((), -1), ((0,), 1), ((1,), 1), ((0, 1), -1)]
    """
    for size in range(order + 1):
        for subset in combinations(range(order), size):
            yield subset, (-1) ** (size + 1)


def inclusion_exclusion(source: LeftOut, sets: Places) -> LeftOutErrors:
    """Scores Σ_{T ⊆ S} (−1)^(|T| + 1) Err(f^(−T)) of q sets S of one size, at each row.

    Errors without a T are asked for once for all S that it is in; ``counts`` are the
    fewest of any T.
    """
    n_sets, order = sets.shape
    rows = np.zeros((n_sets, len(source.row_weights)))
    replicates, counts = np.zeros((1, n_sets)), np.full(n_sets, np.inf)
    for size in range(order + 1):
        subsets, places = subsets_of(sets, size)
        part = source.errors(subsets)
        sign = (-1.0) ** (size + 1)
        for own in places:
            rows += sign * part.rows.T[own]
            replicates = replicates + sign * part.replicates[:, own]
            counts = np.minimum(counts, part.counts[own])
    return LeftOutErrors(rows.T, replicates, counts)
