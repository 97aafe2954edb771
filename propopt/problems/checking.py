"""What a problem file asks for and cannot have, seen before anything is fitted."""

from __future__ import annotations

from math import prod
from typing import Any

from propopt.checks import did_you_mean
from propopt.errors import InvalidInput, MissingExtra
from propopt.problems.explained import Formula
from propopt.problems.schema import MOST_WEIGHTS, ProblemSchema, WeightRange, Weights
from propopt.problems.setting import check_setting
from propopt.problems.source import Location, Source
from propopt.problems.tables import formula
from propopt.solvers import find_solver


OF_THE_FUNCTION = ("gradient_matching", "function_matching")


def check_schema(schema: ProblemSchema, source: Source) -> None:
    """Refuse what the file alone shows to fail; see :meth:`Problem.check`."""
    _check_names(schema, source)
    _check_weights(schema, source)
    check_setting(schema, source)
    _check_columns(schema, source)
    try:
        find_solver(schema.solver)
    except (InvalidInput, MissingExtra) as error:
        message = str(error).removeprefix("solver: ")
        raise source.error(("solver",), message) from error


def check_tied(schema: ProblemSchema, source: Source) -> None:
    """Refuse an objective whose losses say nothing of the number of points."""
    if set(schema.objective.given) <= {"smoothness", "sparsity"}:
        raise source.error(
            ("objective",),
            "no loss tells the number of points; add gradient_matching or another",
        )


def check_formula(
    schema: ProblemSchema, spec: Formula, points: Any, source: Source
) -> None:
    """Refuse a formula that is not finite at some points, where its loss is used."""
    given = schema.objective.given
    with source.blaming("function"):
        if "gradient_matching" in given:
            formula(spec).gradient(points)
        if "function_matching" in given:
            formula(spec).value(points)


def listed(values: Weights) -> list[float]:
    """The weights of a list or a range."""
    return values.values if isinstance(values, WeightRange) else values


def _check_names(schema: ProblemSchema, source: Source) -> None:
    """Only losses of the objective have weights, limits and axes."""
    for name in schema.sweep:
        _check_loss(("sweep", name), name, schema, source)
    for name in schema.limits:
        _check_loss(("limits", name), name, schema, source)
        if name in schema.sweep:
            raise source.error(
                ("limits", name), "has weights in sweep; give limits or weights"
            )
    if schema.plot is not None:
        _check_loss(("plot", "x"), schema.plot.x, schema, source)
        _check_loss(("plot", "y"), schema.plot.y, schema, source)


def _check_loss(
    location: Location, name: str, schema: ProblemSchema, source: Source
) -> None:
    known = list(schema.objective.given)
    if name not in known:
        raise source.error(
            location,
            f"the objective has no {name!r}{did_you_mean(name, known)}; "
            f"it has {', '.join(known)}",
        )


def _check_weights(schema: ProblemSchema, source: Source) -> None:
    """Some weight is above zero, and there are not too many combinations."""
    given = schema.objective.given
    smallest = {n: loss.weight for n, loss in given.items() if n not in schema.limits}
    smallest |= {name: min(listed(values)) for name, values in schema.sweep.items()}
    if not any(smallest.values()):
        raise source.error(
            ("objective",),
            "expected a weight above zero, got all zero (for some weights of the "
            "sweep, if there is one)",
        )
    tried = (*schema.sweep.values(), *schema.limits.values())
    count = prod(v.points if isinstance(v, WeightRange) else len(v) for v in tried)
    if count > MOST_WEIGHTS:
        raise source.error(
            ("sweep",) if schema.sweep else ("limits",),
            f"expected at most {MOST_WEIGHTS:,} combinations, got {count:,}",
        )


def _check_columns(schema: ProblemSchema, source: Source) -> None:
    """No categories where numbers are needed."""
    for name in ("categorical", "groups"):
        if not getattr(schema.data, name):
            continue
        if schema.function is not None:
            raise source.error(("data", name), "a formula takes numbers alone")
        if schema.objective.function_matching is not None:
            raise source.error(
                ("objective", "function_matching"),
                f"needs columns that are numbers, and there are data.{name}",
            )
