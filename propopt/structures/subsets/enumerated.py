"""Any function of few words, from its values at all sets of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from propopt._typing import Array, Positions, Truths, Values
from propopt.errors import InvalidInput
from propopt.structures.subsets.sets import all_sets


MOST_ENUMERATED: Final = 16
"""So many words have all their sets asked for."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Enumerated:
    """f by its values at all 2^d sets of words.

    Parameters
    ----------
    values : array (2^d,)
        In the order of :func:`all_sets`.

    Examples
    --------
    >>> f = Enumerated.of(lambda bits: bits[:, 0] & ~bits[:, 1], n_words=3)
    >>> f.mean_by_size().round(4)
    array([0.    , 0.3333, 0.3333, 0.    ])
    """

    values: Values

    @classmethod
    def of(cls, function: Callable[[Truths], Any], n_words: int) -> Enumerated:
        """A function that is asked for all sets, in one call.

        Parameters
        ----------
        function : callable
            From bits (2^d, d) to values (2^d,).
        n_words : int
            d, at most 16.

        Raises
        ------
        InvalidInput
            If there are more words.
        """
        if n_words > MOST_ENUMERATED:
            raise InvalidInput(
                f"{n_words} words have 2^{n_words} sets; all are asked for up to "
                f"{MOST_ENUMERATED} words"
            )
        return cls(np.asarray(function(all_sets(n_words)), np.float64))

    def __post_init__(self) -> None:
        if self.values.shape != (2**self.n_words,):
            raise InvalidInput(
                f"values: expected one for each of 2^d sets, got {self.values.shape}"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(all sets of {self.n_words} words)"

    @property
    def n_words(self) -> int:
        """The number of bits, d."""
        return max(0, self.values.size.bit_length() - 1)

    def value(self, bits: Truths, /) -> Values:
        """Values at bits (n, d), (n,)."""
        powers = 1 << np.arange(self.n_words)
        return np.asarray(self.values[np.asarray(bits, np.intp) @ powers])

    def mean_by_size(self) -> Values:
        """E_m f for m = 0, ..., d words kept, (d + 1,)."""
        sums = np.bincount(self._sizes, self.values, self.n_words + 1)
        return np.asarray(sums / self._how_many)

    def kept(self, weights: Array, /) -> Array:
        """Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes m = 0, ..., d: (K, d)."""
        of_each = (np.asarray(weights) / self._how_many)[:, self._sizes] * self.values
        return np.asarray(of_each @ all_sets(self.n_words))

    @cached_property
    def _sizes(self) -> Positions:
        """How many words are in each set."""
        return all_sets(self.n_words).sum(axis=1)

    @cached_property
    def _how_many(self) -> Array:
        """How many sets there are of each size."""
        return np.bincount(self._sizes, minlength=self.n_words + 1).astype(np.float64)
