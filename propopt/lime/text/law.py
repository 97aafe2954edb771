"""How LIME deletes words: how many, which, and what weight the rest has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Array, Truths, Values
from propopt.checks import read_positive
from propopt.errors import InvalidInput
from propopt.structures.subsets.sets import random_sets


_MOST: Final = 1e100
"""Of bandwidths, and of one over them: squares of more are no numbers."""


@final
@dataclass(frozen=True)
class TextLaw:
    """Words that are deleted at random, as in the package ``lime`` on texts.

    s is uniform on 1, ..., d, and the deleted words are a uniform set of s of the d
    distinct words of a document. A sample that keeps m = d − s has the weight

    π = exp(−(1 − √(m / d))² / (2 ν²))

    of its cosine distance (Mardaoui and Garreau 2021, Eq. 3 and 7). The bits are not
    independent, but exchangeable: all that is known of a sample is in m.

    Parameters
    ----------
    bandwidth : float
        ν > 0, or inf for weights of one. The package has ``kernel_width`` = 100 ν,
        and 25 by default.

    Raises
    ------
    InvalidInput
        If the bandwidth is no positive number, or beyond 1e-100 or 1e100.

    Examples
    --------
    >>> law = TextLaw()
    >>> law.moments(29)[:3].round(8)
    array([0.48441163, 0.33638798, 0.24985253])
    """

    bandwidth: float = 0.25

    def __post_init__(self) -> None:
        given: object = self.bandwidth
        endless = isinstance(given, float | np.floating) and given == np.inf
        own = np.inf if endless else read_positive(given, "bandwidth")
        if not (endless or 1.0 / _MOST <= own <= _MOST):
            raise InvalidInput(
                f"bandwidth: expected a number between {1.0 / _MOST:g} and {_MOST:g}, "
                f"or inf, got {own}"
            )
        object.__setattr__(self, "bandwidth", own)

    def log_weights(self, n_words: int) -> Values:
        """Log π of sizes m = 0, ..., d words kept, (d + 1,); −inf for m = d, no sample.

        Parameters
        ----------
        n_words : int
            d.
        """
        squares = (1.0 - np.sqrt(np.arange(n_words + 1) / n_words)) ** 2
        logs = -squares / (2.0 * self.bandwidth**2)
        logs[-1] = -np.inf
        return logs

    def shares(self, n_words: int) -> Values:
        """π / d of sizes m = 0, ..., d over the largest π / d of all, (d + 1,)."""
        squares = (1.0 - np.sqrt(np.arange(n_words + 1) / n_words)) ** 2
        farther = 0.5 * (squares[:-1] - squares[-2])
        return np.append(np.exp(-farther / self.bandwidth**2), 0.0)

    def moments(self, n_words: int, n_moments: int | None = None) -> Values:
        """α_p = E[π z_1 ... z_p] for p = 0, ..., (P + 1,).

        Parameters
        ----------
        n_words : int
            d.
        n_moments : int, optional
            P; by default d.
        """
        d = n_words
        weights = np.exp(self.log_weights(d)) / d
        m, share, found = np.arange(d + 1.0), np.ones(d + 1), []
        for p in range((d if n_moments is None else n_moments) + 1):
            found.append(weights @ share)
            share = share * np.maximum(m - p, 0.0) / max(d - p, 1)
        return np.array(found)

    def draw(
        self, n_words: int, n_samples: int, rng: np.random.Generator
    ) -> tuple[Truths, Array]:
        """Bits (S, d) of samples, and their weights (S,).

        Parameters
        ----------
        n_words, n_samples : int
            d and S.
        rng : numpy.random.Generator
            Where they come from.
        """
        deleted = rng.integers(1, n_words + 1, n_samples)
        weights = np.exp(self.log_weights(n_words))[n_words - deleted]
        return random_sets(n_words, n_words - deleted, rng), weights
