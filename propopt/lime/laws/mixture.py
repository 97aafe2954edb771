"""Weighted laws of mixtures, made of the logarithms of their masses."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from propopt._typing import Array, Truths
from propopt.lime.laws.tilt import Tilt
from propopt.structures.products import Pieces


def tilt_of_masses(pieces: Pieces, log_masses: Array, ones: Truths) -> Tilt:
    """The weighted law whose pieces have these masses, P(piece) E[kernel | piece].

    Nothing underflows: shares of pieces that are hardly ever drawn keep their digits,
    and 1 − α does where it rounds to 0 beside 1.

    Parameters
    ----------
    pieces : Pieces
        B of them, under the kernel.
    log_masses : array (B, n)
        Logarithms, −∞ for pieces that are not there.
    ones : array of bool (B, n)
        Where the bit is 1.
    """
    inside, log_one = _shares(np.where(ones, log_masses, -np.inf))
    outside, log_zero = _shares(np.where(ones, -np.inf, log_masses))
    log_weight = np.logaddexp(log_one, log_zero)
    return Tilt(
        pieces,
        inside,
        outside,
        np.exp(log_one - log_weight),
        np.exp(log_zero - log_weight),
        log_weight,
    )


def _shares(log_masses: Array) -> tuple[Array, Array]:
    """Shares that sum to 1, or are 0 where all masses are; and the log of the sum."""
    total = logsumexp(log_masses, axis=0)
    some = np.where(np.isneginf(total), 0.0, total)
    return np.exp(log_masses - some), total
