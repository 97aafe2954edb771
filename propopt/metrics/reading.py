"""What the metrics are given, checked once."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from propopt._typing import Attributions, Points
from propopt.checks import read_array
from propopt.errors import InvalidInput
from propopt.explainers.base import Task
from propopt.explanation import CurvePoint, Explanation
from propopt.functions.base import read_function
from propopt.labels import Labels, differ, read_table
from propopt.metrics.seeds import read_rng


Units: TypeAlias = Literal["absolute", "relative"]


def read_task(
    function: object, X: object, rng: int | np.random.Generator | None
) -> Task:
    """The function, the points as it reads them, and a generator of metrics."""
    known = read_function(function)
    points, labels = known.read(X)
    return Task(function=known, points=points, labels=labels, rng=read_rng(rng))


def read_attributions(explanation: object) -> tuple[Attributions, Labels]:
    """W (N, D) of an explanation or a table, and its names."""
    if isinstance(explanation, CurvePoint):
        explanation = explanation.explanation
    if isinstance(explanation, Explanation):
        array = read_array(explanation.attributions, "attributions", ndim=2)
        return array, explanation.labels
    return read_table(explanation, "attributions")


def attributions_of(
    explanation: object, points: Points, labels: Labels
) -> Attributions:
    """W (N, D), refused if it is of other points or features."""
    attributions, own = read_attributions(explanation)
    if attributions.shape != points.shape:
        raise InvalidInput(
            f"attributions: expected the shape of X, {points.shape}, got "
            f"{attributions.shape}"
        )
    _require_same(own.features, labels.features, "columns")
    _require_same(own.points, labels.points, "rows")
    return attributions


def read_units(units: object) -> None:
    """Refuse units that are neither relative nor absolute."""
    if units not in get_args(Units):
        raise InvalidInput(f"units: expected 'absolute' or 'relative', got {units!r}")


def _require_same(own: object, expected: object, what: str) -> None:
    if differ(own, expected):
        raise InvalidInput(
            f"attributions: expected the {what} of X, in the same order; the names "
            "differ"
        )
