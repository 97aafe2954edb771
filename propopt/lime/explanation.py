"""What LIME tends to at rows of a table, with all that can be asked of it.

- :class:`~propopt.lime.explanation.LimeExplanation`: the result.
- :class:`~propopt.lime.explanation.LimeResult`: what it shares with that of documents.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Literal, Self, TypeVar, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri

from propopt.base.arrays import Array, Attributions, Points, Positions, Values
from propopt.base.cards import N_FEATURES, Card, CardRow
from propopt.base.checks import (
    did_you_mean,
    known_word,
    read_count,
    read_level,
    read_positive,
)
from propopt.base.declared import left, stored
from propopt.base.errors import InvalidInput, Refused
from propopt.base.text import Quantity, printable
from propopt.lime.diagnosis.diagnosis import LimeDiagnosis, as_row
from propopt.lime.diagnosis.evidence import RowsEvidence, told_by
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
from propopt.results.certain import plural
from propopt.results.result import Result
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


def _flat(table: tuple[tuple[Any, ...], ...]) -> list[Any]:
    return [cell for row in table for cell in row]


# ---- What is shown of limits of LIME: bars, and where single runs fall


ROWS_SAMPLED = 100
"""Of more rows a card does not estimate the noise, which takes a while."""

SHARE_OF_RUNS: Final = 0.95
"""Of lines across the bars of a card."""


def deviations_of(level: float = SHARE_OF_RUNS) -> float:
    """From the middle to the ends of an interval, in standard deviations."""
    return float(ndtri(0.5 + 0.5 * level))


def largest_on_card(
    names: Sequence[str], values: Values, intervals: Array
) -> tuple[list[CardRow], str]:
    """The largest numbers, with intervals (d, 2), and a sentence on the others."""
    sizes = np.abs(values)
    order = np.argsort(-sizes, kind="stable")
    rows = [
        CardRow(
            name=names[j],
            value=float(values[j]),
            interval=(float(intervals[j, 0]), float(intervals[j, 1])),
        )
        for j in order[:N_FEATURES].tolist()
    ]
    others = order[N_FEATURES:]
    if len(others) == 0:
        return rows, ""
    words = "1 other, " if len(others) == 1 else f"{len(others)} others, at most "
    return rows, f"{words}{sizes[others].max():.3g} in size"


def lines_in_words(n_samples: int) -> str:
    """What the lines across bars are."""
    share = f"{100.0 * SHARE_OF_RUNS:g} %"
    return f"lines: where {share} of single runs of {n_samples:,} samples fall"


def notes_on_card(notes: Sequence[str]) -> dict[str, str]:
    """Notes as settings of a card."""
    return {f"note {k}": note for k, note in enumerate(notes, start=1)}


# ---- What results of tables and of documents share


AskedAbout = TypeVar("AskedAbout")
"""What is asked about rows of a table, or about documents."""

OfEach = TypeVar("OfEach")
"""One array for all rows of a table, or a list with one for each document."""


class LimeResult(Result, Generic[AskedAbout, OfEach]):
    """What LIME tends to at N rows of a table, or documents, that may have names."""

    units: ClassVar[str] = "units of the output"

    _left_behind: ClassVar[str]

    n_samples: int = stored(low=1)
    evaluations: int = stored(default=0, low=0)
    notes: tuple[str, ...] = stored(default=())
    quantity: Quantity | None = stored(default=None)
    scatter: Any = stored(default=None)
    subject: AskedAbout | None = left(default=None)

    @property
    @abstractmethod
    def labels(self) -> Labels:
        """Names of the rows and of the columns, or words."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """N, and the number of columns or words."""

    @property
    @abstractmethod
    def runs(self) -> Any:
        """How single runs come out."""

    @abstractmethod
    def noise(self, n_samples: int | None = None) -> OfEach:
        """Standard deviations of the coefficients of a single run."""

    @abstractmethod
    def expected(self, n_samples: int | None = None) -> OfEach:
        """Mean coefficients of runs."""

    @abstractmethod
    def of_rows(self, rows: Sequence[Hashable]) -> Self:
        """The same of some rows, or documents, alone."""

    @property
    def explained_in_words(self) -> str:
        """What is explained, such as "probability of malignant".

        "output" of files that were written before it was saved.
        """
        return "output" if self.quantity is None else self.quantity.in_words()

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file without pickles; the model and the law stay behind.

        How single runs scatter is computed first, if nobody has asked for it yet.
        """
        super(LimeResult, self._settled()).save(path)

    def __getstate__(self) -> dict[str, Any]:
        return super(LimeResult, self._settled()).__getstate__()

    def _settled(self) -> Self:
        """The same, with all that needs the model computed."""
        return self if self.subject is None else replace(self, scatter=self.runs)

    def asked(self, label: str) -> AskedAbout:
        """The model and the law."""
        if self.subject is None:
            raise Refused(f"{label}: {self._left_behind}")
        return self.subject

    def intervals(
        self,
        # the share of single runs, each coefficient by itself; or the confidence
        level: float = SHARE_OF_RUNS,
        *,
        # where single runs of n samples fall, around their mean of expected
        of: Literal["runs", "limits"] = "runs",
        # of the run; those of the explanation by default; limits do not read it
        n_samples: int | None = None,
    ) -> OfEach:
        """Where coefficients fall: lower and upper ends, by the normal law."""
        z = deviations_of(read_level(level))
        if known_word(of, Literal["runs", "limits"], "of") == "limits":
            return self._around(*self._limits_and_errors(), z)
        return self._around(self.expected(n_samples), self.noise(n_samples), z)

    def required_n(self, se: float) -> OfEach:
        """Samples of one run for standard errors of ``se``, as many as coefficients.

        Parameters
        ----------
        se : float
            In units of the output.

        Raises
        ------
        InvalidInput
            If it is not positive.
        """
        n, size = self.n_samples, read_positive(se, "se")
        return self._each(lambda own: required_samples(n, own, size), self.noise())

    def _around(self, middle: OfEach, deviations: OfEach, z: float) -> OfEach:
        """Both ends, z deviations from the middle."""
        return self._each(
            lambda m, s: np.stack([m - z * s, m + z * s], axis=-1), middle, deviations
        )

    @abstractmethod
    def _each(self, of: Callable[..., Array], *parts: OfEach) -> OfEach:
        """What is made of all rows at once, or of one document after the other."""

    @abstractmethod
    def _limits_and_errors(self) -> tuple[OfEach, OfEach]:
        """Coefficients, and standard errors that are 0 where they are exact."""

    def top(self, k: int = 10, row: Hashable | None = None) -> pd.DataFrame:
        """The k largest coefficients of a row, or document.

        Rows of :meth:`to_frame`.
        """
        count, n = read_count(k, "k"), self.position(row)
        name = n if self.labels.points is None else self.labels.points[n]
        frame = self.of_rows([name]).to_frame()
        order = np.argsort(-frame["coefficient"].abs().to_numpy(), kind="stable")
        return frame.iloc[order[:count]].reset_index(drop=True)

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

    def _why(self, value: float, whom: str, beside: str = "") -> str:
        """What a card says first: what is explained, and of whom."""
        known = self.quantity
        if known is not None and known == Quantity(model=known.model):
            return f"Why the model predicts {value:.4g} for {whom}{beside}"
        return f"Why the {self.explained_in_words} is {value:.4g} for {whom}{beside}"

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

_ROUNDING: Final = 1e-6

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
class LimeExplanation(
    LimeResult[LimeSubject, Array],
    kind="propopt lime",
    noun="saved limits of LIME",
    version=2,
):
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
    quantity : Quantity or None
        What is explained, such as the probability of a class.
    scatter : RunScatter or None
        What is known of the scatter of single runs.
    subject : LimeSubject or None
        The model and the law. They are not saved: of a loaded explanation it is None.
    """

    _left_behind: ClassVar[str] = (
        "the model and the law are not saved with an explanation; make it anew with "
        "propopt.lime.limits"
    )

    coefficients: Attributions = stored("N D", nonempty=True)
    intercept: Values = stored("N")
    standard_errors: Array | None = stored("N D", low=0.0, default=None)
    source: str = stored(default=EXACT_LIMITS)
    reason: str = stored(default="")
    alpha: Array = stored("N D", low=0.0, high=1.0)
    log_weight: Values = stored("N", infinite=True)
    effective_share: Values = stored("N", low=0.0)
    values: Values = stored("N")
    points: Points = stored("N D", missing=True, infinite=True)
    cells: tuple[tuple[float | str | bool | None, ...], ...] = stored(missing=True)
    bins: tuple[tuple[str, ...], ...] = stored()
    law_in_words: str = stored()
    ridge: float = stored(low=0.0)
    first_row: bool = stored()
    labels: Labels = stored(default=Labels())
    scatter: RunScatter | None = stored(default=None)
    subject: LimeSubject | None = left(default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.labels.check(self.shape, "labels")

    def contradictions(self) -> None:
        """Refuse tables of other shapes, errors of what is exact, shares above 1.

        Raises
        ------
        InvalidInput
            Where what one field says is not what another does.
        """
        N, D = self.shape
        for name, rows in (("cells", self.cells), ("bins", self.bins)):
            if len(rows) != N or any(len(row) != D for row in rows):
                raise InvalidInput(f"{name}: expected a table of shape {self.shape}")
        if self.is_exact != (self.standard_errors is None):
            has = "no" if self.is_exact else "its"
            raise InvalidInput(
                f"standard_errors: the source {self.source!r} has {has} errors"
            )
        if (self.effective_share > 1.0 + _ROUNDING).any():
            raise InvalidInput("effective_share: expected at most 1")
        runs = self.scatter
        if runs is not None and (
            runs.deviations.shape != (N, D)
            or runs.variance.shape != (N,)
            or runs.n_samples != self.n_samples
        ):
            raise InvalidInput("scatter: it is that of other rows or runs")

    @classmethod
    def upgraded(
        cls, version: int, header: dict[str, Any], arrays: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Of version 1, which did not know what is explained."""
        del version
        n_draws = header.pop("n_draws")
        runs = {"n_samples": header["n_samples"], "n_draws": n_draws}
        scatter = None if n_draws is None else runs
        moved = {name: f"scatter.{name}" for name in ("deviations", "variance")}
        arrays = {moved.get(name, name): array for name, array in arrays.items()}
        return {**header, "scatter": scatter, "quantity": None}, arrays

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
        evidence = RowsEvidence(self, subject, n)
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

    def _each(self, of: Callable[..., Array], *parts: Array) -> Array:
        return of(*parts)

    def _limits_and_errors(self) -> tuple[Array, Array]:
        errors = self.standard_errors
        return self.coefficients, np.zeros(self.shape) if errors is None else errors

    def _at(self, n: int) -> tuple[Sequence[str], Values]:
        return named_coefficients(self, n), self.coefficients[n]

    def __repr__(self) -> str:
        """One line."""
        facts = "; ".join(map(printable, self._claims()))
        return f"LimeExplanation({self._size()}; {facts})"

    def card(self, row: Hashable | None = None) -> Card:
        """The largest coefficients of one row, and where single runs fall.

        Parameters
        ----------
        row : label or int, optional
            Its name in the index of X, or its position where X had no names; by default
            the first.
        """
        N, n = self.shape[0], self.position(row)
        noise = self._noise_for_card()
        ends = self._around(self.expected()[n], noise[n], deviations_of())
        rows, rest = largest_on_card(*self._at(n), ends)
        points = self.labels.points
        exact = "exact: no samples, no seed"
        proof = [exact if self.is_exact else next(self._claims())]
        if np.isfinite(ends).any():
            proof.append(lines_in_words(self.n_samples))
        return Card(
            title=self._why(
                float(self.values[n]),
                as_row(n if points is None else points[n]),
                f" ({self.mean[n]:.4g} on average around it)",
            ),
            subtitle=(
                "what LIME finds with ever more samples: by how much the output is "
                f"higher with each value in its bin, in {self.units}"
                + (f"; {plural(N - 1, 'more row')} in this result" if N > 1 else "")
            ),
            rows=rows,
            rest=rest,
            proof=" · ".join(proof),
            settings=dict(self._settings(noise)) | notes_on_card(self.notes),
        )

    def _settings(self, noise: Array) -> Iterator[tuple[str, str]]:
        """How it was made, and what is known of runs."""
        if self.quantity is not None:
            yield "explained", str(self.quantity)
        yield "size", self._size()
        yield "law", self.law_in_words
        yield "ridge of one run", f"{self.ridge:g}"
        if np.isfinite(noise).any():
            yield (
                "standard deviation of one run",
                f"up to {np.nanmax(noise):.2g}, estimated from "
                f"{self.runs.n_draws:,} samples a row",
            )
        elif self.subject is not None:
            yield (
                "standard deviation of one run",
                "estimated from samples when noise() is asked",
            )
        yield "model evaluations", f"{self.evaluations:,}"

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
