"""A description checked against the schema, with one complaint for each mistake."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from propopt.checks import did_you_mean
from propopt.errors import ProblemFileError
from propopt.problems.schema import ProblemSchema, kinds, sections_at
from propopt.problems.sources.base import MOST_MISTAKES, SHORT, Faults, Source


def read_schema(source: Source) -> ProblemSchema:
    """The checked content of a problem file.

    Raises
    ------
    ProblemFileError
        With one line for each mistake.
    """
    try:
        return ProblemSchema.model_validate(source.data())
    except ValidationError as error:
        mistakes = sorted(error.errors(), key=lambda detail: source.line(detail["loc"]))
        faults = Faults(*(_located(source, item) for item in mistakes[:MOST_MISTAKES]))
        if len(mistakes) > MOST_MISTAKES:
            rest = f"and {len(mistakes) - MOST_MISTAKES:,} more mistakes, from here on"
            faults.found.append(source.remark(mistakes[MOST_MISTAKES]["loc"], rest))
        raise faults.joint() from None


def _located(source: Source, detail: ErrorDetails) -> ProblemFileError:
    """What pydantic found, in the words of a user."""
    location, value = detail["loc"], detail["input"]
    context = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            fields = sections_at(location[:-1])[0].model_fields
            keys = [field.alias or name for name, field in fields.items()]
            hint = did_you_mean(location[-1], keys)
            message = f"unknown key{hint}; known here: {', '.join(keys)}"
            return source.error(location, message)
        case "missing":
            return source.error(
                location[:-1], "required, and missing", missing=str(location[-1])
            )
        case "union_tag_not_found":
            key = context["discriminator"].strip("'")
            message = f"required, and missing; expected {_either(kinds(location))}"
            return source.error(location, message, missing=key)
        case "union_tag_invalid":
            key = context["discriminator"].strip("'")
            return source.error(
                (*location, key), _unknown_name(value[key], kinds(location))
            )
        case "literal_error":
            words = re.findall(r"'([^']*)'", context["expected"])
            return source.error(location, _unknown_name(value, words))
        case kind if kind in _EXPECTED:
            expected = _EXPECTED[kind].format(**context)
            return source.error(location, f"expected {expected}, got {_shown(value)}")
    return source.error(location, detail["msg"])


def _unknown_name(value: object, words: Sequence[str]) -> str:
    hint = did_you_mean(value, words)
    return f"expected {_either(words)}, got {_shown(value)}{hint}"


_MAPPING = "a mapping of keys to values"
_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": _MAPPING,
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "a number > {gt:g}",
    "greater_than_equal": "a number >= {ge:g}",
    "int_type": "a whole number",
    "label_type": "text or a number",
    "less_than": "a number < {lt:g}",
    "less_than_equal": "a number <= {le:,}",
    "list_type": "a list",
    "loss_type": "a weight, or a mapping with the settings of the loss",
    "model_attributes_type": _MAPPING,
    "model_type": _MAPPING,
    "pick_type": "'knee', or a mapping of each loss swept to a value",
    "string_pattern_mismatch": "letters, digits, '_', '-' and '.' only",
    "string_too_long": "at most {max_length} characters",
    "string_type": "text",
    "too_long": "at most {max_length} values",
    "too_short": "at least one value",
    "weights_type": "a list of weights, or a range {{low: , high: , points: }}",
}


def _shown(value: Any) -> str:
    """A value as the file has it, or what it is."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else str(value).lower()
    text = repr(value)
    return text if len(text) <= SHORT else f"{text[:40]}… ({len(text)} characters)"


def _either(choices: Sequence[str]) -> str:
    """``'a', 'b' or 'c'``."""
    *others, last = map(repr, choices)
    return f"{', '.join(others)} or {last}" if others else last
