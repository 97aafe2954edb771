"""A table of the user's own, beside those of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from papers.engine.panels import Panel
from papers.properties.tables import network_panel
from propopt.base.errors import InvalidInput, ProblemFileError
from propopt.base.text import printable
from propopt.problems import read_sections
from propopt.problems.subject.tables import CsvTable


def panel_of_table(csv: Path, target: str, task: str | None) -> Panel:
    """A network on a CSV table, treated like those of the paper.

    Raises
    ------
    InvalidInput
        For another task, or if the table cannot be read, has no such column, or is
        none to learn from.
    """
    if task not in (None, "classification", "regression"):
        raise InvalidInput(
            f"--task: expected classification or regression, got {task!r}"
        )
    try:
        file = read_sections(_sections(csv, target, task) | _SECTIONS)
        file.check_data()  # before the other panels are worked on
    except (InvalidInput, ProblemFileError) as error:
        raise InvalidInput(f"--csv: {csv}: {error}") from error
    return network_panel(printable(csv.stem.replace("_", " ")), file)


_N_NEIGHBORS = 8

_MOST_EXPLAINED = 150
"""Number of explained rows, at most a third of the table."""


def _sections(csv: Path, target: str, task: str | None) -> dict[str, Any]:
    """Sections of a network, for the second of two classes or the most frequent."""
    table = CsvTable.of(csv).read()
    if target not in table:
        names = ", ".join(map(str, table))
        raise InvalidInput(f"there is no column {target!r}; it has {names}")
    labels = table.pop(target).dropna()
    if len(table) <= 3 * _N_NEIGHBORS:
        raise InvalidInput(
            f"expected more than {3 * _N_NEIGHBORS} rows, a third of which are "
            f"explained with {_N_NEIGHBORS} neighbours each; got {len(table)}"
        )
    classes = np.unique(labels.to_numpy())
    is_text = not pd.api.types.is_numeric_dtype(labels)
    if task is None:
        task = "classification" if is_text or len(classes) <= 2 else "regression"
    categorical = list(table.select_dtypes(exclude="number"))
    data = {
        "csv": str(csv.resolve()),
        "target": target,
        "explain": min(_MOST_EXPLAINED, max(len(table) // 3, 1)),
        "standardize": len(categorical) < table.shape[1],
        "categorical": categorical,
    }
    network = {"kind": "mlp", "hidden": [32, 16], "activation": "tanh", "task": task}
    if task == "regression":
        how = {"regularization": 10, "target": "standardized"}
    else:
        label = classes[1] if len(classes) == 2 else labels.mode().iloc[0]
        label = str(label) if is_text else label.item()
        how = {"regularization": 1, "output": "log_odds", "target_class": label}
    return {"data": data, "model": network | how}


_SCALES = [0.1, 0.2, 0.4, 0.7, 1, 1.5, 2, 3]
_SECTIONS: dict[str, Any] = {
    "objective": {
        "gradient_matching": 1,
        "pairwise_robustness": {"graph": {"kind": "knn", "n_neighbors": _N_NEIGHBORS}},
    },
    "sweep": {"pairwise_robustness": {"low": 1e-4, "high": 100, "points": 37}},
    "baselines": [
        {"method": "gradient"},
        {"method": "smoothgrad", "scale": _SCALES, "n_samples": 300},
        {"method": "lime", "scale": _SCALES, "n_samples": 1000},
        {"method": "shap", "units": ["gradient", "output"]},
    ],
    "plot": {"x": "gradient_matching", "y": "pairwise_robustness"},
}
