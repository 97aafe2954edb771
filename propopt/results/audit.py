"""An audit: what was asked of attributions, in which order, and what was found.

The order is that of somebody who has to sign: do they add up, whose base is it, are
they right, what would more alike ones cost, what causes that, what depends on a choice.
How far they are from the best possible comes last: of values that are exact it says
nothing, and much of what similar rows differ in is what their main effects explain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array, Values
from propopt.base.checks import did_you_mean, read_nonnegative
from propopt.base.declared import field, transient
from propopt.base.document import (
    Bar,
    Bars,
    Basis,
    Block,
    Chapter,
    Document,
    Finding,
    Table,
)
from propopt.base.errors import InvalidInput
from propopt.base.text import percent, plural, printable
from propopt.results.explanation import Explanation
from propopt.results.record import Decision, Record
from propopt.results.report.explorer import Explorer, FrontPath
from propopt.results.report.neighbours import Neighbours, named
from propopt.results.report.review_sheet import SIGNATURES, ReviewSheet, record_chapter
from propopt.results.result import Result


Verdict: TypeAlias = Literal["right", "wrong", "depends on settings", "undetermined"]
"""Of an answer: nothing to do, a mistake with a cause, another setting, no answer."""

_ONE_DIGIT: Final = 0.05
"""Of a number, what rounding to one digit moves at most."""

_ROUNDING: Final = 1e-15
"""Of the largest number."""

QUESTIONS: Final[Mapping[str, str]] = {
    "additivity": "Do they add up?",
    "base": "Whose base is it?",
    "exactness": "Are they right?",
    "signs": "Are large values of the right sign?",
    "reasons": "Are the first three reasons right?",
    "unused": "Do unused columns get nothing?",
    "main_effects": "How much follows from main effects?",
    "predictions": "How much do predictions need?",
    "more_alike": "As near to exact, how much more alike?",
    "nearer": "As alike, how much nearer to exact?",
    "price_of_10": "Price of 10 % less roughness",
    "price_of_50": "Price of 50 % less roughness",
    "price_of_90": "Price of 90 % less roughness",
    "pairs": "Which pairs cause most?",
    "background": "Does the background matter?",
}
"""By name each question, in the order of an audit."""

_NOTHING: Final = 1e-6
"""A number that is right and smaller is shown as zero."""

_ALIKE: Final = 1e-9
"""Of sums that are computed again after loading."""


@final
@dataclass(frozen=True)
class AuditFinding:
    """The answer to one question."""

    name: str  # of the question
    sentence: str  # what was found, in words
    number: float = field(missing=True)  # NaN where there is none
    unit: str = field()  # what the number is of
    verdict: Verdict = field()
    advice: str = ""  # what to do; empty where nothing is
    standing: Basis = "checked"  # what it rests on
    cause: str = ""  # of the values: such as "another background", "single slips"
    headline: str = ""  # the same in a few words: "One value is wrong"

    @property
    def shown(self) -> str:
        """The number with its unit, as a table shows it."""
        if not math.isfinite(self.number):
            return "–"
        if self.unit.startswith("share"):  # which may be negative
            return f"{'-' if self.number < 0.0 else ''}{percent(abs(self.number))} %"
        if self.verdict == "right" and abs(self.number) < _NOTHING:
            return "0"  # but for rounding
        return f"{self.number:.3g}"


@final
@dataclass(frozen=True)
class Cause:
    """A pair of rows, or one row, and its share of the roughness that could go."""

    first: int = field(low=0)
    second: int | None = field(low=0)  # None of one row
    share: float = field(low=0.0, high=1.0)
    feature: int = field(low=0)  # the column in which it differs most

    @property
    def ends(self) -> list[int]:
        """The rows."""
        return [self.first, *([] if self.second is None else [self.second])]


@final
class Audit(Result, kind="propopt audit", noun="a saved audit", version=2):
    """What was asked of attributions from anywhere, with a verdict for each answer.

    Made by :func:`propopt.audit`. Verdicts are "right", "wrong", "depends on settings",
    such as another background, and "undetermined"; each has a number with its unit, and
    the next step. Of the rows W (N, D) it keeps all that its sentences are of.

    Parameters
    ----------
    findings : tuple of AuditFinding
        Answers, in the order of the questions.
    explanation : Explanation
        W as they came, in the order of the table's rows and columns, with their base
        values, the predictions, the rows themselves, and what the model predicts.
    exact : array (N, D) or None
        The exact Shapley values for the background; None where the model is not read.
    pairs, rows : tuple of Cause
        The ten that cause most of what could go; none where rows are not compared.
    settings : mapping
        Where the numbers came from, the background, the neighbours, the seed.
    record : Record or None
        Date, versions and digests of model and tables.
    tolerance : float or None
        By how much a value may differ from the exact one, and a sum from the
        prediction, for a row to pass; see :meth:`to_sign`.
    decision : Decision or None
        The threshold on predictions from which the decision is another.
    front : callable or None
        Makes what the page shows of the exact front; files leave it out.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.explanation.base_value is None or self.explanation.prediction is None:
            raise InvalidInput("explanation: expected base values and predictions")
        shape = self.explanation.shape
        if self.exact is not None and self.exact.shape != shape:
            raise InvalidInput(f"exact: expected shape {shape}, got {self.exact.shape}")

    def validate(self) -> None:
        """Refuse other questions, other sums than are told, and rows not there."""
        known = {name: place for place, name in enumerate(QUESTIONS)}
        names = [finding.name for finding in self.findings]
        places = [known.get(name, -1) for name in names]
        if min(places) < 0 or sorted(set(places)) != places:
            raise InvalidInput(
                "findings: expected known questions, in order, each once"
            )
        told = {x.name: x.number for x in self.findings}
        for name, number in self._again().items():
            here = told.get(name, math.nan)
            if not math.isclose(here, number, rel_tol=_ALIKE, abs_tol=_ALIKE):
                raise InvalidInput(
                    f"findings: {name} is {here:.6g}, and its arrays say {number:.6g}"
                )
            if name == "additivity" or self.exact is not None:
                self._refuse_verdict(next(x for x in self.findings if x.name == name))
        N, D = self.explanation.shape
        for cause in (*self.pairs, *self.rows):
            if max(cause.first, cause.second or 0) >= N or cause.feature >= D:
                raise InvalidInput(f"pairs, rows: expected places in {N} × {D}")
        if any(cause.second is None for cause in self.pairs):
            raise InvalidInput("pairs: expected two rows of each")
        if any(cause.second is not None for cause in self.rows):
            raise InvalidInput("rows: expected one row of each")

    def _refuse_verdict(self, found: AuditFinding) -> None:
        """Refuse *right* beside a large error, and *wrong* beside none.

        What is right may miss by the rounding of numbers with a single digit.
        """
        W, f = self.explanation.attributions, self._prediction
        scale = max(float(np.ptp(f)), float(np.abs(W).max()), 1e-12)
        most = _ONE_DIGIT * scale * W.shape[1]
        is_right = found.verdict == "right"
        if (is_right and found.number > most) or (
            found.verdict == "wrong" and found.number < _ROUNDING * scale
        ):
            raise InvalidInput(
                f"findings: {found.name} is said to be {found.verdict}, and its number "
                f"is {found.number:.3g} of values up to {scale:.3g}"
            )

    def _again(self) -> dict[str, float]:
        """Numbers that follow from the arrays."""
        W = self.explanation.attributions
        missed = W.sum(axis=1) - (self._prediction - self._base)
        known = {"additivity": float(np.abs(missed).max())}
        if self.exact is not None:
            known["exactness"] = float(np.abs(W - self.exact).max())
        return known

    def to_sign(
        self,
        *,
        tolerance: float | None = None,
        decision: Decision | float | None = None,
        record: Record | None = None,
    ) -> Audit:
        """The same audit with what whoever signs the page sets.

        Parameters
        ----------
        tolerance : float, optional
            The page says of each row whether every value is as near to the exact one,
            and their sum to the prediction: pass or fail.
        decision : Decision or float, optional
            A threshold on the predictions, in their unit, with a word for either side.
        record : Record, optional
            Date, versions and digests, from ``Record.of(model, X=X)``.

        Returns
        -------
        Audit
            A copy; what is not given stays as it is.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> audit = po.audit(X - X.mean(axis=0), lambda X: X.sum(axis=1), X)
        >>> strict = audit.to_sign(tolerance=0.01, decision=0.0)
        >>> strict.tolerance, strict.decision.of(1.0)
        (0.01, 'at or above')
        """
        changed: dict[str, Any] = {}
        if tolerance is not None:
            changed["tolerance"] = read_nonnegative(tolerance, "tolerance")
        if decision is not None:
            if not isinstance(decision, Decision):
                decision = Decision(float(decision))
            changed["decision"] = decision
        if record is not None:
            changed["record"] = record
        return replace(self, **changed)

    def __getitem__(self, name: str) -> AuditFinding:
        """The answer to a question, by its name, such as ``audit["additivity"]``."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        known = [finding.name for finding in self.findings]
        raise InvalidInput(
            f"audit: there is no {name!r}{did_you_mean(name, known)}; there are "
            f"{', '.join(known)}"
        )

    @property
    def mistakes(self) -> tuple[AuditFinding, ...]:
        """Answers that are wrong."""
        return tuple(x for x in self.findings if x.verdict == "wrong")

    def to_frame(self) -> pd.DataFrame:
        """A row for each question: what was found, number, unit, verdict, advice."""
        rows = [
            (
                QUESTIONS[x.name],
                x.sentence,
                x.number,
                x.unit,
                x.verdict,
                x.advice,
                x.standing,
            )
            for x in self.findings
        ]
        index = pd.Index([x.name for x in self.findings], name="name")
        return pd.DataFrame(rows, index=index, columns=_COLUMNS)

    rows_are_named = True

    def causes_to_frame(self) -> pd.DataFrame:
        """The pairs, then the rows that cause most, with names and values.

        Columns are ``row``, ``other`` (empty of single rows), ``share`` of the
        roughness that could go, the ``feature`` that differs most, and of both rows
        the attribution and the value there.
        """
        own, names = self.explanation, self._features
        table = []
        for cause in (*self.pairs, *self.rows):
            ends = cause.ends
            cells: list[Any] = [str(own.labels.row(n)) for n in ends]
            numbers = [float(own.attributions[n, cause.feature]) for n in ends]
            values = [own.value_of(n, cause.feature) for n in ends]
            pad: list[Any] = [None] * (2 - len(ends))
            blank = [math.nan] * (2 - len(ends))
            head = [*cells, *pad, cause.share, names[cause.feature]]
            table.append([*head, *numbers, *blank, *values, *pad])
        columns = ["row", "other", "share", "feature"]
        columns += ["attribution", "attribution_other", "value", "value_other"]
        return pd.DataFrame(table, columns=columns)

    def exact_to_frame(self) -> pd.DataFrame:
        """The exact values and their base, a row for each row, as they are audited.

        Raises
        ------
        InvalidInput
            If exact values are not known.
        """
        if self.exact is None:
            raise InvalidInput("audit: exact values are not known")
        base = self._prediction - self.exact.sum(axis=1)
        return self.explanation.labels.frame(self.exact).assign(base_value=base)

    @property
    def _base(self) -> Values:
        assert self.explanation.base_value is not None, "checked when it was made"
        return self.explanation.base_value

    @property
    def _prediction(self) -> Values:
        assert self.explanation.prediction is not None, "checked when it was made"
        return self.explanation.prediction

    @property
    def _features(self) -> Sequence[Hashable]:
        return self.explanation.labels.feature_names(self.explanation.shape[1])

    def document(self) -> Document:
        """What to do, whether values are right and add up, what could be more alike."""
        N, D = self.explanation.shape
        return Document(
            title=f"{self._found}: {self._what}",
            subtitle=f"{plural(N, 'row')} × {plural(D, 'column')}, "
            f"{self.settings.get('attributions', 'given')}",
            blocks=[*self._sheet.verdict(), *self._in_short()],
            trust=[
                Finding(_standings(self.findings)),
                Finding("nothing says that the model is right", "not said"),
            ],
            settings=self.settings,
            chapters=self._chapters,
            names=self._features,
        )

    def _in_short(self) -> Iterator[Finding]:
        """What somebody who signs reads first."""
        known = {x.name: x for x in self.findings}
        values, sums, base = known["exactness"], known["additivity"], known["base"]
        words = sums.sentence
        if base.verdict != "right":
            words += f" {base.sentence}"
        headline = values.headline or "Undetermined"
        rest = values.sentence.removeprefix(f"{headline}.").strip()
        differs = rest or known["signs"].sentence
        todo = dict.fromkeys(x.advice for x in self.findings if x.advice)
        first = next(iter(todo), "Nothing.")
        yield Finding(first, "chosen", "What to do?")
        yield Finding(differs, values.standing, "Are they right?", headline)
        yield Finding(words, sums.standing, "Do they add up?", sums.verdict)
        reasons = known["reasons"]
        asked = "Who would get another reason?"
        yield Finding(reasons.sentence, reasons.standing, asked)
        asked = "What could be more alike?"
        alike = known.get("price_of_50") or known.get("main_effects")
        if alike is not None:
            yield Finding(alike.sentence, alike.standing, asked)
        else:
            words = "Similar rows differ in nothing that could be avoided."
            yield Finding(words, "checked", asked)

    def _chapters(self) -> list[Chapter]:
        """What to do, every question, every row and value, who causes what could go."""
        N, told = self.explanation.shape[0], self._sheet.chapters()
        digests = {
            f"answers of the model in {plural(N, 'row')}": self._prediction,
            "rows, as numbers": self.explanation.points,
            "audited values": self.explanation.attributions,
            "exact values": self.exact,
        }
        return [
            *self._todo(),
            self._questions(),
            *told,
            *self._rows(),
            *self._causes(),
            record_chapter(self.record, digests),
            SIGNATURES,
        ]

    def _todo(self) -> Iterator[Chapter]:
        """What else to do, in the order of the questions."""
        advised = {x.advice: x.name for x in reversed(self.findings) if x.advice}
        lines = [[QUESTIONS[name], advice] for advice, name in advised.items()][::-1]
        if lines := lines[1:]:
            yield Chapter(
                "What else to do", [Table.of(("question", "what to do"), lines)]
            )

    def _questions(self) -> Chapter:
        """Every answer that is not right, mistakes first; right ones in one line."""
        order = ("wrong", "depends on settings", "undetermined")
        others = [x for x in self.findings if x.name not in _IN_SHORT]
        rest = [x for x in others if x.verdict != "right"]
        rest.sort(key=lambda x: order.index(x.verdict))
        right = [QUESTIONS[x.name] for x in others if x.verdict == "right"]
        blocks: list[Block] = []
        if rest:
            lines = [
                [QUESTIONS[x.name], x.verdict, x.sentence, x.shown, x.unit, x.standing]
                for x in rest
            ]
            blocks.append(Table.of(_SHOWN, lines))
        if right:
            blocks.append(Finding(f"These are right: {' '.join(right)}"))
        told = (x for x in others if x.verdict == "right" and not rest)
        blocks += [Finding(x.sentence, x.standing) for x in told]
        return Chapter("Other questions", [*blocks, *_prices(self.findings)])

    def _causes(self) -> Iterator[Chapter]:
        """The pairs and rows of most of what could go."""
        if not self.pairs:
            return
        caption = "With the column in which they differ most."
        for noun, causes in (("pairs", self.pairs), ("rows", self.rows)):
            title = f"The {noun} that cause most of what could go"
            yield Chapter(title, [Table(self._shown_causes(causes), caption)])

    @property
    def _sheet(self) -> ReviewSheet:
        """Every row and every value beside the exact one."""
        return ReviewSheet(
            result=self.explanation,
            noun="audited",
            unit=self._unit,
            exact=self.exact,
            base=self._base,
            prediction=self._prediction,
            tolerance=self.tolerance,
            decision=self.decision,
        )

    @property
    def _unit(self) -> str:
        """In which unit the numbers are."""
        return f"in {self.settings.get('unit', 'the unit of the output')}"

    def _rows(self) -> Iterator[Chapter]:
        """Rows beside the most similar: as they came, and along the exact front."""
        near = Neighbours.by_values(self.explanation)
        title = "One row, and the most similar one" if near else "One row"
        unit = self.settings.get("unit", "the unit of the output")
        ends = [n for x in self.pairs for n in x.ends]
        shown = partial(
            Explorer,
            best=self.explanation,
            neighbours=near,
            first_rows=[*dict.fromkeys(ends)],
        )
        exact = "" if self.exact is None else "Dashed: exact values."
        lead = f"Bars are the numbers as they came, in {unit}."
        both = {"reference": self.exact, "dashed": exact}
        yield shown(title=title, lead=lead, **both).chapter()
        if self.front is not None:
            trail: FrontPath = self.front()
            title = "The same rows, more alike"
            lead = f"Bars are those of the chosen point of the curve, in {unit}."
            yield shown(title=title, lead=lead, front_path=trail).chapter()

    def _shown_causes(self, causes: Sequence[Cause]) -> pd.DataFrame:
        """Pairs, or rows, with their shares, as a reader sees them."""
        own, names, lines = self.explanation, self._features, []
        for cause in causes:
            ends = cause.ends
            j = cause.feature
            told = [named(own.attributions[n, j], own.value_of(n, j)) for n in ends]
            lines.append(
                {
                    "rows" if len(ends) > 1 else "row": " and ".join(
                        str(own.labels.row(n)) for n in ends
                    ),
                    "share of what could go": f"{percent(cause.share)} %",
                    "most in": names[j],
                    **dict(zip(("attribution", "of the other"), told, strict=False)),
                }
            )
        return pd.DataFrame(lines)

    @property
    def _found(self) -> str:
        """What is wrong and how many checks show it, or else what is undetermined."""
        wrong, values = self.mistakes, self["exactness"]
        if wrong:
            headline = _WRONG.get(wrong[0].name, "Something is wrong")
            if values in wrong and values.headline:
                headline = values.headline
            count = _COUNTS[len(wrong)] if len(wrong) < len(_COUNTS) else len(wrong)
            checks = "check shows" if len(wrong) == 1 else "checks show"
            return f"{headline} ({count} {checks} it)"
        unknown = sum(x.verdict == "undetermined" for x in self.findings)
        told = f", {unknown} undetermined" if unknown else ""
        return f"Nothing is wrong{told}"

    @property
    def _what(self) -> str:
        quantity = self.explanation.quantity
        if quantity is None:
            return "parts of the output"
        return f"contributions to the {quantity.in_words()}"

    def __repr__(self) -> str:
        told = ", ".join(f"{x.name} {x.verdict}" for x in self.findings)
        return f"Audit({printable(told)})"


_IN_SHORT: Final = ("additivity", "exactness", "reasons", "price_of_50")
"""Questions that are answered at the top."""

_COUNTS: Final = (
    *("no", "one", "two", "three", "four", "five"),
    *("six", "seven", "eight", "nine", "ten"),
)

_WRONG: Final[Mapping[str, str]] = {
    "additivity": "Rows do not add up",
    "base": "The base is wrong",
    "unused": "Unused columns have values",
}
"""In a few words what is wrong of values that are not."""

_SHOWN: Final = (
    *("question", "verdict", "what was found"),
    *("number", "unit", "rests on"),
)

_COLUMNS: Final = [
    *("question", "sentence", "number", "unit"),
    *("verdict", "advice", "standing"),
]


_PRICES: Final = {"price_of_10": "10 %", "price_of_50": "50 %", "price_of_90": "90 %"}
"""Answers that are drawn beside each other, and how much each removes."""


def _prices(findings: Sequence[AuditFinding]) -> Iterator[Bars]:
    """What it costs to remove little, half and nearly all."""
    rows = [
        Bar(
            name=_PRICES[x.name],
            value=100.0 * x.number,
            note="% of the squared sum",
            sign="-",
        )
        for x in findings
        if x.name in _PRICES
    ]
    if rows:
        yield Bars(rows, "What it costs to remove a part of what could go")


def _standings(findings: Sequence[AuditFinding]) -> str:
    """How the answers are known."""
    counts = dict.fromkeys(("proved", "checked", "estimated", "chosen"), 0)
    for finding in findings:
        if finding.standing in counts:
            counts[finding.standing] += 1
    told = [f"{count} {kind}" for kind, count in counts.items() if count]
    return f"answers: {', '.join(told)}"


# ---- Which differences between similar rows carry most of what could go


MOST_CAUSES: Final = 10
"""Pairs, and rows, that an audit names."""


def causes_of(
    edges: NDArray[np.intp],  # (E, 2): each pair of similar rows once
    similarities: Array,  # (E,)
    V: Array,  # (N, D): what could go
) -> tuple[tuple[Cause, ...], tuple[Cause, ...], Array]:
    """The pairs and rows of most of Σ S ‖v_n − v_n'‖², and all shares of pairs."""
    squares = similarities[:, None] * (V[edges[:, 0]] - V[edges[:, 1]]) ** 2
    total = float(squares.sum()) or 1.0
    shares = squares.sum(axis=1) / total
    first = np.argsort(-shares, kind="stable")[:MOST_CAUSES]
    pairs = tuple(
        Cause(int(i), int(j), min(float(shares[e]), 1.0), int(squares[e].argmax()))
        for e, (i, j) in zip(first.tolist(), edges[first].tolist(), strict=True)
    )
    of_rows = np.zeros(V.shape)
    for end in (0, 1):
        np.add.at(of_rows, edges[:, end], 0.5 * squares)
    sums = of_rows.sum(axis=1) / total
    worst = np.argsort(-sums, kind="stable")[:MOST_CAUSES].tolist()
    rows = tuple(
        Cause(n, None, min(float(sums[n]), 1.0), int(of_rows[n].argmax()))
        for n in worst
    )
    return pairs, rows, shares
