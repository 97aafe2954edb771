"""How the words of a document are features of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from propopt._typing import Positions, Truths
from propopt.structures.subsets import NoSetFunction
from propopt.structures.tfidf import Vectoriser, document_features
from propopt.tables.text import Document


@final
@dataclass(frozen=True, eq=False)
class SeenWords:
    """What a model sees of each of the d words of a document.

    Parameters
    ----------
    known : array of bool (d,)
        Whether it feeds any feature.
    alike : array (d,)
        How many words, itself among them, feed a feature that it feeds: the most.
    beside : tuple of str (d,)
        That feature; empty where there is none.
    crossing : tuple of str
        Why features are not made of single words, a sentence for each vectoriser.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from propopt.tables.text import PatternWords
    >>> vectoriser = CountVectorizer().fit(["good food"])
    >>> document = Document.of("Good, good food I say", PatternWords())
    >>> seen = SeenWords.of([vectoriser], document)
    >>> dict(zip(document.words, seen.alike.tolist()))
    {'Good': 2, 'good': 2, 'food': 1, 'I': 0, 'say': 0}
    """

    known: Truths
    alike: Positions
    beside: tuple[str, ...]
    crossing: tuple[str, ...]

    @classmethod
    def of(cls, vectorisers: Sequence[Any], document: Document) -> SeenWords:
        """What some vectorisers, all that the model sees of texts, make of the words.

        Parameters
        ----------
        vectorisers : sequence of estimator
            Fitted.
        document : Document
            Any.
        """
        d = document.n_words
        alike, beside, crossing = np.zeros(d, np.intp), [""] * d, []
        for one in vectorisers:
            vectoriser = Vectoriser.of(one)
            if isinstance(vectoriser, NoSetFunction):
                crossing.append(vectoriser.reason)
                continue
            found = document_features(vectoriser, document)
            if isinstance(found, NoSetFunction):
                crossing.append(found.reason)
                continue
            _, place, often = np.unique(
                found.feature, return_inverse=True, return_counts=True
            )
            entries = zip(found.feature, found.word, often[place], strict=True)
            for feature, word, count in entries:
                if count > alike[word]:
                    alike[word], beside[word] = count, vectoriser.name_of(int(feature))
        known = (alike > 0) | bool(crossing)
        return cls(known, alike, tuple(beside), tuple(crossing))
