"""How many rows and features a patch has."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TypeAlias

from propopt.checks import read_count
from propopt.errors import InvalidInput


PatchRows: TypeAlias = float | int | str
PatchFeatures: TypeAlias = float | int | None

SHARE_AT_LEAST = 20
"""Rows that a share stands for at least, as long as they are no more than half."""


def read_share_or_count(value: object, what: str, other: str) -> float | int:
    """A share in (0, 1) as a float, or a number of at least one as an int.

    Parameters
    ----------
    value : object
        What came.
    what : str
        Its name.
    other : str
        What else would do, for the message.

    Raises
    ------
    InvalidInput
        If it is neither.
    """
    if isinstance(value, Real) and not isinstance(value, Integral):
        share = float(value)
        if 0.0 < share < 1.0:
            return share
    elif not isinstance(value, str | None):
        return read_count(value, what)
    raise InvalidInput(
        f"{what}: expected a share between 0 and 1, a number >= 1{other}, got {value!r}"
    )


def check_rows(rows: object) -> None:
    """Refuse what is no number of rows of any table."""
    if rows != "sqrt":
        read_share_or_count(rows, "rows", " or 'sqrt'")


def rows_in_patch(rows: PatchRows, n_table: int) -> int:
    """n, of a table of N rows; at least one row is out of each patch.

    Parameters
    ----------
    rows : float, int or "sqrt"
        A share is at least 20 rows, or half of a table of fewer than 40.
    n_table : int
        N.

    Raises
    ------
    InvalidInput
        If no row would be left out.

    Examples
    --------
    >>> [rows_in_patch(0.2, n) for n in (10, 60, 500)], rows_in_patch("sqrt", 250)
    ([5, 20, 100], 16)
    """
    if rows == "sqrt":
        n_rows = math.ceil(math.sqrt(n_table))
    else:
        chosen = read_share_or_count(rows, "rows", " or 'sqrt'")
        if isinstance(chosen, int):
            n_rows = chosen
        else:
            n_rows = max(_ceil(chosen * n_table), min(SHARE_AT_LEAST, n_table // 2), 1)
    if n_rows >= n_table:
        raise InvalidInput(
            f"rows: a patch of {n_rows} of {n_table} rows leaves none out to be judged "
            f"by it; expected at most {n_table - 1}"
        )
    return n_rows


def check_features(n_features: object) -> None:
    """Refuse what is no number of features of any table."""
    if n_features is not None:
        read_share_or_count(n_features, "n_features", " or None")


def features_in_patch(n_features: PatchFeatures, n_all: int) -> float:
    """How many of M features, m: a share may be no whole number.

    Parameters
    ----------
    n_features : float, int or None
        None is half of up to 20, and a fifth of more.
    n_all : int
        M.

    Raises
    ------
    InvalidInput
        If there are fewer features than that.

    Examples
    --------
    >>> [features_in_patch(None, n) for n in (5, 20, 50)]
    [3, 10, 10]
    """
    if n_features is None:
        return _ceil((0.5 if n_all <= 20 else 0.2) * n_all)
    chosen = read_share_or_count(n_features, "n_features", " or None")
    kept = chosen if isinstance(chosen, int) else chosen * n_all
    if kept > n_all:
        raise InvalidInput(
            f"n_features: expected at most {n_all}, of so many features, got {kept:g}"
        )
    return kept


def whole_features(kept: float) -> int:
    """How many of a fixed sampling: a share is rounded up.

    Examples
    --------
    >>> whole_features(0.2 * 15), whole_features(2.1)
    (3, 3)
    """
    return _ceil(kept)


def _ceil(number: float) -> int:
    """The next whole number; 0.2 · 15 = 3.0000000000000004 is 3."""
    return math.ceil(number - 1e-9)
