"""From a model of texts to a function under explanation."""

from __future__ import annotations

from typing import Any

from propopt.errors import InvalidInput
from propopt.functions.models.columns import FittedColumns
from propopt.functions.models.outputs import (
    Output,
    Target,
    call_of,
    check_model,
    name_of,
    quantity_of,
    read_index,
    read_output,
)
from propopt.functions.models.readout import Readout
from propopt.functions.models.torch_modules import is_torch_module, torch_model
from propopt.functions.text.asked import as_texts
from propopt.functions.text.function import TextFunction
from propopt.functions.text.model_words import default_rule
from propopt.functions.text.torch_texts import TorchTexts
from propopt.structures.subsets import NoSetFunction
from propopt.structures.tfidf import read_text_model
from propopt.structures.tfidf.entries import text_vectorisers
from propopt.tables.schema import TableSchema
from propopt.tables.text import TextSchema, is_documents


def wrap_texts(
    model: Any, target: Target, output: Output, data: Any, what: str = "data"
) -> TextFunction:
    """The function that a model of texts computes; see :func:`propopt.wrap`.

    Parameters
    ----------
    model : estimator, torch module or callable
        From a list of texts to numbers.
    target, output
        As for ``wrap``.
    data : TextSchema or documents
        The words, or texts that have them: their words are those that the model sees,
        where these are known, else those of the package ``lime``.

    what : str
        What errors call them.

    Raises
    ------
    InvalidInput
        If the model takes tables, or ``data`` are no texts.
    """
    if is_torch_module(model):
        module = torch_model(model, target, output, None)
        reason = NoSetFunction(f"{name_of(model)} is a torch module")
        schema = text_schema_of(model, data, what)
        return TextFunction(module.quantity, TorchTexts(module), schema, reason)
    check_model(model)
    _refuse_table_model(model, what)
    _refuse_files(model)
    quantity = read_output(model, output)
    index = read_index(model, quantity, target)
    call = call_of(model, quantity)
    method, said = (model, quantity) if call is None else call
    return TextFunction(
        quantity=quantity_of(model, quantity, index),
        values_of=Readout(method, as_texts, said, index),
        text_schema=text_schema_of(model, data, what),
        structure=read_text_model(model, quantity, index),
        vectorisers=tuple(text_vectorisers(model)),
    )


def text_schema_of(model: Any, data: Any, what: str = "data") -> TextSchema:
    """The words of documents, by the rule of the model where it is known."""
    if isinstance(data, TextSchema):
        return data
    return TextSchema.of(data, default_rule(model), what)


def is_for_texts(model: Any, data: object) -> bool:
    """Whether ``data`` are documents or their words, or were to be for this model."""
    if isinstance(data, TextSchema | str | bytes) or is_documents(data):
        return True
    known = data is None or isinstance(data, TableSchema)
    return not known and bool(text_vectorisers(model))


def refuse_text_model(model: Any) -> None:
    """Refuse to give tables to a model that begins with a vectoriser of texts."""
    found = text_vectorisers(model)
    if found:
        raise InvalidInput(
            f"model: {name_of(model)} begins with {name_of(found[0])}, which takes "
            "texts; tell wrap of them: wrap(model, data=texts), with a list or Series"
        )


def _refuse_table_model(model: Any, what: str) -> None:
    columns = FittedColumns.of(model)
    if columns.count is not None:
        raise InvalidInput(
            f"{what}: {name_of(model)} was fitted on a table of {columns.count} "
            f"columns, and {what} are texts; a pipeline that begins with a vectoriser "
            "takes them, or a callable from a list of texts"
        )


def _refuse_files(model: Any) -> None:
    for vectoriser in text_vectorisers(model):
        if vectoriser.input != "content":
            raise InvalidInput(
                f"model: its {name_of(vectoriser)} reads files (input="
                f"{vectoriser.input!r}), and words are deleted from texts; set its "
                "input to 'content'"
            )
