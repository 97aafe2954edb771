"""The figures by name: a new one is a file here, and an entry."""

from collections.abc import Callable, Mapping
from typing import Final

from propopt.reproduce.figure import PaperFigure
from propopt.reproduce.figures import (
    appendix,
    fig1,
    fig2,
    fig3,
    fig4,
    fig5,
    fig6,
    tables,
)


FIGURES: Final[Mapping[str, Callable[[], PaperFigure]]] = {
    "fig1": fig1.figure,
    "fig2": fig2.figure,
    "fig3": fig3.figure,
    "fig4": fig4.figure,
    "fig5": fig5.figure,
    "fig6": fig6.figure,
    "appendix": appendix.figure,
    "tables": tables.figure,
}
