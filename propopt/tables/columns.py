"""Columns of a table as people have them, and as numbers and codes of categories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.tables.cells import read_numbers, refuse_missing, row_name
from propopt.tables.names import listed


Codes: TypeAlias = NDArray[np.intp]
"""Positions of categories, shape (n,)."""


class Column(ABC):
    """One column of the encoded table, made of one or more columns of a DataFrame."""

    name: Hashable

    @property
    @abstractmethod
    def spread(self) -> float:
        """The standard deviation of numbers, 1 if constant; 1 for categories."""

    @abstractmethod
    def encode(self, frame: pd.DataFrame, what: str) -> Array:
        """Numbers or codes, shape (n,); ``what`` names the frame in errors."""

    @abstractmethod
    def decode(self, values: Array) -> Mapping[Hashable, pd.Series[Any]]:
        """The columns of the DataFrame, each under its own label and dtype."""

    @abstractmethod
    def coordinates(self, values: Array) -> Array:
        """Where the values lie, shape (n, m), for euclidean distances."""


@final
@dataclass(frozen=True, eq=False)
class Numeric(Column):
    """A column of numbers.

    Parameters
    ----------
    name : hashable
        Its label.
    dtype : dtype
        Its dtype in the DataFrame.
    plain : numpy.dtype
        The NumPy dtype of the same numbers.
    mean, std : float
        Of the table that the schema was made of; the standard deviation divides by N.
    """

    name: Hashable
    dtype: Any
    plain: np.dtype[Any]
    mean: float
    std: float

    @classmethod
    def of(cls, column: pd.Series[Any], what: str) -> Numeric:
        """The column and its statistics."""
        if column.dtype.kind not in "iuf" and column.dtype != object:
            raise InvalidInput(
                f"{what}: column {column.name!r} has dtype {column.dtype}; expected "
                "numbers, text, booleans or categories"
            )
        values = read_numbers(column, what)
        mean, std = float(values.mean()), float(values.std())
        plain = column.infer_objects().to_numpy().dtype
        plain = plain if plain.kind in "iuf" else values.dtype
        return cls(column.name, column.dtype, plain, mean, std)

    @property
    def spread(self) -> float:
        """The standard deviation; 1 for a column that is constant but for rounding."""
        return float(spreads(self.mean, self.std))

    def encode(self, frame: pd.DataFrame, what: str) -> Array:
        return read_numbers(frame[self.name], what)

    def decode(self, values: Array) -> Mapping[Hashable, pd.Series[Any]]:
        """The column in its own dtype where that loses nothing, else in float64."""
        with np.errstate(invalid="ignore", over="ignore"):  # then unequal below
            cast = values.astype(self.plain)
        if (cast == values).all():
            return {self.name: pd.Series(cast).astype(self.dtype)}
        return {self.name: pd.Series(values.copy())}

    def coordinates(self, values: Array) -> Array:
        return values[:, None]


class Coded(Column):
    """A column of categories, known by their positions 0, 1, ..., K − 1."""

    frequencies: Array

    @property
    @abstractmethod
    def categories(self) -> tuple[Hashable, ...]:
        """The K categories, in the order of their codes."""

    @property
    def spread(self) -> float:
        """Always 1."""
        return 1.0

    def coordinates(self, values: Array) -> Array:
        """One-hot / √2, so that two different categories are at distance 1."""
        codes = self.codes(values)
        corners: Array = np.eye(len(self.frequencies))[codes] / np.sqrt(2)
        return corners

    def codes(self, values: Array) -> Codes:
        """``values`` as positions, refused unless they are some."""
        codes = values.astype(np.intp)
        bad = (codes != values) | (codes < 0) | (codes >= len(self.frequencies))
        if bad.any():
            raise InvalidInput(
                f"points: column {self.name!r} has categories numbered 0 to "
                f"{len(self.frequencies) - 1}, got {values[int(bad.argmax())]}"
            )
        return codes


@final
@dataclass(frozen=True, eq=False)
class Categorical(Coded):
    """A column of text, booleans, categories, or numbers that stand for some.

    Parameters
    ----------
    name : hashable
        Its label.
    dtype : dtype
        Its dtype in the DataFrame.
    levels : Index (K,)
        The categories: those of a category dtype in their order, others sorted.
    frequencies : array (K,)
        The share of each in the table that the schema was made of.
    """

    name: Hashable
    dtype: Any
    levels: pd.Index[Any]
    frequencies: Array

    @classmethod
    def of(cls, column: pd.Series[Any], what: str) -> Categorical:
        """The column, its categories and their frequencies."""
        refuse_missing(column, what)
        levels = _levels(column)
        codes = _positions(levels, column)
        return cls(column.name, column.dtype, levels, _shares(codes, len(levels)))

    @property
    def categories(self) -> tuple[Hashable, ...]:
        return tuple(self.levels.tolist())

    def encode(self, frame: pd.DataFrame, what: str) -> Array:
        column = frame[self.name]
        refuse_missing(column, what)
        codes = _positions(self.levels, column)
        if (codes < 0).any():
            n = int((codes < 0).argmax())
            raise InvalidInput(
                f"{what}: column {self.name!r}, row {row_name(column, n)}: unknown "
                f"category {column.tolist()[n]!r}; known: {listed(self.categories)}"
            )
        return codes.astype(float)

    def decode(self, values: Array) -> Mapping[Hashable, pd.Series[Any]]:
        codes = self.codes(values)
        if isinstance(self.dtype, pd.CategoricalDtype):
            coded = pd.Categorical.from_codes(codes.tolist(), dtype=self.dtype)
            return {self.name: pd.Series(coded)}
        return {self.name: pd.Series(self.levels.take(codes), dtype=self.dtype)}


@final
@dataclass(frozen=True, eq=False)
class OneHot(Coded):
    """Columns of 0 and 1, exactly one of them 1, that encode one feature.

    Parameters
    ----------
    name : hashable
        The feature.
    members : tuple of hashables (K,)
        The labels of its columns, which are its categories.
    dtypes : tuple of dtypes (K,)
        Of its columns.
    frequencies : array (K,)
        The share of each in the table that the schema was made of.
    """

    name: Hashable
    members: tuple[Hashable, ...]
    dtypes: tuple[Any, ...]
    frequencies: Array

    @classmethod
    def of(
        cls,
        name: Hashable,
        members: tuple[Hashable, ...],
        frame: pd.DataFrame,
        what: str,
    ) -> OneHot:
        """The columns and their frequencies."""
        codes = _hot(name, members, frame, what)
        dtypes = tuple(frame[member].dtype for member in members)
        return cls(name, members, dtypes, _shares(codes, len(members)))

    @property
    def categories(self) -> tuple[Hashable, ...]:
        return self.members

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


def _levels(column: pd.Series[Any]) -> pd.Index[Any]:
    """The categories of a column: in their own order, or sorted within each type."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.dtype.categories
    levels = pd.Index(column.unique(), dtype=column.dtype)
    if column.dtype != object:
        return levels.sort_values()
    in_order = sorted(levels, key=lambda value: (type(value).__name__, str(value)))
    return pd.Index(in_order, dtype=object, tupleize_cols=False)


def _positions(levels: pd.Index[Any], column: pd.Series[Any]) -> Codes:
    """The position of each value among the levels, −1 where it is none of them."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        own = levels.get_indexer(column.dtype.categories)
        return own[column.cat.codes.to_numpy()]
    return levels.get_indexer(pd.Index(column, tupleize_cols=False))


def _shares(codes: Codes, n_categories: int) -> Array:
    shares: Array = np.bincount(codes, minlength=n_categories) / len(codes)
    shares.setflags(write=False)
    return shares


def _hot(
    name: Hashable, members: tuple[Hashable, ...], frame: pd.DataFrame, what: str
) -> Codes:
    """Which column of each row is 1, refused unless exactly one is and others are 0."""
    table = np.stack([read_numbers(frame[member], what) for member in members], axis=1)
    bad = ((table != 0) & (table != 1)).any(axis=1) | (table.sum(axis=1) != 1)
    if bad.any():
        n = int(bad.argmax())
        raise InvalidInput(
            f"{what}: group {name!r}, row {row_name(frame, n)}: expected a single 1 "
            f"and else 0, got {table[n].tolist()}"
        )
    return np.asarray(table.argmax(axis=1), dtype=np.intp)


def spreads(means: Array | float, deviations: Array | float) -> Array:
    """Standard deviations, and 1 where a column is constant but for rounding."""
    rounding = 16 * np.finfo(float).eps * np.abs(means)
    return np.where(deviations > rounding, deviations, 1.0)
