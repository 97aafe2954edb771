"""Sampling mismatch: samples that are not like the data."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.spatial import cKDTree

from propopt._typing import Array, Points
from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Checked, Rule
from propopt.lime.laws.binned import BinnedColumn
from propopt.lime.views.columns import without_glime


_N_SAMPLES, _MOST_COMPARED, _QUANTILE = 500, 1000, 0.95
_OF_COMMON: Final = 2000
_NO_TABLE: Final = "it needs the table of the law; give it as data"


_ALL_ROWS: Final = (
    "merge or condition on columns that go together, or explain them as a group"
)


def _check_bin_mean(case: Case) -> Checked | str:
    numbers = np.full(case.beta.shape, np.nan)
    drawn, told = np.full((2, *case.beta.shape), np.nan)
    for j, column in enumerate(map(without_glime, case.law.columns)):
        if not isinstance(column, BinnedColumn) or column.pieces.mean.ndim != 1:
            continue
        pieces = column.pieces
        means, known = pieces.mean.copy(), ~pieces.single
        means[known] = pieces.normals.means
        place = case.places[:, j]
        apart = np.abs(means - pieces.mean) / np.where(known, pieces.sd, 1.0)
        numbers[:, j] = np.where(known[place], apart[place], np.nan)
        drawn[:, j], told[:, j] = means[place], pieces.mean[place]
    if np.isnan(numbers).all():
        return "no bin draws from a truncated normal law"

    def sentence(n: int, j: int) -> str:
        return (
            f"samples in the bin of the row have the mean {drawn[n, j]:.4g}, the data "
            f"there {told[n, j]:.4g}, {numbers[n, j]:.2g} standard deviations away"
        )

    remedy = "transform the column, such as by its logarithm, or use more bins"
    return Checked(numbers=numbers, stakes=case.sizes, sentence=sentence, remedy=remedy)


BIN_MEAN: Final = Rule(
    name="sampling mismatch: bin mean",
    threshold=0.5,
    weight=0.35,
    check=_check_bin_mean,
)


def _check_correlation(case: Case) -> Checked | str:
    if not case.subject.has_table:
        return _NO_TABLE
    used = np.flatnonzero(case.depends[0] & ~case.coded)
    table = _filled(case.subject.reference[:, used])
    if len(used) < 2:
        return "fewer than two columns of numbers are used"
    scale = table.std(axis=0)
    scale[scale == 0.0] = np.inf
    unit = (table - table.mean(axis=0)) / scale
    correlation = np.abs(unit.T @ unit) / len(unit)
    np.fill_diagonal(correlation, 0.0)
    a, b = divmod(int(correlation.argmax()), len(used))
    count = int((correlation.max(axis=1) > CORRELATION.threshold).sum())

    def sentence(n: int, j: int) -> str:
        del n, j
        names = case.names
        return (
            f"{names[used[a]]} and {names[used[b]]} have the correlation "
            f"{correlation[a, b]:.3f} in the data and none in the samples; {count} of "
            f"{len(used)} columns have one above {CORRELATION.threshold}"
        )

    return Checked(
        numbers=correlation.max().reshape(1, 1),
        stakes=np.ones((1, 1)),
        sentence=sentence,
        remedy=_ALL_ROWS,
    )


CORRELATION: Final = Rule(
    name="sampling mismatch: correlation",
    threshold=0.8,
    weight=0.4,
    per_row=False,
    per_column=False,
    check=_check_correlation,
)


def _check_support(case: Case) -> Checked | str:
    if not case.subject.has_table:
        return _NO_TABLE
    reference = case.subject.reference
    if len(reference) < 2:
        return "the table has one row"
    if not case.depends.any():
        return "f depends on no column"
    shares = off_support(case)

    def sentence(n: int, j: int) -> str:
        del j
        return (
            f"{shares[n]:.0%} of the samples are farther from the nearest row of the "
            f"data than {_QUANTILE:.0%} of its rows are from theirs: f is asked where "
            "no data is"
        ).replace("%", " %")

    return Checked(
        numbers=shares[:, None],
        stakes=np.ones((1, 1)),
        sentence=sentence,
        remedy=_ALL_ROWS,
    )


def off_support(case: Case) -> Array:
    """The share of 500 samples beyond the nearest-neighbour distances of data, (N,)."""
    table = case.subject.reference
    used = case.depends[0]
    some = table[:: -(-len(table) // _MOST_COMPARED)]
    coordinates = _Coordinates(table, case.coded & used, ~case.coded & used)
    tree = cKDTree(coordinates.of(some))
    nearest = tree.query(coordinates.of(some), k=2)[0][:, 1]
    reach = np.quantile(nearest, _QUANTILE)
    if case.common is not None:
        # the share of 2,000 is known to 0.011
        every = -(-len(case.common.samples) // _OF_COMMON)
        off = tree.query(coordinates.of(case.common.samples[::every]))[0] > reach
        weights = case.common.weights(case.points, case.law.widths(case.points))
        return np.asarray(off @ weights[::every] / weights[::every].sum(axis=0))
    rng = np.random.default_rng(0)
    draws = case.law.draw_weighted(case.points, _N_SAMPLES, rng).samples
    return np.array(
        [(tree.query(coordinates.of(own))[0] > reach).mean() for own in draws]
    )


class _Coordinates:
    """Numbers in standard deviations, and categories as corners at distance 1."""

    def __init__(self, table: Points, coded: Array, numeric: Array) -> None:
        self.coded, self.numeric = np.flatnonzero(coded), np.flatnonzero(numeric)
        numbers = _filled(table[:, self.numeric])
        self.mean, self.scale = numbers.mean(axis=0), numbers.std(axis=0)
        self.scale[self.scale == 0.0] = 1.0

    def of(self, points: Points) -> Array:
        """Coordinates (n, M)."""
        numbers = (points[:, self.numeric] - self.mean) / self.scale
        corners = [
            (points[:, [j]] == np.arange(points[:, j].max() + 1)) / np.sqrt(2.0)
            for j in self.coded
        ]
        return np.concatenate([np.nan_to_num(numbers), *corners], axis=1)


def _filled(table: Points) -> Points:
    """Missing numbers at the mean of the others."""
    known = ~np.isnan(table)
    counts = np.maximum(known.sum(axis=0), 1)
    means = np.where(known, table, 0.0).sum(axis=0) / counts
    return np.where(known, table, means)


SUPPORT: Final = Rule(
    name="sampling mismatch: off the data",
    threshold=0.5,
    weight=0.4,
    per_column=False,
    check=_check_support,
)
