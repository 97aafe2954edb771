"""Chapters of a page about trade-offs: the curve, single rows, other explanations.

TradeOffs imports this file, so trade-offs are passed as Any.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import Any, Final

import pandas as pd

from propopt.base.checks import evenly_spaced
from propopt.base.document import Chapter, Facts, Table, cell_text, share_text
from propopt.results.explanation import Explanation
from propopt.results.report.explanation_chapters import (
    explanation_chapters,
    rows_and_pairs,
)
from propopt.results.report.explorer import FrontPath


def front_chapters(trade_offs: Any) -> list[Chapter]:
    """All chapters, with the optimum of the aim, or the knee, shown first."""
    if not trade_offs.optimized:
        return [_table(trade_offs)]
    best = trade_offs.aimed or trade_offs.knee()
    if len(trade_offs.optimized) < 2 or len(trade_offs.losses) < 2:
        return [_features(best), *explanation_chapters(best)]
    explorer, *pairs = rows_and_pairs(best, front_path_of(trade_offs, best))
    return [explorer, _features(best), *pairs, *_others(trade_offs), _table(trade_offs)]


_ABOVE: Final = ("gap to optimum", "sampling error", "faithfulness kept")
"""Facts that the card of the trade-offs has, of all optima."""


def _features(best: Explanation) -> Chapter:
    """The card of the first optimum, without facts that stand above it."""
    document = best.document()
    table, *_ = document.blocks
    facts = [x for label, x in document.facts.items() if label not in _ABOVE]
    return Chapter(document.title, [table, Facts(facts)], lead=document.subtitle)


MOST_POSITIONS: Final = 25
"""Positions of the slider, each with attributions of the rows on the page."""


def front_path_of(trade_offs: Any, best: Explanation) -> FrontPath:
    """Optima that differ from the first in one weight, evenly spaced if many."""
    loss, line = trade_offs.line(best)
    spaced = evenly_spaced(len(line), MOST_POSITIONS)
    line = [one for n, one in enumerate(line) if n in spaced or one is best]
    return FrontPath(
        optima=line,
        start_label="knee" if trade_offs.aimed is None else "aim",
        loss=loss or trade_offs.losses[-1],
        start=next((i for i, one in enumerate(line) if one is best), 0),
        losses=trade_offs.losses,
        ends=trade_offs.ends,
        labels=trade_offs.share_labels,
        baselines=list(compress(trade_offs.baselines, trade_offs.compared)),
    )


def _others(trade_offs: Any) -> Iterator[Chapter]:
    """How far each other explanation is above the optimum, in increasing order."""
    if not trade_offs.baselines:
        return
    rows = trade_offs.distances()
    lines = []
    for index, one in enumerate(trade_offs.baselines):
        distance = rows.iloc[index]
        why = distance.get("not_compared")
        lines.append(
            {
                "explanation": trade_offs.distinct_name(one),
                "excess": distance["excess"],
                **{name: one.losses[name] for name in trade_offs.losses},
                "not compared": why if isinstance(why, str) else "",
            }
        )
    table = pd.DataFrame(lines).set_index("explanation")
    table = table.sort_values("excess", kind="stable")
    table["excess"] = table["excess"].map(share_text)
    if not any(table["not compared"]):
        table = table.drop(columns="not compared")
    caption = "Excess of the objective over the optimum, and losses."
    yield Chapter("Baselines", [Table(table, caption)])


OPTIMA_ON_PAGE: Final = 50
"""Rows of the table of optima, evenly spaced over all of them."""


def _table(trade_offs: Any) -> Chapter:
    """A table of the optima with weights, losses and shares; constants above it."""
    count = len(trade_offs.optimized)
    frame = trade_offs.to_frame().iloc[evenly_spaced(count, OPTIMA_ON_PAGE)]
    labels = trade_offs.share_labels
    shares = {x: labels[name] for name, x in trade_offs.share_columns.items()}
    words = [f"{len(frame)} of {count}"] if len(frame) < count else []
    columns = {}
    for name in map(str, frame):
        cells = frame[name]
        is_shown = name in shares or name.startswith(("weight.", "loss.", "gap"))
        if not is_shown or cells.isna().all():
            continue
        label = shares.get(
            name, name.replace("weight.", "weight of ").replace("loss.", "loss ")
        )
        if cells.nunique(dropna=False) == 1 < count:
            words.append(f"{label} {cell_text(cells.iloc[0])}")
        else:
            columns[label] = cells.map(share_text) if name in shares else cells
    return Chapter("All optima", [Table(pd.DataFrame(columns), " · ".join(words))])
