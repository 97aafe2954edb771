"""What rules look at: limits at one document, and what is computed beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, final

import numpy as np

from propopt._typing import Array, Positions, Truths, Values
from propopt.lime.finite import SingleRun
from propopt.lime.text.diagnosis.seen import SeenWords
from propopt.lime.text.finite import ExpectedWords, expected_run, single_text_run
from propopt.lime.text.law import TextLaw
from propopt.lime.text.limits import WordLimits
from propopt.lime.text.moments import TextMoments
from propopt.structures.subsets import Conjunctions, SetFunction


if TYPE_CHECKING:
    from propopt.lime.text.explanation.row import DocumentLimits


PACKAGE_RIDGE: Final = 1.0
"""The package's."""

MANY_WORDS: Final = 500
"""Of documents with more tables, cards and rules compute neither runs nor paths."""

TOO_MANY: Final = f"there are more than {MANY_WORDS} words"

_ROUNDING: Final = 1e-12
"""Of f at the document."""

_GRID: Final = 2.0 ** np.linspace(-1.0, 1.0, 65)
"""Bandwidths near that of the law, over it."""


@final
@dataclass(frozen=True, eq=False)
class TextCase:
    """One document under diagnosis, for runs of n samples.

    Parameters
    ----------
    limits : DocumentLimits
        β, with f at the document.
    function : SetFunction or None
        f, where it is known for all sets of words.
    at : callable
        From bandwidths (K,) to the limits there.
    law : TextLaw
        How words are deleted.
    seen : SeenWords or None
        What the model sees of the words; None where that is not known.
    n_samples : int
        Of one run.
    """

    limits: DocumentLimits
    function: SetFunction | None
    at: Callable[[Values], WordLimits]
    law: TextLaw
    seen: SeenWords | None
    n_samples: int

    @property
    def words(self) -> tuple[str, ...]:
        """The d words."""
        return self.limits.words

    @property
    def n_words(self) -> int:
        """The number of words, d."""
        return len(self.words)

    @property
    def beta(self) -> Values:
        """Coefficients (d,)."""
        return self.limits.coefficients

    @property
    def is_long(self) -> bool:
        """Whether it has so many words that runs and paths take long."""
        return self.n_words > MANY_WORDS

    @cached_property
    def largest(self) -> float:
        """The largest |β|; 1 where all are zero but for rounding."""
        largest = float(np.abs(self.beta).max())
        return largest if largest > _ROUNDING * abs(self.limits.value) else 1.0

    @cached_property
    def sizes(self) -> Values:
        """|β| over the largest, (d,)."""
        return np.asarray(np.abs(self.beta) / self.largest)

    @cached_property
    def ignored(self) -> Truths:
        """Which words f is known not to depend on, (d,)."""
        ignored = np.zeros(self.n_words, bool)
        if isinstance(self.function, Conjunctions):
            f = self.function
            asked = np.concatenate([f.present.ravel(), f.absent.ravel()])
            ignored = ~np.isin(np.arange(self.n_words), asked)
        return ignored if self.seen is None else ignored | ~self.seen.known

    @cached_property
    def moments(self) -> TextMoments:
        """Constants of the law."""
        return TextMoments(self.law, self.n_words)

    @cached_property
    def by_size(self) -> Values | None:
        """E_m f, (d + 1,), where it is known."""
        return None if self.function is None else self.function.mean_by_size()

    @cached_property
    def near(self) -> tuple[Values, Array]:
        """Bandwidths from half to twice that of the law, and coefficients there."""
        widths = np.asarray(self.law.bandwidth * _GRID)
        return widths, self.at(widths).coefficients

    @cached_property
    def at_zero(self) -> WordLimits:
        """The limits as ν → 0."""
        return self.at(np.array([1e-100]))

    @cached_property
    def run(self) -> SingleRun | None:
        """One run: its mean and its covariance; None where f is not known."""
        if self.function is None:
            return None
        own = self.limits.value
        return single_text_run(
            self.function, self.law, own, self.n_samples, PACKAGE_RIDGE
        )

    @property
    def known(self) -> SetFunction | WordLimits:
        """f; or its limits, where it is not known."""
        if self.function is not None:
            return self.function
        return self.at(np.array([self.law.bandwidth]))

    def expected(self, kept: Truths | None = None) -> ExpectedWords:
        """The mean of runs, where some words are fitted."""
        own = self.limits.value
        return expected_run(
            self.known, self.law, own, self.n_samples, PACKAGE_RIDGE, kept=kept
        )

    def named(self, places: Positions, most: int = 3) -> str:
        """Some words, quoted, and how many more there are."""
        shown = ", ".join(repr(self.words[j]) for j in places[:most].tolist())
        more = len(places) - most
        return f"{shown} and {more} more" if more > 0 else shown
