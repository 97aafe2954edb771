"""Powers as sums of exponentials, which turn functions of sums into products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Values


_STEP: Final = 0.26
_TAIL: Final = 37.0
"""Beyond, e^(−u R) adds less than 1e-16 of what it adds up to."""


@final
@dataclass(frozen=True, eq=False)
class ExponentialSum:
    r"""R^(−s) = Σ_q w_q exp(−u_q R) for r ≤ R ≤ 1, to a relative error below 2e-14.

    Γ(s) R^(−s) = ∫ u^(s−1) exp(−u R) du, with u = exp(x − e^(−x)), is by the trapezoid
    rule with step h = 0.26 of the integrand

    g(x) = u(x)^s (1 + e^(−x)) exp(−u(x) R).

    g is analytic, and in the strip of \|Im x\| ≤ 1.5 the integral of \|g\| R^s / Γ(s)
    along any parallel to the real axis is at most M = 12.4 for s = 1/2 and 39.3 for
    s = 1, both at R = 1. The error is thus at most 2 M / (e^(2π 1.5/h) − 1), which is
    4.5e-15 and 1.5e-14 (Trefethen and Weideman 2014, Theorem 5.1); measured are 1e-15
    and 2e-15. Left of the nodes u falls like exp(−e^\|x\|), and right of them uR > 37:
    each end leaves out less than 2e-16. So (33 + log(37/r)) / 0.26 nodes do at most,
    of which few are on the left: 48 for r = 0.01, 66 for 1e-4, 101 for 1e-8.

    Parameters
    ----------
    rates, weights : array (Q,)
        u and w, all positive.

    Examples
    --------
    >>> powers = ExponentialSum.of(0.5, 0.01)
    >>> len(powers.rates)
    48
    >>> R = np.array([0.01, 0.3, 1.0])
    >>> np.exp(-np.outer(R, powers.rates)) @ powers.weights
    array([10.        ,  1.82574186,  1.        ])
    """

    rates: Values
    weights: Values

    @classmethod
    def of(cls, power: float, smallest: float) -> ExponentialSum:
        """The sum for R^(−s) down to the smallest R.

        Parameters
        ----------
        power : float
            s, 1/2 or 1.
        smallest : float
            r, in (0, 1].
        """
        lowest = (math.log(math.gamma(power + 1.0)) + math.log(1e-16)) / power
        highest = math.log(_TAIL / smallest)
        # log u = x − e^(−x) rises; at x = −log(2 − lowest) it is below the lowest
        first = math.floor(-math.log(2.0 - lowest) / _STEP)
        last = math.ceil((highest + 1.0) / _STEP)
        x = _STEP * np.arange(first, last + 1)
        logs = x - np.exp(-x)
        used = (logs > lowest) & (logs < highest)
        slopes = (1.0 + np.exp(-x[used])) * _STEP / math.gamma(power)
        return cls(np.exp(logs[used]), np.exp(power * logs[used]) * slopes)
