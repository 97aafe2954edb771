"""What is left out: features, each one or several columns of a table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Values
from propopt.checks import did_you_mean
from propopt.errors import InvalidInput
from propopt.tables.columns import OneHot
from propopt.tables.names import listed
from propopt.tables.schema import TableSchema


Places: TypeAlias = NDArray[np.intp]
"""Sets of one size r, (Q, r): each row the places of its features, ascending."""

FeatureGroups: TypeAlias = Mapping[Hashable, Sequence[Hashable]] | TableSchema
"""A feature and its columns, for each group; or a schema, whose groups count."""


WHOLE: Final[Places] = np.zeros((1, 0), dtype=np.intp)
"""The empty set: nothing is left out of the whole predictor."""


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
    column_names : tuple of tuple (M,)
        Their names.

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
    column_names: tuple[tuple[Hashable, ...], ...]

    @classmethod
    def of(
        cls, names: Sequence[Hashable], groups: FeatureGroups | None = None
    ) -> Features:
        """One feature for each column, but one for each group.

        Parameters
        ----------
        names : sequence (D,)
            Of the columns.
        groups : mapping of a feature to its columns, or TableSchema, optional
            Disjoint. Of a schema the columns that one-hot encode a feature.

        Raises
        ------
        InvalidInput
            If a group is empty, names a column that is not there, or one that another
            group has, or is called as a column of no group.
        """
        if isinstance(groups, TableSchema):
            groups = _one_hot_groups(groups, names)
        group_of = _group_of({} if groups is None else groups, names)
        members: dict[Hashable, list[int]] = {}
        for place, name in enumerate(names):
            members.setdefault(group_of.get(name, name), []).append(place)
        places = tuple(map(tuple, members.values()))
        own = tuple(tuple(names[place] for place in columns) for columns in places)
        return cls(tuple(members), places, own)

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
        sets = list(combinations(range(n_features), order))
        return np.array(sets, dtype=np.intp).reshape(len(sets), order)


def pairs_matrix(values: Values, pairs: Places, n_features: int) -> Array:
    """Numbers of pairs as a symmetric matrix (M, M); NaN where there is none.

    Examples
    --------
    >>> pairs_matrix(np.array([2.0]), np.array([[0, 1]]), 2)
    array([[nan,  2.],
           [ 2., nan]])
    """
    matrix = np.full((n_features, n_features), np.nan)
    first, second = pairs.T
    matrix[first, second] = matrix[second, first] = values
    return matrix


def encoded_groups(schema: TableSchema) -> dict[Hashable, Sequence[Hashable]]:
    """Columns that one-hot encode a feature, by its name."""
    return {own.name: own.members for own in schema.columns if isinstance(own, OneHot)}


def _one_hot_groups(
    schema: TableSchema, names: Sequence[Hashable]
) -> dict[Hashable, Sequence[Hashable]]:
    """Groups of a schema, of the table that it is of."""
    header = list(schema.header)
    if header != list(names):
        raise InvalidInput(
            f"groups: the schema has the columns {listed(header)}, and the table "
            f"{listed(list(names))}"
        )
    return encoded_groups(schema)


def _group_of(
    groups: Mapping[Hashable, Sequence[Hashable]], names: Sequence[Hashable]
) -> dict[Hashable, Hashable]:
    """The group of each column that is in one."""
    if not isinstance(groups, Mapping):
        raise InvalidInput(
            "groups: expected a mapping of a feature to its columns, or a TableSchema, "
            f"got {type(groups).__name__}; groups of rows are those of "
            "DataSplit(groups=...)"
        )
    known, group_of = set(names), dict[Hashable, Hashable]()
    for group, columns in groups.items():
        given: object = columns
        if isinstance(given, str) or not isinstance(given, Sized) or not len(given):
            raise InvalidInput(
                f"groups: {group!r}: expected a list of its columns, got {columns!r}"
            )
        for column in columns:
            if column not in known:
                near = did_you_mean(column, [str(name) for name in names])
                raise InvalidInput(
                    f"groups: {group!r} has the column {column!r}{near}, and the "
                    f"columns are {listed(list(names))}"
                )
            if column in group_of:
                raise InvalidInput(
                    f"groups: {column!r} is in two groups, or twice in one"
                )
            group_of[column] = group
    clashes = [name for name in groups if name in known and name not in group_of]
    if clashes:
        raise InvalidInput(
            f"groups: {listed(clashes)}: a column of no group is called so too"
        )
    return group_of
