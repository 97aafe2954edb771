"""Weighted sums of functions of sets of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Truths, Values
from propopt.structures.subsets.set_function import SetFunction


@final
@dataclass(frozen=True, eq=False)
class AddedSets:
    """f = base + Σ_k weight_k f_k: all that is asked of f is linear in it.

    Parameters
    ----------
    parts : sequence of (float, SetFunction)
        At least one weight and function, all of the same words.
    base : float
        What is added to them.

    Examples
    --------
    >>> from propopt.structures.subsets import Conjunctions
    >>> first = Conjunctions.of([1.0], [[0]], [[]], n_words=2)
    >>> both = AddedSets([(2.0, first), (-1.0, first)], base=3.0)
    >>> both.value(np.array([[True, False], [False, True]]))
    array([4., 3.])
    """

    parts: Sequence[tuple[float, SetFunction]]
    base: float = 0.0

    @property
    def n_words(self) -> int:
        """The number of bits, d."""
        return self.parts[0][1].n_words

    def value(self, bits: Truths, /) -> Values:
        """Values at bits (n, d), (n,)."""
        return self.base + sum(
            (weight * part.value(bits) for weight, part in self.parts),
            np.zeros(len(bits)),
        )

    def mean_by_size(self) -> Values:
        """E_m f for m = 0, ..., d words kept, (d + 1,)."""
        return self.base + sum(
            (weight * part.mean_by_size() for weight, part in self.parts),
            np.zeros(self.n_words + 1),
        )

    def kept(self, weights: Array, /) -> Array:
        """Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes m = 0, ..., d: (K, d)."""
        d = self.n_words
        # E_m z_j = m / d
        of_base = self.base * np.asarray(weights) @ (np.arange(d + 1) / d)
        return of_base[:, None] + sum(
            (weight * part.kept(weights) for weight, part in self.parts),
            np.zeros((len(weights), d)),
        )
