"""How strong an interaction must be to stand out of what main effects leak."""

from __future__ import annotations

import numpy as np

from propopt.interactions.row_errors import RowError
from propopt.interactions.theory.shares import KeptShares
from propopt.interactions.theory.targets import ideal_scores


_SETS = np.array([(0, 1), (2, 3)])
"""A pair that interacts, and one that is disjoint from it and has no effects."""


def detectable_ratio(shares: KeptShares, error: RowError | None = None) -> float:
    """V_jk / (V_j + V_k) above which a pair scores higher than one without effects.

    A pair with a joint term and main effects against a pair that has neither and is
    disjoint from it. For probabilities and patches of m of M features it is
    (M − 3)/((m − 1)(M − 5)).

    Parameters
    ----------
    shares : Refitted, FixedColumns or BernoulliColumns
        How the predictors are had.
    error : SquaredError or ProbabilityError, optional
        By default squared.

    Returns
    -------
    float
        Zero where main effects do not leak; infinite where no joint term is enough.

    Raises
    ------
    InvalidInput
        As :func:`ideal_scores`.

    Examples
    --------
    >>> from propopt.interactions.theory import BernoulliColumns, FixedColumns
    >>> round(detectable_ratio(FixedColumns(n_features=10, n_kept=2)), 3)
    1.077
    >>> round(detectable_ratio(FixedColumns(n_features=10, n_kept=5)), 3)
    0.154
    >>> detectable_ratio(BernoulliColumns(0.2))
    0.0
    """
    own, null = ideal_scores({(0,): 0.5, (1,): 0.5}, _SETS, shares, error)
    behind = float(null - own)
    own, null = ideal_scores({(0, 1): 1.0}, _SETS, shares, error)
    ahead = float(own - null)
    if behind <= 0.0:
        return 0.0
    return behind / ahead if ahead > 0.0 else np.inf
