"""Which sets of words are asked for: all of some sizes, samples of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from scipy.special import comb

from propopt._typing import Positions, Truths, Values
from propopt.errors import InvalidInput
from propopt.lime.text.law import TextLaw
from propopt.structures.subsets.sets import random_sets


SET_BLOCKS: Final = 20
"""Each with an estimate of its own: their scatter is the error, known to a sixth."""

FEWEST_SETS: Final = 5 * SET_BLOCKS
"""Samples."""

_ELSEWHERE: Final = 0.1
"""Of the samples, evenly over all sizes: they tell of other bandwidths."""

_ALONE: Final = 0.1
"""Of the samples, for words left out one by one."""


@final
@dataclass(frozen=True, eq=False)
class SizePlan:
    """Sizes m of which all sets are asked for, and how the rest is sampled.

    A size is drawn as often as its weight in LIME times the deviation of a bit,
    π √(m (d − m)), says: what coefficients are made of scatters by that. It is asked
    for in full where it has no more sets than it would have samples. The text without
    words, m = 0, is asked for always, and words are left out one by one, m = d − 1,
    where that takes a tenth of the samples at most.

    Parameters
    ----------
    n_words : int
        d.
    full : array of bool (d,)
        Which of the sizes 0, ..., d − 1 are asked for in full.
    chances : array (d,)
        Of each size for a sample; 0 where it is full.
    block_size : int
        Samples in each of 20 blocks.

    Examples
    --------
    >>> plan = SizePlan.of(29, TextLaw(), 5000)
    >>> plan.full.nonzero()[0], plan.block_size, plan.evaluations
    (array([ 0, 28]), 249, 5010)
    """

    n_words: int
    full: Truths
    chances: Values
    block_size: int

    @classmethod
    def of(cls, n_words: int, law: TextLaw, n_samples: int) -> SizePlan:
        """The plan for about so many evaluations.

        Parameters
        ----------
        n_words : int
            d, of a text with more sets of words than there are samples.
        law : TextLaw
            Of the weights.
        n_samples : int
            Evaluations, rounded up so that blocks are of one size.

        Raises
        ------
        InvalidInput
            If they are too few.
        """
        if n_samples < FEWEST_SETS:
            raise InvalidInput(
                f"n_samples: {n_samples} samples are too few for standard errors; give "
                f"at least {FEWEST_SETS}"
            )
        m = np.arange(n_words)
        shares = law.shares(n_words)[:n_words] * np.sqrt((m + 0.5) * (n_words - m))
        likely = (1.0 - _ELSEWHERE) * shares / shares.sum() + _ELSEWHERE / n_words
        n_sets = comb(n_words, np.arange(n_words))
        full = n_sets <= np.maximum(1.0, n_samples * likely)
        full[-1] |= n_words <= _ALONE * n_samples
        if full.all():  # of a text of which all sets could be asked for
            full[np.argmax(n_sets)] = False
        chances = np.where(full, 0.0, likely)
        left = max(n_samples - int(n_sets[full].sum()), FEWEST_SETS)
        return cls(n_words, full, chances / chances.sum(), -(-left // SET_BLOCKS))

    @property
    def n_full(self) -> int:
        """Sets of sizes that are asked for in full."""
        return int(comb(self.n_words, np.flatnonzero(self.full)).sum())

    @property
    def evaluations(self) -> int:
        """Texts that the model is given."""
        return self.n_full + SET_BLOCKS * self.block_size

    def draw(self, rng: np.random.Generator) -> tuple[Truths, Positions]:
        """One block: bits (s, d), and their sizes (s,).

        Sizes are spread evenly over the samples of a block: each has its chance, and
        as many samples as that says, up to one.
        """
        even = (np.arange(self.block_size) + rng.random()) / self.block_size
        sizes = np.searchsorted(self.chances.cumsum(), even, side="right")
        # rounding of the sum may leave the last number beyond it
        sizes = np.minimum(sizes, np.flatnonzero(self.chances)[-1])
        return random_sets(self.n_words, sizes, rng), sizes
