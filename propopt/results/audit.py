"""Results of audits: checks with verdicts, numbers, and the rows that differ most.

Checks stand in the order in which a reviewer would ask for them: row sums, the base,
the values. Numbers have no verdict: exact values are not wrong because smoother ones
exist.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array, Values, largest_first
from propopt.base.checks import did_you_mean, largest_entry, read_nonnegative
from propopt.base.declared import field
from propopt.base.document import (
    Chapter,
    Document,
    Fact,
    Facts,
    Table,
    minus,
    number_text,
    shape_text,
    share_text,
    subtitle_of,
    title_of,
)
from propopt.base.errors import InvalidInput
from propopt.base.text import plural, printable
from propopt.base.vocabulary import Basis
from propopt.results.explanation import Explanation
from propopt.results.record import Decision, Record
from propopt.results.report.explorer import Explorer
from propopt.results.report.neighbours import Neighbours
from propopt.results.report.review_sheet import SIGNATURES, ReviewSheet, record_chapter
from propopt.results.result import Result


Verdict: TypeAlias = Literal["exact", "wrong", "not reproduced"]
"""Reproduced entry by entry; a mistake that was reproduced; or neither."""

CHECKS: Final = ("row sums", "base", "values")
"""The labels of the checks, which have verdicts, in their order."""

NUMBERS: Final = (
    "power",
    "R² with exact",
    "slope with exact",
    "large signs",
    "top 3 features",
    "unused features",
    "main effects",
    "required",
    "removable differences",
    "change to halve them",
    "change with half background",
)
"""The labels of numbers without a verdict, in their order."""

LARGE_SHARE: Final = 0.1
"""A value is large above this share of the mean of the largest |value| of each row."""

MAX_DF: Final = 9
"""Degrees of freedom of the standard errors of sampled values."""

# largest relative change of a number that is rounded to one digit
_MAX_ROUNDING: Final = 0.05
_PRECISION: Final = 1e-15  # relative rounding of sums in double precision
# relative errors below this are rounding, shown as zero, if the verdict is "ok"
_SHOWN_AS_ZERO: Final = 1e-6
# largest difference of numbers that are computed again after loading
_TOLERANCE: Final = 1e-9
MAX_CAUSES: Final = 10  # number of pairs that an audit lists


@final
@dataclass(frozen=True)
class AuditFinding:
    """A check of an audit with its verdict, or a number without one."""

    name: str  # one of CHECKS or NUMBERS
    number: float = field(missing=True)  # the error, or a share; NaN if unknown
    unit: str = field()  # "%" for shares
    verdict: Verdict | None = None  # None for numbers
    basis: Basis = "computed"
    turned: float = field(missing=True, default=math.nan)  # share of large signs
    cause: str = ""  # such as "another background" or "single slips"
    source: str = ""  # of the values or the base, such as "path-dependent values"
    count: int = field(low=0, default=0)  # the rows, columns or values of the cause
    rows: tuple[int, ...] = field(low=0, default=())  # some of them, the worst first
    features: tuple[int, ...] = field(low=0, default=())
    value: float = field(missing=True, default=math.nan)  # there, or the base
    expected: float = field(missing=True, default=math.nan)  # in its place


@final
@dataclass(frozen=True)
class Cause:
    """A pair of similar rows with its share of the removable differences."""

    first: int = field(low=0)
    second: int = field(low=0)
    share: float = field(low=0.0, high=1.0)
    feature: int = field(low=0)  # the column with the largest difference


@final
class Audit(Result, kind="propopt audit", noun="a saved audit", version=4):
    """Checks of attributions from any source, each with its error and a verdict.

    Made by :func:`propopt.audit`. Verdicts are "exact", "wrong" and "not reproduced".

    Parameters
    ----------
    findings : tuple of AuditFinding
        The checks, then numbers on similar rows and the background.
    explanation : Explanation
        The audited values W, in the order of the table's rows and columns, with their
        base values, the predictions, the rows and what the model predicts.
    exact : array (N, D) or None
        The exact Shapley values for the background; None if they cannot be computed.
    pairs : tuple of Cause
        The ten pairs of rows with the largest share of the removable differences; empty
        if rows are not compared.
    settings : mapping
        The source of the numbers, the background, the similar rows, the seed.
    record : Record or None
        Date, versions and digests of model and tables.
    tolerance : float or None
        The largest error of a value, and of the sum of a row, with which a row passes;
        see :meth:`to_sign`.
    decision : Decision or None
        The threshold on predictions above which the decision changes.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> audit = po.audit(X - X.mean(axis=0), lambda X: X.sum(axis=1), X)
    >>> audit.verdict, audit["values"].source
    ('exact', 'exact Shapley values with the audited rows as background')
    """

    findings: tuple[AuditFinding, ...] = field(nonempty=True)
    explanation: Explanation = field()
    exact: Array | None = field("N D", default=None)
    pairs: tuple[Cause, ...] = field(default=())
    settings: Mapping[str, str] = field(factory=dict)
    record: Record | None = field(default=None)
    tolerance: float | None = field(default=None, low=0.0)
    decision: Decision | None = field(default=None)

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
        names = [x.name for x in self.findings]
        if names != [*CHECKS, *(name for name in NUMBERS if name in names)]:
            raise InvalidInput(
                "findings: expected the checks of an audit in their order, each once"
            )
        W = self.explanation.attributions
        missed = W.sum(axis=1) - (self._prediction - self._base)
        numbers = {"row sums": largest_entry(missed)}
        if self.exact is not None:
            numbers["values"] = largest_entry(W - self.exact)
        findings = self._by_name
        for name, number in numbers.items():
            stated = findings[name].number if name in findings else math.nan
            if not math.isclose(stated, number, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
                raise InvalidInput(
                    f"findings: {name} is {stated:.6g}, but arrays give {number:.6g}"
                )
            self._refuse_verdict(findings[name])
        for x in self.findings:
            if {*x.rows} - {*range(W.shape[0])} or {*x.features} - {*range(W.shape[1])}:
                raise InvalidInput(
                    f"findings: {x.name} names a row or a column that is not there"
                )
        for pair in self.pairs:
            last = max(pair.first, pair.second), pair.feature
            if (last >= np.array(W.shape)).any():
                raise InvalidInput(
                    f"pairs: expected the positions of rows below {W.shape[0]} and of "
                    f"a column below {W.shape[1]}, got {pair}"
                )

    def _refuse_verdict(self, finding: AuditFinding) -> None:
        """Refuse exact sums, or values of the given game, with a large error.

        Right values may be rounded to a single digit; wrong sums have an error.
        """
        scale = self._scale
        too_large = finding.number > _MAX_ROUNDING * scale * self.explanation.shape[1]
        too_small = finding.number < _PRECISION * scale
        is_given = finding.name == "row sums" or finding.cause == "exact values"
        if (finding.verdict == "exact" and is_given and too_large) or (
            finding.verdict == "wrong" and too_small
        ):
            raise InvalidInput(
                f"findings: the verdict on {finding.name} is {finding.verdict!r}, "
                f"which contradicts an error of {finding.number:.3g} in values up to "
                f"{scale:.3g}"
            )

    @property
    def _scale(self) -> float:
        """The range of predictions, or the largest value."""
        largest = largest_entry(self.explanation.attributions)
        return max(float(np.ptp(self._prediction)), largest, 1e-12)

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
        """A check or a number by its label, such as ``audit["row sums"]``."""
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
    def verdict(self) -> Verdict:
        """The worst verdict of the checks: "wrong", "not reproduced" or "exact"."""
        verdicts = {x.verdict for x in self.findings}
        for worst in ("wrong", "not reproduced"):
            if worst in verdicts:
                return worst
        return "exact"

    @property
    def mistakes(self) -> tuple[AuditFinding, ...]:
        """The findings with the verdict "wrong"."""
        return tuple(x for x in self.findings if x.verdict == "wrong")

    def to_frame(self) -> pd.DataFrame:
        """A table with a row for each check and number, and a column for each field.

        ``rows`` and ``features`` are the names of those with the largest errors.
        """
        lines = [
            {
                **asdict(x),
                "rows": ", ".join(map(self._row, x.rows)),
                "features": ", ".join(map(self._feature, x.features)),
            }
            for x in self.findings
        ]
        return pd.DataFrame(lines).rename(columns={"name": "check"}).set_index("check")

    def causes_to_frame(self) -> pd.DataFrame:
        """A table of the pairs of similar rows that differ most.

        Columns are ``row``, ``other``, the ``share`` of the removable differences, the
        ``feature`` with the largest difference, and the attribution and the value of
        both rows in it.
        """
        explanation = self.explanation
        lines = [
            (
                *map(self._row, (pair.first, pair.second)),
                pair.share,
                explanation.features[pair.feature],
                *explanation.attributions[[pair.first, pair.second], pair.feature],
                explanation.value_of(pair.first, pair.feature),
                explanation.value_of(pair.second, pair.feature),
            )
            for pair in self.pairs
        ]
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

    def _row(self, n: int) -> str:
        return str(self.explanation.labels.row(n))

    def _feature(self, j: int) -> str:
        return self.explanation.features[j]

    # ---- the document

    def document(self) -> Document:
        """The mistake and the next step, the verdict of each check, and costs."""
        quantity = self.explanation.quantity
        source = self.settings.get("attributions", "given")
        size = shape_text(*self.explanation.shape)
        checks = [
            (x.name, x.verdict, self._error(x), self._where(x))
            for x in self.findings
            if x.verdict is not None
        ]
        return Document(
            title=title_of("Audit", quantity),
            subtitle=subtitle_of(quantity, size, source, f"in {self._unit}"),
            dangers=[*self._dangers()],
            blocks=[
                Table.of(("check", "verdict", "error", "where"), checks),
                Facts([*self._sheet.tolerances(), *self._facts()]),
            ],
            settings=self.settings,
            chapters=self._chapters,
        )

    def _error(self, x: AuditFinding) -> str:
        """The error of a check; 0 if it is rounding, or if another game is exact.

        The number of such values is their difference from the given background's.
        """
        is_rounding = abs(x.number) < _SHOWN_AS_ZERO * self._scale
        is_zero = is_rounding or x.name == "values"
        error = 0.0 if x.verdict == "exact" and is_zero else x.number
        return number_text(error, x.unit if x.unit == "%" else "")

    def _where(self, x: AuditFinding) -> str:
        """The rows and columns with the largest errors, or the source of numbers."""
        match x.name:
            case "values" if x.basis == "estimated":
                return "beyond the intervals of sampled values"
            case "values":
                return x.source if x.verdict == "exact" else x.cause
            case "base" if x.verdict != "exact":
                return minus(f"{x.value:.4g}, expected {x.expected:.4g}")
            case "base":
                is_same = x.source in ("", self["values"].source)
                return "" if is_same else f"the base of {x.source}"
        names = [*map(self._row, x.rows), *map(self._feature, x.features)]
        names += ["…"] * (0 < len(x.rows) < x.count)
        count = f"{x.count:,} of {plural(len(self._base), 'row')}: " if x.rows else ""
        return f"{count}{', '.join(names)}"

    def _facts(self) -> Iterator[Fact]:
        """Numbers as facts; shares of main effects and predictions are notes."""
        numbers = {x.name: x.number for x in self.findings}
        for x in self.findings[len(CHECKS) :]:
            note = ""
            if x.name == "removable differences":
                parts = ("main effects", "required")
                note = ", ".join(f"{k} {share_text(numbers[k])}" for k in parts)
            elif math.isfinite(x.turned):
                note = f"{share_text(x.turned)} of large signs turn"
            if x.name not in ("main effects", "required"):
                yield Fact(x.name, x.number, x.unit, x.basis, note)

    def _dangers(self) -> Iterator[str]:
        """The first mistake, or another thing that is not ok, and the next step."""
        failing = [x for x in self.findings if x.verdict not in ("exact", None)]
        failing.sort(key=lambda x: (x.verdict != "wrong", x.name != "values"))
        for x in failing:
            if (templates := _DANGERS.get(self._key(x))) is not None:
                names = self._names(x)
                yield templates[0].format_map(names)
                yield f"Next: {templates[1].format_map(names)}"
                return

    def _key(self, x: AuditFinding) -> str:
        """The key of the sentences on a cause; causes of right values share one."""
        match x.cause:
            case "signs" if not x.features:
                return "a constant factor"
            case "single slips" if x.source:
                return "other slips"
            case "a function" if x.number:
                return "beyond"
            case "undetermined" if self["row sums"].verdict == "wrong":
                return ""  # the sums of rows have the sentence
        return x.cause

    def _names(self, x: AuditFinding) -> dict[str, str]:
        """The names and numbers of a finding for a sentence."""
        rows, columns = self.explanation.shape
        names = [*map(self._row, x.rows), "", ""]
        features = [*map(self._feature, x.features), "", ""]
        size = max(abs(x.value), abs(x.expected), 1e-300)
        sign = "-" if x.name == "base" else "+"
        digits = 0
        if math.isfinite(size):  # three digits, and two of the difference
            apart = max(abs(x.value - x.expected), 1e-9 * size)
            least = min(10.0 * apart, size)
            digits = max(2 - math.floor(math.log10(least)), 0)
        return {
            "count": f"{x.count:,}",
            "n_rows": f"{rows:,}",
            "n_columns": f"{columns:,}",
            "size": f"{rows * columns:,}",
            "are": "is" if x.count == 1 else "are",
            "row": names[0],
            "other_row": names[1],
            "feature": features[0],
            "features": ", ".join(features[: len(x.features)]),
            "other_feature": features[1],
            "source": x.source,
            "base": minus(f"{self['base'].value:.4g}"),
            "value": minus(f"{x.value:{sign}.{digits}f}"),
            "expected": minus(f"{x.expected:{sign}.{digits}f}"),
        }

    def _chapters(self) -> list[Chapter]:
        """The chapters of the page: rows, values, one row, the record."""
        digests = {
            f"predictions for {plural(len(self._base), 'row')}": self._prediction,
            "rows, as numbers": self.explanation.points,
            "audited values": self.explanation.attributions,
            "exact values": self.exact,
        }
        return [
            *self._sheet.chapters(),
            *self._explorers(),
            record_chapter(self.record, digests),
            SIGNATURES,
        ]

    @property
    def _sheet(self) -> ReviewSheet:
        """Every row and every value, compared with the exact ones."""
        return ReviewSheet(
            result=self.explanation,
            noun="audited",
            unit=f"in {self._unit}",
            exact=self.exact,
            other=self._reference,
            base=self._base,
            prediction=self._prediction,
            tolerance=self.tolerance,
            decision=self.decision,
        )

    @property
    def _reference(self) -> str:
        """What the exact values are called; the audited ones may be of another game."""
        x = self["values"]
        is_other = x.verdict == "exact" and x.cause != "exact values"
        return "values of the background" if is_other else "exact values"

    @property
    def _unit(self) -> str:
        return self.settings.get("unit", "the unit of the output")

    def _explorers(self) -> Iterator[Chapter]:
        """Each row next to the most similar one; a row with errors is shown first."""
        similar = Neighbours.by_values(self.explanation)
        first = [n for name in ("values", "row sums") for n in self[name].rows]
        if self.exact is not None:
            differences = np.abs(self.explanation.attributions - self.exact)
            first.append(int(differences.max(axis=1).argmax()))
        yield Explorer(
            title="Two similar rows" if similar else "One row",
            lead=f"Audited values, in {self._unit}.",
            reference=self.exact,
            dashed="" if self.exact is None else f"Dashed: {self._reference}.",
            best=self.explanation,
            neighbours=similar,
            first_rows=[*dict.fromkeys(first)],
        ).chapter()

    def __repr__(self) -> str:
        verdicts = ", ".join(
            f"{x.name} {x.verdict}" for x in self.findings if x.verdict
        )
        return f"Audit({printable(verdicts)})"


_DANGERS: Final[Mapping[str, tuple[str, str]]] = {
    "wrong sums": (
        "The sums of {count} of {n_rows} rows differ from the prediction minus the "
        "base.",
        "Compute these values again, with this model, rows and base.",
    ),
    "another base": (
        "The base {value} should be {expected}, to which these values add up.",
        "Replace the base.",
    ),
    "unknown background": (
        "The base {value} is not the mean prediction over the background, {expected}.",
        "Give the background that they were made with: data=, here and in a file.",
    ),
    "single precision": (
        "The values are those of trees whose thresholds were rounded to single "
        "precision, as the package shap does, not those of the model.",
        "Take the exact values: audit.exact, or the file _exact.csv.",
    ),
    "optimized contributions": (
        "The values are optimized contributions, not SHAP values.",
        "Call them optimized contributions; explanation.contributions has SHAP values.",
    ),
    "LIME weights": (
        "The values are weights of LIME, not Shapley values.",
        "Judge them by fidelity, or take audit.exact.",
    ),
    "another class": (
        "The rows add up to another output, {source}.",
        "Choose the class that is explained, then audit again.",
    ),
    "a constant factor": (
        "The values are {source}.",
        "Undo the factor, in the base too, then audit again.",
    ),
    "absolute values": (
        "The values have lost {count} minus signs.",
        "Export the values with their signs.",
    ),
    "columns in another's place": (
        "{feature} has the values of {other_feature}: {count} of {n_columns} columns "
        "are in another's place.",
        "Put the columns in the order of the table, then audit again.",
    ),
    "rows in another's place": (
        "Row {row} has the values of row {other_row}: {count} of {n_rows} rows {are} "
        "in another's place.",
        "Put the rows in the order of the table, then audit again.",
    ),
    "signs": (
        "{count} of {size} signs are turned, in {features}.",
        "Turn the signs of these values, then audit again.",
    ),
    "one-hot sums": (
        "{feature} holds the sum of {count} columns.",
        "Compare sums over the same columns, or export each column.",
    ),
    "single slips": (
        "{count} of {size} values {are} wrong. Row {row}, {feature}: {value} should be "
        "{expected}.",
        "Take the exact values: audit.exact, or the file _exact.csv.",
    ),
    "other slips": (
        "{count} of {size} values {are} wrong; the others are {source}. Row {row}, "
        "{feature}: {value} should be {expected}.",
        "Compute these values again, in the same way as the others.",
    ),
    "unused columns": (
        "{feature} has values, but the model does not use it.",
        "Leave unused columns at zero; check the order of columns.",
    ),
    "blanked values": (
        "{count} of {size} values are blank; the others are {source}.",
        "Export all values.",
    ),
    "normalised rows": (
        "The sizes of each row add up to 1: values were divided by their sum.",
        "Export the values before that division.",
    ),
    "values permuted within rows": (
        "{count} of {n_rows} rows have the right values in other columns.",
        "Put the values under their columns, then audit again.",
    ),
    "samples": (
        "The values are not reproduced; their errors look like those of draws.",
        "Take the exact values: audit.exact, or the file _exact.csv.",
    ),
    "undetermined": (
        "The values are not reproduced; they imply the base {base}.",
        "Give the background rows that they were made with, data=, and the model file.",
    ),
    "beyond": (
        "{count} of {n_rows} rows have values beyond their sampled intervals.",
        "Give the background that they were made with, data=, or the fitted model.",
    ),
    "a function": (
        "The model can only be called: no value is beyond its sampled interval.",
        "Give the fitted model instead of a function.",
    ),
}
"""The mistake, as far as it was reproduced, and the next step, for each cause."""

# ---- Which similar rows have most of the removable differences


def largest_causes(
    edges: NDArray[np.intp],  # (E, 2): each pair of similar rows once
    similarities: Array,  # (E,)
    V: Array,  # (N, D): the removable part of the values
) -> tuple[Cause, ...]:
    """The pairs with most of Σ S ‖v_n − v_n'‖²."""
    squares = similarities[:, None] * (V[edges[:, 0]] - V[edges[:, 1]]) ** 2
    shares = squares.sum(axis=1) / squares.sum()
    return tuple(
        Cause(
            first=int(edges[k, 0]),
            second=int(edges[k, 1]),
            share=min(float(shares[k]), 1.0),
            feature=int(squares[k].argmax()),
        )
        for k in largest_first(shares)[:MAX_CAUSES].tolist()
    )
