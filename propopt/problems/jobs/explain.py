"""The job of ``explain``: one explanation with stated defaults, written with names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from propopt.functions import Function
from propopt.problems.extent import Extent
from propopt.problems.graphs import PointGraph
from propopt.problems.jobs.base import Job
from propopt.problems.parts import part
from propopt.problems.section import (
    MOST_NUMBERS,
    Nonnegative,
    Positive,
    Section,
)
from propopt.problems.sources.base import Source


if TYPE_CHECKING:
    from propopt.problems.schema import ProblemSchema
    from propopt.problems.subject.subject import Subject


class ExplainSection(Section):
    """One explanation, by the defaults of :func:`propopt.explain`."""

    scale: Literal["std", "none"] | dict[str, Positive] = Field(
        "std",
        description="attributions are changes per so much of each feature: its "
        "standard deviation, one, or a number for each",
    )
    graph: PointGraph | None = Field(
        None, description="who is similar; by default the eight nearest rows"
    )
    robustness: Nonnegative | None = Field(
        None, description="its weight; by default that at the knee of the whole curve"
    )

    reference: Annotated[int, Field(ge=2, le=MOST_NUMBERS)] | None = Field(
        None,
        description="explain each row by itself, given so many reference rows, drawn "
        "from those that the model is fitted on: the same whoever else is explained",
    )

    @model_validator(mode="after")
    def _compare_with_rows(self) -> Self:
        if self.reference is not None and self.graph is not None:
            raise PydanticCustomError(
                "reference_and_graph",
                "reference and graph: rows by themselves are compared with the "
                "nearest reference rows; leave the graph out",
            )
        return self

    def build(self, subject: Subject) -> dict[str, Any]:
        """Keyword arguments of :func:`propopt.explain`."""
        X = subject.coordinates
        return {
            "scale": None if self.scale == "none" else self.scale,
            "graph": None if self.graph is None else self.graph.build(X, len(X)),
            "robustness": self.robustness,
        }


class ExplainKeys(Section):
    """The keys of an explanation."""

    explain: ExplainSection | None = Field(
        None, description="one explanation with stated defaults; {} takes them all"
    )


class Explain(Job):
    """``propopt explain``: see :func:`run_explain`."""

    key: ClassVar[str] = "explain"
    command: ClassVar[str] = "propopt explain"
    keys: ClassVar[type[Section]] = ExplainKeys
    suffixes: ClassVar[tuple[str, ...]] = (".npz", "_attributions.csv", ".json")

    def check(self, schema: ProblemSchema, source: Source) -> None:
        del schema, source

    def check_extent(self, schema: ProblemSchema, extent: Extent) -> None:
        assert schema.explain is not None
        graph = schema.explain.graph
        with part("explain", "graph"):
            if graph is not None:
                graph.check(extent.n_points)

    def check_formula(
        self, schema: ProblemSchema, function: Function, points: Any
    ) -> None:
        del schema
        function.gradient(points)
