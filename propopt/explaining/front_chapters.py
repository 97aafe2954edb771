"""Chapters of trade-offs: the front, one row at any weight of it, others beside it.

The class of trade-offs stands above this chapter: they are taken by their attributes.
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
"""Optima that differ in one weight alone; else all are shown in order of a loss."""


def front_chapters(found: Any) -> list[Chapter]:
    """All chapters of trade-offs, around the optimum of the aim, or at the knee."""
    if not found.optimized:
        return [_table(found)]
    best = found.aimed or found.knee()
    if len(found.optimized) < 2 or len(found.losses) < 2:
        return [_features(best), *explanation_chapters(best)]
    explorer, *pairs = rows_and_pairs(best, Neighbours.of(best), trail_of(found, best))
    return [explorer, _features(best), *pairs, *_others(found), _table(found)]


def _features(best: Explanation) -> Chapter:
    """What matters most in the optimum that is shown first, and how far to trust it."""
    own = best.document()
    return Chapter(own.title, [*own.blocks, *own.trust])


def _plain(found: Any, name: str) -> str:
    return found.reduction_label(name).removesuffix(" without main effects")


_BECOMES: Final = {
    "squared differences between neighbours": "more alike",
    "squared differences between similar features": "smoother",
    "total size": "simpler",
}
"""What explanations are, the less there is of it."""


def trail_of(found: Any, best: Explanation) -> FrontPath:
    """The optima that differ from the one shown in one weight, and what is between."""
    loss, line = _line(found, best)
    front = None
    if loss is not None:
        through = ExactFront.of(line, loss, solve)
        if isinstance(through, ExactFront):
            front, line = through, [one for one in line if one.weights[loss] > 0.0]
    return FrontPath(
        optima=line,
        start_label="knee" if found.aimed is None else "aim",
        becomes=_BECOMES.get(_plain(found, loss or ""), ""),
        loss=loss or found.losses[-1],
        start=next((i for i, one in enumerate(line) if one is best), 0),
        losses=found.losses,
        ends=found.ends,
        labels={
            name: "faithfulness"
            if _is_faithful(found, name)
            else found.reduction_label(name)
            for name in found.losses
        },
        front=front,
        baselines=list(compress(found.baselines, found.compared)),
    )


def _is_faithful(found: Any, name: str) -> bool:
    return found.ends is not None and found.ends.faithful == (name,)


def _line(found: Any, best: Explanation) -> tuple[str | None, list[Any]]:
    """The weight in which most optima differ, all others as the chosen one has them."""

    def alike(loss: str) -> list[Any]:
        own = {**best.rates, loss: 0.0}
        same = (one for one in found.optimized if {**one.rates, loss: 0.0} == own)
        return sorted(same, key=lambda one: one.rates[loss])

    lines = {name: alike(name) for name in found.losses if name in best.weights}
    loss = max(lines, key=lambda name: len(lines[name]), default=None)
    if loss is None or len(lines[loss]) < _FEWEST:
        first = found.losses[0]
        return None, sorted(found.optimized, key=lambda one: one.losses[first])
    return loss, lines[loss]


def _others(found: Any) -> Iterator[Chapter]:
    """How far each other explanation lies above the best possible, nearest first."""
    if not found.baselines:
        return
    rows = found.distances()
    lines = []
    for place, one in enumerate(found.baselines):
        own = rows.iloc[place]
        why = own.get("not_compared")
        lines.append(
            {
                "explanation": found.distinct_name(one),
                "excess": own["excess"],
                **{name: one.losses[name] for name in found.losses},
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
    caption = " ".join(["Losses: less is better.", *_on_shap(found)])
    blocks: list[Block] = [Finding(words), Table(table, caption)]
    yield Chapter("Other explanations of the same rows", blocks)


def _on_shap(found: Any) -> Iterator[str]:
    """That contributions were made slopes, where they are measured as slopes."""
    if any("shap" in x.method and x.units == "gradient" for x in found.baselines):
        yield "SHAP values are divided by distances from the background's means."


OPTIMA_ON_PAGE: Final = 50
"""Rows of the table of optima, spread over all of them."""


def _table(found: Any) -> Chapter:
    """All optima, by their weights."""
    count = len(found.optimized)
    frame = found.to_frame().iloc[evenly_spaced(count, OPTIMA_ON_PAGE)]
    kept = [
        name
        for name in map(str, frame)
        if name.startswith(("weight.", "loss.", "kept", "removed", "gap"))
        and frame[name].notna().any()
    ]
    table = frame[kept]
    for name in kept:
        if name.startswith(("kept", "removed")):
            shares = {name: table[name].map(in_percent)}
            table = table.assign(**shares)
    table = table.rename(columns=lambda name: str(name).replace(".", " of ", 1))
    caption = f"{len(frame)} of {count}: weights, losses, shares of losses, gaps."
    return Chapter("All optima", [Table(table, caption)])
