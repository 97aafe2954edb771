"""The rule for long documents and a linear model behind tf-idf: an approximation."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from propopt._typing import Values
from propopt.errors import InvalidInput


_NODES: Final = np.polynomial.legendre.leggauss(200)

_REACH: Final = 40.0
"""Beyond so many bandwidths the weights are exp(−800), which is nothing."""


def tfidf_factor(bandwidths: ArrayLike) -> Values:
    """ρ(ν), of which β_j ≈ ρ λ_j φ(ξ)_j for a linear model behind L2-normalised tf-idf.

    ρ(ν) = ∫ t √(1 − t) ψ(t) dt / ∫ t (1 − t) ψ(t) dt over 0 ≤ t ≤ 1, with the weight
    ψ(t) = exp(−(1 − √(1 − t))² / (2 ν²)) of samples that lack the share t of the words.

    It is an approximation, for documents of many words of which none is a large part of
    the norm: each word k takes ρ λ_k φ(ξ)_k, and what every other word loses or gains
    by the norm, of order 1/d each, is left out, though d such terms add up. With all λ
    and all φ equal and d = 29 the exact coefficients are 0.65 φ at ν = 0.25, and not
    1.31 φ. Mardaoui and Garreau (2021) have 1.36 at all ν, where ρ goes from 1 at ν = 0
    to 1.6 at ν = ∞. :class:`~propopt.structures.subsets.normalised.NormalisedSum` is
    exact.

    Parameters
    ----------
    bandwidths : float or array (K,)
        ν, each positive or inf.

    Returns
    -------
    array (K,)
        ρ.

    Raises
    ------
    InvalidInput
        If a bandwidth is not positive.

    Examples
    --------
    >>> tfidf_factor([0.25, np.inf]).round(3)
    array([1.307, 1.6  ])
    """
    nu = np.atleast_1d(np.asarray(bandwidths, np.float64))
    if not (nu > 0.0).all():
        raise InvalidInput("bandwidths: expected positive numbers, or inf")
    # r = √(1 − t) from where the weights begin: dt = 2 r dr, and both integrands smooth
    x, w = _NODES
    reach = np.minimum(1.0, _REACH * nu)[:, None]
    lack = 0.5 * reach * (1.0 + x)
    r = 1.0 - lack
    weights = w * np.exp(-0.5 * (lack / nu[:, None]) ** 2) * lack * (1.0 + r)
    return np.asarray((weights * r**2).sum(axis=1) / (weights * r**3).sum(axis=1))
