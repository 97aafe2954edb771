"""Which words a fit tells apart, and sizes of sets that are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from scipy.special import gammaln

from propopt.base.arrays import Array, Positions, Truths, Values
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.sets import SetFunction, all_sets


# ---- Means over all samples of a function of few of the words of a text, exactly


def used_words(function: SetFunction, kept: Truths | None = None) -> Positions:
    """The words that f or the fit to some of them tells apart; all if not known, (u,).

    kept (d,).
    """
    told = np.ones(function.n_words, bool)
    if isinstance(function, Conjunctions):
        indices = np.concatenate([function.present.ravel(), function.absent.ravel()])
        told = np.isin(np.arange(function.n_words), indices)
        if kept is not None:
            told |= kept
    return np.flatnonzero(told)


@final
@dataclass(frozen=True, eq=False)
class Patterns:
    """All 2^u sets of used words, each with 0, ..., R of the R other words."""

    n_words: int  # d = u + R
    used: Positions  # (u,): which words are told apart
    values: Values  # (2^u,): f of each set
    # (d + 1,): log of the probabilities of sizes, −inf for those that do not come
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

        coefficients (d,).
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
        sets = np.column_stack([np.ones(len(sets)), sets])
        result = np.empty((1 + self.n_words, 1 + self.n_words))
        own, rest = np.concatenate([[0], 1 + self.used]), 1 + self.rest
        result[np.ix_(own, own)] = (sets * moments[0][:, None]).T @ sets
        across = moments[1] @ sets
        result[np.ix_(own, rest)] = across[:, None]
        result[np.ix_(rest, own)] = across
        result[np.ix_(rest, rest)] = moments[2].sum()
        result[rest, rest] = moments[1].sum()
        return result

    def _shares(self, sizes: Values, k: int) -> Values:
        """The probability of each set with k of the others, (2^u,)."""
        m = sizes.astype(np.intp) + k
        logs = _log_choose(self.n_rest, k) - _log_choose(self.n_words, m)
        return np.asarray(np.exp(self.log_shares[m] + logs))


def _log_choose(n: int, k: int | Positions) -> Values:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


# ---- Normal equations of samples of which only the size of what they keep counts


_LARGEST: Final = 1e140
"""Its square is a number, too."""


@final
@dataclass(frozen=True, eq=False)
class SizeSystem:
    """Normal equations A = Σ_m W_m E_m[Z Zᵀ] + λ D of sets whose size alone counts.

    In T = Σ W_m, the mean size m̄, and the scatters L = Σ W_m (m − m̄)² / d and
    P = Σ W_m m (d − m) / (d (d − 1)) of bits along (1, ..., 1) and apart from it

    Zᵀ A⁻¹ Z = 1 / T + (m − m̄)² / (d (L + λ)) + m (d − m) / (d (P + λ)).
    """

    weights: Values  # (d + 1,): w_m, of sizes m = 0, ..., d, over exp(log_unit)
    ridge: float  # λ over the same, not on the intercept
    log_unit: float  # so that weights do not vanish

    @classmethod
    def of_run(
        cls,
        log_weights: Values,  # shape (d + 1,)
        n_samples: int,
        ridge: float,
        first_row: bool,
        log_unit: float,
    ) -> SizeSystem:
        """That of the normal equations of a run, in their mean."""
        each = (n_samples - first_row) / (len(log_weights) - 1)
        weights = each * np.exp(log_weights - log_unit)
        with np.errstate(over="ignore", divide="ignore"):
            weights[-1] = min(float(first_row * np.exp(-log_unit)), _LARGEST)
            own = min(float(np.exp(np.log(ridge) - log_unit)), _LARGEST)
        return cls(weights, own, log_unit)

    @property
    def n_words(self) -> int:
        """The number of words, d."""
        return len(self.weights) - 1

    @cached_property
    def total(self) -> float:
        """T."""
        return float(self.weights.sum())

    @cached_property
    def centred(self) -> Values:
        """M − m̄, (d + 1,)."""
        # u = d − 1 − m is 0 where most weight is
        u = self.n_words - 1.0 - self._sizes
        return np.asarray(self.weights @ u / self.total - u)

    @cached_property
    def along(self) -> float:
        """L + λ."""
        return float(self.weights @ self.centred**2) / self.n_words + self.ridge

    @cached_property
    def apart(self) -> float:
        """P + λ."""
        return float(self.weights @ self.spread) / (self.n_words - 1.0) + self.ridge

    @cached_property
    def spread(self) -> Values:
        """M (d − m) / d, the squared length of z apart from (1, ..., 1), (d + 1,)."""
        return np.asarray(self._sizes * (self.n_words - self._sizes) / self.n_words)

    @property
    def _sizes(self) -> Values:
        return np.arange(self.n_words + 1.0)

    def pulls(self, log_weights: Values, n_kept: int | None = None) -> Values:
        """π E_m[Zᵀ A⁻¹ Z] of samples with weights π, of a fit to all words or k."""
        weights = np.exp(log_weights - self.log_unit)
        d, k = self.n_words, self.n_words if n_kept is None else n_kept
        if k == 0:
            return np.asarray(weights * (1.0 / self.total))
        # of k words m k / d are kept in the mean, and vary by the hypergeometric law
        part = k / d
        varies = part * (d - k) / (d - 1.0) * self.spread
        along = (1.0 - part) * self.apart + part * self.along
        of_level = (varies + (part * self.centred) ** 2) / (k * along)
        of_rest = (k - 1.0) / (d - 1.0) * self.spread
        return np.asarray(
            weights * (1.0 / self.total + of_level + of_rest / self.apart)
        )

    def spread_by_fit(self, counts: Values, covariance: Array) -> Array:
        """What the scatter of a fit adds to that of fits to a few samples.

        A sample is off the fit to the others by r and by what that fit is off its mean,
        s_m = E_m[Zᵀ Cov Z]. So Cov = C + Σ_m W_m s_m E_m[A⁻¹ Z Zᵀ A⁻¹] for a scatter C
        of residuals alone, and s is known from four sums over sizes.

        counts (d + 1,), covariance (d + 1, d + 1), gives (d + 1, d + 1).
        """
        own = self._of_sizes(covariance)
        # E_m E_m' (Zᵀ A⁻¹ Z')² = (1 / T + x_m x_m')² + y_m y_m'
        x = self.centred / np.sqrt(self.n_words * self.along)
        y = self.spread / (np.sqrt(self.n_words - 1.0) * self.apart)
        T = np.full_like(x, 1.0 / self.total)
        F = np.stack([T, np.sqrt(2.0 / self.total) * x, x**2, y], axis=1)
        system = np.eye(4) - F.T @ (counts[:, None] * F)
        c = counts * (own + F @ np.linalg.solve(system, F.T @ (counts * own)))
        # A⁻¹ Z: its intercept, along (1, ..., 1), and what is apart from that
        d, mean_size = self.n_words, self.n_words - self.centred[-1]
        level = self.centred / (np.sqrt(d) * self.along)
        first = 1.0 / self.total - mean_size * self.centred / (d * self.along)
        apart = float(c @ self.spread) / ((d - 1.0) * self.apart**2)
        other = (float(c @ level**2) - apart) / d
        return exchangeable_matrix(
            d,
            float(c @ first**2),
            float(c @ (first * level)) / np.sqrt(d),
            other + apart,
            other,
        )

    def _of_sizes(self, covariance: Array) -> Values:
        """E_m[Zᵀ C Z], (d + 1,)."""
        C, m = covariance, self._sizes / self.n_words
        words = float(np.trace(C)) - C[0, 0]
        pairs = float(C[1:, 1:].sum()) - words
        both = m * (self._sizes - 1.0) / (self.n_words - 1.0)
        return np.asarray(C[0, 0] + m * (2.0 * C[0, 1:].sum() + words) + both * pairs)


def exchangeable_matrix(
    n_words: int, zero: float, one: float, two: float, three: float
) -> Array:
    """The matrix (d + 1, d + 1) of an intercept and words that are all alike."""
    result = np.full((n_words + 1, n_words + 1), three)
    np.fill_diagonal(result, two)
    result[0], result[:, 0] = one, one
    result[0, 0] = zero
    return result
