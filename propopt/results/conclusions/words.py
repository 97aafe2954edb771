"""Shares and counts in words."""

from __future__ import annotations

import math


def in_percent(share: float) -> str:
    """A share; a dash where it is not defined.

    Examples
    --------
    >>> in_percent(0.53993), in_percent(float("nan")), in_percent(float("-inf"))
    ('54.0 %', '–', '–')
    """
    return f"{100.0 * share:.1f} %" if math.isfinite(share) else "–"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    Examples
    --------
    >>> plural(1, "row"), plural(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
