"""Columns as a model sees them, each made of one column of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np

from propopt._typing import Array
from propopt.structures.products.families.curves import CurveRule


@final
@dataclass(frozen=True)
class Line:
    """Numbers x that are seen as slope · (x − center).

    Parameters
    ----------
    column : int
        The column of the table, as in all that is seen.
    slope, center : float
        Not 0, and any number.
    missing : float
        What is seen of NaN; NaN where nothing is.
    """

    column: int
    slope: float = 1.0
    center: float = 0.0
    missing: float = np.nan

    def of(self, values: Array) -> Array:
        """What is seen of values (n,)."""
        seen = self.slope * (values - self.center)
        return np.where(np.isnan(values), self.missing, seen)


@final
@dataclass(frozen=True, eq=False)
class Listed:
    """Values of which a few are seen apart: codes, and numbers that were encoded.

    Parameters
    ----------
    column : int
        The column of the table.
    keys : array (K,)
        These values, increasing.
    seen : array (K,)
        What is seen of them.
    other, missing : float
        What is seen of all other values, and of NaN; NaN where nothing is.
    """

    column: int
    keys: Array
    seen: Array
    other: float = np.nan
    missing: float = np.nan

    def of(self, values: Array) -> Array:
        """What is seen of values (n,)."""
        place = np.searchsorted(self.keys, values)
        known = np.append(self.keys, np.nan)[place] == values
        seen = np.append(self.seen, self.other)[np.where(known, place, -1)]
        return np.where(np.isnan(values), self.missing, seen)

    def on(self, keys: Array) -> Array:
        """What is seen of keys (K,), of others and of NaN, (K + 2,)."""
        return np.concatenate([self.of(keys), [self.other, self.missing]])


@final
@dataclass(frozen=True, eq=False)
class Bent:
    """Numbers that are seen through any map.

    Parameters
    ----------
    column : int
        The column of the table.
    of : callable
        From values (n,), NaN among them, to what is seen of them.
    knots : array (K,)
        Where the map has kinks, increasing.
    """

    column: int
    of: CurveRule
    knots: Array


SeenColumn: TypeAlias = Line | Listed | Bent
"""How a column that a model sees comes from one of the table."""


def constant(column: int, seen: float, missing: float = np.nan) -> Listed:
    """Numbers that are all seen alike."""
    nothing = np.zeros(0)
    return Listed(column, nothing, nothing, seen, missing)
