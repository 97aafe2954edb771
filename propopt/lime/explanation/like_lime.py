"""Methods of an explanation that the package ``lime`` has too."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from propopt._typing import Values
from propopt.lime.explanation.table import named_coefficients


if TYPE_CHECKING:
    from propopt.lime.explanation.result import LimeExplanation


def list_of_row(
    explanation: LimeExplanation, row: Hashable | None = None
) -> list[tuple[str, float]]:
    """Column and bin in words, and coefficient; the largest first, as lime has it.

    Parameters
    ----------
    row : label or int, optional
        Its name in the index of X, or its position where X had no names; by default
        the first.
    """
    n = explanation.position(row)
    names = named_coefficients(explanation, n)
    return [(names[j], weight) for j, weight in explanation.as_map(row)[1]]


def map_of_row(
    explanation: LimeExplanation, row: Hashable | None = None
) -> dict[int, list[tuple[int, float]]]:
    """Under the key 1 positions of columns and coefficients, the largest first.

    Parameters
    ----------
    row : label or int, optional
        Its name in the index of X, or its position where X had no names; by default
        the first.
    """
    return {1: largest_first(explanation.coefficients[explanation.position(row)])}


def largest_first(coefficients: Values) -> list[tuple[int, float]]:
    """Positions and coefficients (d,), the largest first; equal ones in their order.

    Parameters
    ----------
    coefficients : array (d,)
        Of one row or document.
    """
    order = np.argsort(-np.abs(coefficients), kind="stable").tolist()
    return [(j, float(coefficients[j])) for j in order]
