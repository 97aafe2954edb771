"""What LIME gives with n samples, in its mean: ridge, and the row as a sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from propopt._typing import Array, Truths, Values
from propopt.lime.expectations.limits import Limits
from propopt.lime.finite.fit import FiniteFit


class Expected(NamedTuple):
    """Coefficients of n samples in their mean.

    ``lime`` has such ones: it draws n − 1 samples, adds the row itself with weight 1,
    and penalises all coefficients but the intercept by λ = 1.
    """

    coefficients: Array
    """b_1, ..., b_D, (n, D)."""

    intercept: Values
    """b_0, (n,)."""


def expected(
    limits: Limits,
    values: Values | None,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
    kept: Truths | None = None,
) -> Expected:
    """What ``lime`` gives with n samples, to the first order in 1 / n.

    The solution of the mean normal equations, ((n − 1) Σ + v vᵀ + λ D) b =
    (n − 1) Γ + v f(ξ), see :class:`~propopt.lime.finite.fit.FiniteFit`. It was within
    noise of the package down to a total weight n C of about 1e-3.

    Parameters
    ----------
    limits : Limits
        What infinitely many samples give.
    values : array (n,) or None
        f at the rows; not needed without ``first_row``.
    n_samples : int
        Samples, the row itself included.
    ridge : float
        λ.
    first_row : bool
        Whether the row itself is the first sample, as in the package.
    kept : array of bool (n, D), optional
        The columns that are fitted, of :func:`kept_columns`; by default all.

    Returns
    -------
    Expected
        Coefficients and intercept.

    Raises
    ------
    InvalidInput
        If a setting is out of its range, or values are needed and not given.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.lime.expectations import Limits
    >>> limits = Limits(np.array([[3.0]]), np.zeros(1), np.array([[0.25]]), np.zeros(1))
    >>> expected(limits, np.array([2.25]), 1001).coefficients.round(3)
    array([[2.984]])
    """
    fit = FiniteFit.of(limits, values, n_samples, ridge, first_row, kept)
    return Expected(fit.coefficients, fit.intercept)


def ridge_limit(limits: Limits, n_samples: int, ridge: float = 1.0) -> Expected:
    """What ridge leaves: β_j V_j / (V_j + λ), V_j = n C α_j (1 − α_j).

    The intercept is E_Q f − Σ α_j b_j: it is not penalised.

    Parameters
    ----------
    limits : Limits
        What infinitely many samples give.
    n_samples : int
        All of them drawn.
    ridge : float
        λ.

    Returns
    -------
    Expected
        Coefficients and intercept.
    """
    return expected(limits, None, n_samples, ridge, first_row=False)


def first_row_shift(limits: Limits, values: Values, n_samples: int) -> Expected:
    """How far the row itself as a sample moves the fit, to the first order.

    δβ_j = (f(ξ) − g(ξ)) / (n C α_j) and δβ_0 = (1 − D) (f(ξ) − g(ξ)) / (n C), with
    g(ξ) = Σ β the fit at the row; for a column that is always in the bin of the row 0.

    Parameters
    ----------
    limits : Limits
        What infinitely many samples give.
    values : array (n,)
        f at the rows.
    n_samples : int
        n.

    Returns
    -------
    Expected
        δβ_1, ..., δβ_D, and δβ_0.
    """
    per_weight = (values - limits.at_row) * np.exp(-limits.log_weight) / n_samples
    alpha = limits.alpha
    moves = (alpha > 0.0) & (alpha < 1.0)
    shifts = np.zeros(alpha.shape)
    np.divide(per_weight[:, None], alpha, out=shifts, where=moves)
    return Expected(shifts, (1 - moves.sum(axis=1)) * per_weight)
