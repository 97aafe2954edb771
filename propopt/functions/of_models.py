"""The function of a model with a table, as one line from a model to a result has it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.functions.base import Function
from propopt.functions.models.outputs import Output, Target
from propopt.functions.text import TextFunction
from propopt.functions.wrapping import KnownTable, wrap, wrap_told
from propopt.structures.margins import margins_of
from propopt.tables.frames import is_frame
from propopt.tables.schema import TableSchema
from propopt.tables.text import TextSchema, is_documents


def wrapped(
    model: Any,
    X: Any,
    target: Target,
    output: Output,
    data: TableSchema | TextSchema | pd.DataFrame | Array | Sequence[str] | None,
    batch_rows: int | None = None,
    outcome: str | None = None,
) -> Function:
    """The function of a model, which knows ``data``, or X if it has names or gaps.

    Documents have words for names.

    A Function knows what its columns are: ``data`` is a table of reference rows alone.
    """
    if isinstance(model, Function):
        if isinstance(data, TableSchema | TextSchema):
            raise InvalidInput(
                f"data: a schema belongs to wrap(model, data=...), and {model!r} is "
                "wrapped already; give a table of reference rows"
            )
        return wrap(model, target, output, batch_rows=batch_rows, outcome=outcome)
    for what, table in (("X", X), ("data", data)):
        if isinstance(table, str | bytes | Path):
            raise InvalidInput(
                f"{what}: expected a table, or a list of texts, got "
                f"{str(table)!r:.80}; pandas.read_csv(path) reads the table of a "
                "file, and [text] is one text"
            )
    known = KnownTable(data)
    if data is None and (is_documents(X) or is_frame(X, "X") or _has_gaps(X)):
        known = KnownTable(X, "X")
    return _by_margin(model, target, output, known, batch_rows, outcome)


def wrapped_by_margin(
    model: Any,
    target: Target = None,
    output: Output = "auto",
    *,
    data: TableSchema | TextSchema | pd.DataFrame | Array | Sequence[str] | None = None,
    batch_rows: int | None = None,
    outcome: str | None = None,
) -> Function:
    """The function of a model; of a boosted classifier its margin by default.

    That is a sum of trees, a probability is not.
    """
    return _by_margin(model, target, output, KnownTable(data), batch_rows, outcome)


def _by_margin(
    model: Any,
    target: Target,
    output: Output,
    told: KnownTable,
    batch_rows: int | None,
    outcome: str | None,
) -> Function:
    """As :func:`wrapped_by_margin`, with the name that errors give the table."""
    rest = None, None, None, told, batch_rows, outcome
    function = wrap_told(model, target, output, *rest)
    if output == "auto" and isinstance(function, TextFunction):
        return _margin_of_texts(model, target, function)
    if output != "auto" or not _has_better_margin(model, function):
        return function
    return wrap_told(model, target, "margin", *rest)


def _margin_of_texts(model: Any, target: Target, function: TextFunction) -> Function:
    """The margin of a boosted classifier of texts, if that is read and f is not."""
    boosted = hasattr(model, "predict_proba") and margins_of(model) is not None
    if function.is_read or not boosted:
        return function
    margin = wrap(
        model,
        target,
        "margin",
        data=function.text_schema,
        batch_rows=function.batch_rows,
        outcome=function.quantity.outcome,
    )
    read = isinstance(margin, TextFunction) and margin.is_read
    return margin if read else function


def _has_gaps(X: Any) -> bool:
    """Whether numbers of an array are missing: effects need those that are not."""
    is_array = isinstance(X, np.ndarray) and X.dtype.kind == "f"
    return is_array and bool(np.isnan(X).any())


def _has_better_margin(model: Any, function: Function) -> bool:
    """Whether a classifier's probabilities are no sum of trees, but its margin is."""
    no_sum = function.boxes is None and function.margin_boxes is not None
    return no_sum and hasattr(model, "predict_proba")
