"""The canonical order of rows: by digests of their values, not by their places.

Rows of a table are a set with repetitions. If they are sorted by a digest, sums over
them round alike and samples of them are equal for any order of the table, any types of
its columns and any names of its rows. Digests are uniform, so the first rows are a
random sample, which one more row of the table changes in at most one row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from numbers import Real
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Indices, Points, Values
from propopt.tables.columns import CategoricalColumn
from propopt.tables.schema import TableSchema


Digests: TypeAlias = NDArray[np.uint64]
"""A digest of 64 bits for each row."""

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
"""2⁶⁴ over the golden ratio, so that no column and no copy has the step zero."""


def row_digests(points: Points, schema: TableSchema | None = None) -> Digests:
    """Digests (N,) of encoded rows; codes count as the categories that they encode."""
    digests = np.zeros(len(points), np.uint64)
    for j, values in enumerate(points.T):
        column = None if schema is None else schema.columns[j]
        if isinstance(column, CategoricalColumn):
            bits = digests_of(column.categories)[column.codes(values)]
        else:
            bits = _bits(values)
        digests = _mixed((digests + _STEP) ^ bits)
    return digests


def digests_of(values: Iterable[Any]) -> Digests:
    """Digests (n,) of texts or categories: numbers have that of a column of numbers."""
    return np.array([_digest_of(value) for value in values], np.uint64)


def canonical_order(digests: Digests, weights: Values | None = None) -> Indices:
    """The places (N,) of rows by digest; equal rows are in the order of their weights.

    Each copy of a row has another digest, so that copies are no block of the order.
    """
    ties = np.zeros(len(digests)) if weights is None else weights
    order = np.lexsort((ties, digests))
    in_order = digests[order]
    places = np.arange(len(digests))
    repeats = np.append(False, in_order[1:] == in_order[:-1])
    copies = places - np.maximum.accumulate(np.where(repeats, 0, places))
    scattered = _mixed(in_order + copies.astype(np.uint64) * _STEP)
    return order[np.argsort(scattered, kind="stable")]


def _digest_of(value: Any) -> int:
    if not isinstance(value, str) and pd.isna(value):
        return int(_bits(np.array([np.nan]))[0])
    if isinstance(value, Real | np.bool_) and float(value) == value:
        return int(_bits(np.array([float(value)]))[0])
    content = str(value).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def _bits(values: Values) -> Digests:
    """The bits of numbers, with one NaN and one zero."""
    return np.where(np.isnan(values), np.nan, values + 0.0).view(np.uint64)


def _mixed(digests: Digests) -> Digests:
    """Bits that all depend on each bit, by the finaliser of SplitMix64."""
    digests = (digests ^ (digests >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    digests = (digests ^ (digests >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return digests ^ (digests >> np.uint64(31))
