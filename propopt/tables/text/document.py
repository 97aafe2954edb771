"""A text, as the words in it that can be deleted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, final

import numpy as np

from propopt._typing import Positions, Truths
from propopt.errors import InvalidInput
from propopt.tables.text.words import Occurrence, WordRule


@final
@dataclass(frozen=True, eq=False)
class Document:
    """A text and its d distinct words, in the order in which they first come.

    A text may have no words, d = 0: it is empty, or nothing in it is a word.

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
    filler : str
        What stands where a word was deleted.

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
    filler: str = ""

    @classmethod
    def of(cls, text: str, rule: WordRule) -> Document:
        """The words of a text by a rule."""
        found = tuple(rule.find(text))
        order = {word: j for j, word in enumerate(dict.fromkeys(o.word for o in found))}
        places = np.array([order[o.word] for o in found], dtype=np.intp)
        return cls(text, tuple(order), found, places, rule.filler)

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

        Raises
        ------
        InvalidInput
            If there is not one bit for each word.
        """
        kept = np.asarray(bits, bool)
        if kept.shape != (self.n_words,):
            raise InvalidInput(
                f"bits: expected one for each of {self.n_words} words, got an array "
                f"of shape {kept.shape}"
            )
        chosen = self._chosen.copy()
        chosen[1::3] = kept[self.places]
        chosen[2::3] = ~chosen[1::3]
        return "".join(compress(self._parts, chosen.tobytes()))

    def texts(self, bits: Truths) -> list[str]:
        """The texts of many bits (n, d)."""
        return list(self.each(bits))

    def each(self, bits: Truths) -> Iterator[str]:
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

    @cached_property
    def _chosen(self) -> Truths:
        return np.ones(3 * len(self.occurrences) + 1, bool)
