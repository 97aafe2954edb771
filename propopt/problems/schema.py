"""What a problem file may say: one strict model per section."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from propopt.explainers import Baseline
from propopt.problems.baselines import AnyBaseline
from propopt.problems.extent import Extent
from propopt.problems.inductive import InductiveSection
from propopt.problems.losses import Losses
from propopt.problems.parts import part
from propopt.problems.section import Positive, Section, Seed
from propopt.problems.setting import ROBUSTNESS, Setting, Transductive
from propopt.problems.subject.data import Data
from propopt.problems.subject.function import Formula
from propopt.problems.subject.models import AnyModel
from propopt.problems.subject.models.base import ModelSection
from propopt.problems.weights import Weights, listed_weights


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
    model: AnyModel | None = None
    objective: Losses
    inductive: InductiveSection = Field(
        default_factory=lambda: InductiveSection.model_validate({}),
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
    def explained(self) -> Formula | ModelSection:
        """The function or the model: exactly one is given."""
        given = [part for part in (self.function, self.model) if part is not None]
        if len(given) != 1:
            raise PydanticCustomError(
                "one_function",
                "expected exactly one of function and model, got {given}",
                {"given": "both" if given else "neither"},
            )
        return given[0]

    @property
    def axes(self) -> tuple[str, str]:
        """The losses on the axes of the plot."""
        if self.plot is not None:
            return self.plot.x, self.plot.y
        first, second, *_ = (*self.objective.losses, *self.objective.losses)
        return first, second

    def build_weights(self) -> dict[str, list[float]]:
        """The weights to sweep, by loss name."""
        return {name: listed_weights(values) for name, values in self.sweep.items()}

    def build_limits(self) -> dict[str, list[float]]:
        """The limits to sweep, by loss name."""
        return {name: listed_weights(values) for name, values in self.limits.items()}

    def build_baselines(self) -> list[list[Baseline]]:
        """The baselines of each entry, one for each combination of listed settings."""
        groups = []
        for place, baseline in enumerate(self.baselines):
            with part("baselines", place):
                groups.append(baseline.build())
        return groups

    def build_setting(self) -> Setting:
        """When the inputs are known."""
        if self.setting == "transductive":
            return Transductive()
        losses = self.objective.losses
        (robustness,) = (losses[name] for name in ROBUSTNESS if name in losses)
        return self.inductive.build(robustness)

    def check_extent(self, extent: Extent) -> None:
        """Refuse, before any work, what does not fit the sizes of the subject."""
        self.objective.check(extent)
        if self.setting == "inductive":
            self.inductive.check(extent)

    @model_validator(mode="after")
    def _consistent(self) -> ProblemSchema:
        learner = self.explained
        if isinstance(learner, Formula) or not learner.needs_target:
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
    for argument in get_args(annotation):
        yield from _sections_in(argument)


def _kinds_of(section: type[Section]) -> tuple[str, ...]:
    """The ``kind``, ``method`` or ``rule`` that chooses a section in a union."""
    for name in ("kind", "method", "rule"):
        if name in section.model_fields:
            return get_args(section.model_fields[name].annotation)
    return ()
