"""Shapley values from some sets of columns, with an error that can be trusted.

For an explained row x and a background row b, the value of a set S of columns is f with
S from x and the others from b. With z_j = 1 for j in S and −1 otherwise, Shapley values
depend on its odd part alone,

    o(z) = (v(S) − v(Sᶜ))/2,   o(1) = (f(x) − f(b))/2

Over all sets, weighted by 1/(s(D − s)) for sizes s together, they are twice the linear
regression of o on z under Σ φ = 2 o(1) (Charnes et al. 1988). From n sets, each size
by its share and no set twice, they are estimated in two steps.

**A Gaussian process** on odd functions: independent coefficients of all products of
odd numbers of z_j, with variances Π ρ_j, and noise in each set. With a_j = artanh ρ_j
the covariance of two sets is sinh(Σ a_j z_j z'_j)/sinh(Σ a_j), and that of a set with
φ_j, which is 2/k for each product of k with z_j, an integral of products over 0 to 1.
Triples of columns whose products stand out in the games of all rows have separate
variances. Rates a_j, these variances and the noise are the most likely ones, so that
products of columns that do not interact have no part. The last set has all columns, and
no noise.

**Triples** are sought in steps (Donoho et al. 2012, Sparse solution of underdetermined
systems by stagewise orthogonal matching pursuit). For c, the product of three z_j, the
sum of (c'K⁻¹o)² over games has about the same law for all triples without an effect:
chi-squared, of which the median of all triples shows the scale. Those above a quantile,
the largest first, are fitted, and the next are sought in what is left.

**The residuals** e = K⁻¹o/diag K⁻¹ of predictions from the other sets correct it: the
mean of the n estimates without one set, plus the regression of e, with the squares of z
in the mean of all games. If n_s of the N_s sets of a size are evaluated, corrections
count by 1 − n_s/N_s.

**The variance** Σ h²e² of the correction Σ h e ignores that its terms are correlated
with each other and with the process. It is multiplied by what the process says about
that ratio: posterior variance + h C h over Σ h²d, for the covariances C of e and their
diagonal d. Of m sets, m − D − T − 1 are left, as D + 1 numbers and variances of T
triples are fitted. Σ h²e² is itself an estimate: by the process it has
(Σ h²d)²/Σ (h²)C²(h²) degrees of freedom (Bell and McCaffrey 2002), and an error is
stated so that 1.96 of them are Student's interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Final, final

import numpy as np
import scipy.optimize as opt
from scipy.special import chdtri, comb, stdtrit

from propopt.base.arrays import Array, Indices, Values
from propopt.base.resources import BATCH_BUDGET
from propopt.laws.calibration import N_DRAWN_BLOCKS
from propopt.structures.subsets.sets import random_sets, sets_of_size


_START: Final = (0.6, 0.1)
"""Rates of all columns, and noise, from which the most likely ones are sought."""

_RATES: Final = (1e-4, 2.0)
"""Limits of rates: from sums of functions of a column to ρ = .96."""

_NOISES: Final = (1e-5, 1e3)
"""Limits of the noise, relative to o(1)."""

_VARIANCES: Final = (1e-7, 0.05, 1e2)
"""Those of triples, relative to o(1): the smallest, the start, and the largest."""

_STEPS: Final = 60
"""The most steps of the search."""

LINEAR: Final = 1e2
"""Further variance of single columns, of which no set says little."""

_COMPARED: Final = 2000
"""The likelihood is that of as many games as have so many sets."""

_CHANCE: Final = 1e-4
"""Share of triples without an effect that stand out."""

_ROUNDS: Final = 6
"""The most steps in which triples are sought, of D at most."""

_LARGE: Final = 0.25
"""Triples of one step have this share of the largest."""

_EXPLAINED: Final = 1e-4
"""Share of squares that is left when nothing more is sought."""

_SCREENED: Final = (400, 2e8)
"""Games in which triples are sought: so many, with so many products of two columns."""

_MOST_FITTED: Final = 0.8
"""Share of sets for single columns and triples."""

_TINY: Final = np.finfo(float).tiny

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


def fewest_of_many(width: int) -> int:
    """The smallest number of sets with residuals that correct a process."""
    return int(min(3 * (width - 1), size_law(width)[1].sum()))


def more_sets(signs: Array, n_sets: int, seed: int) -> Array:
    """These sets of games (G, n, D), and others of all sizes."""
    n_games, _, width = signs.shape
    wanted = counts_of_sets(width, n_sets)
    counts = (size_of(signs)[:1, :, None] == np.arange(1, len(wanted) + 1)).sum(axis=1)
    added = [
        drawn_sets(width, k + 1, range(count, wanted[k]), n_games, seed)
        for k, count in enumerate(counts[0])
    ]
    return np.concatenate([signs, *added], axis=1)


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
@dataclass(frozen=True, eq=False)
class OddProcess:
    """Independent coefficients of odd products, and noise in each set."""

    rates: Values  # (D,): artanh ρ
    noise: float  # in each set but that of all columns
    triples: Indices  # (T, 3): those with separate variances
    variances: Values  # (T,)

    def covariances(self, signs: Array) -> Array:
        """Those of o at sets (G, n, D), the last of which has all columns."""
        products = signs @ signs.swapaxes(1, 2)
        weighted = (signs * self.rates) @ signs.swapaxes(1, 2)
        K = np.sinh(weighted) / np.sinh(self.rates.sum())
        K += LINEAR / len(self.rates) * products
        of_three = _of_three(signs, self.triples)
        K += (of_three * self.variances) @ of_three.swapaxes(1, 2)
        every = np.arange(signs.shape[1] - 1)
        K[:, every, every] += self.noise
        return np.asarray(K)

    def of_values(self, signs: Array) -> Array:
        """Covariances of φ and o at sets (G, n, D), (G, D, n)."""
        width = len(self.rates)
        result = 2.0 * LINEAR / width * signs
        for node, weight in zip(*_nodes(width), strict=True):
            others = _without_each(node * np.tanh(self.rates) * signs)
            result += weight * self._single * signs * others
        result += (_of_three(signs, self.triples) * self.variances) @ self._shares
        result[:, :-1] += self.noise * regression_weights(signs[:, :-1])
        return result.swapaxes(1, 2)

    def prior(self) -> Values:
        """Variances of φ, (D,)."""
        width = len(self.rates)
        nodes, weights = _nodes(width)
        both = np.outer(nodes, nodes)[:, :, None] * np.tanh(self.rates)
        others = np.einsum("s,t,std->d", weights, weights, _without_each(both))
        shares, totals = size_law(width)
        sets = np.tri(len(shares), width) * 2.0 - 1.0  # one of each size
        squares = (regression_weights(sets) ** 2).mean(axis=1)
        of_noise = self.noise * squares @ totals
        of_three = self.variances @ self._shares**2
        of_one = 2.0 * self._single * others + 4.0 * LINEAR / width
        return np.asarray(of_one + of_three + of_noise)

    @property
    def _shares(self) -> Array:
        """φ of the products of triples, (T, D)."""
        return 2.0 / 3.0 * np.eye(len(self.rates))[self.triples].sum(axis=1)

    @property
    def _single(self) -> Values:
        """Variances of single z_j, (D,)."""
        # Π cosh / sinh Σ, without overflow
        logs = np.log(np.cosh(self.rates)).sum() - np.log(np.sinh(self.rates.sum()))
        return np.asarray(np.exp(logs) * np.tanh(self.rates))


def fitted_process(signs: Array, odd: Array, triples: Indices) -> OddProcess:
    """The most likely process for sets (G, n, D) and o (N, G, n); the last: all.

    Each point has the best scale. Logarithms of rates scatter by 1.
    """
    n_games, n_sets, width = signs.shape
    transposed = signs.swapaxes(1, 2)
    of_three = _of_three(signs, triples)
    smallest, start, largest = _VARIANCES

    def process_of(logs: Values) -> OddProcess:
        rates, noise, variances = np.split(np.exp(logs), [width, width + 1])
        return OddProcess(rates, float(noise[0]), triples, variances)

    def loss(logs: Values) -> tuple[float, Values]:
        """Twice −log likelihood of a point, and its derivatives."""
        process = process_of(logs)
        K = process.covariances(signs)
        inverse = np.linalg.inv(K)
        solved = np.einsum("gij,xgj->xgi", inverse, odd)
        scales = np.einsum("xgi,xgi->x", solved, odd) / (n_games * n_sets) + _TINY
        apart = logs[:width] - logs[:width].mean()
        size = n_games * n_sets * np.log(scales).mean() + apart @ apart
        size += np.linalg.slogdet(K)[1].sum()
        solved /= np.sqrt(len(odd) * scales)[:, None, None]
        by_K = inverse - np.einsum("xgi,xgj->gij", solved, solved)
        weighted = (signs * process.rates) @ transposed
        total = process.rates.sum()
        by_product = by_K * np.cosh(weighted) / np.sinh(total)
        by_rates = (transposed @ by_product * transposed).sum(axis=(0, 2))
        by_rates -= (by_K * np.sinh(weighted)).sum() / np.sinh(total) / np.tanh(total)
        by_noise = by_K[:, :-1, :-1].trace(axis1=1, axis2=2).sum()
        by_variances = (by_K @ of_three * of_three).sum(axis=(0, 1))
        slopes = np.exp(logs) * np.concatenate([by_rates, [by_noise], by_variances])
        slopes[:width] += 2.0 * apart
        return float(size), slopes

    best = opt.minimize(
        loss,
        np.log([*[_START[0]] * width, _START[1], *[start] * len(triples)]),
        jac=True,
        method="L-BFGS-B",
        bounds=np.log(
            [*[_RATES] * width, _NOISES, *[(smallest, largest)] * len(triples)]
        ),
        options={"maxiter": _STEPS},
    )
    return process_of(best.x)


def standing_out(signs: Array, odd: Array) -> Indices:
    """Triples with an effect (T, 3), for sets (G, n, D) and o (N, G, n); the last: all.

    Linear parts of o are removed. In fewer than ten games, effects of one look alike.
    """
    n_games, n_sets, width = signs.shape
    if n_games < N_DRAWN_BLOCKS:
        return np.empty((0, 3), np.intp)
    most = int(min(_SCREENED[0], _SCREENED[1] // (n_sets * width**2)))
    signs = signs[:most]
    limit = chdtri(len(signs), _CHANCE) / chdtri(len(signs), 0.5)
    right = odd[: max(most // n_games, 1), :most].transpose(1, 2, 0)
    every = np.array([*combinations(range(width), 3)])
    chosen = np.zeros(len(every), bool)
    scales = np.ones(right.shape[2])
    at_first = 0.0
    for _ in range(_ROUNDS):
        large = np.full(chosen.sum(), _VARIANCES[2])
        process = OddProcess(np.full(width, _START[0]), _START[1], every[chosen], large)
        solved = np.linalg.solve(process.covariances(signs), right)
        if not chosen.any():
            scales = np.sqrt((solved * right).sum(axis=(0, 1)) + _TINY)
        squares = squares_of_three(signs, solved / scales)[tuple(every.T)]
        typical = np.median(squares[~chosen])
        at_first = max(at_first, typical)
        largest = squares.argsort()[::-1][:width]
        least = max(limit * typical, _LARGE * squares.max())
        added = largest[squares[largest] > least]
        n_fitted = width + chosen.sum() + len(added)
        if typical <= _EXPLAINED * at_first or n_fitted > _MOST_FITTED * n_sets:
            break
        chosen[added] = True
        if len(added) == 0 or chosen.all():
            break
    return np.asarray(every[chosen])


def squares_of_three(signs: Array, solved: Array) -> Array:
    """Σ (c'o)² over games (G, n, N), for the products c of columns i < j < k."""
    width = signs.shape[2]
    squares = np.zeros((width, width, width))
    for first in range(width - 2):
        later = signs[:, None, :, first + 1 :]
        weighted = (solved * signs[:, :, [first]]).swapaxes(1, 2)
        slopes = (later * weighted[:, :, :, None]).swapaxes(2, 3) @ later
        of_two = (slopes**2).sum(axis=(0, 1))
        squares[first, first + 1 :, first + 1 :] = np.triu(of_two, 1)
    return squares


def _of_three(signs: Array, triples: Indices) -> Array:
    """The products of three columns, (..., n, T)."""
    return np.asarray(signs[..., triples].prod(axis=-1))


def _without_each(terms: Array) -> Array:
    """Π (1 + terms) + Π (1 − terms) over all others of D, (..., D)."""
    both = np.log1p(np.stack([terms, -terms]))
    return np.exp(both.sum(axis=-1, keepdims=True) - both).sum(axis=0)


def _nodes(width: int) -> tuple[Values, Values]:
    """Nodes and weights of Gauss and Legendre for odd products, in 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(width // 2 + 1)
    return (nodes + 1.0) / 2.0, weights / 2.0


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
    signs = np.concatenate([signs, np.ones((n_games, 1, width))], axis=1)
    compared = odd[:, : max(_COMPARED // n_sets, 1)]
    slopes = np.einsum("gdi,xgi->xgd", np.linalg.pinv(signs), odd)
    odd = odd - np.einsum("gid,xgd->xgi", signs, slopes)  # linear parts are exact
    triples = standing_out(signs, odd)
    process = fitted_process(signs[: compared.shape[1]], compared, triples)
    prior = process.prior()
    of_residuals, of_sets = slopes_of_residuals(signs[:, :-1])
    values = 2.0 * slopes
    expected = np.zeros((3, width))  # error², that by the sum of h²e², its variance / 2
    for part in BATCH_BUDGET.blocks(n_games, 8 * n_sets * (n_sets + n_points)):
        of_players = process.of_values(signs[part])
        inverse = np.linalg.inv(process.covariances(signs[part]))
        operator = of_players @ inverse
        left = np.maximum(prior - (operator * of_players).sum(axis=2), 0.0)
        inverse = inverse[:, :-1]
        variances = 1.0 / np.diagonal(inverse, axis1=1, axis2=2)  # of e
        residuals = np.einsum("gij,xgj->xgi", inverse, odd[:, part]) * variances
        covariances = inverse[:, :, :-1] * variances[:, None] * variances[:, :, None]
        steps = (of_residuals[part] - operator[:, :, :-1]) * of_sets
        values[:, part] += np.einsum("gdi,xgi->xgd", operator, odd[:, part])
        values[:, part] += np.einsum("gdi,xgi->xgd", steps, residuals)
        left += (steps @ covariances * steps).sum(axis=2)
        weights = shares[part, None]
        expected[0] += (weights**2 * left).sum(axis=0)
        steps *= weights[:, :, None]
        index = np.arange(n_games)[part, None] + np.arange(n_sets)
        for block in range(N_DRAWN_BLOCKS):
            inside = (index % N_DRAWN_BLOCKS == block)[:, None]
            blocks[block] += np.einsum("gdi,xgi->xd", steps * inside, residuals)
        steps **= 2
        squares += np.einsum("gdi,xgi->xd", steps, residuals**2)
        expected[1] += (steps * variances[:, None]).sum(axis=(0, 2))
        expected[2] += (steps @ covariances**2 * steps).sum(axis=(0, 2))
    expected[0, expected[1] == 0.0] = 0.0
    expected[1:] = np.maximum(expected[1:], _TINY)
    count = compared[0, :, :-1].size
    n_fitted = width + 1 + len(triples)  # rates, noise and variances
    squares *= count / max(count - n_fitted, 1)
    errors = np.sqrt(squares * expected[0] / expected[1])
    return values, errors * intervals(expected[1] ** 2 / expected[2]), blocks


def intervals(freedom: Array | int) -> Array:
    """Intervals of Student's t, relative to those of known errors."""
    return np.asarray(stdtrit(freedom, 0.975) / stdtrit(np.inf, 0.975))


def slopes_of_residuals(signs: Array) -> tuple[Array, Values]:
    """Slopes of residuals at sets (G, n, D), (G, D, n), and their weights (n,)."""
    size = size_of(signs[0]) - 1
    shares, totals = size_law(signs.shape[2])
    counts = np.bincount(size, minlength=len(shares))[size]
    weights = shares[size] / counts
    weights /= weights.sum()
    centred = signs - signs.mean(axis=2, keepdims=True)
    transposed = centred.swapaxes(1, 2)
    gram = (transposed @ (centred * weights[:, None])).mean(axis=0) / 2.0
    slopes = np.linalg.pinv(gram, _DEPENDENT, hermitian=True) @ transposed
    return slopes, weights * (1.0 - counts / totals[size])
