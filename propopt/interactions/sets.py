"""Which sets of features are scored, as a user names them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from propopt.checks import did_you_mean, read_count
from propopt.errors import InvalidInput
from propopt.interactions.features import Features, Places
from propopt.tables.names import listed


SetChoice: TypeAlias = Literal["all"] | Sequence[Sequence[Hashable]]
"""All sets of a size, or some by the names of their features."""


def read_sets(sets: SetChoice, order: int, features: Features) -> Places:
    """The places of the features of each set, (Q, r), ascending in each row.

    Parameters
    ----------
    sets : "all" or sequence of sequences of names
        All of one size, each once.
    order : int
        The size of ``"all"``.
    features : Features
        M features.

    Raises
    ------
    InvalidInput
        If there is no set, a name is unknown, or two sets are the same or of two sizes.

    Examples
    --------
    >>> features = Features.of(["age", "height", "weight"])
    >>> read_sets([("weight", "age")], 2, features)
    array([[0, 2]])
    """
    if isinstance(sets, str):
        if sets != "all":
            raise InvalidInput(f"sets: expected 'all' or sets of names, got {sets!r}")
        return features.all_sets(read_order(order, len(features)))
    own = [_read_set(one, features) for one in _as_list(sets, "sets")]
    if not own:
        raise InvalidInput("sets: expected at least one set, got none")
    sizes = sorted({len(one) for one in own})
    if len(sizes) > 1:
        raise InvalidInput(
            f"sets: expected sets of one size, got sizes {listed(sizes)}; score them "
            "one after the other, by interactions()"
        )
    if len(set(own)) < len(own):
        twice = next(one for k, one in enumerate(own) if one in own[:k])
        names = tuple(features.names[place] for place in twice)
        raise InvalidInput(f"sets: {names!r} appears more than once")
    return np.array(own, dtype=np.intp)


def read_order(order: object, n_features: int) -> int:
    """How many features sets have, of so many.

    Raises
    ------
    InvalidInput
        If it is no number of them.
    """
    size = read_count(order, "order")
    if size > n_features:
        raise InvalidInput(
            f"order: expected at most {n_features}, of {n_features} feature(s), got "
            f"{size}"
        )
    return size


def _read_set(names: Any, features: Features) -> tuple[int, ...]:
    own = _as_list(names, "sets: a set")
    places = tuple(sorted(_place(name, features) for name in own))
    if not places:
        raise InvalidInput("sets: expected features in each set, got an empty one")
    if len(set(places)) < len(places):
        raise InvalidInput(f"sets: {tuple(own)!r} names a feature twice")
    return places


def _as_list(given: Any, what: str) -> list[Any]:
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise InvalidInput(f"{what}: expected names in a list, got {given!r}")
    return list(given)


def _place(name: Hashable, features: Features) -> int:
    if name in features.names:
        return features.names.index(name)
    same = [known for known in features.names if str(known) == str(name)]
    hint = (
        f" (did you mean {same[0]!r}?)"  # a number, where text came
        if same
        else did_you_mean(name, [str(known) for known in features.names])
    )
    raise InvalidInput(
        f"sets: there is no feature {name!r}{hint}; there are {listed(features.names)}"
    )
