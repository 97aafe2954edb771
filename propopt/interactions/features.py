"""What is left out: features, each one or several columns of a table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt.errors import InvalidInput
from propopt.tables.names import listed


Places: TypeAlias = NDArray[np.intp]
"""Sets of one size r, (Q, r): each row the places of its features, ascending."""


@final
@dataclass(frozen=True, eq=False)
class Features:
    """M features; columns of one feature are left out, and drawn, together.

    Parameters
    ----------
    names : tuple (M,)
        As columns are called, or groups of them.
    columns : tuple of tuple of int (M,)
        Places of the columns of each feature; each column is in one feature.

    Examples
    --------
    >>> features = Features.of(["a", "b", "c"], groups={"bc": ["b", "c"]})
    >>> features.names, features.columns
    (('a', 'bc'), ((0,), (1, 2)))
    >>> features.columns_of([True, False])
    array([0])
    """

    names: tuple[Hashable, ...]
    columns: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls,
        names: Sequence[Hashable],
        groups: Mapping[Hashable, Sequence[Hashable]] | None = None,
    ) -> Features:
        """One feature for each column, but one for each group.

        Parameters
        ----------
        names : sequence (D,)
            Of the columns.
        groups : mapping of a feature to its columns, optional
            Disjoint.

        Raises
        ------
        InvalidInput
            If a group is empty, names a column that is not there, or one that another
            group has.
        """
        group_of: dict[Hashable, Hashable] = {}
        for group, columns in (groups or {}).items():
            if not columns:
                raise InvalidInput(f"groups: {group!r} has no columns")
            for column in columns:
                if column not in names:
                    raise InvalidInput(
                        f"groups: {group!r} has the column {column!r}, and the columns "
                        f"are {listed(names)}"
                    )
                if column in group_of:
                    raise InvalidInput(f"groups: {column!r} is in two groups")
                group_of[column] = group
        members: dict[Hashable, list[int]] = {}
        for place, name in enumerate(names):
            members.setdefault(group_of.get(name, name), []).append(place)
        return cls(tuple(members), tuple(map(tuple, members.values())))

    def __len__(self) -> int:
        return len(self.names)

    def columns_of(self, kept: Sequence[bool] | NDArray[np.bool_]) -> NDArray[np.intp]:
        """Places of the columns of the features that are kept, ascending."""
        pairs = zip(self.columns, kept, strict=True)
        places = sorted(place for own, keep in pairs if keep for place in own)
        return np.array(places, dtype=np.intp)

    def all_sets(self, order: int) -> Places:
        """All sets of so many features, (C(M, order), order)."""
        n_features = len(self)
        if order == 2:  # a table of 10^6 pairs without a loop
            return np.stack(np.triu_indices(n_features, 1), axis=1)
        from itertools import combinations

        sets = list(combinations(range(n_features), order))
        return np.array(sets, dtype=np.intp).reshape(-1, order)
