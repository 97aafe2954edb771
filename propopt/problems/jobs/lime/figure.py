"""The picture of a run of ``lime``: coefficients of the first rows, and their paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from matplotlib.figure import Figure

from propopt.lime import LimeExplanation
from propopt.output.svg import write_svg
from propopt.output.text import printable
from propopt.plots import lime_coefficients, lime_path


DRAWN_ROWS: Final = 5
"""The first rows; of more rows a picture would have no end."""


def write_lime_figure(
    found: LimeExplanation, widths: Sequence[float], name: str, path: str
) -> None:
    """Draw the first rows: coefficients, and beside them where kernels would lead.

    Parameters
    ----------
    found : LimeExplanation
        What is drawn.
    widths : sequence of float
        Those of the path, which is drawn where there are two and all is exact.
    name : str
        Of the problem.
    path : str
        The file.
    """
    rows = (found.labels.points or range(len(found.values)))[:DRAWN_ROWS]
    n_panels = 1 + (found.is_exact and len(widths) > 1)
    size = (6.4 * n_panels, 4.6 * len(rows))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(rows), n_panels, squeeze=False)
    for row, (left, *right) in zip(rows, panels, strict=True):
        lime_coefficients(found, row, ax=left)
        for axes in right:
            lime_path(found, row, widths=widths, ax=axes)
    write_svg(figure, path, salt=printable(name))
