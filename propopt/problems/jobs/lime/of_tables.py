"""A run of ``lime`` on rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from propopt.lime import LimeExplanation
from propopt.output.csv import write_csv
from propopt.output.progress import PlainConsole
from propopt.problems.jobs.artefacts import Writer
from propopt.problems.jobs.lime.figure import write_lime_figure
from propopt.problems.jobs.lime.printout import print_lime
from propopt.problems.jobs.lime.report import LimeReport


class TableReport(LimeReport):
    """Rows of a table: bins and their coefficients."""

    found: LimeExplanation

    def facts(self) -> dict[str, Any]:
        found = self.found
        return {
            "settings": self.look.section.model_dump(
                exclude_none=True, exclude={"bandwidth", "words"}
            ),
            "law": found.law_in_words,
            "source": found.source,
            "reason": found.reason or None,
            "rows": list(found.labels.points or range(len(found.values))),
            "prediction": found.values.tolist(),
            "intercept": found.intercept.tolist(),
            "surrogate_at_row": found.at_row.tolist(),
            "mean_weight": found.mean_weight.tolist(),
            "effective_share": found.effective_share.tolist(),
            "n_samples": found.n_samples,
            "units": found.units,
            "notes": list(found.notes),
            "evaluations": found.evaluations,
        }

    def write_path(self, path: str) -> None:
        write_csv(path, path_frame(self.found, self.widths), names_of_rows=False)

    def pictures(self) -> dict[str, Writer]:
        name = self.look.name
        return {".svg": partial(write_lime_figure, self.found, self.widths, name)}

    def print_found(self, console: PlainConsole) -> None:
        print_lime(self.found, console)


def path_frame(found: LimeExplanation, widths: Sequence[float]) -> pd.DataFrame:
    """A line for each row, kernel width and feature."""
    subject = found.subject
    assert subject is not None
    N, D = found.shape
    M = len(widths)
    points = np.repeat(subject.points, M, axis=0)
    at = subject.limits(points, np.tile(np.asarray(widths, float), N))
    rows = found.labels.points or tuple(range(N))
    errors = getattr(at, "standard_errors", None)
    columns: dict[str, Any] = {
        "row": [row for row in rows for _ in range(M * D)],
        "kernel_width": np.tile(np.repeat(widths, D), N),
        "feature": list(found.labels.feature_names(D)) * (N * M),
        "coefficient": at.coefficients.ravel(),
        "standard_error": 0.0 if errors is None else errors.ravel(),
    }
    return pd.DataFrame(columns)
