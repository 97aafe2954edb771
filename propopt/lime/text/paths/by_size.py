"""Means of a function over the sets of each size, computed once for all bandwidths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt._typing import Array, Values
from propopt.lime.text.law import TextLaw
from propopt.structures.subsets import SizeMeans


_WIDTHS: Final = np.append(np.geomspace(1e-3, 1e3, 400), np.inf)
"""Bandwidths whose weights tell those of all others."""

_RANK: Final = 1e-15
"""Of the largest singular value: directions of weights with less are left out."""

_APART: Final = 1e-12
"""Of its largest number: weights that are farther off have their own means."""


@final
@dataclass(frozen=True, eq=False)
class MeansBySize:
    """A function with E_m f at hand; with bandwidths weights change.

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
        return self.function.kept(weights)

    @cached_property
    def size(self) -> float:
        """The largest |E_m f|."""
        return float(np.abs(self._means).max())

    @cached_property
    def tabled(self) -> TabledMeans:
        """The same at any number of bandwidths, for the cost of some dozens."""
        return TabledMeans(self)

    @cached_property
    def _means(self) -> Values:
        return self.function.mean_by_size()


@final
@dataclass(frozen=True, eq=False)
class TabledMeans:
    """Means of sums over sizes whose weights are those of some bandwidth.

    These weights vary so smoothly that R directions hold them to rounding, 40 for 50
    words and 80 for 5,000: Σ_m w_m E_m[z_j f] is known from R sums for each word, not
    from d + 1. Other weights are seen to be others, and have sums of their own.

    Parameters
    ----------
    means : MeansBySize
        Of f.
    """

    means: MeansBySize

    @property
    def n_words(self) -> int:
        """The number of words, d."""
        return self.means.n_words

    @property
    def size(self) -> float:
        """The largest |E_m f|."""
        return self.means.size

    def mean_by_size(self) -> Values:
        """E_m f for m = 0, ..., d words kept, (d + 1,)."""
        return self.means.mean_by_size()

    def kept(self, weights: Array, /) -> Array:
        """Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes m = 0, ..., d: (K, d)."""
        parts = weights @ self._directions.T
        off = np.abs(parts @ self._directions - weights).max(axis=1)
        other = off > _APART * np.abs(weights).max(axis=1)
        found = parts @ self._table
        if other.any():
            found[other] = self.means.kept(weights[other])
        return np.asarray(found)

    @cached_property
    def _directions(self) -> Array:
        """An orthonormal basis of weights of bandwidths, (R, d + 1)."""
        d = self.n_words
        weights = np.array([TextLaw(float(nu)).shares(d) for nu in _WIDTHS])
        _, sizes, directions = np.linalg.svd(weights, full_matrices=False)
        return np.asarray(directions[sizes > _RANK * sizes[0]])

    @cached_property
    def _table(self) -> Array:
        """The sums for each direction, (R, d)."""
        return self.means.kept(self._directions)
