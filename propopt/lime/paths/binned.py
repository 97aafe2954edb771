"""Columns whose samples are weighted by bits alone."""

from __future__ import annotations

from propopt.lime.laws import LimeLaw
from propopt.lime.laws.binned import BinnedColumn
from propopt.lime.laws.column import LimeColumn
from propopt.lime.laws.glime import GlimeColumn


def binned_columns(law: LimeLaw) -> tuple[BinnedColumn | None, ...]:
    """The columns in bins, (D,); None for those whose kernel is of distances."""
    return tuple(map(_binned, law.columns))


def _binned(column: LimeColumn) -> BinnedColumn | None:
    # a neighbourhood has the limits of the law that it is made of
    own = column.column if isinstance(column, GlimeColumn) else column
    return own if isinstance(own, BinnedColumn) else None
