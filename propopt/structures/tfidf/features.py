"""Which features of a vectoriser the words of a document feed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
import scipy.sparse as sp

from propopt._typing import Positions, Sparse, Truths, Values
from propopt.structures.subsets import NoSetFunction, all_sets
from propopt.structures.subsets.sets import random_sets
from propopt.structures.tfidf.vectorisers import Vectoriser
from propopt.tables.text import Document


N_CHECKS: Final = 6
"""So many random sets of words are deleted to see that counts add up."""

_MOST_CHECKS: Final = 256
"""So many where deleting a word may make tokens of what stands beside it."""

_CHARACTERS: Final = 2**21
"""Of the texts of these checks: 0.3 s."""

_RUNS: Final = (r"(?u)\b\w\w+\b", r"\b\w\w+\b", r"(?u)\b\w+\b", r"\b\w+\b", r"\w+")
"""Patterns whose tokens are all letters that stand together, or some of these."""

_LETTER: Final = re.compile(r"\w")


@final
@dataclass(frozen=True, eq=False)
class DocumentFeatures:
    """Counts of features as sums over the words that are kept: n_v = Σ_j M_vj z_j.

    Parameters
    ----------
    feature, word : array (E,)
        v and j where M is not 0, sorted by v, then by j.
    count : array (E,)
        M_vj: how often all occurrences of word j count for feature v together.
    n_features, n_words : int
        V and d.
    """

    feature: Positions
    word: Positions
    count: Values
    n_features: int
    n_words: int

    @cached_property
    def features(self) -> Positions:
        """The features that any word feeds, increasing, (F,)."""
        return np.unique(self.feature)

    @cached_property
    def unknown(self) -> Positions:
        """The words that feed no feature: the model does not see them."""
        return np.setdiff1d(np.arange(self.n_words), self.word)

    @cached_property
    def shared(self) -> Positions:
        """The features that several words feed, increasing."""
        return np.flatnonzero(np.bincount(self.feature, minlength=1) > 1)

    @property
    def one_to_one(self) -> bool:
        """Whether no two words feed one feature, and no word feeds two."""
        alone = len(np.unique(self.word)) == len(self.word)
        return alone and len(self.shared) == 0

    def words_of(self, feature: int) -> tuple[Positions, Values]:
        """The words that feed a feature, and how often each counts."""
        start, end = np.searchsorted(self.feature, [feature, feature + 1])
        return self.word[start:end], self.count[start:end]

    def counts(self, bits: Truths) -> Sparse:
        """The counts of features (n, V) where the words with these bits are kept."""
        kept = sp.csr_array(np.asarray(bits, np.float64))
        shape = (self.n_words, self.n_features)
        return sp.csr_array(
            kept @ sp.csr_array((self.count, (self.word, self.feature)), shape=shape)
        )


def document_features(
    vectoriser: Vectoriser, document: Document
) -> DocumentFeatures | NoSetFunction:
    """What each word of a document adds to which features, checked on the text.

    A word is given to the vectoriser as it stands, by itself. That counts add up is
    then seen on the whole text, on the text without words, and on random sets of words:
    on more, or all, where the tokens may be more than letters that stand together.

    Parameters
    ----------
    vectoriser : Vectoriser
        Fitted.
    document : Document
        By any rule of words.

    Returns
    -------
    DocumentFeatures or NoSetFunction
        The latter where features are made of several words, such as n-grams, and names
        some.
    """
    formed = _formed_ngrams(vectoriser, document)
    if formed:
        return NoSetFunction(
            f"words of the document form n-grams of the vocabulary ({_some(formed)}), "
            "which depend on what is deleted between them"
        )
    found = _of_words(vectoriser, document)
    bits = _some_bits(document, _n_checks(vectoriser, document))
    off = abs(vectoriser.counts(document.texts(bits)) - found.counts(bits))
    wrong = np.unique(off.tocoo().col[off.tocoo().data > 0.0])
    if len(wrong) > 0:
        names = [vectoriser.name_of(v) for v in wrong.tolist()]
        return NoSetFunction(
            f"the features {_some(names)} are not made of single words of the "
            "document; take the words of the vectoriser"
        )
    return found


def _of_words(vectoriser: Vectoriser, document: Document) -> DocumentFeatures:
    """The sum over the occurrences of each word, each by itself."""
    shape = (document.n_words, vectoriser.n_features)
    if not document.occurrences:
        table = sp.csr_array(shape, dtype=np.float64).tocoo()
    else:
        written = [document.text[o.start : o.end] for o in document.occurrences]
        place = {text: k for k, text in enumerate(dict.fromkeys(written))}
        which = np.array([place[text] for text in written], np.intp)
        often = sp.csr_array(
            (np.ones(len(which)), (document.places, which)),
            shape=(document.n_words, len(place)),
        )
        table = sp.csr_array(often @ vectoriser.counts(list(place))).tocoo()
    kept = table.data != 0.0
    word, feature = table.row[kept].astype(np.intp), table.col[kept].astype(np.intp)
    order = np.lexsort([word, feature])
    return DocumentFeatures(
        feature[order], word[order], table.data[kept][order], shape[1], shape[0]
    )


def _n_checks(vectoriser: Vectoriser, document: Document) -> int:
    if _has_runs(vectoriser) and not _touches(document):
        return N_CHECKS
    return max(N_CHECKS, min(_MOST_CHECKS, _CHARACTERS // max(len(document.text), 1)))


def _has_runs(vectoriser: Vectoriser) -> bool:
    """Whether its tokens are known to be runs of letters, as in the text."""
    own = vectoriser.counter
    plain = (
        own.analyzer == "word" and own.tokenizer is None and own.preprocessor is None
    )
    known = tuple(own.ngram_range) == (1, 1) or hasattr(own, "vocabulary_")
    return plain and known and own.strip_accents is None and own.token_pattern in _RUNS


def _touches(document: Document) -> bool:
    """Whether a letter stands beside a word, which may meet another one."""
    beside = (
        document.text[max(o.start - 1, 0) : o.start] + document.text[o.end : o.end + 1]
        for o in document.occurrences
    )
    return _LETTER.search("".join(beside)) is not None


def _some_bits(document: Document, n_checks: int) -> Truths:
    """All words, none, and random sets of any size that are the same in each run."""
    d = document.n_words
    if 2**d <= n_checks:
        return all_sets(d)
    rng = np.random.default_rng(0)
    drawn = random_sets(d, rng.integers(1, d, n_checks), rng)
    whole = np.ones((1, d), bool)
    return np.concatenate([whole, ~whole, drawn])


def _formed_ngrams(vectoriser: Vectoriser, document: Document) -> list[str]:
    """The n-grams of the vocabulary all of whose tokens the document has."""
    following = vectoriser.ngrams
    if not following:
        return []
    tokens = dict.fromkeys(vectoriser.tokens(document.text))
    return [
        " ".join(ngram)
        for token in tokens
        for ngram in following.get(token, ())
        if all(part in tokens for part in ngram)
    ]


def _some(names: list[str], most: int = 3) -> str:
    """Some of the names, quoted, and how many more there are."""
    shown = ", ".join(map(repr, names[:most]))
    more = len(names) - most
    return f"{shown} and {more} more" if more > 0 else shown
