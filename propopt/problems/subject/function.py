"""The section ``function``: one of the paper's formulas."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from propopt.functions import PAPER_FUNCTIONS, Function, Power
from propopt.problems.section import Section, refuse_settings


class Formula(Section):
    """One of the paper's functions, a sum over the features."""

    name: Literal[
        "power",
        "interactions",
        "sine",
        "sine_of_exponential",
        "linear_plus_sine_of_exponential",
        "linear_plus_sine",
        "quadratic_plus_sine",
        "exponential",
    ]
    degree: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None, description="of power only"
    )

    @model_validator(mode="after")
    def _degree_of_power(self) -> Formula:
        if self.name == "power" and self.degree is None:
            raise PydanticCustomError("degree", "power needs a degree, such as 3")
        if self.name != "power":
            refuse_settings(self, self.name, ("degree",))
        return self

    def build(self) -> Function:
        """The function of that name."""
        return Power(self.degree) if self.degree else PAPER_FUNCTIONS[self.name]()
