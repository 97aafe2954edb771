"""Fitted explainers as files, without their models: numbers, names and rules.

A model is given again when a file is loaded, and has to be the same function: its
values, and the targets made of it, are compared at some of the reference rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final, get_args

import numpy as np

from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput
from propopt.base.files import Format, archive_path, as_json
from propopt.explaining.contributions import (
    ContributionChoice,
    ContributionRule,
    FeatureMetric,
)
from propopt.explaining.fitted_rows import FittedParts, FittedRows, NearestRows
from propopt.explaining.targets import (
    LawChoice,
    TargetRule,
    coordinates_of,
    target_rule,
)
from propopt.functions import Function
from propopt.functions.jumps import allowed_difference, precision_of
from propopt.functions.outputs import Output, Target
from propopt.functions.wrapping import wrapped
from propopt.laws.data_law import Reference
from propopt.losses import Smoothness
from propopt.losses.graphs.points import graph_from_matrix
from propopt.results.archive import KINDS as EXPLANATION
from propopt.results.archive import (
    WITHOUT_QUANTITY,
    Kinds,
    are_texts,
    check_header,
    is_count,
    is_positive,
    is_size,
    is_text,
    packed,
    refuse_contradiction,
    unpacked,
)
from propopt.results.explanation import Explanation, settled
from propopt.tables.frames import Labels
from propopt.tables.schema import pack_schema, unpack_schema


_EXPLAINER = Format("propopt explainer", "a saved explainer", version=2)

_BEFORE: Mapping[str, Any] = {"parts": None}
"""What version 1 had not: parts of the output."""

CHECKED_ROWS = 16
"""Reference rows at which values of a model are compared, and so many ..."""

CHECKED_TARGETS = 3
"""... at which its targets are."""

_SAME = 1e-4
"""Of the range of values, and of the largest target: other libraries and machines
round in other places."""

_ROUNDING = 1e-9
"""Of what is computed again from numbers of the same file."""

_NONSENSE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,  # of which too deep a nesting is one
    TypeError,
    ValueError,
)
"""What numbers and names that do not go together raise, wherever that is noticed."""


@final
@dataclass(frozen=True, kw_only=True)
class ModelChoice:
    """What was asked of a model."""

    target: Target  # of wrap
    output: Output
    law: LawChoice  # of the target
    seed: int  # for targets that are sampled


def write_explainer(path: str | Path, fitted: FittedRows, choice: ModelChoice) -> None:
    """Write a fitted explainer to an ``.npz`` file."""
    target = archive_path(path)
    arrays: dict[str, Array] = {}
    try:
        header = _header(fitted, choice, arrays)
        check_header(json.loads(as_json(header)), _KINDS)
    except (TypeError, ValueError, RecursionError) as error:
        raise _EXPLAINER.unsavable(target, error) from None
    _EXPLAINER.write(target, header, arrays)


def read_explainer(path: str | Path, model: Any) -> tuple[FittedRows, ModelChoice]:
    """The explainer that :func:`write_explainer` wrote, for the same model."""
    source = archive_path(path)
    version, header, arrays = _EXPLAINER.read(source)
    if version < 2:
        header = {**_BEFORE, **header}
    try:
        check_header(header, _KINDS)
        fitted, choice = _unpacked(header, arrays, model)
        _refuse_contradictions(fitted)
        _refuse_other_function(fitted, arrays)
    except InvalidInput as error:
        raise InvalidInput(f"{source}: {error}") from None
    except _NONSENSE as error:
        reason = f"what it holds makes no sense: {type(error).__name__}: {error}"
        raise _EXPLAINER.refusal(source, reason) from None
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
    if isinstance(fitted, FittedParts):
        arrays["background"] = _background(fitted)
        arrays["targets"] = _targets(fitted)
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
        "parts": {"contributions": fitted.kind, "metric": fitted.metric}
        if isinstance(fitted, FittedParts)
        else None,
    }


def _unpacked(
    header: Mapping[str, Any], arrays: Mapping[str, Array], model: Any
) -> tuple[FittedRows, ModelChoice]:
    reference = _reference(header, arrays)
    (n, D), parts = reference.shape, header["parts"]
    told = dict(header["model"])
    rows = _array(arrays, "rows", (n, D), may_miss=True)
    table = _array(arrays, "table", (None, D), may_miss=True)
    sizes = _array(arrays, "sizes", (D,))
    if (sizes < 0.0).any():
        raise InvalidInput("sizes: expected numbers >= 0")
    named = reference.quantity
    outcome = None if named is None else named.outcome
    function = _function(model, told.pop("wrapped"), header, arrays, told, outcome)
    choice = ModelChoice(**told)
    columns = header["table"]["features"]
    labels = Labels(features=None if columns is None else tuple(columns))
    labels.check((len(table), D), "table")
    law_rows = replace(
        Reference.of_points(table, labels, function.schema),
        n_rows=header["table"]["n_rows"],
    )
    own, pairs, smooth = header["names"]
    a, b, c = header["weights"]
    common: dict[str, Any] = {
        "function": function,
        "wrapped": isinstance(model, Function),
        "table": law_rows,
        "rows": rows,
        "nearest": NearestRows(
            coordinates=_array(arrays, "coordinates", (n, None), may_miss=True),
            **header["nearest"],
        ),
        "reference": reference,
        "names": (own, pairs, smooth),
        "weights": (a, b, c),
        "smooth": _smoothness(arrays, smooth, D),
        "settings": reference.parameters,
    }
    if parts is None:
        rule = target_rule(function, law_rows, sizes, law=choice.law, rng=choice.seed)
        return FittedRows(rule=rule, **common), choice
    made = ContributionRule(
        function=function,
        reference=law_rows,
        law=choice.law,
        background=_array(arrays, "background", (None, D), may_miss=True),
    )
    fitted = FittedParts(
        rule=TargetRule(function=function, sizes=sizes),
        parts=made.settled(rows, choice.seed),
        kind=parts["contributions"],
        metric=parts["metric"],
        **common,
    )
    return fitted, choice


def _array(
    arrays: Mapping[str, Array],
    name: str,
    shape: tuple[int | None, ...],
    *,
    may_miss: bool = False,
) -> Array:
    """Numbers of a shape, None where it is any above zero; NaN where some may miss."""
    if name not in arrays:
        raise InvalidInput(f"it lacks {name!r}")
    array = arrays[name]
    if array.dtype != np.float64:
        raise InvalidInput(f"{name}: expected numbers in float64, got {array.dtype}")
    fits = array.ndim == len(shape) and all(
        have > 0 if want is None else have == want
        for have, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise InvalidInput(f"{name}: expected the shape ({wanted}), got {array.shape}")
    odd = np.isinf(array) if may_miss else ~np.isfinite(array)
    if odd.any():
        raise InvalidInput(f"{name}: some of its numbers are not finite")
    return array


def _background(fitted: FittedParts) -> Array:
    background = fitted.parts.background
    assert background is not None, "it is settled"
    return background


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


def _smoothness(
    arrays: Mapping[str, Array], name: str, n_features: int
) -> Smoothness | None:
    if "features" not in arrays:
        return None
    _array(arrays, "features", (n_features, n_features))
    return Smoothness(graph_from_matrix(arrays["features"]), name=name)


def _refuse_contradictions(fitted: FittedRows) -> None:
    """Refuse numbers that no fit leaves together."""
    reference, nearest = fitted.reference, fitted.nearest
    n, D = reference.shape
    result = coordinates_of(fitted.function, fitted.rows, fitted.rule.sizes)
    stored = nearest.coordinates
    if result.shape != stored.shape or not np.allclose(
        result, stored, rtol=_ROUNDING, atol=0.0, equal_nan=True
    ):
        raise InvalidInput("coordinates: they are not those of its rows and sizes")
    for name, text in nearest.settings.items():
        if reference.parameters.get(name) != text:
            raise InvalidInput(
                f"nearest: {name}: the reference has "
                f"{reference.parameters.get(name)!r}, and the rest of it {text!r}"
            )
    if nearest.n_neighbors >= n:
        raise InvalidInput(f"nearest: n_neighbors: expected less than {n} rows")
    if fitted.table.n_rows < len(fitted.table.points):
        raise InvalidInput("table: n_rows: fewer than its rows")
    known = dict(zip(fitted.names, fitted.weights, strict=True))
    for name, weight in reference.weights.items():
        if known.get(name) != weight:
            raise InvalidInput(f"weights: that of {name} is not that of the reference")
    if not fitted.weights[0] > 0.0:
        raise InvalidInput("weights: the first has to be above zero")
    if fitted.weights[2] > 0.0 and fitted.smooth is None:
        raise InvalidInput("it lacks 'features', which are smooth")
    aim, roots = "gradient", np.ones(D)
    if isinstance(fitted, FittedParts):
        if fitted.smooth is not None:
            raise InvalidInput("features: rows that add up are not smooth")
        _refuse_other_sums(reference)
        aim, roots = "contributions", fitted.roots
    target = _array(reference.details, aim, (n, D))
    own = fitted.names[0]
    apart = (reference.attributions - target) / roots
    loss, told = float((apart**2).sum()), reference.losses.get(own, np.nan)
    if not abs(loss - told) <= _SAME * max(loss, told) + _ROUNDING * float(
        ((reference.attributions / roots) ** 2).sum()
    ):
        raise InvalidInput(
            f"reference: its attributions cost {loss:.6g} of {own}, and it says "
            f"{told:.6g}"
        )


def _refuse_other_sums(reference: Explanation) -> None:
    """Refuse parts of the output that do not add up."""
    N, D = reference.shape
    phi = _array(reference.details, "contributions", (N, D))
    base = _array(reference.details, "base_value", (N,))
    total = _array(reference.details, "prediction", (N,)) - base
    missed = np.abs(reference.attributions.sum(axis=1) - total)
    scale = np.abs(phi).sum(axis=1) + np.abs(total)
    if (missed > _ROUNDING * scale.max()).any():
        n = int(missed.argmax())
        raise InvalidInput(
            f"reference: row {n} does not add up: by {missed[n]:.3g}; expected its "
            "prediction less the base"
        )
    if np.ptp(base) != 0.0:
        raise InvalidInput("reference: base_value: expected one and the same number")


def _targets(fitted: FittedRows) -> Array:
    """What some reference rows aim at, as new rows would."""
    columns = fitted.reference.labels.of_columns()
    rows = fitted.rows[:CHECKED_TARGETS]
    if not isinstance(fitted, FittedParts):
        rule = fitted.rule
        return rule.scaled(rule.function.estimate_at(rows, columns)).values
    result = [
        fitted.parts.of_row(rows[[n]], columns, fitted.kind, fitted.base)
        for n in range(len(rows))
    ]
    return np.concatenate([one.estimate.values for one in result])


def _refuse_other_function(fitted: FittedRows, arrays: Mapping[str, Array]) -> None:
    """Compare what a model says, and what is made of it, with what is stored."""
    n, D = fitted.reference.shape
    columns = fitted.reference.labels.of_columns()
    values = _array(arrays, "values", (min(n, CHECKED_ROWS),))
    result = fitted.function.value_at(fitted.rows[: len(values)], columns)
    stored = fitted.reference.details.get("gradient", np.zeros((0, D)))
    if isinstance(fitted, FittedParts):
        stored = _array(arrays, "targets", (min(n, CHECKED_TARGETS), D))
    targets = _targets(fitted)
    stored = stored[: len(targets)]
    of_values = allowed_difference(values, _SAME, precision_of(values))
    of_targets = np.full(stored.shape, _SAME * np.abs(stored).max())
    for label, now, then, allowed in (
        ("value", result, values, of_values),
        ("target", targets, stored, of_targets),
    ):
        apart = np.abs(now - then) - allowed
        if not apart.max() <= 0.0:
            place = np.unravel_index(int(apart.argmax()), apart.shape)
            raise InvalidInput(
                f"model: it is another function than the explainer was "
                f"fitted to: at reference row {place[0]} its {label} is "
                f"{now[place]:.6g}, and was {then[place]:.6g}; fit an explainer to it"
            )


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict)


def _are_three(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, list) and len(value) == 3 and all(map(fits, value))
    )


def _is_model(value: object) -> bool:
    """True for the fields of a :class:`ModelChoice`, and whether it was wrapped."""
    return (
        isinstance(value, dict)
        and value.keys() == {"target", "output", "law", "seed", "wrapped"}
        and (value["target"] is None or isinstance(value["target"], str | int | float))
        and value["output"] in get_args(Output)
        and value["law"] in get_args(LawChoice)
        and is_count(value["seed"])
        and isinstance(value["wrapped"], bool)
    )


def _is_table(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"n_rows", "features"}
        and is_positive(value["n_rows"])
        and (value["features"] is None or are_texts(value["features"]))
    )


def _is_nearest(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"n_neighbors", "lengthscale"}
        and is_positive(value["n_neighbors"])
        and (
            value["lengthscale"] is None
            or (is_size(value["lengthscale"]) and value["lengthscale"] > 0)
        )
    )


def _is_parts(value: object) -> bool:
    return value is None or (
        isinstance(value, dict)
        and value.keys() == {"contributions", "metric"}
        and value["contributions"] in get_args(ContributionChoice)
        and value["metric"] in get_args(FeatureMetric)
    )


def _are_names(value: object) -> bool:
    return _are_three(is_text)(value) and len(set(value)) == 3  # type: ignore[call-overload]


_KINDS: Kinds = {
    "explanation": (_is_mapping, "the header of an explanation"),
    "model": (_is_model, "what was asked of the model"),
    "schema": (lambda value: value is None or _is_mapping(value), "columns, or null"),
    "table": (_is_table, "the rows of the law"),
    "nearest": (_is_nearest, "the rule of neighbours"),
    "names": (_are_names, "three names of losses"),
    "weights": (_are_three(is_size), "three numbers >= 0"),
    "parts": (_is_parts, "how contributions are made, or null"),
}
