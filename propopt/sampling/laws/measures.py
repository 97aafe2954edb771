"""Measures on single values of a column."""

from __future__ import annotations

from typing import NamedTuple

from propopt._typing import Array


class Measure(NamedTuple):
    """Masses on finitely many values of one column."""

    values: Array
    """Numbers or codes, NaN where a number is missing, (m,)."""

    masses: Array
    """One for each, (m,)."""
