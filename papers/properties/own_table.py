"""A table of the user's own, beside those of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from papers.engine.panels import Panel
from papers.properties.tables import network_panel
from propopt.base.errors import InvalidInput, ProblemFileError
from propopt.base.text import printable
from propopt.problems import read_sections
from propopt.problems.file import sections_of_table


def panel_of_table(csv: Path, target: str, task: str | None) -> Panel:
    """A network on a CSV table, treated like those of the paper.

    Raises
    ------
    InvalidInput
        For another task, or if the table cannot be read, has no such column, or is
        none to learn from.
    """
    match task:
        case None | "classification" | "regression":
            own = sections_of_table(csv, target, task)
        case _:
            raise InvalidInput(
                f"--task: expected classification or regression, got {task!r}"
            )
    if "text" in own["data"]:
        raise InvalidInput(
            f"--csv: {csv.name} holds documents, and the paper is about tables of "
            "numbers; propopt explain takes them"
        )
    try:
        file = read_sections(own | _SECTIONS)
        file.check_data()  # before the other panels are worked on
    except ProblemFileError as error:
        raise InvalidInput(f"--csv: {csv}: {error}") from error
    return network_panel(printable(csv.stem.replace("_", " ")), file)


_SCALES = [0.1, 0.2, 0.4, 0.7, 1, 1.5, 2, 3]
_SECTIONS: dict[str, Any] = {
    "objective": {
        "gradient_matching": 1,
        "pairwise_robustness": {"graph": {"kind": "knn", "n_neighbors": 8}},
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
