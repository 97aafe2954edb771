"""Results of audits: findings with verdicts, and the rows that differ most.

Questions stand in the order in which a reviewer would ask them: do rows add up, are
the values right, what would more similar ones cost, what depends on settings. The
distance from the best possible values comes last: exact values are not wrong because
smoother ones exist.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, final, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array, Values
from propopt.base.checks import did_you_mean, read_nonnegative
from propopt.base.declared import field, transient
from propopt.base.document import (
    Bar,
    Bars,
    Block,
    Chapter,
    Document,
    Finding,
    Table,
)
from propopt.base.errors import InvalidInput
from propopt.base.text import percent, plural, printable
from propopt.base.vocabulary import Basis
from propopt.results.explanation import Explanation
from propopt.results.record import Decision, Record
from propopt.results.report.explorer import Explorer, FrontPath
from propopt.results.report.neighbours import Neighbours, named
from propopt.results.report.review_sheet import SIGNATURES, ReviewSheet, record_chapter
from propopt.results.result import Result


Verdict: TypeAlias = Literal["right", "wrong", "depends on settings", "undetermined"]
"""Nothing to do, a mistake with a named cause, another setting, or no answer."""

QUESTIONS: Final[Mapping[str, str]] = {
    "additivity": "Do rows add up?",
    "base": "Which base do they use?",
    "exactness": "Are the values right?",
    "signs": "Are the signs of large values right?",
    "reasons": "Are the first three reasons right?",
    "unused": "Are unused columns zero?",
    "main_effects": "How much of the differences do main effects explain?",
    "predictions": "How much of the differences do predictions require?",
    "more_robust": "At the same distance from exact values, how much more alike?",
    "more_faithful": "Equally alike, how much closer to exact values?",
    "price_of_10": "What does removing 10 % of the removable differences change?",
    "price_of_50": "What does removing 50 % of the removable differences change?",
    "price_of_90": "What does removing 90 % of the removable differences change?",
    "pairs": "Which pairs of rows differ most?",
    "background": "Does the background matter?",
}
"""The question of each finding, by its name, in the order of an audit."""

# largest relative change of a number that is rounded to one digit
_MAX_ROUNDING: Final = 0.05
_PRECISION: Final = 1e-15  # relative rounding of sums in double precision
_SHOWN_AS_ZERO: Final = 1e-6  # numbers of right answers below this are shown as zero
# largest difference of numbers that are computed again after loading
_TOLERANCE: Final = 1e-9
# the part of the removable differences that each of these findings removes
_PRICES: Final = {"price_of_10": "10 %", "price_of_50": "50 %", "price_of_90": "90 %"}
MAX_CAUSES: Final = 10  # number of pairs, and of rows, that an audit lists


@final
@dataclass(frozen=True)
class AuditFinding:
    """The answer of an audit to one question, with a number and a verdict."""

    name: str  # a key of QUESTIONS
    sentence: str
    number: float = field(missing=True)  # NaN if there is none
    unit: str = field()
    verdict: Verdict = field()
    advice: str = ""  # the next step; empty if there is none
    basis: Basis = "computed"
    cause: str = ""  # such as "another background" or "single slips"
    headline: str = ""  # the cause in this table: "One value is wrong"

    @property
    def formatted_number(self) -> str:
        """The number as a table shows it: a percentage, zero, or three digits."""
        if not math.isfinite(self.number):
            return "–"
        if self.unit.startswith("share"):  # shares may be negative
            return f"{'-' if self.number < 0.0 else ''}{percent(abs(self.number))} %"
        if self.verdict == "right" and abs(self.number) < _SHOWN_AS_ZERO:
            return "0"
        return f"{self.number:.3g}"


@final
@dataclass(frozen=True)
class Cause:
    """A pair of rows, or one row, with its share of the removable differences."""

    first: int = field(low=0)
    second: int | None = field(low=0)  # None for a single row
    share: float = field(low=0.0, high=1.0)
    feature: int = field(low=0)  # the column with the largest difference

    @property
    def rows(self) -> list[int]:
        """The positions of the one or two rows in the table."""
        return [self.first, *([] if self.second is None else [self.second])]


@final
class Audit(Result, kind="propopt audit", noun="a saved audit", version=2):
    """Findings on attributions from any source, each with a number and a verdict.

    Made by :func:`propopt.audit`. Verdicts are "right", "wrong", "depends on settings",
    such as another background, and "undetermined". It stores the N × D audited values
    and everything that its sentences refer to.

    Parameters
    ----------
    findings : tuple of AuditFinding
        Answers, in the order of the questions.
    explanation : Explanation
        The audited values W, in the order of the table's rows and columns, with their
        base values, the predictions, the rows and what the model predicts.
    exact : array (N, D) or None
        The exact Shapley values for the background; None if they cannot be computed.
    pairs, rows : tuple of Cause
        The ten pairs and rows with the largest share of the removable differences;
        empty if rows are not compared.
    settings : mapping
        The source of the numbers, the background, the similar rows, the seed.
    record : Record or None
        Date, versions and digests of model and tables.
    tolerance : float or None
        The largest error of a value, and of the sum of a row, with which a row passes;
        see :meth:`to_sign`.
    decision : Decision or None
        The threshold on predictions above which the decision changes.
    front : callable or None
        Makes the trade-off curve of the page from exact values; it is not saved.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> audit = po.audit(X - X.mean(axis=0), lambda X: X.sum(axis=1), X)
    >>> audit["additivity"].verdict, audit["additivity"].sentence
    ('right', 'All 30 rows add up to the prediction minus the base.')
    """

    findings: tuple[AuditFinding, ...] = field(nonempty=True)
    explanation: Explanation = field()
    exact: Array | None = field("N D", default=None)
    pairs: tuple[Cause, ...] = field(default=())
    rows: tuple[Cause, ...] = field(default=())
    settings: Mapping[str, str] = field(factory=dict)
    record: Record | None = field(default=None)
    tolerance: float | None = field(default=None, low=0.0)
    decision: Decision | None = field(default=None)
    front: Callable[[], Any] | None = transient(default=None, compare=False, repr=False)

    rows_are_named = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.explanation.base_value is None or self.explanation.prediction is None:
            raise InvalidInput("explanation: expected base values and predictions")
        shape = self.explanation.shape
        if self.exact is not None and self.exact.shape != shape:
            raise InvalidInput(f"exact: expected shape {shape}, got {self.exact.shape}")

    def validate(self) -> None:
        """Raise an error for unknown checks, and numbers that contradict the arrays."""
        order = [*QUESTIONS]
        names = [x.name for x in self.findings]
        if names != [name for name in order if name in names]:
            raise InvalidInput(
                "findings: expected the checks of an audit in their order, each once"
            )
        W = self.explanation.attributions
        missed = W.sum(axis=1) - (self._prediction - self._base)
        numbers = {"additivity": float(np.abs(missed).max())}
        if self.exact is not None:
            numbers["exactness"] = float(np.abs(W - self.exact).max())
        findings = self._by_name
        for name, number in numbers.items():
            stated = findings[name].number if name in findings else math.nan
            if not math.isclose(stated, number, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
                raise InvalidInput(
                    f"findings: {name} is {stated:.6g}, but arrays give {number:.6g}"
                )
            self._refuse_verdict(findings[name])
        for name, causes, n_rows in (("pairs", self.pairs, 2), ("rows", self.rows, 1)):
            for cause in causes:
                last = max(cause.rows), cause.feature
                if len(cause.rows) != n_rows or (last >= np.array(W.shape)).any():
                    raise InvalidInput(
                        f"{name}: expected the positions of {plural(n_rows, 'row')} "
                        f"below {W.shape[0]} and of a column below {W.shape[1]}, got "
                        f"{cause}"
                    )

    def _refuse_verdict(self, finding: AuditFinding) -> None:
        """Refuse *right* with a large error, and *wrong* with none.

        Right values may be rounded to a single digit.
        """
        W = self.explanation.attributions
        f = self._prediction
        scale = max(float(np.ptp(f)), float(np.abs(W).max()), 1e-12)
        too_large = finding.number > _MAX_ROUNDING * scale * W.shape[1]
        too_small = finding.number < _PRECISION * scale
        if {"right": too_large, "wrong": too_small}.get(finding.verdict, False):
            raise InvalidInput(
                f"findings: the verdict on {finding.name} is {finding.verdict!r}, "
                f"which contradicts an error of {finding.number:.3g} in values up to "
                f"{scale:.3g}"
            )

    def to_sign(
        self,
        *,
        tolerance: float | None = None,
        decision: Decision | float | None = None,
        record: Record | None = None,
    ) -> Audit:
        """A copy with the tolerance and the decision threshold, for a report to sign.

        Parameters
        ----------
        tolerance : float, optional
            The largest error allowed of a value, and of the sum of a row. The page
            shows for each row whether it passes or fails.
        decision : Decision or float, optional
            A threshold on the predictions, in their unit, with a word for either side.
        record : Record, optional
            Date, versions and digests, from ``Record.of(model, X=X)``.

        Returns
        -------
        Audit
            A copy; arguments that are left out keep their value.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> audit = po.audit(X - X.mean(axis=0), lambda X: X.sum(axis=1), X)
        >>> strict = audit.to_sign(tolerance=0.01, decision=0.0)
        >>> strict.tolerance, strict.decision.of(1.0)
        (0.01, 'at or above')
        """
        changed: dict[str, Any] = {"decision": decision, "record": record}
        if tolerance is not None:
            changed["tolerance"] = read_nonnegative(tolerance, "tolerance")
        if decision is not None and not isinstance(decision, Decision):
            changed["decision"] = Decision(float(decision))
        return replace(self, **{k: v for k, v in changed.items() if v is not None})

    def __getitem__(self, name: str) -> AuditFinding:
        """The answer to a question by its name, such as ``audit["additivity"]``."""
        findings = self._by_name
        if name not in findings:
            raise InvalidInput(
                f"audit: there is no {name!r}{did_you_mean(name, [*findings])}; there "
                f"are {', '.join(findings)}"
            )
        return findings[name]

    @property
    def _by_name(self) -> dict[str, AuditFinding]:
        return {x.name: x for x in self.findings}

    @property
    def mistakes(self) -> tuple[AuditFinding, ...]:
        """The findings with the verdict "wrong"."""
        return tuple(x for x in self.findings if x.verdict == "wrong")

    def to_frame(self) -> pd.DataFrame:
        """A table with a row for each check: sentence, number, verdict, advice."""
        columns = ["sentence", "number", "unit", "verdict", "advice", "basis"]
        names = [x.name for x in self.findings]
        lines = [[getattr(x, column) for column in columns] for x in self.findings]
        table = pd.DataFrame(lines, pd.Index(names, name="name"), columns)
        table.insert(0, "question", [QUESTIONS[name] for name in names])
        return table

    def causes_to_frame(self) -> pd.DataFrame:
        """A table of the pairs of similar rows that differ most, then of the rows.

        Columns are ``row``, ``other`` (empty for single rows), ``share`` of the
        removable differences, the ``feature`` with the largest difference, and the
        attribution and the value of both rows in it.
        """
        explanation = self.explanation
        lines = []
        for cause in (*self.pairs, *self.rows):
            j = cause.feature
            line = {"share": cause.share, "feature": self._features[j]}
            for n, ending in zip(cause.rows, ("", "_other"), strict=False):
                line["row" if not ending else "other"] = str(explanation.labels.row(n))
                line[f"attribution{ending}"] = float(explanation.attributions[n, j])
                line[f"value{ending}"] = explanation.value_of(n, j)
            lines.append(line)
        columns = ["row", "other", "share", "feature"]
        columns += ["attribution", "attribution_other", "value", "value_other"]
        return pd.DataFrame(lines, columns=columns)

    def exact_to_frame(self) -> pd.DataFrame:
        """A table of the exact Shapley values and the base value of each row.

        Raises
        ------
        InvalidInput
            If the exact values cannot be computed for this model.
        """
        if self.exact is None:
            raise InvalidInput(
                "audit: exact values are not available, as the model is a black box, "
                "which can only be called"
            )
        base = self._prediction - self.exact.sum(axis=1)
        return self.explanation.labels.frame(self.exact).assign(base_value=base)

    @property
    def _base(self) -> Values:
        assert self.explanation.base_value is not None, "checked in __post_init__"
        return self.explanation.base_value

    @property
    def _prediction(self) -> Values:
        assert self.explanation.prediction is not None, "checked in __post_init__"
        return self.explanation.prediction

    @property
    def _features(self) -> Sequence[Hashable]:
        return self.explanation.labels.feature_names(self.explanation.shape[1])

    # ---- the document

    def document(self) -> Document:
        """The findings of the audit as blocks: next step, errors, differences."""
        N, D = self.explanation.shape
        quantity = self.explanation.quantity
        output = "parts of the output"
        if quantity is not None:
            output = f"contributions to the {quantity.in_words()}"
        bases = Counter(x.basis for x in self.findings)
        counts = [f"{bases[x]} {x}" for x in get_args(Basis)[:-1] if bases[x]]
        return Document(
            title=f"{self._headline}: {output}",
            subtitle=f"{plural(N, 'row')} × {plural(D, 'column')}, "
            f"{self.settings.get('attributions', 'given')}",
            blocks=[*self._sheet.verdict(), *self._summary()],
            trust=[
                Finding(f"all checks: {', '.join(counts)}"),
                Finding("an audit does not show that the model is right", "assumed"),
            ],
            settings=self.settings,
            chapters=self._chapters,
            names=self._features,
        )

    @property
    def _headline(self) -> str:
        """The mistake and how many checks show it, or that nothing is wrong."""
        wrong = self.mistakes
        values = self["exactness"]
        if wrong:
            headline = _MISTAKES.get(wrong[0].name, "Something is wrong")
            if values in wrong and values.headline:
                headline = values.headline
            if len(wrong) == 1:
                return headline
            count = _COUNTS[len(wrong)] if len(wrong) < len(_COUNTS) else len(wrong)
            return f"{headline} ({count} checks show it)"
        open_questions = sum(x.verdict == "undetermined" for x in self.findings)
        more = f", {open_questions} undetermined" if open_questions else ""
        return f"No errors were found{more}"

    def _summary(self) -> Iterator[Finding]:
        """The five answers that a reviewer reads first."""
        findings = self._by_name
        values, sums, base = (findings[x] for x in ("exactness", "additivity", "base"))
        advice = next((x.advice for x in self.findings if x.advice), "Nothing.")
        yield Finding(advice, "assumed", "What to do?")
        headline = values.headline or "Undetermined"
        details = values.sentence.removeprefix(f"{headline}.").strip()
        details = details or findings["signs"].sentence
        yield Finding(details, values.basis, QUESTIONS["exactness"], headline)
        words = sums.sentence
        if base.verdict != "right":
            words += f" {base.sentence}"
        yield Finding(words, sums.basis, QUESTIONS["additivity"], sums.verdict)
        reasons = findings["reasons"]
        yield Finding(reasons.sentence, reasons.basis, "Do the reasons change?")
        similar = findings.get("price_of_50") or findings.get("main_effects")
        words = "Similar rows have no removable differences."
        basis: Basis = "computed"
        if similar is not None:
            words = similar.sentence
            basis = similar.basis
        yield Finding(words, basis, "How much do similar rows differ?")

    def _chapters(self) -> list[Chapter]:
        """The chapters of the page: advice, questions, rows, values, causes, record."""
        digests = {
            f"predictions for {plural(len(self._base), 'row')}": self._prediction,
            "rows, as numbers": self.explanation.points,
            "audited values": self.explanation.attributions,
            "exact values": self.exact,
        }
        return [
            *self._more_advice(),
            self._questions(),
            *self._sheet.chapters(),
            *self._explorers(),
            *self._causes(),
            record_chapter(self.record, digests),
            SIGNATURES,
        ]

    def _more_advice(self) -> Iterator[Chapter]:
        """Every piece of advice but the first, with the question that it belongs to."""
        questions: dict[str, str] = {}
        for x in self.findings:
            if x.advice:
                questions.setdefault(x.advice, QUESTIONS[x.name])
        lines = [[question, advice] for advice, question in questions.items()]
        if lines := lines[1:]:
            table = Table.of(("question", "what to do"), lines)
            yield Chapter("What else to do", [table])

    def _questions(self) -> Chapter:
        """The answers that the summary lacks: mistakes first, right ones in a line."""
        order = get_args(Verdict)
        others = [x for x in self.findings if x.name not in _IN_SUMMARY]
        rest = [x for x in others if x.verdict != "right"]
        rest.sort(key=lambda x: order.index(x.verdict))
        right = [QUESTIONS[x.name] for x in others if x.verdict == "right"]
        blocks: list[Block] = []
        if rest:
            head = ("question", "verdict", "finding", "number", "unit", "rests on")
            fields = ("verdict", "sentence", "formatted_number", "unit", "basis")
            lines = [
                [QUESTIONS[x.name], *(getattr(x, name) for name in fields)]
                for x in rest
            ]
            blocks.append(Table.of(head, lines))
        if right:
            blocks.append(Finding(f"These are right: {' '.join(right)}"))
        if not rest:
            blocks += [Finding(x.sentence, x.basis) for x in others]
        bars = [
            Bar(name=name, value=100.0 * math.sqrt(x.number), note="%", sign="-")
            for name, x in ((_PRICES.get(x.name), x) for x in self.findings)
            if name is not None
        ]
        if bars:
            caption = "Change of the values (root mean square) if a part of the "
            blocks.append(Bars(bars, f"{caption}removable differences is removed"))
        return Chapter("Other questions", blocks)

    def _causes(self) -> Iterator[Chapter]:
        """Tables of the pairs and rows with most of the removable differences."""
        table = self.causes_to_frame()
        table["share"] = [f"{percent(share)} %" for share in table["share"]]
        for ending in ("", "_other"):
            attributions = table[f"attribution{ending}"]
            values = f"value{ending}"
            table[f"attribution{ending}"] = [
                named(attribution, value) if isinstance(value, str) else ""
                for attribution, value in zip(attributions, table[values], strict=True)
            ]
        table = table.drop(columns=["value", "value_other"]).rename(columns=_HEADS)
        of_rows = [*_HEADS.values()][1::3]
        caption = "With the column in which they differ most."
        n = len(self.pairs)
        for noun, part in (
            ("pairs", table[:n]),
            ("rows", table[n:].drop(columns=of_rows).reset_index(drop=True)),
        ):
            if n:
                title = f"The {noun} with most of the removable differences"
                yield Chapter(title, [Table(part, caption)])

    @property
    def _sheet(self) -> ReviewSheet:
        """Every row and every value, compared with the exact ones."""
        return ReviewSheet(
            result=self.explanation,
            noun="audited",
            unit=f"in {self._unit}",
            exact=self.exact,
            base=self._base,
            prediction=self._prediction,
            tolerance=self.tolerance,
            decision=self.decision,
        )

    @property
    def _unit(self) -> str:
        return self.settings.get("unit", "the unit of the output")

    def _explorers(self) -> Iterator[Chapter]:
        """Each row next to the most similar one: as audited, and along the front."""
        similar = Neighbours.by_values(self.explanation)
        first = [*dict.fromkeys(n for pair in self.pairs for n in pair.rows)]
        shared: dict[str, Any] = {"best": self.explanation, "neighbours": similar}
        shared["first_rows"] = first
        yield Explorer(
            title="One row and its most similar row" if similar else "One row",
            lead=f"Bars are the audited values, in {self._unit}.",
            reference=self.exact,
            dashed="" if self.exact is None else "Dashed: exact values.",
            **shared,
        ).chapter()
        if self.front is not None:
            path: FrontPath = self.front()
            yield Explorer(
                title="The same rows, more alike",
                lead=f"Bars show the chosen point of the curve, in {self._unit}.",
                front_path=path,
                **shared,
            ).chapter()

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{x.name} {x.verdict}" for x in self.findings)
        return f"Audit({printable(verdicts)})"


_IN_SUMMARY: Final = ("additivity", "exactness", "reasons", "price_of_50")
"""Questions that the summary answers."""

_COUNTS: Final = (
    *("no", "one", "two", "three", "four", "five"),
    *("six", "seven", "eight", "nine", "ten"),
)

_MISTAKES: Final[Mapping[str, str]] = {
    "additivity": "Rows do not add up",
    "base": "The base is wrong",
    "unused": "Unused columns have values",
}
"""The mistake in a few words, where it is not one of the values."""

_HEADS: Final = {
    "row": "row",
    "other": "other row",
    "share": "share of the removable differences",
    "feature": "mostly in",
    "attribution_other": "attribution of the other",
}
"""Columns of the tables of pairs and rows, as a page names them."""


# ---- Which similar rows have most of the removable differences


def largest_causes(
    edges: NDArray[np.intp],  # (E, 2): each pair of similar rows once
    similarities: Array,  # (E,)
    V: Array,  # (N, D): the removable part of the values
) -> tuple[tuple[Cause, ...], tuple[Cause, ...], Array]:
    """The pairs and rows with most of Σ S ‖v_n − v_n'‖², and all shares of pairs."""
    squares = similarities[:, None] * (V[edges[:, 0]] - V[edges[:, 1]]) ** 2
    total = float(squares.sum()) or 1.0
    shares = squares.sum(axis=1) / total
    pairs = tuple(
        Cause(int(i), int(j), min(float(shares[e]), 1.0), int(squares[e].argmax()))
        for e in np.argsort(-shares, kind="stable")[:MAX_CAUSES].tolist()
        for i, j in edges[[e]]
    )
    by_row = np.zeros(V.shape)
    for end in (0, 1):
        np.add.at(by_row, edges[:, end], 0.5 * squares)
    sums = by_row.sum(axis=1) / total
    rows = tuple(
        Cause(n, None, min(float(sums[n]), 1.0), int(by_row[n].argmax()))
        for n in np.argsort(-sums, kind="stable")[:MAX_CAUSES].tolist()
    )
    return pairs, rows, shares
