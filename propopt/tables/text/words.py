"""What counts as a word: where words stand in a text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple, Protocol, final


class Occurrence(NamedTuple):
    """A word where it stands: ``text[start:end]``."""

    start: int
    end: int
    word: str


class WordRule(Protocol):
    """How words are found in a text."""

    def find(self, text: str, /) -> list[Occurrence]:
        """The words of a text where they stand, from the first."""


@final
@dataclass(frozen=True)
class PatternWords:
    r"""Words that match a regular expression, as they are written.

    ``\w+`` gives the words of the package ``lime``, which parts texts by ``\W+``: upper
    and lower case are other words, and one letter is a word.

    Parameters
    ----------
    pattern : str
        The expression.

    Examples
    --------
    >>> [found.word for found in PatternWords().find("It's good, GOOD!")]
    ['It', 's', 'good', 'GOOD']
    """

    pattern: str = r"\w+"

    def find(self, text: str, /) -> list[Occurrence]:
        """The words of a text where they stand, from the first."""
        matches = re.finditer(self.pattern, text)
        return [Occurrence(m.start(), m.end(), m.group()) for m in matches]
