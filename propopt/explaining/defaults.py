"""What one line from a model to an explanation takes for granted, each by itself."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from propopt._typing import Array, Points
from propopt.checks import read_nonnegative
from propopt.errors import InvalidInput, MissingPatternsWarning
from propopt.functions import Function
from propopt.graphs.base import Graph
from propopt.graphs.missing_patterns import share_across_patterns
from propopt.graphs.points import knn_graph
from propopt.losses import (
    Constraint,
    Objective,
    PairwiseRobustness,
    SharedRobustness,
)
from propopt.results.explanation import Explanation
from propopt.sampling.laws import Reference
from propopt.solvers import solve
from propopt.tables.names import Labels
from propopt.tables.schema import ColumnScale, array_scales, per_scale
from propopt.tradeoffs.sweep import sweep


N_NEIGHBORS = 8
MOST_ACROSS = 0.05
"""The share of edges between rows of other gaps that goes without saying."""

_DECADES, _N_WEIGHTS = 3, 61
"""The default curve: weights 10^∓DECADES times one over twice the mean degree."""


def reference_of(function: Function, table: Any, what: str = "data") -> Reference:
    """The rows that scales and laws are made of; large tables are thinned by seed 0."""
    points, labels = function.read(table, what)
    return Reference.of_points(points, labels, function.schema)


def sizes_of(function: Function, reference: Reference, scale: ColumnScale) -> Array:
    """S (D,): what one step of each feature is, in its own units; 0 if constant."""
    if function.schema is not None:
        return function.schema.scales(scale)
    return array_scales(reference.points, scale)


def refuse_no_scale(sizes: Array, reference: Reference) -> None:
    """Refuse sizes of zero alone: then no two rows differ."""
    if not sizes.any():
        raise InvalidInput(
            f"scale: no column varies over {reference.in_words()}, so that there is no "
            "standard deviation; give the table that the model was fitted on as data, "
            "or numbers as scale"
        )


def coordinates_of(function: Function, X: Any, sizes: Array) -> Array:
    """The points (N, M) between which distances are measured."""
    if function.schema is not None:
        return function.schema.coordinates(X, sizes)
    points, _ = function.read(X)
    return per_scale(points, sizes)


def coordinates_of_points(
    function: Function, points: Points, labels: Labels, sizes: Array
) -> Array:
    """The same of points that are encoded."""
    if function.schema is not None:
        return coordinates_of(function, function.schema.decode(points), sizes)
    return coordinates_of(function, labels.of_columns().table(points), sizes)


def neighbours_of(coordinates: Array, same_pattern: bool = False) -> Graph:
    """The graph of nearest neighbours, all of them or those with the same gaps."""
    if len(coordinates) < 2:
        raise InvalidInput(
            "X: robustness compares rows, and there is one; give more, or the table "
            "that it comes from as data, or take the gradient alone by "
            "propopt.explainers.Gradient"
        )
    count = min(N_NEIGHBORS, len(coordinates) - 1)
    return knn_graph(coordinates, count, same_pattern=same_pattern)


def warn_of_patterns(graph: Graph, coordinates: Array) -> None:
    """Say so where many neighbours miss other columns: slopes are tied to effects."""
    if graph.n_nodes != len(coordinates) or not np.isnan(coordinates).any():
        return
    share = share_across_patterns(graph, coordinates)
    if share > MOST_ACROSS:
        warnings.warn(
            f"{share:.0%} of the edges join rows in which other columns are missing, "
            "where slopes are compared with effects of being missing; "
            "same_pattern=True leaves these edges out",
            MissingPatternsWarning,
            stacklevel=3,
        )


def optimum(
    rest: Objective,
    robust: PairwiseRobustness | SharedRobustness,
    weight: float | None,
    progress: bool | None,
    subject_to: Sequence[Constraint] = (),
) -> Explanation:
    """The best for a weight of robustness; for that at the knee, where none is given.

    Parameters
    ----------
    rest : Objective
        All but robustness, faithfulness first.
    subject_to : sequence of Bound or Completeness
        Constraints.
    """
    if weight is not None:
        objective = rest + read_nonnegative(weight, "robustness") * robust
        return solve(objective, subject_to=subject_to)
    weights = np.logspace(-_DECADES, _DECADES, _N_WEIGHTS) / (2.0 * _degree(robust))
    curve = sweep(
        rest + 1.0 * robust,
        {robust.name: weights},
        subject_to=subject_to,
        progress=progress,
    )
    return curve.knee(rest.losses[0].name, robust.name)


def _degree(robust: PairwiseRobustness | SharedRobustness) -> float:
    """The mean degree; over shared words that of the words that are shared."""
    if isinstance(robust, PairwiseRobustness):
        return float(robust.graph.similarities.sum()) / robust.n_points
    degrees = robust.entry_graph.similarities.sum(axis=1)
    return float(degrees[degrees > 0.0].mean())


def in_words(scale: Any) -> str:
    """A scale as ``parameters`` have it."""
    if isinstance(scale, str):
        return scale
    if scale is None:
        return "none"
    if isinstance(scale, Mapping):
        return ", ".join(f"{name}: {size:.6g}" for name, size in scale.items())
    return ", ".join(f"{size:.6g}" for size in np.asarray(scale, float))
