"""What LIME tends to on documents, with all that can be asked of it.

- :class:`~propopt.lime.text.text_explanation.TextLimeExplanation`: the result;
- :class:`~propopt.lime.text.text_explanation.TextSubject`: the model behind it,
  which is not saved.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias, cast, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Positions, Values
from propopt.base.checks import read_positive
from propopt.base.errors import InvalidInput, Refused
from propopt.base.files import Format, archive_path, as_json
from propopt.base.html import HighlightedText, MarkedText, highlighted
from propopt.base.text import printable
from propopt.functions.texts import TextFunction
from propopt.lime.diagnosis.diagnosis import LimeDiagnosis
from propopt.lime.explanation import ROWS_SHOWN, LimeResult
from propopt.lime.paths import read_widths
from propopt.lime.single_runs import SingleRun, required_samples
from propopt.lime.text.text_diagnosis import (
    MANY_WORDS,
    ObservedWords,
    TextEvidence,
    told_of_documents,
)
from propopt.lime.text.text_paths import MeansBySize, WordPath, word_path
from propopt.lime.text.text_reading import (
    NOTHING,
    ExplainedDocument,
    TextLaw,
    WordRegression,
)
from propopt.lime.text.text_runs import expected_run, single_text_run
from propopt.lime.text.text_samples import SampledWords
from propopt.results.archive import (
    Arrays,
    CheckedFile,
    Header,
    Kinds,
    are_labels,
    are_texts,
    is_count,
    is_positive,
    labels_of,
    plain_labels,
)
from propopt.results.certain import plural
from propopt.results.explanation import Explanation
from propopt.structures.subsets.sets import SetFunction
from propopt.tables.documents import Document, Occurrence
from propopt.tables.frames import Labels, listed


# ---- What is shown of LIME on texts: one line, and highlighted words for notebooks


def highlighted_rows(
    explanation: TextLimeExplanation,
    rows: Sequence[int],
    facts: Sequence[str] | None = None,
    n_words: int = 10,
) -> HighlightedText:
    """Documents with their words in shades, on one scale, and tables of the numbers."""
    return highlighted(
        [_marked(explanation, n) for n in rows],
        f"LIME on texts, its limits: {words_size(explanation)}",
        explanation.units,
        list(words_claims(explanation)) if facts is None else facts,
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
    estimated = [row for row in rows if row.is_known and not row.is_exact]
    if estimated:
        largest = max(float(np.max(row.errors)) for row in estimated)
        yield (
            f"coefficients of {plural(len(estimated), 'document')} estimated, standard "
            f"errors up to {largest:.2g}, {explanation.evaluations:,} evaluations; not "
            f"exact because {_reasons(estimated)}"
        )
    yield f"in {explanation.units}"
    yield explanation.law_in_words


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

    n_samples: int  # of a run
    means: tuple[Array, ...]  # of its coefficients; NaN where they are not known
    deviations: tuple[Array, ...]

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


# ---- Limits of LIME on texts as a file, and back: checked alike on both ways


_OF_DOCUMENTS: Final = ("intercept", "value", "intercept_error", "estimated")
_OF_WORDS: Final = ("coefficients", "errors", "run_means", "run_deviations")
_OF_PLACES: Final = ("starts", "ends", "places")
_ALONE: Final = ("bandwidth", "n_occurrences")


def _found(row: ExplainedDocument) -> tuple[Occurrence, ...]:
    return row.document.occurrences


def _whole(numbers: Any) -> Array:
    return np.array(list(numbers), np.int64)


def _fields(header: Header, arrays: Arrays) -> dict[str, Any]:
    known = {*_OF_DOCUMENTS, *_OF_WORDS, *_OF_PLACES, *_ALONE}
    for name in sorted(arrays.keys() ^ known):
        has = "has no" if name in known else "also has the"
        raise InvalidInput(f"it {has} array {name!r}")
    texts, N = header["texts"], len(header["texts"])
    for key in ("words", "fillers", "sources", "reasons"):
        if len(header[key]) != N:
            raise InvalidInput(f"{key}: expected one for each of {N} texts")
    bandwidth = _floats(arrays, "bandwidth", 1)
    if not bandwidth[0] > 0.0:
        raise InvalidInput("bandwidth: expected a number > 0")
    lengths = _counted(arrays, "n_occurrences", N)
    if lengths.min(initial=0) < 0 or lengths.max(initial=0) > max(map(len, texts)):
        raise InvalidInput("n_occurrences: there are not so many words in a text")
    rows = list(_rows(header, arrays, lengths.tolist()))
    sizes = [row.document.n_words for row in rows]
    n_samples = header["n_samples"]
    runs = (_of_words(arrays, name, sizes) for name in ("run_means", "run_deviations"))
    return {
        "rows": tuple(rows),
        "law": TextLaw(float(bandwidth[0])),
        "n_samples": n_samples,
        "scatter": WordRuns(n_samples, *map(tuple, runs)),
        "names": labels_of(header["labels"], (N, 0)).points,
        "evaluations": header["evaluations"],
        "notes": tuple(header["notes"]),
    }


def _rows(
    header: Header, arrays: Arrays, lengths: list[int]
) -> Iterator[ExplainedDocument]:
    """The documents, each with its part of the arrays."""
    N, words = len(lengths), header["words"]
    sizes = [len(own) for own in words]
    of_documents = {name: _floats(arrays, name, N) for name in _OF_DOCUMENTS}
    beta, errors = (_of_words(arrays, k, sizes) for k in ("coefficients", "errors"))
    starts, ends, indices = (
        np.split(_counted(arrays, name, sum(lengths)), np.cumsum(lengths)[:-1])
        for name in _OF_PLACES
    )
    for n in range(N):
        document = _document(
            header["texts"][n],
            tuple(words[n]),
            header["fillers"][n],
            (starts[n], ends[n], indices[n]),
        )
        source, is_known = header["sources"][n], header["sources"][n] != NOTHING
        numbers = [beta[n], errors[n], *(of_documents[k][n] for k in _KNOWN)]
        if is_known and not all(np.isfinite(part).all() for part in numbers):
            raise InvalidInput(f"coefficients of document {n}: expected finite numbers")
        if (errors[n] < 0.0).any():
            raise InvalidInput("errors: expected numbers >= 0")
        yield ExplainedDocument(
            document=document,
            coefficients=beta[n].copy(),
            intercept=float(of_documents["intercept"][n]),
            value=float(of_documents["value"][n]),
            standard_errors=errors[n].copy() if of_documents["estimated"][n] else None,
            intercept_error=float(of_documents["intercept_error"][n]),
            source=source,
            reason=header["reasons"][n],
        )


def _of_words(arrays: Arrays, name: str, sizes: list[int]) -> list[Array]:
    """The part of an array that each document has."""
    return np.split(_floats(arrays, name, sum(sizes)), np.cumsum(sizes)[:-1])


_KNOWN: Final = ("intercept", "value", "intercept_error")


def _document(
    text: str,
    words: tuple[str, ...],
    filler: str,
    saved: tuple[Positions, Positions, Positions],
) -> Document:
    """The document, where its words stand one behind the other in the text."""
    starts, ends, indices = saved
    edges = np.stack([starts, ends], axis=1).ravel()
    ordered = (np.diff(edges) >= 0).all() and (starts < ends).all()
    inside = len(edges) == 0 or (edges[0] >= 0 and edges[-1] <= len(text))
    if not (ordered and inside):
        raise InvalidInput("starts, ends: expected words one behind the other")
    if len(set(words)) < len(words) or set(indices.tolist()) != set(range(len(words))):
        raise InvalidInput("places: expected each word of a text somewhere in it")
    occurrences = tuple(
        Occurrence(start, end, words[place])
        for start, end, place in zip(
            starts.tolist(), ends.tolist(), indices.tolist(), strict=True
        )
    )
    return Document(text, words, occurrences, indices.astype(np.intp), filler)


def _floats(arrays: Arrays, name: str, size: int) -> Array:
    array = arrays[name]
    if array.dtype != np.float64 or array.shape != (size,):
        raise InvalidInput(f"{name}: expected {size} numbers")
    return array


def _counted(arrays: Arrays, name: str, size: int) -> Positions:
    array = arrays[name]
    if array.dtype != np.int64 or array.shape != (size,):
        raise InvalidInput(f"{name}: expected {size} whole numbers")
    return array.astype(np.intp)


def _are_strings(value: object) -> bool:
    """Also with halves of characters, as documents and their words may have them."""
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def _is_some(value: object) -> bool:
    return _are_strings(value) and bool(value)


def _are_words(value: object) -> bool:
    return isinstance(value, list) and all(map(_are_strings, value))


_KINDS: Final[Kinds] = {
    "labels": (are_labels, "names of documents, or null"),
    "texts": (_is_some, "a list of texts"),
    "words": (_are_words, "a list of words for each text"),
    "fillers": (are_texts, "a list of texts"),
    "sources": (are_texts, "a list of texts"),
    "reasons": (are_texts, "a list of texts"),
    "n_samples": (is_positive, "an integer >= 1"),
    "evaluations": (is_count, "an integer >= 0"),
    "notes": (are_texts, "a list of sentences"),
}
_FILE: Final = CheckedFile(
    form=Format("propopt text lime", "saved limits of LIME on texts", version=1),
    kinds=_KINDS,
    fields=_fields,
)


# ---- What LIME tends to at documents, with what is known of its error


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class TextLimeExplanation(LimeResult[TextSubject]):
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
    scatter : WordRuns or None
        What is known of single runs, where it is not computed any more.
    subject : TextSubject or None
        The model, and what was found. They are not saved: of a loaded explanation it is
        None.
    """

    _file: ClassVar[CheckedFile] = _FILE
    _left_behind: ClassVar[str] = (
        "the model is not saved with explanations; make it anew with "
        "propopt.lime.text_limits"
    )

    rows: tuple[ExplainedDocument, ...]
    law: TextLaw
    n_samples: int
    names: tuple[Hashable, ...] | None = None
    evaluations: int = 0
    notes: tuple[str, ...] = ()
    scatter: WordRuns | None = None
    subject: TextSubject | None = None

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
        subject = self.subject
        means, deviations = [], []
        for place, row in enumerate(self.rows):
            short = row.document.n_words <= MANY_WORDS
            if subject is None or not row.is_known or not short:
                nothing = np.full(row.document.n_words, np.nan)
                means.append(nothing)
                deviations.append(nothing)
                continue
            run = _run(subject, row.value, place, n_samples)
            means.append(run.coefficients[0])
            deviations.append(run.standard_deviations[0])
        return WordRuns(n_samples, tuple(means), tuple(deviations))

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

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file without pickles; the model stays behind.

        Raises
        ------
        InvalidInput
            If the folder is not there, or a name or text is none that can be written.
        """
        rows = self.rows
        header = {
            "labels": plain_labels(Labels(self.names)),
            "texts": [row.document.text for row in rows],
            "words": [list(row.words) for row in rows],
            "fillers": [row.document.filler for row in rows],
            "sources": [row.source for row in rows],
            "reasons": [row.reason for row in rows],
            "n_samples": self.n_samples,
            "evaluations": self.evaluations,
            "notes": list(self.notes),
        }
        arrays = {
            "bandwidth": np.array([self.law.bandwidth], np.float64),
            "n_occurrences": _whole(len(row.document.occurrences) for row in rows),
            "intercept": self.intercept,
            "value": self.values,
            "intercept_error": np.array([row.intercept_error for row in rows], float),
            "estimated": np.array(
                [row.standard_errors is not None for row in rows], float
            ),
            "coefficients": np.concatenate(self.coefficients),
            "errors": np.concatenate(self.standard_errors),
            "run_means": np.concatenate(self.runs.means),
            "run_deviations": np.concatenate(self.runs.deviations),
            "starts": _whole(result.start for row in rows for result in _found(row)),
            "ends": _whole(result.end for row in rows for result in _found(row)),
            "places": _whole(place for row in rows for place in row.document.places),
        }
        if json.loads(as_json(header["texts"])) != header["texts"]:
            # JSON makes one character of two halves
            halves = "texts: two halves of characters stand side by side"
            raise _FILE.form.unsavable(archive_path(path), halves)
        _FILE.write(path, header, arrays)

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
                run = expected_run(means, subject.law, row.value, n)
                result.append(run.coefficients)
        return result

    def required_n(self, se: float) -> list[Array]:
        """Samples of one run for standard errors of ``se``, (d,) for each document.

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
        n = self.n_samples
        return [required_samples(n, own, size) for own in self.runs.deviations]

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
    ) -> WordPath:
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
        own = self.law.bandwidth
        grid = read_widths(bandwidths, own if np.isfinite(own) else 1.0)
        if not isinstance(means, SampledWords):
            return word_path(means, grid)
        limits = means.at(grid)
        known, errors = MeansBySize(means), limits.standard_errors
        return WordPath(grid, limits.coefficients, limits.intercept, known, errors)

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
            quantity=None if self.subject is None else self.subject.function.quantity,
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
        n = self._samples(n_samples)
        evidence = self._evidence(n)
        if not evidence:
            raise Refused("diagnose: LIME says nothing of these documents")
        told = told_of_documents(evidence, self.vocabulary, progress)
        source = " and ".join(dict.fromkeys(self.sources))
        return LimeDiagnosis.of_told(told, self.shape, self.labels, n, source)

    def _evidence(self, n_samples: int) -> dict[int, TextEvidence]:
        """Of the documents that LIME says something of."""
        subject = self.asked("diagnose")
        vectorisers = subject.function.vectorisers
        results = {}
        for n, (row, means) in enumerate(zip(self.rows, subject.means, strict=True)):
            if means is not None:
                observed = (
                    ObservedWords.of(vectorisers, row.document) if vectorisers else None
                )
                if isinstance(means, SampledWords):
                    function, at = None, means.at
                else:
                    function, at = means, WordRegression(means).at
                results[n] = TextEvidence(
                    row, function, at, self.law, observed, n_samples
                )
        return results

    def _at(self, n: int) -> tuple[Sequence[str], Values]:
        return self.rows[n].words, self.rows[n].coefficients

    def __repr__(self) -> str:
        """One line."""
        facts = "; ".join(map(printable, words_claims(self)))
        return f"TextLimeExplanation({words_size(self)}; {facts})"

    def _repr_html_(self) -> str:
        """The first documents with highlighted words, and tables of the numbers."""
        N = len(self.rows)
        facts = [*words_claims(self), *self.notes]
        if N > ROWS_SHOWN:
            facts.append(f"{plural(N - ROWS_SHOWN, 'more document')} not shown")
        shown = range(min(N, ROWS_SHOWN))
        return highlighted_rows(self, shown, facts=facts).html
