"""What an explanation aims at, how precisely, and defaults that are stated."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, final, get_args

import numpy as np

from propopt.base.arrays import Array, Points
from propopt.base.checks import read_nonnegative
from propopt.base.errors import InvalidInput, MissingPatternsWarning
from propopt.explaining.sweeping import sweep
from propopt.functions import Function, smoothed
from propopt.functions.function import EXACT
from propopt.laws.data_law import Reference, constant_in_words
from propopt.losses import Objective, PairwiseRobustness, PropertyLoss, SharedRobustness
from propopt.losses.completeness import Constraint
from propopt.losses.faithfulness import Estimate
from propopt.losses.graphs.points import Graph, share_across_patterns
from propopt.results.explanation import Explanation
from propopt.solvers import solve
from propopt.tables.frames import Labels
from propopt.tables.schema import ColumnScale, array_scales, per_scale


# ---- What an explanation of a model aims at: its slopes, or those of its local mean


LawChoice: TypeAlias = Literal["auto", "data", "gaussian", "none"]

GAUSSIAN_SCALE = 0.5
"""Noise of the gaussian law, in the scale of each feature."""


@final
@dataclass(frozen=True, eq=False)
class TargetRule:
    """How the target of any row is made: once chosen, the same for all."""

    # that whose gradient is the target: the model, or its mean under a law
    function: Function
    # (D,): the scale of each feature, such as its standard deviation; 0 if constant
    sizes: Array
    notes: tuple[str, ...] = ()  # the columns that are constant, a sentence each

    def at(self, points: Points, labels: Labels) -> Estimate:
        """Slopes per scale at rows that are read, with what is known of their error."""
        return self.scaled(self.function.estimate_at(points, labels))

    def scaled(self, estimate: Estimate) -> Estimate:
        """Slopes of the function per scale."""
        notes = tuple(dict.fromkeys((*estimate.notes, *self.notes)))
        slopes, quantity = estimate.scaled(self.sizes), self.function.quantity
        return replace(slopes, notes=notes, quantity=quantity)


def target_rule(
    function: Function,
    reference: Reference,
    sizes: Array,  # shape (D,)
    *,
    law: LawChoice = "auto",
    rng: int | np.random.Generator | None = None,
) -> TargetRule:
    """The slopes of a function, or of its mean near each row where it jumps."""
    match law:
        case "none":
            aim = function
        case "gaussian":
            aim = smoothed(function, GAUSSIAN_SCALE * sizes, rng=rng)
        case "data":
            aim = smoothed(function, law="data", data=reference, rng=rng)
        case "auto":
            if not jumps(function, reference):
                aim = function
            else:
                aim = smoothed(function, law="data", data=reference, rng=rng)
        case _:
            raise InvalidInput(
                f"law: expected one of {', '.join(get_args(LawChoice))}, got {law!r}"
            )
    known = ~np.isnan(reference.points).all(axis=0)
    columns = zip(reference.names, (sizes == 0.0) & known, strict=True)
    notes = (constant_in_words(name) for name, constant in columns if constant)
    return TargetRule(aim, sizes, tuple(notes))


def jumps(function: Function, reference: Reference) -> bool:
    """Whether slopes of a function say nothing of much of its change."""
    if function.gradient_method == EXACT:
        return False
    if function.piecewise_constant or function.boxes is not None:
        return True
    verdict = function.jumps_at(reference.points, reference.labels)
    return verdict is not None and verdict.kind == "jumps"


# ---- What one line from a model to an explanation takes for granted, each by itself


N_NEIGHBORS = 8
MOST_ACROSS = 0.05
"""The share of edges between rows of other gaps that goes without saying."""

_DECADES, _N_WEIGHTS = 3, 61
"""The default curve: weights 10^∓DECADES times one over twice the mean degree."""


def reference_of(function: Function, table: Any, label: str = "data") -> Reference:
    """The rows that scales and laws are made of; large tables are thinned by seed 0."""
    points, labels = function.read(table, label)
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


def coordinates_of(function: Function, points: Points, sizes: Array) -> Array:
    """Where rows that are read lie, (N, M), so that distances mean something."""
    if function.schema is not None:
        return function.schema.coordinates_of(points, sizes)
    return per_scale(points, sizes)


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
    # all but robustness with their weights, faithfulness first
    rest: Sequence[tuple[float, PropertyLoss]],
    robust: PairwiseRobustness | SharedRobustness,
    weight: float | None,
    progress: bool | None,
    subject_to: Sequence[Constraint] = (),
) -> Explanation:
    """The best for a weight of robustness; of that at the knee if None."""
    given = 1.0 if weight is None else read_nonnegative(weight, "robustness")
    objective = Objective.weighed((*rest, (given, robust)))
    if weight is not None:
        return solve(objective, subject_to=subject_to)
    if isinstance(robust, PairwiseRobustness):
        degree = float(robust.graph.similarities.sum()) / robust.n_points
    else:  # of the words that are shared
        degrees = robust.entry_graph.similarities.sum(axis=1)
        degree = float(degrees[degrees > 0.0].mean())
    weights = np.logspace(-_DECADES, _DECADES, _N_WEIGHTS) / (2.0 * degree)
    curve = sweep(
        objective,
        {robust.name: weights},
        subject_to=subject_to,
        progress=progress,
    )
    return curve.knee(objective.losses[0].name, robust.name)


def in_words(scale: Any) -> str:
    """A scale as ``parameters`` have it."""
    if isinstance(scale, str):
        return scale
    if scale is None:
        return "none"
    if isinstance(scale, Mapping):
        return ", ".join(f"{name}: {size:.6g}" for name, size in scale.items())
    return ", ".join(f"{size:.6g}" for size in np.asarray(scale, float))
