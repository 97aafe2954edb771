"""What LIME tends to at rows of a table, with all that can be asked of it.

- :class:`~propopt.lime.explanation.LimeExplanation`: the result.
- :class:`~propopt.lime.explanation.LimeResult`: what it shares with that of documents.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Attributions, Points, Positions, Values
from propopt.base.checks import did_you_mean, read_count, read_positive, sealed
from propopt.base.errors import InvalidInput, Refused
from propopt.base.files import Format, as_json, write_csv, written_whole
from propopt.base.html import html_card, html_table
from propopt.base.text import in_html, printable
from propopt.lime.diagnosis.diagnosis import LimeDiagnosis
from propopt.lime.diagnosis.evidence import Evidence, told_by
from propopt.lime.diagnosis.rules import LIME_RULES
from propopt.lime.expectations import Limits
from propopt.lime.laws.lime_law import LimeLaw
from propopt.lime.lime_subject import LimeSubject
from propopt.lime.paths import BandwidthPath, bandwidth_path
from propopt.lime.profiles import RowCells, RowProfile, cell_coefficients
from propopt.lime.single_runs import (
    RunScatter,
    SingleRun,
    expected,
    required_samples,
    single_run,
)
from propopt.results.archive import (
    Arrays,
    CheckedFile,
    Header,
    Kinds,
    are_labels,
    are_texts,
    is_count,
    is_positive,
    is_size,
    is_text,
    labels_of,
    plain_labels,
)
from propopt.results.certain import plural
from propopt.tables.columns import Coded
from propopt.tables.frames import Labels, listed
from propopt.tables.schema import TableSchema


# ---- What LIME tends to at given rows, as a result: tables, cards, files


def cells_of(points: Points, schema: TableSchema | None) -> tuple[tuple[Any, ...], ...]:
    """Numbers, names of categories, and None for what is missing, (N, D)."""
    columns = [None] * points.shape[1] if schema is None else schema.columns
    shown = [
        [_cell(x, column) for x in values.tolist()]
        for values, column in zip(points.T, columns, strict=True)
    ]
    return tuple(zip(*shown, strict=True))


def bins_of(law: LimeLaw, points: Points) -> tuple[tuple[str, ...], ...]:
    """The bin of each value in words, (N, D)."""
    shown = [
        [str(column.bins[b]) for b in column.place(values).tolist()]
        for column, values in zip(law.columns, points.T, strict=True)
    ]
    return tuple(zip(*shown, strict=True))


def _cell(value: float, column: object) -> Any:
    if isinstance(column, Coded):
        category = column.categories[int(value)]
        return category if isinstance(category, bool | int | float) else str(category)
    return None if np.isnan(value) else value


# ---- Limits of LIME as a file, and back: checked alike on both ways


_TABLES: Final = ("coefficients", "alpha", "points")
_COLUMNS: Final = ("intercept", "log_weight", "effective_share", "values")
_MAYBE: Final = ("standard_errors", "deviations", "variance")


def _fields(header: Header, arrays: Arrays) -> dict[str, Any]:
    for name in sorted(arrays.keys() - {*_TABLES, *_COLUMNS, *_MAYBE}):
        raise InvalidInput(f"it also has the array {name!r}")
    shape = _shape(arrays)
    known = {
        name: _numbers(arrays, name, shape[: 2 - (name in _COLUMNS)])
        for name in (*_TABLES, *_COLUMNS)
    }
    errors = None
    if "standard_errors" in arrays:
        errors = _numbers(arrays, "standard_errors", shape)
    return {
        **known,
        **{name: header[name] for name in _PLAIN},
        "labels": labels_of(header["labels"], shape),
        "cells": _table(header["cells"], shape, "cells"),
        "bins": _table(header["bins"], shape, "bins"),
        "notes": tuple(header["notes"]),
        "standard_errors": errors,
        "scatter": _scatter(header["n_draws"], header["n_samples"], arrays, shape),
    }


def _scatter(
    n_draws: int | None,
    n_samples: int,
    arrays: Arrays,
    shape: tuple[int, int],
) -> RunScatter | None:
    if n_draws is None:
        return None
    deviations = _numbers(arrays, "deviations", shape)
    variance = _numbers(arrays, "variance", shape[:1])
    return RunScatter(deviations, variance, n_samples, n_draws)


def _shape(arrays: Arrays) -> tuple[int, int]:
    if "coefficients" not in arrays or arrays["coefficients"].ndim != 2:
        raise InvalidInput("it has no table of coefficients")
    N, D = arrays["coefficients"].shape
    if N == 0 or D == 0:
        raise InvalidInput("its coefficients are empty")
    return N, D


def _numbers(arrays: Arrays, name: str, shape: tuple[int, ...]) -> Array:
    """Numbers of a shape; only values of columns may be missing."""
    if name not in arrays:
        raise InvalidInput(f"it has no {name}")
    array = arrays[name]
    if array.dtype != np.float64 or array.shape != shape:
        raise InvalidInput(f"{name}: expected numbers of shape {shape}")
    if name not in ("points", "log_weight") and not np.isfinite(array).all():
        raise InvalidInput(f"{name}: expected finite numbers")
    return sealed(array.copy())


def _table(
    rows: list[list[Any]], shape: tuple[int, int], label: str
) -> tuple[tuple[Any, ...], ...]:
    if len(rows) != shape[0] or any(len(row) != shape[1] for row in rows):
        raise InvalidInput(f"{label}: expected a table of shape {shape}")
    return tuple(map(tuple, rows))


def _plain_cell(cell: object) -> object:
    """JSON has no NaN: what is missing is null; names of any type are text."""
    value = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(value, float) and math.isnan(value):
        return None
    return (
        value if value is None or isinstance(value, bool | int | float) else str(value)
    )


def _is_rows(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    def rows(value: object) -> bool:
        return isinstance(value, list) and all(
            isinstance(row, list) and all(map(fits, row)) for row in value
        )

    return rows


def _is_cell(value: object) -> bool:
    return value is None or isinstance(value, int | float) or is_text(value)


def _is_draws(value: object) -> bool:
    return value is None or is_count(value)


_PLAIN: Final = (
    "source",
    "reason",
    "bins",
    "law_in_words",
    "n_samples",
    "ridge",
    "first_row",
    "evaluations",
    "notes",
)
_KINDS: Final[Kinds] = {
    "source": (is_text, "text"),
    "reason": (is_text, "text"),
    "labels": (are_labels, "names of points and features, or null"),
    "cells": (_is_rows(_is_cell), "rows of numbers, text or null"),
    "bins": (_is_rows(is_text), "rows of text"),
    "law_in_words": (is_text, "text"),
    "n_samples": (is_positive, "an integer >= 1"),
    "ridge": (is_size, "a finite number >= 0"),
    "first_row": (lambda value: isinstance(value, bool), "true or false"),
    "evaluations": (is_count, "an integer >= 0"),
    "notes": (are_texts, "a list of sentences"),
    "n_draws": (_is_draws, "an integer >= 0, or null"),
}
_FILE: Final = CheckedFile(
    form=Format("propopt lime", "saved limits of LIME", version=1),
    kinds=_KINDS,
    fields=_fields,
)


# ---- The table of an explanation by limits of LIME, and its forms for other readers


def known_noise(explanation: LimeExplanation) -> Array:
    """The scatter of single runs; NaN where it is not known and cannot be asked."""
    if explanation.scatter is None and explanation.subject is None:
        return np.full(explanation.shape, np.nan)
    return explanation.noise()


def named_coefficients(explanation: LimeExplanation, n: int) -> list[str]:
    """Each column of a row with its bin in words."""
    names = explanation.labels.feature_names(explanation.shape[1])
    return list(map(described, names, explanation.bins[n]))


def described(name: str, own: str) -> str:
    """A column with its bin, which may start with a sign of its own."""
    return f"{name} {own}" if own[:1] in "<>≤≥=" else f"{name}: {own}"


def _plain(records: list[dict[Any, Any]]) -> list[dict[str, Any]]:
    return [{str(k): _known(v) for k, v in record.items()} for record in records]


def _known(value: object) -> object:
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, float) and not math.isfinite(number):
        return None
    plain = number is None or isinstance(number, bool | int | float | str)
    return number if plain else str(number)


def _flat(table: tuple[tuple[Any, ...], ...]) -> list[Any]:
    return [cell for row in table for cell in row]


# ---- What is shown of limits of LIME: what is exact, what is estimated, and the units


ROWS_SHOWN, COLUMNS_SHOWN = 3, 10

ROWS_SAMPLED = 100
"""Of more rows a card does not estimate the noise, which takes a while."""


_HEAD = ("feature and bin", "coefficient", "sd of one run", "mean of runs")


def _number(x: float) -> str:
    return "" if np.isnan(x) else f"{x:.4g}"


# ---- What results of tables and of documents share


AskedAbout = TypeVar("AskedAbout")
"""What is asked about rows of a table, or about documents."""


class LimeResult(ABC, Generic[AskedAbout]):
    """What LIME tends to at N rows of a table, or documents, that may have names."""

    units: ClassVar[str] = "units of the output"

    _file: ClassVar[CheckedFile]
    _left_behind: ClassVar[str]

    n_samples: int
    subject: AskedAbout | None

    @property
    @abstractmethod
    def labels(self) -> Labels:
        """Names of the rows and of the columns, or words."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """N, and the number of columns or words."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """All numbers as a table."""

    @property
    def explained_in_words(self) -> str:
        """What is explained, such as "probability of malignant".

        "output" where a loaded result has no model.
        """
        subject: Any = self.subject
        return "output" if subject is None else subject.function.quantity.in_words()

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`; numbers read back to the same value."""
        write_csv(path, self.to_frame(), names_of_rows=False)

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`to_frame` as a list of objects; what is not known is null."""
        records = self.to_frame().to_dict(orient="records")
        text = json.dumps(
            json.loads(as_json(_plain(records))), indent=1, ensure_ascii=False
        )
        with written_whole(Path(path)) as draft:
            draft.write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote."""
        return cls(**cls._file.read(path))

    def asked(self, label: str) -> AskedAbout:
        """The model and the law."""
        if self.subject is None:
            raise Refused(f"{label}: {self._left_behind}")
        return self.subject

    def as_list(self, row: Hashable | None = None) -> list[tuple[str, float]]:
        """Names and coefficients; the largest first, as the package ``lime`` has it.

        Names are those of words, or of columns with their bins.
        """
        names, _ = self._at(self.position(row))
        return [(names[j], weight) for j, weight in self.as_map(row)[1]]

    def as_map(self, row: Hashable | None = None) -> dict[int, list[tuple[int, float]]]:
        """Under the key 1 positions and coefficients, the largest first.

        Words are numbered in the order in which they first come, as ``lime`` does it;
        of equal coefficients the first comes first.
        """
        _, coefficients = self._at(self.position(row))
        order = np.argsort(-np.abs(coefficients), kind="stable").tolist()
        return {1: [(j, float(coefficients[j])) for j in order]}

    @abstractmethod
    def _at(self, n: int) -> tuple[Sequence[str], Values]:
        """Names of the columns of a row, or of the words, and their coefficients."""

    def position(self, row: Hashable | None = None) -> int:
        """Where a row, or document, stands; the first by default."""
        return 0 if row is None else self.labels.position(row, self.shape[0])

    def _positions(self, rows: Sequence[Hashable]) -> Positions:
        """Where some rows, or documents, stand, (n,)."""
        if isinstance(rows, str) or len(rows) == 0:
            raise InvalidInput(f"rows: expected names of rows in a list, got {rows!r}")
        return np.array([self.position(row) for row in rows], np.intp)

    def _samples(self, n_samples: int | None) -> int:
        """The samples of a run; those of the explanation where none are given."""
        if n_samples is None:
            return self.n_samples
        return read_count(n_samples, "n_samples")


# ---- What LIME tends to at rows of a table, with what is known of its error


EXACT_LIMITS: Final = "exact"

_BY_ROWS = (
    "coefficients",
    "intercept",
    "standard_errors",
    "alpha",
    "log_weight",
    "effective_share",
    "values",
    "points",
)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LimeExplanation(LimeResult[LimeSubject]):
    """The coefficients that LIME tends to, for each row of a table.

    g(z) = β_0 + Σ_j β_j z_j, where bit z_j says whether a sample is in the bin of the
    row; β_j = E_Q[f | z_j = 1] − E_Q[f | z_j = 0] is in units of the output.

    Parameters
    ----------
    coefficients : array (N, D)
        β_j. Exact ones need no seed. The same rows in any order have the same to the
        last bit; beside other rows, sums may be rounded otherwise.
    intercept : array (N,)
        β_0.
    standard_errors : array (N, D) or None
        Of estimated coefficients; None where they are exact.
    source : str
        ``"exact"``, or how they were estimated.
    reason : str
        Why they could not be exact, a sentence; empty where they are.
    alpha : array (N, D)
        Q(z_j = 1): the weighted share of samples in the bin of the row.
    log_weight : array (N,)
        log C, C = E π.
    effective_share : array (N,)
        (E π)² / E π²: how many samples without weights one with weight is worth.
    values : array (N,)
        f at the rows.
    points : array (N, D)
        The rows, encoded.
    cells : tuple of tuples (N, D)
        Their values: numbers, names of categories, None.
    bins : tuple of tuples of str (N, D)
        The bin of each value, in words.
    law_in_words : str
        The law, its bins and its width.
    n_samples : int
        Of one run of LIME, for ``noise``, ``expected`` and tables.
    ridge : float
        λ of one run; the package has 1.
    first_row : bool
        Whether the row itself is the first sample of a run, as it is in the package.
    labels : Labels
        Names of rows and columns.
    evaluations : int
        Rows that the model was given.
    notes : tuple of str
        What a reader has to know, a sentence each.
    scatter : RunScatter or None
        What is known of the scatter of single runs.
    subject : LimeSubject or None
        The model and the law. They are not saved: of a loaded explanation it is None.
    """

    _file: ClassVar[CheckedFile] = _FILE
    _left_behind: ClassVar[str] = (
        "the model and the law are not saved with an explanation; make it anew with "
        "propopt.lime.limits"
    )

    coefficients: Attributions
    intercept: Values
    standard_errors: Array | None = None
    source: str = EXACT_LIMITS
    reason: str = ""
    alpha: Array
    log_weight: Values
    effective_share: Values
    values: Values
    points: Points
    cells: tuple[tuple[Any, ...], ...]
    bins: tuple[tuple[str, ...], ...]
    law_in_words: str
    n_samples: int
    ridge: float
    first_row: bool
    labels: Labels = Labels()
    evaluations: int = 0
    notes: tuple[str, ...] = ()
    scatter: RunScatter | None = None
    subject: LimeSubject | None = None

    def __post_init__(self) -> None:
        self.labels.check(self.shape, "labels")
        for array in vars(self).values():
            if isinstance(array, np.ndarray):
                sealed(array)

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        N, D = self.coefficients.shape
        return N, D

    @property
    def is_exact(self) -> bool:
        """Whether coefficients have no error but rounding."""
        return self.source == EXACT_LIMITS

    @property
    def law(self) -> LimeLaw:
        """The law of the samples."""
        return self.asked("law").law

    @cached_property
    def limits(self) -> Limits:
        """Coefficients, E_Q f, α and log C: what rooms of formulas take."""
        return Limits(self.coefficients, self.mean, self.alpha, self.log_weight)

    @property
    def mean(self) -> Values:
        """E_Q f, (N,)."""
        pulls = np.einsum("nd,nd->n", self.alpha, self.coefficients)
        return np.asarray(self.intercept + pulls)

    @property
    def mean_weight(self) -> Values:
        """C = E π, (N,)."""
        return np.asarray(np.exp(self.log_weight))

    @property
    def at_row(self) -> Values:
        """The surrogate at the row itself, β_0 + Σ_j β_j, (N,)."""
        return np.asarray(self.intercept + self.coefficients.sum(axis=1))

    @property
    def local_gap(self) -> Values:
        """f(x) less the surrogate at the row, (N,)."""
        return np.asarray(self.values - self.at_row)

    @property
    def explained(self) -> Values:
        """Σ_j α_j(1 − α_j) β_j²: the variance of the surrogate under Q, (N,)."""
        parts = self.alpha * (1.0 - self.alpha) * self.coefficients**2
        return np.asarray(parts.sum(axis=1))

    @property
    def r2(self) -> Values:
        """The share of Var_Q f that the surrogate explains, (N,); 1 where f is flat."""
        total = np.maximum(self.runs.variance, self.explained)
        return np.divide(
            self.explained, total, out=np.ones(len(total)), where=total > 0
        )

    @cached_property
    def runs(self) -> RunScatter:
        """How single runs scatter, estimated from samples when first asked."""
        if self.scatter is not None:
            return self.scatter
        return RunScatter(
            self.own_run.standard_deviations,
            self.asked("the variance of the function").variance(),
            self.n_samples,
        )

    @cached_property
    def own_run(self) -> SingleRun:
        """One run of ``n_samples``."""
        return self._run_of(self.n_samples)

    def to_frame(self) -> pd.DataFrame:
        """One row for each row and column of X: coefficient, bin, error, noise."""
        N, D = self.shape
        rows = range(N) if self.labels.points is None else self.labels.points
        errors = self.standard_errors
        of_rows = {
            "intercept": self.intercept,
            "prediction": self.values,
            "surrogate_at_row": self.at_row,
            "effective_share": self.effective_share,
        }
        columns: dict[str, Any] = {
            "row": [row for row in rows for _ in range(D)],
            "feature": list(self.labels.feature_names(D)) * N,
            "value": pd.Series(_flat(self.cells), dtype=object),
            "bin": _flat(self.bins),
            "coefficient": self.coefficients.ravel(),
            "standard_error": (np.zeros((N, D)) if errors is None else errors).ravel(),
            "alpha": self.alpha.ravel(),
            "single_run_sd": known_noise(self).ravel(),
            "single_run_sd_source": self._source_of_noise,
            "expected": self.expected().ravel(),
            "n_samples": self.n_samples,
            **{name: np.repeat(values, D) for name, values in of_rows.items()},
            "source": self.source,
            "units": self.units,
        }
        return pd.DataFrame(columns)

    @property
    def _source_of_noise(self) -> str:
        """Deviations of runs are estimated, also where coefficients are exact."""
        if self.scatter is None and self.subject is None:
            return ""
        return f"estimate ({self.runs.n_draws:,} draws a row)"

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file without pickles; model and law stay behind.

        Raises
        ------
        InvalidInput
            If the folder is not there.
        """
        arrays = {name: getattr(self, name) for name in (*_TABLES, *_COLUMNS)}
        if self.standard_errors is not None:
            arrays["standard_errors"] = self.standard_errors
        header = {name: getattr(self, name) for name in _PLAIN}
        header["labels"] = plain_labels(self.labels)
        header["cells"] = [list(map(_plain_cell, row)) for row in self.cells]
        header["n_draws"] = None
        if self.scatter is not None or self.subject is not None:
            runs = self.runs
            arrays["deviations"], arrays["variance"] = runs.deviations, runs.variance
            header["n_draws"] = runs.n_draws
        _FILE.write(path, header, arrays)

    def single_run(self, n_samples: int | None = None) -> SingleRun:
        """The mean and the covariance of the coefficients of one run of LIME.

        Parameters
        ----------
        n_samples : int, optional
            Of the run; those of the explanation by default.

        Raises
        ------
        Refused
            If the explanation was loaded.
        """
        n = self._samples(n_samples)
        return self.own_run if n == self.n_samples else self._run_of(n)

    def _run_of(self, n_samples: int) -> SingleRun:
        """The mean and the covariance of one run."""
        subject = self.asked("a run of another number of samples")
        return single_run(
            subject.evaluate,
            subject.law,
            subject.points,
            self.limits,
            self.values if self.first_row else None,
            n_samples,
            self.ridge,
            self.first_row,
            rng=np.random.default_rng(subject.seed),
            common=subject.common,
        )

    def noise(self, n_samples: int | None = None) -> Array:
        """Standard deviations of the coefficients of a single run, (N, D).

        Parameters
        ----------
        n_samples : int, optional
            Of the run; those of the explanation by default.

        Raises
        ------
        Refused
            If the explanation was loaded, and they are not known.
        """
        n = self._samples(n_samples)
        if n == self.n_samples:
            return self.runs.deviations
        return self._run_of(n).standard_deviations

    def required_n(self, se: float) -> Array:
        """Samples of one run for standard errors of ``se``, (N, D).

        Parameters
        ----------
        se : float
            In units of the output.

        Raises
        ------
        InvalidInput
            If it is not positive.
        """
        size = read_positive(se, "se")
        return required_samples(self.n_samples, self.runs.deviations, size)

    def expected(self, n_samples: int | None = None) -> Array:
        """Mean coefficients of runs with their ridge and their first row, (N, D).

        Parameters
        ----------
        n_samples : int, optional
            Of each run; those of the explanation by default.
        """
        return expected(
            self.limits,
            self.values,
            self._samples(n_samples),
            self.ridge,
            self.first_row,
        ).coefficients

    def column(self, feature: str | int) -> int:
        """Where a column stands, by its name or its position.

        Parameters
        ----------
        feature : str or int
            The column.

        Raises
        ------
        InvalidInput
            If there is none.
        """
        names = self.labels.feature_names(self.shape[1])
        if feature in names:
            return names.index(str(feature))
        if isinstance(feature, int) and 0 <= feature < len(names):
            return feature
        raise InvalidInput(
            f"feature: there is no column {feature!r}"
            f"{did_you_mean(feature, names)}; there are {listed(names)}"
        )

    def of_rows(self, rows: Sequence[Hashable]) -> LimeExplanation:
        """The same of some rows alone; nothing is computed.

        Parameters
        ----------
        rows : sequence of labels or int
            Their names in the index of X, or positions where X had no names.

        Raises
        ------
        InvalidInput
            If there is no such row, or no row is asked for.
        """
        indices = self._positions(rows)
        N, names = len(self.coefficients), self.labels
        if names.points is None and not np.array_equal(indices, np.arange(N)):
            # rows without names keep their numbers
            names = replace(names, points=tuple(range(N)))
        of_rows = {
            name: part[indices]
            for name, part in vars(self).items()
            if name in _BY_ROWS and part is not None
        }
        subject = self.subject
        scatter = vars(self).get("runs", self.scatter)
        return replace(
            self,
            **of_rows,
            cells=tuple(self.cells[n] for n in indices),
            bins=tuple(self.bins[n] for n in indices),
            labels=names.of_positions(indices),
            scatter=None if scatter is None else scatter.of_rows(indices),
            subject=None if subject is None else subject.of_rows(indices),
        )

    def diagnose(
        self,
        n_samples: int | None = None,
        *,
        rows: Sequence[Hashable] | None = None,
        progress: bool | None = None,
    ) -> LimeDiagnosis:
        """What these coefficients hide: findings with numbers, what misleads first.

        Signs against the profile of their column, noise, unstable ranks, cancellation
        by binning, edges of bins, weights that collapse or are not local, low fidelity,
        samples that are not like the data, quirks of the package; under normal samples
        also columns that are switched off and signs that are turned.

        Parameters
        ----------
        n_samples : int, optional
            Of the runs that it is about; those of the explanation by default.
        rows : sequence of labels or int, optional
            Only these, by their names in the index of X, or positions where X had no
            names.
        progress : bool, optional
            Show a bar, and before long work what it costs; by default only on a
            terminal.

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
        subject, n = self.asked("diagnose"), self._samples(n_samples)
        if rows is not None:
            return self.of_rows(rows).diagnose(n, progress=progress)
        evidence = Evidence(self, subject, n)
        with evidence.announced(progress):
            told = told_by(LIME_RULES, lambda rule: rule.findings(evidence), progress)
        return LimeDiagnosis.of_told(told, self.shape, self.labels, n, self.source)

    def profile(self, row: Hashable | None = None) -> RowProfile:
        """Means of f over the bins of each column, all else as for this row.

        Parameters
        ----------
        row : label or int, optional
            Its name in the index of X, or its position where X had no names; by default
            the first.

        Raises
        ------
        Refused
            If the explanation was loaded.
        """
        n, subject = self.position(row), self.asked("profile")
        law, point = subject.law, subject.points[[n]]
        columns = range(self.shape[1])
        return RowProfile(
            features=self.labels.feature_names(self.shape[1]),
            bins=tuple(tuple(column.bins) for column in law.columns),
            means=tuple(means[0] for means in subject.profiles(point)),
            own=np.array([law.columns[j].place(point[:, j])[0] for j in columns]),
            mean=float(self.mean[n]),
        )

    def cells_of(
        self,
        first: str | int,
        second: str | int,
        row: Hashable | None = None,
    ) -> RowCells:
        """Coefficients of two columns in each cell of their bins.

        Parameters
        ----------
        first, second : str or int
            The columns, by name or position.
        row : label or int, optional
            What the other columns are; by default the first row.

        Raises
        ------
        InvalidInput
            If there is no such column, or both are one.
        Refused
            If the explanation was loaded.
        """
        n, subject = self.position(row), self.asked("cells_of")
        pair = self.column(first), self.column(second)
        if pair[0] == pair[1]:
            raise InvalidInput("cells_of: expected two columns, got one twice")
        names = self.labels.feature_names(self.shape[1])
        law, point = subject.law, subject.points[[n]]
        one, other = (law.columns[j] for j in pair)
        return RowCells(
            features=(names[pair[0]], names[pair[1]]),
            bins=(tuple(one.bins), tuple(other.bins)),
            coefficients=cell_coefficients(subject.limits, law, point, pair),
            own=(
                int(one.place(point[:, pair[0]])[0]),
                int(other.place(point[:, pair[1]])[0]),
            ),
        )

    def path(
        self,
        row: Hashable | None = None,
        widths: ArrayLike | None = None,
    ) -> BandwidthPath:
        """Coefficients of a row at many kernel widths, exact at each.

        Parameters
        ----------
        row : label or int, optional
            Its name in the index of X, or its position where X had no names; by default
            the first.
        widths : array (M,), optional
            Kernel widths; by default 50 around that of the law.

        Raises
        ------
        Refused
            If coefficients are estimated, or the explanation was loaded.
        """
        subject = self.asked("path")
        if subject.exact is None:
            raise Refused(f"path: coefficients are estimated, as {self.reason}")
        return bandwidth_path(subject.exact, subject.points[self.position(row)], widths)

    def _at(self, n: int) -> tuple[Sequence[str], Values]:
        return named_coefficients(self, n), self.coefficients[n]

    def __repr__(self) -> str:
        """One line."""
        facts = "; ".join(map(printable, self._claims()))
        return f"LimeExplanation({self._size()}; {facts})"

    def _repr_html_(self) -> str:
        """A title, facts, and the largest coefficients of the first rows."""
        N, _ = self.shape
        noise = self._noise_for_card()
        facts = [*self._claims(), *self.notes]
        if np.isnan(noise).all() and self.subject is not None:
            facts.append("sd of one run: estimated from samples when noise() is asked")
        parts = [
            f"<b>{in_html(f'LIME, its limits: {self._size()}')}</b>",
            "<br>".join(map(in_html, facts)),
        ]
        shown = range(min(N, ROWS_SHOWN))
        parts += [html_table(_HEAD, self._largest(noise, n)) for n in shown]
        if N > ROWS_SHOWN:
            parts.append(in_html(f"{plural(N - ROWS_SHOWN, 'more row')}"))
        return html_card(parts)

    def _size(self) -> str:
        """Rows and columns."""
        N, D = self.shape
        return f"{plural(N, 'row')}, {plural(D, 'feature')}"

    def _claims(self) -> Iterator[str]:
        """What is proved, what is estimated, and the units."""
        errors = self.standard_errors
        if errors is None:
            yield "coefficients exact, without samples or a seed"
        else:
            called = self.evaluations
            evaluations = f", {called:,} evaluations" if called else ""
            yield (
                f"coefficients: {self.source}, standard errors up to "
                f"{np.nanmax(errors):.2g}{evaluations}; not exact because "
                f"{self.reason}"
            )
        yield f"in {self.units}"
        yield self.law_in_words
        scatter = vars(self).get("runs", self.scatter)
        if scatter is not None:
            yield (
                f"one run of {self.n_samples:,} samples has sd up to "
                f"{self.noise().max():.2g} (estimated from {scatter.n_draws:,} "
                "samples a row)"
            )

    def _noise_for_card(self) -> Array:
        """The scatter of single runs; NaN where looking at a card would take long."""
        known = "runs" in vars(self) or self.scatter is not None
        if known or self.shape[0] <= ROWS_SAMPLED:
            return known_noise(self)
        return np.full(self.shape, np.nan)

    def _largest(self, scatter: Array, n: int) -> Iterable[list[str]]:
        own = self.coefficients[n]
        noise, mean = scatter[n], self.expected()[n]
        names = named_coefficients(self, n)
        order = np.argsort(-np.abs(own), kind="stable")
        for j in order[:COLUMNS_SHOWN]:
            numbers = (own[j], noise[j], mean[j])
            yield [in_html(names[j]), *(_number(x) for x in numbers)]
        if len(order) > COLUMNS_SHOWN:
            rest = np.abs(own[order[COLUMNS_SHOWN:]]).max()
            yield [
                f"{len(order) - COLUMNS_SHOWN} others",
                f"at most {rest:.4g}",
                "",
                "",
            ]
