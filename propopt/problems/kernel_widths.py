"""Sections on the kernel widths of LIME: one, some, or a range."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import numpy as np
from pydantic import Discriminator, Field, Tag

from propopt.problems.section import Interval, Positive


MOST_WIDTHS: Final = 1000
"""Of a list or a range."""


class WidthRange(Interval):
    """Kernel widths from low to high, at equal ratios."""

    low: Positive
    high: Positive
    points: Annotated[int, Field(ge=2, le=MOST_WIDTHS)]

    def build(self) -> list[float]:
        """The widths."""
        return [float(v) for v in np.geomspace(self.low, self.high, self.points)]


def _shape_of_widths(value: Any) -> str | None:
    match value:
        case list():
            return "list"
        case dict() | WidthRange():
            return "range"
        case int() | float():
            return "number"
    return None


KernelWidths: TypeAlias = Annotated[
    Annotated[Positive, Tag("number")]
    | Annotated[
        list[Positive], Field(min_length=1, max_length=MOST_WIDTHS), Tag("list")
    ]
    | Annotated[WidthRange, Tag("range")],
    Discriminator(
        _shape_of_widths,
        custom_error_type="widths_type",
        custom_error_message=(
            "expected a number, a list of them, or a range {low: , high: , points: }"
        ),
    ),
]


def listed_widths(widths: float | list[float] | WidthRange) -> list[float]:
    """Those of one, some or a range."""
    match widths:
        case WidthRange():
            return widths.build()
        case list():
            return widths
    return [widths]
