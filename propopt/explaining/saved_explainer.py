"""Fitted explainers as files, without their models: numbers, names and rules.

A model is given again when a file is loaded, and has to be the same function: its
values, and the targets made of it, are compared at some of the reference rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.explaining.fitted_rows import FittedRows
from propopt.explaining.nearest import NearestRows
from propopt.explaining.target import LawChoice, target_rule
from propopt.functions import Function
from propopt.functions.answers import allowed_difference, precision_of
from propopt.functions.models.outputs import Output, Target
from propopt.functions.of_models import wrapped
from propopt.graphs.precomputed import graph_from_matrix
from propopt.losses import Smoothness
from propopt.output.archives import Format, archive_path, as_json
from propopt.results.explanation import Explanation
from propopt.results.header import (
    KINDS as EXPLANATION,
)
from propopt.results.header import (
    Kinds,
    check_header,
    is_size,
    is_text,
)
from propopt.results.later import settled
from propopt.results.saving import (
    WITHOUT_QUANTITY,
    packed,
    refuse_contradiction,
    unpacked,
)
from propopt.sampling.laws import Reference
from propopt.tables.names import Labels
from propopt.tables.saved_schema import pack_schema, unpack_schema


_EXPLAINER = Format("propopt explainer", "a saved explainer", version=1)

CHECKED_ROWS = 16
"""Reference rows at which values of a model are compared, and so many ..."""

CHECKED_TARGETS = 3
"""... at which its targets are."""

_SAME = 1e-4
"""Of the range of values, and of the largest target: other libraries and machines
round in other places."""


@final
@dataclass(frozen=True, kw_only=True)
class ModelChoice:
    """What was asked of a model.

    Parameters
    ----------
    target, output
        Of :func:`propopt.wrap`.
    law : str
        Of the target.
    seed : int
        For targets that are sampled.
    """

    target: Target
    output: Output
    law: LawChoice
    seed: int


def write_explainer(path: str | Path, fitted: FittedRows, choice: ModelChoice) -> None:
    """Write a fitted explainer to an ``.npz`` file.

    Raises
    ------
    InvalidInput
        If the folder is not there, or something is not what can be loaded again.
    """
    target = archive_path(path)
    arrays: dict[str, Array] = {}
    try:
        header = _header(fitted, choice, arrays)
        check_header(json.loads(as_json(header)), _KINDS)
    except (TypeError, ValueError, RecursionError) as error:
        raise _EXPLAINER.unsavable(target, error) from None
    _EXPLAINER.write(target, header, arrays)


def read_explainer(path: str | Path, model: Any) -> tuple[FittedRows, ModelChoice]:
    """The explainer that :func:`write_explainer` wrote, for the same model.

    Raises
    ------
    InvalidInput
        If the file is another one, or the model is another function.
    FileNotFoundError
        If there is none.
    """
    source = archive_path(path)
    _, header, arrays = _EXPLAINER.read(source)
    try:
        check_header(header, _KINDS)
        fitted, choice = _unpacked(header, arrays, model)
        values = arrays["values"]
    except (KeyError, TypeError) as error:
        raise _EXPLAINER.refusal(source, f"it lacks {error}") from None
    except InvalidInput as error:
        raise InvalidInput(f"{source}: {error}") from None
    _refuse_other_function(fitted, values, source)
    return fitted, choice


def _header(
    fitted: FittedRows, choice: ModelChoice, arrays: dict[str, Array]
) -> dict[str, Any]:
    explanation, own = packed(settled(fitted.reference))
    table = fitted.table
    schema = None if fitted.wrapped else fitted.function.schema
    few = slice(0, CHECKED_ROWS)
    arrays |= {f"reference.{name}": array for name, array in own.items()}
    arrays["rows"], arrays["table"] = fitted.rows, table.points
    arrays["coordinates"] = fitted.nearest.coordinates
    arrays["sizes"] = fitted.rule.sizes
    columns = fitted.reference.labels.of_columns()
    arrays["values"] = fitted.function.value_at(fitted.rows[few], columns)
    if fitted.smooth is not None:
        arrays["features"] = fitted.smooth.graph.similarities.toarray()
    return {
        "explanation": explanation,
        "model": {**vars(choice), "wrapped": fitted.wrapped},
        "schema": None
        if schema is None or fitted.wrapped
        else pack_schema(schema, arrays),
        "table": {"n_rows": table.n_rows, "features": table.labels.features},
        "nearest": {
            "n_neighbors": fitted.nearest.n_neighbors,
            "lengthscale": fitted.nearest.lengthscale,
        },
        "names": list(fitted.names),
        "weights": list(fitted.weights),
    }


def _unpacked(
    header: Mapping[str, Any], arrays: Mapping[str, Array], model: Any
) -> tuple[FittedRows, ModelChoice]:
    reference = _reference(header, arrays)
    told = dict(header["model"])
    named = reference.quantity
    outcome = None if named is None else named.outcome
    function = _function(model, told.pop("wrapped"), header, arrays, told, outcome)
    choice = ModelChoice(**told)
    columns = header["table"]["features"]
    labels = Labels(features=None if columns is None else tuple(columns))
    rows = Reference.of_points(arrays["table"], labels, function.schema)
    table = replace(rows, n_rows=header["table"]["n_rows"])
    rule = target_rule(
        function, table, arrays["sizes"], law=choice.law, rng=choice.seed
    )
    own, pairs, smooth = header["names"]
    a, b, c = header["weights"]
    fitted = FittedRows(
        function=function,
        wrapped=isinstance(model, Function),
        table=table,
        rows=arrays["rows"],
        rule=rule,
        nearest=NearestRows(coordinates=arrays["coordinates"], **header["nearest"]),
        reference=reference,
        names=(own, pairs, smooth),
        weights=(a, b, c),
        smooth=_smoothness(arrays, smooth),
        settings=reference.parameters,
    )
    return fitted, choice


def _reference(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Explanation:
    explanation = {**WITHOUT_QUANTITY, **header["explanation"]}
    check_header(explanation, EXPLANATION)
    own = {
        name.removeprefix("reference."): array
        for name, array in arrays.items()
        if name.startswith("reference.")
    }
    fields = unpacked(explanation, own)
    refuse_contradiction(fields)
    return Explanation(**fields)


def _function(
    model: Any,
    was_wrapped: bool,
    header: Mapping[str, Any],
    arrays: Mapping[str, Array],
    told: Mapping[str, Any],
    outcome: str | None,
) -> Function:
    if was_wrapped != isinstance(model, Function):
        made = "a Function, by propopt.wrap" if was_wrapped else "the model itself"
        raise InvalidInput(f"model: the explainer was fitted to {made}; give that")
    if was_wrapped:
        return model
    data: Any = arrays["table"]
    if header["schema"] is not None:
        data = unpack_schema(header["schema"], arrays)
    return wrapped(model, None, told["target"], told["output"], data, outcome=outcome)


def _smoothness(arrays: Mapping[str, Array], name: str) -> Smoothness | None:
    if "features" not in arrays:
        return None
    return Smoothness(graph_from_matrix(arrays["features"]), name=name)


def _refuse_other_function(fitted: FittedRows, values: Array, source: Path) -> None:
    """Compare what a model says, and what is made of it, with what is stored."""
    columns = fitted.reference.labels.of_columns()
    rows = fitted.rows[:CHECKED_TARGETS]
    rule = fitted.rule
    targets = rule.scaled(rule.function.estimate_at(rows, columns)).values
    found = fitted.function.value_at(fitted.rows[: len(values)], columns)
    stored = fitted.reference.details["gradient"][: len(rows)]
    of_values = allowed_difference(values, _SAME, precision_of(values))
    of_targets = np.full(stored.shape, _SAME * np.abs(stored).max())
    for what, now, then, allowed in (
        ("value", found, values, of_values),
        ("target", targets, stored, of_targets),
    ):
        apart = np.abs(now - then) - allowed
        if apart.max() > 0.0:
            place = np.unravel_index(int(apart.argmax()), apart.shape)
            raise InvalidInput(
                f"{source}: model: it is another function than the explainer was "
                f"fitted to: at reference row {place[0]} its {what} is "
                f"{now[place]:.6g}, and was {then[place]:.6g}; fit an explainer to it"
            )


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict)


def _has(*keys: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, dict) and value.keys() == set(keys)


def _are_three(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, list) and len(value) == 3 and all(map(fits, value))
    )


_KINDS: Kinds = {
    "explanation": (_is_mapping, "the header of an explanation"),
    "model": (
        _has("target", "output", "law", "seed", "wrapped"),
        "what was asked of the model",
    ),
    "schema": (lambda value: value is None or _is_mapping(value), "columns, or null"),
    "table": (_has("n_rows", "features"), "the rows of the law"),
    "nearest": (_has("n_neighbors", "lengthscale"), "the rule of neighbours"),
    "names": (_are_three(is_text), "three names of losses"),
    "weights": (_are_three(is_size), "three numbers >= 0"),
}
