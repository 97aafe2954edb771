"""Means over all samples of a function of few of the words of a text, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.special import gammaln

from propopt._typing import Array, Positions, Truths, Values
from propopt.structures.subsets import Conjunctions, SetFunction, all_sets


def used_words(function: SetFunction, kept: Truths | None = None) -> Positions:
    """The words that f or the fit to some of them tells apart; all if not known, (u,).

    Parameters
    ----------
    function : SetFunction
        f.
    kept : array of bool (d,), optional
        The words that are fitted, if not all.
    """
    told = np.ones(function.n_words, bool)
    if isinstance(function, Conjunctions):
        places = np.concatenate([function.present.ravel(), function.absent.ravel()])
        told = np.isin(np.arange(function.n_words), places)
        if kept is not None:
            told |= kept
    return np.flatnonzero(told)


@final
@dataclass(frozen=True, eq=False)
class Patterns:
    """All 2^u sets of used words, each with 0, ..., R of the R other words.

    Parameters
    ----------
    n_words : int
        d = u + R.
    used : array (u,)
        Which words are told apart.
    values : array (2^u,)
        f of each set.
    log_shares : array (d + 1,)
        Log of the probabilities of sizes, −inf for those that do not come.
    """

    n_words: int
    used: Positions
    values: Values
    log_shares: Values

    @classmethod
    def of(cls, function: SetFunction, used: Positions, log_shares: Values) -> Patterns:
        """Those of a function that depends on the used words alone."""
        sets = np.zeros((2 ** len(used), function.n_words), bool)
        sets[:, used] = all_sets(len(used))
        values = function.value(sets)
        return cls(function.n_words, used, values, log_shares)

    @property
    def n_rest(self) -> int:
        """R."""
        return self.n_words - len(self.used)

    @cached_property
    def rest(self) -> Positions:
        """The other words, (R,)."""
        return np.setdiff1d(np.arange(self.n_words), self.used)

    def second(self, intercept: float, coefficients: Values) -> Array:
        """E r² Z Zᵀ of r = f − b_0 − bᵀz, (1 + d, 1 + d), the intercept first.

        Parameters
        ----------
        intercept : float
            b_0.
        coefficients : array (d,)
            b, the same for all words that are not used.
        """
        sets = all_sets(len(self.used)) * 1.0
        fitted = intercept + sets @ coefficients[self.used]
        slope = float(coefficients[self.rest].mean()) if self.n_rest else 0.0
        # Σ over k of the others, w r² of each set, times 1, E z and E z z'
        moments = np.zeros((3, len(sets)))
        for k in range(self.n_rest + 1):
            shares = self._shares(sets.sum(axis=1), k)
            each = shares * (self.values - fitted - slope * k) ** 2
            one = k / max(self.n_rest, 1)
            moments += np.outer(
                [1.0, one, one * (k - 1.0) / max(self.n_rest - 1, 1)], each
            )
        return self._joined(np.column_stack([np.ones(len(sets)), sets]), moments)

    def _joined(self, sets: Array, moments: Array) -> Array:
        found = np.empty((1 + self.n_words, 1 + self.n_words))
        own, rest = np.concatenate([[0], 1 + self.used]), 1 + self.rest
        found[np.ix_(own, own)] = (sets * moments[0][:, None]).T @ sets
        across = moments[1] @ sets
        found[np.ix_(own, rest)] = across[:, None]
        found[np.ix_(rest, own)] = across
        found[np.ix_(rest, rest)] = moments[2].sum()
        found[rest, rest] = moments[1].sum()
        return found

    def _shares(self, sizes: Values, k: int) -> Values:
        """The probability of each set with k of the others, (2^u,)."""
        m = sizes.astype(np.intp) + k
        logs = _log_choose(self.n_rest, k) - _log_choose(self.n_words, m)
        return np.asarray(np.exp(self.log_shares[m] + logs))


def _log_choose(n: int, k: int | Positions) -> Values:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))
