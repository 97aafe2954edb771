"""A text schema as JSON, and back: its documents as they are, and the rule of words.

Halves of characters, NUL and all else that a text may hold are escaped by JSON itself.
"""

from __future__ import annotations

from typing import Any

from propopt.errors import InvalidInput
from propopt.tables.text.schema import TextSchema
from propopt.tables.text.vectoriser_words import VectoriserWords
from propopt.tables.text.words import EachOccurrence, PatternWords, WordRule


def pack_texts(schema: TextSchema) -> dict[str, Any]:
    """A text schema as a JSON value.

    Parameters
    ----------
    schema : TextSchema
        Its documents are saved whole.

    Raises
    ------
    InvalidInput
        If its rule is of a class that propopt does not know.

    Examples
    --------
    >>> import propopt as po
    >>> packed = pack_texts(po.TextSchema.of(["good food"]))
    >>> packed["documents"], packed["rule"]["kind"]
    (['good food'], 'PatternWords')
    >>> unpack_texts(packed).vocabulary
    ('good', 'food')
    """
    return {
        "rule": _packed(schema.rule),
        "vocabulary": list(schema.vocabulary),
        "documents": [document.text for document in schema.documents],
    }


def unpack_texts(content: Any) -> TextSchema:
    """The schema that :func:`pack_texts` packed.

    Parameters
    ----------
    content : object
        What was read from JSON: not trusted.

    Raises
    ------
    InvalidInput
        If it is something else.
    """
    try:
        rule = _unpacked(content["rule"])
        schema = TextSchema.of(list(content["documents"]), rule)
        same = list(schema.vocabulary) == content["vocabulary"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"its documents make no sense: {error}") from None
    if not same:
        raise InvalidInput(
            "its documents make no sense: they have other words than were saved"
        )
    return schema


def _packed(rule: WordRule) -> dict[str, Any]:
    match rule:
        case PatternWords():
            told: dict[str, Any] = {"pattern": rule.pattern}
        case EachOccurrence():
            told = {"rule": _packed(rule.rule)}
        case VectoriserWords():
            told = {
                "lowercase": rule.lowercase,
                "strip_accents": rule.strip_accents,
                "token_pattern": rule.token_pattern,
                "stop_words": sorted(rule.stop_words),
            }
        case _:
            raise InvalidInput(
                f"words: a rule of class {type(rule).__name__} is not saved; "
                "PatternWords, VectoriserWords and EachOccurrence are"
            )
    return {"kind": type(rule).__name__, "filler": rule.filler, **told}


def _unpacked(content: dict[str, Any]) -> WordRule:
    told = dict(content)
    match told.pop("kind"):
        case "PatternWords":
            return PatternWords(**told)
        case "EachOccurrence":
            return EachOccurrence(**{**told, "rule": _unpacked(told["rule"])})
        case "VectoriserWords":
            words = frozenset(told.pop("stop_words"))
            return VectoriserWords(**told, stop_words=words)
        case kind:
            raise ValueError(f"no rule {kind!r}")
