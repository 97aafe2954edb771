"""From a model of texts to a function under explanation, with its words."""

from __future__ import annotations

from typing import Any

from propopt.base.errors import InvalidInput
from propopt.base.text import Reason
from propopt.functions.outputs import (
    MARGIN_ROWS,
    FittedColumns,
    Output,
    Readout,
    Target,
    call_of,
    quantity_of,
    read_index,
    read_output,
    scale_of,
)
from propopt.functions.texts import TextFunction, as_texts
from propopt.structures.fitted_model import FittedModel
from propopt.structures.kinds import name_of
from propopt.structures.tfidf.vectorisers import VECTORISERS
from propopt.tables.documents import (
    AnalyzerWords,
    TextSchema,
    VectoriserWords,
    WordRule,
    read_texts,
)


def word_rule_of(model: Any) -> WordRule | Reason:
    """Rule by which a model splits texts into words; the reason if there is none."""
    rules = [
        _rule_of(vectoriser) for vectoriser in FittedModel.of(model).text_vectorisers
    ]
    if not rules:
        return Reason("it does not begin with a vectoriser of scikit-learn")
    if any(rule != rules[0] for rule in rules):
        return Reason("it begins with vectorisers of different words")
    return rules[0]


def _rule_of(vectoriser: Any) -> WordRule | Reason:
    settings = vectoriser.get_params(deep=False)
    if settings["analyzer"] in ("char", "char_wb"):
        return Reason("its vectoriser counts characters")
    custom = ("analyzer", "preprocessor", "tokenizer", "strip_accents")
    is_custom = any(callable(settings[name]) for name in custom)
    if is_custom or type(vectoriser) not in VECTORISERS:
        return AnalyzerWords.of(vectoriser)
    return VectoriserWords(
        lowercase=bool(settings["lowercase"]),
        strip_accents=settings["strip_accents"],
        token_pattern=settings["token_pattern"],
        stop_words=frozenset(vectoriser.get_stop_words() or ()),
    )


def wrap_texts(
    model: Any, target: Target, output: Output, data: Any, label: str = "data"
) -> TextFunction:
    """The function of documents for an opened model of texts, as of ``wrap``."""
    if not isinstance(model, FittedModel):
        from propopt.functions.torch_modules import torch_model

        module = torch_model(model, target, output, None)
        reason = Reason(f"{name_of(model)} is a torch module")
        schema = text_schema_of(model, data, label)
        return TextFunction(module.quantity, module, schema, reason)
    columns = FittedColumns.of(model)
    if columns.count is not None:
        raise InvalidInput(
            f"{label}: {model.name} was fitted on a table of {columns.count} "
            f"columns, and {label} are texts; a pipeline that begins with a vectoriser "
            "takes them, or a callable from a list of texts"
        )
    for vectoriser in model.text_vectorisers:
        if vectoriser.input != "content":
            raise InvalidInput(
                f"model: its {name_of(vectoriser)} takes files (input="
                f"{vectoriser.input!r}), and words are deleted from texts; set its "
                "input to 'content'"
            )
    quantity = read_output(model, output)
    schema = text_schema_of(model, data, label)
    few = [document.text for document in schema.documents[:MARGIN_ROWS]]
    scale = scale_of(model, quantity, few)
    index = read_index(model, quantity, target, scale)
    method, output_name = call_of(model, quantity)
    return TextFunction(
        quantity=quantity_of(model, quantity, index, scale),
        values_of=Readout(method, as_texts, output_name, index),
        text_schema=schema,
        structure=model.structure(quantity, index).words,
        vectorisers=tuple(model.text_vectorisers),
    )


def text_schema_of(model: Any, data: Any, label: str = "data") -> TextSchema:
    """The words of documents, by the rule of the model if it has one for them all."""
    if isinstance(data, TextSchema):
        return data
    rule: WordRule | Reason | None = word_rule_of(model)
    if isinstance(rule, AnalyzerWords):
        texts, _ = read_texts(data, label)
        if any(rule.match(text) is None for text in texts):
            rule = None  # such as stems
    return TextSchema.of(data, None if isinstance(rule, Reason) else rule, label)
