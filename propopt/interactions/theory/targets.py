"""Scores of ideal learners: a sum over the terms of f*, for refits and for patches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from propopt._typing import Values
from propopt.errors import InvalidInput
from propopt.interactions.row_errors import ProbabilityError, RowError, SquaredError
from propopt.interactions.theory.places import read_set_places
from propopt.interactions.theory.shares import FixedColumns, KeptShares


TermVariances: TypeAlias = Mapping[tuple[int, ...], float]
"""V_u by the places of u."""

Shortfall: TypeAlias = Callable[[float], float]
"""φ: a predictor Σ_u p_u g_u has the expected error Σ_u V_u φ(p_u), and a constant."""


def shortfall(error: RowError) -> Shortfall | None:
    """φ of an error; None where no such identity holds.

    Squared: E(Y − Σ p_u g_u)² = σ² + Σ V_u (1 − p_u)². Of Y ~ Bernoulli(f*),
    E|Y − f| = E[f* + f − 2 f f*], which is a constant + 2 Σ V_u (1 − p_u).
    """
    match error:
        case SquaredError():
            return lambda share: (1.0 - share) ** 2
        case ProbabilityError():
            return lambda share: 2.0 * (1.0 - share)
    return None


def coefficient(
    shares: KeptShares, phi: Shortfall, order: int, size: int, common: int
) -> float:
    """What V_u counts in the score of S: of |S|, |u| and |u ∩ S|.

    Σ_{T ⊆ S} (−1)^(|T| + 1) φ(p_u^T), where p_u^T = 0 if T meets u. With φ(p_u) taken
    off each φ(p_u^T) this is φ(0) − φ(p_u) if u ⊇ S, and what leaks: a sum over T
    disjoint from u of terms that are zero unless p_u^T depends on T.
    """
    free, whole = order - common, phi(shares.share(size, 0))
    leaks = (
        comb(free, t) * (-1) ** (t + 1) * (phi(shares.share(size, t)) - whole)
        for t in range(1, free + 1)
    )
    return (phi(0.0) - whole if free == 0 else 0.0) + sum(leaks)


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
    error : SquaredError or ProbabilityError, optional
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
    >>> from propopt.interactions.theory import BernoulliColumns, FixedColumns, Refitted
    >>> terms = {(0,): 4.0, (1,): 4.0, (0, 1): 1.0}
    >>> pairs = np.array([(0, 1), (0, 2), (2, 3)])
    >>> ideal_scores(terms, pairs, Refitted())
    array([1., 0., 0.])
    >>> ideal_scores(terms, pairs, BernoulliColumns(0.5)).round(4)
    array([0.4375, 0.    , 0.    ])
    >>> ideal_scores(terms, pairs, FixedColumns(10, 5)).round(4)
    array([-0.0247, -0.2755,  0.0605])
    """
    phi = shortfall(SquaredError() if error is None else error)
    if phi is None:
        raise InvalidInput(
            "error: scores of ideal learners are known in closed form for squared "
            f"errors and probabilities, got {error!r}"
        )
    n_features = shares.n_features if isinstance(shares, FixedColumns) else None
    places = read_set_places(sets, n_features)
    order = places.shape[1]
    found = np.zeros(len(places))
    for members, variance in _read_variances(variances, n_features).items():
        common = np.isin(places, members).sum(axis=1)
        counts = [
            coefficient(shares, phi, order, len(members), k) for k in range(order + 1)
        ]
        found += variance * np.asarray(counts)[common]
    return found


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
