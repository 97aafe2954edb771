"""Errors of predictions that are made without some features: what all else reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol, final

import numpy as np

from propopt._typing import Array
from propopt.interactions.features import Features, Places


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
    """Scores Σ_T (−1)^(|T| + 1) Err(f^(−T)) of q sets of one size, for each row.

    ``counts`` are the fewest of any subset. Errors of smaller sets are asked for once
    for all sets that share them.
    """
    rows, replicates, counts = np.zeros(0), np.zeros(0), np.zeros(0)
    total: list[Array] = [rows, replicates, counts]
    for number, (subset, sign) in enumerate(signed_subsets(sets.shape[1])):
        own, inverse = np.unique(sets[:, list(subset)], axis=0, return_inverse=True)
        part = source.errors(own)
        places = inverse.reshape(-1)
        taken = (part.rows[:, places], part.replicates[:, places], part.counts[places])
        if number == 0:
            total = [sign * taken[0], sign * taken[1], taken[2]]
            continue
        total[0] += sign * taken[0]
        total[1] += sign * taken[1]
        total[2] = np.minimum(total[2], taken[2])
    return LeftOutErrors(*total)
