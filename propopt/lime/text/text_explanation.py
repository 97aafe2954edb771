"""What LIME tends to on documents, with all that can be asked of it.

- :class:`~propopt.lime.text.text_explanation.TextLimeExplanation`: the result;
- :class:`~propopt.lime.text.text_explanation.TextSubject`: the model behind it,
  which is not saved.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, TypeAlias, cast, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Positions, Values
from propopt.base.cards import Card
from propopt.base.declared import left, stored
from propopt.base.errors import InvalidInput, Refused
from propopt.base.html import HighlightedText, MarkedText, highlighted, marked_html
from propopt.base.text import printable
from propopt.functions.texts import TextFunction
from propopt.lime.diagnosis.diagnosis import LimeDiagnosis
from propopt.lime.explanation import (
    LimeResult,
    deviations_of,
    largest_on_card,
    lines_in_words,
    notes_on_card,
)
from propopt.lime.paths import BandwidthPath, read_widths
from propopt.lime.single_runs import SingleRun
from propopt.lime.text.text_diagnosis import (
    MANY_WORDS,
    ObservedWords,
    TextEvidence,
    told_of_documents,
)
from propopt.lime.text.text_paths import path_of_words, word_path
from propopt.lime.text.text_reading import (
    ExplainedDocument,
    TextLaw,
    WordRegression,
)
from propopt.lime.text.text_runs import expected_run, single_text_run
from propopt.lime.text.text_samples import SampledWords
from propopt.results.certain import plural
from propopt.results.explanation import Explanation
from propopt.structures.subsets.sets import SetFunction
from propopt.tables.documents import Document
from propopt.tables.frames import Labels, listed


# ---- What is shown of LIME on texts: one line, and highlighted words for notebooks


def highlighted_rows(
    explanation: TextLimeExplanation,
    rows: Sequence[int],
    n_words: int = 10,
) -> HighlightedText:
    """Documents with their words in shades, on one scale, and tables of the numbers."""
    return highlighted(
        [_marked(explanation, n) for n in rows],
        f"LIME on texts, its limits: {words_size(explanation)}",
        explanation.units,
        list(words_claims(explanation)),
        n_words,
    )


def words_size(explanation: TextLimeExplanation) -> str:
    """Documents and words."""
    N, V = explanation.shape
    return f"{plural(N, 'document')}, {plural(V, 'word')}"


def words_claims(explanation: TextLimeExplanation) -> Iterator[str]:
    """What is proved, what is estimated, the units and the law."""
    rows = explanation.rows
    exact = sum(row.is_exact for row in rows)
    if exact == len(rows):
        yield "coefficients exact, without samples or a seed"
    elif exact:
        yield f"coefficients exact in {exact} of {plural(len(rows), 'document')}"
    estimated = _estimated(rows)
    if estimated:
        yield (
            f"{_errors_in_words(estimated)}, {explanation.evaluations:,} evaluations; "
            f"not exact because {_reasons(estimated)}"
        )
    yield f"in {explanation.units}"
    yield explanation.law_in_words


def _proof(rows: Sequence[ExplainedDocument]) -> Iterator[str]:
    """The same on a card, without reasons."""
    exact, estimated = sum(row.is_exact for row in rows), _estimated(rows)
    if exact == len(rows):
        yield "exact: no samples, no seed"
    elif exact:
        yield f"exact in {exact} of {plural(len(rows), 'document')}"
    if estimated:
        yield _errors_in_words(estimated)


def _estimated(rows: Sequence[ExplainedDocument]) -> list[ExplainedDocument]:
    return [row for row in rows if row.is_known and not row.is_exact]


def _errors_in_words(estimated: Sequence[ExplainedDocument]) -> str:
    largest = max(float(np.max(row.errors)) for row in estimated)
    count = plural(len(estimated), "document")
    return f"coefficients of {count} estimated, standard errors up to {largest:.2g}"


def _reasons(rows: Sequence[ExplainedDocument]) -> str:
    reasons = list(dict.fromkeys(row.reason for row in rows))
    more = f" (and {len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}"


def _marked(explanation: TextLimeExplanation, n: int) -> MarkedText:
    row = explanation.rows[n]
    facts = [f"f = {row.value:.4g}"]
    if row.is_known:
        facts[0] += f", surrogate {row.at_row:.4g}, intercept {row.intercept:.4g}"
        facts.append(row.source)
    else:
        facts.append(f"no coefficients: {row.reason}")
    return MarkedText(
        name=f"document {explanation.document_names[n]}",
        facts=tuple(facts),
        text=row.document.text,
        spans=spans_of(row.document),
        words=row.words,
        weights=row.coefficients,
        errors=row.standard_errors,
    )


def spans_of(document: Document) -> list[tuple[int, int, int]]:
    """Where words stand, and which of the words each is."""
    return [
        (occurrence.start, occurrence.end, place)
        for occurrence, place in zip(
            document.occurrences, document.places.tolist(), strict=True
        )
    ]


ROWS_SHOWN: Final = 3
"""Documents with highlighted words on a card."""


# ---- What LIME is asked about texts: a function, a law, documents


WordMeans: TypeAlias = SetFunction | SampledWords
"""What knows the coefficients of a document at any bandwidth."""


@final
@dataclass(frozen=True, eq=False)
class TextSubject:
    """A function, a law and documents; not saved with what was found about them."""

    function: TextFunction  # f
    law: TextLaw  # of the samples
    documents: tuple[Document, ...]  # (N,): the texts
    n_samples: int  # texts for each document whose limits are estimated
    seed: int  # of these samples
    max_enumerated: int = 0  # so many words have all their sets asked for
    # (N,): what is known of each document at any bandwidth
    means: tuple[WordMeans | None, ...] = ()

    def of_rows(self, rows: Positions) -> TextSubject:
        """The same, about some of the documents."""
        return replace(
            self,
            documents=tuple(self.documents[n] for n in rows),
            means=tuple(self.means[n] for n in rows),
        )


# ---- Single runs of LIME on texts, with n samples each


@final
@dataclass(frozen=True, eq=False)
class WordRuns:
    """How runs of n samples come out for each document, (d,) each."""

    n_samples: int = stored(low=1)  # of a run
    # of its coefficients; NaN where they are not known
    means: tuple[Array, ...] = stored(missing=True)
    deviations: tuple[Array, ...] = stored(missing=True, low=0.0)

    def of_rows(self, rows: Positions) -> WordRuns:
        """The same of some documents."""
        return WordRuns(
            self.n_samples,
            tuple(self.means[n] for n in rows),
            tuple(self.deviations[n] for n in rows),
        )


def _run(subject: TextSubject, value: float, place: int, n_samples: int) -> SingleRun:
    means = subject.means[place]
    assert means is not None, "LIME says something of it"
    if isinstance(means, SampledWords):
        # values are those of the draws, and are asked of them alone
        function = cast("SetFunction", means)
        draws = means.draws
        return single_text_run(function, subject.law, value, n_samples, draws=draws)
    return single_text_run(means, subject.law, value, n_samples)


# ---- What LIME tends to at documents, with what is known of its error


@final
class TextLimeExplanation(
    LimeResult[TextSubject, list[Array]],
    kind="propopt text lime",
    noun="saved limits of LIME on texts",
    version=2,
):
    """The coefficients that LIME tends to, for each distinct word of each document.

    g(z) = β_0 + Σ_j β_j z_j, where bit z_j says whether all occurrences of a word are
    kept; β_j is in units of the output. Documents have words of their own, so that
    numbers of words are lists with an array for each document.

    Parameters
    ----------
    rows : tuple of ExplainedDocument (N,)
        What is known of each document.
    law : TextLaw
        How words are deleted, and the weights.
    n_samples : int
        Of one run of LIME; and of documents whose limits are estimated.
    names : tuple or None
        Names of the documents, where they had some.
    evaluations : int
        Texts that the model was given.
    notes : tuple of str
        What a reader has to know, a sentence each: documents that LIME says nothing of,
        and why.
    quantity : Quantity or None
        What is explained, such as the probability of a class.
    scatter : WordRuns or None
        What is known of single runs, where it is not computed any more.
    subject : TextSubject or None
        The model, and what was found. They are not saved: of a loaded explanation it is
        None.
    """

    _left_behind: ClassVar[str] = (
        "the model is not saved with explanations; make it anew with "
        "propopt.lime.text_limits"
    )

    rows: tuple[ExplainedDocument, ...] = stored(by_column=True, nonempty=True)
    law: TextLaw = stored()
    names: tuple[Hashable, ...] | None = stored(default=None)
    scatter: WordRuns | None = stored(default=None)
    subject: TextSubject | None = left(default=None)

    def contradictions(self) -> None:
        """Refuse documents that contradict themselves, and names and runs of others.

        Raises
        ------
        InvalidInput
            Where what one field says is not what another does.
        """
        for n, row in enumerate(self.rows):
            try:
                row.contradictions()
            except InvalidInput as error:
                raise InvalidInput(f"document {n}: {error}") from None
        if self.names is not None and len(self.names) != len(self.rows):
            raise InvalidInput(f"names: expected one for each of {len(self.rows)}")
        runs, sizes = self.scatter, [row.document.n_words for row in self.rows]
        if runs is not None and (
            list(map(len, runs.means)) != sizes
            or list(map(len, runs.deviations)) != sizes
            or runs.n_samples != self.n_samples
        ):
            raise InvalidInput("scatter: it is that of other documents or runs")

    @classmethod
    def upgraded(
        cls, version: int, header: dict[str, Any], arrays: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Of version 1, which had arrays of all documents one behind the other."""
        del version
        sizes = np.array([len(own) for own in header["words"]], np.int64)
        moved = {
            "coefficients": ("rows.coefficients", sizes),
            "run_means": ("scatter.means", sizes),
            "run_deviations": ("scatter.deviations", sizes),
        }
        for name in ("starts", "ends", "places"):
            moved[name] = f"rows.document.{name}", arrays["n_occurrences"]
        now = {}
        for name, (where, lengths) in moved.items():
            now[where], now[f"{where}.sizes"] = arrays[name], lengths
        estimated = arrays["estimated"] != 0.0
        now["rows.standard_errors"] = arrays["errors"][np.repeat(estimated, sizes)]
        now["rows.standard_errors.sizes"] = np.where(estimated, sizes, -1)
        texts = {"text": "texts", "words": "words", "filler": "fillers"}
        rows = {
            "document": {key: header[name] for key, name in texts.items()},
            "source": header["sources"],
            "reason": header["reasons"],
            **{
                key: list(map(_plain, arrays[key].tolist()))
                for key in ("intercept", "value", "intercept_error")
            },
        }
        (bandwidth,) = arrays["bandwidth"].tolist()
        kept = ("n_samples", "evaluations", "notes")
        return {
            **{key: header[key] for key in kept},
            "rows": rows,
            "law": {"bandwidth": _plain(bandwidth)},
            "names": header["labels"]["points"],
            "scatter": {"n_samples": header["n_samples"]},
            "quantity": None,
        }, now

    @property
    def shape(self) -> tuple[int, int]:
        """The number of documents, and of words of all of them."""
        return len(self.rows), len(self.vocabulary)

    @property
    def document_names(self) -> tuple[Hashable, ...]:
        """Names of the documents; their numbers where they had none."""
        return tuple(range(len(self.rows))) if self.names is None else self.names

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The distinct words of each document, as they first come."""
        return tuple(row.words for row in self.rows)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """All words, in the order in which they first come."""
        return tuple(dict.fromkeys(word for row in self.rows for word in row.words))

    @cached_property
    def labels(self) -> Labels:
        """Names of the documents, where they had some, and all words."""
        return Labels(self.names, self.vocabulary)

    @property
    def coefficients(self) -> list[Array]:
        """β of the words of each document, (d,); NaN where LIME says nothing."""
        return [row.coefficients for row in self.rows]

    @property
    def standard_errors(self) -> list[Array]:
        """Of the coefficients, (d,): 0 of exact ones."""
        return [row.errors for row in self.rows]

    @property
    def intercept(self) -> Values:
        """β_0, (N,)."""
        return np.array([row.intercept for row in self.rows])

    @property
    def values(self) -> Values:
        """F of the documents, (N,)."""
        return np.array([row.value for row in self.rows])

    @property
    def at_row(self) -> Values:
        """The surrogate at the documents themselves, β_0 + Σ_j β_j, (N,)."""
        return np.array([row.at_row for row in self.rows])

    @property
    def local_gap(self) -> Values:
        """F less the surrogate at the documents, (N,)."""
        return np.asarray(self.values - self.at_row)

    @property
    def sources(self) -> tuple[str, ...]:
        """``"exact"``, how coefficients were estimated, or ``"none"``, (N,)."""
        return tuple(row.source for row in self.rows)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why they are not exact, a sentence for each document, (N,)."""
        return tuple(row.reason for row in self.rows)

    @property
    def is_exact(self) -> bool:
        """Whether all coefficients have no error but rounding."""
        return all(row.is_exact for row in self.rows)

    @property
    def law_in_words(self) -> str:
        """The law and its bandwidth."""
        return repr(self.law)

    @cached_property
    def runs(self) -> WordRuns:
        """How single runs of the package come out, computed when first asked."""
        return self._runs_of(self.n_samples) if self.scatter is None else self.scatter

    def _runs_of(self, n_samples: int) -> WordRuns:
        """Runs of n samples, of documents that are not too long."""
        runs = [self._run_at(n, n_samples) for n in range(len(self.rows))]
        means, deviations = zip(*runs, strict=True)
        return WordRuns(n_samples, means, deviations)

    def _run_at(self, n: int, n_samples: int) -> tuple[Array, Array]:
        """Means and deviations of a run at one document, (d,); NaN where not known."""
        row = self.rows[n]
        if (
            self.subject is None
            or not row.is_known
            or row.document.n_words > MANY_WORDS
        ):
            nothing = np.full(row.document.n_words, np.nan)
            return nothing, nothing
        run = _run(self.subject, row.value, n, n_samples)
        return run.coefficients[0], run.standard_deviations[0]

    def to_frame(self) -> pd.DataFrame:
        """One row for each word of each document: coefficient, error, noise, source.

        The deviation and the mean of single runs are those of the package with
        ``n_samples``; they are NaN for documents of more than 500 words.
        """
        rows, names = self.rows, self.document_names
        sizes = [row.document.n_words for row in rows]
        places = np.repeat(np.arange(len(rows)), sizes)

        def joined(parts: Sequence[Any]) -> Array:
            return np.concatenate([*parts, np.empty(0)])

        of_words: dict[str, Any] = {
            "document": [names[n] for n in places],
            "word": pd.Series(
                [word for row in rows for word in row.words], dtype=object
            ),
            "count": joined([row.document.counts for row in rows]).astype(np.int64),
            "coefficient": joined(self.coefficients),
            "standard_error": joined(self.standard_errors),
            "single_run_sd": joined(self.runs.deviations),
            "expected": joined(self.runs.means),
            "n_samples": self.n_samples,
        }
        of_documents = pd.DataFrame(
            {
                "intercept": [row.intercept for row in rows],
                "prediction": [row.value for row in rows],
                "surrogate_at_row": [row.at_row for row in rows],
                "source": self.sources,
                "reason": self.reasons,
            }
        )
        repeated = of_documents.iloc[places].reset_index(drop=True)
        frame = pd.concat([pd.DataFrame(of_words), repeated], axis=1)
        return frame.assign(units=self.units)

    def single_run(
        self,
        row: Hashable | None = None,
        n_samples: int | None = None,
    ) -> SingleRun:
        """The mean and the covariance of the coefficients of one run of the package.

        Parameters
        ----------
        row : label or int, optional
            Name or position of the document; by default the first.
        n_samples : int, optional
            Of the run; those of the explanation by default.

        Raises
        ------
        InvalidInput
            If there is no such document.
        Refused
            If the explanation was loaded, or LIME says nothing of the document.
        """
        place = self.position(row)
        own = self.rows[place]
        subject = self.asked("single_run")
        if not own.is_known:
            raise Refused(f"single_run: {own.reason}")
        return _run(subject, own.value, place, self._samples(n_samples))

    def noise(self, n_samples: int | None = None) -> list[Array]:
        """Standard deviations of coefficients of a single run, (d,) for each document.

        They are NaN for documents that LIME says nothing of, and for those of more than
        500 words; :meth:`single_run` has these.

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
            return list(self.runs.deviations)
        self.asked("noise")
        return list(self._runs_of(n).deviations)

    def expected(self, n_samples: int | None = None) -> list[Array]:
        """Mean coefficients of runs of the package ``lime``, (d,) for each document.

        With its ridge of 1, and the document itself as the first sample.

        Parameters
        ----------
        n_samples : int, optional
            Of each run; those of the explanation by default.

        Raises
        ------
        Refused
            If the explanation was loaded, and they are not known.
        """
        if n_samples is None or n_samples == self.n_samples:
            return list(self.runs.means)
        subject, n = self.asked("expected"), self._samples(n_samples)
        result = []
        for means, row in zip(subject.means, self.rows, strict=True):
            if means is None:
                result.append(row.coefficients)
            else:
                fit = expected_run(means, subject.law, row.value, n)
                result.append(fit.coefficients[0])
        return result

    def row(self, row: Hashable | None = None) -> ExplainedDocument:
        """What is known of one document; the first by default.

        Parameters
        ----------
        row : label or int, optional
            Its name in the index of a Series, or its position where documents had no
            names.

        Raises
        ------
        InvalidInput
            If there is none.
        """
        return self.rows[self.position(row)]

    def of_rows(self, rows: Sequence[Hashable]) -> TextLimeExplanation:
        """The same of some documents alone; nothing is computed.

        Parameters
        ----------
        rows : sequence of labels or int
            Their names in the index of a Series, or positions where they had no names.

        Raises
        ------
        InvalidInput
            If there is no such document, or none is asked for.
        """
        indices = self._positions(rows)
        subject = self.subject
        scatter = vars(self).get("runs", self.scatter)
        return replace(
            self,
            rows=tuple(self.rows[n] for n in indices),
            names=tuple(self.document_names[n] for n in indices),
            scatter=None if scatter is None else scatter.of_rows(indices),
            subject=None if subject is None else subject.of_rows(indices),
        )

    def path(
        self,
        row: Hashable | None = None,
        bandwidths: ArrayLike | None = None,
    ) -> BandwidthPath:
        """Coefficients of a document at many bandwidths; the model is not asked again.

        Estimated ones have standard errors; where their signs change is estimated too.

        Parameters
        ----------
        row : label or int, optional
            Its name in the index of a Series, or its position where documents had no
            names; by default the first.
        bandwidths : array (M,), optional
            ν, each positive and finite; by default 50 around that of the law.

        Raises
        ------
        InvalidInput
            If there is no such document, or a bandwidth is not positive.
        Refused
            If the explanation was loaded, or LIME says nothing of the document.
        """
        n = self.position(row)
        means = self.asked("path").means[n]
        if means is None:
            raise Refused(f"path: {self.rows[n].reason}")
        width = self.law.bandwidth
        grid = read_widths(bandwidths, width if np.isfinite(width) else 1.0)
        if not isinstance(means, SampledWords):
            return word_path(means, grid)
        return path_of_words(grid, means.at(grid), WordRegression(means))

    def to_attributions(self) -> Explanation:
        """Coefficients as attributions (N, V) of all words of the documents.

        A word that a document does not have has the attribution 0 there.

        Returns
        -------
        Explanation
            In units of the output, with standard errors where a coefficient is
            estimated.

        Raises
        ------
        Refused
            If LIME says nothing of one of the documents; :meth:`of_rows` leaves it out.
        """
        rows, names = self.rows, self.document_names
        unknown = [names[n] for n, row in enumerate(rows) if not row.is_known]
        if unknown:
            raise Refused(
                f"to_attributions: LIME says nothing of documents {listed(unknown)}; "
                "leave them out with of_rows"
            )
        words = self.vocabulary
        index = {word: j for j, word in enumerate(words)}
        W, errors = np.zeros((2, len(rows), len(words)))
        for n, row in enumerate(rows):
            columns = [index[word] for word in row.words]
            W[n, columns], errors[n, columns] = row.coefficients, row.errors
        is_exact = all(row.is_exact for row in rows)
        return Explanation(
            attributions=W,
            method="lime (limit)",
            labels=self.labels,
            parameters={"bandwidth": self.law.bandwidth},
            standard_errors=None if is_exact else errors,
            units="output",
            quantity=self.quantity,
            evaluations=self.evaluations,
        )

    def diagnose(
        self,
        n_samples: int | None = None,
        *,
        rows: Sequence[Hashable] | None = None,
        progress: bool | None = None,
    ) -> LimeDiagnosis:
        """What these coefficients hide: findings with numbers, what misleads first.

        Words that are one feature of the model, that it does not know or ignores; signs
        that depend on the bandwidth; weights that collapse or leave one word out at a
        time; noise, unstable ranks, ridge and words left out of a run; sums that are
        not f,
        and what no sample shows.

        Parameters
        ----------
        n_samples : int, optional
            Of the runs that it is about; those of the explanation by default.
        rows : sequence of labels or int, optional
            Only these documents, by their names, or positions where they had no names.
        progress : bool, optional
            Show a bar; by default only on a terminal. Sums behind a norm take some
            20 Q d² steps for each document, 0.2 s for 150 words, which is said before
            where it is long.

        Returns
        -------
        LimeDiagnosis
            Its columns are the words of all documents.

        Raises
        ------
        InvalidInput
            If there is no such document.
        Refused
            If the explanation was loaded, or LIME says nothing of any of the documents.
        """
        if rows is not None:
            return self.of_rows(rows).diagnose(n_samples, progress=progress)
        n, subject = self._samples(n_samples), self.asked("diagnose")
        vectorisers = subject.function.vectorisers
        evidence: dict[int, TextEvidence] = {}
        for k, (row, means) in enumerate(zip(self.rows, subject.means, strict=True)):
            if means is None:
                continue
            seen = ObservedWords.of(vectorisers, row.document) if vectorisers else None
            if isinstance(means, SampledWords):
                function, at = None, means.at
            else:
                function, at = means, WordRegression(means).at
            evidence[k] = TextEvidence(row, function, at, self.law, seen, n)
        if not evidence:
            raise Refused("diagnose: LIME says nothing of these documents")
        told = told_of_documents(evidence, self.vocabulary, progress)
        source = " and ".join(dict.fromkeys(self.sources))
        return LimeDiagnosis.of_told(told, self.shape, self.labels, n, source)

    def _at(self, n: int) -> tuple[Sequence[str], Values]:
        return self.rows[n].words, self.rows[n].coefficients

    def __repr__(self) -> str:
        """One line."""
        facts = "; ".join(map(printable, words_claims(self)))
        return f"TextLimeExplanation({words_size(self)}; {facts})"

    def card(self, row: Hashable | None = None) -> Card:
        """The largest coefficients of one document, and highlighted words of the first.

        Parameters
        ----------
        row : label or int, optional
            Its name in the index of a Series, or its position where documents had no
            names; by default the first that LIME says something of.
        """
        N = len(self.rows)
        known = [n for n, own in enumerate(self.rows) if own.is_known]
        n = self.position(row) if row is not None or not known else known[0]
        own, known_runs = self.rows[n], vars(self).get("runs", self.scatter)
        if known_runs is None:
            middle, deviations = self._run_at(n, self.n_samples)
        else:
            middle, deviations = known_runs.means[n], known_runs.deviations[n]
        # the ends of lines on the card, (d, 2); NaN where they are not known
        ends = self._around([middle], [deviations], deviations_of())[0]
        words = own.words if own.is_known else ()
        rows, rest = largest_on_card(words, own.coefficients[: len(words)], ends)
        proof = list(_proof(self.rows))
        if np.isfinite(ends).any():
            proof.append(lines_in_words(self.n_samples))
        others = [k for k in range(N) if k != n]
        shown = sorted([n, *others[: ROWS_SHOWN - 1]])
        more = N - len(shown)
        return Card(
            title=self._headline(n),
            subtitle=(
                "what LIME finds with ever more samples: by how much the output is "
                f"higher with each word than without it, in {self.units}"
                + (f"; {plural(more, 'more document')} not shown" if more else "")
            ),
            rows=rows,
            rest=rest,
            inside=marked_html([_marked(self, k) for k in shown], self.units),
            proof=" · ".join(proof),
            settings=dict(self._settings()) | notes_on_card(self.notes),
        )

    def _headline(self, n: int) -> str:
        """What is explained, and of which document."""
        own, whom = self.rows[n], f"document {self.document_names[n]}"
        if not own.is_known:
            return f"LIME says nothing of {whom}: {own.reason}"
        intercept = f" ({own.intercept:.4g} without its words)"
        return self._why(own.value, whom, intercept)

    def _settings(self) -> Iterator[tuple[str, str]]:
        """How it was made."""
        if self.quantity is not None:
            yield "explained", str(self.quantity)
        yield "size", words_size(self)
        yield "law", self.law_in_words
        if estimated := _estimated(self.rows):
            yield "not exact because", _reasons(estimated)
        yield "model evaluations", f"{self.evaluations:,}"

    def _each(self, of: Callable[..., Array], *parts: list[Array]) -> list[Array]:
        return [of(*own) for own in zip(*parts, strict=True)]

    def _limits_and_errors(self) -> tuple[list[Array], list[Array]]:
        return self.coefficients, self.standard_errors


def _plain(number: float) -> float | str | None:
    """As a header has it, which has no NaN."""
    if np.isnan(number):
        return None
    return str(number) if np.isinf(number) else number
