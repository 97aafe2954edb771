"""Documents as tables of word counts: words, texts, and the schema of a vocabulary.

Any string is a text. The only change to it is the deletion of words:

=====================  =============================================================
repeated words         one column, which counts them; all occurrences are deleted
no word, empty         a row of zeros: nothing can be deleted, and there is no effect
one word               one column; the text without it is the text around it
words outside of the   columns with an effect of 0, unless the model uses more of a
model's vocabulary     text than its words
punctuation, emoji     no words: they stay in all texts as input of the model
HTML                   not parsed: ``b`` and ``amp`` are words like others
right-to-left          like any other text, in the order in which it is stored
control characters,    no words: they stay as input of the model; messages and pages
NUL, half characters   show them as escapes
marks                  accents, vowel signs and joiners that are separate characters
                       belong to the word before them; by the rules of ``lime`` and
                       of patterns of vectorisers they end it, unless a vectoriser
                       strips accents: then they are deleted with the word
``İ``, final sigma     lower case as in Python; positions are those in the text
no blanks              one word, such as in Chinese; a custom rule may do better
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
from propopt.base.checks import read_only
from propopt.base.declared import field
from propopt.base.errors import InvalidInput
from propopt.base.resources import require_memory
from propopt.base.suggestions import suggests_arguments
from propopt.tables.frames import Labels, as_frame, directions, items_of, listed


class Occurrence(NamedTuple):
    """A word and its position, ``text[start:end]``."""

    start: int
    end: int
    word: str


class WordRule(Protocol):
    """How a text is split into words, and what replaces a deleted word."""

    @property
    def filler(self) -> str:
        """The text that replaces a deleted word; usually empty."""

    def find(self, text: str, /) -> list[Occurrence]:
        """The words of a text in order, with their positions; they do not overlap."""


@final
@dataclass(frozen=True)
class PatternWords:
    r"""Words that match a regular expression, in the spelling of the text.

    ``\w+`` gives the words of the package ``lime``, which splits texts by ``\W+``:
    upper and lower case are different words, and single letters and digits are words.
    Accents that are separate characters, and most emoji, separate words.
    """

    pattern: str = r"\w+"  # the expression
    filler: str = ""  # replaces a deleted word

    def __post_init__(self) -> None:
        compiled(self.pattern)

    def find(self, text: str, /) -> list[Occurrence]:
        """The words of a text in order, with their positions."""
        matches = compiled(self.pattern).finditer(text)
        return [Occurrence(*m.span(), m.group()) for m in matches if m.group()]


@final
@dataclass(frozen=True)
class MarkedWords:
    """Words of letters, digits and underscores, with the marks that belong to them.

    Marks are separate characters in decomposed accents, in Arabic with vowel signs and
    in the scripts of India. Texts without them have the words of ``PatternWords()``.

    Examples
    --------
    >>> from propopt.tables.documents import PatternWords
    >>> text = "cafe\u0301 nul"
    >>> [len(occurrence.word) for occurrence in MarkedWords().find(text)]
    [5, 3]
    >>> [len(occurrence.word) for occurrence in PatternWords().find(text)]
    [4, 3]
    """

    filler: str = ""  # replaces a deleted word

    def find(self, text: str, /) -> list[Occurrence]:
        """The words of a text in order, with their positions."""
        plain = text
        if not text.isascii():
            plain = "".join(
                _MARK if unicodedata.category(c)[0] == "M" or c in _JOINERS else c
                for c in text
            )
        spans = (match.span() for match in _MARKED.finditer(plain))
        return [Occurrence(start, end, text[start:end]) for start, end in spans]


_MARK = "\N{COMBINING ACUTE ACCENT}"

_MARKED = re.compile(rf"\w[\w{_MARK}]*")

_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"


def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a regular expression for words; refused if it is not valid."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidInput(
            f"words: {pattern!r} is no valid regular expression: {error}"
        ) from None


# ---- The words of vectorisers of scikit-learn, and their positions in the text


Accents: TypeAlias = Literal["ascii", "unicode"] | None

_WORD = r"(?u)\b\w\w+\b"
"""The default of scikit-learn for a word: two letters, digits or underscores."""


@final
@dataclass(frozen=True)
class VectoriserWords:
    """Words as ``CountVectorizer`` and similar classes find them, without stop words.

    A word is in the form that the vectoriser counts, such as lower case or without
    accents. Its position is that in the original text, which may have more or fewer
    characters: ``İ`` has two in lower case, and ``é`` can be written as two. Words
    within one character, such as those of ``½``, are one.
    """

    lowercase: bool = True  # whether words are in lower case
    strip_accents: Accents = None  # how accents are removed
    # the expression of a word, or of its only group
    token_pattern: str = _WORD
    stop_words: frozenset[str] = frozenset()  # words that do not count
    filler: str = ""  # replaces a deleted word

    def __post_init__(self) -> None:
        if compiled(self.token_pattern).groups > 1:
            raise InvalidInput(
                f"token_pattern: expected at most one group, got {self.token_pattern!r}"
            )

    def find(self, text: str, /) -> list[Occurrence]:
        """The words of a text in order, with their positions."""
        normal, origins = self.normalized(text)
        pattern = compiled(self.token_pattern)
        group = pattern.groups
        occurrences: list[Occurrence] = []
        for match in pattern.finditer(normal):
            word = match.group(group)
            if word and word not in self.stop_words:
                first, last = match.span(group)
                start = origins[first]
                end = origins[last - 1] + 1
                if self.strip_accents is not None:  # accents after it are removed
                    while end < len(text) and unicodedata.combining(text[end]):
                        end += 1
                if occurrences and start < occurrences[-1].end:
                    # both are within one character
                    start, last_end, former = occurrences.pop()
                    end = max(last_end, end)
                    word = f"{former} {word}"
                occurrences.append(Occurrence(start, end, word))
        return occurrences

    def normalized(self, text: str) -> tuple[str, Sequence[int]]:
        """The text that the vectoriser splits, and the origin of each character."""
        if not self.lowercase and self.strip_accents is None:
            return text, range(len(text))
        # characters are normalized one by one, except the final sigma of equal length
        lengths = {character: len(self._normal(character)) for character in set(text)}
        indices = (repeat(n, lengths[c]) for n, c in enumerate(text))
        return self._normal(text), list(chain.from_iterable(indices))

    def _normal(self, text: str) -> str:
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


# ---- The words of other vectorisers, as their own analyzers find them


@final
@dataclass(frozen=True)
class AnalyzerWords:
    """Words as a vectoriser with a custom tokenizer or analyzer finds them.

    Its tokens are searched for in the text one after the other, in the spelling of the
    text, in lower case, and without accents. A text is refused if one of them is not
    there, or if the text without these words has further tokens.
    """

    kind: type[Any]  # the class of the vectoriser
    settings: Mapping[str, Any]  # those that determine its words
    filler: str = ""  # replaces a deleted word

    @classmethod
    def of(cls, vectoriser: Any) -> AnalyzerWords:
        """The rule of a vectoriser, whatever its vocabulary and its weights are."""
        settings = vectoriser.get_params(deep=False).items()
        return cls(type(vectoriser), {k: v for k, v in settings if k not in _OF_COUNTS})

    def find(self, text: str, /) -> list[Occurrence]:
        """The words of a text in order, with their positions."""
        occurrences = self.match(text)
        if occurrences is None:
            raise InvalidInput(
                f"words: the tokens that {self.kind.__name__} of the model finds in "
                f"{text!r:.40} do not stand there in order; for other words give "
                "words='lime', or po.wrap(model, data=texts) for the model"
            )
        return occurrences

    def match(self, text: str) -> list[Occurrence] | None:
        """As :meth:`find`; None if the tokens are not in the text."""
        tokens = self._tokens(text)
        for lowercase, accents in _SPELLINGS:
            spelling = VectoriserWords(lowercase, accents).normalized(text)
            occurrences = _in_order(tokens, *spelling)
            if len(occurrences) == len(tokens):
                ends = [0, *(o.end for o in occurrences)]
                starts = [*(o.start for o in occurrences), len(text)]
                between = zip(ends, starts, strict=True)
                if not self._tokens("".join(text[a:b] for a, b in between)):
                    return [o for o in occurrences if o.word not in self._stop_words]
        return None

    def _tokens(self, text: str) -> list[str]:
        """The tokens of a text, among them stop words; empty ones do not count."""
        return [str(token) for token in self._analyze(text) if token]

    @cached_property
    def _analyze(self) -> Callable[[str], list[str]]:
        plain = {"ngram_range": (1, 1), "stop_words": None}
        return self.kind(**{**self.settings, **plain}).build_analyzer()

    @cached_property
    def _stop_words(self) -> frozenset[str]:
        words = self.kind(**self.settings).get_stop_words()
        return frozenset(() if callable(self.settings["analyzer"]) else words or ())


_OF_COUNTS = frozenset(
    {
        "alternate_sign",
        "binary",
        "dtype",
        "max_df",
        "max_features",
        "min_df",
        "n_features",
        "ngram_range",
        "norm",
        "smooth_idf",
        "sublinear_tf",
        "use_idf",
        "vocabulary",
    }
)
"""Settings of vectorisers that do not change which words a text has."""

_SPELLINGS: tuple[tuple[bool, Accents], ...] = (
    (False, None),
    (True, None),
    (True, "unicode"),
    (True, "ascii"),
)
"""Whether tokens are searched for in lower case, and without accents."""


def _in_order(
    tokens: Sequence[str], normal: str, origins: Sequence[int]
) -> list[Occurrence]:
    """The first tokens that a text has in order, with their positions."""
    occurrences = list[Occurrence]()
    position = 0
    for token in tokens:
        start = normal.find(token, position)
        # several tokens may stand in one character
        if start < 0 or (occurrences and origins[start] < occurrences[-1].end):
            break
        position = start + len(token)
        end = origins[position - 1] + 1
        occurrences.append(Occurrence(origins[start], end, token))
    return occurrences


# ---- Texts as arguments: lists, arrays and Series


def read_texts(X: object, label: str) -> tuple[list[str], tuple[Hashable, ...] | None]:
    """Read texts, and their names if they are a Series."""
    texts = items_of(X)
    if texts is None:
        raise InvalidInput(
            f"{label}: expected a list or Series of texts, got {_kind(X, label)}"
        )
    names = tuple(X.index) if isinstance(X, pd.Series) else None
    for n, text in enumerate(texts):
        if not isinstance(text, str):
            item = f"number {n}" if names is None else f"row {names[n]!r}"
            raise InvalidInput(f"{label}: expected texts, and {item} is {_other(text)}")
    if not texts:
        raise InvalidInput(f"{label}: there is no document")
    return [str(text) for text in texts], names


def _kind(X: object, label: str) -> str:
    """A value that is no sequence of texts in words, and a remedy."""
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
    """An item that is no text in words, and a remedy."""
    if isinstance(text, bytes):
        return "bytes; decode them, text.decode('utf-8')"
    if text is None or text is pd.NA or (isinstance(text, float) and np.isnan(text)):
        return f"missing ({text!r}); leave it out, or give '' for an empty text"
    return f"{type(text).__name__} ({text!r:.40})"


# ---- A text as a list of words that can be deleted


@final
@dataclass(frozen=True, eq=False)
class TextDocument:
    """A text and its d distinct words, in the order of their first occurrence.

    A text may have no words, d = 0, such as an empty one.
    """

    text: str = field(halves=True)
    words: tuple[str, ...] = field(halves=True)  # (d,): the distinct words
    starts: Indices = field("T", low=0)  # (T,): of occurrences
    ends: Indices = field("T", low=0)
    word_indices: Indices = field("T", low=0)  # (T,): the word of each
    filler: str = field(default="")  # replaces a deleted word

    @classmethod
    def of(cls, text: str, rule: WordRule) -> TextDocument:
        """Split a text into words by a rule."""
        index: dict[str, int] = {}
        spans = [
            (o.start, o.end, index.setdefault(o.word, len(index)))
            for o in rule.find(text)
        ]
        starts, ends, indices = np.array(spans, dtype=np.intp).reshape(-1, 3).T
        return cls(text, tuple(index), starts, ends, indices, rule.filler)

    def validate(self) -> None:
        """Refuse words that overlap, are repeated, or are outside of the text."""
        if not len(self.starts) == len(self.ends) == len(self.word_indices):
            raise InvalidInput(
                "starts, ends, word_indices: expected one for each occurrence"
            )
        edges = np.stack([self.starts, self.ends], axis=1).ravel()
        ordered = (np.diff(edges) >= 0).all() and (self.starts < self.ends).all()
        if not ordered or edges.max(initial=0) > len(self.text):
            raise InvalidInput("starts, ends: expected words one after the other")
        d = self.n_words
        if len(set(self.words)) < d or set(self.word_indices.tolist()) != set(range(d)):
            raise InvalidInput("word_indices: expected an occurrence of each word")

    @cached_property
    def n_words(self) -> int:
        """The number of distinct words, d."""
        return len(self.words)

    @property
    def spans(self) -> list[tuple[int, int, int]]:
        """The start, end and index of the word of each occurrence, (T,)."""
        return list(
            zip(
                self.starts.tolist(),
                self.ends.tolist(),
                self.word_indices.tolist(),
                strict=True,
            )
        )

    @cached_property
    def counts(self) -> Indices:
        """The number of occurrences of each word, (d,)."""
        return np.bincount(self.word_indices, minlength=self.n_words)

    def without(self, bits: Any) -> str:
        """The text without the words of bit 0 (d,); the text between words stays."""
        present = np.asarray(bits, bool)
        if present.shape != (len(self.words),):
            raise InvalidInput(
                f"bits: expected 0 or 1 for each of {len(self.words)} words, got an "
                f"array of shape {present.shape}"
            )
        chosen = np.ones(len(self._parts), bool)
        chosen[1::3] = present[self.word_indices]
        chosen[2::3] = ~chosen[1::3]
        return "".join(compress(self._parts, chosen.tobytes()))

    def texts(self, bits: Mask) -> list[str]:
        """The texts without the words of bit 0, for many bits (n, d)."""
        return list(self.each(bits))

    def each(self, bits: Mask) -> Iterator[str]:
        """As :meth:`texts`, one after the other, which saves memory."""
        return map(self.without, np.asarray(bits, bool))

    @cached_property
    def _parts(self) -> list[str]:
        """Text between words, a word, its filler, text between words, ...: 3 T + 1."""
        parts = []
        end = 0
        for start, stop, _ in self.spans:
            parts += [self.text[end:start], self.text[start:stop], self.filler]
            end = stop
        return [*parts, self.text[end:]]


def vocabulary_of(documents: Sequence[TextDocument]) -> tuple[str, ...]:
    """The distinct words of all documents, in order of first occurrence."""
    words = chain.from_iterable([document.words for document in documents])
    return tuple(dict.fromkeys(words))


# ---- Documents as rows of a table with the counts of each word


@final
@suggests_arguments
@dataclass(frozen=True, eq=False, repr=False)
class TextSchema:
    """The vocabulary of documents, and their encoding as D columns of word counts.

    It is to documents what :class:`TableSchema` is to tables.

    Parameters
    ----------
    rule : WordRule
        The definition of a word.
    vocabulary : tuple of str (D,)
        All words, in the order of their first occurrence.
    documents : tuple of TextDocument
        The documents of the schema.

    Examples
    --------
    >>> import propopt as po
    >>> schema = po.functions.TextSchema.of(["Good food!", "no good"])
    >>> schema
    TextSchema(2 documents, 4 words)
    >>> points, labels = schema.encode(["Good food!"])
    >>> points, labels.features
    (array([[1., 1., 0., 0.]]), ('Good', 'food', 'no', 'good'))
    """

    rule: WordRule
    vocabulary: tuple[str, ...]
    documents: tuple[TextDocument, ...]

    @classmethod
    def of(
        cls, documents: Any, rule: WordRule | None = None, what: str = "documents"
    ) -> TextSchema:
        """Make the schema of documents.

        Parameters
        ----------
        documents : sequence of str, Series or array (N,)
            The texts; they may be equal, and may have no words.
        rule : WordRule, optional
            The definition of a word; by default letters, digits and underscores with
            their marks, such as vowel signs.
        what : str
            Their name in errors.

        Returns
        -------
        TextSchema
            Its vocabulary has the D words, in the order of their first occurrence.

        Raises
        ------
        InvalidInput
            If an item is no text; the first one is named.
        """
        rule = MarkedWords() if rule is None else rule
        texts, _ = read_texts(documents, what)
        result = tuple([TextDocument.of(text, rule) for text in texts])
        return cls(rule, vocabulary_of(result), result)

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
        """How another schema encodes texts differently, in words; else None."""
        if self.rule != other.rule:
            return "rules of words"
        texts, others = ([d.text for d in x.documents] for x in (self, other))
        return None if texts == others else "documents"

    @cached_property
    def column_index(self) -> dict[str, int]:
        """The column of each word of the vocabulary."""
        return {word: j for j, word in enumerate(self.vocabulary)}

    def encode(self, X: object, what: str = "X") -> tuple[Points, Labels]:
        """Encode texts as word counts (N, D), with the names of rows and words.

        Parameters
        ----------
        X : sequence of str, Series or array (N,)
            The texts.
        what : str
            Their name in errors.

        Returns
        -------
        array (N, D), Labels

        Raises
        ------
        InvalidInput
            If an item is no text, or has a word that is not in the vocabulary.
        Refused
            If the table does not fit into memory.
        """
        documents, names = self.read(X, what)
        texts = tuple(document.text for document in documents)
        labels = Labels(names, self.vocabulary, self.vocabulary, texts=texts)
        return read_only(self.counts(documents)), labels

    def read(
        self, X: object, what: str = "X"
    ) -> tuple[list[TextDocument], tuple[Hashable, ...] | None]:
        """Split texts into documents; their names if they are a Series.

        Parameters
        ----------
        X : sequence of str, Series or array (N,)
            The texts.
        what : str
            Their name in errors.

        Returns
        -------
        list of TextDocument, tuple or None
            The N documents, and the names of the rows.

        Raises
        ------
        InvalidInput
            If an item is no text, or has a word that is not in the vocabulary; the
            first such document is named.
        """
        texts, names = read_texts(X, what)
        documents = [self.document_of(text) for text in texts]
        for n, document in enumerate(documents):
            unknown = [word for word in document.words if word not in self.column_index]
            if unknown:
                raise InvalidInput(
                    f"{what}: document {n} has words that are not in `data`: "
                    f"{listed(unknown)}; call wrap with data=documents, all that are "
                    "to be explained"
                )
        return documents, names

    def document_of(self, text: str) -> TextDocument:
        """Split a text into words by the rule of the schema."""
        return TextDocument.of(text, self.rule)

    def columns_of(self, document: TextDocument) -> Any:
        """The column of each word of a document, (d,)."""
        return np.array([self.column_index[word] for word in document.words], np.intp)

    def counts(self, documents: Sequence[TextDocument]) -> Points:
        """The word counts of documents, (n, D)."""
        n = len(documents)
        d = len(self.vocabulary)
        require_memory(
            8.0 * n * d,
            f"a table of {n:,} documents and {d:,} words",
            "give fewer documents in a call, or a rule with fewer words",
        )
        return self.in_columns(documents, [document.counts for document in documents])

    def in_columns(
        self, documents: Sequence[TextDocument], of_words: Sequence[Array | Indices]
    ) -> Array:
        """Put the numbers (d,) for the words of each document into a table (n, D).

        Parameters
        ----------
        documents : sequence of n TextDocument
            Documents with words of the vocabulary only.
        of_words : sequence of n arrays (d,)
            A number for each of the d words of each document, in any unit.

        Returns
        -------
        array (n, D)
            The numbers in the columns of the words; 0 for words that a document lacks.

        Raises
        ------
        ValueError
            If there are not as many arrays as documents.
        KeyError
            If a word is not in the vocabulary.
        """
        table = np.zeros((len(documents), len(self.vocabulary)))
        for row, document, values in zip(table, documents, of_words, strict=True):
            row[self.columns_of(document)] = values
        return table

    def has_counts(self, document: TextDocument, point: Points) -> bool:
        """Whether a row (D,) has the word counts of a document, and no other words."""
        if any(word not in self.column_index for word in document.words):
            return False
        counts = np.asarray(point)[self.columns_of(document)]
        is_complete = np.count_nonzero(point) == document.n_words
        return is_complete and np.array_equal(counts, document.counts)

    @property
    def encoded_header(self) -> pd.Index:
        """The labels of tables of encoded columns: the words, (D,)."""
        return pd.Index(self.vocabulary, dtype=object)


# ---- Coordinates of documents, for distances and angles


def word_counts(texts: Any) -> Points:
    """The word counts of texts, (N, V)."""
    return TextSchema.of(texts).encode(texts)[0]


def document_directions(counts: Sparse) -> Sparse:
    """Counts (N, V) times the :func:`rarity` of words, scaled to length one.

    Documents that share rare words are close. A document without words is 0.
    """
    n_documents, n_words = counts.shape
    with_word = np.bincount(counts.indices, minlength=n_words)
    return directions(counts * rarity(n_documents, with_word))


def rarity(n_documents: int, with_word: Indices) -> Array:
    """The rarity log((1 + N) / (1 + N_v)) + 1 of words in N_v of N documents, (V,)."""
    return 1.0 + np.log((1.0 + n_documents) / (1.0 + with_word))


def document_coordinates(counts: Array) -> Points:
    """:func:`document_directions` as a table: squared distances are 2 − 2 cos."""
    result = document_directions(sp.csr_array(np.asarray(counts, float)))
    return result.toarray()
