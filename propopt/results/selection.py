"""Rows and columns of results, which are selected as those of a DataFrame.

One rule, that of ``DataFrame.iloc``: one row or one column is a Series, several rows
are a result of these rows, and several columns a DataFrame::

    best[3], best["bp"], best[:, "bp"]          Series
    best[[3]], best[3:7], best[X["bp"] > 100]   results of the same kind
    best[3:7, ["bp", "s5"]]                     DataFrame
    best[3, "bp"]                               a number
    best.loc["p7"], best.loc["p7":"p9", "bp"]   rows by their names
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence, Sized
from functools import cached_property, partial
from itertools import islice
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.errors import IndexingError

from propopt.base.arrays import Indices
from propopt.base.checks import did_you_mean
from propopt.base.errors import InvalidInput
from propopt.results.result import Result
from propopt.tables.frames import Labels, aligned_vector, listed


@Sequence.register  # so pandas makes a table of rows with their names, not an array
class Selectable(Result):
    """A result with a number, or none, for each row and column.

    Subclasses have ``labels`` and a ``shape``, and make tables and results of rows.
    """

    @property
    @abstractmethod
    def labels(self) -> Labels:
        """The names of rows and columns."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The numbers N of rows and D of columns."""

    @abstractmethod
    def _table_of(self, rows: Indices) -> pd.DataFrame:
        """The numbers of some rows as a DataFrame with the names of the columns."""

    @abstractmethod
    def _of_rows(self, rows: Indices) -> Self:
        """A result of some rows, by their positions."""

    def _named_table(self, rows: Indices) -> pd.DataFrame:
        return self._table_of(rows).set_axis(self._places.index[rows], axis=0)

    @property
    def row_names(self) -> tuple[Hashable, ...]:
        """The names of rows or documents; their numbers if they have no names."""
        names = self.labels.points
        return tuple(range(len(self))) if names is None else names

    @cached_property
    def _places(self) -> pd.Series[Any]:
        """The position of each row, by name."""
        return pd.Series(np.arange(len(self)), [*self.row_names])

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[pd.Series[Any]]:
        return (row for _, row in self._named_table(self._places.to_numpy()).iterrows())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if dtype == np.dtype(object):
            return super().__array__(dtype)
        return np.array(self._named_table(self._places.to_numpy()), dtype, copy=copy)

    def __getitem__(self, key: Any) -> Any:
        return self._selected(key)

    @property
    def loc(self) -> Any:
        """Rows by their names, and columns, as ``DataFrame.loc`` selects them."""
        return _Indexer(partial(self._selected, by_name=True))

    def _selected(self, key: Any, *, by_name: bool = False) -> Any:
        rows = key
        columns: Any = slice(None)
        if isinstance(key, tuple) and len(key) == 2:
            rows, columns = key
        elif not by_name and _are_names(key):
            rows = columns
            columns = key
        places = _positions(self._places, rows, "rows", by_name=by_name)
        chosen = np.atleast_1d(places)
        if not len(chosen):
            raise InvalidInput("rows: expected at least one, got none")
        whole = isinstance(columns, slice) and columns == slice(None)
        if whole and np.ndim(places):
            everything = np.array_equal(chosen, self._places)
            return self if everything else self._of_rows(chosen)
        table = self._named_table(chosen)
        if not whole:
            places_of = pd.Series(range(table.shape[1]), table.columns)
            by_name = by_name or _are_names(columns)
            chosen = _positions(places_of, columns, "columns", by_name=by_name)
            table = table.iloc[:, chosen]
        return table if np.ndim(places) else table.iloc[0]


class _Indexer:
    """The words before the square brackets of a selection."""

    def __init__(self, select: Callable[[Any], Any]) -> None:
        self._select = select

    def __getitem__(self, key: Any) -> Any:
        return self._select(key)


def _are_names(key: Any) -> bool:
    """True if a key has names, such as a word, a list of words, or a slice of them."""
    some = (key.start, key.stop) if isinstance(key, slice) else key
    return (
        isinstance(some, Sized)
        and np.iterable(some)
        and any(isinstance(name, str) for name in islice(some, 2))
    )


def _positions(places: pd.Series[Any], key: Any, noun: str, *, by_name: bool) -> Any:
    """A position, or an array of positions, by the rules of pandas."""
    if isinstance(key, pd.Series) and key.dtype.kind == "b":
        key = aligned_vector(key, tuple(places.index), noun, "the result") > 0.0
    indexer: Any = places.loc if by_name else places.iloc
    try:
        chosen = indexer[key]
    except (LookupError, TypeError, ValueError, IndexingError):
        names = [*map(str, places.index)]
        raise InvalidInput(
            f"{noun}: there is no {key!r:.80}{did_you_mean(key, names)} among "
            f"{listed(names)}; best[...] takes positions, masks of rows, and names of "
            "columns, and best.loc[...] names of rows"
        ) from None
    return chosen.to_numpy() if isinstance(chosen, pd.Series) else chosen
