"""A card of scores for notebooks: escaped, and without scripts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from propopt._typing import Positions
from propopt.interactions.reading.words import (
    WORDS_LEVEL,
    aim_of_intervals,
    cautions,
    counted_sets,
    level_in_words,
    set_in_words,
    units_of_scores,
)
from propopt.output.html import html_card, html_table
from propopt.output.text import in_html
from propopt.results.conclusions.words import plural


if TYPE_CHECKING:
    from propopt.interactions.result import InteractionScores


CARD_ROWS: Final = 5
"""Of each table on a card."""


def scores_html(scores: InteractionScores) -> str:
    """A title, what was done, the largest and the most negative, and cautions."""
    title = (
        f"iLOCO of {counted_sets(scores, len(scores))}, {plural(scores.n_rows, 'row')}"
    )
    facts = (
        f"{scores.method}; {scores.error} error",
        units_of_scores(scores),
        aim_of_intervals(scores),
    )
    order = np.argsort(-scores.estimates, kind="stable")
    order = order[~np.isnan(scores.estimates[order])]
    below = order[::-1][:CARD_ROWS]
    tables = (
        _table(scores, "largest", order[:CARD_ROWS]),
        _table(scores, "most negative", below[scores.estimates[below] < 0.0]),
    )
    warned = (*scores.notes, *cautions(scores))
    return html_card(
        (
            f"<b>{in_html(title)}</b>",
            "<br>".join(map(in_html, facts)),
            *tables,
            "<br>".join(map(in_html, warned)),
        )
    )


def _table(scores: InteractionScores, title: str, places: Positions) -> str:
    if len(places) == 0:
        return ""
    level = level_in_words(WORDS_LEVEL)
    head = (title, "score", f"{level} interval, all together", "error")
    return html_table(head, _rows(scores, places))


def _rows(scores: InteractionScores, places: Positions) -> Iterable[list[str]]:
    ends, not_used = scores.intervals(level=WORDS_LEVEL), scores.are_not_used
    for q in map(int, places):
        low, high = ends[q]
        interval = "not used" if not_used[q] else f"{low:.4g} to {high:.4g}"
        yield [
            in_html(set_in_words(scores, q)),
            f"{scores.estimates[q]:.4g}",
            interval,
            f"{scores.total_errors[q]:.2g}",
        ]
