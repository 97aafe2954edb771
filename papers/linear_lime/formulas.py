"""The paper's formula as it is printed, on SciPy's normal law, of N(0, 1) and p = 4."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from propopt.base.arrays import Values


def printed_linear_limit(
    slopes: Values, base: float, width: float, row: Values, *, root: bool = True
) -> Values:
    """β_j = −a_j θ_j / (α_j (1 − α_j)), intercept first, (D + 1,).

    With s² = ν² / (ν² + 1), or s itself as the paper prints it, without ``root``.
    """
    ends = norm.ppf(np.arange(5) / 4)
    place = np.searchsorted(ends, row, side="right") - 1
    square = width**2 / (width**2 + 1.0)
    middle, s = row / (width**2 + 1.0), np.sqrt(square) if root else square
    law = norm(middle, s)
    low, high = ends[place], ends[place + 1]
    alpha = law.cdf(high) - law.cdf(low)
    theta = s**2 * (law.pdf(high) - law.pdf(low))
    gains = -theta / (alpha * (1.0 - alpha))
    intercept = base + slopes @ (middle + theta / (1.0 - alpha))
    return np.r_[intercept, slopes * gains]
