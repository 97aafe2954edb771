"""Sections on what is swept: weights, limits, and how many of them."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from propopt.problems.section import Interval, Nonnegative, Positive


MOST_WEIGHTS: Final = 100_000
"""Of a range, and combinations of a sweep."""


class WeightRange(Interval):
    """Weights from low to high."""

    low: Nonnegative
    high: Positive
    points: Annotated[int, Field(ge=2, le=MOST_WEIGHTS)]
    scale: Literal["log", "linear"] = "log"

    @model_validator(mode="after")
    def _positive(self) -> WeightRange:
        if self.scale == "log" and self.low == 0:
            raise PydanticCustomError(
                "log_low", "a log scale needs low > 0; or use scale: linear"
            )
        return self

    def build(self) -> list[float]:
        """The weights."""
        space = np.geomspace if self.scale == "log" else np.linspace
        return [float(v) for v in space(self.low, self.high, self.points)]


def _shape_of_weights(value: Any) -> str | None:
    match value:
        case list():
            return "list"
        case dict() | WeightRange():
            return "range"
    return None


Weights: TypeAlias = Annotated[
    Annotated[list[Nonnegative], Field(min_length=1), Tag("list")]
    | Annotated[WeightRange, Tag("range")],
    Discriminator(
        _shape_of_weights,
        custom_error_type="weights_type",
        custom_error_message="expected a list or a range",
    ),
]


def listed_weights(values: Weights) -> list[float]:
    """The weights of a list or a range."""
    return values.build() if isinstance(values, WeightRange) else values


def count_weights(values: Weights) -> int:
    """How many there are, before any is made."""
    return values.points if isinstance(values, WeightRange) else len(values)
