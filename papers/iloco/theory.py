"""Scores of the population in closed form: of ideal learners, and linear functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Protocol, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Values
from propopt.base.checks import (
    read_array,
    read_count,
    read_nonnegative,
    read_positive,
)
from propopt.base.errors import InvalidInput
from propopt.interactions.features import FeatureSets
from propopt.interactions.refits import ABSOLUTE, PROBABILITY, SQUARED, RowError


# ---- What scores are in the population, and for patches, in closed form


def read_set_indices(sets: ArrayLike, n_features: int | None = None) -> FeatureSets:
    """Sets of one size as an array of places, (Q, r).

    sets (Q, r).
    """
    indices = np.asarray(sets)
    if indices.ndim != 2 or indices.dtype.kind not in "iu" or indices.shape[1] < 1:
        raise InvalidInput(
            "sets: expected whole numbers of shape (Q, r), one row for each set, got "
            f"{indices.dtype} of shape {indices.shape}"
        )
    indices = indices.astype(np.intp)
    end = np.inf if n_features is None else n_features
    wrong = ((indices < 0) | (indices >= end)).any(axis=1)
    ordered = np.sort(indices, axis=1)
    wrong |= (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if wrong.any():
        up_to = "" if n_features is None else f" less than {n_features}"
        raise InvalidInput(
            f"sets: {indices[wrong][0].tolist()} is no set of different places{up_to}"
        )
    return indices


# ---- Scores of a linear function of correlated features, in closed form


_Mean: TypeAlias = Callable[[Values], Values]
"""From variances of what a predictor misses to its expected errors."""


def linear_refit_scores(
    slopes: ArrayLike,
    covariance: ArrayLike,
    sets: ArrayLike,
    error: RowError | None = None,
    *,
    noise: float = 1.0,
) -> Values:
    """ILOCO of Y = bᵀX + noise, refitted without features: no pair of them interacts.

    The best linear predictor without T misses bᵀX by the variance
    v_T = b_Tᵀ (Σ_TT − Σ_TR Σ_RR⁻¹ Σ_RT) b_T, where R are the features that are left.
    Of squared errors the score is Σ_T (−1)^(|T| + 1) v_T, of absolute ones
    √(2/π) Σ_T (−1)^(|T| + 1) √(σ² + v_T). So scores are zero for independent features
    and squared errors, and else need not be: of a pair with correlation ρ and variances
    of one it is −2ρ b₁ b₂ − ρ² (b₁² + b₂²), and its absolute errors give a positive
    score without any correlation.

    Parameters
    ----------
    slopes : array (M,)
        b.
    covariance : array (M, M)
        Σ, of the features; it may be singular.
    sets : array of int (Q, r)
        Places of features.
    error : RowError, optional
        By default squared. Absolute errors are of normal features and noise; squared
        ones of any features of which the best predictors are linear.
    noise : float
        σ², the variance of the noise; squared errors do not depend on it.

    Returns
    -------
    array (Q,)

    Raises
    ------
    InvalidInput
        If shapes differ, the covariance is not one, or the error is another.

    Examples
    --------
    >>> pair = np.array([(0, 1)])
    >>> linear_refit_scores([2.0, 2.0], [[1.0, 0.9], [0.9, 1.0]], pair).round(2)
    array([-13.68])
    >>> linear_refit_scores([2.0, -2.0], [[1.0, 0.5], [0.5, 1.0]], pair).round(2)
    array([2.])
    >>> from propopt.interactions.refits import ABSOLUTE
    >>> linear_refit_scores([1.0, 1.0], np.eye(2), pair, ABSOLUTE).round(4)
    array([0.0769])
    """
    b = read_array(slopes, "slopes", ndim=1)
    sigma = _read_covariance(covariance, len(b))
    scatter = read_nonnegative(noise, "noise")
    mean = _expected(SQUARED if error is None else error, scatter)
    indices = read_set_indices(sets, len(b))
    result = np.zeros(len(indices))
    for subset, sign in signed_subsets(indices.shape[1]):
        result += sign * mean(_missed(b, sigma, indices[:, list(subset)]))
    return result


def signed_subsets(order: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Subsets T of a set S of so many features, by places in it, with (−1)^(|T| + 1).

    iLOCO_S = Σ_{T ⊆ S} (−1)^(|T| + 1) E[Err(f^(−T))], (Little, Zheng & Allen,
    Definition 2): of one feature LOCO, of two Err_j + Err_k − Err_jk − Err. It is the
    co-Möbius transform, at S, of the game v(A) = −E[Err(f on A)].

    Examples
    --------
    >>> list(signed_subsets(2))
    [((), -1), ((0,), 1), ((1,), 1), ((0, 1), -1)]
    """
    for size in range(order + 1):
        for subset in combinations(range(order), size):
            yield subset, (-1) ** (size + 1)


def _missed(b: Values, sigma: Array, sets: FeatureSets) -> Values:
    """v_T of each set T, (Q,)."""
    return np.array([_missed_without(b, sigma, own) for own in sets])


def _missed_without(b: Values, sigma: Array, left_out: FeatureSets) -> float:
    rest = np.setdiff1d(np.arange(len(b)), left_out)
    own = sigma[np.ix_(left_out, left_out)]
    across = sigma[np.ix_(rest, left_out)]
    known = np.linalg.pinv(sigma[np.ix_(rest, rest)], hermitian=True)
    slopes = b[left_out]
    missed = float(slopes @ (own - across.T @ known @ across) @ slopes)
    return max(missed, 0.0)


def _expected(error: RowError, noise: float) -> _Mean:
    if error == SQUARED:
        return lambda missed: missed
    if error == ABSOLUTE:
        return lambda missed: np.sqrt(2.0 / np.pi * (noise + missed))
    raise InvalidInput(
        "error: scores of linear functions are known in closed form for squared and "
        f"absolute errors, got {error.name}"
    )


def _read_covariance(covariance: ArrayLike, n_features: int) -> Array:
    sigma = read_array(covariance, "covariance", ndim=2)
    if sigma.shape != (n_features, n_features):
        raise InvalidInput(
            f"covariance: expected shape {(n_features, n_features)}, as there are "
            f"{n_features} slopes, got {sigma.shape}"
        )
    scale = np.abs(sigma).max()
    if np.abs(sigma - sigma.T).max() > 1e-9 * scale:
        raise InvalidInput("covariance: expected a symmetric matrix")
    smallest = float(np.linalg.eigvalsh(sigma)[0])
    if smallest < -1e-9 * scale:
        raise InvalidInput(
            f"covariance: expected no negative eigenvalue, got {smallest:.3g}"
        )
    return sigma


# ---- How much of a term of f* is left in a predictor: the share of patches that see it


class KeptShares(Protocol):
    """p_u^T: of the predictors without T, the share whose features include all of u.

    An ideal learner on the features F knows Σ_{u ⊆ F} g_u, so that the mean over its
    predictors without T is Σ_u p_u^T g_u. It depends on the sizes of u and T alone, and
    is 0 where u meets T.
    """

    def share(self, size: int, n_left_out: int) -> float:
        """p_u^T of a set u of ``size`` features, disjoint from T of ``n_left_out``."""


@final
@dataclass(frozen=True)
class Refitted(KeptShares):
    """One predictor on all features but T: p_u^T = 1."""

    def share(self, size: int, n_left_out: int) -> float:
        del size, n_left_out
        return 1.0


@final
@dataclass(frozen=True)
class FixedColumns(KeptShares):
    """Patches of exactly m of M features: p_u^T = C(M − t − s, m − s)/C(M − t, m).

    Without T the other features are in more of the patches, m/(M − t) and not m/M, so
    that main effects are shrunk less: they leak into the scores of other sets.

    Parameters
    ----------
    n_features : int
        M.
    n_kept : int
        m.

    Raises
    ------
    InvalidInput
        If they are no whole numbers, or m is not between 1 and M.

    Examples
    --------
    >>> FixedColumns(n_features=10, n_kept=2).share(1, 0)
    0.2
    """

    n_features: int
    n_kept: int

    def __post_init__(self) -> None:
        n_kept = read_count(self.n_kept, "n_kept")
        if n_kept > read_count(self.n_features, "n_features"):
            raise InvalidInput(
                f"n_kept: expected 1 to n_features={self.n_features}, got {self.n_kept}"
            )

    def share(self, size: int, n_left_out: int) -> float:
        present = self.n_features - n_left_out
        if present < self.n_kept:
            raise InvalidInput(
                f"n_features: patches of {self.n_kept} of {self.n_features} features "
                f"never leave out {n_left_out}; at most {present} would do"
            )
        share = 1.0  # m (m − 1) ... / (M − t) (M − t − 1) ...
        for k in range(size):
            share *= max(self.n_kept - k, 0) / max(present - k, 1)
        return share


@final
@dataclass(frozen=True)
class BernoulliColumns(KeptShares):
    """Patches that each feature enters with probability ρ: p_u^T = ρ^s, whatever T.

    Parameters
    ----------
    probability : float
        ρ = m/M.

    Raises
    ------
    InvalidInput
        If it is not one, or zero.
    """

    probability: float

    def __post_init__(self) -> None:
        if read_positive(self.probability, "probability") > 1.0:
            raise InvalidInput(
                f"probability: expected more than 0 and at most 1, got "
                f"{self.probability}"
            )

    def share(self, size: int, n_left_out: int) -> float:
        del n_left_out
        return self.probability**size


def coefficient(
    share: Callable[[int], float], phi: Callable[[float], float], free: int
) -> float:
    """The coefficient of V_u in the score of S, with ``free`` features outside u.

    Σ_{T ⊆ S} (−1)^(|T| + 1) φ(p_u^T), where p_u^T = share(|T|), and 0 if T meets u.
    Subtracting φ(p_u) from each φ(p_u^T) gives φ(0) − φ(p_u) if u ⊇ S, plus the leak: a
    sum over T disjoint from u of terms that are zero unless p_u^T depends on T.
    """
    whole = phi(share(0))
    leaks = (
        math.comb(free, t) * (-1) ** (t + 1) * (phi(share(t)) - whole)
        for t in range(1, free + 1)
    )
    return (phi(0.0) - whole if free == 0 else 0.0) + sum(leaks)


def shortfall(error: RowError) -> Callable[[float], float] | None:
    """φ such that a predictor Σ_u p_u g_u has the error Σ_u V_u φ(p_u) + constant.

    Squared errors: E(Y − Σ p_u g_u)² = σ² + Σ V_u (1 − p_u)². For Y ~ Bernoulli(f*),
    E|Y − f| = E[f* + f − 2 f f*] is a constant + 2 Σ V_u (1 − p_u). None for other
    errors.
    """
    if error == SQUARED:
        return lambda share: (1.0 - share) ** 2
    if error == PROBABILITY:
        return lambda share: 2.0 * (1.0 - share)
    return None


# ---- Scores of ideal learners: a sum over the terms of f*, for refits and for patches


TermVariances: TypeAlias = Mapping[tuple[int, ...], float]
"""V_u by the places of u."""


def ideal_scores(
    variances: TermVariances,
    sets: ArrayLike,
    shares: KeptShares,
    error: RowError | None = None,
) -> Values:
    """ILOCO of learners that know each term of f* = Σ_u g_u whose features they see.

    Of terms with mean zero that are uncorrelated, with V_u = E g_u². For
    :class:`Refitted` this is what a score means: Σ_{u ⊇ S} V_u for squared errors, and
    twice that for probabilities (Little, Zheng & Allen, Propositions 1 and 2). For
    :class:`BernoulliColumns` each term counts less, and again only if u ⊇ S. For
    :class:`FixedColumns`, as in the paper, terms of smaller sets count too.

    Parameters
    ----------
    variances : mapping of sets of features to floats
        V_u by the places of u; of main effects ``(j,)``.
    sets : array of int (Q, r)
        S, places of features.
    shares : Refitted, FixedColumns or BernoulliColumns
        How the predictors are had.
    error : RowError, optional
        By default squared.

    Returns
    -------
    array (Q,)

    Raises
    ------
    InvalidInput
        If there is no closed form for the error, patches never leave out a set, or
        variances and sets are none.

    Examples
    --------
    >>> from papers.iloco.theory import BernoulliColumns, FixedColumns, Refitted
    >>> terms = {(0,): 4.0, (1,): 4.0, (0, 1): 1.0}
    >>> pairs = np.array([(0, 1), (0, 2), (2, 3)])
    >>> ideal_scores(terms, pairs, Refitted())
    array([1., 0., 0.])
    >>> ideal_scores(terms, pairs, BernoulliColumns(0.5)).round(4)
    array([0.4375, 0.    , 0.    ])
    >>> ideal_scores(terms, pairs, FixedColumns(10, 5)).round(4)
    array([-0.0247, -0.2755,  0.0605])
    """
    phi = shortfall(SQUARED if error is None else error)
    if phi is None:
        raise InvalidInput(
            "error: scores of ideal learners are known in closed form for squared "
            f"errors and probabilities, got {error!r}"
        )
    n_features = shares.n_features if isinstance(shares, FixedColumns) else None
    indices = read_set_indices(sets, n_features)
    order = indices.shape[1]
    result = np.zeros(len(indices))
    for members, variance in _read_variances(variances, n_features).items():
        common = np.isin(indices, members).sum(axis=1)
        kept = partial(shares.share, len(members))
        counts = [coefficient(kept, phi, order - k) for k in range(order + 1)]
        result += variance * np.asarray(counts)[common]
    return result


def _read_variances(variances: TermVariances, n_features: int | None) -> TermVariances:
    end = np.inf if n_features is None else n_features
    for members, variance in variances.items():
        if any(not 0 <= place < end for place in members):
            raise InvalidInput(
                f"variances: {members}: expected places from 0"
                + ("" if n_features is None else f" to {n_features - 1}")
            )
        if not members or len(set(members)) < len(members):
            raise InvalidInput(
                f"variances: expected different features of each term, got {members}"
            )
        if not (np.isfinite(variance) and variance >= 0.0):
            raise InvalidInput(f"variances: {members} has {variance}, not one")
    return variances


# ---- How strong an interaction must be to stand out of what main effects leak


_SETS = np.array([(0, 1), (2, 3)])
"""A pair that interacts, and one that is disjoint from it and has no effects."""


def detectable_ratio(shares: KeptShares, error: RowError | None = None) -> float:
    """V_jk / (V_j + V_k) above which a pair scores higher than one without effects.

    A pair with a joint term and main effects against a pair that has neither and is
    disjoint from it. For probabilities and patches of m of M features it is
    (M − 3)/((m − 1)(M − 5)).

    Parameters
    ----------
    shares : Refitted, FixedColumns or BernoulliColumns
        How the predictors are had.
    error : RowError, optional
        By default squared.

    Returns
    -------
    float
        Zero where main effects do not leak; infinite where no joint term is enough.

    Raises
    ------
    InvalidInput
        As :func:`ideal_scores`.

    Examples
    --------
    >>> from papers.iloco.theory import BernoulliColumns, FixedColumns
    >>> round(detectable_ratio(FixedColumns(n_features=10, n_kept=2)), 3)
    1.077
    >>> round(detectable_ratio(FixedColumns(n_features=10, n_kept=5)), 3)
    0.154
    >>> detectable_ratio(BernoulliColumns(0.2))
    0.0
    """
    own, null = ideal_scores({(0,): 0.5, (1,): 0.5}, _SETS, shares, error)
    behind = float(null - own)
    own, null = ideal_scores({(0, 1): 1.0}, _SETS, shares, error)
    ahead = float(own - null)
    if behind <= 0.0:
        return 0.0
    return behind / ahead if ahead > 0.0 else np.inf
