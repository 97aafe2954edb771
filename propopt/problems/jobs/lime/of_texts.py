"""A run of ``lime`` on documents."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from propopt.lime import TextLimeExplanation
from propopt.output.csv import write_csv
from propopt.output.progress import PlainConsole
from propopt.problems.jobs.artefacts import Writer
from propopt.problems.jobs.lime.figure import write_words_figure
from propopt.problems.jobs.lime.report import LimeReport
from propopt.problems.jobs.lime.text_printout import print_texts
from propopt.problems.jobs.page import MOST_SHOWN


class TextReport(LimeReport):
    """Documents: the coefficients of their words."""

    found: TextLimeExplanation

    def facts(self) -> dict[str, Any]:
        found = self.found
        section = self.look.section
        return {
            "settings": section.model_dump(exclude_none=True, exclude=_OF_TABLES),
            "law": found.law_in_words,
            "sources": list(found.sources),
            "reasons": [reason or None for reason in found.reasons],
            "rows": list(found.document_names),
            "n_words": [len(words) for words in found.words],
            "prediction": _known(found.values),
            "intercept": _known(found.intercept),
            "surrogate_at_row": _known(found.at_row),
            "n_samples": found.n_samples,
            "units": found.units,
            "notes": list(found.notes),
            "evaluations": found.evaluations,
        }

    def write_path(self, path: str) -> None:
        frames = [
            self._path_frame(name)
            for name, row in zip(
                self.found.document_names, self.found.rows, strict=True
            )
            if row.is_known
        ]
        write_csv(path, pd.concat(frames), names_of_rows=False)

    def _path_frame(self, name: Any) -> pd.DataFrame:
        """A line for each bandwidth and word of one document."""
        found = self.found.path(name, self.widths)
        M, d = found.coefficients.shape
        errors = found.standard_errors
        columns: dict[str, Any] = {
            "document": [name] * (M * d),
            "bandwidth": np.repeat(found.bandwidths, d),
            "word": list(self.found.row(name).words) * M,
            "coefficient": found.coefficients.ravel(),
            "standard_error": 0.0 if errors is None else errors.ravel(),
        }
        return pd.DataFrame(columns)

    def pictures(self) -> dict[str, Writer]:
        from propopt.plots import highlight

        figure = partial(write_words_figure, self.found, self.widths, self.look.name)
        page = highlight(self.found, max_rows=MOST_SHOWN)
        return {".svg": figure, ".html": page.to_html}

    def print_found(self, console: PlainConsole) -> None:
        print_texts(self.found, console)


_OF_TABLES: Final = {"law", "n_bins", "weights", "kernel_width"}


def _known(numbers: Iterable[float]) -> list[float | None]:
    """JSON has no NaN: what is not known is null."""
    return [None if math.isnan(x) else float(x) for x in numbers]
