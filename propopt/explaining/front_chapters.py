"""Chapters of trade-offs: the front, one row at any weight of it, others beside it.

The class of trade-offs stands above this chapter: they are taken by their attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any, Final

import numpy as np
import pandas as pd

from propopt.base.checks import spread_over
from propopt.base.text import in_percent, percent
from propopt.proofs.fronts import ExactFront
from propopt.proofs.optimum import targets_in_words
from propopt.results.explanation import Explanation
from propopt.results.report.chapters import (
    Chapter,
    Headline,
    Statement,
    best_possible,
    faithful,
    gap_text,
)
from propopt.results.report.explained import (
    explanation_chapters,
    features,
    not_said,
    rows_and_pairs,
    settings,
)
from propopt.results.report.explorer import Trail
from propopt.results.report.neighbours import Neighbours
from propopt.solvers.solving import solve


_FEWEST: Final = 3
"""Optima that differ in one weight alone; else all are shown in order of a loss."""


def front_chapters(found: Any) -> list[Chapter]:
    """All chapters of trade-offs, around the optimum of the aim, or at the knee."""
    if not found.optimized:
        return [_summary(found, None), _table(found)]
    best = found.aimed or found.knee()
    if len(found.optimized) < 2 or len(found.losses) < 2:
        return [_summary(found, best), *explanation_chapters(best)[1:]]
    trail = trail_of(found, best)
    neighbours = Neighbours.of(best)
    explorer, *pairs = rows_and_pairs(best, neighbours, trail)
    return [
        _summary(found, best, is_exact_between=trail.front is not None),
        explorer,
        features(best),
        *pairs,
        *_others(found),
        _table(found),
    ]


def _summary(
    found: Any, best: Explanation | None, is_exact_between: bool = False
) -> Chapter:
    card, said, shape = found.card(), [], ""
    gaps = [one.gap for one in found.optimized if one.gap is not None]
    if gaps:
        said.append(
            Statement(
                f"Of {len(gaps)} optima, each for its weights, none can be improved by "
                f"more than {gap_text(max(gaps))}.",
                "proved",
            )
        )
        is_exact = all(
            one.target is not None and not one.target.n_blocks
            for one in found.optimized
        )
        kind: Any = "checked" if is_exact else "estimated"
        if any(np.isnan(one.target_error) for one in found.optimized):
            kind = "not said"
        words = "; ".join(targets_in_words(found.optimized)).removeprefix("target ")
        said.append(Statement(f"The target that they follow: {words}.", kind))
    between = None if is_exact_between else found.between_in_words()
    if between is not None:
        said.append(Statement(between, "proved"))
    if found.failures:
        said.append(Statement(f"Not solved: {len(found.failures)}.", "checked"))
    if found.interrupted:
        said.append(Statement("The sweep was stopped before its end.", "checked"))
    if best is not None:
        shape = "{} rows, {} columns, ".format(*best.shape)
        first = "the knee: where the front bends"
        if found.aimed is not None:
            first = f"the aim: {best.parameters['aim']}"
        said.append(Statement(f"What is shown first is {first}.", "chosen"))
        said += [*settings(best), *not_said()]
    what = "" if found.quantity is None else f" of the {found.quantity.in_words()}"
    return Chapter(
        title=f"Explanations{what}",
        lead=f"{shape}explanations: {card.title.rpartition(': ')[2]}.",
        headlines=[] if best is None else list(_headlines(found, best, gaps)),
        statements=said,
        no_words=found.optimized[0].labels.feature_names(found.optimized[0].shape[1])
        if found.optimized
        else (),
    )


def _headlines(
    found: Any, best: Explanation, gaps: Sequence[float]
) -> Iterator[Headline]:
    """What is kept and removed at the knee, what is proved, and who comes near it."""
    where = f" at the {'aim' if found.aimed else 'knee'}"
    if found.ends is not None:
        for name, share in found.ends.shares(best.losses).items():
            if name not in found.losses or not np.isfinite(share):
                continue
            if name in found.ends.faithful:
                yield faithful(share, where)
            else:
                what = found.smaller(name)
                yield Headline(
                    _QUESTIONS.get(_plain(found, name), f"How much less of {name}?"),
                    f"{100.0 * share:.0f} %",
                    f"smaller {what} than in what the model does itself.",
                )
    if gaps:
        yield best_possible(max(gaps), max(gaps) <= _TOLERATED)
    nearest = found.nearest_at(best)
    if nearest is not None:
        name, excess = nearest
        yield Headline(
            f"Which other explanation comes nearest{where}?",
            name,
            f"For the weights there its objective is {percent(excess)} % above the "
            "best possible.",
        )


def _plain(found: Any, name: str) -> str:
    return found.smaller(name).removesuffix(" beside own values")


_QUESTIONS: Final = {
    "squared differences between neighbours": "How much more alike are similar rows?",
    "largest differences between neighbours": "How much more alike are similar rows?",
    "squared differences between similar features": "How much smoother is it?",
    "total size": "How much simpler is it?",
}

_BECOMES: Final = {
    "squared differences between neighbours": "more alike",
    "squared differences between similar features": "smoother",
    "total size": "simpler",
}
"""What explanations are, the less there is of it."""

_TOLERATED: Final = 1e-5


def trail_of(found: Any, best: Explanation) -> Trail:
    """The optima that differ from the one shown in one weight, and what is between."""
    loss, line = _line(found, best)
    front = None
    if loss is not None:
        through = ExactFront.of(line, loss, solve)
        if isinstance(through, ExactFront):
            front, line = through, [one for one in line if one.weights[loss] > 0.0]
    return Trail(
        optima=line,
        start_name="knee" if found.aimed is None else "aim",
        becomes=_BECOMES.get(_plain(found, loss or ""), ""),
        loss=loss or found.losses[-1],
        start=next((i for i, one in enumerate(line) if one is best), 0),
        losses=found.losses,
        ends=found.ends,
        words={
            name: "faithfulness" if _is_faithful(found, name) else found.smaller(name)
            for name in found.losses
        },
        front=front,
        others=list(compress(found.baselines, found.compared)),
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
                "explanation": found.name_among_others(one),
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
    yield Chapter(
        title="Other explanations of the same rows",
        statements=[
            Statement(
                "The excess is how far an objective is above the best possible, for "
                "the weights that suit it best.",
                "checked",
            )
        ],
        table=table,
        caption=" ".join(["Losses: less is better.", *_on_shap(found)]),
    )


def _on_shap(found: Any) -> Iterator[str]:
    """That contributions were made slopes, where they are measured as slopes."""
    if any("shap" in x.method and x.units == "gradient" for x in found.baselines):
        yield "SHAP values are divided by distances from the background's means."


OPTIMA_ON_PAGE: Final = 50
"""Rows of the table of optima, spread over all of them."""


def _table(found: Any) -> Chapter:
    """All optima, by their weights."""
    count = len(found.optimized)
    frame = found.to_frame().iloc[spread_over(count, OPTIMA_ON_PAGE)]
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
    return Chapter(
        title="All optima",
        table=table.rename(columns=lambda name: str(name).replace(".", " of ", 1)),
        caption=f"{len(frame)} of {count}: weights, losses, shares of losses, gaps.",
    )
