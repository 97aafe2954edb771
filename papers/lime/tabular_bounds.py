"""The papers' bounds, mended where they are wrong; none tells how many samples to take.

What to take is in :func:`~propopt.lime.finite_samples.required_samples`.
"""

from __future__ import annotations

import math

import numpy as np

from propopt.base.arrays import Array, Values
from propopt.base.checks import read_count, read_positive
from propopt.base.errors import InvalidInput
from propopt.lime.exact_limits import Limits


def tabular_theorem_samples(
    error: float,
    failure: float,
    largest: float,
    n_columns: int,
    kernel_width: float,
    n_bins: int = 4,
) -> float:
    """So many samples are proved enough for ‖β̂_n − β‖ < error (vacuous in practice).

    n ≥ max(2¹² F² d⁴ p⁴ E log(8d/η) / (c^2d ε²), 2¹⁵ F² d⁷ p⁸ E² log(8d/η) / (c^4d ε²))

    with E = exp(1/ν²) and c = 1/p + (1 − 1/p) exp(−1/(2ν²)): Garreau and von Luxburg
    2020, "Looking deeper into tabular LIME", Theorem 1, with F² where it prints F in
    the first term, which otherwise would change with the units of f; the second term is
    always the larger one then. For ten columns
    and the package's width it asks for 3e20 samples where some hundreds do: it is here
    to be looked at. :func:`~propopt.lime.finite_samples.required_samples` says what a
    precision takes.

    Parameters
    ----------
    error : float
        ε, at most F.
    failure : float
        η, the probability that the error is larger.
    largest : float
        F, a bound of |f|.
    n_columns : int
        d.
    kernel_width : float
        ν.
    n_bins : int
        p, at least 2, of equal shares.

    Returns
    -------
    float
        n, which may be infinite.

    Raises
    ------
    InvalidInput
        If a number is out of its range.

    Examples
    --------
    >>> n = tabular_theorem_samples(
    ...     0.1, 0.05, 1.0, n_columns=10, kernel_width=0.75 * 10**0.5
    ... )
    >>> f"{n:.0e}"
    '3e+20'
    """
    F = read_largest(error, failure, largest)
    nu = read_positive(kernel_width, "width")
    if read_count(n_bins, "n_bins") < 2:
        raise InvalidInput("n_bins: expected at least 2")
    d, p = read_count(n_columns, "n_columns"), n_bins
    log_c = math.log(1.0 / p + (1.0 - 1.0 / p) * math.exp(-0.5 / nu**2))
    log_rest = math.log(math.log(8.0 * d / failure)) + 2.0 * math.log(F / error)
    square = 4.0 * math.log(d * p) + 1.0 / nu**2 - 2.0 * d * log_c
    # d⁷ p⁸ E² / c^4d: the other term is smaller by 8 d³ p⁴ E / c^2d at least
    exponent = 15.0 * math.log(2.0) + 2.0 * square - math.log(d) + log_rest
    return exp_or_inf(exponent)


def read_largest(error: float, failure: float, largest: float) -> float:
    """A bound of |f|, with an error below it and a probability that it is larger.

    Raises
    ------
    InvalidInput
        If a number is out of its range.
    """
    bound = read_positive(largest, "largest")
    if not 0.0 < read_positive(error, "error") < bound:
        raise InvalidInput(
            f"error: expected less than largest = {bound:g}, got {error!r}"
        )
    if not 0.0 < read_positive(failure, "failure") < 1.0:
        raise InvalidInput(f"failure: expected a probability, got {failure!r}")
    return bound


def exp_or_inf(log: float) -> float:
    """The number, or inf where float64 has no such one."""
    return math.exp(log) if log < 700.0 else math.inf


def paper_stability(n_columns: int, kernel_width: float, n_bins: int = 4) -> float:
    """The factor that Proposition 2 of the paper claims, false for some parameters.

    ‖β^f − β^g‖ ≤ √(d (9d + 4p²)) exp(1/(2ν²)) / (p − 1) · sup|f − g| is violated by one
    column in eleven bins with ν = 50 and f − g = 1 in the bin of the row, −1 elsewhere:
    √5 = 2.2361 > 2.2208. Its proof needs p − 1 ≤ d exp(1/(2ν²)).
    :func:`stability_factor` holds.

    Parameters
    ----------
    n_columns : int
        d.
    kernel_width : float
        ν.
    n_bins : int
        p, of equal shares.

    Examples
    --------
    >>> round(paper_stability(1, 50.0, n_bins=11), 4)
    2.2208
    """
    d, p, nu = n_columns, n_bins, kernel_width
    return math.sqrt(d * (9 * d + 4 * p**2)) * math.exp(0.5 / nu**2) / (p - 1)


def stability_factor(limits: Limits) -> Values:
    """K with ‖β^f − β^g‖ ≤ K sup|f − g| for any f and g, at any width, (n,).

    K² = (1 + 2 Σ_j α_j)² + 4 D, from |β_j| ≤ 2 sup|h| and |β_0| ≤ (1 + 2 Σ α_j) sup|h|
    for h = f − g: coefficients are differences of means.

    Parameters
    ----------
    limits : Limits
        Of any function: only their α is read.

    Examples
    --------
    >>> import numpy as np
    >>> one = Limits(np.zeros((1, 1)), np.zeros(1), np.array([[0.5]]), np.zeros(1))
    >>> stability_factor(one)
    array([2.82842712])
    """
    of_intercept = 1.0 + 2.0 * limits.alpha.sum(axis=1)
    squares: Array = of_intercept**2 + 4.0 * limits.alpha.shape[1]
    return np.asarray(np.sqrt(squares))
