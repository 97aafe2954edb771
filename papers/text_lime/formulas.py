"""Formulas of the paper, written down once more as they are printed there.

They have nothing in common with how limits are computed, so that either checks the
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from propopt.base.arrays import Array, Values


class InverseEntries(NamedTuple):
    """c_d and σ_0, ..., σ_3 of Proposition 2."""

    c: float
    sigma: Values


def psi(t: Array, nu: float) -> Array:
    """Weights of samples in which a share t of the words is deleted."""
    return np.asarray(np.exp(-((1.0 - np.sqrt(1.0 - t)) ** 2) / (2.0 * nu**2)))


def alphas(d: int, nu: float, n_moments: int) -> Values:
    """α_p = (1 / d) Σ_s ψ(s / d) Π_{k<p} (d − s − k) / (d − k), (P + 1,)."""
    s = np.arange(1.0, d + 1.0)
    shares = [
        np.prod([(d - s - k) / (d - k) for k in range(p)] or [np.ones(d)], axis=0)
        for p in range(n_moments + 1)
    ]
    return np.array([float(psi(s / d, nu) @ share) / d for share in shares])


def inverse_entries(d: int, nu: float) -> InverseEntries:
    """The entries of Σ⁻¹ times c_d, and c_d."""
    a0, a1, a2 = alphas(d, nu, 2)
    c = (d - 1) * a0 * a2 - d * a1**2 + a0 * a1
    sigma = [
        (d - 1) * a2 + a1,
        -a1,
        ((d - 2) * a0 * a2 - (d - 1) * a1**2 + a0 * a1) / (a1 - a2),
        (a1**2 - a0 * a2) / (a1 - a2),
    ]
    return InverseEntries(float(c), np.array(sigma))


def product_limit(present: Sequence[int], d: int, nu: float) -> Values:
    """Proposition 3: β_0, ..., β_d of the indicator of p words, (d + 1,)."""
    p, (c, sigma) = len(present), inverse_entries(d, nu)
    s0, s1, s2, s3 = sigma
    both = alphas(d, nu, p + 1)[p:]
    inside = np.array([s1 + s2 + (p - 1) * s3, (d - p) * s3])
    outside = np.array([s1 + p * s3, s2 + (d - p - 1) * s3])
    beta = np.full(d + 1, float(outside @ both))
    beta[[1 + j for j in present]] = inside @ both
    beta[0] = np.array([s0 + p * s1, (d - p) * s1]) @ both
    return beta / c


def sum_limit(
    terms: Sequence[tuple[float, Sequence[int]]], d: int, nu: float
) -> Values:
    """The limit of a sum of products of indicators, by linearity."""
    parts = [weight * product_limit(present, d, nu) for weight, present in terms]
    return np.asarray(np.sum(parts, axis=0))


def printed_gap(p: int, d: int, nu: float) -> float:
    """β_j − β_k of a product of p, j in it and k not: with σ_2 + σ_3, as printed."""
    c, sigma = inverse_entries(d, nu)
    a, b = alphas(d, nu, p + 1)[p:]
    return float((sigma[2] + sigma[3]) * (a - b) / c)


def mean_share(omega: Values) -> tuple[Values, Array]:
    """E_j and E_jk by the rule of the paper: (1 − E H_S)^(−1/2), (d,) and (d, d)."""
    d = len(omega)
    one = (1.0 - omega) * (d + 1) / (3.0 * (d - 1))
    two = 1.0 - omega[:, None] - omega[None, :]
    return (1.0 - one) ** -0.5, (1.0 - two * (d + 1) / (4.0 * (d - 2))) ** -0.5
