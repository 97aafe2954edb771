"""The columns of a gaussian law, from the numbers and codes of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final, get_args

import numpy as np

from propopt._typing import Array, Points, Truths
from propopt.checks import read_positive
from propopt.errors import InvalidInput
from propopt.lime.bins.rules import BinRule
from propopt.lime.laws.binned import BinnedColumn
from propopt.lime.laws.gaussian.column import NormalColumn
from propopt.tables.columns import spreads


SampleScale: TypeAlias = Literal["per_feature", "common"] | float
DistanceUnits: TypeAlias = Literal["standardised", "raw"]
BinEnds: TypeAlias = Literal["normal", "data"]


@final
@dataclass(frozen=True, kw_only=True)
class NormalSettings:
    """How normal columns are made of a table.

    Parameters
    ----------
    scale : "per_feature", "common" or float
        Of the numbers: standard deviations of their columns, the root mean square of
        these, or a number.
    distance : "standardised" or "raw"
        Whether distances are measured in units of the scale.
    edges : "normal" or "data"
        Whether bins end at quantiles of the normal law, or of the numbers.
    """

    scale: SampleScale = "per_feature"
    distance: DistanceUnits = "standardised"
    edges: BinEnds = "normal"

    def __post_init__(self) -> None:
        _refuse_other(self.distance, DistanceUnits, "distance")
        _refuse_other(self.edges, BinEnds, "edges")
        if isinstance(self.scale, str):
            _refuse_other(self.scale, get_args(SampleScale)[0], "scale", " or a number")
        else:
            read_positive(self.scale, "scale")

    def columns(
        self,
        points: Points,
        binned: Sequence[BinnedColumn],
        coded: Truths,
        rules: Sequence[BinRule],
    ) -> tuple[NormalColumn | BinnedColumn, ...]:
        """Normal columns where numbers differ; categories and constants stay binned."""
        scales = self._scales(points, coded)
        return tuple(
            self._normal(values, float(scale), rule) if scale > 0.0 else column
            for values, column, scale, rule in zip(
                points.T, binned, scales, rules, strict=True
            )
        )

    def _scales(self, points: Points, coded: Truths) -> Array:
        """σ, (D,); 0 for categories, and for columns that stay constant."""
        own = np.array([_deviation(values) for values in points.T])
        drawn = ~coded & ~np.isnan(points).all(axis=0)
        if self.scale == "per_feature":
            return np.where(drawn, own, 0.0)
        if self.scale == "common":
            common = np.sqrt((own[drawn] ** 2).mean()) if drawn.any() else 0.0
            return np.where(drawn, common, 0.0)
        return np.where(drawn, self.scale, 0.0)

    def _normal(self, values: Array, scale: float, rule: BinRule) -> NormalColumn:
        known = values[~np.isnan(values)]
        mean, missing = float(known.mean()), 1.0 - len(known) / len(values)
        unit = 1.0 if self.distance == "raw" else scale
        if self.edges == "normal":
            return NormalColumn.of_rule(mean, scale, rule, unit, missing)
        edges = rule.inner_edges(known)
        # nothing is below an edge at the smallest number
        return NormalColumn(mean, scale, edges[edges > known.min()], unit, missing)


def _refuse_other(given: object, known: Any, what: str, more: str = "") -> None:
    words = get_args(known)
    if given not in words:
        one, other = words
        raise InvalidInput(f"{what}: expected {one!r}, {other!r}{more}, got {given!r}")


def _deviation(values: Array) -> float:
    """The standard deviation of numbers that are there; 0 if it is but rounding."""
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return 0.0
    deviation = float(known.std())
    return float(spreads(known.mean(), deviation))
