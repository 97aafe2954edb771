"""Limits of LIME on texts as a file, and back: checked alike on both ways."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from propopt._typing import Array, Positions
from propopt.errors import InvalidInput
from propopt.lime.text.explanation.row import NOTHING, DocumentLimits
from propopt.lime.text.explanation.runs import WordRuns
from propopt.lime.text.law import TextLaw
from propopt.output.archives import Format, archive_path, as_json
from propopt.results.checked_file import Arrays, CheckedFile, Header
from propopt.results.header import (
    Kinds,
    are_labels,
    are_texts,
    is_count,
    is_positive,
)
from propopt.results.saving import labels_of, plain_labels
from propopt.tables.names import Labels
from propopt.tables.text import Document, Occurrence


if TYPE_CHECKING:
    from propopt.lime.text.explanation.result import TextLimeExplanation


_OF_DOCUMENTS: Final = ("intercept", "value", "intercept_error", "estimated")
_OF_WORDS: Final = ("coefficients", "errors", "run_means", "run_deviations")
_OF_PLACES: Final = ("starts", "ends", "places")
_ALONE: Final = ("bandwidth", "n_occurrences")


def write_saved_words(path: str | Path, explanation: TextLimeExplanation) -> None:
    """Write to an ``.npz`` file what tables and highlighted texts need.

    Raises
    ------
    InvalidInput
        If the folder is not there, or a field is not what can be loaded again. A text
        may hold half a character, which JSON escapes, but not two side by side.
    """
    rows = explanation.rows
    header = {
        "labels": plain_labels(Labels(explanation.names)),
        "texts": [row.document.text for row in rows],
        "words": [list(row.words) for row in rows],
        "fillers": [row.document.filler for row in rows],
        "sources": [row.source for row in rows],
        "reasons": [row.reason for row in rows],
        "n_samples": explanation.n_samples,
        "evaluations": explanation.evaluations,
        "notes": list(explanation.notes),
    }
    arrays = {
        "bandwidth": np.array([explanation.law.bandwidth], np.float64),
        "n_occurrences": _whole(len(row.document.occurrences) for row in rows),
        "intercept": explanation.intercept,
        "value": explanation.values,
        "intercept_error": np.array([row.intercept_error for row in rows], float),
        "estimated": np.array([row.standard_errors is not None for row in rows], float),
        "coefficients": np.concatenate(explanation.coefficients),
        "errors": np.concatenate(explanation.standard_errors),
        "run_means": np.concatenate(explanation.runs.means),
        "run_deviations": np.concatenate(explanation.runs.deviations),
        "starts": _whole(found.start for row in rows for found in _found(row)),
        "ends": _whole(found.end for row in rows for found in _found(row)),
        "places": _whole(place for row in rows for place in row.document.places),
    }
    if json.loads(as_json(header["texts"])) != header["texts"]:
        # JSON makes one character of two halves
        halves = "texts: two halves of characters stand side by side"
        raise _FILE.form.unsavable(archive_path(path), halves)
    _FILE.write(path, header, arrays)


def read_words(path: str | Path) -> dict[str, Any]:
    """The fields that :func:`write_saved_words` wrote.

    Raises
    ------
    InvalidInput
        If the file is another one, or holds what no such result has.
    FileNotFoundError
        If there is none.
    """
    return _FILE.read(path)


def _found(row: DocumentLimits) -> tuple[Occurrence, ...]:
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
) -> Iterator[DocumentLimits]:
    """The documents, each with its part of the arrays."""
    N, words = len(lengths), header["words"]
    sizes = [len(own) for own in words]
    of_documents = {name: _floats(arrays, name, N) for name in _OF_DOCUMENTS}
    beta, errors = (_of_words(arrays, k, sizes) for k in ("coefficients", "errors"))
    starts, ends, places = (
        np.split(_counted(arrays, name, sum(lengths)), np.cumsum(lengths)[:-1])
        for name in _OF_PLACES
    )
    for n in range(N):
        document = _document(
            header["texts"][n],
            tuple(words[n]),
            header["fillers"][n],
            (starts[n], ends[n], places[n]),
        )
        source, is_known = header["sources"][n], header["sources"][n] != NOTHING
        numbers = [beta[n], errors[n], *(of_documents[k][n] for k in _KNOWN)]
        if is_known and not all(np.isfinite(part).all() for part in numbers):
            raise InvalidInput(f"coefficients of document {n}: expected finite numbers")
        if (errors[n] < 0.0).any():
            raise InvalidInput("errors: expected numbers >= 0")
        yield DocumentLimits(
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
    found: tuple[Positions, Positions, Positions],
) -> Document:
    """The document, where its words stand one behind the other in the text."""
    starts, ends, places = found
    edges = np.stack([starts, ends], axis=1).ravel()
    ordered = (np.diff(edges) >= 0).all() and (starts < ends).all()
    inside = len(edges) == 0 or (edges[0] >= 0 and edges[-1] <= len(text))
    if not (ordered and inside):
        raise InvalidInput("starts, ends: expected words one behind the other")
    if len(set(words)) < len(words) or set(places.tolist()) != set(range(len(words))):
        raise InvalidInput("places: expected each word of a text somewhere in it")
    occurrences = tuple(
        Occurrence(start, end, words[place])
        for start, end, place in zip(
            starts.tolist(), ends.tolist(), places.tolist(), strict=True
        )
    )
    return Document(text, words, occurrences, places.astype(np.intp), filler)


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
