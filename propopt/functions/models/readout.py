"""What is read from a model's own methods: one number per row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from propopt._typing import Array, Points, Values
from propopt.errors import InvalidInput
from propopt.functions.answers import Answers, as_numbers, precision_of
from propopt.tables.names import Labels
from propopt.threads import Sparing


ALL_ROWS: Final = (
    "it is given all rows at once and returns one number for each; for a function f of "
    "one row give"
)
_NEW_LINE: Final = "\n"


@dataclass(frozen=True)
class Readout:
    """One output of a model, by calling it.

    Parameters
    ----------
    method : callable
        A method of the model, or a plain callable: a table of n rows, or n texts, to
        (n,) or (n, K).
    table : callable
        Makes the table that ``method`` is given from points and labels; of texts a
        list.
    output : str
        What the numbers are: ``"value"``, ``"probability"``, ``"log_odds"`` or
        ``"margin"``.
    index : int or None
        The column that is read; None if there can be only one.
    features : tuple of str or None
        The columns that the model was fitted on, where it tells.
    """

    method: Callable[[Any], object]
    table: Callable[[Any, Labels], Any]
    output: str
    index: int | None
    features: tuple[str, ...] | None = None

    def __call__(self, points: Points | list[str], labels: Labels) -> Values:
        """Values, shape (n,)."""
        return self._chosen(self._columns(self._answer(points, labels), points, labels))

    def answers(self, points: Points | list[str], labels: Labels) -> Answers:
        """Values, with the precision in which the model computed."""
        answer = self._answer(points, labels)
        columns = self._columns(answer, points, labels)
        return Answers(self._chosen(columns), precision_of(answer))

    def _answer(self, points: Points | list[str], labels: Labels) -> object:
        return self.method(self.table(points, labels))

    def _columns(
        self, answer: object, points: Points | list[str], labels: Labels
    ) -> Array:
        """What a model returned as a matrix (n, K) of our own."""
        array, n_rows = as_numbers(answer), len(points)
        if array.ndim not in (1, 2) or len(array) != n_rows:
            raise InvalidInput(
                f"the model returned shape {array.shape} for {n_rows} rows; expected "
                f"({n_rows},) or ({n_rows}, outputs); {ALL_ROWS} "
                f"lambda X: {_row_by_row(self.table(points, labels))}"
            )
        return array.reshape(n_rows, -1)

    def misfit(self, error: Exception, points: Any, labels: Labels) -> str:
        """What a model was given that fails, what it says, and what would do."""
        table = self.table(points, labels)
        said = f"{type(error).__name__}: {str(error).partition(_NEW_LINE)[0]}"
        came = f"{type(table).__name__} of {len(table)} rows"
        if isinstance(self.method, Sparing):
            remedy = "give it a table like the one that it was fitted on"
        else:
            remedy = f"{ALL_ROWS} lambda X: {_row_by_row(table, error)}"
        return f"given a {came} it raises {said}; {remedy}"

    def _chosen(self, columns: Array) -> Values:
        n_columns = columns.shape[1]
        match self.output:
            case "log_odds":
                return _log_odds(columns, read_column(self.index, n_columns))
            case "margin" if n_columns == 1:  # two classes share one margin
                return -columns[:, 0] if self.index == 0 else columns[:, 0]
            case _:
                return columns[:, read_column(self.index, n_columns)]


def _row_by_row(table: object, error: Exception | None = None) -> str:
    """What asks f for one row at a time, with cells as it asked for them."""
    if isinstance(table, list):
        return "[f(text) for text in X]"
    if not hasattr(table, "iloc"):
        return "np.apply_along_axis(f, 1, X)"
    named = not (isinstance(error, KeyError) and isinstance(error.args[0], int))
    return "X.apply(f, axis=1)" if named else "np.apply_along_axis(f, 1, X.to_numpy())"


def read_column(index: int | None, n_columns: int) -> int:
    """The column that is meant, among ``n_columns``."""
    if index is None and n_columns == 1:
        return 0
    if index is None:
        raise InvalidInput(
            f"target: the model has {n_columns} outputs; give the position of one, "
            f"0 to {n_columns - 1}"
        )
    if index >= n_columns:
        rest = "leave target out" if n_columns == 1 else "counted from 0"
        raise InvalidInput(
            f"target: no output at position {index}; the model has {n_columns}, {rest}"
        )
    return index


def _log_odds(probabilities: Array, index: int) -> Values:
    """Log-odds log p_t − log Σ_{k≠t} p_k, which keep small 1 − p_t."""
    others = np.delete(probabilities, index, axis=1).sum(axis=1)
    with np.errstate(divide="ignore"):  # p = 0 or 1: infinite, and reported by its row
        log_odds: Values = np.log(probabilities[:, index]) - np.log(others)
    return log_odds
