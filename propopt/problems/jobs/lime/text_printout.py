"""What limits of LIME on documents print: each text, and the words that matter most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from propopt.lime import TextLimeExplanation
from propopt.output.progress import PlainConsole
from propopt.output.terminal import print_table
from propopt.results.conclusions.words import plural
from propopt.tables.names import listed


_DOCUMENTS, _WORDS, _CHARACTERS = 5, 12, 400
"""Shown: the first documents, how they begin, and the largest coefficients of each."""


def print_texts(found: TextLimeExplanation, console: PlainConsole) -> None:
    """How coefficients were had, and text and table of each of the first documents."""
    for line in texts_in_words(found):
        console.print(line)
    N = len(found.rows)
    for n in range(min(N, _DOCUMENTS)):
        _print_document(found, n, console)
    if N > _DOCUMENTS:
        console.print()
        console.print(f"{plural(N - _DOCUMENTS, 'more document')} in the files")


def texts_in_words(found: TextLimeExplanation) -> Iterator[str]:
    """The law, what is exact, and what a reader has to know."""
    yield found.law_in_words
    kinds = list(zip(found.sources, found.reasons, strict=True))
    for source, reason in dict.fromkeys(kinds):
        some = [n for n, kind in enumerate(kinds) if kind == (source, reason)]
        names = [found.document_names[n] for n in some]
        whose = "" if len(names) == len(kinds) else f" of {listed(names)}"
        why = f", as {reason}" if reason else ", for infinitely many samples"
        if found.rows[some[0]].is_known:
            yield f"coefficients{whose}: {source}{why}"
    yield (
        f"runs: of {found.n_samples:,} samples, with ridge 1 and the document itself "
        "as a sample, as in the package"
    )
    yield from found.notes


def _print_document(found: TextLimeExplanation, n: int, console: PlainConsole) -> None:
    row, text = found.rows[n], " ".join(found.rows[n].document.text.split())
    facts = f"Document {found.document_names[n]}: f {row.value:.4g}"
    if row.is_known:
        facts += f", surrogate {row.at_row:.4g} with intercept {row.intercept:.4g}"
    title = f"{facts}\n{text[:_CHARACTERS]}{'…' if len(text) > _CHARACTERS else ''}"
    if not row.is_known:
        console.print(f"\n{title}\n{row.reason}")
        return
    head = ["word", "times", "coefficient", "sd of one run", "mean of runs"]
    if not row.is_exact:
        head.append("standard error")
    lines = (line[: len(head)] for line in _lines(found, n))
    print_table(console, title, head, lines)


_ROUNDING: Final = 1e-12
"""Of the largest coefficient: what is smaller is zero to a reader."""


def _lines(found: TextLimeExplanation, n: int) -> Iterator[list[str]]:
    """The largest coefficients, their noise, the mean of runs, their errors."""
    row, noise, mean = found.rows[n], found.noise()[n], found.expected()[n]
    own, counts = row.coefficients, row.document.counts
    own = np.where(np.abs(own) > _ROUNDING * np.abs(own).max(), own, 0.0)
    order = np.argsort(-np.abs(own), kind="stable").tolist()
    for j in order[:_WORDS]:
        numbers = [f"{x:.4g}" for x in (own[j], noise[j], mean[j])]
        yield [row.words[j], str(counts[j]), *numbers, f"{row.errors[j]:.2g}"]
    if len(order) > _WORDS:
        most = np.abs(own[order[_WORDS:]]).max()
        most_words = f"≤ {most:.4g}" if most > 0.0 else "0"
        rest = plural(len(order) - _WORDS, "other")
        yield [rest, "", most_words, "", "", ""]
