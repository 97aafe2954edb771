"""The distance from the data of the rows that interventional values evaluate.

A Shapley value against a background uses mixed rows: some columns come from the
explained row, the others from a background row. If columns are correlated, mixed rows
may be unlike any data, and the predictions of the model there were never tested. The
share of such rows is estimated here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self, final

import numpy as np

from propopt.base.arrays import Array, Indices, Points, Values
from propopt.base.text import Reason
from propopt.losses.graphs.points import distances_between


FAR_QUANTILE: Final = 0.99
"""Quantile of nearest-neighbour distances in the data beyond which rows are far."""

_FEWEST_ROWS: Final = 100
"""The smallest number of rows of data to estimate that quantile."""

_MOST_ROWS: Final = 500
_N_MIXED: Final = 400
"""The largest number of rows of data, and the number of mixed rows."""

_WORK: Final = 2e8
_SLOW_WORK: Final = 2e6
"""Limits of pairs of rows times coordinates, without and with missing numbers."""


@final
@dataclass(frozen=True)
class OffData:
    """The share of mixed rows farther from the data than 99 % of its rows.

    A mixed row has the columns of a random coalition from an explained row, and the
    others from a background row. The coalition has the players before a random position
    in a random order, with at least one player in it and one outside. The distance is
    to the nearest row of data other than its two source rows. It is far if this exceeds
    the 99 % quantile of the distances of rows of data to their nearest other row. For
    independent columns about 1 % are far.
    """

    share: float
    standard_error: float  # of the draws of mixed rows
    n_mixed: int
    n_rows: int  # rows of data used for distances

    @classmethod
    def of(
        cls,
        explained: Points,  # (N, D)
        background: Points,  # (M, D)
        data: Points,  # (R, D)
        coordinates_of: Callable[[Points], Array],
        players: Indices,  # (D,): of each column
        weights: Values | None = None,  # (M,): of the background
    ) -> Self | Reason:
        """Estimate the share with a fixed seed, or return the reason for none."""
        n_players = int(players.max()) + 1
        if n_players < 2:
            return Reason("none, as there is one player")
        if len(data) < _FEWEST_ROWS:
            return Reason(f"not estimated, as data has fewer than {_FEWEST_ROWS} rows")
        rng, positions = np.random.default_rng(0), coordinates_of(data)
        work = _SLOW_WORK if np.isnan(positions).any() else _WORK
        most = math.sqrt(work / max(positions.shape[1], 1)) - _N_MIXED / 2
        count = int(np.clip(most, _FEWEST_ROWS, _MOST_ROWS))
        if len(data) > count:
            chosen = np.sort(rng.choice(len(data), count, replace=False))
            data, positions = data[chosen], positions[chosen]
        between_data = _squared_distances(positions, positions)
        np.fill_diagonal(between_data, np.inf)
        nearest = between_data.min(axis=1)  # distances here are squared
        limit = float(np.quantile(nearest, FAR_QUANTILE))
        x = explained[rng.integers(len(explained), size=_N_MIXED)]
        b = background[rng.choice(len(background), _N_MIXED, p=weights)]
        rank = np.argsort(rng.random((_N_MIXED, n_players)), axis=1)
        is_explained = rank < rng.integers(1, n_players, size=(_N_MIXED, 1))
        mixed = np.where(is_explained[:, players], x, b)
        distances = _squared_distances(coordinates_of(mixed), positions)
        for source in (x, b):
            distances[_same(source, data)] = np.inf
        far = distances.min(axis=1) > limit
        share = float(far.mean())
        error = math.sqrt(max(share * (1.0 - share), 0.25 / _N_MIXED) / _N_MIXED)
        return cls(share, error, _N_MIXED, len(data))

    def in_words(self) -> str:
        """Describe the share with its standard error, in a sentence."""
        share, error = (100.0 * x for x in (self.share, self.standard_error))
        rounded = f"{share:.0f} %" if error >= 1.0 else f"{share:.1f} %"
        return (
            f"{rounded} ± {error:.1f} % lie farther from data than 99 % of its rows, "
            f"estimated from {self.n_mixed} of them"
        )


def _squared_distances(rows: Array, positions: Array) -> Array:
    """Squared distances of rows (n, C) to others (R, C), (n, R)."""
    if np.isnan(rows).any() or np.isnan(positions).any():
        return distances_between(rows, positions) ** 2
    # matrix products are accurate enough for a share of rows
    middle = positions.mean(axis=0)
    rows, positions = rows - middle, positions - middle
    squares = (rows**2).sum(axis=1)[:, None] + (positions**2).sum(axis=1)
    return np.asarray(np.maximum(squares - 2.0 * rows @ positions.T, 0.0))


def _same(rows: Points, data: Points) -> tuple[list[int], list[int]]:
    """Index pairs of equal rows among rows and data."""
    indices_of: dict[bytes, list[int]] = {}
    for index, row in enumerate(_plain(data)):
        indices_of.setdefault(row.tobytes(), []).append(index)
    pairs = [
        (n, index)
        for n, row in enumerate(_plain(rows))
        for index in indices_of.get(row.tobytes(), ())
    ]
    return [n for n, _ in pairs], [index for _, index in pairs]


def _plain(rows: Points) -> Points:
    """Rows with a unique NaN and a unique zero, for comparing bytes."""
    return np.where(np.isnan(rows), np.nan, rows + 0.0)
