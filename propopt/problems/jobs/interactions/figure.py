"""The picture of interactions: pairs as cells, sets and features with intervals."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from propopt.interactions import InteractionScores
from propopt.output.svg import write_svg
from propopt.output.text import printable
from propopt.problems.jobs.interactions.section import InteractionsSection


_DRAWN: Final = 20
"""Sets with their intervals, and features of cells."""


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
    from matplotlib.figure import Figure

    from propopt.plots import interaction_heatmap, interaction_intervals

    how: dict[str, Any] = {"level": section.level, "adjust": section.adjust}
    drawings = [partial(interaction_intervals, found, n_sets=_DRAWN, **how)]
    if found.order == 2:
        drawings.insert(0, partial(interaction_heatmap, found, **how))
    if found.order > 1:
        drawings.append(partial(interaction_intervals, main_effects, **how))
    n_lines = min(max(len(found), len(main_effects)), _DRAWN)
    size = (6.4 * len(drawings), max(4.8, 1.8 + 0.27 * n_lines))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(drawings), squeeze=False)[0]
    for draw, axes in zip(drawings, panels, strict=True):
        draw(ax=axes)
    write_svg(figure, path, salt=printable(name))
