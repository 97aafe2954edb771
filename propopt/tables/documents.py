"""Documents as tables: words, texts, and the schema of a vocabulary.

Any string is a text, and is never changed but by deleting words from it:

=====================  =============================================================
repeated words         one column, which counts them; all occurrences are deleted
no word, empty         a row of zeros: there is nothing to delete, and no effect
one word               one column; the text without it is what stands around it
words that a model     columns with an effect of 0, unless the model sees more of a
does not know          text than its words
punctuation, emoji     no words: they stay in all texts, and models see them
HTML                   not parsed: ``b`` and ``amp`` are words as others are
right-to-left          as any other text, in the order in which it is stored
control characters,    no words: they stay, models see them, and messages and pages
NUL, half characters   show them as escapes
accents                one written as a character of its own is in no word, and ends
                       it, unless a vectoriser strips accents: then it goes with it
``İ``, final sigma     lower case as Python has it; places are those in the text
no blanks              one word, as of Chinese; a rule of one's own may know better
=====================  =============================================================
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress, repeat
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from propopt.base.arrays import Array, Indices, Mask, Points, Sparse
from propopt.base.declared import field
from propopt.base.errors import InvalidInput
from propopt.base.resources import require_memory
from propopt.base.suggestions import suggests_arguments
from propopt.tables.frames import Labels, as_frame, directions, listed


class Occurrence(NamedTuple):
    """A word where it stands: ``text[start:end]``."""

    start: int
    end: int
    word: str


class WordRule(Protocol):
    """How words are found in a text, and what is left where one is deleted."""

    @property
    def filler(self) -> str:
        """What stands where a word was deleted; mostly nothing."""

    def find(self, text: str, /) -> list[Occurrence]:
        """The words of a text where they stand, from the first; none overlap."""


@final
@dataclass(frozen=True)
class PatternWords:
    r"""Words that match a regular expression, as they are written.

    ``\w+`` gives the words of the package ``lime``, which parts texts by ``\W+``: upper
    and lower case are other words, one letter is a word, and so are digits. An accent
    that is a character of its own, and most emoji, part words and belong to none.
    """

    pattern: str = r"\w+"  # the expression
    filler: str = ""  # what stands where a word was deleted

    def __post_init__(self) -> None:
        compiled(self.pattern)

    def find(self, text: str, /) -> list[Occurrence]:
        """The words of a text where they stand, from the first."""
        matches = compiled(self.pattern).finditer(text)
        return [Occurrence(*m.span(), m.group()) for m in matches if m.group()]


def compiled(pattern: str) -> re.Pattern[str]:
    """An expression for words; refused where it is none. Python keeps the last ones."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidInput(
            f"words: {pattern!r} is no regular expression: {error}"
        ) from None


# ---- The words that a vectoriser of scikit-learn sees, where they stand in the text


Accents: TypeAlias = Literal["ascii", "unicode"] | None

_WORD = r"(?u)\b\w\w+\b"
"""What a word is to scikit-learn by default: two letters, digits or underscores."""


@final
@dataclass(frozen=True)
class VectoriserWords:
    """Words as ``CountVectorizer`` and its kind find them, stop words left out.

    A word is what the vectoriser sees of it: in lower case and without accents, if it
    makes them so. Its place is that in the text as it is written, which may have more
    or fewer characters: ``İ`` is two in lower case, and ``é`` can be written as two.
    Words that stand in one character, such as those of ``½``, are one.
    """

    lowercase: bool = True  # whether upper case does not matter
    strip_accents: Accents = None  # which accents do not matter
    # what a word is; of an expression with a group the group
    token_pattern: str = _WORD
    stop_words: frozenset[str] = frozenset()  # those that are none
    filler: str = ""  # what stands where a word was deleted

    def __post_init__(self) -> None:
        if compiled(self.token_pattern).groups > 1:
            raise InvalidInput(
                f"token_pattern: expected at most one group, got {self.token_pattern!r}"
            )

    def find(self, text: str, /) -> list[Occurrence]:
        """The words of a text where they stand, from the first."""
        seen, origins = self._seen(text)
        pattern = compiled(self.token_pattern)
        group = pattern.groups
        occurrences: list[Occurrence] = []
        for match in pattern.finditer(seen):
            word = match.group(group)
            if word and word not in self.stop_words:
                first, last = match.span(group)
                start, end = origins[first], origins[last - 1] + 1
                if self.strip_accents is not None:  # accents behind it are not seen
                    while end < len(text) and unicodedata.combining(text[end]):
                        end += 1
                if occurrences and start < occurrences[-1].end:
                    # both stand in one character
                    start, before, former = occurrences.pop()
                    end, word = max(before, end), f"{former} {word}"
                occurrences.append(Occurrence(start, end, word))
        return occurrences

    def _seen(self, text: str) -> tuple[str, Sequence[int]]:
        """What the vectoriser sees, and where each character of it comes from."""
        if not self.lowercase and self.strip_accents is None:
            return text, range(len(text))
        # each becomes what it becomes alone, or the final sigma, of one length too
        lengths = {character: len(self._sees(character)) for character in set(text)}
        indices = (repeat(n, lengths[c]) for n, c in enumerate(text))
        return self._sees(text), list(chain.from_iterable(indices))

    def _sees(self, text: str) -> str:
        lower = text.lower() if self.lowercase else text
        return _ACCENTS[self.strip_accents](lower)


def _without_marks(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text)
    return "".join(c for c in parts if not unicodedata.combining(c))


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")


_ACCENTS: Mapping[Accents, Callable[[str], str]] = {
    None: str,
    "ascii": _ascii,
    "unicode": _without_marks,
}


# ---- Texts as people have them: lists, arrays and Series; and what is none of these


def is_documents(X: object) -> bool:
    """Whether X is a sequence, a Series or an array with a string in it, or bytes."""
    if isinstance(X, pd.DataFrame):
        return False
    if isinstance(X, np.ndarray | pd.Series) and X.dtype.kind in "biufcmM":
        return False  # as the type says, before any value is looked at
    texts = _sequence(X)
    return texts is not None and any(isinstance(text, str | bytes) for text in texts)


def read_texts(X: object, label: str) -> tuple[list[str], tuple[Hashable, ...] | None]:
    """The texts, and their names where they are a Series."""
    texts = _sequence(X)
    if texts is None:
        raise InvalidInput(
            f"{label}: expected a list or Series of texts, got {_kind(X, label)}"
        )
    names = tuple(X.index) if isinstance(X, pd.Series) else None
    for n, text in enumerate(texts):
        if not isinstance(text, str):
            place = f"number {n}" if names is None else f"row {names[n]!r}"
            raise InvalidInput(
                f"{label}: expected texts, and {place} is {_other(text)}"
            )
    if not texts:
        raise InvalidInput(f"{label}: there is no document")
    return [str(text) for text in texts], names


def _sequence(X: Any) -> list[Any] | None:
    """What X holds, in order; None where it is no sequence."""
    if isinstance(X, str | bytes | memoryview | Mapping | pd.DataFrame):
        return None
    if isinstance(X, np.ndarray):
        return X.tolist() if X.ndim == 1 else None
    if isinstance(X, pd.Series | pd.Index | Sequence):
        return list(X)
    import narwhals.stable.v2 as nw

    if not nw.dependencies.is_into_series(X):
        return None
    column: list[Any] = nw.from_native(X, series_only=True).to_list()
    return column


def _kind(X: object, label: str) -> str:
    """What came, and what would do."""
    if isinstance(X, str):
        return "one str; for a single text give [text]"
    if isinstance(X, np.ndarray):
        shape = f"an array of shape {X.shape}"
        return f"{shape}; its ravel() would do" if 1 in X.shape else shape
    frame = None if X is None else as_frame(X, label)
    if frame is not None:
        names = frame.table.columns.tolist()
        if len(names) == 1:
            return f"a table; give its column, {label}[{names[0]!r}]"
        return f"a table of {len(names)} columns; give the one that holds texts"
    if isinstance(X, Sequence | Mapping | np.ndarray):
        return type(X).__name__
    return f"{type(X).__name__}; list(...) makes one of what can be iterated"


def _other(text: object) -> str:
    """What stands where a text should, and what would do."""
    if isinstance(text, bytes):
        return "bytes; decode them, text.decode('utf-8')"
    if text is None or text is pd.NA or (isinstance(text, float) and np.isnan(text)):
        return f"missing ({text!r}); leave it out, or give '' for an empty text"
    return f"{type(text).__name__} ({text!r:.40})"


# ---- A text, as the words in it that can be deleted


@final
@dataclass(frozen=True, eq=False)
class TextDocument:
    """A text and its d distinct words, in the order in which they first come.

    A text may have no words, d = 0: it is empty, or nothing in it is a word.
    """

    text: str = field(halves=True)
    words: tuple[str, ...] = field(halves=True)  # (d,): the distinct words
    starts: Indices = field("T", low=0)  # (T,): where they stand
    ends: Indices = field("T", low=0)
    word_indices: Indices = field("T", low=0)  # (T,): which of the words each is
    filler: str = field(default="")  # what stands where a word was deleted

    @classmethod
    def of(cls, text: str, rule: WordRule) -> TextDocument:
        """The words of a text by a rule."""
        result = rule.find(text)
        words = tuple(dict.fromkeys(o.word for o in result))
        order = {word: j for j, word in enumerate(words)}
        places = [(o.start, o.end, order[o.word]) for o in result]
        starts, ends, indices = np.array(places, dtype=np.intp).reshape(-1, 3).T
        return cls(text, words, starts, ends, indices, rule.filler)

    def validate(self) -> None:
        """Refuse words that overlap, come twice, stand beyond the text or nowhere."""
        if not len(self.starts) == len(self.ends) == len(self.word_indices):
            raise InvalidInput(
                "starts, ends, word_indices: expected one for each occurrence"
            )
        edges = np.stack([self.starts, self.ends], axis=1).ravel()
        ordered = (np.diff(edges) >= 0).all() and (self.starts < self.ends).all()
        if not ordered or edges.max(initial=0) > len(self.text):
            raise InvalidInput("starts, ends: expected words one behind the other")
        d = self.n_words
        if len(set(self.words)) < d or set(self.word_indices.tolist()) != set(range(d)):
            raise InvalidInput(
                "word_indices: expected each word of a text somewhere in it"
            )

    @cached_property
    def occurrences(self) -> tuple[Occurrence, ...]:
        """The words where they stand, (T,)."""
        spans = self.spans
        return tuple(Occurrence(start, end, self.words[j]) for start, end, j in spans)

    @property
    def n_words(self) -> int:
        """The number of distinct words, d."""
        return len(self.words)

    @property
    def spans(self) -> list[tuple[int, int, int]]:
        """Where words stand, and which of the words each is, (T,)."""
        ends = self.starts.tolist(), self.ends.tolist(), self.word_indices.tolist()
        return list(zip(*ends, strict=True))

    @cached_property
    def counts(self) -> Indices:
        """How often each word comes, (d,)."""
        return np.bincount(self.word_indices, minlength=self.n_words)

    def without(self, bits: Any) -> str:
        """The text without the words of bit 0 (d,); what stands between words stays."""
        kept = np.asarray(bits, bool)
        if kept.shape != (self.n_words,):
            raise InvalidInput(
                f"bits: expected one for each of {self.n_words} words, got an array "
                f"of shape {kept.shape}"
            )
        chosen = np.ones(len(self._parts), bool)
        chosen[1::3] = kept[self.word_indices]
        chosen[2::3] = ~chosen[1::3]
        return "".join(compress(self._parts, chosen.tobytes()))

    def texts(self, bits: Mask) -> list[str]:
        """The texts of many bits (n, d)."""
        return list(self.each(bits))

    def each(self, bits: Mask) -> Iterator[str]:
        """The same, one after the other: many texts need not be held at once."""
        return map(self.without, np.asarray(bits, bool))

    @cached_property
    def _parts(self) -> list[str]:
        """Between words, a word, its filler, between words, ...: 3 T + 1 parts."""
        parts, end = [], 0
        for start, stop, _ in self.occurrences:
            parts += [self.text[end:start], self.text[start:stop], self.filler]
            end = stop
        return [*parts, self.text[end:]]


# ---- Documents as rows of a table: how often each word of a vocabulary comes


@final
@suggests_arguments
@dataclass(frozen=True, eq=False, repr=False)
class TextSchema:
    """The words of documents as D columns: what :class:`TableSchema` is of tables.

    A row of the encoded table says how often each word comes. The documents that the
    schema was made of are known by their counts, so that ``decode`` gives them back as
    they were written.

    Parameters
    ----------
    rule : WordRule
        What a word is.
    vocabulary : tuple of str (D,)
        All words, in the order in which they first come.
    documents : tuple of TextDocument
        Those that the schema was made of.

    Examples
    --------
    >>> import propopt as po
    >>> schema = po.functions.TextSchema.of(["Good food!", "no good"])
    >>> schema
    TextSchema(2 documents, 4 words)
    >>> points, labels = schema.encode(["Good food!"])
    >>> points, labels.features
    (array([[1., 1., 0., 0.]]), ('Good', 'food', 'no', 'good'))
    >>> schema.decode(points), schema.decode(2 * points)
    (['Good food!'], ['Good Good food food'])
    """

    rule: WordRule
    vocabulary: tuple[str, ...]
    documents: tuple[TextDocument, ...]

    @classmethod
    def of(
        cls, documents: Any, rule: WordRule | None = None, what: str = "documents"
    ) -> TextSchema:
        """The schema of documents.

        Parameters
        ----------
        documents : sequence of str, Series or array (N,)
            The texts; they may be alike, and have no word at all.
        rule : WordRule, optional
            What a word is; by default that of the package ``lime``.
        what : str
            What errors call them.

        Raises
        ------
        InvalidInput
            If they are no texts; the first that is none is named.
        """
        own = PatternWords() if rule is None else rule
        texts, _ = read_texts(documents, what)
        result = tuple(TextDocument.of(text, own) for text in texts)
        words = dict.fromkeys(word for document in result for word in document.words)
        return cls(own, tuple(words), result)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.documents)} documents, "
            f"{len(self.vocabulary)} words)"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The labels of the D columns: the words."""
        return self.vocabulary

    def difference(self, other: TextSchema) -> str | None:
        """What encodes a text otherwise in another schema; None where nothing does."""
        if self.rule != other.rule:
            return "rules of words"
        own, its = ([d.text for d in x.documents] for x in (self, other))
        return None if own == its else "documents"

    @cached_property
    def column_index(self) -> dict[str, int]:
        """Where each word stands in the vocabulary."""
        return {word: j for j, word in enumerate(self.vocabulary)}

    def encode(self, X: object, what: str = "X") -> tuple[Points, Labels]:
        """Counts of the words (N, D), with the names of rows and words.

        Parameters
        ----------
        X : sequence of str, Series or array (N,)
            The texts.
        what : str
            What errors call them.

        Returns
        -------
        array (N, D), Labels

        Raises
        ------
        InvalidInput
            If X are no texts, or one has a word that is not in the vocabulary.
        Refused
            If so large a table does not fit into memory.
        """
        texts, names = read_texts(X, what)
        result = [self.document_of(text) for text in texts]
        self.check_words(result, what)
        points = self.counts(result)
        points.setflags(write=False)
        return points, Labels(
            names, self.vocabulary, self.vocabulary, texts=tuple(texts)
        )

    def document_of(self, text: str) -> TextDocument:
        """The words of a text, by the rule of the schema."""
        return TextDocument.of(text, self.rule)

    def columns_of(self, document: TextDocument) -> Any:
        """Which column each word of a document is, (d,)."""
        return np.array([self.column_index[word] for word in document.words], np.intp)

    def counts(self, documents: Sequence[TextDocument]) -> Points:
        """How often each word comes in documents, (n, D)."""
        n, d = len(documents), len(self.vocabulary)
        require_memory(
            8.0 * n * d,
            f"a table of {n:,} documents and {d:,} words",
            "give fewer documents at once, or a rule that finds fewer words",
        )
        return self.in_columns(documents, [document.counts for document in documents])

    def in_columns(
        self, documents: Sequence[TextDocument], of_words: Sequence[Array | Indices]
    ) -> Array:
        """Numbers (d,) of the words of each document, among those of all (n, D)."""
        table = np.zeros((len(documents), len(self.vocabulary)))
        for row, document, values in zip(table, documents, of_words, strict=True):
            row[self.columns_of(document)] = values
        return table

    def check_words(self, documents: Sequence[TextDocument], what: str) -> None:
        """Refuse documents with words that are not in the vocabulary."""
        for n, document in enumerate(documents):
            unknown = [word for word in document.words if word not in self.column_index]
            if unknown:
                raise InvalidInput(
                    f"{what}: document {n} has words that are not in `data`: "
                    f"{listed(unknown)}; give wrap all documents that are to be "
                    "explained, as data"
                )

    def decode(self, points: Points, labels: Labels | None = None) -> list[str]:
        """Texts with such counts of words: a known document as it was written.

        Other rows become a bag of words: each as often as it counts, in the order of
        the vocabulary, as it is first written in the documents, with blanks between.

        Parameters
        ----------
        points : array (n, D)
            Counts.
        labels : Labels, optional
            Those that came with the rows: they tell documents apart that have the same
            counts, of which the first is given else.

        Raises
        ------
        InvalidInput
            If a row holds anything but counts.
        """
        return [
            result[0].text if result else self.bag(point)
            for result, point in zip(
                self.matching_documents(points, labels), points, strict=True
            )
        ]

    def matching_documents(
        self, points: Points, labels: Labels | None = None
    ) -> Iterator[list[TextDocument]]:
        """The documents that each row of counts may be; labels tell those read last."""
        texts = None if labels is None else labels.texts
        told = texts if texts is not None and len(texts) == len(points) else None
        for n, point in enumerate(points):
            own = None if told is None else self.document_of(told[n])
            if own is not None and self._key_of(own) == _key_of_row(point):
                yield [own]
            else:
                yield [self.documents[m] for m in self.documents_with_counts(point)]

    def documents_with_counts(self, point: Points) -> list[int]:
        """The positions of the documents that have such counts (D,)."""
        return self._positions.get(_key_of_row(point), [])

    @cached_property
    def _positions(self) -> dict[bytes | None, list[int]]:
        results: dict[bytes | None, list[int]] = {}
        for n, document in enumerate(self.documents):
            results.setdefault(self._key_of(document), []).append(n)
        return results

    def _key_of(self, document: TextDocument) -> bytes | None:
        """None if it has words that are not known."""
        if any(word not in self.column_index for word in document.words):
            return None
        columns = self.columns_of(document)
        order = np.argsort(columns)
        return _key(columns[order], document.counts[order])

    def bag(self, point: Points) -> str:
        """Words as often as they count, with blanks between."""
        values = np.asarray(point, float)
        bad = ~((values >= 0.0) & (values == np.floor(values)) & np.isfinite(values))
        if bad.any():
            j = int(bad.argmax())
            raise InvalidInput(
                f"points: expected counts of words, 0, 1, 2, ..., got {values[j]} of "
                f"{self.vocabulary[j]!r}"
            )
        repeated = np.repeat(np.arange(len(values)), values.astype(np.intp))
        return " ".join(self._forms[j] for j in repeated)

    def frame(self, values: Array, index: pd.Index) -> pd.DataFrame:
        """``values`` (n, D), such as gradients, under the words."""
        columns = pd.Index(self.vocabulary, dtype=object)
        return pd.DataFrame(values, index=index, columns=columns)

    @cached_property
    def _forms(self) -> tuple[str, ...]:
        """Each word as it is first written."""
        forms: dict[str, str] = {}
        for document in self.documents:
            for start, end, word in document.occurrences:
                forms.setdefault(word, document.text[start:end])
        return tuple(forms.get(word, word) for word in self.vocabulary)


def _key_of_row(point: Points) -> bytes:
    """The columns of the words that come, and how often."""
    columns = np.flatnonzero(point)
    return _key(columns, point[columns])


def _key(columns: Indices, counts: Points | Indices) -> bytes:
    return columns.astype(np.int64).tobytes() + counts.astype(np.float64).tobytes()


# ---- Where documents lie, for distances and angles between them


def word_counts(texts: Any) -> Points:
    """How often each word comes in each text, (N, V), words as the package has them."""
    return TextSchema.of(texts).encode(texts)[0]


def document_directions(counts: Sparse) -> Sparse:
    """Counts (N, V), each times its :func:`rarity`, at length one, or 0 without words.

    Near are documents that share their rarer words.
    """
    n_documents, n_words = counts.shape
    with_word = np.bincount(counts.indices, minlength=n_words)
    return directions(counts * rarity(n_documents, with_word))


def rarity(n_documents: int, with_word: Indices) -> Array:
    """log((1 + N) / (1 + N_v)) + 1 of words that N_v of N documents have, (V,)."""
    return np.asarray(1.0 + np.log((1.0 + n_documents) / (1.0 + with_word)))


def document_coordinates(counts: Array) -> Points:
    """:func:`document_directions` as a table: squared distances are 2 − 2 cos."""
    result = document_directions(sp.csr_array(np.asarray(counts, float)))
    return np.asarray(result.toarray())
