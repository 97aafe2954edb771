"""Bins from arguments: edges, moments, ends, probabilities and categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from propopt.base.arrays import Array, Mask, Values
from propopt.base.checks import as_floats, did_you_mean, read_array, refuse_any
from propopt.base.errors import InvalidInput
from propopt.lime.laws.binned_columns import (
    BinnedColumn,
    by_column,
    by_name,
    codes_of,
    columns_given,
    increasing,
    inner_edges_of,
    read_data,
)
from propopt.tables.columns import CategoricalColumn, Column, spreads
from propopt.tables.frames import Labels, column_names, listed, read_points


# ---- The columns, and the arguments of each


PARTS: Final = ("edges", "means", "deviations", "probabilities", "ranges")
"""The arguments for columns, in the order of :class:`GivenColumn`."""


def given_columns(
    parts: Sequence[Any], categories: Any, data: Any
) -> tuple[list[BinnedColumn], Labels]:
    """The columns in bins and their names; parts are those of :data:`PARTS`."""
    if isinstance(categories, str):
        raise InvalidInput(
            f"categories: expected a mapping or a list of columns, got {categories!r}"
        )
    if categories is not None:  # an empty list for those of the data
        pairs = by_name(categories)
        pairs = [(key, None) for key in categories] if pairs is None else pairs
        categories = {
            key: [] if values is None else list(values) for key, values in pairs
        }
    if data is None:
        count, names = columns_given(parts[0], categories)
        if count == 0:
            raise InvalidInput(
                "edges: expected edges or categories of columns, or data, got none"
            )
        labels = Labels(features=names)
        schema = None
        values: list[Any] = [None] * count
    else:
        header = column_names(data)
        count = read_points(data, "data")[0].shape[1] if header is None else len(header)
        keys = range(count) if header is None else header
        marks = by_column(categories, "categories", list(map(str, keys)))
        coded = [keys[j] for j, mark in enumerate(marks) if mark is not None]
        points, labels, schema, _ = read_data(data, None, coded, "data")
        values = list(points.T)
        labels = labels.of_columns()
    names_of_columns = labels.feature_names(count)
    each = [
        by_column(part, label, names_of_columns)
        for label, part in zip(PARTS, parts, strict=True)
    ]
    codings = [None] * count if schema is None else list(schema.columns)
    each += [by_column(categories, "categories", names_of_columns), values, codings]
    columns = [
        GivenColumn(*values).binned
        for values in zip(names_of_columns, *each, strict=True)
    ]
    return columns, labels


# ---- One column


@final
@dataclass(frozen=True, eq=False)
class GivenColumn:
    """The arguments of one column, None for missing ones, and its rows of data."""

    name: str
    edges: Any
    means: Any
    deviations: Any
    probabilities: Any
    ranges: Any
    categories: list[Any] | None  # empty for categories of the data; None for numbers
    values: Values | None  # (m,): the data
    coding: Column | None  # the type of the column in the schema of the data

    @property
    def binned(self) -> BinnedColumn:
        """The column with its bins and their law."""
        if isinstance(self.coding, CategoricalColumn) or self.categories is not None:
            return self._coded()
        return self._numbers()

    # ---- of numbers

    def _numbers(self) -> BinnedColumn:
        edges = self._edges
        ends = self._ends
        shares = self._shares
        low = np.append(ends[0], edges)
        high = np.append(edges, ends[1])
        mean, sd, single = self._moments()
        count = len(mean)
        flat = ~single & (low == high)
        refuse_any(flat, sd, self._label("deviations"), "not 0 in a bin of one value")
        outside = (mean < low) | (mean > high)
        outside |= np.searchsorted(edges, mean) != np.arange(count)
        wrong = single & outside & (shares[:count] > 0.0)
        word = "outside their bins, where the deviation is 0"
        refuse_any(wrong, mean, self._label("means"), word)
        return BinnedColumn.of_numbers(edges, (mean, sd), (low, high), single, shares)

    def _label(self, part: str) -> str:
        return f"{part} of {self.name!r}"

    @cached_property
    def _edges(self) -> Array:
        """The inner edges: those given, or quartiles of the data."""
        if self.edges is not None and np.size(self.edges) == 0:
            return np.zeros(0)
        if self.edges is not None:
            return increasing(self.edges, self._label("edges"))
        if self._numbers_of_data is None:
            raise InvalidInput(
                f"edges: expected edges or categories for column {self.name!r}, or "
                "data for quartiles, got none"
            )
        edges = inner_edges_of(4, self._numbers_of_data)
        return edges[edges < self._numbers_of_data.max(initial=-np.inf)]

    @cached_property
    def _numbers_of_data(self) -> Values | None:
        """The numbers of the data that are not missing and within the given range."""
        if self.values is None:
            return None
        numbers = self.values[~np.isnan(self.values)]
        if self.ranges is None:
            return numbers
        low, high = self._range
        return numbers[(numbers >= low) & (numbers <= high)]

    @cached_property
    def _range(self) -> tuple[float, float]:
        """The given range of numbers, its lower and upper end."""
        label = self._label("ranges")
        ends = as_floats(self.ranges, label)
        if ends.shape != (2,) or not ends[0] <= ends[1]:
            raise InvalidInput(
                f"{label}: expected the lowest and the highest value of the column, "
                f"got {ends.tolist()}"
            )
        return float(ends[0]), float(ends[1])

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """The outer ends: the given range, that of the data, or infinite."""
        if self.ranges is not None:
            low, high = self._range
        elif self._numbers_of_data is None:
            low = -np.inf
            high = np.inf
        elif len(self._numbers_of_data) == 0:
            low, high = (0.0, 0.0) if self.edges is None else (-np.inf, np.inf)
        else:
            low = float(self._numbers_of_data.min())
            high = float(self._numbers_of_data.max())
        edges = self._edges
        if len(edges) > 0 and not (low <= edges[0] and edges[-1] < high):
            of = " of data" if self.ranges is None else ""
            raise InvalidInput(
                f"{self._label('ranges')}: the edges, {edges[0]:g} to {edges[-1]:g}, "
                f"are not within the range{of}, {low:g} to {high:g}"
            )
        return low, high

    @cached_property
    def _data(self) -> BinnedColumn | None:
        """The statistics of the data in the bins; None without data."""
        if self.values is None or self._numbers_of_data is None:
            return None
        values = np.append(self._numbers_of_data, self.values[np.isnan(self.values)])
        if len(values) == 0:
            raise InvalidInput(
                f"{self._label('ranges')}: expected a range with rows of data, got one "
                "without"
            )
        return BinnedColumn.of_data(values, self._edges, self._ends)

    @cached_property
    def _shares(self) -> Array:
        """The probability of each bin; that of missing numbers is the last, if any."""
        count = len(self._edges) + 1
        if self.probabilities is not None:
            return self._given_shares(count, count + 1)
        if self._data is None:
            return np.full(count, 1.0 / count)
        return self._data.shares

    def _moments(self) -> tuple[Array, Array, Mask]:
        """Locations and scales of the normals, and whether bins are single values."""
        parts = {"means": self.means, "deviations": self.deviations}
        without = [part for part, numbers in parts.items() if numbers is None]
        data = self._data
        count = len(self._edges) + 1
        words = " and ".join(without)
        if without and data is None:
            raise InvalidInput(
                f"{words}: required for column {self.name!r}, unless data are given; "
                "each bin needs a mean and a standard deviation"
            )
        if data is not None:
            empty = (data.shares[:count] == 0.0) & (self._shares[:count] > 0.0)
            if without and empty.any():
                raise InvalidInput(
                    f"{words}: required for column {self.name!r}, whose bin "
                    f"{data.bins[int(empty.argmax())]!r} has a probability above 0 but "
                    "no row of data"
                )
            mean = data.pieces.mean[:count]
            sd = data.pieces.sd[:count]
            if len(without) == 2:
                return mean, sd, data.pieces.single[:count]
            moments = {"means": mean, "deviations": sd}
            parts |= {part: moments[part] for part in without}
        mean, sd = (self._of_bins(part, given, count) for part, given in parts.items())
        refuse_any(sd < 0.0, sd, self._label("deviations"), "negative")
        return mean, sd, spreads(mean, sd) == 0.0

    def _of_bins(self, part: str, given: Any, *counts: int) -> Array:
        """Read one number for each bin; several lengths may be possible."""
        numbers = read_array(given, self._label(part), ndim=1)
        if len(numbers) not in counts:
            raise InvalidInput(
                f"{self._label(part)}: expected one for each of {counts[0]} bins, got "
                f"{len(numbers)}"
            )
        return numbers

    def _given_shares(self, count: int, other: int) -> Array:
        """Read the given probabilities, of one length or the other."""
        label = self._label("probabilities")
        shares = self._of_bins("probabilities", self.probabilities, count, other)
        refuse_any(shares < 0.0, shares, label, "negative")
        total = float(shares.sum())
        if abs(total - 1.0) > _ROUNDING * len(shares):
            raise InvalidInput(
                f"{label}: expected a sum of 1, got {total:.17g}; divide by that"
            )
        return shares

    # ---- of categories

    def _coded(self) -> BinnedColumn:
        of_numbers = (self.edges, self.means, self.deviations, self.ranges)
        labels = (part for part in PARTS if part != "probabilities")
        for part, given in zip(labels, of_numbers, strict=True):
            if given is not None:
                raise InvalidInput(
                    f"{part}: leave them out for column {self.name!r}, which is "
                    "categorical"
                )
        if self.values is not None:
            codes, frequencies, words = codes_of(self.values, self.coding)
        elif not self.categories:
            raise InvalidInput(
                f"categories: expected values for column {self.name!r}, or data, got "
                "none"
            )
        else:
            codes = np.unique(self._numbers_of_categories())
            frequencies = np.full(len(codes), 1.0 / len(codes))
            words = tuple(f"{value:.17g}" for value in codes)
        chosen = self._chosen(codes)
        if self.probabilities is not None:
            # the last code of a schema is that of missing values
            spare = not self.categories and isinstance(self.coding, CategoricalColumn)
            given = self._given_shares(len(chosen) - spare, len(chosen))
            chosen = chosen[: len(given)]
        else:
            given = frequencies[chosen]
            if self.categories:
                given = given / given.sum() if given.sum() > 0.0 else given
        shares = np.zeros(len(codes))
        shares[chosen] = given
        return BinnedColumn.of_codes(codes, shares, words)

    def _numbers_of_categories(self) -> Array:
        label = self._label("categories")
        try:
            return as_floats(self.categories, label)
        except InvalidInput:
            raise InvalidInput(
                f"{label}: expected numbers, got {listed(self.categories or [])}; text "
                "needs data with columns of categories"
            ) from None

    def _chosen(self, codes: Array) -> Any:
        """The positions of the given categories, in their order; all if none."""
        if not self.categories:
            return np.arange(len(codes))
        if isinstance(self.coding, CategoricalColumn):
            chosen = self.categories
            names = list(self.coding.categories)
        else:
            chosen = self._numbers_of_categories().tolist()
            names = codes.tolist()
        unknown = [one for one in chosen if one not in names]
        if unknown:
            raise InvalidInput(
                f"{self._label('categories')}: there is no {listed(unknown)}"
                f"{did_you_mean(unknown[0], list(map(str, names)))} in the data"
            )
        if len(set(chosen)) < len(chosen):
            raise InvalidInput(
                f"{self._label('categories')}: expected different values, got one twice"
            )
        return np.array([names.index(one) for one in chosen])


_ROUNDING: Final = 4.0 * float(np.finfo(float).eps)
"""The rounding error of a sum of probabilities, for each of them."""
