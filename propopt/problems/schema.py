"""What a problem file may say: one strict model per section."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from propopt.problems.explained import Data, Formula, Model
from propopt.problems.inductive import Inductive
from propopt.problems.losses import Losses
from propopt.problems.section import (
    Interval,
    Nonnegative,
    Positive,
    Section,
    Seed,
)


# ---- sweep and baselines

MOST_WEIGHTS: Final = 100_000
"""Of a range, and combinations of a sweep."""
Samples: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]


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

    @property
    def values(self) -> list[float]:
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
Scales: TypeAlias = Annotated[list[Positive], Field(min_length=1)]


class GradientBaseline(Section):
    """Plain gradients."""

    method: Literal["gradient"]


class SmoothGradBaseline(Section):
    """Mean gradients of perturbed points, one explanation per scale."""

    method: Literal["smoothgrad"]
    scale: Scales
    n_samples: Samples = 100
    distribution: Literal["gaussian", "ball"] = "gaussian"


class LimeBaseline(Section):
    """Local linear fits, one explanation per scale."""

    method: Literal["lime"]
    scale: Scales
    n_samples: Samples = 1000
    distribution: Literal["gaussian", "uniform"] = "gaussian"
    kernel_width: Positive | None = None
    ridge: Nonnegative = 0.0
    fit_intercept: bool = True


class LimePackageBaseline(Section):
    """The lime package."""

    method: Literal["lime_package"]
    n_samples: Samples = 5000
    kernel_width: Positive | None = None
    discretize: bool = True


class ShapBaseline(Section):
    """The shap package, against the mean of the points."""

    method: Literal["shap"]
    units: list[Literal["output", "gradient"]] = Field(["gradient"], min_length=1)
    algorithm: Literal["auto", "exact", "permutation"] = "auto"


AnyBaseline: TypeAlias = Annotated[
    GradientBaseline
    | SmoothGradBaseline
    | LimeBaseline
    | LimePackageBaseline
    | ShapBaseline,
    Field(discriminator="method"),
]


class Plot(Section):
    """The losses on the axes."""

    x: str
    y: str
    scale: Literal["linear", "log"] = "linear"


class ProblemSchema(Section):
    """A problem file: a function at some points, what to minimise, what to compare."""

    name: Annotated[str, Field(max_length=100, pattern=r"^\w[\w.-]*$")] | None = Field(
        None, description="of the files written; by default the name of this file"
    )
    description: str | None = None
    setting: Literal["transductive", "inductive"] = Field(
        "transductive",
        description="inductive: explain the rows of data.explain from gradients at the "
        "other rows, beside the optimum",
    )
    data: Data
    function: Formula | None = None
    model: Model | None = None
    objective: Losses
    inductive: Inductive = Field(
        default_factory=lambda: Inductive.model_validate({}),
        description="of setting: inductive; may be left out",
    )
    sweep: dict[str, Weights] = Field({}, description="weights to try, by loss")
    limits: dict[str, Weights] = Field(
        {},
        description="upper limits to try, by loss: these losses leave the weighted sum "
        "and are bounded instead",
    )
    baselines: list[AnyBaseline] = Field([])
    plot: Plot | None = None
    solver: str = "auto"
    tolerance: Positive = 1e-6
    seed: Seed = 0

    @property
    def explained(self) -> Formula | Model:
        """The function or the model: exactly one is given."""
        given = [part for part in (self.function, self.model) if part is not None]
        if len(given) != 1:
            raise PydanticCustomError(
                "one_function",
                "expected exactly one of function and model, got {given}",
                {"given": "both" if given else "neither"},
            )
        return given[0]

    @model_validator(mode="after")
    def _consistent(self) -> ProblemSchema:
        if isinstance(self.explained, Formula):
            return self
        if self.data.grid is not None or self.data.uniform is not None:
            raise PydanticCustomError(
                "no_table",
                "a model learns from sklearn or csv, and data has {came}",
                {"came": "a grid" if self.data.grid else "uniform points"},
            )
        if self.data.csv is not None and self.data.target is None:
            raise PydanticCustomError(
                "no_target", "a model on a csv needs data.target, the column to learn"
            )
        return self


# ---- what stands where, for messages


def sections_at(location: tuple[str | int, ...]) -> list[type[Section]]:
    """The sections that may stand at a location, by its keys and chosen kinds."""
    found: list[type[Section]] = [ProblemSchema]
    for step in location:
        fields = [s.model_fields[str(step)] for s in found if step in s.model_fields]
        deeper = [inner for field in fields for inner in _sections_in(field.annotation)]
        chosen = [section for section in found if step in _kinds_of(section)]
        found = deeper or chosen or found
    return found


def kinds(location: tuple[str | int, ...]) -> list[str]:
    """The kinds to choose from at a location."""
    return [kind for section in sections_at(location) for kind in _kinds_of(section)]


def _sections_in(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for part in get_args(annotation):
        yield from _sections_in(part)


def _kinds_of(section: type[Section]) -> tuple[str, ...]:
    """The ``kind``, ``method`` or ``rule`` that chooses a section in a union."""
    for name in ("kind", "method", "rule"):
        if name in section.model_fields:
            return get_args(section.model_fields[name].annotation)
    return ()
