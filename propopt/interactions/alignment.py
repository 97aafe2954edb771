"""The features of a result among the columns of a table: by name, else by position."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from propopt._typing import Positions
from propopt.errors import InvalidInput
from propopt.interactions.result import InteractionScores
from propopt.tables.alignment import order_of
from propopt.tables.names import listed


def places_of_features(
    result: InteractionScores,
    names: Sequence[Hashable] | None,
    n_features: int,
    whose: str,
) -> Positions:
    """Where each of the M features of a result stands among others.

    Names decide where both sides have them. The columns of an array are counted: then
    position decides.

    Parameters
    ----------
    result : InteractionScores
        Of sets of any size.
    names : sequence (M,) or None
        Of the others, where they have names.
    n_features : int
        How many others there are.
    whose : str
        What errors call them.

    Raises
    ------
    InvalidInput
        If there are other names, or another number, than the result has; or if both
        are counted in another order.

    Examples
    --------
    >>> from propopt.interactions import InteractionScores
    >>> one, none = np.zeros(1), np.zeros(1)
    >>> scores = InteractionScores(
    ...     sets=np.array([[0, 1]]),
    ...     names=("a", "b"),
    ...     estimates=one,
    ...     standard_errors=one,
    ...     monte_carlo=none,
    ...     counts=one,
    ...     n_rows=10,
    ...     n_candidates=1,
    ...     method="split",
    ...     error="squared",
    ...     units="u²",
    ... )
    >>> places_of_features(scores, ["b", "a"], 2, "X")
    array([1, 0])
    """
    own = result.names
    unnamed = names is None or (
        _counted(own) and not any(isinstance(name, int) for name in names)
    )
    if len(own) != n_features and unnamed:
        raise InvalidInput(
            f"interactions: expected scores of the {n_features} features of {whose}, "
            f"got those of {len(own)}: {listed(own, 4)}"
        )
    if unnamed:
        return np.arange(n_features)
    order = order_of(own, names, "interactions: their features", whose, counted=True)
    return np.arange(n_features) if order is None else np.argsort(order)


def _counted(names: Sequence[Hashable]) -> bool:
    return tuple(names) == tuple(range(len(names)))
