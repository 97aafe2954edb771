"""The coefficients that LIME converges to: what results of rows and documents share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri

from propopt.base.arrays import Array, Indices, Values
from propopt.base.checks import read_count, read_level, read_positive
from propopt.base.declared import field, transient
from propopt.base.document import (
    Block,
    Chapter,
    Document,
    Fact,
    Facts,
    Span,
    Table,
    interval_text,
    shape_text,
    share_text,
    signed_text,
    subtitle_of,
    table_chapter,
    title_of,
)
from propopt.base.errors import InvalidInput, Refused
from propopt.base.files import archive_path, format_of
from propopt.base.text import Quantity, printable, value_in_words
from propopt.lime.diagnosis.diagnosis import LimeDiagnosis, severity_order
from propopt.lime.diagnosis.evidence import Evidence, LimeFinding
from propopt.lime.finite_samples import RunScatter, required_samples
from propopt.lime.paths import BandwidthPath
from propopt.lime.records import LimeRecord
from propopt.losses.faithfulness import relative_size
from propopt.results.selection import Selectable
from propopt.tables.frames import Labels


RUN_LEVEL: Final = 0.95
"""The share of single runs within the ranges that a document shows."""

_MOST_BARS: Final = 15
"""The number of coefficients in the table of a row, the largest."""

_MOST_CHAPTERS: Final = 10
"""The number of rows with a chapter in a report."""

_ROUNDING: Final = 1e-6


class LimeExplanation(
    Selectable, kind="propopt lime", noun="saved limits of LIME", version=5
):
    """The coefficients that LIME converges to, for rows of a table or for documents.

    The surrogate is g(z) = β_0 + Σ_j β_j z_j, with a bit z_j for each feature.
    Coefficients are in units of the output. :class:`LimeRows` has the columns of a
    table as features, and :class:`LimeDocuments` the words of each document.

    Arrays with a number for each feature are (N, D) for a table, and a list with one
    array (d,) for each document. They are stored row by row in one array (M,), and
    ``records`` are views of it.

    Parameters
    ----------
    flat_coefficients : array (M,)
        β_j of all rows; NaN for documents without coefficients.
    flat_errors : array (M,) or None
        Standard errors of estimated coefficients; None if all coefficients are exact.
    flat_alpha : array (M,)
        Q(z_j = 1): the weighted share of samples that agree with the row in feature j.
    intercept : array (N,)
        β_0.
    values : array (N,)
        f at the rows.
    log_weight : array (N,)
        log C, where C = E π is the mean weight of a sample.
    effective_share : array (N,)
        (E π)² / E π²: how many samples without weights one with weight is worth.
    sources : tuple of str (N,)
        ``"exact"``, how coefficients were estimated, or ``"none"``.
    reasons : tuple of str (N,)
        Why coefficients are not exact, or absent; empty where they are exact.
    law_in_words : str
        The sampling law, its bins and its width.
    n_samples : int
        The samples of one run of LIME, for ``noise``, ``expected`` and tables.
    labels : Labels
        Names of rows and columns.
    evaluations : int
        The number of rows or texts that the model evaluated.
    quantity : Quantity or None
        What is explained, such as the probability of a class.
    scatter : RunScatter or None
        The noise of single runs, once it was computed.
    subject : LimeSubject, TextSubject or None
        The model and the law. They are not saved: None after loading.
    """

    units: ClassVar[str] = "units of the output"
    nouns: ClassVar[tuple[str, str]]  # what has coefficients, and its features
    computed_by: ClassVar[str]  # the function of po.lime
    compared: ClassVar[str]  # the difference of means that a coefficient is
    per_row: ClassVar[tuple[str, ...]]  # fields with an entry for each row
    runs_have_means: ClassVar[bool]  # mean coefficients that limits do not give

    flat_coefficients: Array = field("M", missing=True)
    flat_errors: Array | None = field("M", low=0.0, missing=True, default=None)
    flat_alpha: Array = field("M", low=0.0, high=1.0, missing=True)
    intercept: Values = field("N", missing=True)
    values: Values = field("N", missing=True, infinite=True, nonempty=True)
    log_weight: Values = field("N", missing=True, infinite=True)
    effective_share: Values = field("N", low=0.0, missing=True)
    sources: tuple[str, ...] = field()
    reasons: tuple[str, ...] = field()
    law_in_words: str = field()
    n_samples: int = field(low=1)
    labels: Labels = field(default=Labels())
    evaluations: int = field(default=0, low=0)
    quantity: Quantity | None = field(default=None)
    scatter: RunScatter | None = field(default=None)
    subject: Any = transient(default=None)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file of rows or documents that :meth:`save` wrote.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        LimeRows or LimeDocuments
            The result without its model.

        Raises
        ------
        InvalidInput
            If it is no such file, or of another version.
        """
        kind = format_of(archive_path(path))
        for one in cls.__subclasses__():
            if one.form.name == kind:
                return one.load(path)
        return super().load(path)

    def validate(self) -> None:
        """Raise an error if fields contradict each other.

        Raises
        ------
        InvalidInput
            If numbers are missing, lengths differ, or exact coefficients have errors.
        """
        N = len(self.values)
        self._validate_names(N)
        M = sum(self._lengths)
        for name in ("sources", "reasons"):
            if len(getattr(self, name)) != N:
                raise InvalidInput(f"{name}: expected one for each of {N} rows")
        if len(self.flat_coefficients) != M:
            raise InvalidInput("coefficients: expected one for each feature or word")
        if (self.effective_share > 1.0 + _ROUNDING).any():
            raise InvalidInput("effective_share: expected at most 1")
        estimated = False
        for record in self.records:
            numbers = [record.intercept, record.value]
            whole = np.concatenate([record.coefficients, record.errors, numbers])
            if record.has_coefficients and not np.isfinite(whole).all():
                raise InvalidInput(
                    f"coefficients: expected finite numbers for {record.label!r}"
                )
            estimated |= record.is_estimated
            if record.is_exact and record.errors.any():
                raise InvalidInput(
                    f"standard_errors: expected none for {record.label!r}, which is "
                    "exact"
                )
        if estimated != (self.flat_errors is not None):
            expects = "standard errors" if estimated else "no standard errors"
            raise InvalidInput(
                f"standard_errors: the source {self.source!r} has {expects}"
            )
        runs = self.scatter
        n_means = M if self.runs_have_means else 0
        if runs is not None and (
            len(runs.deviations) != M
            or len(runs.variance) != N
            or runs.n_samples != self.n_samples
            or (0 if runs.means is None else len(runs.means)) != n_means
        ):
            raise InvalidInput("scatter: it belongs to other rows, or to other runs")

    @abstractmethod
    def _validate_names(self, N: int) -> None:
        """Refuse rows that contradict themselves, and names of others."""

    @property
    @abstractmethod
    def plot(self) -> Any:
        """Plots of the coefficients: ``limit.plot(row)`` and its methods."""

    # ---- rows and their features

    @cached_property
    def records(self) -> tuple[LimeRecord, ...]:
        """The coefficients of each row or document as an object of its own, (N,)."""
        coefficients = self.coefficients
        alpha = self.alpha
        errors = self._errors
        return tuple(
            LimeRecord(
                label=label,
                names=self._names(n),
                coefficients=coefficients[n],
                errors=errors[n],
                intercept=float(self.intercept[n]),
                value=float(self.values[n]),
                alpha=alpha[n],
                log_weight=float(self.log_weight[n]),
                effective_share=float(self.effective_share[n]),
                source=self.sources[n],
                reason=self.reasons[n],
            )
            for n, label in enumerate(self.row_names)
        )

    @property
    def coefficients(self) -> Any:
        """The coefficients β_j: (N, D), or (d,) for each document."""
        return self._split(self.flat_coefficients)

    @property
    def standard_errors(self) -> Any:
        """Standard errors of estimated coefficients; None if all of them are exact."""
        return None if self.flat_errors is None else self._errors

    @property
    def alpha(self) -> Any:
        """The weighted share of samples in the same bin as the row, for each column."""
        return self._split(self.flat_alpha)

    @property
    def law(self) -> Any:
        """The sampling law, a LimeLaw or a TextLaw; an error after loading."""
        return self.require_subject("law").law

    @property
    def is_exact(self) -> bool:
        """Whether the only error of all coefficients is rounding."""
        return all(record.is_exact for record in self.records)

    @property
    def source(self) -> str:
        """How coefficients were computed: the different sources in one phrase."""
        return " and ".join(dict.fromkeys(self.sources))

    @property
    def reason(self) -> str:
        """Why coefficients are not exact, the first reason; empty if all are exact."""
        return next(filter(None, self.reasons), "")

    @property
    def sampling_error(self) -> float:
        """The standard errors of all coefficients relative to their size."""
        if self.flat_errors is None:
            return 0.0
        parts = self.flat_errors, self.flat_coefficients
        return relative_size(*map(np.nan_to_num, parts))

    @property
    def explained_in_words(self) -> str:
        """What is explained, such as "probability of malignant"."""
        return "output" if self.quantity is None else self.quantity.in_words()

    @property
    def mean_weight(self) -> Values:
        """The mean weight of a sample, C = E π, (N,)."""
        return np.exp(self.log_weight)

    @property
    def base(self) -> Values:
        """The mean of f over weighted samples, E_Q f = β_0 + Σ_j α_j β_j, (N,)."""
        return np.array([record.base for record in self.records])

    @property
    def at_row(self) -> Values:
        """The value of the surrogate at the row itself, β_0 + Σ_j β_j, (N,)."""
        return np.array([record.at_row for record in self.records])

    @property
    def local_gap(self) -> Values:
        """The difference f(x) minus the surrogate at the row, (N,)."""
        return self.values - self.at_row

    def position(self, row: Hashable | None = None) -> int:
        """The position of a row by its name; by default the first with coefficients.

        Parameters
        ----------
        row : label or int, optional
            Its name, or its position where rows have no names.

        Returns
        -------
        int
            Its position among the rows, from 0.

        Raises
        ------
        InvalidInput
            If there is no such row.
        """
        if row is not None:
            return self.labels.position(row, len(self.values))
        records = enumerate(self.records)
        return next((n for n, record in records if record.has_coefficients), 0)

    def require_subject(self, label: str) -> Any:
        """Return the model and the sampling law; an error if they were not saved.

        Parameters
        ----------
        label : str
            The computation that needs them, for the message.

        Returns
        -------
        LimeSubject or TextSubject
            The model, the law and the rows.

        Raises
        ------
        Refused
            If the explanation was loaded, and has no model.
        """
        if self.subject is None:
            reason = self.missing_reason(
                "subject",
                "the model and the law are not saved with an explanation; compute it "
                f"again with propopt.lime.{self.computed_by}",
            )
            raise Refused(f"{label}: {reason}")
        return self.subject

    def _of_rows(self, rows: Indices) -> Self:
        chosen = rows.tolist()
        labels = replace(self.labels, points=self.row_names)  # numbers stay names
        scatter = self._available_runs
        subject = self.subject
        features = self._feature_indices(rows)
        errors = self.flat_errors
        if all(self.records[n].is_exact for n in chosen):
            errors = None
        changed: dict[str, Any] = {
            name: getattr(self, name)[rows]
            for name in ("intercept", "values", "log_weight", "effective_share")
        }
        for name in self.per_row:
            entries = getattr(self, name)
            changed[name] = tuple([entries[n] for n in chosen])
        return replace(
            self,
            flat_coefficients=self.flat_coefficients[features],
            flat_errors=None if errors is None else errors[features],
            flat_alpha=self.flat_alpha[features],
            labels=labels.of_positions(rows),
            scatter=None if scatter is None else scatter.of_rows(rows, features),
            subject=None if subject is None else subject.of_rows(rows),
            **changed,
        )

    def save(self, path: str | Path) -> None:
        """Write an ``.npz`` file without pickles; the model and the law are not saved.

        The noise of single runs is computed first, so that the loaded result has it.

        Parameters
        ----------
        path : str or path
            The file, which is replaced.
        """
        whole = self if self.subject is None else replace(self, scatter=self.runs)
        super(LimeExplanation, whole).save(path)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if state["subject"] is not self.subject:  # then noise could not be computed
            state["scatter"] = self.runs
        return state

    # ---- arrays of all features, row by row

    @property
    @abstractmethod
    def _lengths(self) -> list[int]:
        """The number of features of each row."""

    @abstractmethod
    def _split(self, flat: Array) -> Any:
        """Numbers (M, ...) by rows: (N, D, ...), or a list with (d, ...) for each."""

    def _feature_indices(self, rows: Indices) -> Indices:
        """The positions of features of some rows in arrays (M,)."""
        ends = np.cumsum(self._lengths)
        starts = ends - self._lengths
        parts = [np.arange(starts[n], ends[n]) for n in rows]
        return np.concatenate(parts)

    @property
    def _errors(self) -> Any:
        """Standard errors by rows: 0 for exact coefficients, NaN for absent ones."""
        if self.flat_errors is None:
            return self._split(0.0 * self.flat_coefficients)
        return self._split(self.flat_errors)

    @abstractmethod
    def _names(self, n: int) -> tuple[str, ...]:
        """The columns of a row with their bins, or the words of a document."""

    # ---- single runs of LIME

    @cached_property
    def runs(self) -> RunScatter:
        """The noise of single runs of n samples, computed when first needed."""
        if self.scatter is not None:
            return self.scatter
        return self._computed_runs()

    @abstractmethod
    def _computed_runs(self) -> RunScatter:
        """The noise of single runs, from the model and the law."""

    @property
    def _available_runs(self) -> RunScatter | None:
        """The noise of single runs; None if it has not been computed."""
        return vars(self).get("runs", self.scatter)

    @cached_property
    def _evidence_cache(self) -> dict[int, tuple[Evidence, ...]]:
        """Evidence by the number of samples of runs."""
        return {}

    def evidence(self, n_samples: int, label: str = "evidence") -> tuple[Evidence, ...]:
        """The evidence of all rows of a table together, or of each document.

        Parameters
        ----------
        n_samples : int
            The samples of one run.
        label : str
            What needs the model, for the message of an explanation that was loaded.

        Returns
        -------
        tuple of Evidence
            One for a table, or one for each of N documents.
        """
        if n_samples not in self._evidence_cache:
            self.require_subject(label)
            self._evidence_cache[n_samples] = self._evidence(n_samples)
        return self._evidence_cache[n_samples]

    @abstractmethod
    def _evidence(self, n_samples: int) -> tuple[Evidence, ...]:
        """The evidence of runs of n samples, from the model and the law."""

    def _block(
        self, n_samples: int, names: tuple[str, ...], rows: slice, beta: Array
    ) -> dict[str, Any]:
        """The evidence of some rows with the same features, as arrays."""
        coefficients = np.atleast_2d(beta)
        return {
            "n_samples": n_samples,
            "names": names,
            "beta": coefficients,
            "is_exact": all(record.is_exact for record in self.records[rows]),
            "effective_share": self.effective_share[rows],
            "values": self.values[rows],
            "at_row": self.intercept[rows] + coefficients.sum(axis=1),
        }

    def _flat_noise(self, n_samples: int | None) -> Array:
        n = self._read_samples(n_samples)
        if n == self.n_samples:
            return self.runs.deviations
        return deviations_of(self.evidence(n, "noise"))

    @abstractmethod
    def _flat_means(self, n_samples: int | None) -> Array:
        """The mean coefficients of runs, row by row, (M,)."""

    def _read_samples(self, n_samples: int | None) -> int:
        """The samples of a run; by default those of the explanation."""
        if n_samples is None:
            return self.n_samples
        return read_count(n_samples, "n_samples")

    def noise(self, n_samples: int | None = None) -> Any:
        """Standard deviations of the coefficients of one run of LIME.

        Parameters
        ----------
        n_samples : int, optional
            The samples of the run; by default those of the explanation.

        Returns
        -------
        array (N, D), or list of arrays (d,)
            In units of the output; NaN for documents without coefficients, and for
            those of more than 500 words. For documents they are estimates from random
            sets of words, for many more samples than words.

        Raises
        ------
        Refused
            If the explanation was loaded, and its file does not have them.
        """
        return self._split(self._flat_noise(n_samples))

    @property
    def _available_noise(self) -> Array:
        """The noise of one run of LIME, (M,); NaN if neither saved nor computable."""
        if self.scatter is None and self.subject is None:
            return np.full(len(self.flat_coefficients), np.nan)
        return self.runs.deviations

    def expected(self, n_samples: int | None = None) -> Any:
        """The mean coefficients of runs of LIME, with their ridge penalty.

        Parameters
        ----------
        n_samples : int, optional
            The samples of each run; by default those of the explanation.

        Returns
        -------
        array (N, D), or list of arrays (d,)
            For documents those of the package ``lime``: its ridge is 1, and its first
            sample the document itself. They hold for many more samples than words; NaN
            for documents without coefficients, and for those of more than 500 words.

        Raises
        ------
        Refused
            If an explanation of documents was loaded, and its file does not have them.
        """
        return self._split(self._flat_means(n_samples))

    def intervals(
        self, level: float = RUN_LEVEL, *, n_samples: int | None = None
    ) -> Any:
        """The lower and upper ends between which single runs fall, by a normal law.

        Parameters
        ----------
        level : float
            Between 0 and 1: the share of single runs for each coefficient.
        n_samples : int, optional
            The samples of one run; by default those of the explanation.

        Returns
        -------
        array (N, D, 2), or list of arrays (d, 2)
            Lower and upper ends in units of the output, a list for documents, around
            the mean that :meth:`expected` computes. NaN where LIME has no coefficients.

        Raises
        ------
        InvalidInput
            If an argument is invalid.
        Refused
            If the explanation was loaded, and its file does not have the runs.
        """
        share = read_level(level)
        middle = self._flat_means(n_samples)
        size = self._flat_noise(n_samples)
        return self._split(normal_interval(middle, size, share))

    def required_n(self, se: float) -> Any:
        """The number of samples at which one run of LIME has a given standard error.

        Parameters
        ----------
        se : float
            The standard error, in units of the output.

        Returns
        -------
        array (N, D), or list of arrays (d,)
            A number of samples for each coefficient.

        Raises
        ------
        InvalidInput
            If ``se`` is not positive.
        """
        size = read_positive(se, "se")
        return self._split(
            required_samples(self.n_samples, self._flat_noise(None), size)
        )

    def path(
        self, row: Hashable | None = None, widths: ArrayLike | None = None
    ) -> BandwidthPath:
        """The coefficients of one row or document as functions of the kernel width.

        They are exact at each width for a table. For a document whose coefficients are
        estimated they have standard errors, and the model is not evaluated again.

        Parameters
        ----------
        row : label or int, optional
            Its name in the index of X, or its position where X had no names; by default
            the first row with coefficients.
        widths : array (M,), optional
            Kernel widths, or bandwidths of a text law, each positive and finite; by
            default 50 around that of the law.

        Returns
        -------
        BandwidthPath
            Coefficients (M, D) at each width, and all widths at which signs change.

        Raises
        ------
        InvalidInput
            If there is no such row, or a width is not positive.
        Refused
            If coefficients of columns are estimated, the explanation was loaded, or
            LIME has no coefficients for the document.
        """
        return self._path(self.position(row), widths)

    @abstractmethod
    def _path(self, n: int, widths: ArrayLike | None) -> BandwidthPath:
        """The coefficients of row n over kernel widths."""

    # ---- diagnosis

    def diagnose(
        self,
        n_samples: int | None = None,
        *,
        rows: Sequence[Hashable] | None = None,
        progress: bool | None = None,
    ) -> LimeDiagnosis:
        """Find what misleads in these coefficients, with a number for each finding.

        Rules for rows and documents: signs that depend on the kernel width, noise,
        weights that collapse, and sums that differ from f. Rules for tables: signs
        against the profile of the column, cancellation by binning, coefficients that
        come from far away, and low fidelity; for normal samples also columns that are
        switched off and reversed signs. Rules for documents: words that are one feature
        of the model, ignored words, features of several words, and weights that leave
        one word out at a time.

        Parameters
        ----------
        n_samples : int, optional
            The samples of the runs that are diagnosed; by default those of the
            explanation.
        rows : sequence of labels or int, optional
            Only these rows or documents, by their names in the index of X, or positions
            where X had no names.
        progress : bool, optional
            Show a bar, and the cost of long work; by default only on a terminal.

        Returns
        -------
        LimeDiagnosis
            Findings, worst first. Findings that hardly mislead are among its notes. For
            documents its columns are the words of all of them.

        Raises
        ------
        InvalidInput
            If there is no such row.
        Refused
            If the explanation was loaded, and has no model; or if LIME has no
            coefficients for any of the documents.
        """
        n = self._read_samples(n_samples)
        if rows is not None:
            return self.loc[[*rows]].diagnose(n, progress=progress)
        findings, labels = self._findings(n, progress)
        return LimeDiagnosis(
            items=tuple(sorted(findings, key=severity_order)),
            shape=self.shape,
            labels=labels,
            n_samples=n,
            sampling_error=self.sampling_error,
            quantity=self.quantity,
        )

    @abstractmethod
    def _findings(
        self, n_samples: int, progress: bool | None
    ) -> tuple[list[LimeFinding], Labels]:
        """The findings of all rules about runs of n samples; the names they use."""

    # ---- as a table, as lists, as one line and as a document

    def to_frame(self) -> pd.DataFrame:
        """A table with one line for each row and column, or document and word.

        Coefficients have their standard error, noise and source, and the bin of the row
        or the number of occurrences of the word. The standard deviation and the mean
        of single runs are those of ``n_samples``; NaN for documents of more than 500
        words.
        """
        lengths = self._lengths
        lines = np.repeat(range(len(lengths)), lengths)
        names = self.row_names
        shared = {
            self.nouns[0]: [names[n] for n in lines.tolist()],
            "coefficient": self.flat_coefficients,
            "standard_error": np.concatenate(list(self._errors)),
            "single_run_sd": self._available_noise,
            "expected": self._flat_means(None),
            "n_samples": self.n_samples,
            "intercept": self.intercept[lines],
            "prediction": self.values[lines],
            "base": self.base[lines],
            "surrogate_at_row": self.at_row[lines],
            "source": [self.sources[n] for n in lines.tolist()],
            "units": self.units,
        }
        return self._framed(shared, lines)

    @abstractmethod
    def _framed(self, shared: dict[str, Any], lines: Indices) -> pd.DataFrame:
        """The table, with the columns of all results; the row of each line (M,)."""

    def top(self, k: int = 10, row: Hashable | None = None) -> pd.DataFrame:
        """The k largest coefficients of a row or document, as lines of the table.

        Parameters
        ----------
        k : int
            The number of coefficients.
        row : label or int, optional
            Its name, or its position; by default the first with coefficients.

        Returns
        -------
        DataFrame
            Lines of :meth:`to_frame`, the largest size first.
        """
        count = read_count(k, "k")
        n = self.position(row)
        frame = self[[n]].to_frame()
        order = [j for j, _ in self.records[n].sorted_by_size()]
        return frame.iloc[order[:count]].reset_index(drop=True)

    def as_list(self, row: Hashable | None = None) -> list[tuple[str, float]]:
        """Names and coefficients, the largest size first, as in the package ``lime``.

        Parameters
        ----------
        row : label or int, optional
            Its name, or its position; by default the first with coefficients.

        Returns
        -------
        list of (str, float)
            Names are words, or columns with their bins.
        """
        record = self.records[self.position(row)]
        return [(record.names[j], weight) for j, weight in record.sorted_by_size()]

    def as_map(self, row: Hashable | None = None) -> dict[int, list[tuple[int, float]]]:
        """Positions and coefficients under the key 1, as in the package ``lime``.

        Parameters
        ----------
        row : label or int, optional
            Its name, or its position; by default the first with coefficients.

        Returns
        -------
        dict
            The largest size first. Words are numbered in order of first occurrence.
        """
        return {1: self.records[self.position(row)].sorted_by_size()}

    def __repr__(self) -> str:
        """One line with the size, the output, the sampling error and the law."""
        facts = (
            shape_text(*self.shape, self.nouns[1]),
            self.explained_in_words,
            f"sampling error {share_text(self.sampling_error)}",
            self.law_in_words,
        )
        return f"{type(self).__name__}({printable(', '.join(facts))})"

    def document(self, row: Hashable | None = None) -> Document:
        """The largest coefficients of one row, with the range of single LIME runs.

        A document of texts also shows this text with its words highlighted. A page has
        the coefficients of the other rows too.

        Parameters
        ----------
        row : label or int, optional
            Its name in the index of X, or its position where X had no names; by default
            the first with coefficients.

        Returns
        -------
        Document
            A table of coefficients, labelled numbers and the settings.
        """
        n = self.position(row)
        record = self.records[n]
        noun = self.nouns[0]
        N = self.shape[0]
        name = f"{noun} {record.label}"
        quantity = self.quantity
        unit = ""
        if quantity is not None and not quantity.is_by_name:
            unit = f", in {quantity.unit}"
        settings = {
            "law": self.law_in_words,
            **self._run_settings,
            "model evaluations": f"{self.evaluations:,}",
            "reason of sampling": record.reason if record.is_estimated else "",
        }
        missing = f"LIME has no coefficients for {name}: {record.reason}."
        return Document(
            title=title_of("LIME, infinite samples", quantity),
            subtitle=subtitle_of(
                quantity,
                f"{name} ({n + 1} of {N:,})" if N > 1 else name,
                f"coefficients: {self.compared}{unit}",
            ),
            dangers=() if record.has_coefficients else [missing],
            blocks=self._blocks(n),
            settings={name: text for name, text in settings.items() if text},
            chapters=partial(self._chapters, n),
        )

    def run_intervals(self, top: pd.DataFrame) -> tuple[Array, str]:
        """The ends (n, 2) of single runs for lines of :meth:`top`, and their share."""
        means = top["expected"].to_numpy(float)
        ends = normal_interval(means, top["single_run_sd"].to_numpy(float))
        return ends, f"{100.0 * RUN_LEVEL:g}% of runs"

    def _blocks(self, n: int) -> list[Block]:
        """The largest coefficients of a row with their facts."""
        record = self.records[n]
        if not record.has_coefficients:
            return [Facts([Fact("prediction", record.value)])]
        frame = self.top(_MOST_BARS, self.row_names[n])
        ends, runs = self.run_intervals(frame)
        coefficients = frame["coefficient"].tolist()
        shown = frame[[x for x in ("feature", "word", "value", "bin") if x in frame]]
        shown = shown.set_index(shown.columns[0])
        if "value" in shown:
            shown["value"] = [*map(value_in_words, shown["value"])]
        shown["coefficient"] = [*map(signed_text, coefficients)]
        facts = [
            Fact("prediction", record.value),
            Fact("base", record.base, note="mean of the samples"),
            Fact(
                "sampling error",
                record.sampling_error,
                "%",
                "computed" if record.is_exact else "estimated",
            ),
        ]
        if np.isfinite(ends).any():
            shown["interval of runs"] = [*map(interval_text, ends.tolist())]
            note = f"{self.n_samples:,} samples"
            facts.append(Fact("interval of runs", runs, note=note))
        bars = {"coefficient": [*map(Span.of, coefficients, map(tuple, ends.tolist()))]}
        return [Table(shown, total=len(record.names), bars=bars), Facts(facts)]

    @property
    def _run_settings(self) -> dict[str, str]:
        """Settings of runs, for a card."""
        return {}

    def _chapters(self, shown: int) -> list[Chapter]:
        """The coefficients of other rows, as far as there is room, and a table."""
        names = self.row_names
        others = [n for n in range(min(len(names), _MOST_CHAPTERS)) if n != shown]
        return [
            *(Chapter(f"{self.nouns[0]} {names[n]}", self._blocks(n)) for n in others),
            table_chapter("Coefficients", self._coefficients_on_page()),
        ]

    @abstractmethod
    def _coefficients_on_page(self) -> pd.DataFrame:
        """The coefficients of all rows; CSV files have the other columns."""


def normal_interval(
    middle: Array, deviations: Array, level: float = RUN_LEVEL
) -> Array:
    """Both ends of an interval by the normal law, (..., 2)."""
    reach = float(ndtri(0.5 + 0.5 * level)) * deviations
    return np.stack([middle - reach, middle + reach], axis=-1)


def deviations_of(cases: Sequence[Evidence]) -> Array:
    """The standard deviations of one run for all features, (M,)."""
    return numbers_of_runs(cases, lambda case: case.run.standard_deviations)


def numbers_of_runs(
    cases: Sequence[Evidence], numbers: Callable[[Evidence], Array]
) -> Array:
    """Numbers of runs for all features, (M,); NaN where runs are not computed."""
    parts = [
        numbers(case) if case.has_run else np.full(case.beta.shape, np.nan)
        for case in cases
    ]
    return np.concatenate([part.ravel() for part in parts])
