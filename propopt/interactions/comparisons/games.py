"""What a fitted model answers when it knows some features of a row."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from propopt._typing import Array, Points, Truths
from propopt.batches import MODEL_CALLS
from propopt.checks import read_count, read_rng
from propopt.errors import InvalidInput
from propopt.functions.base import Function
from propopt.functions.wrapping import wrap
from propopt.interactions.features import Features
from propopt.tables.frames import is_frame
from propopt.tables.names import Labels


ALL_SUBSETS_OF: Final = 15
"""Features of which all 2^M subsets are evaluated, at most."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RowGames:
    """v_i(A) = mean over background rows b of f(x_i on A, b elsewhere), for n rows.

    Of one feature and of two it is the partial dependence at the row (Friedman 2001),
    and v_i is the game of Shapley values with a marginal background.

    Parameters
    ----------
    function : Function
        f.
    points : array (n, D)
        The rows x_i.
    background : array (B, D)
        What stands for features that are not known.
    labels : Labels
        Names of columns.
    features : Features
        M features, each of one or several columns.
    """

    function: Function
    points: Points
    background: Points
    labels: Labels
    features: Features

    def values(self, known: Truths) -> Array:
        """Of q sets A of features, shape (n, q).

        Parameters
        ----------
        known : array of bool (q, M)
            Which features are in A.
        """
        n_rows, n_background = len(self.points), len(self.background)
        found = np.empty((n_rows, len(known)))
        columns = self._columns(known)
        row_bytes = 8 * self.points.shape[1]
        copies = n_rows * n_background
        for block in MODEL_CALLS.blocks(len(known), row_bytes, copies):
            own = columns[block]
            mixed = np.where(
                own[:, None, None], self.points[:, None], self.background
            )  # (q, n, B, D)
            values = self.function.value_at(
                mixed.reshape(-1, self.points.shape[1]), self.labels
            )
            found[:, block] = values.reshape(len(own), n_rows, -1).mean(axis=2).T
        return found

    @cached_property
    def table(self) -> Array:
        """Of all subsets, shape (n, 2^M): the place of A is Σ_{j ∈ A} 2^j.

        Raises
        ------
        InvalidInput
            If they are too many.
        """
        n_features = len(self.features)
        if n_features > ALL_SUBSETS_OF:
            raise InvalidInput(
                f"X: 2^{n_features} subsets of features are too many to evaluate; at "
                f"most {ALL_SUBSETS_OF} features can be compared, so give fewer "
                "columns, or groups of them"
            )
        places = np.arange(2**n_features)[:, None]
        return self.values((places >> np.arange(n_features)) % 2 == 1)

    def _columns(self, known: Truths) -> Truths:
        """Which columns are known, (q, D)."""
        columns = np.zeros((len(known), self.points.shape[1]), dtype=bool)
        for feature, own in enumerate(self.features.columns):
            columns[:, list(own)] = known[:, [feature]]
        return columns


def read_games(
    model: Any,
    X: Any,
    *,
    target: Any,
    groups: Mapping[Hashable, Sequence[Hashable]] | None,
    n_rows: int,
    n_background: int,
    rng: int | np.random.Generator | None,
) -> RowGames:
    """The games of rows of X that are drawn, against others that are drawn.

    Parameters
    ----------
    model : estimator, callable or Function
        See :func:`propopt.wrap`.
    X : array or DataFrame (N, D)
        Rows are drawn from it, without replacement; all where it has no more.
    target : class label or int or None
        See :func:`propopt.wrap`.
    groups : mapping of a feature to its columns, or None
        Columns that are one feature.
    n_rows, n_background : int
        How many.
    rng : int, numpy.random.Generator or None
        For the draws.

    Raises
    ------
    InvalidInput
        If an argument cannot be used.
    """
    function = wrap(model, target, data=X if is_frame(X, "X") else None)
    points, labels = function.read(X)
    names = labels.columns or tuple(range(points.shape[1]))
    generator = read_rng(rng)
    return RowGames(
        function=function,
        points=_drawn(points, read_count(n_rows, "n_rows"), generator),
        background=_drawn(points, read_count(n_background, "n_background"), generator),
        labels=labels.of_columns(),
        features=Features.of(names, groups),
    )


def _drawn(points: Points, count: int, rng: np.random.Generator) -> Points:
    if count >= len(points):
        return points
    return points[np.sort(rng.choice(len(points), count, replace=False))]
