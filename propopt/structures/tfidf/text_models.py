"""Which fitted models of texts are read, by what they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from propopt.base.text import Reason
from propopt.structures.readers.tree_models import ModelSum
from propopt.structures.readers.tree_nodes import TreeOutput
from propopt.structures.tfidf.text_sums import (
    AddedTexts,
    TextStructure,
    members_of,
    read_text_linear,
)
from propopt.structures.tfidf.text_trees import read_text_trees


TextReader: TypeAlias = Callable[[Any, str, int | None], TextStructure | Reason | None]
"""From a fitted model, its output and a class or column to what it is made of.

None of models that the reader knows nothing of.
"""

READERS: Final[tuple[TextReader, ...]] = (read_text_linear, read_text_trees)
"""Tried in turn."""


def read_text_model(
    model: Any, output: str, index: int | None
) -> TextStructure | Reason:
    """What a fitted model of texts is made of; the first reason if it is not read."""
    reasons = []
    for reader in READERS:
        result = reader(model, output, index)
        if isinstance(result, Reason):
            reasons.append(result)
        elif result is not None:
            return result
    added = _read_members(model, TreeOutput(output, index))
    if isinstance(added, AddedTexts):
        return added
    if added is not None:
        reasons.insert(-1, added)  # before that of what is tried last
    unknown = Reason(f"{type(model).__name__} can only be called")
    return reasons[0] if reasons else unknown


def _read_members(model: Any, output: TreeOutput) -> AddedTexts | Reason | None:
    """What a model adds up; None where it is no sum of others."""
    total = members_of(model, output)
    if not isinstance(total, ModelSum):
        return total
    parts = []
    for part in total.parts:
        result = read_text_model(part.model, part.output.name, part.output.index)
        if isinstance(result, Reason):
            return result
        parts.append((part.weight, result))
    return AddedTexts(tuple(parts), total.base)
