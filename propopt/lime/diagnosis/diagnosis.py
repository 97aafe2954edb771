"""The diagnosis of LIME's coefficients: findings, notes, their document and files."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, final

import numpy as np
import pandas as pd

from propopt.base.declared import field
from propopt.base.document import (
    Block,
    Chapter,
    Document,
    Fact,
    Facts,
    Table,
    cell_text,
    shape_text,
    share_text,
    subtitle_of,
    table_chapter,
    title_of,
)
from propopt.base.errors import InvalidInput
from propopt.base.terminal import tracked
from propopt.base.text import Quantity, printable
from propopt.base.vocabulary import Basis
from propopt.lime.diagnosis.evidence import NOTE, AnyEvidence, LimeFinding, Rule
from propopt.lime.diagnosis.rules import LIME_RULES, TEXT_RULES, against_profile
from propopt.results.result import Result
from propopt.tables.frames import Labels


# ---- A diagnosis as a table, as text for a terminal and as a card


_RULES: Final[dict[str, Rule[Any]]] = {
    **{rule.name: rule for rule in LIME_RULES},
    **{rule.name: rule for rule in TEXT_RULES},
}


@final
class LimeDiagnosis(
    Result, kind="propopt lime diagnosis", noun="a saved diagnosis", version=5
):
    """The findings of all rules about misleading coefficients of LIME.

    Each rule compares a number with its limit.

    Parameters
    ----------
    items : tuple of LimeFinding
        The findings and notes, the most serious first; then a number of each other
        rule.
    shape : (int, int)
        The number of rows N and of columns D.
    n_samples : int
        The samples of the runs that were diagnosed.
    sampling_error : float
        That of the coefficients; 0 if they are exact.
    labels : Labels
        Names of rows and columns.
    quantity : Quantity, optional
        The explained quantity.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.random.default_rng(0).uniform(-10.0, 10.0, (500, 3))
    >>> model = LinearRegression().fit(X, X @ [5.0, 1.0, 3.0])
    >>> law = po.lime.TabularLaw.from_data(X, n_bins=5)
    >>> lime = po.lime.limits(model.predict, np.zeros((1, 3)), law, data=X)
    >>> diagnosis = lime.diagnose()
    >>> "cancellation by binning" in diagnosis.rules
    True
    """

    items: tuple[LimeFinding, ...] = field()
    shape: tuple[int, int] = field(low=0)
    n_samples: int = field(low=1)
    sampling_error: float = field(low=0.0, infinite=True)
    labels: Labels = field(default=Labels())
    quantity: Quantity | None = field(default=None)

    def validate(self) -> None:
        """Raise an error for severities out of order, and for missing names or rows.

        Raises
        ------
        InvalidInput
            If fields contradict each other.
        """
        self.labels.check(self.shape, "labels")
        if any(severity_order(a) > severity_order(b) for a, b in pairwise(self.items)):
            raise InvalidInput("items: expected the largest severity first")
        for item in self.items:
            if item.rule not in _RULES:
                raise InvalidInput(f"rule: expected a known rule, got {item.rule!r}")
            indices = {"row": item.row, "column": item.column}
            for (noun, index), n in zip(indices.items(), self.shape, strict=True):
                if index is not None and index >= n:
                    raise InvalidInput(f"{noun}: there is no {noun} {index}")

    @property
    def findings(self) -> tuple[LimeFinding, ...]:
        """Numbers beyond their limits that mislead, the most serious first."""
        return tuple([item for item in self.items if item.severity >= NOTE])

    @property
    def notes(self) -> tuple[LimeFinding, ...]:
        """Numbers beyond their limits that hardly mislead: severities below 0.25."""
        return tuple([item for item in self.items if item.severity < NOTE])

    @property
    def reported(self) -> tuple[LimeFinding, ...]:
        """The findings, and notes on less serious ones, the most serious first."""
        return self.findings + self.notes

    @property
    def quiet(self) -> tuple[LimeFinding, ...]:
        """Rules without a finding, each with the number closest to its limit."""
        return tuple([item for item in self.items if not item.is_reported])

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules with findings, the most serious first; notes do not count."""
        return tuple(dict.fromkeys([finding.rule for finding in self.findings]))

    def of(self, rule: str) -> tuple[LimeFinding, ...]:
        """The findings and notes of one rule, the most serious first.

        Parameters
        ----------
        rule : str
            Its name.

        Returns
        -------
        tuple of LimeFinding
            Empty if the rule has none.
        """
        return tuple(item for item in self.reported if item.rule == rule)

    def to_frame(self) -> pd.DataFrame:
        """A table with a line for each finding, each note and each rule without any.

        ``limit`` is that of the rule. ``kind`` is ``"finding"``, ``"note"``; or, for
        rules without any, ``"quiet"`` within the limit, ``"excused"`` if a number
        beyond it is harmless, and ``"not checked"`` if the rule does not apply.
        """
        items = self.items
        rows, features = zip(*map(self._names_of, items), strict=True)
        return pd.DataFrame(
            {
                "rule": [item.rule for item in items],
                "row": pd.Series(rows, dtype=object),
                "feature": pd.Series(features, dtype=object),
                "number": [item.number for item in items],
                "limit": [_RULES[item.rule].limit for item in items],
                "coefficient": [item.coefficient for item in items],
                "severity": [item.severity for item in items],
                "kind": [_kind(item) for item in items],
            }
        )

    def __repr__(self) -> str:
        """One line with sizes and counts; ``str()`` has the findings."""
        facts = (
            shape_text(*self.shape),
            f"findings {len(self.findings):,} ({self._counted_rules})",
            f"sampling error {share_text(self.sampling_error)}",
        )
        return f"LimeDiagnosis({printable(', '.join(facts))})"

    @property
    def _counted_rules(self) -> str:
        """The number of rules with findings, and of all rules."""
        count = len({item.rule for item in self.items})
        return f"by {len(self.rules)} of {count} rules checked"

    def document(self) -> Document:
        """The worst number of each rule with findings, and their count."""
        error = self.sampling_error
        count = Fact("findings", len(self.findings), note=self._counted_rules)
        basis: Basis = "estimated" if error else "computed"
        facts: Block = Facts([count, Fact("sampling error", error, "%", basis)])
        lines = [
            [
                rule,
                len(items),
                self._location(items[0]),
                cell_text(items[0].number),
                _RULES[rule].criterion,
            ]
            for rule, items in _by_rule(self.findings).items()
        ]
        head = "rule", "cases", "worst at", "statistic", "flagged if"
        return Document(
            title=title_of("LIME diagnosis", self.quantity),
            subtitle=subtitle_of(self.quantity, shape_text(*self.shape)),
            dangers=self._dangers(),
            blocks=[Table.of(head, lines), facts] if lines else [facts],
            settings={"samples of one run": f"{self.n_samples:,}"},
            chapters=self._chapters,
        )

    def _dangers(self) -> list[str]:
        """The worst sign that contradicts the effect of a column on the mean output."""
        if not self.findings or self.findings[0].rule != against_profile.name:
            return []
        worst = self.findings[0]
        row, feature = self._names_of(worst)
        where = f" in row {row}" if self.shape[0] > 1 else ""
        moves = "rises" if worst.coefficient < 0.0 else "falls"
        return [
            f"The coefficient of {feature}{where} is {cell_text(worst.coefficient)} "
            f"where the output always {moves}: use slopes or the profile."
        ]

    def _chapters(self) -> list[Chapter]:
        """The number, the limit and the counts of each rule, and all findings."""
        groups = _by_rule(self.items)
        rules = pd.DataFrame(
            {
                "statistic": [_RULES[rule].measure for rule in groups],
                "flagged if": [_RULES[rule].criterion for rule in groups],
                "worst": [items[0].number for items in groups.values()],
                "findings": [_count(items, "finding") for items in groups.values()],
                "notes": [_count(items, "note") for items in groups.values()],
            },
            pd.Index(groups, name="rule"),
        )
        frame = self.to_frame()
        findings = frame[frame["kind"] == "finding"].drop(columns=["limit", "kind"])
        chapters = [Chapter("Rules", [Table(rules)])]
        if len(findings):
            chapters.append(table_chapter("Findings", findings))
        return chapters

    def _location(self, item: LimeFinding) -> str:
        """The row, if there are others, and the column, if it concerns one."""
        row, feature = self._names_of(item)
        parts = [] if row is None or self.shape[0] == 1 else [f"row {row}"]
        parts += [] if feature is None else [feature]
        return ", ".join(parts) or "all"

    def _names_of(self, item: LimeFinding) -> tuple[Hashable | None, str | None]:
        """The names of the row and the column; None for all of them."""
        names = self.labels.feature_names(self.shape[1])
        return (
            None if item.row is None else self.labels.row(item.row),
            None if item.column is None else names[item.column],
        )


def severity_order(item: LimeFinding) -> float:
    """The position of a finding: reported ones first, the most serious first."""
    return 1.0 if math.isnan(item.severity) else -item.severity


def _kind(item: LimeFinding) -> str:
    """The kind of a finding, or why there is none."""
    if item.is_reported:
        return "finding" if item.severity >= NOTE else "note"
    if np.isnan(item.number):
        return "not checked"
    return "excused" if _RULES[item.rule].exceeds(item.number) else "quiet"


def _count(items: Sequence[LimeFinding], kind: str) -> int:
    return [*map(_kind, items)].count(kind)


def _by_rule(items: Sequence[LimeFinding]) -> dict[str, tuple[LimeFinding, ...]]:
    """The findings of each rule, the most serious first."""
    return {
        rule: tuple(item for item in items if item.rule == rule)
        for rule in dict.fromkeys(item.rule for item in items)
    }


def run_rules(
    rules: Sequence[Rule[AnyEvidence]],
    find: Callable[[Rule[AnyEvidence]], Iterable[LimeFinding]],
    progress: bool | None,
) -> list[LimeFinding]:
    """The findings of all rules, with a progress bar."""
    findings: list[LimeFinding] = []
    for rule in tracked("diagnosis", rules, progress):
        findings += find(rule)
    return findings
