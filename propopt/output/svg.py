"""Pictures as SVG: whole files, the same for the same run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from propopt.output.files import written_whole


if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_svg(figure: Figure, path: str | Path, *, salt: str) -> None:
    """Write a figure as SVG, without a date, whole or not at all.

    Parameters
    ----------
    figure : matplotlib Figure
        What is drawn.
    path : path
        Where to write.
    salt : str
        From it and the figure the file's identifiers are made: the same figure with
        the same salt is the same file, byte by byte.

    Raises
    ------
    InvalidInput
        If the folder is not there.
    Unwritten
        If the file cannot be written.
    """
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": salt}), written_whole(path) as draft:
        figure.savefig(draft, format="svg", metadata={"Date": None})
