"""Columns whose samples are weighted by bits alone."""

from __future__ import annotations

from propopt.lime.laws.base import LimeLaw
from propopt.lime.laws.binned import BinnedColumn
from propopt.lime.laws.glime import without_glime


def binned_columns(law: LimeLaw) -> tuple[BinnedColumn | None, ...]:
    """The columns in bins, (D,); None for those whose kernel is of distances."""
    own = map(without_glime, law.columns)
    return tuple(c if isinstance(c, BinnedColumn) else None for c in own)
