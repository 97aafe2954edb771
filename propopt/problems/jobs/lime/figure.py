"""The picture of a run of ``lime``: coefficients of the first rows, and their paths."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Final

from propopt.lime import LimeExplanation, TextLimeExplanation
from propopt.output.svg import write_svg
from propopt.output.text import printable


DRAWN_ROWS: Final = 3
"""The first rows; of more the letters were too small where the file opens."""


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
    from propopt.plots import lime_coefficients, lime_path

    drawings = [partial(lime_coefficients, found)]
    if found.is_exact and len(widths) > 1:
        drawings.append(partial(lime_path, found, widths=widths))
    _write(found.labels.points or range(len(found.values)), drawings, name, path)


def write_words_figure(
    found: TextLimeExplanation, widths: Sequence[float], name: str, path: str
) -> None:
    """Draw the first documents: coefficients of words, and these over bandwidths.

    Parameters
    ----------
    found : TextLimeExplanation
        What is drawn, but documents that LIME says nothing of.
    widths : sequence of float
        Those of the path, which is drawn where there are two.
    name : str
        Of the problem.
    path : str
        The file.
    """
    from propopt.plots import lime_word_path, lime_words

    drawings = [partial(lime_words, found)]
    if len(widths) > 1:
        drawings.append(partial(lime_word_path, found, bandwidths=widths))
    known = zip(found.document_names, found.rows, strict=True)
    _write([label for label, row in known if row.is_known], drawings, name, path)


def _write(
    rows: Sequence[Hashable],
    drawings: Sequence[Callable[..., Any]],
    name: str,
    path: str,
) -> None:
    """A line for each of the first rows, a column for each drawing."""
    from matplotlib.figure import Figure

    shown = rows[:DRAWN_ROWS]
    size = (5.6 * len(drawings), 0.6 + 3.6 * len(shown))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(shown), len(drawings), squeeze=False)
    named: dict[str, Any] = {}
    for row, line in zip(shown, panels, strict=True):
        for draw, axes in zip(drawings, line, strict=True):
            draw(row, ax=axes)
            if (own := axes.get_legend()) is not None:
                handles, names = axes.get_legend_handles_labels()
                named = dict(zip(names, handles, strict=True)) | named
                own.remove()
    columns = max(1, min(len(named), 2 * len(drawings)))
    figure.legend(
        list(named.values()),
        list(named),
        loc="outside lower left",
        ncols=columns,
        frameon=False,
    )
    write_svg(figure, path, salt=printable(name))
