"""The picture of interactions: pairs as cells, sets and features with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from propopt.interactions import InteractionScores
from propopt.interactions.reading.clear import clear_scores
from propopt.interactions.reading.words import SET_NOUNS
from propopt.output.svg import write_svg
from propopt.output.text import drawn, printable
from propopt.problems.jobs.interactions.section import InteractionsSection


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_DRAWN: Final = 20
"""Sets with their intervals, and features of cells."""
_WIDTH: Final = 11.0
"""Inches: 1,056 pixels of a screen, on which letters are as large as in its text."""
_FEW: Final = 12
_LONG: Final = 14
"""Cells, and letters of a name, that have room in half of that width."""
_LETTERS: Final[Any] = {"font.size": 10.5}


def write_interactions_figure(
    found: InteractionScores,
    main_effects: InteractionScores,
    section: InteractionsSection,
    name: str,
    path: str,
) -> None:
    """Draw pairs as cells, the strongest sets, and features by themselves.

    Parameters
    ----------
    found : InteractionScores
        Of the sets.
    main_effects : InteractionScores
        Of single features, which are drawn where the sets are others.
    section : InteractionsSection
        What intervals are.
    name : str
        Of the problem.
    path : str
        The file.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from propopt.plots import interaction_heatmap, interaction_intervals
    from propopt.plots.interactions.chosen import capitalised

    how: dict[str, Any] = {"level": section.level, "adjust": section.adjust}
    intervals: Any = partial(interaction_intervals, n_sets=_DRAWN, **how)
    with rc_context(_LETTERS):
        figure = Figure(layout="constrained")
        places, heights = _places(found, len(main_effects))
        panels = figure.subplot_mosaic(places, height_ratios=heights)
        figure.set_size_inches(_WIDTH, 1.2 + sum(heights))
        if found.order == 2:
            interaction_heatmap(found, ax=panels["cells"], **how)
            panels["cells"].set_title(_counted(found, "features"), loc="left")
        if found.order > 1:
            intervals(main_effects, ax=panels["features"])
            panels["features"].set_title(_counted(main_effects), loc="left")
        intervals(found, ax=panels["sets"])
        panels["sets"].set_title(_counted(found), loc="left")
        intervals_are = clear_scores(found, section.level, section.adjust).in_words
        title = capitalised(found.explained), f"{found.n_rows:,} rows; {intervals_are}"
        figure.suptitle("\n".join(map(drawn, title)), x=0.01, ha="left")
        _one_legend(figure, list(panels.values()))
        write_svg(figure, path, salt=printable(name))


def _places(found: InteractionScores, n_features: int) -> tuple[Any, list[float]]:
    """Where panels are, and how high their rows: room for each line and each cell."""
    sets, features = (1.2 + 0.26 * min(n, _DRAWN) for n in (len(found), n_features))
    if found.order == 1:
        return [["sets"]], [max(3.4, sets)]
    if found.order > 2:
        return [["features", "sets"]], [max(3.4, sets, features)]
    n_cells = min(len(found.names), _DRAWN)
    longest = min(max(len(str(name)) for name in found.names), _LONG)
    cells = 1.2 + 0.28 * n_cells + 0.08 * longest
    if (n_cells > _FEW and longest > 4) or longest == _LONG:
        lower = max(3.4, sets, features)
        return [["cells", "cells"], ["features", "sets"]], [cells, lower]
    grown = max(1.0, sets / (cells + features))
    return [["cells", "sets"], ["features", "sets"]], [grown * cells, grown * features]


def _counted(found: InteractionScores, noun: str = "") -> str:
    """How many of how many are drawn."""
    kind = SET_NOUNS.get(found.order, "set") + "s"
    number = len(found.names) if noun else len(found)
    if number <= _DRAWN:
        return f"All {kind}" if found.order > 1 else "Features by themselves"
    strongest = f"{_DRAWN} strongest of {number:,} {noun or kind}"
    return f"Pairs of the {strongest}" if noun else f"The {strongest}"


def _one_legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """Below all panels, each look once, with what it means of sets and of features."""
    kinds: dict[str, tuple[Any, list[str]]] = {}
    for axes in panels:
        legend = axes.get_legend()
        if legend is None:
            continue
        for look, label in zip(*axes.get_legend_handles_labels(), strict=True):
            line = getattr(look, "lines", [None])[0]
            kind = "leak" if line is None else str(line.get_marker())
            words = kinds.setdefault(kind, (look, []))[1]
            if label not in words:
                words.append(label)
        legend.remove()
    looks = [look for look, _ in kinds.values()]
    labels = [" / ".join(words) for _, words in kinds.values()]
    figure.legend(looks, labels, loc="outside lower left", frameon=False, ncols=3)
