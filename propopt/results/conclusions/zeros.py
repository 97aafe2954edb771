"""What counts as zero among attributions, and how two rows differ."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Attributions


ZERO: Final = 1e-12
"""Attributions up to this share of the largest count as zero."""


def without_dust(W: Attributions) -> Attributions:
    """W with entries up to 1e-12 max|w| set to zero."""
    return np.where(np.abs(W) <= ZERO * np.abs(W).max(initial=0.0), 0.0, W)


def signs_of(W: Attributions) -> NDArray[np.int8]:
    """−1, 0 or 1 of each entry."""
    return np.sign(without_dust(W)).astype(np.int8)


def root_mean_square(W: Array) -> float:
    """√(mean of squares), without overflow."""
    unit = float(np.abs(W).max(initial=0.0)) or 1.0
    return unit * float(np.sqrt(np.mean((W / unit) ** 2)))
