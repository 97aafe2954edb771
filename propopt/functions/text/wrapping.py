"""From a model of texts to a function under explanation."""

from __future__ import annotations

from typing import Any

from propopt.functions.models.outputs import (
    Output,
    Target,
    call_of,
    check_model,
    name_of,
    read_index,
    read_output,
)
from propopt.functions.models.readout import Readout
from propopt.functions.text.asked import as_texts
from propopt.functions.text.function import TextFunction
from propopt.structures.pipelines import first_step
from propopt.structures.tfidf import read_text_model
from propopt.tables.text import TextSchema


def wrap_texts(model: Any, target: Target, output: Output, data: Any) -> TextFunction:
    """The function that a model of texts computes; see :func:`propopt.wrap`.

    Parameters
    ----------
    model : estimator or callable
        From a list of texts to numbers.
    target, output
        As for ``wrap``.
    data : TextSchema or documents
        The words, or texts that have them.
    """
    check_model(model)
    quantity = read_output(model, output)
    index = read_index(model, quantity, target)
    call = call_of(model, quantity)
    method, said = (model, quantity) if call is None else call
    return TextFunction(
        name=f"{name_of(model)}, output={quantity!r}, target={target!r}",
        values_of=Readout(method, as_texts, said, index),
        text_schema=data if isinstance(data, TextSchema) else TextSchema.of(data),
        structure=read_text_model(model, quantity, index),
        vectoriser=first_step(model),
    )
