"""What coefficients of LIME hide, as a table with a sentence for each thing found."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
import pandas as pd

from propopt.checks import read_count
from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.finding import LimeFinding, QuietRule
from propopt.lime.diagnosis.rule import told_by
from propopt.lime.diagnosis.rules import LIME_RULES
from propopt.lime.diagnosis.saved import read_diagnosis, write_diagnosis
from propopt.lime.diagnosis.words import diagnosis_html, diagnosis_text, frame_of
from propopt.output.csv import write_csv
from propopt.tables.names import Labels


if TYPE_CHECKING:
    from propopt.lime.explanation.places import RowLimits
    from propopt.lime.explanation.result import LimeExplanation


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LimeDiagnosis:
    """What was looked for in coefficients of LIME, and found.

    Parameters
    ----------
    findings : tuple of LimeFinding
        What misleads most first.
    notes : tuple of LimeFinding
        What is so and misleads hardly anybody: severities below 0.25.
    quiet : tuple of QuietRule
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

    findings: tuple[LimeFinding, ...]
    quiet: tuple[QuietRule, ...]
    shape: tuple[int, int]
    n_samples: int
    source: str
    labels: Labels = Labels()
    notes: tuple[LimeFinding, ...] = ()

    @classmethod
    def of_told(
        cls,
        told: Sequence[LimeFinding | QuietRule],
        explanation: RowLimits,
        n_samples: int,
        source: str,
    ) -> LimeDiagnosis:
        """What rules told of limits at rows, or at documents.

        Parameters
        ----------
        told : sequence of LimeFinding or QuietRule
            In the order of the rules.
        explanation : LimeExplanation or TextLimeExplanation
            What it is about.
        n_samples : int
            Of the runs.
        source : str
            How coefficients were had.
        """
        found = [item for item in told if isinstance(item, LimeFinding)]
        found.sort(key=lambda finding: -finding.severity)
        return cls(
            findings=tuple(item for item in found if not item.is_note),
            notes=tuple(item for item in found if item.is_note),
            quiet=tuple(item for item in told if isinstance(item, QuietRule)),
            shape=explanation.shape,
            n_samples=n_samples,
            source=source,
            labels=explanation.labels,
        )

    @property
    def told(self) -> tuple[LimeFinding, ...]:
        """Findings and notes, what misleads most first."""
        return self.findings + self.notes

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

    def of_row(self, row: Hashable) -> LimeDiagnosis:
        """What was found about one row, or about all of them.

        Rules that found something at other rows alone are quiet here.

        Parameters
        ----------
        row : label or int
            Its name in the index of X, or its position where X had no names.

        Raises
        ------
        InvalidInput
            If there is none.
        """
        n = self.labels.position(row, self.shape[0])
        own, notes = (
            tuple(item for item in items if item.row in (n, None))
            for items in (self.findings, self.notes)
        )
        here = {item.rule for item in own + notes}
        rules = dict.fromkeys(item.rule for item in self.told)
        elsewhere = tuple(
            _quiet_at(n, self.of(rule)[0]) for rule in rules if rule not in here
        )
        quiet = self.quiet + elsewhere
        return replace(self, findings=own, notes=notes, quiet=quiet)

    def to_frame(self) -> pd.DataFrame:
        """A row for each finding, each note, and each rule that found nothing.

        ``kind`` is ``"finding"``, ``"note"`` or ``"quiet"``; ``found`` is True of
        findings alone.
        """
        return frame_of(self)

    def in_full(self) -> str:
        """The text of ``repr``, with each rule's note and each number that was near."""
        return diagnosis_text(self, in_full=True)

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`; what is not known is an empty cell."""
        write_csv(path, self.to_frame(), names_of_rows=False)

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file with one JSON header.

        Raises
        ------
        InvalidInput
            If the folder is not there.
        """
        write_diagnosis(path, self)

    @classmethod
    def load(cls, path: str | Path) -> LimeDiagnosis:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InvalidInput
            If the file is another one, or holds what no such result has.
        FileNotFoundError
            If there is none.
        """
        return cls(**read_diagnosis(path))

    __repr__ = diagnosis_text
    _repr_html_ = diagnosis_html


def _quiet_at(n: int, elsewhere: LimeFinding) -> QuietRule:
    """A rule that found something, but not at row n."""
    return QuietRule(
        rule=elsewhere.rule,
        row=n,
        column=None,
        number=np.nan,
        threshold=elsewhere.threshold,
        sentence="nothing found at this row",
    )


def diagnose(
    explanation: LimeExplanation,
    n_samples: int | None = None,
    *,
    rows: Sequence[Hashable] | None = None,
    progress: bool | None = None,
) -> LimeDiagnosis:
    """What these coefficients hide: findings with numbers, what misleads first.

    Signs against the profile of their column, noise, unstable ranks, cancellation by
    binning, edges of bins, weights that collapse or are not local, low fidelity,
    samples that are not like the data, quirks of the package; under normal samples
    also columns that are switched off and signs that are turned.

    Parameters
    ----------
    n_samples : int, optional
        Of the runs that it is about; those of the explanation by default.
    rows : sequence of labels or int, optional
        Only these, by their names in the index of X, or positions where X had no names.
    progress : bool, optional
        Show a bar, and before long work what it costs; by default only on a terminal.

    Returns
    -------
    LimeDiagnosis
        What misleads hardly anybody is among its notes.

    Raises
    ------
    InvalidInput
        If there is no such row.
    Refused
        If the explanation was loaded, and has no model.
    """
    subject = explanation.asked("diagnose")
    if rows is not None:
        explanation = explanation.of_rows(rows)
        subject = explanation.asked("diagnose")
    n = explanation.n_samples if n_samples is None else n_samples
    case = Case(explanation, subject, read_count(n, "n_samples"))
    with case.announced(progress):
        told = told_by(LIME_RULES, lambda rule: rule.findings(case), progress)
    return LimeDiagnosis.of_told(told, explanation, n, explanation.source)
