"""What the metrics are given, checked once."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from propopt._typing import Attributions, Points
from propopt.errors import InvalidInput
from propopt.explainers.base import Task
from propopt.functions.base import read_function
from propopt.metrics.seeds import read_rng
from propopt.tables.alignment import aligned
from propopt.tables.names import Labels


Units: TypeAlias = Literal["absolute", "relative"]


def read_task(
    function: object, X: object, rng: int | np.random.Generator | None
) -> Task:
    """The function, the points as it reads them, and a generator of metrics."""
    known = read_function(function)
    points, labels = known.read(X)
    return Task(function=known, points=points, labels=labels, rng=read_rng(rng))


def attributions_of(
    explanation: object, points: Points, labels: Labels
) -> Attributions:
    """W (N, D) in the order of X, refused if it is of other points or features."""
    attributions = aligned(explanation, labels, "attributions", "X")
    if attributions.shape != points.shape:
        raise InvalidInput(
            f"attributions: expected the shape of X, {points.shape}, got "
            f"{attributions.shape}"
        )
    return attributions


def read_units(units: object) -> None:
    """Refuse units that are neither relative nor absolute."""
    if units not in get_args(Units):
        raise InvalidInput(f"units: expected 'absolute' or 'relative', got {units!r}")
