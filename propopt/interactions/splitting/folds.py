"""Which rows are fitted, and which are judged by what was fitted to the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray


@final
@dataclass(frozen=True, eq=False)
class Fold:
    """Rows of a table, parted.

    Parameters
    ----------
    training, test : array of int
        Rows that are fitted and rows that are judged, both ascending.
    """

    training: NDArray[np.intp]
    test: NDArray[np.intp]

    @classmethod
    def of(cls, test: NDArray[np.bool_]) -> Fold:
        """From which of the N rows are judged."""
        return cls(np.flatnonzero(~test), np.flatnonzero(test))


def held_out(
    n_rows: int, n_test: int, seed: int, labels: NDArray[Any] | None = None
) -> Fold:
    """One part of the rows that is judged; of each label about the same share.

    Parameters
    ----------
    n_rows, n_test : int
        N, and how many of them are judged.
    seed : int
        Of the order in which they are drawn.
    labels : array (N,), optional
        Rows are drawn by label.

    Examples
    --------
    >>> held_out(6, 2, seed=0, labels=np.array([0, 0, 0, 1, 1, 1])).test
    array([1, 4])
    """
    order = _drawn(n_rows, seed, labels)
    # n_test of N evenly spaced places: where i n_test / N passes a whole number
    passed = np.arange(n_rows + 1) * n_test // n_rows
    test = np.zeros(n_rows, dtype=bool)
    test[order[np.diff(passed) > 0]] = True
    return Fold.of(test)


def dealt_folds(
    n_rows: int, n_folds: int, seed: int, labels: NDArray[Any] | None = None
) -> tuple[Fold, ...]:
    """Parts of the rows that are judged in turn, each row once, dealt like cards.

    Parameters
    ----------
    n_rows, n_folds : int
        N, and K parts whose sizes differ by one at most.
    seed : int
        Of the order in which rows are dealt.
    labels : array (N,), optional
        Rows are dealt by label, so that of each the parts have one more or less.

    Examples
    --------
    >>> [fold.test.tolist() for fold in dealt_folds(5, 2, seed=0)]
    [[1, 2, 3], [0, 4]]
    """
    number = np.empty(n_rows, dtype=np.intp)
    number[_drawn(n_rows, seed, labels)] = np.arange(n_rows) % n_folds
    return tuple(Fold.of(number == k) for k in range(n_folds))


def held_out_groups(groups: NDArray[np.intp], n_test: int, seed: int) -> Fold:
    """Whole groups that are judged, drawn until they have about so many rows.

    Two at least are judged, and one is fitted.

    Parameters
    ----------
    groups : array of int (N,)
        0, ..., C − 1, of three groups or more.
    n_test : int
        Rows.
    seed : int
        Of the order in which groups are drawn.

    Examples
    --------
    >>> held_out_groups(np.array([0, 0, 1, 1, 2, 2]), 3, seed=0).test
    array([0, 1, 4, 5])
    """
    sizes = np.bincount(groups)
    order = np.random.default_rng(seed).permutation(len(sizes))
    nearest = int(np.abs(np.cumsum(sizes[order]) - n_test).argmin()) + 1
    count = min(max(nearest, 2), len(sizes) - 1)
    return Fold.of(np.isin(groups, order[:count]))


def dealt_groups(groups: NDArray[np.intp], n_folds: int, seed: int) -> tuple[Fold, ...]:
    """Whole groups, the largest first, each to the part that has fewest rows.

    Parameters
    ----------
    groups : array of int (N,)
        0, ..., C − 1.
    n_folds : int
        K, at most C.
    seed : int
        Of the order of groups of one size.

    Examples
    --------
    >>> [fold.test.tolist() for fold in dealt_groups(np.array([0, 0, 0, 1, 2]), 2, 0)]
    [[0, 1, 2], [3, 4]]
    """
    sizes = np.bincount(groups)
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    number, rows = np.empty(len(sizes), dtype=np.intp), np.zeros(n_folds)
    for own in order:
        number[own] = rows.argmin()
        rows[number[own]] += sizes[own]
    return tuple(Fold.of(number[groups] == k) for k in range(n_folds))


def _drawn(n_rows: int, seed: int, labels: NDArray[Any] | None) -> NDArray[np.intp]:
    """All rows in random order, of one label after the other."""
    order = np.random.default_rng(seed).permutation(n_rows)
    if labels is None:
        return order
    return order[np.argsort(labels[order], kind="stable")]
