"""Explanations made elsewhere: whatever carries attributions, as an explanation."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from propopt.errors import InvalidInput
from propopt.estimates import Units
from propopt.results.explanation import Explanation
from propopt.tables.alignment import is_shap, read_attributions


AttributionsLike: TypeAlias = Any
"""An Explanation, shap.Explanation, DataFrame or array (N, D)."""


def explanation_of(
    source: AttributionsLike, method: str, units: Units = "gradient"
) -> Explanation:
    """The explanation itself, or one of the attributions and names that ``source`` has.

    Parameters
    ----------
    source : Explanation, shap.Explanation, DataFrame or array (N, D)
        What carries W.
    method : str
        What it is called; that of a ``shap.Explanation`` is ``"shap"``.
    units : {"gradient", "output", "scaled"}
        Of numbers that do not say their own.

    Raises
    ------
    InvalidInput
        If it is no finite table of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> explanation_of(np.eye(3), "mine")
    Explanation(mine, 3 points × 3 features)
    """
    if isinstance(source, Explanation):
        return source
    if is_shap(source):
        return Explanation.from_shap(source)
    W, labels = read_attributions(source, method)
    return Explanation(attributions=W, method=method, labels=labels, units=units)


def explanations_of(
    many: Iterable[AttributionsLike] | Mapping[str, AttributionsLike],
    noun: str,
    units: Units | None = None,
) -> Iterator[Explanation]:
    """One explanation after the other; those without a method are counted.

    A mapping gives each the name of its key. Plain tables are in the units of what
    they are measured against, where these are known.

    Raises
    ------
    InvalidInput
        If ``many`` is one table and not several.
    """
    own = units or "gradient"
    if isinstance(many, Mapping):
        for name, given in many.items():
            yield dataclasses.replace(explanation_of(given, name, own), method=name)
        return
    if hasattr(many, "shape") or isinstance(many, Explanation):
        raise InvalidInput(f"{noun}s: expected a list of them, got one: put it in [ ]")
    for place, given in enumerate(many, start=1):
        yield explanation_of(given, f"{noun} {place}", own)
