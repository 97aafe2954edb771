"""The function of a problem file: its formula, or its model fitted and wrapped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import pandas as pd

from propopt.functions import Function
from propopt.functions.of_models import wrapped_by_margin
from propopt.problems.schema import ProblemSchema
from propopt.problems.sources.base import Source
from propopt.problems.subject.documents import vectorizer_of
from propopt.problems.subject.learning import task_of
from propopt.problems.subject.models.base import Making, ModelSection
from propopt.problems.subject.models.code import Code
from propopt.problems.subject.subject import ModelFunction, learn


Known: TypeAlias = Any
"""What ``data`` of :func:`propopt.wrap` is: a schema, a Series of documents, None."""


def maker(
    schema: ProblemSchema,
    source: Source,
    code: Code,
    table: Any,
    target: Any,
    known: Known,
) -> Callable[[], ModelFunction]:
    """What makes the function of a file."""
    if schema.function is not None:
        formula = schema.function
        return lambda: ModelFunction(formula.build())
    assert schema.model is not None  # by the schema
    wrapped = partial(_wrapped, schema, schema.model, table, known)
    return partial(
        _model_function, schema, schema.model, source, code, table, target, wrapped
    )


def _model_function(
    schema: ProblemSchema,
    spec: ModelSection,
    source: Source,
    code: Code,
    table: Any,
    target: Any,
    wrapped: Callable[[Any], Function],
) -> ModelFunction:
    model = model_of(schema, spec, source, code, _names(table))
    with source.blaming("model"):
        return learn(model, table, target, wrapped, schema.seed)


def learner_of(
    schema: ProblemSchema, source: Source, code: Code, table: Any
) -> Any | None:
    """The model of a file before it is fitted, to be seeded at each fit."""
    spec = schema.model
    if spec is None:
        return None
    return model_of(schema, spec, source, code, _names(table), is_seeded=False)


def _names(table: Any) -> list[str]:
    """Those of columns; documents have none."""
    if isinstance(table, pd.Series):
        return []
    names = list(table) if isinstance(table, pd.DataFrame) else range(table.shape[1])
    return [str(name) for name in names]


def _wrapped(
    schema: ProblemSchema,
    spec: ModelSection,
    table: Any,
    known: Known,
    model: Any,
) -> Function:
    function = wrapped_by_margin(
        model,
        spec.chosen_class,
        spec.output,
        data=known,
        outcome=schema.data.outcome,
    )
    if getattr(model, "is_flat", False):
        function = replace(function, piecewise_constant=True)  # type: ignore[type-var]
    if spec.smooth is None:
        spec.check_table(model, table)
        return function
    return spec.smooth.build(function, table, schema.seed)


def model_of(
    schema: ProblemSchema,
    spec: ModelSection,
    source: Source,
    code: Code,
    columns: list[str],
    *,
    is_seeded: bool = True,
) -> Any:
    """The model of a file: an estimator that is fitted or not, or a callable."""
    data = schema.data
    making = Making(
        folder=source.path.parent,
        seed=schema.seed if is_seeded else None,
        task=task_of(spec, data.sklearn, source),
        columns=tuple(columns),
        categorical=tuple(data.categorical),
        code=code,
        vectorizer=vectorizer_of(data, spec),
    )
    with source.blaming("model"):
        return spec.make(making)
