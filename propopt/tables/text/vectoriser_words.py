"""The words that a vectoriser of scikit-learn sees, where they stand in the text."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Literal, TypeAlias, final

from propopt.errors import InvalidInput
from propopt.tables.text.words import Occurrence, compiled


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

    Parameters
    ----------
    lowercase : bool
        Whether upper case does not matter.
    strip_accents : "ascii", "unicode" or None
        Which accents do not matter.
    token_pattern : str
        What a word is; of an expression with a group the group.
    stop_words : frozenset of str
        Those that are none.
    filler : str
        What stands where a word was deleted.

    Examples
    --------
    >>> rule = VectoriserWords(strip_accents="unicode")
    >>> rule.find("A Café, a CAFE!")
    [Occurrence(start=2, end=6, word='cafe'), Occurrence(start=10, end=14, word='cafe')]
    """

    lowercase: bool = True
    strip_accents: Accents = None
    token_pattern: str = _WORD
    stop_words: frozenset[str] = frozenset()
    filler: str = ""

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
        found: list[Occurrence] = []
        for match in pattern.finditer(seen):
            word = match.group(group)
            if word and word not in self.stop_words:
                start, end = match.span(group)
                last = self._with_marks(text, origins[end - 1] + 1)
                _append(found, Occurrence(origins[start], last, word))
        return found

    def _seen(self, text: str) -> tuple[str, Sequence[int]]:
        """What the vectoriser sees, and where each character of it comes from.

        Each character becomes what it becomes alone, but for the final sigma, which is
        of one length too: so lengths of parts add up.
        """
        if not self.lowercase and self.strip_accents is None:
            return text, range(len(text))
        lengths = {character: len(self._sees(character)) for character in set(text)}
        places = (repeat(n, lengths[c]) for n, c in enumerate(text))
        return self._sees(text), list(chain.from_iterable(places))

    def _sees(self, text: str) -> str:
        lower = text.lower() if self.lowercase else text
        return _ACCENTS[self.strip_accents](lower)

    def _with_marks(self, text: str, end: int) -> int:
        """The end of a word with the accents behind it that are not seen."""
        if self.strip_accents is not None:
            while end < len(text) and unicodedata.combining(text[end]):
                end += 1
        return end


def _append(found: list[Occurrence], new: Occurrence) -> None:
    """One more word, as part of the last one where both stand in one character."""
    if found and new.start < found[-1].end:
        start, end, word = found.pop()
        new = Occurrence(start, max(end, new.end), f"{word} {new.word}")
    found.append(new)


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
