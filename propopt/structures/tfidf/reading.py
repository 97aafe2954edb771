"""Which fitted models of texts are read, by what they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from propopt.structures.subsets import NoSetFunction
from propopt.structures.tfidf.structure import TextStructure
from propopt.structures.tfidf.trees import read_text_trees


TextReader: TypeAlias = Callable[[Any, str, int | None], TextStructure | NoSetFunction]
"""From a fitted model, its output and a class or column to what it is made of."""

READERS: Final[tuple[TextReader, ...]] = (read_text_trees,)
"""Tried in turn."""


def read_text_model(
    model: Any, output: str, index: int | None
) -> TextStructure | NoSetFunction:
    """What a fitted model of texts is made of; the last reason where it is not read.

    Parameters
    ----------
    model : estimator or callable
        From texts to numbers, such as a pipeline that begins with a vectoriser.
    output : str
        ``"value"``, ``"probability"``, ``"log_odds"`` or ``"margin"``.
    index : int or None
        The class, or the column of the output; None where there is only one.
    """
    found: TextStructure | NoSetFunction
    found = NoSetFunction(f"{type(model).__name__} can only be called")
    for reader in READERS:
        found = reader(model, output, index)
        if not isinstance(found, NoSetFunction):
            return found
    return found
