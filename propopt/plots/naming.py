"""Names of rows and features, and the words for units, as pictures have them."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from textwrap import fill

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.output.text import drawn
from propopt.quantity import Quantity
from propopt.results.explanation import Explanation
from propopt.tables.alignment import order_of
from propopt.tables.frames import as_frame


_WHOSE = "the explanation"


def units_label(explanation: Explanation, width: int = 60) -> str:
    """What attributions are, and of what, in lines that fit along an axis."""
    return fill(drawn(explanation.units_in_words), width)


def title_of(explanation: Explanation, where: str = "") -> str:
    """What is explained, where, and by what method; the method alone if unknown."""
    method, quantity = drawn(explanation.method), explanation.quantity
    beside = f", {drawn(where)}" if where else ""
    if quantity is None:
        return f"{method}{beside}"
    return fill(f"{drawn(quantity.in_words())}{beside} ({method})", 50)


def common_quantity(explanations: Iterable[Explanation]) -> Quantity | None:
    """What all of them explain; None where they differ, or where none tells."""
    told = {one.quantity for one in explanations} - {None}
    return told.pop() if len(told) == 1 else None


def feature_names(explanation: Explanation) -> list[str]:
    """Those of the features, ``x0, x1, ...`` where there are none."""
    return [str(name) for name in explanation.to_frame().columns]


def names_with_values(explanation: Explanation, X: object, place: int) -> list[str]:
    """The features' names, each with its value where X is given."""
    names = feature_names(explanation)
    if X is None:
        return names
    frame = as_frame(X, "X")
    table = pd.DataFrame(np.asarray(X)) if frame is None else frame.table
    if table.shape != explanation.shape:
        raise InvalidInput(
            f"X: expected the shape of the attributions, {explanation.shape}, got "
            f"{table.shape}"
        )
    row, columns = place, np.arange(table.shape[1])
    if table is X:
        rows = order_of(
            tuple(X.index), explanation.labels.points, "X: its rows", _WHOSE
        )
        row = place if rows is None else int(rows[place])
        labels = tuple(map(str, X.columns))
        order = order_of(labels, explanation.labels.features, "X: its columns", _WHOSE)
        columns = columns if order is None else order
    values: list[object] = [table.iat[row, int(j)] for j in columns]
    pairs = zip(names, values, strict=True)
    return [
        f"{name} = {value:.4g}" if isinstance(value, Real) else f"{name} = {value}"
        for name, value in pairs
    ]


def largest(sizes: Array, most: int) -> NDArray[np.intp]:
    """Positions of the largest |sizes|, in falling order."""
    return np.argsort(-np.abs(sizes), kind="stable")[:most]
