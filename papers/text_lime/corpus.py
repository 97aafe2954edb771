"""Texts of our own: eighteen reviews, and a corpus that is generated from their words.

The paper's reviews have no licence that is stated. These are written for this package,
and have its licence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, final

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from propopt.base.arrays import Array, Mask
from propopt.tables.documents import PatternWords, TextDocument


STAND_IN: Final = "generated reviews instead of Yelp's, whose licence is not stated"
_PRAISED: Final = "fresh warm charm good perfect lovely kind friendly Great Honest gem"
_BLAMED: Final = "bad cold salty rude bitter dirty burnt slow Stale lost Overpriced old"
_TILT: Final = 1.5
"""By e to this, and its inverse, moods make words more and less likely."""


@final
@dataclass(frozen=True, eq=False)
class Corpus:
    """Reviews, and whether their writers were pleased.

    Parameters
    ----------
    texts : tuple of str (N,)
        The reviews.
    pleased : array of bool (N,)
        What a classifier learns.
    """

    texts: tuple[str, ...]
    pleased: Mask


@cache
def own_reviews() -> tuple[str, ...]:
    """Written by hand; the first four have 29, 35, 52 and 20 distinct words."""
    file = Path(__file__).with_name("reviews.txt")
    return tuple(file.read_text(encoding="utf-8").strip().split("\n\n"))


@cache
def review_of(n_words: int) -> TextDocument:
    """The first of our reviews that has so many distinct words."""
    documents = (TextDocument.of(text, PatternWords()) for text in own_reviews())
    return next(one for one in documents if one.n_words == n_words)


@cache
def generated_corpus(n_documents: int = 400, seed: int = 0) -> Corpus:
    """Reviews of 20 to 60 independent words, whose k-th has probability about 1 / k.

    Words are ranked by how often they come in our reviews (Zipf's law). Half of the
    writers are pleased: then words of praise are more likely, and those of blame less.

    Parameters
    ----------
    n_documents : int
        N.
    seed : int
        Of the draws.
    """
    rng = np.random.default_rng(seed)
    words, shares = zipf_words()
    pleased = rng.random(n_documents) < 0.5
    texts = tuple(_review(words, _tilted(words, shares, one), rng) for one in pleased)
    return Corpus(texts, pleased)


def zipf_words() -> tuple[tuple[str, ...], Array]:
    """All words of our reviews by how often they come, and Zipf's probabilities."""
    counts = Counter(re.findall(r"\w+", "\n".join(own_reviews())))
    words = tuple(word for word, _ in counts.most_common())
    shares = 1.0 / np.arange(1.0, len(words) + 1.0)
    return words, shares / shares.sum()


@cache
def vectoriser() -> TfidfVectorizer:
    """TF-IDF of the generated corpus, with upper and lower case apart."""
    return TfidfVectorizer(lowercase=False).fit(generated_corpus().texts)


def _tilted(words: Sequence[str], shares: Array, pleased: bool) -> Array:
    praised, blamed = (np.isin(words, side.split()) for side in (_PRAISED, _BLAMED))
    mood = 1.0 if pleased else -1.0
    tilted = shares * np.exp(_TILT * mood * (praised.astype(float) - blamed))
    return np.asarray(tilted / tilted.sum())


def _review(words: Sequence[str], shares: Array, rng: np.random.Generator) -> str:
    samples = rng.choice(len(words), rng.integers(20, 61), p=shares)
    return " ".join(words[k] for k in samples) + "."
