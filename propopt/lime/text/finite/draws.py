"""Sets of words with values, and how much each counts in means over all samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Positions, Truths, Values
from propopt.checks import read_count
from propopt.errors import InvalidInput


@final
@dataclass(frozen=True, eq=False)
class WordDraws:
    """S sets of words, values of f there, and what stands for all sets of their size.

    Parameters
    ----------
    bits : array (S, d)
        Which words are kept.
    values : array (S,)
        f there.
    """

    bits: Truths
    values: Values

    def __post_init__(self) -> None:
        if self.bits.ndim != 2 or self.values.shape != self.bits.shape[:1]:
            raise InvalidInput(
                f"draws: expected bits (S, d) and as many values, got shapes "
                f"{self.bits.shape} and {self.values.shape}"
            )

    @classmethod
    def of_sizes(
        cls,
        value: Callable[[Truths], Values],
        log_shares: Values,
        n_draws: int,
        rng: np.random.Generator,
    ) -> WordDraws:
        """Uniform sets, evenly of the sizes that count.

        Parameters
        ----------
        value : callable
            f of bits (S, d), (S,).
        log_shares : array (d + 1,)
            Log of what sizes count, up to a constant; −inf for those that do not come.
        n_draws : int
            S.
        rng : numpy.random.Generator
            Where they come from.
        """
        shares = np.exp(log_shares - log_shares.max())
        ends = np.cumsum(shares) / shares.sum()
        even = (np.arange(read_count(n_draws, "n_draws")) + rng.random()) / n_draws
        sizes = np.minimum(np.searchsorted(ends, even), np.flatnonzero(shares).max())
        ranks = rng.random((n_draws, len(shares) - 1)).argsort(axis=1).argsort(axis=1)
        bits = ranks < sizes[:, None]
        return cls(bits, value(bits))

    @property
    def sizes(self) -> Positions:
        """How many words each keeps, (S,)."""
        return np.asarray(self.bits.sum(axis=1), np.intp)

    def shares(self, log_shares: Values) -> Values:
        """What each draw counts where sizes have given shares, (S,), in all 1.

        Parameters
        ----------
        log_shares : array (d + 1,)
            Log of what sizes count, up to a constant.

        Raises
        ------
        InvalidInput
            If no draw has a size that counts.
        """
        there = np.bincount(self.sizes, minlength=len(log_shares))
        logs = np.where(there > 0, log_shares, -np.inf)
        if not np.isfinite(logs).any():
            raise InvalidInput("draws: none keeps as many words as samples with weight")
        each = np.exp(logs - logs.max()) / np.maximum(there, 1)
        return np.asarray(each[self.sizes] / each[self.sizes].sum())
