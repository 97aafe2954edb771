"""Fitted vectorisers, and the features that the words of a document contribute to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, final

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Binarizer, Normalizer

from propopt.base.arrays import Array, Indices, Mask, Sparse, Values
from propopt.base.text import Reason
from propopt.structures.kinds import fitted_value, has_fitted, working_steps
from propopt.structures.subsets.sets import all_sets, random_sets
from propopt.tables.documents import TextDocument
from propopt.tables.frames import listed


VECTORISERS: Final[tuple[type[Any], ...]] = (
    CountVectorizer,
    TfidfVectorizer,
    HashingVectorizer,
)
"""Supported classes; subclasses are excluded, since they may count by another rule."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Vectoriser:
    """A fitted vectoriser: from a text to V features, by counts, weights and a norm.

    g_v(n) is n, or 1 if ``binary``; its logarithm plus 1 if ``sublinear``; times idf_v,
    and 0 for n = 0.
    """

    counter: Any  # a fitted CountVectorizer, TfidfVectorizer or HashingVectorizer
    binary: bool  # as in scikit-learn
    sublinear: bool
    # (V,): the inverse document frequencies; None if unused
    idf: Array | None
    norm: str | None  # the norm by which features are divided
    rest: Any = None  # the model after it; None for a vectoriser alone

    @classmethod
    def of(cls, model: Any) -> Vectoriser | Reason:
        """The vectoriser that a fitted pipeline begins with, or the reason why not."""
        first, *later_steps = working_steps(model) or [model]
        name = type(first).__name__
        if type(first) not in VECTORISERS:
            supported = ", ".join(kind.__name__ for kind in VECTORISERS)
            return Reason(
                f"{type(model).__name__} is no scikit-learn pipeline that begins with "
                f"{supported}: it begins with {name}"
            )
        if first.input != "content":
            return Reason(f"{name}(input={first.input!r}) takes files, not texts")
        if type(first) is CountVectorizer and not has_fitted(first, "vocabulary_"):
            first = copy(first)  # it has a fixed vocabulary, and was never fitted
            first.transform([""])  # which sets the vocabulary
        result = cls(first, bool(first.binary), False, None, None)
        if type(first) is TfidfVectorizer:
            result = _with_tfidf(result, first)
        elif type(first) is HashingVectorizer:
            result = replace(result, norm=first.norm)
        return _with_steps(result, later_steps)

    @property
    def n_features(self) -> int:
        """The number V of features."""
        if type(self.counter) is HashingVectorizer:
            return int(self.counter.n_features)
        return len(self.counter.vocabulary_)

    def counts(self, texts: Sequence[str]) -> Sparse:
        """Counts of each feature in texts, (n, V); hashed ones have signs."""
        # binary ones have no signs: cancelling words count as 1 in scikit-learn
        counter = copy(self.counter)
        counter.binary = False
        if type(counter) is HashingVectorizer:
            counter.norm = None
            counter.alternate_sign = counter.alternate_sign and not self.binary
            return sp.csr_array(counter.transform(texts), dtype=np.float64)
        return sp.csr_array(CountVectorizer.transform(counter, texts), dtype=np.float64)

    def values(self, counts: Sparse) -> Sparse:
        """Weighted counts g of counts (n, V) in the vectoriser's precision."""
        result = sp.csr_array(counts, dtype=self._dtype, copy=True)
        result.eliminate_zeros()
        result.data = self.weighted_counts(result.data, result.indices)
        return result

    def weighted_counts(self, counts: Array, features: Indices) -> Array:
        """The weighted counts g of nonzero counts of features, shape (n,)."""
        result = np.array(counts, self._dtype)
        if self.binary:
            result.fill(1.0)
        if self.sublinear:
            np.log(result, result)
            result += self._dtype.type(1.0)
        if self.idf is not None:
            result *= self.idf[features].astype(self._dtype)
        return result

    @cached_property
    def _dtype(self) -> np.dtype[Any]:
        dtype = np.dtype(self.counter.dtype)
        return dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)

    def name_of(self, feature: int) -> str:
        """The term that a feature counts; for hashed features a number."""
        return self._terms.get(feature, f"feature {feature}")

    @cached_property
    def ngrams(self) -> dict[str, list[tuple[str, ...]]]:
        """The n-grams of several words in the vocabulary, by their first word."""
        results: dict[str, list[tuple[str, ...]]] = {}
        if self.counter.analyzer != "word" or self.counter.ngram_range[1] == 1:
            return results
        for term in self._terms.values():
            first, *others = term.split(" ")
            if others:
                results.setdefault(first, []).append((first, *others))
        return results

    @cached_property
    def _terms(self) -> dict[int, str]:
        vocabulary = fitted_value(self.counter, "vocabulary_", {})
        return {int(index): term for term, index in vocabulary.items()}


def _with_tfidf(vectoriser: Vectoriser, tfidf: Any) -> Vectoriser:
    """The vectoriser with the settings of a TfidfTransformer or TfidfVectorizer."""
    idf = np.asarray(tfidf.idf_, np.float64) if tfidf.use_idf else None
    sublinear = bool(tfidf.sublinear_tf)
    return replace(vectoriser, sublinear=sublinear, idf=idf, norm=tfidf.norm)


def _with_steps(vectoriser: Vectoriser, later_steps: list[Any]) -> Vectoriser | Reason:
    """The vectoriser with a step of weights after it, and the rest as its model."""
    counted = (
        type(vectoriser.counter) is not TfidfVectorizer and vectoriser.norm is None
    )
    if counted and later_steps and type(later_steps[0]) is TfidfTransformer:
        vectoriser = _with_tfidf(vectoriser, later_steps[0])
        later_steps = later_steps[1:]
    signed = fitted_value(vectoriser.counter, "alternate_sign")
    first: Any = later_steps[0] if later_steps else None
    # 1 for each feature that occurs, and 0 for all others
    if type(first) is Binarizer and first.threshold == 0.0 and not signed:
        vectoriser = replace(
            vectoriser, binary=True, sublinear=False, idf=None, norm=None
        )
        later_steps = later_steps[1:]
    for step in later_steps:
        if takes_norm(step):
            return Reason(
                f"{type(step).__name__} divides by a norm after other steps; the norm "
                "of a vectoriser, or of a TfidfTransformer right after it, is exact"
            )
    steps = [(f"step {k}", step) for k, step in enumerate(later_steps)]
    rest = Pipeline(steps) if len(steps) > 1 else dict(steps).get("step 0")
    return replace(vectoriser, rest=rest)


def takes_norm(step: Any) -> bool:
    """Whether a step divides by a norm."""
    tfidf = type(step) is TfidfTransformer and step.norm is not None
    return tfidf or type(step) is Normalizer


# ---- The features that the words of a document contribute to


N_CHECKS: Final = 6
"""Random sets of words that are deleted to check that counts add up."""

_MOST_CHECKS: Final = 256
"""Checks if deleting a word may form new tokens from its neighbours."""

_CHARACTERS: Final = 2**21
"""Characters of the texts of these checks, which take 0.3 s."""

_RUNS: Final = (r"(?u)\b\w\w+\b", r"\b\w\w+\b", r"(?u)\b\w+\b", r"\b\w+\b", r"\w+")
"""Patterns with tokens that are all letters of a run, or some of these."""

_LETTER: Final = re.compile(r"\w")


@final
@dataclass(frozen=True, eq=False)
class DocumentFeatures:
    """Counts of features as sums over the retained words, n_v = Σ_j M_vj z_j."""

    feature: Indices  # (E,): v and j of the entries of M, sorted by v, then by j
    word: Indices  # shape (E,)
    # (E,): m_vj, the count of feature v in all occurrences of word j
    count: Values
    n_features: int  # V
    n_words: int  # d

    @cached_property
    def shared(self) -> Indices:
        """The features that several words contribute to, increasing."""
        return np.flatnonzero(np.bincount(self.feature, minlength=1) > 1)

    def feeding(self, features: Indices) -> tuple[Indices, Indices, Values]:
        """For features (n,): entries with the feature's index, a word and its count."""
        start = np.searchsorted(self.feature, features)
        size = np.searchsorted(self.feature, features, side="right") - start
        index = np.repeat(np.arange(len(features)), size)
        entry = np.arange(len(index)) + (start - np.cumsum(size) + size)[index]
        return index, self.word[entry], self.count[entry]

    def counts(self, bits: Mask) -> Sparse:
        """Counts of features (n, V) where the words with these bits are retained."""
        retained = sp.csr_array(np.asarray(bits, np.float64))
        shape = (self.n_words, self.n_features)
        return sp.csr_array(
            retained @ sp.csr_array((self.count, (self.word, self.feature)), shape)
        )


def document_features(
    vectoriser: Vectoriser, document: TextDocument
) -> DocumentFeatures | Reason:
    """The contribution of each word of a document to each feature.

    The reason if it is not additive.

    Additivity is checked on the whole text, on the empty one and on random sets of
    words: on more sets, or all, if tokens may be other than runs of letters.
    """
    formed = _formed_ngrams(vectoriser, document)
    if formed:
        return Reason(
            "words of the document form n-grams of the vocabulary "
            f"({listed(formed, 3)}), which depend on the words deleted between them"
        )
    n_checks = N_CHECKS
    # a letter next to a word, so that deletion could join it to another
    joined = "".join(
        document.text[max(start - 1, 0) : start] + document.text[end : end + 1]
        for start, end, _ in document.spans
    )
    if not _has_runs(vectoriser) or _LETTER.search(joined):
        most = min(_MOST_CHECKS, _CHARACTERS // max(len(document.text), 1))
        n_checks = max(N_CHECKS, most)
    bits = _some_bits(document, n_checks)
    written = [document.text[start:end] for start, end, _ in document.spans]
    words = list(dict.fromkeys(written))
    counts = vectoriser.counts([*words, *document.texts(bits)])  # one call is faster
    result = _of_words(document, written, words, counts[: len(words)])
    errors = abs(counts[len(words) :] - result.counts(bits))
    wrong = np.unique(errors.tocoo().col[errors.tocoo().data > 0.0])
    if len(wrong) > 0:
        names = [vectoriser.name_of(v) for v in wrong.tolist()]
        return Reason(
            f"the features {listed(names, 3)} are not made of single words of the "
            "document; take the words of the vectoriser"
        )
    return result


def _of_words(
    document: TextDocument,
    written: Sequence[str],  # each occurrence
    words: Sequence[str],  # W different ones
    counts: Sparse,  # (W, V): of each by itself
) -> DocumentFeatures:
    """The sum over the occurrences of each word."""
    index = {text: k for k, text in enumerate(words)}
    occurrence_word = np.array([index[text] for text in written], np.intp)
    occurrences = sp.csr_array(
        (np.ones(len(occurrence_word)), (document.word_indices, occurrence_word)),
        shape=(document.n_words, len(words)),
    )
    table = sp.csr_array(occurrences @ counts).tocoo()
    nonzero = table.data != 0.0
    word = table.row[nonzero].astype(np.intp)
    feature = table.col[nonzero].astype(np.intp)
    order = np.lexsort([word, feature])
    return DocumentFeatures(
        feature[order], word[order], table.data[nonzero][order], *table.shape[::-1]
    )


def _has_runs(vectoriser: Vectoriser) -> bool:
    """Whether the tokens are surely runs of letters, as in the text."""
    counter = vectoriser.counter
    if counter.analyzer != "word" or counter.token_pattern not in _RUNS:
        return False
    custom = counter.tokenizer, counter.preprocessor, counter.strip_accents
    fixed = tuple(counter.ngram_range) == (1, 1) or has_fitted(counter, "vocabulary_")
    return fixed and custom == (None, None, None)


def _some_bits(document: TextDocument, n_checks: int) -> Mask:
    """All words, no words, and random sets of any size, equal in each run."""
    d = document.n_words
    if 2**d <= n_checks:
        return all_sets(d)
    rng = np.random.default_rng(0)
    samples = random_sets(d, rng.integers(1, d, n_checks), rng)
    whole = np.ones((1, d), bool)
    return np.concatenate([whole, ~whole, samples])


def _formed_ngrams(vectoriser: Vectoriser, document: TextDocument) -> list[str]:
    """The n-grams of the vocabulary with all tokens in the document."""
    following = vectoriser.ngrams
    if not following:
        return []
    single = copy(vectoriser.counter)
    single.ngram_range = (1, 1)
    tokens = dict.fromkeys(single.build_analyzer()(document.text))
    return [
        " ".join(ngram)
        for token in tokens
        for ngram in following.get(token, ())
        if all(part in tokens for part in ngram)
    ]
