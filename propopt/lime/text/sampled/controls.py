"""What the samples of other blocks tell of a function, as one whose means are known.

f(z) ≈ c(z) = g(m) + Σ_j γ_j z_j + Σ_{j<k} B_jk z_j z_k by least squares. What LIME
tends to for c is known without samples, so only that for f − c is estimated, which
scatters less; and c does not depend on the block whose samples tell f − c, so that the
sum of both has no bias, however c was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Array, Positions, Truths, Values
from propopt.structures.subsets import WordPairs


_DRAWS_PER_TERM: Final = 4
"""A fit on fewer takes less scatter off than it adds."""

_MOST_TERMS: Final = 800
"""Of which least squares take a part of a second."""

_RIDGE: Final = 1e-9
"""Of the largest scatter: what makes terms solvable that move together."""

_POWERS: Final = 3
"""Of the size: a constant, and those from the second on."""


@final
@dataclass(frozen=True, eq=False)
class ControlTerms:
    """What least squares are made of, as many as there are samples for.

    Parameters
    ----------
    n_words : int
        d.
    words, pairs : bool
        Whether there is a term for each word, and for each pair of them.
    """

    n_words: int
    words: bool
    pairs: bool

    @classmethod
    def for_samples(cls, n_words: int, n_samples: int) -> ControlTerms:
        """Those that so many samples can tell."""
        room = min(n_samples // _DRAWS_PER_TERM, _MOST_TERMS)
        with_pairs = _POWERS + n_words * (n_words + 1) // 2
        few = _POWERS + n_words <= n_samples // _DRAWS_PER_TERM
        return cls(n_words, few, with_pairs <= room)

    def at(self, bits: Truths, sizes: Positions) -> Array:
        """The terms of samples (n, d), (n, p)."""
        parts = [self._of_sizes[sizes]]
        if self.words:
            parts.append(np.asarray(bits, float))
        if self.pairs:
            one, other = np.triu_indices(self.n_words, 1)
            parts.append((bits[:, one] & bits[:, other]).astype(float))
        return np.concatenate(parts, axis=1)

    def function(self, weights: Values, base: float) -> WordPairs:
        """The function that weights of the terms (p,) make, and a constant."""
        d = self.n_words
        slopes, pairs = np.zeros(d), None
        rest = weights[_POWERS:]
        if self.words:
            slopes, rest = rest[:d], rest[d:]
        if self.pairs:
            above = np.zeros((d, d))
            above[np.triu_indices(d, 1)] = rest
            pairs = above + above.T
        levels = base + self._of_sizes @ weights[:_POWERS]
        return WordPairs(levels, slopes, pairs)

    @property
    def _of_sizes(self) -> Array:
        """1, u² and u³ of u = 2 m / d − 1; or u where no words say it, (d + 1, 3)."""
        u = 2.0 * np.arange(self.n_words + 1) / self.n_words - 1.0
        return np.stack([np.ones_like(u), u if not self.words else u**3, u**2], axis=1)


def controls(
    terms: ControlTerms,
    bits: list[Truths],
    sizes: list[Positions],
    values: list[Values],
    base: float,
) -> list[WordPairs]:
    """For each block the least squares fit to the samples of all others.

    Parameters
    ----------
    terms : ControlTerms
        What is fitted.
    bits, sizes, values : lists of arrays (s, d), (s,), (s,)
        The samples of each block, and f there.
    base : float
        What is taken off f before fits, so that a large constant leaves no rounding.
    """
    blocks = list(zip(bits, sizes, values, strict=True))
    n_terms = terms.at(bits[0][:1], sizes[0][:1]).shape[1]
    gram, moment = np.zeros((n_terms, n_terms)), np.zeros(n_terms)
    for block in blocks:
        own, most = _equations(terms, *block, base)
        gram += own
        moment += most
    gram += _RIDGE * float(gram.diagonal().max()) * np.eye(n_terms)
    fits = []
    for block in blocks:  # made twice: 20 of them with a term for each word are large
        own, most = _equations(terms, *block, base)
        weights = np.asarray(np.linalg.solve(gram - own, moment - most), np.float64)
        fits.append(terms.function(weights, base))
    return fits


def _equations(
    terms: ControlTerms, bits: Truths, sizes: Positions, values: Values, base: float
) -> tuple[Array, Values]:
    """Normal equations of the samples of one block, (p, p) and (p,)."""
    T = terms.at(bits, sizes)
    return T.T @ T, T.T @ (values - base)
