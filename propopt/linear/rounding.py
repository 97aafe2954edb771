"""Rounding in double precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


EPSILON = float(np.finfo(float).eps)
"""From one to the next number: twice the unit of rounding."""


class Rounding(NamedTuple):
    """Frobenius norms that errors of A(W) and of AᵀA(W) do not exceed."""

    residual: float
    gradient: float
