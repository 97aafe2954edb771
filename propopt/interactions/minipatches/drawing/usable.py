"""How likely a patch is of use, and how many patches are enough."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

from scipy.stats import binom

from propopt.interactions.minipatches.drawing.patches import ColumnSampling, Patches


SURE: Final = 0.99
"""How likely the number of patches that messages name is enough."""


@final
@dataclass(frozen=True, kw_only=True)
class Usable:
    """How likely one patch is of use to the prediction at a row without a set.

    The row has to be out of the patch and the set disjoint from its features, which has
    the probability (1 − n/N) C(M − t, m)/C(M, m) for t features; of B patches so many
    times B are of use on average. With ``"bernoulli"`` it is (1 − n/N)(1 − m/M)^t.

    Parameters
    ----------
    row_share : float
        n/N.
    n_features : int
        M.
    n_kept : float
        m.
    columns : {"fixed", "bernoulli"}
        How features are drawn.

    Examples
    --------
    >>> usable = Usable(row_share=1 / 4, n_features=8, n_kept=3, columns="fixed")
    >>> [round(usable.without(t), 6) for t in range(3)]
    [0.75, 0.46875, 0.267857]
    >>> usable.patches_needed(2, n_predictions=500 * 28)
    46
    """

    row_share: float
    n_features: int
    n_kept: float
    columns: ColumnSampling

    @classmethod
    def of(cls, patches: Patches) -> Usable:
        """By what was drawn: fixed where all patches have one number of features."""
        kept = patches.features.sum(axis=1)
        return cls(
            row_share=patches.rows.shape[1] / patches.n_table,
            n_features=patches.features.shape[1],
            n_kept=float(kept.mean()),
            columns="fixed" if (kept == kept[0]).all() else "bernoulli",
        )

    def without(self, size: int) -> float:
        """The probability of a set of ``size`` features to be of use at a row."""
        return (1.0 - self.row_share) * self._absent(size)

    def together(self, size: int) -> float:
        """The probability that a patch has all features of a set of that size."""
        if self.columns == "bernoulli":
            return (self.n_kept / self.n_features) ** size
        rest = math.comb(self.n_features - size, round(self.n_kept) - size)
        return rest / math.comb(self.n_features, round(self.n_kept))

    def patches_needed(self, size: int, n_predictions: int, at_least: int = 1) -> int:
        """B with which all predictions are means of enough patches, 99 times of 100.

        The least B with Q N P(Bin(B, p) < at_least) ≤ 1 %, p as above: then, whatever
        rows and sets have in common, at most one draw of B patches in 100 has too few
        anywhere.

        Parameters
        ----------
        size : int
            t, of the sets.
        n_predictions : int
            Q N, sets times rows.
        at_least : int
            Patches of each mean.
        """
        return _least_draws(self.without(size), n_predictions, at_least)

    def _absent(self, size: int) -> float:
        if self.columns == "bernoulli":
            return (1.0 - self.n_kept / self.n_features) ** size
        left = math.comb(self.n_features - size, round(self.n_kept))
        return left / math.comb(self.n_features, round(self.n_kept))


def _least_draws(p: float, n_events: int, at_least: int) -> int:
    """The least B with n_events · P(Bin(B, p) < at_least) ≤ 1 − SURE."""
    goal = (1.0 - SURE) / n_events
    high = at_least
    while binom.cdf(at_least - 1, high, p) > goal:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if binom.cdf(at_least - 1, middle, p) > goal:
            low = middle
        else:
            high = middle
    return high
