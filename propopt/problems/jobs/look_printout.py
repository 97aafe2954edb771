"""What one explanation prints: its units in words, how it was made, what matters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from propopt.output.gaps import gap_in_words
from propopt.output.html import explanation_card
from propopt.output.progress import PlainConsole
from propopt.output.terminal import print_table
from propopt.output.text import printable
from propopt.problems.subject.subject import Subject
from propopt.results.explanation import Explanation


_SHOWN = 12
"""Features in the printout, those that matter most."""


def print_look(best: Explanation, subject: Subject, console: PlainConsole) -> None:
    """How an explanation was made, and the features that matter most."""
    for name, value in best.parameters.items():
        console.print(f"{name}: {value}", markup=False)
    losses = ", ".join(f"{name} {value:.4g}" for name, value in best.losses.items())
    console.print(f"{losses}; {gap_in_words(best)}", markup=False)
    for line in (*_shares_in_words(best), *_parts_in_words(best)):
        console.print(line, markup=False)
    words = printable(attributions_in_words(best, subject))
    console.print(f"attributions: {words}", markup=False)
    console.print()
    card = explanation_card(best, _SHOWN)
    if subject.is_text:
        _print_words(best, subject, console)
        console.print()
        card = replace(card, rows=())
    console.print(card.text(), markup=False)


def attributions_in_words(best: Explanation, subject: Subject) -> str:
    """What attributions are, as a phrase."""
    if "base_value" in best.details:
        return f"{best.units_in_words}; every row adds up to f(x) − base"
    if subject.is_text:
        return best.units_in_words.replace("feature", "word")
    if subject.columns is None:
        return best.units_in_words
    return f"{best.units_in_words}; of a category or a missing number its effect"


def output_parts(best: Explanation) -> dict[str, Any]:
    """The base, and the range of predictions, of attributions that add up to them."""
    if best.units != "output" or "base_value" not in best.details:
        return {}
    bases, values = (np.asarray(best.details[n]) for n in ("base_value", "prediction"))
    return {
        "base_value": float(bases[0]) if np.ptp(bases) == 0.0 else bases.tolist(),
        "prediction": values.tolist(),
        "completeness_gap": float(np.abs(best.details["completeness_gap"]).max()),
    }


def _shares_in_words(best: Explanation) -> list[str]:
    """How much of each loss is kept or removed, where the objective is known."""
    if best.program is None:
        return ["shares: not computed: optimized in the metric of effects"]
    return list(best.shares().in_words())


def _parts_in_words(best: Explanation) -> Iterator[str]:
    """Base and predictions, and how far rows are from adding up."""
    parts = output_parts(best)
    if parts:
        bases, values = np.atleast_1d(parts["base_value"]), parts["prediction"]
        yield (
            f"base {_range(bases)}, predictions {_range(values)}; rows add up to the "
            f"difference within {parts['completeness_gap']:.0e}"
        )


def _range(values: Any) -> str:
    low, high = f"{np.min(values):.4g}", f"{np.max(values):.4g}"
    return low if low == high else f"{low} to {high}"


def _print_words(best: Explanation, subject: Subject, console: PlainConsole) -> None:
    """Words that many documents have, or that matter much, by their total size."""
    W = best.to_frame()
    totals = np.abs(W).sum().sort_values(ascending=False)[:_SHOWN]
    times = pd.Series((subject.table > 0.0).sum(axis=0), index=W.columns)
    rows = [
        [str(name), str(times[name]), f"{W[name].sum() / times[name]:.4g}"]
        for name in totals.index
    ]
    title = "Words by the total size of their attributions"
    head = ["word", "documents", "mean where it stands"]
    print_table(console, title, head, rows)
