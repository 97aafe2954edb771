"""A text, as the words in it that can be deleted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from propopt._typing import Positions, Truths
from propopt.tables.text.words import Occurrence, WordRule


@final
@dataclass(frozen=True, eq=False)
class Document:
    """A text and its d distinct words, in the order in which they first come.

    Parameters
    ----------
    text : str
        As it is.
    words : tuple of str (d,)
        The distinct words.
    occurrences : tuple of Occurrence (T,)
        Where they stand.
    places : array (T,)
        Which of the words each is.

    Examples
    --------
    >>> from propopt.tables.text import Document, PatternWords
    >>> note = Document.of("Good food, good price.", PatternWords())
    >>> note.words
    ('Good', 'food', 'good', 'price')
    >>> note.without([True, False, True, True])
    'Good , good price.'
    """

    text: str
    words: tuple[str, ...]
    occurrences: tuple[Occurrence, ...]
    places: Positions

    @classmethod
    def of(cls, text: str, rule: WordRule) -> Document:
        """The words of a text by a rule."""
        found = tuple(rule.find(text))
        order = {word: j for j, word in enumerate(dict.fromkeys(o.word for o in found))}
        places = np.array([order[o.word] for o in found], dtype=np.intp)
        return cls(text, tuple(order), found, places)

    @property
    def n_words(self) -> int:
        """The number of distinct words, d."""
        return len(self.words)

    @cached_property
    def counts(self) -> Positions:
        """How often each word comes, (d,)."""
        return np.bincount(self.places, minlength=self.n_words)

    def without(self, bits: Any) -> str:
        """The text in which all occurrences of words with bit 0 are deleted.

        What stands between words stays, as in the package ``lime``.

        Parameters
        ----------
        bits : array of bool (d,)
            Which words are kept.
        """
        kept = np.asarray(bits, bool)[self.places]
        parts, end = [], 0
        for occurrence, keep in zip(self.occurrences, kept.tolist(), strict=True):
            parts.append(self.text[end : occurrence.end if keep else occurrence.start])
            end = occurrence.end
        return "".join([*parts, self.text[end:]])

    def texts(self, bits: Truths) -> list[str]:
        """The texts of many bits (n, d)."""
        return [self.without(row) for row in _rows(bits)]


def _rows(bits: Truths) -> Iterable[Truths]:
    return np.asarray(bits, bool)
