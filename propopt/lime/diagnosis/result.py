"""What coefficients of LIME hide, as a table with a sentence for each thing found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import pandas as pd

from propopt.checks import read_count
from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.finding import LimeFinding, QuietRule
from propopt.lime.diagnosis.rules import LIME_RULES
from propopt.lime.diagnosis.saved import read_diagnosis, write_diagnosis
from propopt.lime.diagnosis.words import diagnosis_html, diagnosis_text, frame_of
from propopt.output.csv import write_csv
from propopt.tables.names import Labels


if TYPE_CHECKING:
    from propopt.lime.explanation.result import LimeExplanation


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LimeDiagnosis:
    """What was looked for in coefficients of LIME, and found.

    Parameters
    ----------
    findings : tuple of LimeFinding
        What misleads most first.
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

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that found something, what misleads most first."""
        return tuple(dict.fromkeys(finding.rule for finding in self.findings))

    def of(self, rule: str) -> tuple[LimeFinding, ...]:
        """What a rule found.

        Parameters
        ----------
        rule : str
            Its name.
        """
        return tuple(finding for finding in self.findings if finding.rule == rule)

    def to_frame(self) -> pd.DataFrame:
        """One row for each finding, and one for each rule that found nothing."""
        return frame_of(self)

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


def diagnose(
    explanation: LimeExplanation, n_samples: int | None = None
) -> LimeDiagnosis:
    """Look for what coefficients hide; see :meth:`LimeExplanation.diagnose`."""
    n = explanation.n_samples if n_samples is None else n_samples
    case = Case(explanation, explanation.asked("diagnose"), read_count(n, "n_samples"))
    told = list(_told(case))
    findings = [item for item in told if isinstance(item, LimeFinding)]
    return LimeDiagnosis(
        findings=tuple(sorted(findings, key=lambda finding: -finding.severity)),
        quiet=tuple(item for item in told if isinstance(item, QuietRule)),
        shape=explanation.shape,
        n_samples=n,
        source=explanation.source,
        labels=explanation.labels,
    )


def _told(case: Case) -> Iterator[LimeFinding | QuietRule]:
    for rule in LIME_RULES:
        yield from rule.findings(case)
