"""Columns of a table of which some are left out, and what speaks of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.errors import InvalidInput


ColumnChoice: TypeAlias = Any
"""As scikit-learn has it: a name or number, a slice, or a list or mask of many."""


@final
@dataclass(frozen=True, eq=False)
class SomeColumns:
    """The D columns that an estimator was written for, and which of them it sees.

    Parameters
    ----------
    names : tuple (D,) or None
        None of an array.
    kept : array of bool (D,)
        Which are left.
    table : table or None
        Those that are left, where it is known: callables choose from it.
    counted : bool
        Whether numbers mean these columns; behind a step that makes other columns they
        do not, but names may have been kept.
    """

    names: tuple[Hashable, ...] | None
    kept: NDArray[np.bool_]
    table: Any = None
    counted: bool = True

    @cached_property
    def dropped(self) -> frozenset[Hashable]:
        """The names of columns that are not there."""
        if self.names is None:
            return frozenset()
        pairs = zip(self.names, self.kept, strict=True)
        return frozenset(name for name, keep in pairs if not keep)

    @cached_property
    def _new_places(self) -> NDArray[np.intp]:
        return np.cumsum(self.kept) - 1

    def beyond(self) -> SomeColumns:
        """The same behind a step that may make other columns of them."""
        return replace(self, table=None, counted=False)

    def among(self, choice: ColumnChoice) -> SomeColumns:
        """Those of a choice, in its order, as a transformer of them sees them."""
        if callable(choice):
            return self.beyond()
        many = self.listed(choice)
        kept = np.array([self.is_kept(column) for column in many], dtype=bool)
        names = None if self.names is None else tuple(map(self._name, many))
        return SomeColumns(names, kept)

    def listed(self, choice: ColumnChoice) -> list[Any]:
        """A choice of columns as a list of names or numbers."""
        if isinstance(choice, slice):
            return self._sliced(choice)
        if isinstance(choice, str) or not isinstance(choice, _LISTS):
            return [choice]
        many = choice.tolist() if hasattr(choice, "tolist") else list(choice)
        if many and all(isinstance(entry, bool | np.bool_) for entry in many):
            return np.flatnonzero(many).tolist()
        return many

    def is_kept(self, column: Any) -> bool:
        """Whether a column is left; a name that is unknown here is not ours to drop."""
        if isinstance(column, str) or not isinstance(column, int | np.integer):
            return column not in self.dropped
        return bool(self.kept[self._place(int(column))])

    def left_of(self, choice: ColumnChoice) -> ColumnChoice:
        """A choice of columns without those that are left out, or an empty list.

        Raises
        ------
        InvalidInput
            If it counts columns where they cannot be counted.
        """
        if callable(choice):
            return choice if self.table is None or self.members(choice) else []
        many = [
            self.renamed(column)
            for column in self.listed(choice)
            if self.is_kept(column)
        ]
        alone = isinstance(choice, str | int | np.integer)
        return many[0] if alone and many else many

    def members(self, choice: ColumnChoice) -> set[Hashable]:
        """The columns of a choice that are left, each by its name if it has one."""
        if callable(choice):
            return set() if self.table is None else set(choice(self.table))
        return {self._name(own) for own in self.listed(choice) if self.is_kept(own)}

    @property
    def left(self) -> set[Hashable]:
        """All columns that are left, each by its name if it has one."""
        names = range(len(self.kept)) if self.names is None else self.names
        return {name for name, keep in zip(names, self.kept, strict=True) if keep}

    def renamed(self, column: Any) -> Any:
        """A name as it is, a number as its new place."""
        if isinstance(column, str) or not isinstance(column, int | np.integer):
            return column
        return int(self._new_places[self._place(int(column))])

    def _name(self, column: Any) -> Hashable:
        if not isinstance(column, int | np.integer):
            return column
        place = self._place(int(column))
        return place if self.names is None else self.names[place]

    def _place(self, number: int) -> int:
        if not self.counted:
            raise InvalidInput(
                f"estimator: column {number} is counted behind a step that makes other "
                "columns, so that it is not known which to leave out; name columns, or "
                "choose by dtype"
            )
        if not -len(self.kept) <= number < len(self.kept):
            raise InvalidInput(
                f"estimator: there is no column {number}; there are {len(self.kept)}"
            )
        return number % len(self.kept)

    def _sliced(self, choice: slice) -> list[Any]:
        ends = [choice.start, choice.stop]
        if not any(isinstance(end, str) for end in ends):
            self._place(0)
            return list(range(len(self.kept)))[choice]
        if self.names is None:
            return []
        first, last = (None if e is None else self.names.index(e) for e in ends)
        # as scikit-learn has it, the last name belongs to the slice
        stop = None if last is None else last + 1
        return list(self.names[slice(first, stop, choice.step)])


_LISTS = Sequence, np.ndarray, pd.Index, pd.Series, set, frozenset
