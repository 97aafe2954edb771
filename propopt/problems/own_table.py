"""A table of the user's own: a model on it, with defaults that can be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from propopt.checks import did_you_mean
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
        Columns of numbers, and of text, which are categories; or of documents.
    target : str
        The column to learn.
    text : str, optional
        A column of documents, which are then explained word by word, and no other
        column is; by default the only column, where it holds some.
    task : {"classification", "regression"}, optional
        By default classification where the target is text or has two values.
    """

    csv: Path
    target: str
    task: Literal["classification", "regression"] | None = None
    text: str | None = None

    @property
    def name(self) -> str:
        """What files about it are called."""
        return self.csv.stem

    def sections(self) -> dict[str, Any]:
        """``data`` and ``model`` of a problem: a network with two hidden layers.

        Rows that are explained are not fitted; numbers are standardized. Of a
        classifier the log-odds of the second of two labels in sorted order are
        explained, as scikit-learn counts them; of several those of the commonest,
        as ``description`` then says. Where numbers are
        missing, which a network does not take, the model is gradient boosting. Of
        documents it is a logistic regression of the TF-IDF of their words, or a forest
        of which words are there.

        Raises
        ------
        InvalidInput
            If the table cannot be read, or has no such columns.
        """
        table = self._read()
        columns, labels = table.drop(columns=self.target), table[self.target]
        task, text = self.task or _task_of(labels), self._documents(columns)
        data: dict[str, Any] = {
            "csv": str(self.csv.resolve()),
            "target": self.target,
            "explain": min(EXPLAINED, max(len(table) // 3, 1)),
        }
        told = _several_labels(self.target, labels) if task == "classification" else {}
        if text is not None:
            model = _of_words(task, labels)
            return {**told, "data": {**data, "text": text}, "model": model}
        categorical = _text_columns(columns)
        return {
            **told,
            "data": {
                **data,
                "standardize": len(categorical) < len(columns.T),
                "categorical": categorical,
            },
            "model": _boosting(task, labels)
            if missing_numbers(columns)
            else _network(task, labels),
        }

    def _documents(self, columns: pd.DataFrame) -> str | None:
        """The column of documents, if they are to be explained."""
        if self.text is not None:
            self._require("--text", self.text, list(map(str, columns)))
            return self.text
        found = next(
            (c for c in _text_columns(columns) if _are_documents(columns[c])), ""
        )
        if found and len(columns.T) > 1:
            raise InvalidInput(
                f"--csv: column {found!r} holds documents, which are no categories; "
                f"explain their words by --text {found}, or leave the column out"
            )
        return found or None

    def _require(self, option: str, column: str, columns: list[str]) -> None:
        if column not in columns:
            raise InvalidInput(
                f"{option}: {self.csv.name} has no column {column!r}"
                f"{did_you_mean(column, columns)}; it has {', '.join(columns)}"
            )

    def _read(self) -> pd.DataFrame:
        try:
            table = CsvTable.of(self.csv).read()
        except (InvalidInput, Refused) as error:
            raise InvalidInput(f"--csv: {error}") from error
        self._require("--target", self.target, list(map(str, table)))
        values = table[self.target].dropna().unique().tolist()
        if len(values) < 2:
            came = f"{values[0]!r} in all rows" if values else "no value in any row"
            raise InvalidInput(
                f"--target: column {self.target!r} has {came}; a model learns a column "
                "of at least two values"
            )
        return table


_WORDS_OF_DOCUMENTS: Final = 4
"""On average; names and addresses mostly have fewer."""


def _are_documents(cells: pd.Series[Any]) -> bool:
    """Whether most cells are texts of several words that no other row has."""
    texts = cells.dropna().astype(str)
    words = texts.str.count(r"\w+").mean()
    return bool(words >= _WORDS_OF_DOCUMENTS and 2 * texts.nunique() > len(texts))


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


def _of_words(task: str, labels: pd.Series) -> dict[str, Any]:
    """Models that are read, so that what is said of them is exact."""
    if task == "classification":
        logistic = {"kind": "logistic", "regularization": 0.1, **_log_odds(labels)}
        return {**logistic, "vectorizer": {"kind": "tfidf"}}
    presence = {"kind": "counts", "binary": True}
    return {"kind": "forest", "task": task, "vectorizer": presence}


_REGRESSION: Final = {"regularization": 10, "target": "standardized"}


def _log_odds(labels: pd.Series) -> dict[str, Any]:
    return {"output": "log_odds", "target_class": _explained_label(labels)}


def _several_labels(target: str, labels: pd.Series) -> dict[str, str]:
    """What is said of more than two labels, of which one is explained."""
    count, chosen = labels.nunique(), _explained_label(labels)
    if count <= 2:
        return {}
    words = f"{target} has {count} labels; {chosen!r}, the commonest, is explained"
    return {"description": f"{words} (in a problem file model.target_class chooses)"}


def _explained_label(labels: pd.Series) -> Any:
    """``classes_[1]`` of two labels, as everywhere; the commonest of several."""
    sorted_labels = np.unique(labels.dropna().to_numpy())
    is_binary = len(sorted_labels) == 2
    label = sorted_labels[1] if is_binary else labels.mode().iloc[0]
    return label.item() if pd.api.types.is_numeric_dtype(labels) else str(label)
