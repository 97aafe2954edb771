"""The coefficients that LIME converges to for the words of documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final, Self, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Indices
from propopt.base.checks import errors_of
from propopt.base.declared import field, transient
from propopt.base.document import Block, Markup
from propopt.base.errors import InvalidInput, Refused
from propopt.base.html import MarkedText, marked_html
from propopt.lime.diagnosis.diagnosis import run_rules
from propopt.lime.diagnosis.evidence import Evidence, LimeFinding, TextEvidence
from propopt.lime.diagnosis.rules import TEXT_RULES
from propopt.lime.explanation import (
    LimeExplanation,
    deviations_of,
    numbers_of_runs,
)
from propopt.lime.finite_samples import RunScatter
from propopt.lime.paths import BandwidthPath, path_of_words
from propopt.lime.plots import LimePlots
from propopt.lime.records import LimeRecord
from propopt.lime.text.sampled_words import TextSubject
from propopt.results.result import Result
from propopt.tables.documents import TextDocument, vocabulary_of
from propopt.tables.frames import Labels


_COLUMNS: Final = (
    "document",
    "word",
    "count",
    "coefficient",
    "standard_error",
    "single_run_sd",
    "expected",
    "n_samples",
    "intercept",
    "prediction",
    "base",
    "surrogate_at_row",
    "source",
    "reason",
    "units",
)


@final
class LimeDocuments(
    LimeExplanation,
    kind="propopt lime of documents",
    noun="saved limits of LIME on documents",
    version=2,
):
    """The coefficients that LIME converges to, for the words of documents.

    The bit z_j of the surrogate says whether a sample has all occurrences of word j of
    the d distinct words of a document. The other parameters are those of
    :class:`LimeExplanation`.

    Parameters
    ----------
    documents : tuple of TextDocument (N,)
        The documents.
    """

    nouns: ClassVar[tuple[str, str]] = ("document", "word")
    computed_by: ClassVar[str] = "text_limits"
    compared: ClassVar[str] = "with the word minus without"
    per_row: ClassVar[tuple[str, ...]] = ("sources", "reasons", "documents")
    runs_have_means: ClassVar[bool] = True

    documents: tuple[TextDocument, ...] = field(by_column=True)
    subject: TextSubject | None = transient(default=None)

    @classmethod
    def of_records(cls, records: Sequence[LimeRecord], **fields: Any) -> Self:
        """Join the coefficients of several documents to one explanation.

        Parameters
        ----------
        records : sequence of LimeRecord (N,)
            The coefficients of each document, in order.
        **fields
            The other parameters of :class:`LimeDocuments`, such as ``n_samples``.

        Returns
        -------
        LimeDocuments
            With ``flat_errors`` None if all coefficients are exact.

        Raises
        ------
        InvalidInput
            If fields contradict each other.
        """
        errors = np.concatenate([record.errors for record in records])
        return cls(
            flat_coefficients=np.concatenate([r.coefficients for r in records]),
            flat_errors=errors if any(r.is_estimated for r in records) else None,
            flat_alpha=np.concatenate([record.alpha for record in records]),
            intercept=np.array([record.intercept for record in records]),
            values=np.array([record.value for record in records]),
            log_weight=np.array([record.log_weight for record in records]),
            effective_share=np.array([record.effective_share for record in records]),
            sources=tuple([record.source for record in records]),
            reasons=tuple([record.reason for record in records]),
            **fields,
        )

    def _validate_names(self, N: int) -> None:
        for n, document in enumerate(self.documents):
            with errors_of(f"document {n}"):
                document.validate()
        names = self.labels.points
        if len(self.documents) != N or (names is not None and len(names) != N):
            raise InvalidInput(f"labels: expected one name for each of {N} documents")

    @property
    def shape(self) -> tuple[int, int]:
        """The number of documents N, and of different words."""
        return len(self.documents), len(self.vocabulary)

    @property
    def plot(self) -> LimePlots:
        """Plots: ``limit.plot(row)``, or a method such as ``limit.plot.path(row)``."""
        return LimePlots(self)

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The distinct words of each document, in order of first occurrence."""
        return tuple(document.words for document in self.documents)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """The distinct words of all documents, in order of first occurrence."""
        return vocabulary_of(self.documents)

    def marked_text(self, n: int) -> MarkedText:
        """Document n with its coefficients, ready to be highlighted.

        Parameters
        ----------
        n : int
            Its position.

        Returns
        -------
        MarkedText
            The text, its words and their coefficients.
        """
        record = self.records[n]
        document = self.documents[n]
        facts = f"prediction {record.value:.4g}"
        if record.has_coefficients:
            facts += f", base {record.base:.4g}"
        return MarkedText(
            name=f"document {record.label}",
            facts=(facts,),
            text=document.text,
            spans=document.spans,
            words=record.names,
            weights=record.coefficients,
            errors=None if record.is_exact else record.errors,
        )

    @property
    def _lengths(self) -> list[int]:
        return [document.n_words for document in self.documents]

    def __iter__(self) -> Iterator[Any]:
        """One explanation after the other: each row has words of its own."""
        return Result.__iter__(self)

    def _table_of(self, rows: Indices) -> pd.DataFrame:
        betas = self.coefficients
        lines = [dict(zip(self._names(n), betas[n], strict=True)) for n in rows]
        words = vocabulary_of([self.documents[n] for n in rows])
        return pd.DataFrame(lines, columns=list(words), dtype=float)

    def _split(self, flat: Array) -> list[Array]:
        return np.split(flat, np.cumsum(self._lengths)[:-1])

    def _names(self, n: int) -> tuple[str, ...]:
        return self.documents[n].words

    # ---- single runs, paths and diagnosis

    def _computed_runs(self) -> RunScatter:
        cases = self.evidence(self.n_samples, "noise")
        unknown = np.full(len(self.values), np.nan)
        means = numbers_of_runs(cases, lambda case: case.finite.coefficients)
        deviations = deviations_of(cases)
        return RunScatter(deviations, unknown, self.n_samples, means, n_draws=0)

    def _evidence(self, n_samples: int) -> tuple[Evidence, ...]:
        subject = self.require_subject("evidence")
        vectorisers = subject.function.vectorisers
        parts = zip(self.documents, self.coefficients, subject.means, strict=True)
        return tuple(
            TextEvidence(
                means=means,
                law=subject.law,
                document=document,
                vectorisers=vectorisers,
                **self._block(n_samples, document.words, slice(n, n + 1), beta),
            )
            for n, (document, beta, means) in enumerate(parts)
        )

    def _flat_means(self, n_samples: int | None) -> Array:
        n = self._read_samples(n_samples)
        if n == self.n_samples and self.runs.means is not None:
            return self.runs.means
        cases = self.evidence(n, "expected")
        return numbers_of_runs(cases, lambda case: case.finite.coefficients)

    def _path(self, n: int, widths: ArrayLike | None) -> BandwidthPath:
        subject = self.require_subject("path")
        means = subject.means[n]
        if means is None:
            raise Refused(f"path: {self.reasons[n]}")
        return path_of_words(means, subject.law.bandwidth, widths)

    def _findings(
        self, n_samples: int, progress: bool | None
    ) -> tuple[list[LimeFinding], Labels]:
        cases = {
            n: case
            for n, case in enumerate(self.evidence(n_samples, "diagnose"))
            if isinstance(case, TextEvidence) and case.means is not None
        }
        if not cases:
            raise Refused("diagnose: LIME has no coefficients for these documents")
        columns = {word: j for j, word in enumerate(self.vocabulary)}

        def column(row: int, j: int) -> int:
            return columns[self.words[row][j]]

        findings = run_rules(
            TEXT_RULES, lambda rule: rule.in_documents(cases, column), progress
        )
        return findings, Labels(self.labels.points, self.vocabulary)

    # ---- the table and the document

    def _framed(self, shared: dict[str, Any], lines: Indices) -> pd.DataFrame:
        words = [word for row in self.words for word in row]
        columns = {
            **shared,
            "word": pd.Series(words, dtype=object),
            "count": np.concatenate([x.counts for x in self.documents]),
            "reason": [self.reasons[n] for n in lines.tolist()],
        }
        return pd.DataFrame({name: columns[name] for name in _COLUMNS})

    def _coefficients_on_page(self) -> pd.DataFrame:
        return self.to_frame()[["document", "word", "count", "coefficient"]]

    def _blocks(self, n: int) -> list[Block]:
        """Coefficients and facts, and the text with highlighted words."""
        unit = self.units if self.quantity is None else self.quantity.unit
        text = Markup(marked_html([self.marked_text(n)], unit))
        return [*super()._blocks(n), text]
