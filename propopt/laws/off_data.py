"""How far the rows that interventional values ask of lie from the data.

A Shapley value against a background is made of mixed rows: some columns are those of
the explained row, the others those of a background row. Where columns are correlated,
mixed rows may be rows that nobody has seen, and what the model says of them was never
checked against data. The share of such rows is estimated here.
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
"""Of the distances of rows of data to their nearest: what is farther is far."""

_FEWEST_ROWS: Final = 100
"""Rows of data, below which that quantile is not known."""

_MOST_ROWS: Final = 500
_N_MIXED: Final = 400
"""Rows of data that distances are taken to, and mixed rows that are drawn."""

_WORK: Final = 2e8
_SLOW_WORK: Final = 2e6
"""Pairs of rows times coordinates, where none is missing and where some are: of wide
tables fewer rows are taken."""


@final
@dataclass(frozen=True)
class OffData:
    """The share of mixed rows that are farther from the data than 99 % of its rows.

    A mixed row has the columns of a random coalition from an explained row, and the
    others from a background row. The coalition is that of players before a random place
    in a random order, with at least one player in it and one outside. Its distance is
    that to the nearest row of data, other than the two rows that it is made of. It is
    far if that exceeds the 99 % quantile of the distances of rows of data to their own
    nearest other row. Of independent columns about 1 % are far.
    """

    share: float
    standard_error: float  # of the draws of mixed rows
    n_mixed: int
    n_rows: int  # of data, that distances were taken to

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
        """Estimated with a fixed seed; a reason where it cannot be."""
        n_players = int(players.max()) + 1
        if n_players < 2:
            return Reason("none, as there is one player")
        if len(data) < _FEWEST_ROWS:
            told = f"not estimated, as data has fewer than {_FEWEST_ROWS} rows"
            return Reason(told)
        rng, positions = np.random.default_rng(0), coordinates_of(data)
        work = _SLOW_WORK if np.isnan(positions).any() else _WORK
        most = math.sqrt(work / max(positions.shape[1], 1)) - _N_MIXED / 2
        count = int(np.clip(most, _FEWEST_ROWS, _MOST_ROWS))
        if len(data) > count:
            chosen = np.sort(rng.choice(len(data), count, replace=False))
            data, positions = data[chosen], positions[chosen]
        own = _apart(positions, positions)
        np.fill_diagonal(own, np.inf)
        nearest = own.min(axis=1)  # squares, as all distances here
        limit = float(np.quantile(nearest, FAR_QUANTILE))
        x = explained[rng.integers(len(explained), size=_N_MIXED)]
        b = background[rng.choice(len(background), _N_MIXED, p=weights)]
        rank = np.argsort(rng.random((_N_MIXED, n_players)), axis=1)
        known = rank < rng.integers(1, n_players, size=(_N_MIXED, 1))
        mixed = np.where(known[:, players], x, b)
        apart = _apart(coordinates_of(mixed), positions)
        for source in (x, b):
            apart[_same(source, data)] = np.inf
        far = apart.min(axis=1) > limit
        share = float(far.mean())
        error = math.sqrt(max(share * (1.0 - share), 0.25 / _N_MIXED) / _N_MIXED)
        return cls(share, error, _N_MIXED, len(data))

    def in_words(self) -> str:
        """The share with its error, in a sentence."""
        share, error = (100.0 * x for x in (self.share, self.standard_error))
        told = f"{share:.0f} %" if error >= 1.0 else f"{share:.1f} %"
        return (
            f"{told} ± {error:.1f} % lie farther from data than 99 % of its rows, "
            f"estimated from {self.n_mixed} of them"
        )


def _apart(rows: Array, positions: Array) -> Array:
    """Squared distances of rows (n, C) to others (R, C), (n, R)."""
    if np.isnan(rows).any() or np.isnan(positions).any():
        return distances_between(rows, positions) ** 2
    # a share of rows needs no more digits than a product of matrices has
    middle = positions.mean(axis=0)
    rows, positions = rows - middle, positions - middle
    squares = (rows**2).sum(axis=1)[:, None] + (positions**2).sum(axis=1)
    return np.asarray(np.maximum(squares - 2.0 * rows @ positions.T, 0.0))


def _same(rows: Points, data: Points) -> tuple[list[int], list[int]]:
    """Pairs of a row and a row of data that are equal."""
    known: dict[bytes, list[int]] = {}
    for place, row in enumerate(_plain(data)):
        known.setdefault(row.tobytes(), []).append(place)
    pairs = [
        (n, place)
        for n, row in enumerate(_plain(rows))
        for place in known.get(row.tobytes(), ())
    ]
    return [n for n, _ in pairs], [place for _, place in pairs]


def _plain(rows: Points) -> Points:
    """The same with one NaN and one zero."""
    return np.where(np.isnan(rows), np.nan, rows + 0.0)
