"""Findings of many panels, gathered: each statement once, and how many of each kind."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from papers.engine.figure import AnyResult, PaperFigure
from papers.engine.findings import Claim, Finding, Invariant, Verdict
from papers.engine.panels import PanelResult


Record: TypeAlias = Mapping[tuple[str, str, str], Verdict]
"""Verdicts on statements of the paper, by figure, statement and difference."""
_KEY = ["figure", "statement", "difference"]

RecordedValues: TypeAlias = Mapping[tuple[str, str, str, str], float]
"""Values on record, by figure, panel, what has them, and the quantity."""
_VALUE_KEY = ["figure", "panel", "what", "quantity"]
_MEASURED = "measured"
"""The quantity of a statement; those of baselines are columns of distances."""
_TOLD = 5e-4
"""Half a unit of the fourth digit, the last that pages tell of a loss."""
_ENCLOSED = 1e-2
"""The width to which the front is enclosed at the losses of a baseline."""
_WORDS = {
    Verdict.CONFIRMED: "confirmed",
    Verdict.DIFFERS: "true in a set-up that differs",
    Verdict.NOT_CONFIRMED: "not confirmed",
    Verdict.UNDECIDED: "undecided by too few replicates",
}
_ALWAYS_TOLD = (Verdict.CONFIRMED, Verdict.DIFFERS, Verdict.NOT_CONFIRMED)
_DECIDES = {Verdict.FAIL: 0, Verdict.NOT_CONFIRMED: 0, Verdict.UNDECIDED: 1}
"""Which of the verdicts of panels is that of all; those that hold come last."""


@dataclass(frozen=True, eq=False)
class Conclusion:
    """What follows for a statement from each panel where it was checked.

    Parameters
    ----------
    figure : str
        The name of the figure.
    findings : tuple
        Titles of panels, each with its finding; at least one.
    recorded : Verdict, optional
        The verdict on record; None for a statement that is not there.
    """

    figure: str
    findings: tuple[tuple[str, Finding], ...]
    recorded: Verdict | None = None

    @property
    def narrowest(self) -> tuple[str, Finding]:
        """That which decides: by its verdict, then by the least margin."""

        def rank(pair: tuple[str, Finding]) -> tuple[int, float]:
            return _DECIDES.get(pair[1].verdict, 2), pair[1].margin

        return min(self.findings, key=rank)

    @property
    def verdict(self) -> Verdict:
        """It has to hold in every panel."""
        return self.narrowest[1].verdict

    @property
    def text(self) -> str:
        """What is said."""
        return self.findings[0][1].statement

    @property
    def difference(self) -> str:
        """In what the set-up differs from the paper's."""
        return _difference(self.findings[0][1])

    @property
    def n_holding(self) -> int:
        """In how many panels it holds."""
        return sum(finding.verdict.holds for _, finding in self.findings)


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
        """
        if math.isnan(self.value) or math.isnan(self.recorded):
            return math.isnan(self.value) and math.isnan(self.recorded)
        if math.isinf(self.recorded):
            return self.value == self.recorded
        if self.quantity == "excess":
            known = 2.0 * _TOLD * (1.0 + self.recorded)
        elif self.quantity in (_MEASURED, "saved"):
            known = _ENCLOSED * max(1.0, abs(self.recorded))
        else:
            known = _TOLD * abs(self.recorded)
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
    """

    name: str
    figure: PaperFigure
    results: tuple[AnyResult, ...]
    seconds: float
    record: Record = field(default_factory=dict)
    values: RecordedValues = field(default_factory=dict)

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
        """Claims whose verdict is not that on record, of a figure that is complete.

        None where nothing is on record, as of a paper at another scale.
        """
        compared = self.complete and bool(self.record)
        return [c for c in self.claims if compared and c.verdict != c.recorded]

    @property
    def measured(self) -> dict[tuple[str, str, str, str], float]:
        """Losses and distances of all baselines, and what statements of the paper are.

        By figure, panel, what has them, and the quantity, as in ``values.csv``.
        """
        results = {}
        for result in self.results:
            title = result.panel.title
            for finding in result.findings:
                if isinstance(finding, Claim):
                    key = (self.name, title, finding.statement, _MEASURED)
                    results[key] = finding.value
            if not isinstance(result, PanelResult):
                continue
            seen: Counter[str] = Counter()
            for _, row in result.distances.iterrows():
                label = told_method(row)
                seen[label] += 1
                label += f" ({seen[label]})" * (seen[label] > 1)
                for column in map(str, result.distances):
                    if column.startswith("loss.") or column in ("excess", "saved"):
                        results[self.name, title, label, column] = float(row[column])
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
            )
            for statement, alike in groups.items()
            for difference, group in alike.items()
        ]


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How many of each kind: invariants by panel, statements of the paper once.

    Parameters
    ----------
    n_invariants, n_failed : int
        Findings on what theory promises, and how many of them fail.
    claims : mapping of Verdict to int
        Statements of the paper by what became of them.
    n_changed, n_drifted : int
        Statements of the paper with another verdict than that on record; values that
        are not those on record.
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
            claims=Counter(c.verdict for report in every for c in report.claims),
            n_changed=sum(len(report.changed) for report in every),
            n_drifted=sum(len(report.drifted) for report in every),
        )

    def in_words(self) -> str:
        """Two sentences, or up to four."""
        held = self.n_invariants - self.n_failed
        counts = {v: self.claims.get(v, 0) for v in _WORDS}
        told = [v for v in _WORDS if counts[v] or v in _ALWAYS_TOLD]
        claims = ", ".join(f"{counts[v]} {_WORDS[v]}" for v in told)
        changed = f" {self.n_changed} not as on record." * bool(self.n_changed)
        changed += f" Values not as on record: {self.n_drifted}." * bool(self.n_drifted)
        return (
            f"Invariants of ours: {held} of {self.n_invariants} PASS, {self.n_failed} "
            f"FAIL. Statements of the paper: {claims}.{changed}"
        )


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
        }
        for report in reports
        for claim in report.claims
    ]
    return pd.DataFrame(rows, columns=[*_KEY, "verdict", "panels", "holding"])


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
    table = pd.read_csv(path, dtype={"value": float})
    keys = table[_VALUE_KEY].itertuples(index=False, name=None)
    return dict(zip(keys, table["value"].tolist(), strict=True))


@cache
def read_record(path: Path) -> Record:
    """The verdicts of a table on record."""
    table = pd.read_csv(path, keep_default_na=False)
    keys = table[_KEY].itertuples(index=False, name=None)
    return dict(zip(keys, map(Verdict, table["verdict"]), strict=True))


def _between(finding: Finding) -> tuple[float, float]:
    """The interval of a value that scatters; else the value."""
    exact = (finding.value, finding.value)
    return (finding.between or exact) if isinstance(finding, Claim) else exact


def _difference(finding: Finding) -> str:
    return finding.difference if isinstance(finding, Claim) else ""
