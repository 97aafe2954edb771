"""Chapters of a page about trade-offs: the curve, single rows, other explanations.

TradeOffs imports this file, so trade-offs are passed as Any.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import Any, Final

import pandas as pd

from propopt.base.checks import evenly_spaced
from propopt.base.document import Block, Chapter, Finding, Table
from propopt.base.text import in_percent
from propopt.proofs.fronts import ExactFront
from propopt.results.explanation import Explanation
from propopt.results.report.explanation_chapters import (
    explanation_chapters,
    rows_and_pairs,
)
from propopt.results.report.explorer import FrontPath
from propopt.results.report.neighbours import Neighbours
from propopt.solvers.solving import solve


_FEWEST: Final = 3
"""Fewest optima that differ in one weight only; else all are ordered by a loss."""


def front_chapters(trade_offs: Any) -> list[Chapter]:
    """All chapters, with the optimum of the aim, or the knee, shown first."""
    if not trade_offs.optimized:
        return [_table(trade_offs)]
    best = trade_offs.aimed or trade_offs.knee()
    if len(trade_offs.optimized) < 2 or len(trade_offs.losses) < 2:
        return [_features(best), *explanation_chapters(best)]
    explorer, *pairs = rows_and_pairs(
        best, Neighbours.of(best), front_path_of(trade_offs, best)
    )
    return [explorer, _features(best), *pairs, *_others(trade_offs), _table(trade_offs)]


def _features(best: Explanation) -> Chapter:
    """The largest features of the first optimum, and how far to trust them."""
    document = best.document()
    return Chapter(document.title, [*document.blocks, *document.trust])


_BECOMES: Final = {
    "squared differences between neighbours": "more similar",
    "squared differences between similar features": "smoother",
    "total size": "simpler",
}
"""Comparative for explanations with less of a quantity."""


def front_path_of(trade_offs: Any, best: Explanation) -> FrontPath:
    """The optima that differ from the first in one weight, and the curve between."""
    loss, line = _line(trade_offs, best)
    less = trade_offs.reduction_label(loss or "")
    faithful = () if trade_offs.ends is None else trade_offs.ends.faithful
    front = None
    if loss is not None:
        through = ExactFront.of(line, loss, solve)
        if isinstance(through, ExactFront):
            front = through
            line = [one for one in line if one.weights[loss] > 0.0]
    return FrontPath(
        optima=line,
        start_label="knee" if trade_offs.aimed is None else "aim",
        becomes=_BECOMES.get(less.removesuffix(" without main effects"), ""),
        loss=loss or trade_offs.losses[-1],
        start=next((i for i, one in enumerate(line) if one is best), 0),
        losses=trade_offs.losses,
        ends=trade_offs.ends,
        labels={
            x: "faithfulness" if faithful == (x,) else trade_offs.reduction_label(x)
            for x in trade_offs.losses
        },
        front=front,
        baselines=list(compress(trade_offs.baselines, trade_offs.compared)),
    )


def _line(trade_offs: Any, best: Explanation) -> tuple[str | None, list[Any]]:
    """The loss with the most optima that differ from the chosen one in its weight."""

    def with_other_weights_of(loss: str) -> list[Any]:
        rates = {**best.rates, loss: 0.0}
        same = (
            one for one in trade_offs.optimized if {**one.rates, loss: 0.0} == rates
        )
        return sorted(same, key=lambda one: one.rates[loss])

    lines = {
        name: with_other_weights_of(name)
        for name in trade_offs.losses
        if name in best.weights
    }
    loss = max(lines, key=lambda name: len(lines[name]), default=None)
    if loss is None or len(lines[loss]) < _FEWEST:
        first = trade_offs.losses[0]
        return None, sorted(trade_offs.optimized, key=lambda one: one.losses[first])
    return loss, lines[loss]


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
    table["excess"] = table["excess"].map(in_percent)
    if not any(table["not compared"]):
        table = table.drop(columns="not compared")
    words = "The excess is how far an objective is above the best possible, for the "
    words += "weights that suit it best."
    blocks: list[Block] = [Finding(words), Table(table, "Losses: less is better.")]
    yield Chapter("Other explanations of the same rows", blocks)


OPTIMA_ON_PAGE: Final = 50
"""Rows of the table of optima, evenly spaced over all of them."""


def _table(trade_offs: Any) -> Chapter:
    """A table of the optima with weights, losses and shares."""
    count = len(trade_offs.optimized)
    frame = trade_offs.to_frame().iloc[evenly_spaced(count, OPTIMA_ON_PAGE)]
    columns = [
        name
        for name in map(str, frame)
        if name.startswith(("weight.", "loss.", "retained", "removed", "gap"))
        and frame[name].notna().any()
    ]
    table = frame[columns]
    for name in columns:
        if name.startswith(("retained", "removed")):
            shares = {name: table[name].map(in_percent)}
            table = table.assign(**shares)
    table = table.rename(columns=lambda name: str(name).replace(".", " of ", 1))
    caption = f"{len(frame)} of {count}: weights, losses, shares of losses, gaps."
    return Chapter("All optima", [Table(table, caption)])
