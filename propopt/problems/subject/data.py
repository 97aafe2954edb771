"""The subject of a file, read and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd
from pydantic import ValidationError

from propopt.functions import Function
from propopt.functions.wrapping import wrapped_by_margin
from propopt.problems.extent import (
    Extent,
    check_explain,
    check_extent,
    extent_of_documents,
    extent_of_formula,
    learned_words,
    vectorizer_of,
)
from propopt.problems.sources import Faults, Source
from propopt.problems.subject.learning import check_learning, check_refits, task_of
from propopt.problems.subject.model_sections import Code, Making, ModelSection
from propopt.problems.subject.subject import ModelFunction, Subject, learn
from propopt.problems.subject.tables import (
    Data,
    Rows,
    Split,
    missing_numbers,
    order_of_rows,
    read_rows,
    split,
    standardized,
)
from propopt.tables.frames import listed
from propopt.tables.schema import Groups, TableSchema


if TYPE_CHECKING:
    from propopt.problems.file import ProblemSchema


# ---- The subject of a problem file


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


def read_subject(
    schema: ProblemSchema, source: Source, code: Code = Code.REFUSED
) -> Subject:
    """What a problem file explains; no model is fitted yet."""
    rows, data = check_subject(schema, source, None, code), schema.data
    if rows is None:
        points, others = data.points(schema.seed)
        make = maker(schema, source, code, others, None, None)
        return Subject(points=points, others=others, make=make, seed=schema.seed)
    table = split(rows, data, schema.seed)
    with source.blaming("data"):
        columns = None if data.text else _coded(data, table)
    known = table.explained if data.text else columns
    make = maker(schema, source, code, table.fitted, table.fitted_target, known)
    return Subject(
        points=table.explained,
        others=table.fitted,
        make=make,
        columns=columns,
        target=table.target,
        others_target=table.fitted_target,
        make_learner=partial(learner_of, schema, source, code, table.fitted),
        seed=schema.seed,
    )


def check_subject(
    schema: ProblemSchema,
    source: Source,
    n_rows: int | None,
    code: Code = Code.REFUSED,
) -> Rows | None:
    """Refuse what cannot be explained, as far as that shows before anything is fitted.

    Parameters
    ----------
    schema, source
        The file.
    n_rows : int or None
        So many rows of a CSV are read, from the first, and of its target all; None is
        all rows.
    code : Code
        Whether Python objects that it names may be imported.

    Returns
    -------
    Rows or None
        What was read of the table, if there is one.

    Raises
    ------
    ProblemFileError
        For tables, columns, targets and outputs that cannot be, for models that are not
        there, and for sizes that do not fit each other.
    """
    data = schema.data
    if not data.is_table:
        extent = extent_of_formula(data, source)
        check_extent(schema, extent, source)
        names = [str(number) for number in range(extent.n_columns)]
        _check_model(schema, source, code, names, None)
        return None
    rows = read_rows(data, source, n_rows)
    check_explain(data, rows.n_rows, source)
    order = order_of_rows(schema.seed, rows.n_rows)
    learned = order[data.explain or 0 :]
    target, faults = (
        None if rows.target is None else rows.target.iloc[learned],
        Faults(),
    )
    if data.text is not None:
        texts = rows.features
        with faults.noted():
            check_extent(schema, extent_of_documents(data, texts.iloc[order]), source)
        with faults.noted():
            names = learned_words(data, schema.model, texts.iloc[learned], source)
            _check_model(schema, source, code, names, target)
    else:
        with faults.noted():
            check_extent(schema, _extent(data, rows, source), source)
        with faults.noted():
            _check_model(schema, source, code, [*map(str, rows.features)], target)
        with faults.noted():
            _check_missing(schema, source, missing_numbers(rows.features))
    faults.refuse()
    return rows


def check_table(source: Source, n_rows: int) -> None:
    """Refuse a table that cannot be, whatever else is wrong with the file."""
    content = source.data()
    try:
        data = Data.model_validate(content["data"])
    except (LookupError, TypeError, ValidationError):
        return
    if data.is_table:
        check_explain(data, read_rows(data, source, n_rows).n_rows, source)


def _extent(data: Data, rows: Rows, source: Source) -> Extent:
    with source.blaming("data"):
        features = tuple(map(str, _columns(data, rows.features).names))
    columns = tuple(map(str, rows.features))
    extent = Extent.of(data, rows.n_rows, len(columns), len(features))
    return replace(extent, columns=columns, features=features)


def _check_missing(schema: ProblemSchema, source: Source, columns: list[str]) -> None:
    """Refuse columns with missing numbers, where what is explained takes none."""
    if schema.model is not None:
        with source.blaming("model"):
            schema.model.check_missing(columns)
    elif columns:
        message = f"a formula takes no missing numbers: {listed(columns)}"
        raise source.error(("data", "csv"), message)


def first_points(schema: ProblemSchema, rows: Rows | None, count: int) -> Any:
    """Some of the points, the last of a whole grid among them."""
    if rows is None:
        return schema.data.some_points(count, schema.seed)
    first = rows.features[:count]
    if schema.data.standardize:
        return standardized(first, first, schema.data)[0]
    return first


def _check_model(
    schema: ProblemSchema,
    source: Source,
    code: Code,
    columns: list[str],
    target: pd.Series[Any] | None,
) -> None:
    spec = schema.model
    if spec is None:
        return
    model = model_of(schema, spec, source, code, columns)
    if schema.job.is_of_one_output:
        check_learning(model, spec, target, len(columns), source)
    else:
        check_refits(model, spec, target, len(columns), source)
    if spec.smooth is not None:
        with source.blaming("model", "smooth", "n_samples"):
            spec.smooth.check(len(schema.data.numeric(columns)))


def _coded(data: Data, table: Split) -> TableSchema | None:
    """What the columns hold, if any is not a number, or some numbers are missing."""
    absent = missing_numbers(table.explained) or missing_numbers(table.fitted)
    told = data.categorical or data.groups or absent
    return _columns(data, table.fitted) if told else None


def _columns(data: Data, table: pd.DataFrame) -> TableSchema:
    groups: Groups = dict(data.groups.items())
    return TableSchema.of(table, data.categorical, groups)
