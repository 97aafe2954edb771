"""Shapley values from some sets of columns, with an error that can be trusted.

For an explained row x and a background row b, the value of a set S of columns is f with
S from x and the others from b. With z_j = 1 for j in S and −1 otherwise, Shapley values
depend on its odd part alone,

    o(z) = (v(S) − v(Sᶜ))/2,   o(1) = (f(x) − f(b))/2

Over all sets, weighted by 1/(s(D − s)) for sizes s together, they are twice the linear
regression of o on z under Σ φ = 2 o(1) (Charnes et al. 1988). From n sets, each size
by its share and no set twice, they are estimated in two steps.

**A Gaussian process** on odd functions: independent coefficients of all products of k
odd z_j, with variances ρ^k, and noise in each set. The covariance of two sets that
differ in d columns is the odd part of (1 + ρ)^(D − d) (1 − ρ)^d, and that of a set with
φ_j, which is 2/k for each product with z_j, an integral over 0 to ρ. The process is
conditioned on o(1).

**The residuals** e = K⁻¹o/diag K⁻¹ of predictions from the other sets correct it: the
mean of the n estimates without one set, plus the regression of e. If n_s of the N_s
sets of a size are evaluated, corrections count by 1 − n_s/N_s.

**The variance** Σ h²e² of the correction Σ h e ignores that its terms are correlated
with each other and with the process. It is multiplied by what the process says about
that ratio: posterior variance + (h/d) K⁻¹ (h/d) over Σ h²/d, with d = diag K⁻¹.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from scipy.special import comb

from propopt.base.arrays import Array, Indices, Values
from propopt.base.resources import BATCH_BUDGET
from propopt.laws.calibration import N_DRAWN_BLOCKS
from propopt.structures.subsets.sets import random_sets, sets_of_size


_PROCESSES: Final = ((0.01, 1e-5), (0.03, 1e-3), (0.1, 1e-1), (0.3, 1e-2), (0.3, 1e-5))
"""Variances of products of three columns and of the noise, relative to single ones."""

LINEAR: Final = 1e3
"""Further variance of single columns: sums of functions of one column are exact."""

_COMPARED: Final = (10, 100)
"""The likelihood of so many games and sets selects a process."""

_MOST_LISTED: Final = 2**14
"""Sets of one size that are listed, so that none is drawn twice."""

_DEPENDENT: Final = 1e-9
"""Directions without sets, relative to the largest: that of equal z in all columns."""


# ---- Sets of columns


def size_of(signs: Array) -> Indices:
    """The size of S or Sᶜ, whichever is smaller, for signs (..., D)."""
    inside = (signs > 0.0).sum(axis=-1)
    return np.minimum(inside, signs.shape[-1] - inside)


def size_law(width: int) -> tuple[Values, Values]:
    """Shares of the sizes 1, ..., D/2 in the regression, and their numbers of pairs."""
    sizes = np.arange(1, width // 2 + 1)
    halves = np.where(2 * sizes == width, 0.5, 1.0)
    shares = halves / (sizes * (width - sizes))
    return shares / shares.sum(), halves * comb(width, sizes)


def counts_of_sets(width: int, n_sets: int) -> Indices:
    """Numbers of pairs by size: in proportion to shares, or all that there are."""
    shares, totals = size_law(width)
    counts = np.zeros(len(shares), np.intp)
    for k, total in enumerate(totals):
        wanted = round((n_sets - counts.sum()) * shares[k] / shares[k:].sum())
        counts[k] = min(wanted, total)
    return counts


def drawn_sets(width: int, size: int, places: range, n_games: int, seed: int) -> Array:
    """Sets (G, n, D) of one size, those at these places of a random sequence."""
    total = size_law(width)[1][size - 1]
    if total > _MOST_LISTED:  # hardly any are equal
        rng = np.random.default_rng([seed, size, places.start])
        sizes = np.full(n_games * len(places), size)
        bits = random_sets(width, sizes, rng).reshape(n_games, -1, width)
    else:
        every = sets_of_size(width, size)
        every = every[every[:, 0]] if 2 * size == width else every
        order = np.random.default_rng([seed, size]).random((n_games, len(every)))
        bits = every[order.argsort(axis=1)[:, places.start : places.stop]]
    return np.where(bits, 1.0, -1.0)


def regression_weights(signs: Array) -> Array:
    """Weights c of o in φ = 2 o(1)/D + Σ c o over all sets, (..., n, D)."""
    width = signs.shape[-1]
    shares, totals = size_law(width)
    means = 2.0 * np.arange(1, len(shares) + 1) - width
    # 1 − E z_i z_j, the variance of z about its mean
    variance = 1.0 - shares @ (means**2 - width) / (width * (width - 1.0))
    of_sets = 2.0 / variance * (shares / totals)[size_of(signs) - 1]
    return (signs - signs.mean(axis=-1, keepdims=True)) * of_sets[..., None]


# ---- The Gaussian process


@final
@dataclass(frozen=True)
class OddProcess:
    """Independent coefficients of odd products, and noise in each set."""

    width: int  # D
    triples: float  # the variance of products of three columns, of single ones
    noise: float  # in each set, of the variance of single columns

    @property
    def decay(self) -> float:
        """ρ, so that D(D − 1)(D − 2)/6 ρ³ is ``triples`` times D ρ."""
        pairs = max((self.width - 1) * (self.width - 2), 1)
        return min(float(np.sqrt(6.0 * self.triples / pairs)), 0.9)

    @cached_property
    def covariances(self) -> Values:
        """The covariance of two sets that differ in 0, ..., D columns, (D + 1,)."""
        even = _products(self.width, np.array([self.decay]))[0]
        odd = (even - even[::-1]) / (2.0 * self.decay)
        return odd / self.width + LINEAR * np.linspace(1.0, -1.0, self.width + 1)

    @cached_property
    def of_values(self) -> Values:
        """z_j times the covariance with φ_j, if m of the others are −1, (D,)."""
        nodes, weights = np.polynomial.legendre.leggauss(self.width // 2 + 1)
        even = _products(self.width - 1, self.decay * (nodes + 1.0) / 2.0)
        return (weights @ (even + even[:, ::-1]) / 2.0 + 2.0 * LINEAR) / self.width

    def prior(self) -> float:
        """The prior variance of a Shapley value, given the sum."""
        width = self.width
        k = np.arange(1, width + 1, 2)
        variances = self.decay ** (k - 1.0)
        variances[0] += LINEAR
        alone = (2.0 / k) ** 2 * comb(width - 1, k - 1) * variances / width
        shares, totals = size_law(width)
        signs = np.tri(len(shares), width) * 2.0 - 1.0  # a set of each size
        squares = (regression_weights(signs) ** 2).mean(axis=1)
        return float(alone @ (width - k) / width + self.noise * squares @ totals)

    def conditioned(self, signs: Array) -> tuple[Array, Array, Array]:
        """K (G, n, n) given o(1), covariances with φ (G, D, n), and K(1) (G, n).

        The last is the prediction of o for o(1) = 1.
        """
        apart = np.rint((self.width - signs @ signs.swapaxes(1, 2)) / 2.0)
        outside = (signs < 0.0).sum(axis=2)
        mean = self.covariances[outside] / self.covariances[0]
        K = self.covariances[apart.astype(np.intp)]
        K -= self.covariances[outside][:, :, None] * mean[:, None]
        every = np.arange(signs.shape[1])
        K[:, every, every] += self.noise
        of_players = signs * self.of_values[outside[:, :, None] - (signs < 0.0)]
        of_players -= of_players.mean(axis=2, keepdims=True)  # given the sum
        of_players += self.noise * regression_weights(signs)
        return K, of_players.swapaxes(1, 2), mean

    def log_likelihood(self, signs: Array, odd: Array) -> float:
        """That of o (N, G, n + 1), with the best scale for each point."""
        K, _, mean = self.conditioned(signs)
        root = np.linalg.cholesky(K)
        rest = (odd[:, :, :-1] - mean * odd[:, :, -1:]).transpose(1, 2, 0)
        squares = (np.linalg.solve(root, rest) ** 2).mean(axis=(0, 1))
        squares = squares[squares > 0.0]
        volume = np.log(np.diagonal(root, axis1=1, axis2=2)).mean()
        return float(-0.5 * np.log(squares).sum() - len(squares) * volume)


def _products(width: int, rates: Values) -> Array:
    """(1 + r)^(D − d) (1 − r)^d for rates (R,) and d = 0, ..., D, (R, D + 1)."""
    d = np.arange(width + 1)
    return (1.0 + rates[:, None]) ** (width - d) * (1.0 - rates[:, None]) ** d


# ---- Estimates


def estimates_of_sets(
    signs: Array,  # (G, n, D): the same sizes in all games
    odd: Array,  # (N, G, n + 1): o at the sets, and o(1)
    shares: Values,  # (G,): of the games in the mean
) -> tuple[Array, Array, Array]:
    """Values of each game (N, G, D), standard errors of their mean, and its blocks.

    Blocks are (10, N, D) deviations with the correlations of the errors.
    """
    n_points = len(odd)
    n_games, n_sets, width = signs.shape
    blocks = np.zeros((N_DRAWN_BLOCKS, n_points, width))
    squares = np.zeros((n_points, width))
    if n_sets == size_law(width)[1].sum():
        values = np.einsum("gid,xgi->xgd", regression_weights(signs), odd[:, :, :-1])
        return values + 2.0 / width * odd[:, :, -1:], squares, blocks
    games, sets = _COMPARED
    some = slice(games), np.random.default_rng(0).permutation(n_sets)[:sets]
    compared = odd[:, :games][:, :, np.append(some[1], n_sets)]
    process = max(
        (OddProcess(width, *settings) for settings in _PROCESSES),
        key=lambda process: process.log_likelihood(signs[some], compared),
    )
    values = np.empty((n_points, n_games, width))
    ratio = np.zeros((2, width))
    for part in BATCH_BUDGET.blocks(n_games, 8 * n_sets * (n_sets + n_points)):
        ends = odd[:, part, -1:]
        K, of_players, mean = process.conditioned(signs[part])
        inverse = np.linalg.inv(K)
        variances = 1.0 / np.diagonal(inverse, axis1=1, axis2=2)  # of e
        rest = odd[:, part, :-1] - mean * ends
        residuals = np.einsum("gij,xgj->xgi", inverse, rest) * variances
        operator = of_players @ inverse
        steps = _corrections(signs[part], operator)
        values[:, part] = 2.0 / width * ends + np.einsum("gdi,xgi->xgd", operator, rest)
        values[:, part] += np.einsum("gdi,xgi->xgd", steps, residuals)
        left = np.maximum(process.prior() - (operator * of_players).sum(axis=2), 0.0)
        scaled = steps * variances[:, None]
        left += ((scaled @ inverse) * scaled).sum(axis=2)
        weights = shares[part, None]
        steps *= weights[:, :, None]
        ratio[0] += (weights**2 * left).sum(axis=0)
        ratio[1] += (steps**2 * variances[:, None]).sum(axis=(0, 2))
        squares += np.einsum("gdi,xgi->xd", steps**2, residuals**2)
        index = np.arange(n_games)[part, None] + np.arange(n_sets)
        for block in range(N_DRAWN_BLOCKS):
            inside = (index % N_DRAWN_BLOCKS == block)[:, None]
            blocks[block] += np.einsum("gdi,xgi->xd", steps * inside, residuals)
    ratio[0, ratio[1] == 0.0] = 0.0
    errors = np.sqrt(squares * ratio[0] / np.maximum(ratio[1], np.finfo(float).tiny))
    return values, errors, blocks


def _corrections(signs: Array, operator: Array) -> Array:
    """What a residual e adds to the values, (G, D, n)."""
    size = size_of(signs[0]) - 1
    shares, totals = size_law(signs.shape[2])
    counts = np.bincount(size, minlength=len(shares))[size]
    weights = shares[size] / counts
    weights /= weights.sum()
    centred = signs - signs.mean(axis=2, keepdims=True)
    transposed = centred.swapaxes(1, 2)
    gram = transposed @ (centred * weights[:, None]) / 2.0
    slopes = np.linalg.pinv(gram, _DEPENDENT, hermitian=True) @ transposed
    return (slopes - operator) * weights * (1.0 - counts / totals[size])
