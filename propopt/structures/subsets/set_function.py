"""Functions of sets of words, and the means of them that are known without samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, final

from propopt._typing import Array, Truths, Values


class SizeMeans(Protocol):
    """Means of a function of d bits over all sets of one size.

    E_m is the mean over the sets of m words that are kept, all alike likely. What LIME
    on texts tends to, at any bandwidth, and Shapley values are sums over sizes of E_m f
    and E_m[z_j f].
    """

    @property
    def n_words(self) -> int:
        """The number of bits, d."""

    def mean_by_size(self) -> Values:
        """E_m f for m = 0, ..., d words kept, (d + 1,)."""

    def kept(self, weights: Array, /) -> Array:
        """Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes m = 0, ..., d: (K, d)."""


class SetFunction(SizeMeans, Protocol):
    """A function of d bits whose means over all sets of one size are known exactly."""

    def value(self, bits: Truths, /) -> Values:
        """Values at bits (n, d), (n,)."""


@final
@dataclass(frozen=True)
class NoSetFunction:
    """Why nothing is known of a function of words, in a sentence.

    Parameters
    ----------
    reason : str
        Such as ``"probabilities are no sum of words; the log-odds are"``.
    """

    reason: str
