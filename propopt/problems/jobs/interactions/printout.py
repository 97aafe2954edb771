"""What interactions print: how they were had, and the strongest sets of features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import pandas as pd

from propopt.interactions import ILOCO, InteractionScores
from propopt.interactions.reading.words import (
    SET_NOUNS,
    aim_of_intervals,
    level_in_words,
    units_of_scores,
)
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
    how = (
        f"models without features, by {settings_in_words(section.scheme)}",
        judged.in_words(),
        units_of_scores(found),
        aim_of_intervals(found),
    )
    for line in (*how, *found.notes, *found.cautions):
        console.print(line, markup=False)
    if found.order > 1:
        _print_sets(_Scores(found, section, console))
    _print_features(_Scores(fitted.main_effects_, section, console))


def _print_sets(scores: _Scores) -> None:
    noun = SET_NOUNS.get(scores.found.order, "set") + "s"
    frame = scores.frame
    highest = frame.nlargest(_SHOWN, "estimate")
    scores.print(f"The {noun} of largest score, {scores.intervals}", highest)
    lowest = frame.drop(highest.index).nsmallest(_OTHERS, "estimate")
    leak = lowest["leak"].fillna(0.0)
    leaked = (leak != 0.0) & (lowest["ci_high"] >= np.minimum(leak, 0.0))
    below = lowest[lowest["reject"] & (lowest["estimate"] < 0.0) & ~leaked]
    if len(below):
        meaning = ": each stands in for the other" if noun == "pairs" else ""
        scores.print(f"The {noun} of most negative score{meaning}", below)


def _print_features(scores: _Scores) -> None:
    frame = scores.frame.nlargest(_SHOWN, "estimate")
    scores.print(f"The features that matter most, {scores.intervals}", frame)
    rest = len(scores.found) - len(frame)
    if rest > 0:
        words = f"{plural(rest, 'more feature')} in the files"
        scores.console.print(words, markup=False)


@final
@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores, and how they are printed."""

    found: InteractionScores
    section: InteractionsSection
    console: PlainConsole

    @property
    def frame(self) -> pd.DataFrame:
        return self.found.to_frame(**self.section.inference)

    @property
    def intervals(self) -> str:
        """What they are, as a phrase."""
        level, adjust = level_in_words(self.section.level), self.section.adjust
        if adjust == "none":
            return f"with intervals of {level} each"
        whose = f"{adjust} for {plural(self.found.n_candidates, 'set')}"
        return f"with intervals of {level} ({whose})"

    @property
    def columns(self) -> dict[str, str]:
        """The numbers of a line, by their names in the table."""
        columns = {
            "score": "estimate",
            "from": "ci_low",
            "to": "ci_high",
            "adjusted p": "p_adj",
        }
        if self.found.leak.any():
            columns["without interaction"] = "leak"
        return columns

    def print(self, title: str, frame: pd.DataFrame) -> None:
        """A table of some sets."""
        kind = "set" if self.found.order > 1 else "feature"
        verdict = f"not {self.section.against}"
        head = [kind, *self.columns, verdict]
        print_table(self.console, title, head, self._lines(frame))

    def _lines(self, frame: pd.DataFrame) -> Iterator[list[str]]:
        names = [f"feature_{k + 1}" for k in range(self.found.order)]
        for row in frame.to_dict("records"):
            numbers = [_number(row[column]) for column in self.columns.values()]
            verdict = "yes" if row["reject"] else "–" if row["used"] else "not used"
            yield [" × ".join(str(row[name]) for name in names), *numbers, verdict]


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.4g}"
