"""Scores of a linear function of correlated features, in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from propopt._typing import Array, Values
from propopt.checks import read_array, read_nonnegative
from propopt.errors import InvalidInput
from propopt.interactions.features import Places
from propopt.interactions.left_out import signed_subsets
from propopt.interactions.row_errors import AbsoluteError, RowError, SquaredError
from propopt.interactions.theory.places import read_set_places


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
    error : SquaredError or AbsoluteError, optional
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
    >>> from propopt.interactions.row_errors import AbsoluteError
    >>> linear_refit_scores([1.0, 1.0], np.eye(2), pair, AbsoluteError()).round(4)
    array([0.0769])
    """
    b = read_array(slopes, "slopes", ndim=1)
    sigma = _read_covariance(covariance, len(b))
    scatter = read_nonnegative(noise, "noise")
    mean = _expected(SquaredError() if error is None else error, scatter)
    places = read_set_places(sets, len(b))
    found = np.zeros(len(places))
    for subset, sign in signed_subsets(places.shape[1]):
        found += sign * mean(_missed(b, sigma, places[:, list(subset)]))
    return found


def _missed(b: Values, sigma: Array, sets: Places) -> Values:
    """v_T of each set T, (Q,)."""
    return np.array([_missed_without(b, sigma, own) for own in sets])


def _missed_without(b: Values, sigma: Array, left_out: Places) -> float:
    rest = np.setdiff1d(np.arange(len(b)), left_out)
    own = sigma[np.ix_(left_out, left_out)]
    across = sigma[np.ix_(rest, left_out)]
    known = np.linalg.pinv(sigma[np.ix_(rest, rest)], hermitian=True)
    slopes = b[left_out]
    missed = float(slopes @ (own - across.T @ known @ across) @ slopes)
    return max(missed, 0.0)


def _expected(error: RowError, noise: float) -> _Mean:
    match error:
        case SquaredError():
            return lambda missed: missed
        case AbsoluteError():
            return lambda missed: np.sqrt(2.0 / np.pi * (noise + missed))
    raise InvalidInput(
        "error: scores of linear functions are known in closed form for squared and "
        f"absolute errors, got {error!r}"
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
