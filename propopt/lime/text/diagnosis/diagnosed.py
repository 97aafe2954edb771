"""All rules on all documents of an explanation, as one table."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from propopt.checks import read_count
from propopt.errors import Refused
from propopt.lime.diagnosis.finding import LimeFinding, QuietRule
from propopt.lime.diagnosis.result import LimeDiagnosis
from propopt.lime.diagnosis.rule import Rule, told_by
from propopt.lime.text.diagnosis.case import TextCase
from propopt.lime.text.diagnosis.rules import TEXT_RULES
from propopt.lime.text.diagnosis.seen import SeenWords
from propopt.lime.text.lengthy import announce_norms
from propopt.lime.text.limits import ExactWordLimits
from propopt.lime.text.sampled import SampledWords


if TYPE_CHECKING:
    from propopt.lime.text.explanation.result import TextLimeExplanation


_ROWS: Final = 20
"""Of weights of sizes that the rules have means for, in each document."""


def diagnose_texts(
    explanation: TextLimeExplanation,
    n_samples: int | None = None,
    *,
    rows: Sequence[Hashable] | None = None,
    progress: bool | None = None,
) -> LimeDiagnosis:
    """What these coefficients hide: findings with numbers, what misleads first.

    Words that are one feature of the model, that it does not know or ignores; signs
    that depend on the bandwidth; weights that collapse or leave one word out at a time;
    noise, unstable ranks, ridge and words left out of a run; sums that are not f, and
    what no sample shows.

    Parameters
    ----------
    n_samples : int, optional
        Of the runs that it is about; those of the explanation by default.
    rows : sequence of labels or int, optional
        Only these documents, by their names, or positions where they had no names.
    progress : bool, optional
        Show a bar; by default only on a terminal. Sums behind a norm take some
        20 Q d² steps for each document, 0.2 s for 150 words, which is said before where
        it is long.

    Returns
    -------
    LimeDiagnosis
        Its columns are the words of all documents.

    Raises
    ------
    InvalidInput
        If there is no such document.
    Refused
        If the explanation was loaded, or LIME says nothing of any of the documents.
    """
    if rows is not None:
        explanation = explanation.of_rows(rows)
    n = explanation.n_samples if n_samples is None else n_samples
    cases = _cases(explanation, read_count(n, "n_samples"))
    if not cases:
        raise Refused("diagnose: LIME says nothing of these documents")
    functions = [case.function for case in cases.values() if not case.is_long]
    announce_norms("diagnosis", functions, _ROWS, wanted=progress)
    place = {word: j for j, word in enumerate(explanation.vocabulary)}
    told = told_by(TEXT_RULES, lambda rule: _of_rule(rule, cases, place), progress)
    source = " and ".join(dict.fromkeys(explanation.sources))
    return LimeDiagnosis.of_told(told, explanation, n, source)


def _cases(explanation: TextLimeExplanation, n_samples: int) -> dict[int, TextCase]:
    """The documents that LIME says something of."""
    subject = explanation.asked("diagnose")
    vectorisers = subject.function.vectorisers
    found = {}
    for n, (row, means) in enumerate(zip(explanation.rows, subject.means, strict=True)):
        if means is not None:
            seen = SeenWords.of(vectorisers, row.document) if vectorisers else None
            if isinstance(means, SampledWords):
                function, at = None, means.at
            else:
                function, at = means, ExactWordLimits(means).at
            found[n] = TextCase(row, function, at, explanation.law, seen, n_samples)
    return found


def _of_rule(
    rule: Rule[TextCase], cases: dict[int, TextCase], place: dict[str, int]
) -> list[LimeFinding | QuietRule]:
    """What one rule finds in all documents; else where it was nearest."""
    told = [_placed(item, n, cases[n], place) for n, item in _items(rule, cases)]
    sign = -1.0 if rule.below else 1.0
    near = [-np.inf if np.isnan(item.number) else sign * item.number for item in told]
    worst = told[int(np.argmax(near))]
    findings = [item for item in told if isinstance(item, LimeFinding)]
    if len(findings) > 1 and not rule.per_row:
        # it depends on the law and the number of words alone
        several = f"so it is of {len(findings)} of {len(cases)} documents"
        return [replace(worst, row=None, sentence=f"{worst.sentence}; {several}")]
    return [*findings] or [worst]


def _items(
    rule: Rule[TextCase], cases: dict[int, TextCase]
) -> Iterator[tuple[int, LimeFinding | QuietRule]]:
    for n, case in cases.items():
        for item in rule.findings(case):
            yield n, item


def _placed(
    item: LimeFinding | QuietRule, n: int, case: TextCase, place: dict[str, int]
) -> LimeFinding | QuietRule:
    """An item about one document, at its place among all documents and words."""
    column = None if item.column is None else place[case.words[item.column]]
    return replace(item, row=n, column=column)
