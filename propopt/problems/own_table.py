"""A table of the user's own: a model on it, with defaults that can be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd

from propopt.errors import InvalidInput, Refused
from propopt.problems.subject.columns import missing_numbers
from propopt.problems.subject.csv_tables import CsvTable


EXPLAINED = 150
"""Rows to explain, and at most a third of the table."""


@dataclass(frozen=True, kw_only=True)
class OwnTable:
    """A CSV table and the column to learn.

    Parameters
    ----------
    csv : path
        Columns of numbers, and of text, which are categories.
    target : str
        The column to learn.
    task : {"classification", "regression"}, optional
        By default classification where the target is text or has two values.
    """

    csv: Path
    target: str
    task: Literal["classification", "regression"] | None = None

    @property
    def name(self) -> str:
        """What files about it are called."""
        return self.csv.stem

    def sections(self) -> dict[str, Any]:
        """``data`` and ``model`` of a problem: a network with two hidden layers.

        Rows that are explained are not fitted; numbers are standardized. Of a
        classifier the log-odds of the commonest label are explained. Where numbers are
        missing, which a network does not take, the model is gradient boosting.

        Raises
        ------
        InvalidInput
            If the table cannot be read, or has no such column.
        """
        table = self._read()
        labels = table[self.target]
        task = self.task or _task_of(labels)
        return {
            "data": {
                "csv": str(self.csv.resolve()),
                "target": self.target,
                "explain": min(EXPLAINED, max(len(table) // 3, 1)),
                "standardize": True,
                "categorical": _text_columns(table.drop(columns=self.target)),
            },
            "model": _boosting(task, labels)
            if missing_numbers(table.drop(columns=self.target))
            else _network(task, labels),
        }

    def _read(self) -> pd.DataFrame:
        try:
            table = CsvTable.of(self.csv).read()
        except (InvalidInput, Refused) as error:
            raise InvalidInput(f"--csv: {error}") from error
        if self.target not in table:
            raise InvalidInput(
                f"--target: {self.csv.name} has no column {self.target!r}; it has "
                f"{', '.join(map(str, table))}"
            )
        return table


def _text_columns(table: pd.DataFrame) -> list[str]:
    return [str(c) for c in table if not pd.api.types.is_numeric_dtype(table[c])]


def _task_of(labels: pd.Series) -> Literal["classification", "regression"]:
    text = not pd.api.types.is_numeric_dtype(labels)
    return "classification" if text or labels.nunique() <= 2 else "regression"


def _network(task: str, labels: pd.Series) -> dict[str, Any]:
    network = {"kind": "mlp", "task": task, "hidden": [32, 16], "activation": "tanh"}
    if task == "regression":
        return {**network, **_REGRESSION}
    return {**network, "regularization": 1, **_log_odds(labels)}


def _boosting(task: str, labels: pd.Series) -> dict[str, Any]:
    boosting = {"kind": "hist_gradient_boosting", "task": task}
    return boosting if task == "regression" else {**boosting, **_log_odds(labels)}


_REGRESSION: Final = {"regularization": 10, "target": "standardized"}


def _log_odds(labels: pd.Series) -> dict[str, Any]:
    """The label whose log-odds are explained: the commonest."""
    label = labels.mode().iloc[0]
    numeric = pd.api.types.is_numeric_dtype(labels)
    return {
        "output": "log_odds",
        "target_class": label.item() if numeric else str(label),
    }
