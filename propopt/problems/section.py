"""What all sections of a problem file have in common."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Annotated, Any, Final, Self, TypeAlias, Union

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)
from pydantic_core import PydanticCustomError


class Section(BaseModel):
    """A mapping whose keys are known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _not_tiny(value: float) -> float:
    if 0 < value < 1e-100:
        raise PydanticCustomError("tiny", "expected 0, or a number >= 1e-100")
    return value


Positive: TypeAlias = Annotated[
    float, Field(gt=0, le=1e100, allow_inf_nan=False), AfterValidator(_not_tiny)
]
Nonnegative: TypeAlias = Annotated[
    float, Field(ge=0, le=1e100, allow_inf_nan=False), AfterValidator(_not_tiny)
]
"""Weights and scales: their products and squares neither overflow nor vanish."""
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
MOST_NUMBERS: Final = 10_000_000
"""Of any count, and of points × dimensions that a file asks for."""
Count: TypeAlias = Annotated[int, Field(ge=1, le=MOST_NUMBERS)]
Seed: TypeAlias = Annotated[int, Field(ge=0, le=2**32 - 1)]


class Interval(Section):
    """From low to high."""

    low: Finite
    high: Finite

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if not isfinite(self.high - self.low):
            raise PydanticCustomError("range", "low and high are too far apart")
        if self.low >= self.high:
            raise PydanticCustomError(
                "range",
                "expected low < high, got low {low} and high {high}",
                {"low": f"{self.low:g}", "high": f"{self.high:g}"},
            )
        return self


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise PydanticCustomError("label_type", "expected text or a number")
    return value


Label: TypeAlias = Annotated[str | int | float | bool, BeforeValidator(_scalar)]


def refuse_settings(section: Section, chosen: str, names: tuple[str, ...]) -> None:
    """What would have no effect beside a choice is a mistake."""
    for name in sorted(set(names) & section.model_fields_set):
        raise PydanticCustomError(
            "no_effect",
            "{name} has no effect with {chosen}",
            {"name": name, "chosen": chosen},
        )


def one_of(sections: Sequence[type[Section]], key: str) -> Any:
    """The type of a section that is one of these, chosen by the word under ``key``."""
    return Annotated[Union[tuple(sections)], Field(discriminator=key)]  # noqa: UP007
