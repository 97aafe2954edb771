"""Bins that people give: edges, moments, ends, probabilities, categories."""

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


# ---- Which columns there are, and what is given of each


PARTS: Final = ("edges", "means", "deviations", "probabilities", "ranges")
"""What is given of columns, in the order of :class:`GivenColumn`."""


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
        categories = {key: [] if own is None else list(own) for key, own in pairs}
    if data is None:
        count, names = columns_given(parts[0], categories)
        if count == 0:
            raise InvalidInput(
                "edges: no column has any, nor categories; give them, or data"
            )
        labels, schema = Labels(features=names), None
        values: list[Any] = [None] * count
    else:
        header = column_names(data)
        count = read_points(data, "data")[0].shape[1] if header is None else len(header)
        places = range(count) if header is None else header
        marks = by_column(categories, "categories", list(map(str, places)))
        coded = [places[j] for j, mark in enumerate(marks) if mark is not None]
        points, labels, schema, _ = read_data(data, None, coded, "data")
        values, labels = list(points.T), labels.of_columns()
    known = labels.feature_names(count)
    each = [
        by_column(part, label, known) for label, part in zip(PARTS, parts, strict=True)
    ]
    codings = [None] * count if schema is None else list(schema.columns)
    each += [by_column(categories, "categories", known), values, codings]
    columns = [GivenColumn(*own).binned for own in zip(known, *each, strict=True)]
    return columns, labels


# ---- One column


@final
@dataclass(frozen=True, eq=False)
class GivenColumn:
    """What is given of one column, None where nothing is, and its rows of data."""

    name: str
    edges: Any
    means: Any
    deviations: Any
    probabilities: Any
    ranges: Any
    categories: list[Any] | None  # empty for those of the data; None for numbers
    values: Values | None  # (m,): the data
    coding: Column | None  # of the data, as a schema has it

    @property
    def binned(self) -> BinnedColumn:
        """The column in bins."""
        if isinstance(self.coding, CategoricalColumn) or self.categories is not None:
            return self._coded()
        return self._numbers()

    # ---- of numbers

    def _numbers(self) -> BinnedColumn:
        edges, ends, shares = self._edges, self._ends, self._shares
        low, high = np.append(ends[0], edges), np.append(edges, ends[1])
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
        """Where bins end: as given, or quartiles of the data."""
        if self.edges is not None and np.size(self.edges) == 0:
            return np.zeros(0)
        if self.edges is not None:
            return increasing(self.edges, self._label("edges"))
        if self._known is None:
            raise InvalidInput(
                f"edges: column {self.name!r} has none, nor categories; give them, or "
                "data of which bins are quartiles"
            )
        edges = inner_edges_of(4, self._known)
        return edges[edges < self._known.max(initial=-np.inf)]

    @cached_property
    def _known(self) -> Values | None:
        """The numbers of the data that are not missing and within given ends."""
        if self.values is None:
            return None
        known = self.values[~np.isnan(self.values)]
        if self.ranges is None:
            return known
        low, high = self._range
        return known[(known >= low) & (known <= high)]

    @cached_property
    def _range(self) -> tuple[float, float]:
        """The ends that are given."""
        label = self._label("ranges")
        ends = as_floats(self.ranges, label)
        if ends.shape != (2,) or not ends[0] <= ends[1]:
            raise InvalidInput(
                f"{label}: expected the lowest and the highest number, got "
                f"{ends.tolist()}"
            )
        return float(ends[0]), float(ends[1])

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """Where outer bins end: as given, else as the data does, else nowhere."""
        if self.ranges is not None:
            low, high = self._range
        elif self._known is None:
            low, high = -np.inf, np.inf
        elif len(self._known) == 0:
            low, high = (0.0, 0.0) if self.edges is None else (-np.inf, np.inf)
        else:
            low, high = float(self._known.min()), float(self._known.max())
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
        """Statistics of the data in the bins."""
        if self.values is None or self._known is None:
            return None
        kept = np.append(self._known, self.values[np.isnan(self.values)])
        if len(kept) == 0:
            raise InvalidInput(f"{self._label('ranges')}: no row of data is within")
        return BinnedColumn.of_data(kept, self._edges, self._ends)

    @cached_property
    def _shares(self) -> Array:
        """The probability of each bin; that of missing numbers last, if any are."""
        count = len(self._edges) + 1
        if self.probabilities is not None:
            return self._given_shares(count, count + 1)
        if self._data is None:
            return np.full(count, 1.0 / count)
        return self._data.shares

    def _moments(self) -> tuple[Array, Array, Mask]:
        """Locations and scales of the normals, and which bins are one value."""
        parts = {"means": self.means, "deviations": self.deviations}
        without = [part for part, numbers in parts.items() if numbers is None]
        data, count = self._data, len(self._edges) + 1
        words = " and ".join(without)
        if without and data is None:
            raise InvalidInput(
                f"{words}: column {self.name!r} has none; the normal law of each bin "
                "needs both, or data to have them of"
            )
        if data is not None:
            empty = (data.shares[:count] == 0.0) & (self._shares[:count] > 0.0)
            if without and empty.any():
                raise InvalidInput(
                    f"{words}: no row of data is in the bin "
                    f"{data.bins[int(empty.argmax())]!r} of column {self.name!r}, "
                    "which has a probability; give both"
                )
            mean, sd = data.pieces.mean[:count], data.pieces.sd[:count]
            if len(without) == 2:
                return mean, sd, data.pieces.single[:count]
            own = {"means": mean, "deviations": sd}
            parts |= {part: own[part] for part in without}
        mean, sd = (self._of_bins(part, given, count) for part, given in parts.items())
        refuse_any(sd < 0.0, sd, self._label("deviations"), "negative")
        return mean, sd, np.asarray(spreads(mean, sd) == 0.0)

    def _of_bins(self, part: str, given: Any, *counts: int) -> Array:
        """A number for each bin, of as many as there may be."""
        numbers = read_array(given, self._label(part), ndim=1)
        if len(numbers) not in counts:
            raise InvalidInput(
                f"{self._label(part)}: expected one for each of {counts[0]} bins, got "
                f"{len(numbers)}"
            )
        return numbers

    def _given_shares(self, count: int, other: int) -> Array:
        """Probabilities that are given, of one count or the other."""
        label = self._label("probabilities")
        shares = self._of_bins("probabilities", self.probabilities, count, other)
        refuse_any(shares < 0.0, shares, label, "negative")
        total = float(shares.sum())
        if abs(total - 1.0) > _ROUNDING * len(shares):
            raise InvalidInput(
                f"{label}: they sum to {total:.17g} and not to 1; divide them by that"
            )
        return shares

    # ---- of categories

    def _coded(self) -> BinnedColumn:
        of_numbers = (self.edges, self.means, self.deviations, self.ranges)
        labels = (part for part in PARTS if part != "probabilities")
        for part, given in zip(labels, of_numbers, strict=True):
            if given is not None:
                raise InvalidInput(
                    f"{part}: column {self.name!r} has categories; leave them out"
                )
        if self.values is not None:
            known, frequencies, words = codes_of(self.values, self.coding)
        elif not self.categories:
            raise InvalidInput(
                f"categories: column {self.name!r} has none; give them, or data"
            )
        else:
            known = np.unique(self._numbers_of_categories())
            frequencies = np.full(len(known), 1.0 / len(known))
            words = tuple(f"{value:.17g}" for value in known)
        chosen = self._chosen(known)
        if self.probabilities is not None:
            # the last code of a schema is that of missing values
            spare = not self.categories and isinstance(self.coding, CategoricalColumn)
            given = self._given_shares(len(chosen) - spare, len(chosen))
            chosen = chosen[: len(given)]
        else:
            given = frequencies[chosen]
            if self.categories:
                given = given / given.sum() if given.sum() > 0.0 else given
        shares = np.zeros(len(known))
        shares[chosen] = given
        return BinnedColumn.of_codes(known, shares, words)

    def _numbers_of_categories(self) -> Array:
        label = self._label("categories")
        try:
            return as_floats(self.categories, label)
        except InvalidInput:
            raise InvalidInput(
                f"{label}: expected the numbers that stand for them, got "
                f"{listed(self.categories or [])}; data with columns of categories "
                "says how text is coded"
            ) from None

    def _chosen(self, known: Array) -> Any:
        """The places of the categories that are given, in their order; all if none."""
        if not self.categories:
            return np.arange(len(known))
        if isinstance(self.coding, CategoricalColumn):
            own, names = self.categories, list(self.coding.categories)
        else:
            own, names = self._numbers_of_categories().tolist(), known.tolist()
        unknown = [one for one in own if one not in names]
        if unknown:
            raise InvalidInput(
                f"{self._label('categories')}: there is no {listed(unknown)}"
                f"{did_you_mean(unknown[0], list(map(str, names)))} in the data"
            )
        if len(set(own)) < len(own):
            raise InvalidInput(f"{self._label('categories')}: one appears twice")
        return np.array([names.index(one) for one in own])


_ROUNDING: Final = 4.0 * float(np.finfo(float).eps)
"""By how much a sum of probabilities may miss 1, for each of them."""
