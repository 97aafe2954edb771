"""Findings of many panels, gathered: each statement once, and how many of each kind."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pandas as pd

from papers.engine.figure import AnyResult, PaperFigure
from papers.engine.findings import (
    WORDS,
    Claim,
    Finding,
    Invariant,
    Misprint,
    Refuted,
    Verdict,
)
from papers.engine.panels import PanelResult
from papers.engine.sentences import Sentence, Sentences


class Recorded(NamedTuple):
    """What is on record for a statement."""

    verdict: Verdict
    panels: int
    holding: int

    def in_words(self) -> str:
        """The verdict, and in how many panels it holds."""
        return f"{self.verdict}, {self.holding} of {self.panels}"


Record: TypeAlias = Mapping[tuple[str, str, str], Recorded]
"""Statements of the paper on record, by figure, statement and difference."""
_KEY = ["figure", "statement", "difference"]

RecordedValues: TypeAlias = Mapping[tuple[str, str, str, str], float]
"""Values on record, by figure, panel, what has them, and the quantity."""
_VALUE_KEY = ["figure", "panel", "what", "quantity"]
_MEASURED = "measured"
"""The quantity of a statement; those of baselines are columns of distances."""
_OF_STUDY = "value"
"""The quantity of a statement of a study; other quantities are columns of numbers."""
_TOLD = 5e-4
"""Half a unit of the fourth digit, the last that pages tell of a loss."""
_ROUNDING = 1e-7
"""Numbers of studies differ by so much with the order of sums and single precision."""
_ENCLOSED = 1e-2
"""The width to which the front is enclosed at the losses of a baseline."""


@dataclass(frozen=True, eq=False)
class Conclusion:
    """What follows for a statement from each panel where it was checked.

    Parameters
    ----------
    figure : str
        The name of the figure.
    findings : tuple
        Titles of panels, each with its finding; at least one.
    recorded : Recorded, optional
        What is on record; None for a statement that is not there.
    sentence : Sentence, optional
        What the paper says, and where; None for a check of ours.
    """

    figure: str
    findings: tuple[tuple[str, Finding], ...]
    recorded: Recorded | None = None
    sentence: Sentence | None = None

    @property
    def narrowest(self) -> tuple[str, Finding]:
        """That which decides: one that fails, then the least margin."""

        def rank(pair: tuple[str, Finding]) -> tuple[int, float]:
            finding = pair[1]
            return 0 if _fails(finding) else 2 if _holds(finding) else 1, finding.margin

        return min(self.findings, key=rank)

    @property
    def verdict(self) -> Verdict:
        """From all panels, for each choice by itself and then together."""
        verdicts = {_verdict_of(findings) for findings in self._choices.values()}
        if len(verdicts) == 1:
            return verdicts.pop()
        if not (any(map(_holds, self._every)) and any(map(_fails, self._every))):
            return Verdict.NOT_TESTED
        return Verdict.DEPENDS if Verdict.CONFIRMED in verdicts else Verdict.IN_PART

    @property
    def text(self) -> str:
        """What is said."""
        return self._every[0].statement

    @property
    def difference(self) -> str:
        """In what the set-up differs from the paper's."""
        return _difference(self._every[0])

    @property
    def reason(self) -> str:
        """What the verdict rests on: a proof, the right form, panels, both answers."""
        match self.verdict:
            case Verdict.REFUTED | Verdict.MISPRINT:
                return next(filter(None, map(_mistake, self._every)), "")
            case Verdict.IN_PART:
                held, failed = (
                    "; ".join(dict.fromkeys(t for t, f in self.findings if does(f)))
                    for does in (_holds, _fails)
                )
                return f"holds: {held}. Not: {failed}"
            case Verdict.DEPENDS:
                return "; ".join(
                    f"{choice}: {_holding(findings)}"
                    for choice, findings in self._choices.items()
                )
            case Verdict.NOT_TESTED:
                return self.difference or "too few repetitions"
        return ""

    @property
    def n_holding(self) -> int:
        """In how many panels it holds."""
        return sum(map(_holds, self._every))

    @property
    def now(self) -> Recorded:
        """What a record of this run would have."""
        return Recorded(self.verdict, len(self.findings), self.n_holding)

    @property
    def _every(self) -> list[Finding]:
        return [finding for _, finding in self.findings]

    @property
    def _choices(self) -> dict[str, list[Finding]]:
        """Findings by the choice that they were made with."""
        choices: dict[str, list[Finding]] = {}
        for finding in self._every:
            choice = finding.choice if isinstance(finding, Claim) else ""
            choices.setdefault(choice, []).append(finding)
        return choices


def _verdict_of(findings: Sequence[Finding]) -> Verdict:
    """That of one statement in several panels, under one choice.

    One that fails in some of them holds in part, unless its failure is explained.
    """
    fails = [finding for finding in findings if _fails(finding)]
    if not fails or isinstance(fails[0], Invariant):
        undecided = [finding for finding in findings if not _decided(finding)]
        return (fails or undecided or findings)[0].verdict
    explained = [finding for finding in fails if _mistake(finding)]
    if not explained and any(map(_holds, findings)) and not _difference(fails[0]):
        return Verdict.IN_PART
    return (explained or fails)[0].verdict


def _holds(finding: Finding) -> bool:
    return finding.holds and _decided(finding)


def _fails(finding: Finding) -> bool:
    return not finding.holds and _decided(finding)


def _decided(finding: Finding) -> bool:
    return not isinstance(finding, Claim) or finding.decided


def _mistake(finding: Finding) -> str:
    """What the failure of a claim shows."""
    if _holds(finding) or not isinstance(finding, Claim):
        return ""
    match finding.if_false:
        case Refuted(proof):
            return proof
        case Misprint(right):
            return right
    return ""


def _holding(findings: Sequence[Finding]) -> str:
    """Whether a statement holds in all of some panels, and what was measured."""
    held = sum(map(_holds, findings))
    word = "holds" if held == len(findings) else "in part" if held else "does not hold"
    return f"{word} ({', '.join(f'{f.value:.4g}' for f in findings)})"


@dataclass(frozen=True)
class Drift:
    """A value that is not the one on record; NaN where one of both is missing.

    Parameters
    ----------
    figure, panel, what, quantity : str
        What has it.
    value, recorded : float
        Measured now, and then.
    """

    figure: str
    panel: str
    label: str
    quantity: str
    value: float
    recorded: float

    @property
    def within(self) -> bool:
        """Whether they differ by no more than what is known of them.

        A loss is known to the digits told, so F and F* are, and F/F* − 1 to twice that
        of F/F*; shares saved, and what is stated of them, to the enclosure of A*.
        Numbers of studies are known to the digits told, but for rounding.
        """
        if math.isnan(self.value) or math.isnan(self.recorded):
            return math.isnan(self.value) and math.isnan(self.recorded)
        if math.isinf(self.recorded):
            return self.value == self.recorded
        if self.quantity == "excess":
            known = 2.0 * _TOLD * (1.0 + self.recorded)
        elif self.quantity in (_MEASURED, "saved"):
            known = _ENCLOSED * max(1.0, abs(self.recorded))
        elif self.quantity.startswith("loss."):
            known = _TOLD * abs(self.recorded)
        else:
            known = max(_TOLD * abs(self.recorded), _ROUNDING)
        return abs(self.value - self.recorded) <= known

    def in_words(self) -> str:
        """One line."""
        return (
            f"{self.figure}, {self.panel}: {self.label}: {self.quantity}: "
            f"{self.value:.6g}, on record: {self.recorded:.6g}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class FigureReport:
    """A figure that was run: its panels' results, perhaps not all of them.

    Parameters
    ----------
    name, figure
        What was run.
    results : tuple of PanelResult or StudyResult
        In the order of the panels.
    seconds : float
        Wall-clock time.
    record, values : mapping
        The paper's verdicts and values on record.
    sentences : mapping
        What the paper says in each statement, and where.
    """

    name: str
    figure: PaperFigure
    results: tuple[AnyResult, ...]
    seconds: float
    record: Record = field(default_factory=dict)
    values: RecordedValues = field(default_factory=dict)
    sentences: Sentences = field(default_factory=dict)

    @property
    def findings(self) -> list[tuple[str, Finding]]:
        """All findings, with the title of their panel."""
        return [(r.panel.title, f) for r in self.results for f in r.findings]

    @property
    def complete(self) -> bool:
        """True if every panel was run."""
        return len(self.results) == len(self.figure.panels)

    @property
    def invariants(self) -> list[Conclusion]:
        """What theory promises."""
        return self._gathered(Invariant)

    @property
    def claims(self) -> list[Conclusion]:
        """What the paper states; apart where set-ups differ."""
        return self._gathered(Claim)

    @property
    def changed(self) -> list[Conclusion]:
        """Claims that are not as on record, of a figure that is complete.

        None where nothing is on record, as of a paper at another scale.
        """
        compared = self.complete and bool(self.record)
        return [c for c in self.claims if compared and c.now != c.recorded]

    @property
    def measured(self) -> dict[tuple[str, str, str, str], float]:
        """Losses and distances of baselines, numbers of studies, values of statements.

        By figure, panel, what has them, and the quantity, as in ``values.csv``.
        """
        results = {}
        for result in self.results:
            title = result.panel.title
            for label, quantity, value in _numbers_of(result):
                results[self.name, title, label, quantity] = value
        return results

    @property
    def drifted(self) -> list[Drift]:
        """Values that are not those on record, of panels that have any there."""
        known = {key[:2] for key in self.values}
        now = {key: x for key, x in self.measured.items() if key[:2] in known}
        titles = {(self.name, result.panel.title) for result in self.results}
        then = {key: x for key, x in self.values.items() if key[:2] in titles}
        drifts = (
            Drift(*key, now.get(key, math.nan), then.get(key, math.nan))
            for key in dict.fromkeys([*then, *now])
        )
        return [drift for drift in drifts if not drift.within]

    def _gathered(self, kind: type[Finding]) -> list[Conclusion]:
        groups: dict[str, dict[str, list[tuple[str, Finding]]]] = {}
        for title, finding in self.findings:
            if isinstance(finding, kind):
                alike = groups.setdefault(finding.statement, {})
                alike.setdefault(_difference(finding), []).append((title, finding))
        return [
            Conclusion(
                self.name,
                tuple(group),
                self.record.get((self.name, statement, difference)),
                self.sentences.get((self.name, statement)),
            )
            for statement, alike in groups.items()
            for difference, group in alike.items()
        ]


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How many of each kind: invariants by panel, sentences of the paper once.

    Parameters
    ----------
    n_invariants, n_failed : int
        Findings on what theory promises, and how many of them fail.
    claims : mapping of Verdict to int
        Claims of the paper by what became of them; statements with one claim are one.
    n_changed, n_drifted : int
        Statements of the paper that are not as on record: their verdict, or in how many
        panels they hold; values that are not those on record.
    """

    n_invariants: int
    n_failed: int
    claims: Mapping[Verdict, int]
    n_changed: int
    n_drifted: int = 0

    @classmethod
    def of(cls, reports: Iterable[FigureReport]) -> Tally:
        """Of all figures together."""
        every = list(reports)
        invariants = [s for report in every for s in report.invariants]
        total = sum(len(s.findings) for s in invariants)
        return cls(
            n_invariants=total,
            n_failed=total - sum(s.n_holding for s in invariants),
            claims=Counter(verdicts_by_claim(every).values()),
            n_changed=sum(len(report.changed) for report in every),
            n_drifted=sum(len(report.drifted) for report in every),
        )

    def in_words(self) -> str:
        """Two sentences, or up to four."""
        held = self.n_invariants - self.n_failed
        claims = ", ".join(f"{self.claims.get(v, 0)} {v}" for v in WORDS)
        changed = f" {self.n_changed} not as on record." * bool(self.n_changed)
        changed += f" Values not as on record: {self.n_drifted}." * bool(self.n_drifted)
        return (
            f"Checks of ours: {held} of {self.n_invariants} PASS, {self.n_failed} "
            f"FAIL. Claims of the paper: {claims}.{changed}"
        )


def verdicts_by_claim(reports: Iterable[FigureReport]) -> dict[str, Verdict]:
    """What became of each claim of the paper, in all figures together."""
    alike: dict[str, list[Verdict]] = {}
    for report in reports:
        for own in report.claims:
            claim = f"{own.text}{own.difference}"
            if own.sentence is not None:
                claim = own.sentence.claim
            alike.setdefault(claim, []).append(own.verdict)
    return {claim: joint_verdict(own) for claim, own in alike.items()}


def joint_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """That of one claim from several statements; those not tested decide nothing."""
    tested = {v for v in verdicts if v is not Verdict.NOT_TESTED}
    if len(tested) > 1:
        return Verdict.IN_PART
    return tested.pop() if tested else Verdict.NOT_TESTED


def findings_table(reports: Iterable[FigureReport]) -> pd.DataFrame:
    """One row per finding."""
    rows = [
        {
            "figure": report.name,
            "panel": title,
            "kind": "claim" if isinstance(finding, Claim) else "invariant",
            "statement": finding.statement,
            "difference": _difference(finding),
            "value": finding.value,
            "sense": finding.sense,
            "limit": finding.limit,
            "low": _between(finding)[0],
            "high": _between(finding)[1],
            "choice": finding.choice if isinstance(finding, Claim) else "",
            "verdict": finding.verdict.value,
            "note": finding.note,
        }
        for report in reports
        for title, finding in report.findings
    ]
    return pd.DataFrame(rows)


def claims_table(reports: Sequence[FigureReport]) -> pd.DataFrame:
    """One row per statement of the paper, as in the record, and what decided it."""
    rows = [
        {
            "figure": claim.figure,
            "statement": claim.text,
            "difference": claim.difference,
            "verdict": claim.verdict.value,
            "panels": len(claim.findings),
            "holding": claim.n_holding,
            "reason": claim.reason,
        }
        for report in reports
        for claim in report.claims
    ]
    columns = [*_KEY, "verdict", "panels", "holding", "reason"]
    return pd.DataFrame(rows, columns=columns)


def values_table(reports: Iterable[FigureReport]) -> pd.DataFrame:
    """One row per value, as on record."""
    rows = [(*key, x) for report in reports for key, x in report.measured.items()]
    return pd.DataFrame(rows, columns=[*_VALUE_KEY, "value"])


_SETTINGS = {
    "scale": "δ",
    "units": "units",
    "rule": "rule",
    "with_gradients": "own gradients",
    "n_inducing": "inputs",
    "robustness": "robust",
    "smoothness": "smooth",
}


def told_method(row: pd.Series) -> str:
    """The method of a baseline with its settings, as pages have it."""
    settings = [
        f"{label} = {row[f'parameter.{name}']}"
        for name, label in _SETTINGS.items()
        if f"parameter.{name}" in row and not pd.isna(row[f"parameter.{name}"])
    ]
    return ", ".join([row["method"], *settings])


@cache
def read_values(path: Path) -> RecordedValues:
    """The values of a table on record."""
    table = pd.read_csv(path, keep_default_na=False, na_values={"value": [""]})
    keys = table[_VALUE_KEY].itertuples(index=False, name=None)
    return dict(zip(keys, table["value"].tolist(), strict=True))


@cache
def read_record(path: Path) -> Record:
    """The statements of a table on record."""
    table = pd.read_csv(path, keep_default_na=False)
    keys = table[_KEY].itertuples(index=False, name=None)
    rows = table[["verdict", "panels", "holding"]].itertuples(index=False, name=None)
    return {
        key: Recorded(Verdict(verdict), int(panels), int(holding))
        for key, (verdict, panels, holding) in zip(keys, rows, strict=True)
    }


def _numbers_of(result: AnyResult) -> Iterator[tuple[str, str, float]]:
    """What has a number, the quantity and the number."""
    is_sweep = isinstance(result, PanelResult)
    for finding in result.findings:
        if isinstance(finding, Claim):
            choice = f" ({finding.choice})" * bool(finding.choice)
            quantity = _MEASURED if is_sweep else _OF_STUDY
            yield finding.statement + choice, quantity, finding.value
    table = result.distances if isinstance(result, PanelResult) else result.numbers
    seen: Counter[str] = Counter()
    for _, row in table.iterrows():
        label = told_method(row) if is_sweep else _row_label(row)
        seen[label] += 1
        label += f" ({seen[label]})" * (seen[label] > 1)
        for column, value in row.items():
            told = str(column)
            if is_sweep:
                is_kept = told.startswith("loss.") or told in ("excess", "saved")
            else:
                is_kept = isinstance(value, float)
            if is_kept:
                yield label, told, float(value)


def _row_label(row: pd.Series) -> str:
    """What a row of numbers is of: all that is no measured number."""
    cells = [str(cell) for cell in row if not isinstance(cell, float)]
    return ", ".join(cells) or "row"


def _between(finding: Finding) -> tuple[float, float]:
    """The interval of a value that scatters; else the value."""
    exact = (finding.value, finding.value)
    return (finding.between or exact) if isinstance(finding, Claim) else exact


def _difference(finding: Finding) -> str:
    return finding.difference if isinstance(finding, Claim) else ""
