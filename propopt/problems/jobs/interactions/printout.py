"""What interactions print: how they were had, and the strongest sets of features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd

from propopt.interactions import ILOCO, InteractionScores
from propopt.output.progress import PlainConsole
from propopt.output.terminal import print_table
from propopt.problems.jobs.interactions.judged import Judged
from propopt.problems.jobs.interactions.section import InteractionsSection
from propopt.problems.jobs.printout import settings_in_words
from propopt.results.conclusions.words import plural


_SHOWN: Final = 10
"""Sets of a table, the first; of features as many."""
_OTHERS: Final = 5
"""Of those at the other end."""


def print_interactions(
    section: InteractionsSection, fitted: ILOCO, judged: Judged, console: PlainConsole
) -> None:
    """How scores were had, and the strongest sets and features."""
    found = fitted.result_
    for line in (*_how(section, judged), *found.notes, *found.cautions):
        console.print(line, markup=False)
    noun = {2: "pairs", 3: "triples"}.get(found.order, f"sets of {found.order}")
    if found.order > 1:
        frame = found.to_frame(**section.inference)
        highest = frame.nlargest(_SHOWN, "estimate")
        lowest = frame.drop(highest.index).nsmallest(_OTHERS, "estimate")
        title = f"The {noun} of largest score, {_intervals(section, found)}"
        _print(title, highest, found, console)
        negative = lowest[lowest["reject"] & (lowest["estimate"] < 0.0)]
        if len(negative):
            title = f"The {noun} of most negative score: each stands in for the others"
            _print(title, negative, found, console)
    _print_main_effects(section, fitted.main_effects_, console)


def _how(section: InteractionsSection, judged: Judged) -> Iterator[str]:
    scheme = settings_in_words(section.scheme)
    yield f"models without features, by {scheme}"
    yield judged.in_words()
    yield f"scores: in {judged.units}; those of another model are not compared"


def _intervals(section: InteractionsSection, found: InteractionScores) -> str:
    """What intervals are, as a phrase."""
    level = f"{100.0 * section.level:.4g} %"
    if section.adjust == "none":
        return f"with intervals of {level} each"
    whose = f"{section.adjust} for {plural(found.n_candidates, 'set')}"
    return f"with intervals of {level} ({whose})"


def _print_main_effects(
    section: InteractionsSection, found: InteractionScores, console: PlainConsole
) -> None:
    frame = found.to_frame(**section.inference).nlargest(_SHOWN, "estimate")
    title = f"The features that matter most, {_intervals(section, found)}"
    _print(title, frame, found, console)
    if len(found.sets) > _SHOWN:
        rest = plural(len(found.sets) - _SHOWN, "more feature")
        console.print(f"{rest} in the files", markup=False)


def _print(
    title: str, frame: pd.DataFrame, found: InteractionScores, console: PlainConsole
) -> None:
    head = [
        "set" if found.order > 1 else "feature",
        "score",
        "from",
        "to",
        "adjusted p",
    ]
    leaks = bool(found.leak.any())
    if leaks:
        head.append("without interaction")
    print_table(console, title, [*head, "clear"], _lines(frame, found.order, leaks))


def _lines(frame: pd.DataFrame, order: int, leaks: bool) -> Iterator[list[str]]:
    names = [f"feature_{k + 1}" for k in range(order)]
    columns = ["estimate", "ci_low", "ci_high", "p_adj", *(["leak"] if leaks else [])]
    for row in frame.to_dict("records"):
        found = "yes" if row["reject"] else "–"
        numbers = [_number(row[column]) for column in columns]
        yield [" × ".join(str(row[name]) for name in names), *numbers, found]


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.4g}"
