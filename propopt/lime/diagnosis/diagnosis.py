"""The diagnosis of LIME's coefficients: findings, notes, their text and files."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, final

import numpy as np
import pandas as pd

from propopt.base.declared import field
from propopt.base.document import Document, Finding, Table
from propopt.base.errors import InvalidInput
from propopt.base.terminal import progress_bar
from propopt.base.text import enumerated, plural, printable
from propopt.lime.diagnosis.evidence import NOTE, AnyEvidence, LimeFinding, Rule
from propopt.lime.diagnosis.rules import LIME_RULES, TEXT_RULES
from propopt.results.result import Result
from propopt.tables.frames import Labels


# ---- A diagnosis as a table, as text for a terminal and as a card


_HEAD: Final = (
    "rule",
    "what is measured",
    "worst",
    "a finding if",
    "severity (0 to 1)",
)

_RULES: Final[dict[str, Rule[Any]]] = {
    **{rule.name: rule for rule in LIME_RULES},
    **{rule.name: rule for rule in TEXT_RULES},
}


def row_label(name: Hashable) -> str:
    """The name of a row in a sentence; "row" before names of one word."""
    return name if isinstance(name, str) and " " in name else f"row {name}"


@final
class LimeDiagnosis(
    Result, kind="propopt lime diagnosis", noun="a saved diagnosis", version=4
):
    """The findings of all rules about misleading coefficients of LIME.

    Parameters
    ----------
    findings : tuple of LimeFinding
        Findings, the most serious first.
    notes : tuple of LimeFinding
        Findings that hardly mislead: severities below 0.25.
    quiet : tuple of LimeFinding
        Rules without a finding, each with the number closest to its threshold, or the
        reason why it does not apply.
    shape : (int, int)
        The number of rows N and of columns D.
    n_samples : int
        The samples of the runs that were diagnosed.
    source : str
        The source of the coefficients: ``"exact"``, or how they were estimated.
    labels : Labels
        Names of rows and columns.

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

    findings: tuple[LimeFinding, ...] = field()
    quiet: tuple[LimeFinding, ...] = field()
    shape: tuple[int, int] = field(low=0)
    n_samples: int = field(low=1)
    source: str = field()
    labels: Labels = field(default=Labels())
    notes: tuple[LimeFinding, ...] = field(default=())

    def validate(self) -> None:
        """Raise an error for severities out of order, and for missing names or rows.

        Raises
        ------
        InvalidInput
            If fields contradict each other.
        """
        self.labels.check(self.shape, "labels")
        for name, items in (("findings", self.findings), ("notes", self.notes)):
            if any((item.severity < NOTE) == (name == "findings") for item in items):
                raise InvalidInput(f"{name}: notes are those below {NOTE:g}")
            if any(a.severity < b.severity for a, b in pairwise(items)):
                raise InvalidInput(f"{name}: expected the largest severity first")
        for item in self._items:
            if item.rule not in _RULES:
                raise InvalidInput(f"rule: expected a known rule, got {item.rule!r}")
            indices = {"row": item.row, "column": item.column}
            for (noun, index), n in zip(indices.items(), self.shape, strict=True):
                if index is not None and index >= n:
                    raise InvalidInput(f"{noun}: there is no {noun} {index}")

    @classmethod
    def of_findings(
        cls,
        items: Sequence[LimeFinding],
        shape: tuple[int, int],
        labels: Labels,
        n_samples: int,
        source: str,
    ) -> LimeDiagnosis:
        """Make a diagnosis from the results of all rules, with and without findings.

        Parameters
        ----------
        items : sequence of LimeFinding
            The results of all rules; those without a remedy are quiet.
        shape : (int, int)
            The number of rows N and of columns D.
        labels : Labels
            The names of rows and columns.
        n_samples : int
            The samples of the diagnosed runs, at least one.
        source : str
            The source of the coefficients: ``"exact"``, or how they were estimated.

        Returns
        -------
        LimeDiagnosis
            Findings and notes are sorted, the largest severity first.

        Raises
        ------
        InvalidInput
            If a finding refers to a row or a column outside the shape.
        """
        reported = [item for item in items if item.remedy]
        reported.sort(key=attrgetter("severity"), reverse=True)
        return cls(
            findings=tuple([item for item in reported if item.severity >= NOTE]),
            notes=tuple([item for item in reported if item.severity < NOTE]),
            quiet=tuple(item for item in items if not item.remedy),
            shape=shape,
            n_samples=n_samples,
            source=source,
            labels=labels,
        )

    @property
    def reported(self) -> tuple[LimeFinding, ...]:
        """The findings, and notes on less serious ones, the most serious first."""
        return self.findings + self.notes

    @property
    def _items(self) -> tuple[LimeFinding, ...]:
        return self.reported + self.quiet

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

        ``kind`` is ``"finding"``, ``"note"`` or ``"quiet"``.
        """
        items = self._items
        rows, features = zip(*map(self._names_of, items), strict=True)
        parts = self.findings, self.notes, self.quiet
        words = np.array(["finding", "note", "quiet"], object)
        kinds = np.repeat(words, list(map(len, parts)))
        return pd.DataFrame(
            {
                "rule": [item.rule for item in items],
                "row": pd.Series(rows, dtype=object),
                "feature": pd.Series(features, dtype=object),
                "number": [item.number for item in items],
                "threshold": [item.threshold for item in items],
                "severity": [
                    item.severity if item.remedy else np.nan for item in items
                ],
                "sentence": [item.sentence for item in items],
                "remedy": [item.remedy for item in items],
                "kind": kinds,
            }
        )

    def __repr__(self) -> str:
        """One line with sizes and counts; ``str()`` has the findings."""
        return f"LimeDiagnosis({printable(self._title())})"

    def document(self) -> Document:
        """The most misleading finding, then the worst finding of each rule."""
        groups = _by_rule(self.findings)
        rules = plural(len({item.rule for item in self._items}), "rule")
        table = [
            [
                rule,
                _RULES[rule].measure,
                f"{items[0].number:.3g}",
                _RULES[rule].criterion,
                f"{items[0].severity:.2g}",
            ]
            for rule, items in groups.items()
        ]
        in_full = {
            f"note, {rule}": f"{self._summary(notes)}: {notes[0].sentence}"
            for rule, notes in _by_rule(self.notes).items()
        }
        return Document(
            title=self._headline(),
            subtitle=self._title(),
            blocks=[
                *([Table.of(_HEAD, table)] if table else ()),
                *(
                    Finding(
                        f"{rule} ({self._summary(items)}): {items[0].sentence}. "
                        f"Remedy: {items[0].remedy}."
                    )
                    for rule, items in groups.items()
                ),
                *map(Finding, self._other_rules()),
            ],
            trust=[
                Finding(f"coefficients: {self._sources}"),
                Finding(
                    "noise, ranks, ridge and weights: of one run of LIME with "
                    f"{self.n_samples:,} samples"
                ),
                Finding(
                    f"{rules} of diagnosis: each compares a number with a threshold"
                ),
            ],
            settings=in_full | dict(self._quiet_numbers()),
            chapters=self._table,
            names=[
                *{item.rule for item in self._items},
                *self.labels.feature_names(self.shape[1]),
            ],
        )

    def _headline(self) -> str:
        """The worst finding, with its feature and row."""
        if not self.findings:
            return "No finding: these coefficients of LIME do not mislead"
        worst = self.findings[0]
        row, feature = self._names_of(worst)
        where = f"the coefficient of {feature}" if feature else "these coefficients"
        if row is not None and self.shape[0] > 1:
            where += f" for {row_label(row)}"
        return f"Worst finding: {worst.rule}, in {where}"

    def _title(self) -> str:
        """The size of the explanation, and the number of findings."""
        N, D = self.shape
        return (
            f"{plural(N, 'row')}, {plural(D, 'feature')}: "
            f"{plural(len(self.findings), 'finding')} by "
            f"{plural(len(self.rules), 'rule')}"
        )

    @property
    def _sources(self) -> str:
        """The source of coefficients; only its kinds if rows have several."""
        kinds = [part.partition(" (")[0] for part in self.source.split(" and ")]
        if len(kinds) == 1:
            return self.source
        return enumerated([*dict.fromkeys(kinds)], "and")

    def _summary(self, items: tuple[LimeFinding, ...]) -> str:
        """The row and column of the worst finding, and the number of others."""
        more = f" and {len(items) - 1} more" if len(items) > 1 else ""
        return f"{self._location(items[0]) or 'all'}{more}"

    def _location(self, item: LimeFinding) -> str:
        """The row, if there are others, and the column, if it concerns one."""
        row, feature = self._names_of(item)
        parts = [] if row is None or self.shape[0] == 1 else [f"row {row}"]
        parts += [] if feature is None else [feature]
        return ", ".join(parts)

    def _names_of(self, item: LimeFinding) -> tuple[Hashable | None, str | None]:
        """The names of the row and the column; None for all of them."""
        names = self.labels.feature_names(self.shape[1])
        return (
            None if item.row is None else self.labels.row(item.row),
            None if item.column is None else names[item.column],
        )

    def _other_rules(self) -> Iterator[str]:
        """One line for the notes, and one for quiet rules."""
        notes = _by_rule(self.notes)
        if notes:
            each = ", ".join(f"{rule} ({len(items)})" for rule, items in notes.items())
            yield f"minor notes, which seldom mislead: {each}"
        quiet = {item.rule for item in self.quiet}
        if quiet:
            other = "other " if self.reported else ""
            yield f"{len(quiet)} {other}rule{'s'[: len(quiet) > 1]} without a finding"

    def _quiet_numbers(self) -> Iterator[tuple[str, str]]:
        """The quiet rules, with the number closest to their threshold."""
        for item in self.quiet:
            if np.isnan(item.number):
                continue
            where = self._location(item)
            rule = _RULES[item.rule]
            where = f" ({where})" if where else ""
            words = f"{rule.measure}; a finding if {rule.criterion}"
            yield item.rule, f"{item.sentence}{where}: {words}"


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
    with progress_bar("diagnosis", len(rules), progress) as bar:
        for rule in rules:
            findings += find(rule)
            bar.advance(bar.task_ids[0])
    return findings
