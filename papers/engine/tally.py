"""Findings of many panels, gathered: each statement once, and how many of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from papers.engine.figure import AnyResult, PaperFigure
from papers.engine.findings import Claim, Finding, Invariant, Verdict


Record: TypeAlias = Mapping[tuple[str, str, str], Verdict]
"""Verdicts on statements of the paper, by figure, statement and difference."""
_KEY = ["figure", "statement", "difference"]
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
    record : mapping
        The paper's verdicts on record.
    """

    name: str
    figure: PaperFigure
    results: tuple[AnyResult, ...]
    seconds: float
    record: Record = field(default_factory=dict)

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
    n_changed : int
        Statements of the paper with another verdict than that on record.
    """

    n_invariants: int
    n_failed: int
    claims: Mapping[Verdict, int]
    n_changed: int

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
        )

    def in_words(self) -> str:
        """Two sentences, or three."""
        held = self.n_invariants - self.n_failed
        counts = {v: self.claims.get(v, 0) for v in _WORDS}
        told = [v for v in _WORDS if counts[v] or v in _ALWAYS_TOLD]
        claims = ", ".join(f"{counts[v]} {_WORDS[v]}" for v in told)
        changed = f" {self.n_changed} not as on record." * bool(self.n_changed)
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
