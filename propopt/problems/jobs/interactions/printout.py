"""What interactions print: how they were had, and the strongest sets of features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pandas as pd

from propopt.interactions import ILOCO, InteractionScores
from propopt.output.progress import PlainConsole
from propopt.output.terminal import print_table
from propopt.problems.jobs.interactions.judged import Judged
from propopt.problems.jobs.interactions.section import InteractionsSection
from propopt.problems.jobs.printout import settings_in_words


_SHOWN: Final = 10
"""Sets in the printout, those that matter most."""


def print_interactions(
    section: InteractionsSection, fitted: ILOCO, judged: Judged, console: PlainConsole
) -> None:
    """How scores were had, and the strongest sets and features."""
    console.print(f"iLOCO by {settings_in_words(section.scheme)}", markup=False)
    console.print(judged.in_words(), markup=False)
    for note in fitted.result_.notes:
        console.print(note, markup=False)
    _print_scores("Largest scores", fitted.result_, console)
    _print_scores("Features by themselves", fitted.main_effects_, console)


def _print_scores(title: str, found: InteractionScores, console: PlainConsole) -> None:
    frame = found.to_frame().nlargest(_SHOWN, "estimate")
    head = ["features", "score", "se", "se of patches"]
    print_table(console, title, head, _lines(frame, found.order))


def _lines(frame: pd.DataFrame, order: int) -> Iterator[list[str]]:
    names = [f"feature_{k + 1}" for k in range(order)]
    for _, row in frame.iterrows():
        numbers = [f"{row[c]:.4g}" for c in ("estimate", "se", "se_mc")]
        yield [", ".join(str(row[name]) for name in names), *numbers]
