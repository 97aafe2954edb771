"""A rule of words of one's own."""

from collections import Counter
from dataclasses import dataclass

from propopt.tables.documents import Occurrence, WordRule


PACKAGE_FILLER = "UNKWORDZ"
"""What the package ``lime`` writes for a word that it takes out by its position."""


@dataclass(frozen=True)
class EachOccurrence:
    """Each place where a word stands is a word of its own: ``good``, ``good[2]``, ...

    With :data:`PACKAGE_FILLER` this is ``bow=False`` of the package ``lime``: other
    words stay in their places. Columns are aligned by the number of the occurrence.
    """

    rule: WordRule  # what a word is
    filler: str = PACKAGE_FILLER  # what stands where a word was deleted

    def find(self, text: str, /) -> list[Occurrence]:
        """The words of a text where they stand, from the first."""
        seen: Counter[str] = Counter()
        occurrences = []
        for start, end, word in self.rule.find(text):
            seen[word] += 1
            n = seen[word]
            occurrences.append(
                Occurrence(start, end, word if n == 1 else f"{word}[{n}]")
            )
        return occurrences
