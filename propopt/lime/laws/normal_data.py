"""The columns of a gaussian law, from the numbers and codes of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np

from propopt._typing import Array, Points, Truths
from propopt.checks import read_count, read_positive
from propopt.errors import InvalidInput
from propopt.lime.laws.binned import BinnedColumn
from propopt.lime.laws.column import LimeColumn
from propopt.lime.laws.normal_column import NormalColumn
from propopt.structures.products import Pieces
from propopt.tables.columns import Coded, spreads
from propopt.tables.schema import TableSchema


SampleScale: TypeAlias = Literal["per_feature", "common"] | float
DistanceUnits: TypeAlias = Literal["standardised", "raw"]
BinEnds: TypeAlias = Literal["normal", "data"]


@final
@dataclass(frozen=True, kw_only=True)
class NormalSettings:
    """How normal columns are made of a table.

    Parameters
    ----------
    n_bins : int
        At least 2.
    scale : "per_feature", "common" or float
        Of the numbers: standard deviations of their columns, the root mean square of
        these, or a number.
    distance : "standardised" or "raw"
        Whether distances are measured in units of the scale.
    edges : "normal" or "data"
        Whether bins end at quantiles of the normal law, or of the numbers.
    """

    n_bins: int = 4
    scale: SampleScale = "per_feature"
    distance: DistanceUnits = "standardised"
    edges: BinEnds = "normal"

    def __post_init__(self) -> None:
        read_bins(self.n_bins)
        if self.distance not in ("standardised", "raw"):
            raise InvalidInput(
                f"distance: expected 'standardised' or 'raw', got {self.distance!r}"
            )
        if self.edges not in ("normal", "data"):
            raise InvalidInput(
                f"edges: expected 'normal' or 'data', got {self.edges!r}"
            )
        if isinstance(self.scale, str):
            if self.scale not in ("per_feature", "common"):
                raise InvalidInput(
                    "scale: expected 'per_feature', 'common' or a number, got "
                    f"{self.scale!r}"
                )
        else:
            read_positive(self.scale, "scale")

    def columns(
        self, points: Points, schema: TableSchema | None
    ) -> Iterator[LimeColumn]:
        """The law of each column of points (N, D)."""
        coded = [None] * points.shape[1] if schema is None else schema.columns
        numbers = np.array([not isinstance(column, Coded) for column in coded])
        scales = self._scales(points, numbers)
        for values, column, scale in zip(points.T, coded, scales, strict=True):
            if isinstance(column, Coded):
                yield category_column(values, column)
            elif scale > 0.0:
                yield self._normal(values, scale)
            else:
                yield constant_column(values)

    def _scales(self, points: Points, numbers: Truths) -> Array:
        """σ, (D,): 0 for columns that stay constant, and not read for categories."""
        own = np.array([_deviation(values) for values in points.T])
        if self.scale == "per_feature":
            return own
        known = ~np.isnan(points).all(axis=0)
        if self.scale == "common":
            some = numbers & known
            common = np.sqrt((own[some] ** 2).mean()) if some.any() else 0.0
        else:
            common = self.scale
        return np.where(known, common, 0.0)

    def _normal(self, values: Array, scale: float) -> NormalColumn:
        known = values[~np.isnan(values)]
        mean, unit = known.mean(), 1.0 if self.distance == "raw" else scale
        missing = 1.0 - len(known) / len(values)
        if self.edges == "normal":
            return NormalColumn.of_quantiles(mean, scale, self.n_bins, unit, missing)
        inner = np.arange(1, self.n_bins) / self.n_bins
        # an edge at the smallest value would have nothing below it
        edges = np.unique(np.quantile(known, inner))
        return NormalColumn(mean, scale, edges[edges > known.min()], unit, missing)


def read_bins(n_bins: object) -> int:
    """``n_bins``, at least two: one alone has no coefficient."""
    if read_count(n_bins, "n_bins") < 2:
        raise InvalidInput("n_bins: expected at least 2 bins, got 1")
    return read_count(n_bins, "n_bins")


def category_column(codes: Array, column: Coded) -> BinnedColumn:
    """Categories with the frequencies of the table; two of them are at distance 1."""
    positions = column.codes(codes)
    n = len(column.categories)
    texts = [f"= {category}" for category in column.categories]
    if column.misses:
        texts[-1] = "missing"
    return BinnedColumn(
        Pieces.of_values(np.arange(n, dtype=float)),
        np.bincount(positions, minlength=n) / len(positions),
        np.empty(0),
        tuple(texts),
        coded=True,
    )


def constant_column(values: Array) -> BinnedColumn:
    """One number, or missing: it stays what it is, and has no distance to itself."""
    known = values[~np.isnan(values)]
    shares = {float(known[0]) if len(known) > 0 else 0.0: len(known) / len(values)}
    value, share = next(iter(shares.items()))
    kept = np.array([share > 0.0, share < 1.0])
    return BinnedColumn(
        Pieces.of_values(np.array([value, np.nan])[kept]),
        np.array([share, 1.0 - share])[kept],
        np.empty(0),
        tuple(np.array([f"= {value:.6g}", "missing"])[kept].tolist()),
        missing=int(kept.sum()) - 1 if kept[1] else -1,
    )


def _deviation(values: Array) -> float:
    """The standard deviation of numbers that are there, 0 but for rounding."""
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return 0.0
    deviation = float(known.std())
    # 1 stands for a column that is constant but for rounding
    same = float(spreads(known.mean(), deviation)) != deviation
    return 0.0 if same else deviation
