"""How strong an interaction must be to stand out of what main effects leak."""

from __future__ import annotations

import numpy as np

from propopt.errors import InvalidInput
from propopt.interactions.row_errors import RowError
from propopt.interactions.theory.shares import KeptShares
from propopt.interactions.theory.targets import ideal_scores


def detectable_ratio(
    shares: KeptShares, error: RowError | None = None, *, order: int = 2
) -> float:
    """V_S / Σ_{j ∈ S} V_j above which S has a higher score than a set without effects.

    S is a set with a joint term and main effects, the other is disjoint from it and has
    neither. For probabilities and patches of m of M features it is (M − 3)/((m − 1)
    (M − 5)).

    Parameters
    ----------
    shares : Refitted, FixedColumns or BernoulliColumns
        How the predictors are had.
    error : SquaredError or ProbabilityError, optional
        By default squared.
    order : int
        Features of S, at least 2.

    Returns
    -------
    float
        Zero where main effects do not leak; infinite where no joint term is enough.

    Raises
    ------
    InvalidInput
        If the order is less than 2, or as :func:`ideal_scores`.

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
    if order < 2:
        raise InvalidInput(f"order: expected at least 2, got {order}")
    own = np.arange(order)
    sets = np.stack([own, own + order])
    alone: dict[tuple[int, ...], float] = {(j,): 1.0 / order for j in range(order)}
    from_effects = ideal_scores(alone, sets, shares, error)
    from_joint = ideal_scores({tuple(range(order)): 1.0}, sets, shares, error)
    behind, ahead = from_effects[1] - from_effects[0], from_joint[0] - from_joint[1]
    if behind <= 0.0:
        return 0.0
    return float(behind / ahead) if ahead > 0.0 else np.inf
