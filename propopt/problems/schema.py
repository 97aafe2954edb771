"""What a problem file may say: one strict model per section."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, get_args

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from propopt.problems.extent import Extent
from propopt.problems.jobs import JOBS
from propopt.problems.jobs.base import Job
from propopt.problems.jobs.explain import ExplainKeys
from propopt.problems.jobs.interactions.section import InteractionsKeys
from propopt.problems.jobs.lime.section import LimeKeys
from propopt.problems.jobs.sweep import SweepKeys
from propopt.problems.section import Section, Seed
from propopt.problems.subject.data import Data
from propopt.problems.subject.function import Formula
from propopt.problems.subject.models import AnyModel
from propopt.problems.subject.models.base import ModelSection


class CommonKeys(Section):
    """The keys that all jobs share: what is explained, and names."""

    name: Annotated[str, Field(max_length=100, pattern=r"^\w[\w.-]*$")] | None = Field(
        None, description="of the files written; by default the name of this file"
    )
    description: str | None = None
    data: Data
    function: Formula | None = None
    model: AnyModel | None = None
    seed: Seed = 0

    @property
    def explained(self) -> Formula | ModelSection:
        """The function or the model: exactly one is given."""
        parts = [part for part in (self.function, self.model) if part is not None]
        if len(parts) != 1:
            raise PydanticCustomError(
                "one_function",
                "expected exactly one of function and model, got {given}",
                {"given": "both" if parts else "neither"},
            )
        return parts[0]

    @model_validator(mode="after")
    def _consistent(self) -> CommonKeys:
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


class ProblemSchema(InteractionsKeys, LimeKeys, ExplainKeys, SweepKeys, CommonKeys):
    """A problem file: what is explained, and one job with the keys that it knows."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [job.key]} for job in JOBS]}
    )

    @property
    def job(self) -> Job:
        """What is to be done: the first job whose section is there."""
        return next(job for job in JOBS if getattr(self, job.key) is not None)

    def check_extent(self, extent: Extent) -> None:
        """Refuse, before any work, what does not fit the sizes of the subject."""
        self.job.check_extent(self, extent)


# ---- what stands where, for messages


def sections_at(location: tuple[str | int, ...]) -> list[type[Section]]:
    """The sections that may stand at a location, by its keys and chosen kinds."""
    sections: list[type[Section]] = [ProblemSchema]
    for step in location:
        fields = [s.model_fields[str(step)] for s in sections if step in s.model_fields]
        deeper = [inner for field in fields for inner in _sections_in(field.annotation)]
        chosen = [section for section in sections if step in _kinds_of(section)]
        sections = deeper or chosen or sections
    return sections


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
