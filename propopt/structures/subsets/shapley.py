"""Shapley values of the words of a text, from means over sets of one size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Values
from propopt.structures.subsets.set_function import SetFunction


@final
@dataclass(frozen=True, eq=False)
class WordShapley:
    """What each word adds to f, on average over all orders in which words come.

    φ_j = Σ_{m=1..d} E_m[z_j f] / m − Σ_{m=0..d−1} (E_m f − E_m[z_j f]) / (d − m),

    for a set with j of m words has the weight (m − 1)! (d − m)! / d!, one over m times
    the number of all sets of m words; and one of m words without j one over d − m times
    that. So Σ_j φ_j = f(text) − f(empty text), and no set is asked for: φ is exact and
    as fast as the means are, however many words there are.

    Parameters
    ----------
    function : SetFunction
        f, of d ≥ 1 words.

    Examples
    --------
    >>> from propopt.structures.subsets import Conjunctions
    >>> f = Conjunctions.of([1.0, 1.0], [[0], [1, 2]], [[], [0]], 3)
    >>> WordShapley(f).values.round(4)
    array([0.6667, 0.1667, 0.1667])
    """

    function: SetFunction

    @property
    def values(self) -> Values:
        """φ (d,)."""
        d = self.function.n_words
        m = np.arange(d + 1.0)
        with_word, without = np.zeros(d + 1), np.zeros(d + 1)
        with_word[1:] = 1.0 / m[1:]
        without[:-1] = 1.0 / (d - m[:-1])
        kept = self.function.kept((with_word + without)[None])[0]
        return np.asarray(kept - without @ self.function.mean_by_size())
