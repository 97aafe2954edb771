"""Fitted vectorisers of scikit-learn: what pipelines make of a text first."""

from __future__ import annotations

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
from sklearn.preprocessing import Normalizer

from propopt._typing import Array, Sparse
from propopt.structures.pipelines import working_steps
from propopt.structures.subsets import NoSetFunction


VECTORISERS: Final = (CountVectorizer, TfidfVectorizer, HashingVectorizer)
"""The classes themselves, never subclasses: those may count by another rule."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Vectoriser:
    """From a text to V features: counts n_v, then g_v(n_v), then a norm.

    g_v(n) is n, or 1 where ``binary``; its logarithm plus 1 where ``sublinear``; times
    idf_v; and 0 where n is 0.

    Parameters
    ----------
    counter : estimator
        A fitted CountVectorizer, TfidfVectorizer or HashingVectorizer.
    binary, sublinear : bool
        As scikit-learn has them.
    idf : array (V,) or None
        The inverse document frequencies; None where they are not used.
    norm : {"l1", "l2"} or None
        What features are divided by at last.
    rest : estimator or None
        The model behind; None where the vectoriser stands alone.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(TfidfVectorizer(norm=None), Ridge())
    >>> _ = model.fit(["good food", "bad food"], [1.0, 0.0])
    >>> vectoriser = Vectoriser.of(model)
    >>> counts = vectoriser.counts(["food, good food"])
    >>> counts.toarray()
    array([[0., 2., 1.]])
    >>> vectoriser.values(counts).toarray().round(3)
    array([[0.   , 2.   , 1.405]])
    """

    counter: Any
    binary: bool
    sublinear: bool
    idf: Array | None
    norm: str | None
    rest: Any

    @classmethod
    def of(cls, model: Any) -> Vectoriser | NoSetFunction:
        """The vectoriser that a fitted pipeline begins with; the reason if it has none.

        Parameters
        ----------
        model : estimator or callable
            A pipeline, nested or not, or a vectoriser alone.
        """
        steps = working_steps(model)
        if not steps or type(steps[0]) not in VECTORISERS:
            return NoSetFunction(_no_vectoriser(model, steps))
        if steps[0].input != "content":
            name = type(steps[0]).__name__
            return NoSetFunction(
                f"{name}(input={steps[0].input!r}) reads files, not texts"
            )
        first = _with_vocabulary(steps[0])
        found = cls(first, bool(first.binary), False, None, None, None)
        if type(first) is TfidfVectorizer:
            found = _with_tfidf(found, first)
        elif type(first) is HashingVectorizer:
            found = replace(found, norm=first.norm)
        return _with_steps(found, steps[1:])

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

    def counts(self, texts: Sequence[str]) -> Sparse:
        """How often each feature comes in texts, (n, V); hashed ones have signs.

        Where the features are binary they have none: words whose signs cancel are 1 to
        scikit-learn, as they are there.
        """
        counter = copy(self.counter)
        counter.binary = False
        if type(counter) is HashingVectorizer:
            counter.norm = None
            counter.alternate_sign = counter.alternate_sign and not self.binary
            return sp.csr_array(counter.transform(texts), dtype=np.float64)
        return sp.csr_array(CountVectorizer.transform(counter, texts), dtype=np.float64)

    def values(self, counts: Sparse) -> Sparse:
        """G of counts (n, V), in the precision of the vectoriser; no norm yet."""
        own = np.dtype(self.counter.dtype)
        given = own if own in (np.float32, np.float64) else np.dtype(np.float64)
        found = sp.csr_array(counts, dtype=given, copy=True)
        found.eliminate_zeros()
        if self.binary:
            found.data.fill(1.0)
        if self.sublinear:
            np.log(found.data, found.data)
            found.data += given.type(1.0)
        if self.idf is not None:
            found.data *= self.idf[found.indices].astype(given)
        return found

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
        found: dict[str, list[tuple[str, ...]]] = {}
        if self.counter.analyzer != "word" or self.counter.ngram_range[1] == 1:
            return found
        for term in self._terms.values():
            first, *others = term.split(" ")
            if others:
                found.setdefault(first, []).append((first, *others))
        return found

    @cached_property
    def _terms(self) -> dict[int, str]:
        known = getattr(self.counter, "vocabulary_", {})
        return {int(place): term for term, place in known.items()}


def _with_vocabulary(counter: Any) -> Any:
    """A counter that was given its words, and never fitted, as it counts texts."""
    if type(counter) is not CountVectorizer or hasattr(counter, "vocabulary_"):
        return counter
    own = copy(counter)
    own.transform([""])  # which reads them
    return own


def _with_tfidf(found: Vectoriser, tfidf: Any) -> Vectoriser:
    """With the settings of a TfidfTransformer, or of a TfidfVectorizer."""
    idf = np.asarray(tfidf.idf_, np.float64) if tfidf.use_idf else None
    sublinear = bool(tfidf.sublinear_tf)
    return replace(found, sublinear=sublinear, idf=idf, norm=tfidf.norm)


def _with_steps(found: Vectoriser, behind: list[Any]) -> Vectoriser:
    """With what of the steps behind is still the vectoriser's, and the rest."""
    kinds = [type(step) for step in behind[:2]]
    counted = type(found.counter) is not TfidfVectorizer and found.norm is None
    if counted and kinds[:1] == [TfidfTransformer]:
        found, behind, kinds = _with_tfidf(found, behind[0]), behind[1:], kinds[1:]
    if found.norm is None and kinds[:1] == [Normalizer] and behind[0].norm != "max":
        found, behind = replace(found, norm=behind[0].norm), behind[1:]
    return replace(found, rest=_joined(behind))


def _joined(steps: list[Any]) -> Any:
    if len(steps) > 1:
        return Pipeline([(f"step {k}", step) for k, step in enumerate(steps)])
    return steps[0] if steps else None


def _no_vectoriser(model: Any, steps: list[Any]) -> str:
    known = ", ".join(kind.__name__ for kind in VECTORISERS)
    if type(model) is Pipeline and steps:
        return f"the pipeline begins with {type(steps[0]).__name__}, not with {known}"
    name = type(model).__name__
    return f"{name} is no pipeline of scikit-learn that begins with {known}"
