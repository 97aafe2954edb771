"""Moments of bits: independent, or exchangeable.

- :class:`~propopt.lime.moments.IndependentBits`: of tables.
- :class:`~propopt.lime.moments.ExchangeableBits`: of texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from propopt.base.arrays import Array, Attributions, Positions, Truths, Values


# ---- Bits of which only the number of ones matters


@final
@dataclass(frozen=True, eq=False)
class ExchangeableBits:
    """Bits of the words of a text: of m words that are kept all sets are alike.

    Cov_Q(z) has two eigenvalues: Var_Q(m) / d along (1, ..., 1), and
    (α_1 − α_2) / α_0 = E_Q[m (d − m)] / (d (d − 1)) on all that sums to 0.
    """

    log_sizes: Array  # (n, d + 1): log E[π; m words kept] of m = 0, ..., d; d ≥ 2

    @property
    def n_words(self) -> int:
        """The number of words, d."""
        return self.log_sizes.shape[1] - 1

    def at(self, rows: slice | Positions, /) -> ExchangeableBits:
        """Those of some situations."""
        return ExchangeableBits(self.log_sizes[rows])

    @cached_property
    def log_weight(self) -> Values:
        """Log E π, (n,)."""
        most = self.log_sizes.max(axis=1)
        total = np.exp(self.log_sizes - most[:, None]).sum(axis=1)
        return np.asarray(most + np.log(total))

    @cached_property
    def _shares(self) -> Array:
        """The probabilities of sizes, (n, d + 1)."""
        weights = np.exp(self.log_sizes - self.log_sizes.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    @cached_property
    def _lost(self) -> Values:
        """U = d − 1 − m: where most weight is on one size, sums of what is small."""
        return np.asarray(self.n_words - 1.0 - np.arange(self.n_words + 1))

    @cached_property
    def off_mean(self) -> Array:
        """M − E_Q m, (n, d + 1)."""
        return np.asarray((self._shares @ self._lost)[:, None] - self._lost)

    @cached_property
    def spread(self) -> Values:
        """M (d − m) / d, the squared length of z apart from (1, ..., 1), (d + 1,)."""
        sizes = self.n_words - 1.0 - self._lost
        return np.asarray(sizes * (self._lost + 1.0) / self.n_words)

    @cached_property
    def share(self) -> Values:
        """Q(z_j = 1) of any word, (n,)."""
        return np.asarray(
            (self.n_words - 1.0 - self._shares @ self._lost) / self.n_words
        )

    @cached_property
    def along(self) -> Values:
        """The eigenvalue along (1, ..., 1), (n,)."""
        return np.asarray((self._shares * self.off_mean**2).sum(axis=1) / self.n_words)

    @cached_property
    def apart(self) -> Values:
        """The eigenvalue on all that sums to 0, (n,)."""
        return np.asarray(self._shares @ self.spread / (self.n_words - 1.0))

    @property
    def alpha(self) -> Array:
        """Q(z_j = 1), (n, D)."""
        return np.repeat(self.share[:, None], self.n_words, axis=1)

    def covariances(self, coefficients: Attributions, /) -> Array:
        """Cov_Q(z, bᵀz), (n, D)."""
        level = coefficients.mean(axis=1, keepdims=True)
        rest = coefficients - level
        return np.asarray(self.along[:, None] * level + self.apart[:, None] * rest)

    def solved(
        self, vectors: Array, penalty: Values, kept: Truths | None = None, /
    ) -> Array:
        """(Cov_Q(z) + ρ I)⁻¹ x of vectors x (n, S, D), 0 for bits that are not kept."""
        there = self._there(kept)[:, None]
        size = there.sum(axis=2, keepdims=True)
        x = there * vectors
        level = x.sum(axis=2, keepdims=True) / np.maximum(size, 1.0)
        along, apart = self._eigenvalues(size[:, :, 0])
        ends = level / (along + penalty[:, None])[:, None]
        rest = (x - level) / (apart + penalty[:, None])[:, None]
        return np.asarray(there * (ends + rest))

    def share_left(self, penalty: Values, kept: Truths | None = None, /) -> Array:
        """What ρ leaves of a coefficient, (n, D): the two shares of eigenvalues."""
        there = self._there(kept)
        size = there.sum(axis=1, keepdims=True)
        along, apart = self._eigenvalues(size)
        rho, one = penalty[:, None], 1.0 / np.maximum(size, 1.0)
        left = one * along / (along + rho) + (1.0 - one) * apart / (apart + rho)
        return np.asarray(there * left)

    def _there(self, kept: Truths | None) -> Array:
        """1 for bits that are kept, else 0, (n, D)."""
        if kept is None:
            return np.ones((len(self.share), self.n_words))
        return np.asarray(kept, float)

    def _eigenvalues(self, size: Array) -> tuple[Array, Array]:
        """Of the covariance of k of the bits (n, 1): along, a sum of what is ≥ 0."""
        part = size / self.n_words
        apart = self.apart[:, None]
        return (1.0 - part) * apart + part * self.along[:, None], apart


# ---- Bits that are independent under the weighted law


@final
@dataclass(frozen=True, eq=False)
class IndependentBits:
    """Bits of the columns of a table: Cov_Q(z) = diag(α_j (1 − α_j))."""

    alpha: Array  # (n, D): Q(z_j = 1)
    log_weight: Values  # (n,): log E π

    def at(self, rows: slice | Positions, /) -> IndependentBits:
        """Those of some situations."""
        return IndependentBits(self.alpha[rows], self.log_weight[rows])

    @property
    def variances(self) -> Array:
        """α_j (1 − α_j), (n, D)."""
        return np.asarray(self.alpha * (1.0 - self.alpha))

    def covariances(self, coefficients: Attributions, /) -> Array:
        """α_j (1 − α_j) b_j, (n, D)."""
        return np.asarray(self.variances * coefficients)

    def solved(
        self, vectors: Array, penalty: Values, kept: Truths | None = None, /
    ) -> Array:
        """x_j / (α_j (1 − α_j) + ρ), (n, S, D)."""
        return np.asarray(self._steepness(penalty, kept)[:, None] * vectors)

    def share_left(self, penalty: Values, kept: Truths | None = None, /) -> Array:
        """α_j (1 − α_j) / (α_j (1 − α_j) + ρ), (n, D)."""
        return np.asarray(self._steepness(penalty, kept) * self.variances)

    def _steepness(self, penalty: Values, kept: Truths | None) -> Array:
        with np.errstate(over="ignore"):
            steep = 1.0 / (self.variances + penalty[:, None])
        return steep if kept is None else np.where(kept, steep, 0.0)
