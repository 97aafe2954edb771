"""Fitted vectorisers, and which features the words of a document feed."""

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
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from propopt.base.arrays import Array, Indices, Mask, Sparse, Values
from propopt.base.text import Reason
from propopt.structures.fitted_model import FittedModel
from propopt.structures.kinds import has_fitted
from propopt.structures.networks import Scaling
from propopt.structures.readers.fitted_networks import step_map
from propopt.structures.scores import Network
from propopt.structures.subsets.sets import (
    all_sets,
    random_sets,
)
from propopt.tables.documents import TextDocument


VECTORISERS: Final[tuple[type[Any], ...]] = (
    CountVectorizer,
    TfidfVectorizer,
    HashingVectorizer,
)
"""The classes themselves, never subclasses: those may count by another rule."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Vectoriser:
    """From a text to V features: counts n_v, then g_v(n_v), then a norm.

    g_v(n) is n, or 1 where ``binary``; its logarithm plus 1 where ``sublinear``; times
    idf_v, which holds all weights before the last norm; and 0 where n is 0.
    """

    counter: Any  # a fitted CountVectorizer, TfidfVectorizer or HashingVectorizer
    binary: bool  # as scikit-learn has them
    sublinear: bool
    # (V,): the inverse document frequencies; None where they are not used
    idf: Array | None
    norm: str | None  # what features are divided by at last
    chosen: Indices | None = None  # (F,): those that are passed on; None of all
    rest: Any = None  # the model behind; None where the vectoriser stands alone

    @classmethod
    def of(cls, model: Any) -> Vectoriser | Reason:
        """What vectoriser a fitted pipeline begins with; the reason if none."""
        steps = FittedModel.of(model).steps
        if not steps or type(steps[0]) not in VECTORISERS:
            known = ", ".join(kind.__name__ for kind in VECTORISERS)
            name = type(model).__name__
            said = f"{name} is no pipeline of scikit-learn that begins with {known}"
            if type(model) is Pipeline and steps:
                name = type(steps[0]).__name__
                said = f"the pipeline begins with {name}, not with {known}"
            return Reason(said)
        if steps[0].input != "content":
            name = type(steps[0]).__name__
            return Reason(f"{name}(input={steps[0].input!r}) reads files, not texts")
        first = steps[0]
        if type(first) is CountVectorizer and not has_fitted(first, "vocabulary_"):
            first = copy(first)  # it was given its words, and never fitted
            first.transform([""])  # which reads them
        result = cls(first, bool(first.binary), False, None, None)
        if type(first) is TfidfVectorizer:
            result = _with_tfidf(result, first)
        elif type(first) is HashingVectorizer:
            result = replace(result, norm=first.norm)
        return _with_steps(result, steps[1:])

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({type(self.counter).__name__}, V={self.n_features})"
        )

    @property
    def n_features(self) -> int:
        """V."""
        if type(self.counter) is HashingVectorizer:
            return int(self.counter.n_features)
        return len(self.counter.vocabulary_)

    @property
    def columns(self) -> Indices:
        """The features that are passed on, (F,)."""
        return np.arange(self.n_features) if self.chosen is None else self.chosen

    def counts(self, texts: Sequence[str]) -> Sparse:
        """How often each feature comes in texts, (n, V); hashed ones have signs."""
        # but for binary ones: words whose signs cancel are 1 to scikit-learn
        counter = copy(self.counter)
        counter.binary = False
        if type(counter) is HashingVectorizer:
            counter.norm = None
            counter.alternate_sign = counter.alternate_sign and not self.binary
            return sp.csr_array(counter.transform(texts), dtype=np.float64)
        return sp.csr_array(CountVectorizer.transform(counter, texts), dtype=np.float64)

    def values(self, counts: Sparse) -> Sparse:
        """G of counts (n, V), in the precision of the vectoriser; no norm yet."""
        result = sp.csr_array(counts, dtype=self._dtype, copy=True)
        result.eliminate_zeros()
        result.data = self.weighed(result.data, result.indices)
        return result

    def weighed(self, counts: Array, features: Indices) -> Array:
        """G of counts of features (n,), none of which is 0."""
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
        own = np.dtype(self.counter.dtype)
        return own if own in (np.float32, np.float64) else np.dtype(np.float64)

    def name_of(self, feature: int) -> str:
        """The term that a feature counts; of hashed ones its number."""
        return self._terms.get(feature, f"feature {feature}")

    def tokens(self, text: str) -> list[str]:
        """The words of a text as the vectoriser finds them, stop words left out."""
        single = copy(self.counter)
        single.ngram_range = (1, 1)
        return list(single.build_analyzer()(text))

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
        known = getattr(self.counter, "vocabulary_", {})
        return {int(place): term for term, place in known.items()}


def _with_tfidf(vectoriser: Vectoriser, tfidf: Any) -> Vectoriser:
    """With the settings of a TfidfTransformer, or of a TfidfVectorizer."""
    idf = np.asarray(tfidf.idf_, np.float64) if tfidf.use_idf else None
    sublinear = bool(tfidf.sublinear_tf)
    return replace(vectoriser, sublinear=sublinear, idf=idf, norm=tfidf.norm)


def _with_steps(vectoriser: Vectoriser, behind: list[Any]) -> Vectoriser | Reason:
    """With what of the steps behind is still the vectoriser's, and the rest."""
    counted = (
        type(vectoriser.counter) is not TfidfVectorizer and vectoriser.norm is None
    )
    if counted and behind and type(behind[0]) is TfidfTransformer:
        vectoriser, behind = _with_tfidf(vectoriser, behind[0]), behind[1:]
    norms = [k for k, step in enumerate(behind) if takes_norm(step)]
    n_before = norms[-1] + 1 if norms else 0
    for step in behind[:n_before]:
        result = _before_norm(vectoriser, step)
        if isinstance(result, Reason):
            return result
        vectoriser = result
    steps = [(f"step {k}", step) for k, step in enumerate(behind[n_before:])]
    rest = Pipeline(steps) if len(steps) > 1 else dict(steps).get("step 0")
    return replace(vectoriser, rest=rest)


def takes_norm(step: Any) -> bool:
    """Whether a step divides by a norm."""
    tfidf = type(step) is TfidfTransformer and step.norm is not None
    return tfidf or type(step) is Normalizer


def map_of(step: Any) -> Network | None:
    """The map of a fitted step without its norm; None where it is not known."""
    if type(step) is TfidfTransformer and not step.sublinear_tf:
        zeros = np.zeros(step.n_features_in_)
        return Scaling(zeros, getattr(step, "idf_", zeros + 1.0), zeros)
    return step_map(step)


def _before_norm(vectoriser: Vectoriser, step: Any) -> Vectoriser | Reason:
    """With a step before a norm, or that takes it: earlier ones make no difference."""
    columns, norm = vectoriser.columns, vectoriser.norm
    own = vectoriser.idf
    idf = np.ones(vectoriser.n_features) if own is None else own.copy()
    if isinstance(step, SelectorMixin):
        kept = np.asarray(step.get_support(), bool)
        idf[columns[~kept]] = 0.0
        return replace(vectoriser, idf=idf, chosen=columns[kept])
    if type(step) is Normalizer and step.norm in ("l1", "l2"):
        return replace(vectoriser, norm=step.norm)
    match map_of(step):
        # scalers that take 0 to 0
        case Scaling(center, factor, offset) if (center * factor == offset).all():
            idf[columns] *= factor
        case _:
            return Reason(
                f"a norm is taken behind {type(step).__name__}, which is not known to "
                "weigh each feature by itself"
            )
    norm = step.norm if takes_norm(step) else norm
    return replace(vectoriser, idf=idf, norm=norm)


# ---- Which features of a vectoriser the words of a document feed


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
    """Counts of features as sums over the words that are kept: n_v = Σ_j M_vj z_j."""

    feature: Indices  # (E,): v and j where M is not 0, sorted by v, then by j
    word: Indices  # shape (E,)
    # (E,): m_vj: how often all occurrences of word j count for feature v together
    count: Values
    n_features: int  # V
    n_words: int  # d

    @cached_property
    def shared(self) -> Indices:
        """The features that several words feed, increasing."""
        return np.flatnonzero(np.bincount(self.feature, minlength=1) > 1)

    def feeding(self, features: Indices) -> tuple[Indices, Indices, Values]:
        """Whose the words of features (n,) are, they, and how often each counts."""
        start = np.searchsorted(self.feature, features)
        size = np.searchsorted(self.feature, features, side="right") - start
        whose = np.repeat(np.arange(len(features)), size)
        which = np.arange(len(whose)) + (start - np.cumsum(size) + size)[whose]
        return whose, self.word[which], self.count[which]

    def counts(self, bits: Mask) -> Sparse:
        """The counts of features (n, V) where the words with these bits are kept."""
        kept = sp.csr_array(np.asarray(bits, np.float64))
        shape = (self.n_words, self.n_features)
        return sp.csr_array(
            kept @ sp.csr_array((self.count, (self.word, self.feature)), shape=shape)
        )


def document_features(
    vectoriser: Vectoriser, document: TextDocument
) -> DocumentFeatures | Reason:
    """What each word of a document, as it stands, adds to which features.

    That counts add up is seen on the whole text, on none and on random sets of words:
    on more, or all, where the tokens may be more than letters that stand together.
    """
    formed = _formed_ngrams(vectoriser, document)
    if formed:
        return Reason(
            f"words of the document form n-grams of the vocabulary ({_some(formed)}), "
            "which depend on what is deleted between them"
        )
    n_checks = N_CHECKS
    if not _has_runs(vectoriser) or _touches(document):
        most = min(_MOST_CHECKS, _CHARACTERS // max(len(document.text), 1))
        n_checks = max(N_CHECKS, most)
    bits = _some_bits(document, n_checks)
    written = [document.text[o.start : o.end] for o in document.occurrences]
    words = list(dict.fromkeys(written))
    counts = vectoriser.counts([*words, *document.texts(bits)])  # a call has its cost
    result = _of_words(document, written, words, counts[: len(words)])
    off = abs(counts[len(words) :] - result.counts(bits))
    wrong = np.unique(off.tocoo().col[off.tocoo().data > 0.0])
    if len(wrong) > 0:
        names = [vectoriser.name_of(v) for v in wrong.tolist()]
        return Reason(
            f"the features {_some(names)} are not made of single words of the "
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
    place = {text: k for k, text in enumerate(words)}
    which = np.array([place[text] for text in written], np.intp)
    often = sp.csr_array(
        (np.ones(len(which)), (document.word_indices, which)),
        shape=(document.n_words, len(words)),
    )
    table = sp.csr_array(often @ counts).tocoo()
    kept = table.data != 0.0
    word, feature = table.row[kept].astype(np.intp), table.col[kept].astype(np.intp)
    order = np.lexsort([word, feature])
    return DocumentFeatures(
        feature[order], word[order], table.data[kept][order], *table.shape[::-1]
    )


def _has_runs(vectoriser: Vectoriser) -> bool:
    """Whether its tokens are known to be runs of letters, as in the text."""
    own = vectoriser.counter
    plain = (
        own.analyzer == "word" and own.tokenizer is None and own.preprocessor is None
    )
    known = tuple(own.ngram_range) == (1, 1) or has_fitted(own, "vocabulary_")
    return plain and known and own.strip_accents is None and own.token_pattern in _RUNS


def _touches(document: TextDocument) -> bool:
    """Whether a letter stands beside a word, which may meet another one."""
    neighbouring = (
        document.text[max(o.start - 1, 0) : o.start] + document.text[o.end : o.end + 1]
        for o in document.occurrences
    )
    return _LETTER.search("".join(neighbouring)) is not None


def _some_bits(document: TextDocument, n_checks: int) -> Mask:
    """All words, none, and random sets of any size that are the same in each run."""
    d = document.n_words
    if 2**d <= n_checks:
        return all_sets(d)
    rng = np.random.default_rng(0)
    samples = random_sets(d, rng.integers(1, d, n_checks), rng)
    whole = np.ones((1, d), bool)
    return np.concatenate([whole, ~whole, samples])


def _formed_ngrams(vectoriser: Vectoriser, document: TextDocument) -> list[str]:
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


def _some(names: list[str]) -> str:
    """Three of the names, quoted, and how many more there are."""
    shown = ", ".join(map(repr, names[:3]))
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
