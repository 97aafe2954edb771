"""Features of a result among columns of a table: by name, or by position of arrays."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain

import numpy as np

from propopt._typing import Positions
from propopt.errors import InvalidInput
from propopt.interactions.result import InteractionScores
from propopt.tables.alignment import order_of
from propopt.tables.names import listed, plain_name


def places_of_columns(
    result: InteractionScores,
    names: Sequence[Hashable] | None,
    n_columns: int,
    whose: str,
) -> list[Positions]:
    """Where the columns of each of the M features of a result stand among others.

    Names decide where both sides have them; a feature of many columns may be one among
    the others, as of a schema. The columns of an array are counted: then position
    decides.

    Parameters
    ----------
    result : InteractionScores
        Of sets of any size.
    names : sequence (D,) or None
        Of the others, where they have names.
    n_columns : int
        D.
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
    >>> one = np.ones(1)
    >>> scores = InteractionScores(
    ...     sets=np.array([[0, 1]]),
    ...     names=("a", "bc"),
    ...     columns=(("a",), ("b", "c")),
    ...     estimates=one,
    ...     standard_errors=one,
    ...     monte_carlo=one,
    ...     counts=one,
    ...     n_rows=10,
    ...     n_candidates=1,
    ...     method="split",
    ...     error="squared",
    ...     units="u²",
    ... )
    >>> places_of_columns(scores, ["c", "b", "a"], 3, "X")
    [array([2]), array([1, 0])]
    """
    members = _members(result, names)
    own = list(chain.from_iterable(members))
    if names is None or (are_counted(own) and not are_counted(names)):
        places = _by_position(own, n_columns, whose, grouped=len(own) > len(members))
    else:
        order = order_of(own, names, "interactions: their columns", whose, counted=True)
        places = np.arange(n_columns) if order is None else np.argsort(order)
    return np.split(places, np.cumsum([len(columns) for columns in members])[:-1])


def are_counted(names: Sequence[Hashable]) -> bool:
    """Whether names only count from zero, in any order: those of the columns of arrays.

    Examples
    --------
    >>> are_counted([0, 2, 1]), are_counted([0, 2]), are_counted(["0"])
    (True, False, False)
    """
    numbers = {name for name in names if isinstance(name, int | np.integer)}
    return numbers == set(range(len(names)))


def _members(
    result: InteractionScores, names: Sequence[Hashable] | None
) -> tuple[tuple[Hashable, ...], ...]:
    """The columns of each feature; the feature itself where the others have it."""
    if names is not None and set(map(plain_name, names)) == set(
        map(plain_name, result.names)
    ):
        return tuple((name,) for name in result.names)
    return result.columns


def _by_position(
    own: Sequence[Hashable], n_columns: int, whose: str, *, grouped: bool
) -> Positions:
    if len(own) != n_columns:
        raise InvalidInput(
            f"interactions: expected scores of the {n_columns} columns of {whose}, got "
            f"those of {len(own)}: {listed(own, 4)}"
        )
    if are_counted(own):
        return np.array(own, dtype=np.intp)
    if grouped:
        raise InvalidInput(
            f"interactions: which of the columns of {whose} are one feature is known "
            "by their names, and they have none; give a DataFrame"
        )
    return np.arange(n_columns)
