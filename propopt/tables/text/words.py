"""What counts as a word: where words stand in a text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, final

from propopt.errors import InvalidInput


PACKAGE_FILLER: Final = "UNKWORDZ"
"""What the package ``lime`` writes for a word that it takes out by its position."""


class Occurrence(NamedTuple):
    """A word where it stands: ``text[start:end]``."""

    start: int
    end: int
    word: str


class WordRule(Protocol):
    """How words are found in a text, and what is left where one is deleted."""

    @property
    def filler(self) -> str:
        """What stands where a word was deleted; mostly nothing."""

    def find(self, text: str, /) -> list[Occurrence]:
        """The words of a text where they stand, from the first; none overlap."""


@final
@dataclass(frozen=True)
class PatternWords:
    r"""Words that match a regular expression, as they are written.

    ``\w+`` gives the words of the package ``lime``, which parts texts by ``\W+``: upper
    and lower case are other words, one letter is a word, and so are digits. An accent
    that is a character of its own, and most emoji, part words and belong to none.

    Parameters
    ----------
    pattern : str
        The expression.
    filler : str
        What stands where a word was deleted.

    Examples
    --------
    >>> [found.word for found in PatternWords().find("It's good, GOOD!")]
    ['It', 's', 'good', 'GOOD']
    """

    pattern: str = r"\w+"
    filler: str = ""

    def __post_init__(self) -> None:
        compiled(self.pattern)

    def find(self, text: str, /) -> list[Occurrence]:
        """The words of a text where they stand, from the first."""
        matches = compiled(self.pattern).finditer(text)
        return [
            Occurrence(m.start(), m.end(), m.group())
            for m in matches
            if m.end() > m.start()
        ]


def compiled(pattern: str) -> re.Pattern[str]:
    """An expression for words; refused where it is none. Python keeps the last ones."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidInput(
            f"words: {pattern!r} is no regular expression: {error}"
        ) from None


@final
@dataclass(frozen=True)
class EachOccurrence:
    """Each place where a word stands is a word of its own: ``good``, ``good[2]``, ...

    With :data:`PACKAGE_FILLER` this is ``bow=False`` of the package ``lime``: other
    words stay in their places. Columns are aligned by the number of the occurrence.

    Parameters
    ----------
    rule : WordRule
        What a word is.
    filler : str
        What stands where a word was deleted.

    Examples
    --------
    >>> rule = EachOccurrence(PatternWords())
    >>> [found.word for found in rule.find("no, no!")]
    ['no', 'no[2]']
    """

    rule: WordRule
    filler: str = PACKAGE_FILLER

    def find(self, text: str, /) -> list[Occurrence]:
        """The words of a text where they stand, from the first."""
        seen: Counter[str] = Counter()
        found = []
        for start, end, word in self.rule.find(text):
            seen[word] += 1
            n = seen[word]
            found.append(Occurrence(start, end, word if n == 1 else f"{word}[{n}]"))
        return found
