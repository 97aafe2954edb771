"""Features, sets of features, and how users name them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Indices, Mask
from propopt.base.checks import did_you_mean, read_count
from propopt.base.errors import InvalidInput
from propopt.base.text import repeated
from propopt.tables.columns import OneHot
from propopt.tables.frames import group_of_each, listed
from propopt.tables.schema import TableSchema


FeatureSets: TypeAlias = NDArray[np.intp]
"""Sets of one size r, (Q, r): each row has the indices of its features, ascending."""

FeatureGroups: TypeAlias = Mapping[Hashable, Sequence[Hashable]] | TableSchema
"""A mapping from features to their columns, or a schema that groups its columns."""


WHOLE: Final[FeatureSets] = np.zeros((1, 0), dtype=np.intp)
"""The empty set: the predictor with all features."""


@final
@dataclass(frozen=True, eq=False)
class Features:
    """M features; the columns of one feature are left out, and sampled, together."""

    names: tuple[Hashable, ...]  # (M,): names of columns, or of groups of columns
    # (M,): positions of the columns of each feature; each column is in one feature
    columns: tuple[tuple[int, ...], ...]
    column_names: tuple[tuple[Hashable, ...], ...]  # shape (M,)

    @classmethod
    def of(
        cls, names: Sequence[Hashable], groups: FeatureGroups | None = None
    ) -> Features:
        """One feature for each group, and one for each other column; names (D,)."""
        if isinstance(groups, TableSchema):
            header = list(groups.header)
            if header != list(names):
                raise InvalidInput(
                    f"groups: the schema has the columns {listed(header)}, and the "
                    f"table {listed(list(names))}"
                )
            groups = encoded_groups(groups)
        groups = {} if groups is None else groups
        if not isinstance(groups, Mapping):
            raise InvalidInput(
                "groups: expected a mapping of a feature to its columns, or a "
                f"TableSchema, got {type(groups).__name__}; groups of rows go to "
                "DataSplit(groups=...)"
            )
        group_of = group_of_each(groups, names)
        members: dict[Hashable, list[int]] = {}
        for position, name in enumerate(names):
            members.setdefault(group_of.get(name, name), []).append(position)
        indices = tuple(map(tuple, members.values()))
        column_names = tuple(
            tuple(names[position] for position in columns) for columns in indices
        )
        return cls(tuple(members), indices, column_names)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def of_columns(self) -> NDArray[np.intp]:
        """The feature of each column, (D,)."""
        result = np.empty(sum(map(len, self.columns)), dtype=np.intp)
        for feature, columns in enumerate(self.columns):
            result[list(columns)] = feature
        return result

    def all_sets(self, order: int) -> FeatureSets:
        """All sets of ``order`` features, (C(M, order), order)."""
        n_features = len(self)
        if order == 2:  # a table of 10^6 pairs without a loop
            return np.stack(np.triu_indices(n_features, 1), axis=1)
        sets = list(combinations(range(n_features), order))
        return np.array(sets, dtype=np.intp).reshape(len(sets), order)

    def some_sets(self, order: int, n_sets: int) -> FeatureSets:
        """All sets of ``order`` features, or ``n_sets`` of them drawn with seed 0."""
        n_features = len(self)
        rng = np.random.default_rng(0)
        if comb(n_features, order) <= n_sets:
            return self.all_sets(order)
        keys = rng.random((n_sets, n_features))
        drawn = np.argpartition(keys, order - 1, axis=1)[:, :order]
        return np.unique(np.sort(drawn, axis=1), axis=0).astype(np.intp)


def encoded_groups(schema: TableSchema) -> dict[Hashable, Sequence[Hashable]]:
    """Columns that one-hot encode a feature, by the name of the feature."""
    return {
        column.name: column.members
        for column in schema.columns
        if isinstance(column, OneHot)
    }


# ---- The sets of features that a user names


SetChoice: TypeAlias = Literal["all"] | Sequence[Sequence[Hashable]]
"""All sets of a size, or some sets by the names of their features."""


def read_sets(sets: SetChoice, order: int, features: Features) -> FeatureSets:
    """Indices of the features of each set, (Q, r), ascending in each row."""
    if isinstance(sets, str):
        if sets != "all":
            raise InvalidInput(
                f"sets: expected 'all' or a list of sets of feature names, got {sets!r}"
            )
        size = read_count(order, "order")
        if size > len(features):
            raise InvalidInput(
                f"order: expected at most {len(features)}, the number of features, got "
                f"{size}"
            )
        return features.all_sets(size)
    chosen = [_read_set(members, features) for members in _as_list(sets, "sets")]
    if not chosen:
        raise InvalidInput("sets: expected at least one set, got none")
    sizes = sorted({len(members) for members in chosen})
    if len(sizes) > 1:
        raise InvalidInput(
            f"sets: expected sets of one size, got sizes {listed(sizes)}; score each "
            "size by a call of interactions(sets=...)"
        )
    twice = repeated(chosen)
    if twice:
        names = tuple(features.names[position] for position in twice[0])
        raise InvalidInput(f"sets: {names!r} appears more than once")
    return np.array(chosen, dtype=np.intp)


def _read_set(names: Any, features: Features) -> tuple[int, ...]:
    members = _as_list(names, "sets: a set")
    indices = tuple(sorted(_position(name, features) for name in members))
    if not indices:
        raise InvalidInput("sets: expected features in each set, got an empty one")
    if len(set(indices)) < len(indices):
        raise InvalidInput(f"sets: {tuple(members)!r} names a feature twice")
    return indices


def _as_list(user_values: Any, label: str) -> list[Any]:
    if isinstance(user_values, str | bytes) or not isinstance(user_values, Iterable):
        raise InvalidInput(f"{label}: expected names in a list, got {user_values!r}")
    return list(user_values)


def _position(name: Hashable, features: Features) -> int:
    if name in features.names:
        return features.names.index(name)
    same = [feature for feature in features.names if str(feature) == str(name)]
    hint = (
        f" (did you mean {same[0]!r}?)"  # 1, where a user wrote "1"
        if same
        else did_you_mean(name, [str(feature) for feature in features.names])
    )
    raise InvalidInput(
        f"sets: there is no feature {name!r}{hint}; the features are "
        f"{listed(features.names)}"
    )


# ---- Sets with some features, and distinct subsets of sets


def with_any(sets: FeatureSets, features: Sequence[int]) -> Mask:
    """Whether sets (Q, r) have any of some features, by index, (Q,)."""
    return np.asarray(np.isin(sets, np.array(features, np.intp)).any(axis=1))


def subsets_of(sets: FeatureSets, size: int) -> tuple[FeatureSets, Indices]:
    """Distinct subsets of sets (q, r), and which of them each set contains.

    Returns
    -------
    array of int (n_subsets, size)
        The subsets.
    array of int (C(r, size), q)
        Indices of the subsets of each set.
    """
    n_sets, order = sets.shape
    chosen = np.array(list(combinations(range(order), size)), dtype=np.intp)
    every = sets[:, chosen].swapaxes(0, 1).reshape(len(chosen) * n_sets, size)
    subsets, indices = np.unique(every, axis=0, return_inverse=True)
    return subsets, indices.reshape(-1, n_sets)
