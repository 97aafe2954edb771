"""What LIME tends to at rows of a table, and what results of texts share with it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Literal, Self, TypeVar, cast, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri

from propopt.base.arrays import Array, Attributions, Indices, Points, Values
from propopt.base.checks import read_count, read_level, read_option, read_positive
from propopt.base.declared import field, transient
from propopt.base.document import (
    Bar,
    Bars,
    Block,
    Chapter,
    Document,
    Finding,
    table_chapter,
)
from propopt.base.errors import InvalidInput, Refused
from propopt.base.text import Quantity, plural, printable
from propopt.functions.function import EXACT
from propopt.lime.diagnosis.diagnosis import LimeDiagnosis, row_label, run_rules
from propopt.lime.diagnosis.evidence import LimeFinding, RowsEvidence
from propopt.lime.diagnosis.rules import LIME_RULES
from propopt.lime.exact_limits import Limits
from propopt.lime.finite_samples import (
    RunScatter,
    SingleRun,
    expected,
    required_samples,
    single_run,
)
from propopt.lime.laws.lime_law import LimeLaw
from propopt.lime.paths import BandwidthPath, bandwidth_path
from propopt.lime.sampled_limits import LimeSubject
from propopt.results.result import Result
from propopt.tables.columns import CategoricalColumn
from propopt.tables.frames import Labels
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
        [str(column.bins[b]) for b in column.bin_index(values).tolist()]
        for column, values in zip(law.columns, points.T, strict=True)
    ]
    return tuple(zip(*shown, strict=True))


def _cell(value: float, column: object) -> Any:
    if isinstance(column, CategoricalColumn):
        category = column.categories[int(value)]
        return category if isinstance(category, bool | int | float) else str(category)
    return None if np.isnan(value) else value


# ---- What is shown of limits of LIME: bars, and where single runs fall


ROWS_SAMPLED = 100
"""Of more rows a card does not estimate the noise, which takes a while."""

SHARE_OF_RUNS: Final = 0.95
"""Of lines across the bars of a card."""


def ends_of(middle: Array, deviations: Array, level: float = SHARE_OF_RUNS) -> Array:
    """Both ends of an interval by the normal law, (..., 2)."""
    reach = float(ndtri(0.5 + 0.5 * level)) * deviations
    return np.stack([middle - reach, middle + reach], axis=-1)


_BARS: Final = 15
"""Coefficients of a row with a bar, the largest."""

_ON_PAGE: Final = 10
"""Rows of a report, the first."""


# ---- What results of tables and of documents share


AskedAbout = TypeVar("AskedAbout")
"""What is asked about rows of a table, or about documents."""

OfEach = TypeVar("OfEach")
"""One array for all rows of a table, or a list with one for each document."""


class LimeResult(Result, Generic[AskedAbout, OfEach]):
    """What LIME tends to at N rows of a table, or documents, that may have names.

    Numbers of columns are one array for all rows; documents have words of their own, so
    that theirs are lists with an array for each. Fields of tables that stand for
    properties here have defaults, as else the property would be found.
    """

    units: ClassVar[str] = "units of the output"

    # what is asked about, what has coefficients, what these compare, columns of a table
    _nouns: ClassVar[tuple[str, str]]
    _compared: ClassVar[str]
    _columns: ClassVar[tuple[str, ...]]
    _left_behind: ClassVar[str]

    n_samples: int = field(low=1)
    evaluations: int = field(default=0, low=0)
    notes: tuple[str, ...] = field(default=())
    quantity: Quantity | None = field(default=None)
    scatter: Any = field(default=None)
    subject: AskedAbout | None = transient(default=None)

    @property
    def _unit(self) -> str:
        """That of the coefficients, by its name where it has one."""
        known = self.quantity is not None and self.quantity.kind != "value"
        return self.quantity.noun if known and self.quantity else self.units

    # ---- what differs: how numbers are held, how runs and findings are had

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
    def coefficients(self) -> OfEach:
        """β_j."""

    @property
    @abstractmethod
    def intercept(self) -> Values:
        """β_0, (N,)."""

    @property
    @abstractmethod
    def values(self) -> Values:
        """F at the rows, (N,)."""

    @property
    @abstractmethod
    def source(self) -> str:
        """How coefficients were had, in words."""

    @property
    @abstractmethod
    def law_in_words(self) -> str:
        """The law and its width."""

    @property
    @abstractmethod
    def runs(self) -> Any:
        """How single runs come out."""

    @property
    @abstractmethod
    def _errors(self) -> OfEach:
        """Standard errors of the coefficients, 0 where they are exact."""

    @abstractmethod
    def _deviations(self, n_samples: int) -> OfEach:
        """Of coefficients of runs of other sizes."""

    @abstractmethod
    def _means(self, n_samples: int) -> OfEach:
        """Coefficients in the mean of runs."""

    @abstractmethod
    def _names(self, n: int) -> Sequence[str]:
        """The columns of a row with their bins, or its words."""

    @abstractmethod
    def _part(self, indices: Indices) -> dict[str, Any]:
        """Fields of some rows, or documents, alone."""

    @abstractmethod
    def _own_columns(self, places: Indices) -> dict[str, Any]:
        """Of a table, where each of its lines is about one of the rows."""

    @abstractmethod
    def _told(
        self, subject: AskedAbout, n_samples: int, progress: bool | None
    ) -> list[LimeFinding]:
        """What rules of diagnosis tell of runs of n samples."""

    @property
    @abstractmethod
    def _known(self) -> tuple[str, str, str]:
        """What is exact, what is estimated, and why; empty where nothing is."""

    @abstractmethod
    def _title(self, n: int) -> str:
        """What is explained, and of whom."""

    @abstractmethod
    def _ends(self, n: int) -> Array:
        """Where single runs of a row fall, (D, 2); NaN where that would take long."""

    def _blocks(self, n: int) -> list[Block]:
        """What a document of a row has beside bars."""
        del n
        return []

    @property
    def _settings(self) -> dict[str, str]:
        """What was chosen for single runs."""
        return {}

    def _each(self, of: Callable[..., Any], *parts: OfEach) -> OfEach:
        """What is made of all rows at once, or of one document after the other."""
        first: Any = parts[0]
        if isinstance(first, np.ndarray):
            return cast("OfEach", np.asarray(of(*parts)))
        return cast("OfEach", [of(*own) for own in zip(*parts, strict=True)])

    # ---- what is asked about

    @property
    def explained_in_words(self) -> str:
        """What is explained, such as "probability of malignant".

        "output" of files that were written before it was saved.
        """
        return "output" if self.quantity is None else self.quantity.in_words()

    @property
    def row_names(self) -> tuple[Hashable, ...]:
        """Names of the rows, or documents; their numbers where they had none."""
        names = self.labels.points
        return tuple(range(self.shape[0])) if names is None else names

    @property
    def at_row(self) -> Values:
        """The surrogate at the row itself, β_0 + Σ_j β_j, (N,)."""
        sums: Any = self._each(lambda own: own.sum(axis=-1), self.coefficients)
        return np.asarray(self.intercept + sums)

    @property
    def local_gap(self) -> Values:
        """f(x) less the surrogate at the row, (N,)."""
        return np.asarray(self.values - self.at_row)

    def position(self, row: Hashable | None = None) -> int:
        """Where a row, or document, stands; the first by default."""
        return 0 if row is None else self.labels.position(row, self.shape[0])

    def require_subject(self, label: str) -> AskedAbout:
        """The model and the law."""
        if self.subject is None:
            reason = self.missing_reason("subject", self._left_behind)
            raise Refused(f"{label}: {reason}")
        return self.subject

    def of_rows(self, rows: Sequence[Hashable]) -> Self:
        """The same of some rows, or documents, alone; nothing is computed.

        Parameters
        ----------
        rows : sequence of labels or int
            Their names in the index of X, or positions where X had no names.

        Raises
        ------
        InvalidInput
            If there is no such row, or no row is asked for.
        """
        if isinstance(rows, str) or len(rows) == 0:
            raise InvalidInput(f"rows: expected names of rows in a list, got {rows!r}")
        indices = np.array([self.position(row) for row in rows], np.intp)
        runs, subject = self._known_runs, cast("Any", self.subject)
        return replace(
            self,
            **self._part(indices),
            scatter=None if runs is None else runs.of_rows(indices),
            subject=None if subject is None else subject.of_rows(indices),
        )

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file without pickles; the model and the law stay behind.

        How single runs scatter is computed first, if nobody has asked for it yet.
        """
        own = self if self.subject is None else replace(self, scatter=self.runs)
        super(LimeResult, own).save(path)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if state["subject"] is not self.subject:  # what needs the model is lost with it
            state["scatter"] = self.runs
        return state

    # ---- single runs, and what coefficients hide

    @property
    def _known_runs(self) -> Any:
        """How single runs come out; None where nobody has asked for it yet."""
        return vars(self).get("runs", self.scatter)

    def _samples(self, n_samples: int | None) -> int:
        """The samples of a run; those of the explanation where none are given."""
        if n_samples is None:
            return self.n_samples
        return read_count(n_samples, "n_samples")

    def noise(self, n_samples: int | None = None) -> OfEach:
        """Standard deviations of the coefficients of a single run, (N, D).

        Of documents they are a list, (d,) for each; NaN for those that LIME says
        nothing of, and for those of more than 500 words.

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
            return self._each(np.asarray, self.runs.deviations)
        return self._deviations(n)

    @property
    def available_noise(self) -> OfEach:
        """The same; NaN where it is not known and cannot be asked."""
        if self.scatter is None and self.subject is None:
            return self._each(lambda own: np.full(own.shape, np.nan), self.coefficients)
        return self.noise()

    def expected(self, n_samples: int | None = None) -> OfEach:
        """Mean coefficients of runs with their ridge and their first row, (N, D).

        Of documents they are a list, (d,) for each: of runs of the package ``lime``,
        with its ridge of 1, and the document itself as the first sample.

        Parameters
        ----------
        n_samples : int, optional
            Of each run; those of the explanation by default.

        Raises
        ------
        Refused
            If an explanation of documents was loaded, and they are not known.
        """
        return self._means(self._samples(n_samples))

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
        ends = partial(ends_of, level=read_level(level))
        if read_option(of, Literal["runs", "limits"], "of") == "limits":
            return self._each(ends, self.coefficients, self._errors)
        return self._each(ends, self.expected(n_samples), self.noise(n_samples))

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

    def diagnose(
        self,
        n_samples: int | None = None,
        *,
        rows: Sequence[Hashable] | None = None,
        progress: bool | None = None,
    ) -> LimeDiagnosis:
        """What these coefficients hide: findings with numbers, what misleads first.

        Of both: signs that depend on the width, noise, unstable ranks, weights that
        collapse, and sums that are not f. Of tables also signs against the profile of
        their column, cancellation by binning, coefficients of what is elsewhere, edges
        of bins, weights that are not local, low fidelity and columns that go together;
        under normal samples columns that are switched off and signs that are turned.
        Of documents also words that are one feature of the model, that it ignores, or
        that its features join; and weights that leave one word out at a time.

        Parameters
        ----------
        n_samples : int, optional
            Of the runs that it is about; those of the explanation by default.
        rows : sequence of labels or int, optional
            Only these rows or documents, by their names in the index of X, or positions
            where X had no names.
        progress : bool, optional
            Show a bar, and before long work what it costs; by default only on a
            terminal.

        Returns
        -------
        LimeDiagnosis
            What misleads hardly anybody is among its notes. Of documents its columns
            are the words of all of them.

        Raises
        ------
        InvalidInput
            If there is no such row.
        Refused
            If the explanation was loaded, and has no model; or if LIME says nothing of
            any of the documents.
        """
        subject, n = self.require_subject("diagnose"), self._samples(n_samples)
        if rows is not None:
            return self.of_rows(rows).diagnose(n, progress=progress)
        told = self._told(subject, n, progress)
        return LimeDiagnosis.of_findings(told, self.shape, self.labels, n, self.source)

    # ---- as a table, as lists, as one line and as a card

    def to_frame(self) -> pd.DataFrame:
        """One row for each row and column of X, or each word of each document.

        Coefficients with standard error, noise and source; with the bin of the row, or
        how often the word comes. The deviation and the mean of single runs are those of
        ``n_samples``; they are NaN for documents of more than 500 words.
        """
        own: Any = self.coefficients
        names, places = self.row_names, np.repeat(range(len(own)), list(map(len, own)))

        def joined(parts: Any) -> Array:
            if isinstance(parts, np.ndarray):
                return parts.ravel()
            return np.concatenate([*parts, np.empty(0)])

        known = {
            self._nouns[0]: [names[n] for n in places.tolist()],
            "coefficient": joined(own),
            "standard_error": joined(self._errors),
            "single_run_sd": joined(self.available_noise),
            "expected": joined(self.expected()),
            "n_samples": self.n_samples,
            "intercept": self.intercept[places],
            "prediction": self.values[places],
            "surrogate_at_row": self.at_row[places],
            "units": self.units,
            **self._own_columns(places),
        }
        return pd.DataFrame({name: known[name] for name in self._columns})

    def top(self, k: int = 10, row: Hashable | None = None) -> pd.DataFrame:
        """The k largest coefficients of a row, or document.

        Rows of :meth:`to_frame`.
        """
        count, n = read_count(k, "k"), self.position(row)
        frame = self.of_rows([self.row_names[n]]).to_frame()
        order = [j for j, _ in self._largest_first(n)]
        return frame.iloc[order[:count]].reset_index(drop=True)

    def as_list(self, row: Hashable | None = None) -> list[tuple[str, float]]:
        """Names and coefficients; the largest first, as the package ``lime`` has it.

        Names are those of words, or of columns with their bins.
        """
        n = self.position(row)
        names = self._names(n)
        return [(names[j], weight) for j, weight in self._largest_first(n)]

    def as_map(self, row: Hashable | None = None) -> dict[int, list[tuple[int, float]]]:
        """Under the key 1 positions and coefficients, the largest first.

        Words are numbered in the order in which they first come, as ``lime`` does it;
        of equal coefficients the first comes first.
        """
        return {1: self._largest_first(self.position(row))}

    def _largest_first(self, n: int) -> list[tuple[int, float]]:
        """Positions and coefficients of a row."""
        own = cast("Any", self.coefficients)[n]
        order = np.argsort(-np.abs(own), kind="stable").tolist()
        return [(j, float(own[j])) for j in order]

    def __repr__(self) -> str:
        """One line."""
        facts = "; ".join(map(printable, self.claims()))
        return f"{type(self).__name__}({self.size_in_words}; {facts})"

    def claims(self) -> Iterator[str]:
        """What is proved, what is estimated, the units and the law."""
        exact, estimated, why = self._known
        if exact:
            without = ", without samples or a seed" if exact == EXACT else ""
            yield f"coefficients {exact}{without}"
        if estimated:
            called = f"{self.evaluations:,} evaluations"
            yield f"coefficients {estimated}, {called}; not exact because {why}"
        yield f"in {self.units}"
        yield self.law_in_words

    def document(self, row: Hashable | None = None) -> Document:
        """The largest coefficients of one row or document, and where single runs fall.

        Of documents also the words of the first, highlighted. A page has those of the
        other rows as well.

        Parameters
        ----------
        row : label or int, optional
            Its name in the index of X, or its position where X had no names; by default
            the first that LIME says something of.
        """
        n = self.position(row)
        ends, names, pairs = self._ends(n), self._names(n), self._largest_first(n)
        if any(np.isnan(weight) for _, weight in pairs):
            pairs = []  # LIME says nothing of it
        exact, estimated, why = self._known
        how = "exact: no samples, no seed" if exact == EXACT else exact
        trust = [Finding(how)] if exact else []
        if estimated:
            words = f"coefficients {estimated}; not exact because {why}"
            trust.append(Finding(words, "estimated"))
        if np.isfinite(ends).any():
            words = f"ranges: where {100.0 * SHARE_OF_RUNS:g} % of single runs of "
            trust.append(
                Finding(f"{words}{self.n_samples:,} samples fall", "estimated")
            )
        N, noun = self.shape[0], self._nouns[0]
        subtitle = (
            "LIME with ever more samples: how much higher the output is with each "
            f"{self._compared}, in {self._unit}"
        )
        if N > 1:
            subtitle += f"; {plural(N - 1, f'more {noun}')} in this result"
        rows = [
            Bar(name=names[j], value=weight, interval=(*ends[j].tolist(),))
            for j, weight in pairs[:_BARS]
        ]
        bars = Bars(rows, subtitle, [weight for _, weight in pairs[_BARS:]])
        of_all = {} if self.quantity is None else {"explained": str(self.quantity)}
        return Document(
            title=self._title(n),
            subtitle=subtitle,
            blocks=[bars, *self._blocks(n)],
            trust=trust,
            settings={
                **of_all,
                "size": self.size_in_words,
                "law": self.law_in_words,
                **self._settings,
                "model evaluations": f"{self.evaluations:,}",
                **{f"note {k}": x for k, x in enumerate(self.notes, start=1)},
            },
            chapters=partial(self._chapters, n),
            names=names,
        )

    def _chapters(self, shown: int) -> list[Chapter]:
        """The coefficients of the other rows, as far as there is room, and a table."""
        others = [n for n in range(min(self.shape[0], _ON_PAGE)) if n != shown]
        documents = [self.document(self.row_names[n]) for n in others]
        rows = [Chapter(x.title, [*x.blocks, *x.trust]) for x in documents]
        said = "Coefficients of LIME are no effects of columns."
        table = table_chapter("Coefficients", self.to_frame())
        return [
            *rows,
            replace(table, blocks=[*table.blocks, Finding(said, "not said")]),
        ]

    @property
    def size_in_words(self) -> str:
        """Rows and columns, or documents and words."""
        sizes = zip(self.shape, self._nouns, strict=True)
        return ", ".join(plural(size, noun) for size, noun in sizes)

    def _why(self, n: int, whom: str, beside: str) -> str:
        """What a card says first: what is explained, and of whom."""
        known, value = self.quantity, self.values[n]
        if known is not None and known == Quantity(model=known.model):
            return f"Why the model predicts {value:.4g} for {whom}{beside}"
        return f"Why the {self.explained_in_words} is {value:.4g} for {whom}{beside}"


# ---- What LIME tends to at rows of a table, with what is known of its error


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

    _nouns: ClassVar[tuple[str, str]] = ("row", "feature")
    _compared: ClassVar[str] = "value in its bin"
    _columns: ClassVar[tuple[str, ...]] = (
        *("row", "feature", "value", "bin", "coefficient", "standard_error", "alpha"),
        *("single_run_sd", "single_run_sd_source", "expected", "n_samples"),
        *("intercept", "prediction", "surrogate_at_row", "effective_share"),
        *("source", "units"),
    )
    _left_behind: ClassVar[str] = (
        "the model and the law are not saved with an explanation; make it anew with "
        "propopt.lime.limits"
    )

    coefficients: Attributions = field("N D", nonempty=True, default=None)
    intercept: Values = field("N", default=None)
    standard_errors: Array | None = field("N D", low=0.0, default=None)
    source: str = field(default=EXACT)
    reason: str = field(default="")
    alpha: Array = field("N D", low=0.0, high=1.0)
    log_weight: Values = field("N", infinite=True)
    effective_share: Values = field("N", low=0.0)
    values: Values = field("N", default=None)
    points: Points = field("N D", missing=True, infinite=True)
    cells: tuple[tuple[float | str | bool | None, ...], ...] = field(missing=True)
    bins: tuple[tuple[str, ...], ...] = field()
    law_in_words: str = field(default="")
    ridge: float = field(low=0.0)
    first_row: bool = field()
    labels: Labels = field(default=Labels())
    scatter: RunScatter | None = field(default=None)
    subject: LimeSubject | None = transient(default=None)

    def validate(self) -> None:
        """Refuse tables of other shapes, errors of what is exact, shares above 1.

        Raises
        ------
        InvalidInput
            Where what one field says is not what another does.
        """
        N, D = self.shape
        self.labels.check((N, D), "labels")
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

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        N, D = self.coefficients.shape
        return N, D

    @property
    def is_exact(self) -> bool:
        """Whether coefficients have no error but rounding."""
        return self.source == EXACT

    @property
    def law(self) -> LimeLaw:
        """The law of the samples."""
        return self.require_subject("law").law

    @cached_property
    def limits(self) -> Limits:
        """Coefficients, E_Q f, α and log C: what rooms of formulas take."""
        moments = self.mean, self.alpha, self.log_weight
        return Limits(self.coefficients, *moments, self.standard_errors)

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
    def r2(self) -> Values:
        """The share of Var_Q f that the surrogate explains, (N,); 1 where f is flat."""
        return self.limits.r2(self.runs.variance)

    @cached_property
    def runs(self) -> RunScatter:
        """How single runs scatter, estimated from samples when first asked."""
        if self.scatter is not None:
            return self.scatter
        return RunScatter(
            self.run_of(self.n_samples).standard_deviations,
            self.require_subject("the variance of the function").variance(),
            self.n_samples,
        )

    @cached_property
    def _runs_of(self) -> dict[int, SingleRun]:
        """Runs that were asked for, by their number of samples."""
        return {}

    def run_of(self, n_samples: int) -> SingleRun:
        """The mean and the covariance of the coefficients of one run of LIME."""
        if n_samples in self._runs_of:
            return self._runs_of[n_samples]
        subject = self.require_subject("a run of another number of samples")
        self._runs_of[n_samples] = own = single_run(
            subject.evaluate,
            subject.law,
            subject.points,
            self.limits,
            self.values if self.first_row else None,
            n_samples,
            self.ridge,
            self.first_row,
            rng=np.random.default_rng(subject.draws.seed),
            common=subject.common,
        )
        return own

    def path(
        self, row: Hashable | None = None, widths: ArrayLike | None = None
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
        subject = self.require_subject("path")
        if subject.exact is None:
            raise Refused(f"path: coefficients are estimated, as {self.reason}")
        return bandwidth_path(subject.exact, subject.points[self.position(row)], widths)

    # ---- what tables have in a way of their own

    @property
    def _errors(self) -> Array:
        errors = self.standard_errors
        return np.zeros(self.shape) if errors is None else errors

    def _deviations(self, n_samples: int) -> Array:
        return self.run_of(n_samples).standard_deviations

    def _means(self, n_samples: int) -> Array:
        return expected(
            self.limits, self.values, n_samples, self.ridge, self.first_row
        ).coefficients

    def _names(self, n: int) -> Sequence[str]:
        names = self.labels.feature_names(self.shape[1])
        # a bin may start with a sign of its own
        return [
            f"{name} {own}" if own[:1] in "<>≤≥=" else f"{name}: {own}"
            for name, own in zip(names, self.bins[n], strict=True)
        ]

    def _part(self, indices: Indices) -> dict[str, Any]:
        N, names = len(self.coefficients), self.labels
        if names.points is None and not np.array_equal(indices, np.arange(N)):
            # rows without names keep their numbers
            names = replace(names, points=self.row_names)
        of_rows = {name: getattr(self, name) for name in _BY_ROWS}
        return {
            "labels": names.of_positions(indices),
            "cells": tuple(self.cells[n] for n in indices),
            "bins": tuple(self.bins[n] for n in indices),
            **{k: None if x is None else x[indices] for k, x in of_rows.items()},
        }

    def _own_columns(self, places: Indices) -> dict[str, Any]:
        N, D = self.shape
        sampled = self.scatter is not None or self.subject is not None
        cells = [cell for row in self.cells for cell in row]
        return {
            "feature": self.labels.feature_names(D) * N,
            "value": pd.Series(cells, dtype=object),
            "bin": [bin for row in self.bins for bin in row],
            "alpha": self.alpha.ravel(),
            # deviations of runs are estimated, also where coefficients are exact
            "single_run_sd_source": (
                f"estimate ({self.runs.n_draws:,} draws a row)" if sampled else ""
            ),
            "effective_share": self.effective_share[places],
            "source": self.source,
        }

    def _told(
        self, subject: LimeSubject, n_samples: int, progress: bool | None
    ) -> list[LimeFinding]:
        evidence = evidence_of(self, subject, n_samples)
        with evidence.announced(progress):
            return run_rules(LIME_RULES, lambda rule: rule.findings(evidence), progress)

    @property
    def _known(self) -> tuple[str, str, str]:
        errors = self.standard_errors
        if errors is None:
            return EXACT, "", ""
        largest = np.nanmax(errors)
        words = f"from an {self.source}, standard errors up to {largest:.2g}"
        return "", words, self.reason

    def _title(self, n: int) -> str:
        beside = f" ({self.mean[n]:.4g} on average around it)"
        return self._why(n, row_label(self.row_names[n]), beside)

    def _ends(self, n: int) -> Array:
        quick = self._known_runs is not None or self.shape[0] <= ROWS_SAMPLED
        noise = self.available_noise[n] if quick else np.full(self.shape[1], np.nan)
        return ends_of(self.expected()[n], noise)

    @property
    def _settings(self) -> dict[str, str]:
        noise = "estimated from samples when noise() is asked"
        if (runs := self._known_runs) is not None:
            largest, count = runs.deviations.max(), runs.n_draws
            noise = f"up to {largest:.2g}, estimated from {count:,} samples a row"
        label = "standard deviation of one run"
        return {"ridge of one run": f"{self.ridge:g}", label: noise}


def evidence_of(
    lime: LimeExplanation, subject: LimeSubject, n_samples: int
) -> RowsEvidence:
    """What rules of diagnosis look at."""
    columns, exact = np.arange(lime.shape[1]), subject.exact
    used = columns if exact is None else exact.function.columns
    return RowsEvidence(
        n_samples=n_samples,
        names=lime.labels.feature_names(len(columns)),
        beta=lime.coefficients,
        is_exact=lime.standard_errors is None,
        depends=np.broadcast_to(np.isin(columns, used), lime.shape),
        effective_share=lime.effective_share,
        subject=subject,
        limits=lime.limits,
        values=lime.values,
        ridge=lime.ridge,
        first_row=lime.first_row,
        run_of=lime.run_of,
        scatter=lambda: lime.runs,
        at_row=lime.at_row,
        width=lime.law.kernel_width,
    )
