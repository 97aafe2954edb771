"""What is shown of LIME on texts: one line, and highlighted words for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from propopt.lime.explanation.words import ROWS_SHOWN
from propopt.lime.text.explanation.row import DocumentLimits
from propopt.output.highlighting import HighlightedText, MarkedText, highlighted
from propopt.output.text import printable
from propopt.results.conclusions.words import plural
from propopt.tables.text import Document


if TYPE_CHECKING:
    from propopt.lime.text.explanation.result import TextLimeExplanation


def words_text(explanation: TextLimeExplanation) -> str:
    """One line."""
    facts = "; ".join(map(printable, words_claims(explanation)))
    return f"TextLimeExplanation({words_size(explanation)}; {facts})"


def words_html(explanation: TextLimeExplanation) -> str:
    """The first documents with their words highlighted, and tables of the numbers."""
    N = len(explanation.rows)
    facts = [*words_claims(explanation), *explanation.notes]
    if N > ROWS_SHOWN:
        facts.append(f"{plural(N - ROWS_SHOWN, 'more document')} not shown")
    shown = range(min(N, ROWS_SHOWN))
    return highlighted_rows(explanation, shown, facts=facts).html


def highlighted_rows(
    explanation: TextLimeExplanation,
    rows: Sequence[int],
    facts: Sequence[str] | None = None,
    n_words: int = 10,
) -> HighlightedText:
    """Documents with their words in shades, on one scale, and tables of the numbers.

    Parameters
    ----------
    explanation : TextLimeExplanation
        Of the documents.
    rows : sequence of int
        Their positions.
    facts : sequence of str, optional
        What is said of all, a line each.
    n_words : int
        How many numbers are listed below each text.
    """
    return highlighted(
        [_marked(explanation, n) for n in rows],
        f"LIME on texts, its limits: {words_size(explanation)}",
        explanation.units,
        list(words_claims(explanation)) if facts is None else facts,
        n_words,
    )


def words_size(explanation: TextLimeExplanation) -> str:
    """Documents and words."""
    N, V = explanation.shape
    return f"{plural(N, 'document')}, {plural(V, 'word')}"


def words_claims(explanation: TextLimeExplanation) -> Iterator[str]:
    """What is proved, what is estimated, the units and the law."""
    rows = explanation.rows
    exact = sum(row.is_exact for row in rows)
    if exact == len(rows):
        yield "coefficients exact, without samples or a seed"
    elif exact:
        yield f"coefficients exact in {exact} of {plural(len(rows), 'document')}"
    estimated = [row for row in rows if row.is_known and not row.is_exact]
    if estimated:
        largest = max(float(np.max(row.errors)) for row in estimated)
        yield (
            f"coefficients of {plural(len(estimated), 'document')} estimated, standard "
            f"errors up to {largest:.2g}, {explanation.evaluations:,} evaluations; not "
            f"exact because {_reasons(estimated)}"
        )
    yield f"in {explanation.units}"
    yield explanation.law_in_words


def _reasons(rows: Sequence[DocumentLimits]) -> str:
    reasons = list(dict.fromkeys(row.reason for row in rows))
    more = f" (and {len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}"


def _marked(explanation: TextLimeExplanation, n: int) -> MarkedText:
    row = explanation.rows[n]
    facts = [f"f = {row.value:.4g}"]
    if row.is_known:
        facts[0] += f", surrogate {row.at_row:.4g}, intercept {row.intercept:.4g}"
        facts.append(row.source)
    else:
        facts.append(f"no coefficients: {row.reason}")
    return MarkedText(
        name=f"document {explanation.document_names[n]}",
        facts=tuple(facts),
        text=row.document.text,
        spans=spans_of(row.document),
        words=row.words,
        weights=row.coefficients,
        errors=row.standard_errors,
    )


def spans_of(document: Document) -> list[tuple[int, int, int]]:
    """Where words stand, and which of the words each is."""
    return [
        (found.start, found.end, place)
        for found, place in zip(
            document.occurrences, document.places.tolist(), strict=True
        )
    ]
