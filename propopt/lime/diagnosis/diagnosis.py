"""What LIME's coefficients hide: findings, notes, words, files."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, final

import numpy as np
import pandas as pd

from propopt.base.declared import field
from propopt.base.document import Document, Finding, Table
from propopt.base.errors import InvalidInput
from propopt.base.terminal import progress_bar
from propopt.base.text import plural, printable
from propopt.lime.diagnosis.evidence import NOTE, LimeFinding, Looked, Rule
from propopt.results.result import Result
from propopt.tables.frames import Labels


# ---- A diagnosis as a table, as text for a terminal and as a card


_HEAD: Final = (
    "what misleads, the worst of each rule",
    "number",
    "threshold",
    "severity",
)


def row_label(name: Hashable) -> str:
    """What a row is called; a name of several words speaks for itself."""
    return name if isinstance(name, str) and " " in name else f"row {name}"


@final
class LimeDiagnosis(
    Result, kind="propopt lime diagnosis", noun="a saved diagnosis", version=3
):
    """What was looked for in coefficients of LIME, and found.

    Parameters
    ----------
    findings : tuple of LimeFinding
        What misleads most first.
    notes : tuple of LimeFinding
        What is so and misleads hardly anybody: severities below 0.25.
    quiet : tuple of LimeFinding
        Rules that found nothing, each with the number that came nearest, or why it was
        not looked for.
    shape : (int, int)
        N and D.
    n_samples : int
        Of the runs that it is about.
    source : str
        That of the coefficients: ``"exact"``, or how they were estimated.
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
    >>> found = lime.diagnose()
    >>> "cancellation by binning" in found.rules
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
        """Refuse notes among findings, names that are not one each, and other rows.

        Raises
        ------
        InvalidInput
            Where what one field says is not what another does.
        """
        self.labels.check(self.shape, "labels")
        for name, told in (("findings", self.findings), ("notes", self.notes)):
            if any((item.severity < NOTE) == (name == "findings") for item in told):
                raise InvalidInput(f"{name}: notes are what is below {NOTE:g}")
            if any(a.severity < b.severity for a, b in pairwise(told)):
                raise InvalidInput(f"{name}: expected the largest severity first")
        for item in self._items:
            places = {"row": item.row, "column": item.column}
            for (noun, place), n in zip(places.items(), self.shape, strict=True):
                if place is not None and place >= n:
                    raise InvalidInput(f"{noun}: there is no {noun} {place}")

    @classmethod
    def of_findings(
        cls,
        told: Sequence[LimeFinding],
        shape: tuple[int, int],
        labels: Labels,
        n_samples: int,
        source: str,
    ) -> LimeDiagnosis:
        """What rules told of limits at rows, or at documents, in their order."""
        findings = [item for item in told if item.remedy]
        findings.sort(key=lambda finding: -finding.severity)
        first = sum(1 for item in findings if item.severity >= NOTE)
        return cls(
            findings=tuple(findings[:first]),
            notes=tuple(findings[first:]),
            quiet=tuple(item for item in told if not item.remedy),
            shape=shape,
            n_samples=n_samples,
            source=source,
            labels=labels,
        )

    @property
    def told(self) -> tuple[LimeFinding, ...]:
        """Findings and notes, what misleads most first."""
        return self.findings + self.notes

    @property
    def _items(self) -> tuple[LimeFinding, ...]:
        return self.told + self.quiet

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that found something, what misleads most first; notes aside."""
        return tuple(dict.fromkeys(finding.rule for finding in self.findings))

    def of(self, rule: str) -> tuple[LimeFinding, ...]:
        """What a rule found, notes behind findings.

        Parameters
        ----------
        rule : str
            Its name.
        """
        return tuple(item for item in self.told if item.rule == rule)

    def to_frame(self) -> pd.DataFrame:
        """A row for each finding, each note, and each rule that found nothing.

        ``kind`` is ``"finding"``, ``"note"`` or ``"quiet"``; ``found`` is True of
        findings alone.
        """
        items = self._items
        rows, features = zip(*map(self._where, items), strict=True)
        parts = self.findings, self.notes, self.quiet
        words = np.array(["finding", "note", "quiet"], object)
        kinds = np.repeat(words, list(map(len, parts)))
        return pd.DataFrame(
            {
                "rule": [item.rule for item in items],
                "found": kinds == "finding",
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
        """One line; ``str()`` has what was found."""
        return f"LimeDiagnosis({printable(self._title())})"

    def document(self) -> Document:
        """What misleads most, then the worst of each rule that found something."""
        groups = _by_rule(self.findings)
        asked = plural(len({item.rule for item in self._items}), "rule")
        table = [
            [
                f"{rule}: {self._head(found)}",
                *(f"{x:.3g}" for x in (found[0].number, found[0].threshold)),
                f"{found[0].severity:.2g}",
            ]
            for rule, found in groups.items()
        ]
        in_full = {
            f"note, {rule}": f"{self._head(notes)}: {notes[0].sentence}"
            for rule, notes in _by_rule(self.notes).items()
        }
        return Document(
            title=self._headline(),
            subtitle=self._title(),
            blocks=[
                *([Table.of(_HEAD, table)] if table else ()),
                *(
                    Finding(
                        f"{rule}: {found[0].sentence}. What would do: "
                        f"{found[0].remedy}."
                    )
                    for rule, found in groups.items()
                ),
                *map(Finding, self._other_rules()),
            ],
            trust=[
                Finding(f"coefficients {self.source}"),
                Finding(
                    f"{asked} looked for, each a number held against its threshold"
                ),
            ],
            settings=in_full | dict(self._near()),
            chapters=self._table,
            names=[
                *{item.rule for item in (*self.told, *self.quiet)},
                *self.labels.feature_names(self.shape[1]),
            ],
        )

    def _headline(self) -> str:
        """The worst, and where."""
        if not self.findings:
            return "Nothing was found that misleads in these coefficients of LIME"
        worst = self.findings[0]
        row, feature = self._where(worst)
        where = f"the coefficient of {feature}" if feature else "these coefficients"
        if row is not None and self.shape[0] > 1:
            where += f" for {row_label(row)}"
        return f"What misleads most: {worst.rule}, of {where}"

    def _title(self) -> str:
        """What it is about."""
        N, D = self.shape
        return (
            f"{plural(N, 'row')}, {plural(D, 'feature')}; coefficients {self.source}, "
            f"runs of {self.n_samples:,} samples: "
            f"{plural(len(self.findings), 'finding')} of "
            f"{plural(len(self.rules), 'rule')}"
        )

    def _head(self, result: tuple[LimeFinding, ...]) -> str:
        """Where the worst of some findings is, and how many others there are."""
        more = f" and {len(result) - 1} more" if len(result) > 1 else ""
        return f"{self._place(result[0]) or 'all'}{more}"

    def _place(self, item: LimeFinding) -> str:
        """The row, if there are others, and the column, if it is about some."""
        row, feature = self._where(item)
        parts = [] if row is None or self.shape[0] == 1 else [f"row {row}"]
        parts += [] if feature is None else [feature]
        return ", ".join(parts)

    def _where(self, item: LimeFinding) -> tuple[Hashable | None, str | None]:
        """Names of the row and the column; None for all of them."""
        names = self.labels.feature_names(self.shape[1])
        return (
            None if item.row is None else self.labels.row(item.row),
            None if item.column is None else names[item.column],
        )

    def _other_rules(self) -> Iterator[str]:
        """A line for notes, and one for rules that found nothing."""
        notes = _by_rule(self.notes)
        if notes:
            each = ", ".join(f"{rule} ({len(items)})" for rule, items in notes.items())
            yield f"notes, which hardly mislead: {each}"
        quiet = {item.rule for item in self.quiet}
        if quiet:
            other = "other " if self.told else ""
            yield f"{len(quiet)} {other}rule{'s'[: len(quiet) > 1]} found nothing"

    def _near(self) -> Iterator[tuple[str, str]]:
        """Rules that found nothing, with how near they came."""
        for item in self.quiet:
            if np.isnan(item.number):
                continue
            where = self._place(item)
            place = f" ({where})" if where else ""
            yield (item.rule, f"{item.sentence}{place}, threshold {item.threshold:.3g}")


def _by_rule(told: Sequence[LimeFinding]) -> dict[str, tuple[LimeFinding, ...]]:
    """Those of each rule, what misleads most first."""
    return {
        rule: tuple(item for item in told if item.rule == rule)
        for rule in dict.fromkeys(item.rule for item in told)
    }


def run_rules(
    rules: Sequence[Rule[Looked]],
    find: Callable[[Rule[Looked]], Iterable[LimeFinding]],
    progress: bool | None,
) -> list[LimeFinding]:
    """What rules find, one after the other, with a bar."""
    told: list[LimeFinding] = []
    with progress_bar("diagnosis", len(rules), progress) as bar:
        for rule in rules:
            told += find(rule)
            bar.advance(bar.task_ids[0])
    return told
