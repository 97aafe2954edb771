"""Counts in words."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    Examples
    --------
    >>> plural(1, "row"), plural(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
