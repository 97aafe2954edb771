"""Sections on what is explained: points, and a function or a model."""

from __future__ import annotations

from itertools import chain
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from propopt.problems.section import (
    Count,
    Interval,
    Label,
    Nonnegative,
    Section,
    refuse_settings,
)


class Grid(Interval):
    """A product grid of points."""

    per_dimension: Count
    dimensions: Count
    first: Count | None = None


class Uniform(Interval):
    """Independent points, uniform in a cube; drawn by the seed of the file."""

    points: Count
    dimensions: Count


class Data(Section):
    """Where the points come from: exactly one of grid, uniform, sklearn and csv."""

    grid: Grid | None = None
    uniform: Uniform | None = None
    sklearn: Literal["breast_cancer", "diabetes", "digits", "iris", "wine"] | None = (
        None
    )
    csv: str | None = None
    target: str | None = Field(
        None, description="column of the CSV that the model learns"
    )
    explain: Count | None = Field(
        None,
        description="rows to explain; the model is then fitted on the others, and in "
        "the inductive setting gradients are known at the others",
    )
    categorical: list[str] = Field(
        [], description="columns of the CSV that are categories: text, or codes"
    )
    groups: dict[str, list[str]] = Field(
        {}, description="columns that one-hot encode a feature, by the feature's name"
    )
    standardize: bool = Field(
        False,
        description="scale numeric columns to mean 0, variance 1 of the fitted rows",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Data:
        sources = ("grid", "uniform", "sklearn", "csv")
        given = [n for n in sources if getattr(self, n) is not None]
        if len(given) != 1:
            raise PydanticCustomError(
                "one_source",
                "expected exactly one of grid, uniform, sklearn and csv, got {given}",
                {"given": " and ".join(given) or "none of them"},
            )
        refuse_settings(self, given[0], _NOT_OF_SOURCE[given[0]])
        return self

    @model_validator(mode="after")
    def _columns_once(self) -> Data:
        listed = [*self.categorical, *chain.from_iterable(self.groups.values())]
        twice = next((name for name in listed if listed.count(name) > 1), None)
        if twice is not None:
            raise PydanticCustomError(
                "column_twice",
                "column {name} stands twice in categorical and groups",
                {"name": repr(twice)},
            )
        small = next((n for n, group in self.groups.items() if len(group) < 2), None)
        if small is not None:
            raise PydanticCustomError(
                "small_group",
                "group {name} needs at least two columns",
                {"name": repr(small)},
            )
        return self


_NOT_OF_SOURCE = {
    "grid": ("target", "explain", "standardize", "categorical", "groups"),
    "uniform": ("target", "standardize", "categorical", "groups"),
    "sklearn": ("target", "categorical", "groups"),
    "csv": (),
}


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


class Model(Section):
    """A scikit-learn model, behind a standard scaler."""

    kind: Literal["linear", "logistic", "mlp"]
    task: Literal["classification", "regression"] | None = Field(
        None, description="of mlp; known for scikit-learn's tables"
    )
    hidden: list[Count] = Field([32, 32], max_length=20, description="of mlp")
    activation: Literal["tanh", "relu", "logistic", "identity"] = "tanh"
    regularization: Nonnegative = Field(
        1e-2, description="of mlp (alpha) and logistic (1/C)"
    )
    output: Literal["auto", "value", "probability", "log_odds", "margin"] = "auto"
    target_class: Label | None = Field(None, description="label to explain")

    @model_validator(mode="after")
    def _settings_of_kind(self) -> Model:
        refuse_settings(self, self.kind, _NOT_OF_KIND[self.kind])
        return self


_NOT_OF_KIND = {
    "linear": ("task", "hidden", "activation", "regularization", "target_class"),
    "logistic": ("task", "hidden", "activation"),
    "mlp": (),
}
