"""What all sections of a problem file have in common."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError


class Section(BaseModel):
    """A mapping whose keys are known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Nonnegative: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Count: TypeAlias = Annotated[int, Field(ge=1)]
Several: TypeAlias = Annotated[int, Field(ge=2)]
Seed: TypeAlias = Annotated[int, Field(ge=0)]


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
