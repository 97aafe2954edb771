"""What limits of LIME print: how they were had, and the coefficients of each row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from propopt.lime import LimeExplanation
from propopt.lime.diagnosis import LimeDiagnosis
from propopt.output.progress import PlainConsole
from propopt.output.terminal import print_table
from propopt.results.conclusions.words import plural


_ROWS, _COLUMNS = 5, 12
"""Shown: the first rows, and of each the columns with the largest coefficients."""


def print_lime(found: LimeExplanation, console: PlainConsole) -> None:
    """How coefficients were had, and a table for each of the first rows."""
    for line in lime_in_words(found):
        console.print(line, markup=False)
    N, _ = found.shape
    for n in range(min(N, _ROWS)):
        _print_row(found, n, console)
    if N > _ROWS:
        console.print()
        console.print(f"{plural(N - _ROWS, 'more row')} in the files", markup=False)


def lime_in_words(found: LimeExplanation) -> Iterator[str]:
    """The law, what is exact, and what a reader has to know."""
    yield found.law_in_words
    if found.is_exact:
        yield "coefficients: exact, for infinitely many samples"
    else:
        yield f"coefficients: {found.source}, as {found.reason}"
    row = " and the row itself as a sample" if found.first_row else ""
    yield (
        f"sd of one run: estimated from {found.runs.n_draws:,} samples a row; mean of "
        f"runs: to the first order in 1/n, with ridge {found.ridge:g}{row}"
    )
    yield from found.notes


def print_diagnosis(diagnosis: LimeDiagnosis, console: PlainConsole) -> None:
    """What coefficients hide, what misleads most first."""
    _, *lines = repr(diagnosis).splitlines()
    console.print()
    console.print("What these coefficients hide", style="italic")
    for line in lines:
        console.print(line, markup=False)


def _print_row(found: LimeExplanation, n: int, console: PlainConsole) -> None:
    names = found.labels.points
    title = (
        f"Row {n if names is None else names[n]}: f {found.values[n]:.4g}, surrogate "
        f"{found.at_row[n]:.4g} with intercept {found.intercept[n]:.4g}; of "
        f"{found.n_samples:,} samples {_share(found.effective_share[n])} count"
    )
    head = ["feature", "bin", "coefficient", "sd of one run", "mean of runs"]
    print_table(console, title, head, _lines(found, n))


def _share(share: float) -> str:
    """Per cent; no 100 % or 0 % of what is neither."""
    if 0.995 <= share < 1.0:
        return "over 99 %"
    return "under 1 %" if 0.0 <= share < 0.005 else f"{100.0 * share:.0f} %"


def _lines(found: LimeExplanation, n: int) -> Iterator[list[str]]:
    """The largest coefficients, with their noise and what runs give in the mean."""
    own, features = found.coefficients[n], found.labels.feature_names(found.shape[1])
    noise, mean = found.noise()[n], found.expected()[n]
    order = np.argsort(-np.abs(own), kind="stable").tolist()
    for j in order[:_COLUMNS]:
        numbers = [f"{x:.4g}" for x in (own[j], noise[j], mean[j])]
        yield [features[j], found.bins[n][j], *numbers]
    if len(order) > _COLUMNS:
        most = np.abs(own[order[_COLUMNS:]]).max()
        most_words = f"≤ {most:.4g}" if most > 0.0 else "0"
        rest = plural(len(order) - _COLUMNS, "other")
        yield [rest, "", most_words, "", ""]
