"""Means of a function over the sets of each size, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt._typing import Array, Values
from propopt.structures.subsets import SizeMeans


_LARGEST: Final = 2**24
"""Of numbers in a table; without one, means are made anew for each bandwidth."""


@final
@dataclass(frozen=True, eq=False)
class MeansBySize:
    """A function with E_m f and E_m[z_j f] at hand; with bandwidths weights change.

    Parameters
    ----------
    function : SizeMeans
        f, or what samples told of it.
    """

    function: SizeMeans

    @property
    def n_words(self) -> int:
        """The number of words, d."""
        return self.function.n_words

    def mean_by_size(self) -> Values:
        """E_m f for m = 0, ..., d words kept, (d + 1,)."""
        return self._means

    def kept(self, weights: Array, /) -> Array:
        """Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes m = 0, ..., d: (K, d)."""
        if self._table is None:
            return self.function.kept(weights)
        return np.asarray(weights @ self._table)

    @cached_property
    def size(self) -> float:
        """The largest |E_m f|."""
        return float(np.abs(self._means).max())

    @cached_property
    def _means(self) -> Values:
        return self.function.mean_by_size()

    @cached_property
    def _table(self) -> Array | None:
        """E_m[z_j f], (d + 1, d)."""
        d = self.n_words
        return self.function.kept(np.eye(d + 1)) if d * (d + 1) <= _LARGEST else None
