"""What is proved of the number of samples: vacuous, and here to be looked at.

What to take is in :func:`~propopt.lime.finite_samples.required_samples`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from papers.lime.tabular_bounds import exp_or_inf, read_largest
from papers.lime.text_constants import TextConstants, inverse_norm
from propopt.base.arrays import Values
from propopt.base.checks import read_positive
from propopt.lime.text.word_limits import TextLaw


class MomentBounds(NamedTuple):
    """What Mardaoui and Garreau (2021) prove of the constants; all are far off."""

    lowest_alphas: Values
    """Of α_p: (d − p) exp(−1/(2ν²)) / ((p + 1) d), (d + 1,)."""

    highest_alphas: Values
    """(d − p) / ((p + 1) d), (d + 1,): what ν = ∞ gives."""

    lowest_apart: float
    """Of α_1 − α_2: exp(−1/(2ν²)) / 6."""

    lowest_c: float
    """Of c_d: exp(−2/ν²) / 40."""

    highest_inverse_norm: float
    """Of ‖Σ⁻¹‖: 70 d^(3/2) exp(5/(2ν²)), where the norm itself is bounded in d."""


def moment_bounds(n_words: int, bandwidth: float) -> MomentBounds:
    """Bounds of α_p, α_1 − α_2, c_d and ‖Σ⁻¹‖ of the paper, at any bandwidth.

    Parameters
    ----------
    n_words : int
        d ≥ 2.
    bandwidth : float
        ν.

    Examples
    --------
    >>> bounds = moment_bounds(29, 0.25)
    >>> f"{bounds.highest_inverse_norm:.0e}"
    '3e+21'
    >>> round(inverse_norm(TextLaw(0.25), 29), 1)
    28.8
    """
    d, nu = n_words, read_positive(bandwidth, "bandwidth")
    p, smallest = np.arange(d + 1.0), math.exp(-0.5 / nu**2)
    highest = (d - p) / ((p + 1.0) * d)
    return MomentBounds(
        smallest * highest,
        highest,
        smallest / 6.0,
        math.exp(-2.0 / nu**2) / 40.0,
        70.0 * d**1.5 * exp_or_inf(2.5 / nu**2),
    )


def text_theorem_samples(
    error: float, failure: float, largest: float, n_words: int, bandwidth: float
) -> float:
    """So many samples are proved enough for ‖β̂ − β‖ < error (vacuous in practice).

    n ≥ 2⁹ 70⁴ M² d⁹ exp(10/ν²) log(8d/η) / ε²

    (Mardaoui and Garreau 2021, Theorem 2; with M² where it prints M in its other term,
    which would otherwise change with the units of f, that term is always the smaller).
    For 29 words, ν = 0.25 and ε = 0.1 it asks for 5e95 samples where some hundreds do.

    Parameters
    ----------
    error : float
        ε, less than M.
    failure : float
        η, the probability that the error is larger.
    largest : float
        M, a bound of |f|, the text without words included.
    n_words : int
        d.
    bandwidth : float
        ν.

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
    >>> f"{text_theorem_samples(0.1, 0.05, 1.0, n_words=29, bandwidth=0.25):.1e}"
    '4.6e+95'
    """
    M = read_largest(error, failure, largest)
    d, nu = n_words, read_positive(bandwidth, "bandwidth")
    logs = (
        9.0 * math.log(2.0)
        + 4.0 * math.log(70.0)
        + 2.0 * math.log(M / error)
        + 9.0 * math.log(d)
        + math.log(math.log(8.0 * d / failure))
    )
    return exp_or_inf(logs + 10.0 / nu**2)


def hoeffding_samples(
    error: float,
    failure: float,
    largest: float,
    n_words: int,
    bandwidth: float,
    gamma_norm: float | None = None,
) -> float:
    """So many samples are proved enough, by the norm itself and Hoeffding's inequality.

    With K = ‖Σ⁻¹‖ and N = 1 + d + d (d − 1) / 2

    n ≥ (d + 1)² / 2 · max(4 K², 16 K⁴ ‖Γ‖² / ε²) log(4 N / η),
    n ≥ 8 (d + 1) (2 M)² K² / ε² log(4 (d + 1) / η).

    This is less by eighty orders than :func:`text_theorem_samples`, and still vacuous.

    Parameters
    ----------
    error, failure, largest, n_words, bandwidth
        As there.
    gamma_norm : float, optional
        ‖Γ‖ of E[π f] and E[π z_j f]; by default the largest that |f| ≤ M allows.

    Returns
    -------
    float
        n.

    Raises
    ------
    InvalidInput
        If a number is out of its range.

    Examples
    --------
    >>> n = hoeffding_samples(0.1, 0.05, 1.0, n_words=29, bandwidth=0.25)
    >>> f"{n:.1e}"
    '1.8e+13'
    """
    M = read_largest(error, failure, largest)
    d = n_words
    law = TextLaw(read_positive(bandwidth, "bandwidth"))
    K = inverse_norm(law, d)
    if gamma_norm is None:
        zero, one = TextConstants(law, d).alphas(1)
        gamma_norm = M * math.sqrt(zero**2 + d * one**2)
    n_entries = 1 + d + d * (d - 1) // 2
    of_matrix = max(4.0 * K**2, 16.0 * K**4 * gamma_norm**2 / error**2)
    first = 0.5 * (d + 1) ** 2 * of_matrix * math.log(4.0 * n_entries / failure)
    second = 8.0 * (d + 1) * (2.0 * M * K / error) ** 2
    return max(first, second * math.log(4.0 * (d + 1) / failure))
