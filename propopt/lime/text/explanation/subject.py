"""What LIME is asked about texts: a function, a law, documents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias, final

from propopt._typing import Positions, Values
from propopt.functions.text import TextFunction
from propopt.lime.text.law import TextLaw
from propopt.lime.text.limits import ExactWordLimits, WordLimits
from propopt.lime.text.sampled import SampledWords
from propopt.structures.subsets import SetFunction
from propopt.tables.text import Document


WordMeans: TypeAlias = SetFunction | SampledWords
"""What knows the coefficients of a document at any bandwidth."""


def limits_of(means: WordMeans, bandwidths: Values) -> WordLimits:
    """Coefficients at bandwidths (K,), with standard errors where they have some."""
    if isinstance(means, SampledWords):
        return means.at(bandwidths)
    return ExactWordLimits(means).at(bandwidths)


@final
@dataclass(frozen=True, eq=False)
class TextSubject:
    """A function, a law and documents; not saved with what was found about them.

    Parameters
    ----------
    function : TextFunction
        f.
    law : TextLaw
        Of the samples.
    documents : tuple of Document (N,)
        The texts.
    n_samples : int
        Texts for each document whose limits are estimated.
    seed : int
        Of these samples.
    max_enumerated : int
        So many words have all their sets asked for, where f is not read; texts with no
        more sets than samples have anyway.
    means : tuple (N,)
        What is known of each document at any bandwidth; None of one that LIME says
        nothing of.
    """

    function: TextFunction
    law: TextLaw
    documents: tuple[Document, ...]
    n_samples: int
    seed: int
    max_enumerated: int = 0
    means: tuple[WordMeans | None, ...] = ()

    def of_rows(self, rows: Positions) -> TextSubject:
        """The same, about some of the documents."""
        return replace(
            self,
            documents=tuple(self.documents[n] for n in rows),
            means=tuple(self.means[n] for n in rows),
        )
