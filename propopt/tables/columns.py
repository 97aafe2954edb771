"""Columns as people have them, the values they take, and numbers and codes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput
from propopt.tables.frames import (
    is_nullable,
    listed,
    missing_value,
    nullable_dtype,
    plain_dtype,
    read_numbers,
    refuse_dates,
    row_name,
)


MAX_OBSERVED_VALUES: Final = 10_000
"""A column of more different values is known by its mean and deviation alone."""


DATA_LAW: Final = "po.functions.smoothed(function, law='data', data=X_train)"
"""What thins a table, and takes arrays too."""


@final
@dataclass(frozen=True, eq=False)
class ObservedValues:
    """The different values of a column, v_1 to v_m, and how often each occurs."""

    values: Array  # (m,): those that are not missing, in order
    counts: NDArray[np.intp]  # (m,): how often

    @classmethod
    def of(cls, column: Array) -> ObservedValues:
        """Those of numbers (n,), of which some may be missing."""
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        values.setflags(write=False)
        counts.setflags(write=False)
        return cls(values, counts)

    @property
    def shares(self) -> Array:
        """The share of each among the values that are not missing, shape (m,)."""
        return np.asarray(self.counts / self.counts.sum())

    def share_between(self, low: Array, high: Array) -> Array:
        """The share of values with low < v ≤ high, for intervals (n,)."""
        below = np.concatenate([[0.0], np.cumsum(self.shares)])
        ends = np.searchsorted(self.values, [low, np.maximum(low, high)], side="right")
        return np.asarray(below[ends[1]] - below[ends[0]])


def observed_values_of(
    observed: Sequence[ObservedValues | None] | None, j: int
) -> ObservedValues:
    """The values of a column; refused where they are not known, or too many."""
    observed_values = None if observed is None else observed[j]
    if observed_values is None:
        told = "no table tells which: give one, by wrap(model, data=X_train)"
        many = (
            f"column {j} of the points has more than {MAX_OBSERVED_VALUES:,}; {DATA_LAW} takes "
            "it from fewer"
        )
        raise InvalidInput(
            "data: the effect of a missing number is f(x) less its mean over all "
            f"observed values, and {told if observed is None else many}"
        )
    return observed_values


# ---- Columns of a table as people have them, and as numbers and codes of categories


Codes: TypeAlias = NDArray[np.intp]
"""Positions of categories, shape (n,)."""


@final
@dataclass(frozen=True, eq=False)
class Numeric:
    """A column of numbers; one that is missing is NaN.

    As all columns it knows which values are missing, makes numbers or codes (n,) of a
    frame (``encode``) and columns under their own labels of these (``decode``). Its
    ``coordinates`` (n, m) are at the distances that :mod:`propopt.graphs` takes.
    """

    name: Hashable  # its label
    dtype: Any  # its dtype in the DataFrame
    plain: np.dtype[Any]  # the NumPy dtype of the same numbers
    absent: Hashable  # what stands in the DataFrame where a number is missing
    # of those that are not missing in the table that the schema was made of
    mean: float
    std: float
    observed_values: (
        ObservedValues | None
    )  # those numbers; None if more than 10,000 are different
    missing_share: float  # the share of rows in which the number is missing

    @classmethod
    def of(cls, column: pd.Series[Any], what: str) -> tuple[Numeric, Array]:
        """The column with its statistics, and its numbers (n,)."""
        refuse_dates(column, what)
        if column.dtype.kind not in "iuf" and column.dtype != object:
            raise InvalidInput(
                f"{what}: column {column.name!r} has dtype {column.dtype}; expected "
                "numbers, text, booleans or categories"
            )
        values = read_numbers(column, what)
        known = values[~np.isnan(values)]
        mean, std = (known.mean(), known.std()) if len(known) > 0 else (np.nan, 0.0)
        observed_values = ObservedValues.of(known)
        own = cls(
            name=column.name,
            dtype=column.dtype,
            plain=plain_dtype(column),
            absent=missing_value(column, what),
            mean=float(mean),
            std=float(std),
            observed_values=observed_values
            if len(observed_values.values) <= MAX_OBSERVED_VALUES
            else None,
            missing_share=1.0 - len(known) / len(values),
        )
        return own, values

    @property
    def spread(self) -> float:
        """The standard deviation; 0 for a column that is constant but for rounding."""
        return float(spreads(self.mean, self.std))

    @property
    def has_missing(self) -> bool:
        """Whether a value is missing in the table that the schema was made of."""
        return self.missing_share > 0.0

    def encode(self, frame: pd.DataFrame, what: str) -> Array:
        return read_numbers(frame[self.name], what)

    def missing(self, values: Array) -> NDArray[np.bool_]:
        return np.asarray(np.isnan(values))

    def decode(self, values: Array) -> Mapping[Hashable, pd.Series[Any]]:
        """The column in its own dtype where that loses nothing, else in float64."""
        absent, plain = self.missing(values), self._plain(values)
        kept = plain is not None
        if kept and not absent.any():
            return {self.name: pd.Series(plain).astype(self.dtype)}
        if not kept or nullable_dtype(self.dtype) != self.dtype:
            return {self.name: pd.Series(values.copy())}
        if not is_nullable(self.dtype):
            return {self.name: pd.Series(values).astype(self.dtype)}
        own = pd.Series(plain).astype(self.dtype)
        own[absent] = self.absent
        return {self.name: own}

    def holds(self, values: Array) -> bool:
        """Whether its dtype holds these numbers, but for those that are missing."""
        return self._plain(values) is not None

    def _plain(self, values: Array) -> NDArray[Any] | None:
        """Numbers in the NumPy dtype of the column; None where that loses something."""
        known = np.where(np.isnan(values), 0.0, values)
        with np.errstate(invalid="ignore", over="ignore"):  # then unequal below
            plain = known.astype(self.plain)
        return plain if bool((plain == known).all()) else None

    def coordinates(self, values: Array) -> Array:
        return values[:, None]


class CategoricalColumn(ABC):
    """A column of categories, known by their positions 0, 1, ..., K − 1."""

    name: Hashable
    frequencies: Array
    spread: ClassVar[float] = 1.0

    @property
    @abstractmethod
    def categories(self) -> tuple[Hashable, ...]:
        """The K categories, in the order of their codes."""

    @property
    @abstractmethod
    def present(self) -> tuple[Hashable, ...]:
        """Those of them that are not missing."""

    @property
    def words(self) -> tuple[str, ...]:
        """What is written for each code."""
        return tuple(map(str, self.categories))

    def coordinates(self, values: Array) -> Array:
        """One-hot / √2, so that two different categories are at distance 1."""
        corners = np.zeros((len(values), len(self.frequencies)))
        corners[np.arange(len(values)), self.codes(values)] = 1.0 / np.sqrt(2)
        return corners

    def codes(self, values: Array) -> Codes:
        """``values`` as positions, refused unless they are some."""
        codes = np.where(np.isnan(values), -1.0, values).astype(np.intp)
        bad = (codes != values) | (codes < 0) | (codes >= len(self.frequencies))
        if bad.any():
            raise InvalidInput(
                f"points: column {self.name!r} has categories numbered 0 to "
                f"{len(self.frequencies) - 1}, got {values[int(bad.argmax())]}"
            )
        return codes


@final
@dataclass(frozen=True, eq=False)
class Categorical(CategoricalColumn):
    """A column of text, booleans, categories, or numbers that stand for some.

    To be missing is a category too, and always the last of those that the table of the
    schema may have: its frequency is zero where it has no such row. Behind it stand
    ``others``, which are in no row of that table, of frequency zero.
    """

    name: Hashable  # its label
    dtype: Any  # its dtype in the DataFrame
    levels: pd.Index[Any]  # (K − 1,): the categories that are not missing
    absent: Hashable  # what stands in the DataFrame where a category is missing
    # (K,): the share of each in the table that the schema was made of
    frequencies: Array
    new_categories: tuple[Hashable, ...] = ()  # categories that only other tables have

    @classmethod
    def of(cls, column: pd.Series[Any], what: str) -> tuple[Categorical, Array]:
        """The column with its categories and their frequencies, and its codes (n,)."""
        levels = _levels(column)
        codes = _positions(levels, column)
        shares = _shares(codes, len(levels) + 1)
        absent = missing_value(column, what)
        own = cls(column.name, column.dtype, levels, absent, shares)
        return own, codes.astype(float)

    def with_categories_of(self, column: pd.Series[Any]) -> Categorical:
        """The same with the categories of another column, where its dtype holds them.

        One of categories is given more of them; others hold what they can.
        """
        unknown = column[self._codes_of(column) < 0].unique().tolist()
        if not unknown or not self._holds(unknown):
            return self
        others = (*self.new_categories, *unknown)
        none = np.zeros(len(unknown))
        frequencies = np.concatenate([self.frequencies, none])
        frequencies.setflags(write=False)
        return replace(self, new_categories=others, frequencies=frequencies)

    def _holds(self, values: list[Any]) -> bool:
        if isinstance(self.dtype, pd.CategoricalDtype):
            return True
        try:
            own = pd.Series(values, dtype=object).astype(self.dtype).tolist()
        except (TypeError, ValueError, OverflowError):
            return False
        return all(
            a == b and isinstance(a, type(b)) for a, b in zip(own, values, strict=True)
        )

    def is_new(self, values: Array) -> NDArray[np.bool_]:
        """Which codes are those of categories that data has not, (n,)."""
        return np.asarray(values > len(self.levels))

    def _codes_of(self, column: pd.Series[Any]) -> Codes:
        """The code of each cell, −1 where it has none."""
        codes = _positions(self.levels, column)
        if self.new_categories:
            more = pd.Index(self.new_categories, dtype=object, tupleize_cols=False)
            place = more.get_indexer(pd.Index(column.astype(object)))
            there = (codes < 0) & (place >= 0)
            codes = np.where(there, len(self.levels) + 1 + place, codes)
        return codes

    @cached_property
    def _cells(self) -> pd.Index[Any]:
        """Categories that are not missing, those of data first."""
        if not self.new_categories:
            return self.levels
        every = [*self.levels.tolist(), *self.new_categories]
        return pd.Index(every, dtype=self.levels.dtype, tupleize_cols=False)

    @property
    def has_missing(self) -> bool:
        return bool(self.frequencies[len(self.levels)] > 0.0)

    @property
    def categories(self) -> tuple[Hashable, ...]:
        return (*self.present, self.absent, *self.new_categories)

    @property
    def present(self) -> tuple[Hashable, ...]:
        return tuple(self.levels.tolist())

    @property
    def words(self) -> tuple[str, ...]:
        return (*map(str, self.present), "missing", *map(str, self.new_categories))

    def encode(self, frame: pd.DataFrame, what: str) -> Array:
        column = frame[self.name]
        codes = self._codes_of(column)
        if (codes < 0).any():
            n = int((codes < 0).argmax())
            known = listed(self.levels.tolist())
            raise InvalidInput(
                f"{what}: column {self.name!r}, row {row_name(column, n)}: unknown "
                f"category {column.tolist()[n]!r}; known: {known}, of dtype "
                f"{self.dtype}"
            )
        return codes.astype(float)

    def missing(self, values: Array) -> NDArray[np.bool_]:
        return np.asarray(values == len(self.levels))

    def decode(self, values: Array) -> Mapping[Hashable, pd.Series[Any]]:
        codes, absent = self.codes(values), self.missing(values)
        others = self.is_new(values)
        codes = codes - others  # places among those that are not missing
        if isinstance(self.dtype, pd.CategoricalDtype):
            own, dtype = np.where(absent, -1, codes).tolist(), self.dtype
            if others.any():
                every = [*self.levels.tolist(), *self.new_categories]
                dtype = pd.CategoricalDtype(every, ordered=self.dtype.ordered)
            return {self.name: pd.Series(pd.Categorical.from_codes(own, dtype=dtype))}
        if not absent.any():
            return {self.name: pd.Series(self._cells.take(codes), dtype=self.dtype)}
        dtype = nullable_dtype(self.dtype)
        objects = np.full(len(codes), self.absent, dtype=object)
        objects[~absent] = self._cells.astype(object)[codes[~absent]]
        return {self.name: pd.Series(objects, dtype=dtype)}


@final
@dataclass(frozen=True, eq=False)
class OneHot(CategoricalColumn):
    """Columns of 0 and 1, exactly one of them 1, that encode one feature."""

    name: Hashable  # the feature
    # (K,): the labels of its columns, which are its categories
    members: tuple[Hashable, ...]
    dtypes: tuple[Any, ...]  # shape (K,)
    # (K,): the share of each in the table that the schema was made of
    frequencies: Array

    @classmethod
    def of(
        cls,
        name: Hashable,
        members: tuple[Hashable, ...],
        frame: pd.DataFrame,
        what: str,
    ) -> tuple[OneHot, Array]:
        """The columns with their frequencies, and which of them is 1 (n,)."""
        codes = _hot(name, members, frame, what)
        dtypes = tuple(frame[member].dtype for member in members)
        own = cls(name, members, dtypes, _shares(codes, len(members)))
        return own, codes.astype(float)

    has_missing: ClassVar[bool] = False

    @property
    def categories(self) -> tuple[Hashable, ...]:
        return self.members

    present = categories

    def missing(self, values: Array) -> NDArray[np.bool_]:
        """Nowhere: columns of 0 and 1 say which category it is."""
        return np.zeros(len(values), dtype=bool)

    def encode(self, frame: pd.DataFrame, what: str) -> Array:
        return _hot(self.name, self.members, frame, what).astype(float)

    def decode(self, values: Array) -> Mapping[Hashable, pd.Series[Any]]:
        codes = self.codes(values)
        return {
            member: pd.Series((codes == k).astype(int)).astype(dtype)
            for k, (member, dtype) in enumerate(
                zip(self.members, self.dtypes, strict=True)
            )
        }


Column: TypeAlias = Numeric | Categorical | OneHot
"""One column of the encoded table, made of one or more columns of a DataFrame."""


def _levels(column: pd.Series[Any]) -> pd.Index[Any]:
    """The categories of a column: in their own order, or sorted within each type."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.dtype.categories
    levels = pd.Index(column.dropna().unique(), dtype=column.dtype)
    if column.dtype != object:
        return levels.sort_values()
    in_order = sorted(levels, key=lambda value: (type(value).__name__, str(value)))
    return pd.Index(in_order, dtype=object, tupleize_cols=False)


def _positions(levels: pd.Index[Any], column: pd.Series[Any]) -> Codes:
    """Where each stands among the levels, behind them if missing, −1 if unknown."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        own = np.append(levels.get_indexer(column.dtype.categories), -1)
        codes = own[column.cat.codes.to_numpy()]
    else:
        codes = levels.get_indexer(pd.Index(column, tupleize_cols=False))
    return np.where(column.isna().to_numpy(dtype=bool), len(levels), codes)


def _shares(codes: Codes, n_categories: int) -> Array:
    shares: Array = np.bincount(codes, minlength=n_categories) / len(codes)
    shares.setflags(write=False)
    return shares


def _hot(
    name: Hashable, members: tuple[Hashable, ...], frame: pd.DataFrame, label: str
) -> Codes:
    """Which column of each row is 1, refused unless exactly one is and others are 0."""
    table = np.stack([read_numbers(frame[member], label) for member in members], axis=1)
    absent = np.isnan(table).any(axis=1)
    if absent.any():
        n = int(absent.argmax())
        raise InvalidInput(
            f"{label}: group {name!r}, row {row_name(frame, n)}: a value is missing; "
            "to be missing is a category: give it a column of its own in the group, or "
            "explain the column before it was one-hot encoded"
        )
    bad = ((table != 0) & (table != 1)).any(axis=1) | (table.sum(axis=1) != 1)
    if bad.any():
        n = int(bad.argmax())
        raise InvalidInput(
            f"{label}: group {name!r}, row {row_name(frame, n)}: expected a single 1 "
            f"and else 0, got {table[n].tolist()}"
        )
    return np.asarray(table.argmax(axis=1), dtype=np.intp)


def spreads(means: Array | float, deviations: Array | float) -> Array:
    """Standard deviations, and 0 where a column is constant but for rounding."""
    rounding = 16 * np.finfo(float).eps * np.abs(means)
    return np.where(deviations > rounding, deviations, 0.0)
