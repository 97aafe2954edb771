"""The job of ``explain``: one explanation with stated defaults, written with names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from propopt.errors import InvalidInput
from propopt.explaining.contributions import FeatureMetric
from propopt.explaining.interactions import explained_members
from propopt.explaining.target import LawChoice
from propopt.functions import Function
from propopt.interactions import InteractionScores
from propopt.lime import TextLaw
from propopt.output.archives import archive_path
from propopt.problems.extent import Extent
from propopt.problems.graphs import PointGraph
from propopt.problems.jobs.base import Job
from propopt.problems.parts import part
from propopt.problems.section import (
    MOST_NUMBERS,
    Count,
    Nonnegative,
    Positive,
    Section,
)
from propopt.problems.sources.base import Source
from propopt.problems.subject.models.smooth import SmoothGradients


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
    same_pattern: bool = Field(
        False, description="leave out neighbours in which other columns are missing"
    )
    law: Literal[LawChoice, "lime"] = Field(
        "auto",
        description="over what a model is averaged before its slopes are taken: "
        "observed values near each row, gaussian noise, or nothing; by default "
        "observed values where it jumps. Of documents none, for effects of words, "
        "which is the default, or lime, for what the lime package tends to",
    )
    units: Literal["scaled", "output"] = Field(
        "scaled",
        description="changes of the output per scale, or parts of the output that add "
        "up to f(x) less its mean in every row",
    )
    contributions: Literal["shapley", "slopes"] = Field(
        "shapley", description="what attributions in units of the output are close to"
    )
    metric: FeatureMetric = Field(
        "uniform",
        description="how differences of features count in units of the output: alike, "
        "or over the mean square of the contributions of each",
    )
    precision: Positive | None = Field(
        None,
        description="where slopes are sampled, draw until the relative target error "
        "is no larger",
    )
    max_evaluations: Count | None = Field(
        None, description="the most rows that the model is given for draws"
    )
    reference: Annotated[int, Field(ge=2, le=MOST_NUMBERS)] | None = Field(
        None,
        description="explain each row by itself, given so many reference rows, drawn "
        "from those that the model is fitted on: the same whoever else is explained",
    )
    interactions: str | None = Field(
        None,
        description="path, from that of this file, of the .npz that propopt "
        "interactions writes, or their save: a sentence names what matters jointly",
    )

    @model_validator(mode="after")
    def _without_what_is_not_used(self) -> Self:
        for setting, others, reason in self._conflicts():
            unused = [name for name in others if name in self.model_fields_set]
            if unused:
                names = {"setting": setting, "others": ", ".join(unused)}
                raise PydanticCustomError(
                    "unused_setting",
                    "{setting} and {others}: {reason}",
                    {**names, "reason": reason},
                )
        return self

    def _conflicts(self) -> Iterator[tuple[str, tuple[str, ...], str]]:
        """What is asked for, the settings that it does not take, and why."""
        if self.reference is not None:
            yield "reference", ("graph", "same_pattern"), _BY_THEMSELVES
            yield "reference", _OF_DRAWS, _ALONE
        if self.units == "scaled":
            yield "units scaled", ("contributions", "metric"), _NEEDS_OUTPUT
        else:
            yield "units output", _OF_DRAWS, _NEEDS_SLOPES
            if self.contributions == "shapley":
                yield "contributions shapley", ("law",), _NEEDS_SLOPES
        if self.graph is not None:
            yield "graph", ("same_pattern",), _OF_NEAREST

    def scores(self, folder: Path) -> InteractionScores | None:
        """What the file of interactions holds, if one is named.

        Parameters
        ----------
        folder : Path
            From which it is named.

        Raises
        ------
        InvalidInput
            If there is none, or it holds something else.
        """
        path = self.scores_file(folder)
        if path is None:
            return None
        with part("interactions"):
            try:
                return InteractionScores.load(path)
            except FileNotFoundError:
                raise InvalidInput(
                    f"there is no file {path}; propopt interactions writes one"
                ) from None

    def scores_file(self, folder: Path) -> Path | None:
        """The file of interactions, if one is named.

        Parameters
        ----------
        folder : Path
            From which it is named.

        Raises
        ------
        InvalidInput
            If that is no name of a file.
        """
        if self.interactions is None:
            return None
        with part("interactions"):
            return archive_path(folder / self.interactions)

    def check_scores(self, folder: Path, extent: Extent) -> None:
        """Refuse a file of interactions of other features than are explained.

        Parameters
        ----------
        folder : Path
            From which it is named.
        extent : Extent
            Of what is explained.

        Raises
        ------
        InvalidInput
            With what differs.
        """
        scores = self.scores(folder)
        if scores is not None:
            with part("interactions"):
                names = extent.features or None
                explained_members(scores, names, extent.n_features)

    def build(self, subject: Subject) -> dict[str, Any]:
        """Keyword arguments of :func:`propopt.explain`, but data and ``rng``."""
        X = subject.coordinates
        return {
            **self.build_alone(subject),
            "graph": None if self.graph is None else self.graph.build(X, len(X)),
            "same_pattern": self.same_pattern,
            "precision": self.precision,
            "max_evaluations": self.max_evaluations,
        }

    def build_alone(self, subject: Subject) -> dict[str, Any]:
        """Those that :class:`propopt.Explainer` takes too."""
        chosen = isinstance(subject.function, SmoothGradients)  # by model.smooth
        parts = self.units == "output" and self.contributions == "shapley"
        return {
            "units": self.units,
            "contributions": self.contributions,
            "metric": self.metric,
            "scale": None if self.scale == "none" else self.scale,
            "robustness": self.robustness,
            "law": "none" if chosen and not parts else self._law,
        }

    @property
    def _law(self) -> LawChoice | TextLaw:
        return TextLaw() if self.law == "lime" else self.law


_OF_DRAWS = ("precision", "max_evaluations")
_BY_THEMSELVES = (
    "rows by themselves are compared with the nearest reference rows; leave the graph "
    "out"
)
_ALONE = "rows are explained together there; leave one out"
_NEEDS_OUTPUT = "these are of units: output"
_NEEDS_SLOPES = "this is of slopes, and none are taken; leave it out"
_OF_NEAREST = "a graph says itself who is similar; knn has same_pattern"


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
    suffixes: ClassVar[tuple[str, ...]] = (
        ".npz",
        "_attributions.csv",
        ".html",
        ".json",
    )

    def check(self, schema: ProblemSchema, source: Source) -> None:
        assert schema.explain is not None
        _check_documents(schema.explain, schema.data.text is not None, source)
        smoothed = schema.model is not None and schema.model.smooth is not None
        if smoothed and "law" in schema.explain.model_fields_set:
            raise source.error(
                ("explain", "law"), "model.smooth chooses a law too; leave one out"
            )

    def check_extent(self, schema: ProblemSchema, extent: Extent) -> None:
        assert schema.explain is not None
        graph = schema.explain.graph
        with part("explain", "graph"):
            if graph is not None:
                graph.check(extent.n_points)

    def check_files(self, schema: ProblemSchema, folder: Path, extent: Extent) -> None:
        assert schema.explain is not None
        with part("explain"):
            schema.explain.check_scores(folder, extent)

    def check_formula(
        self, schema: ProblemSchema, function: Function, points: Any
    ) -> None:
        del schema
        function.gradient(points)


# ---- documents

_OF_COLUMNS: Final = (
    "scale",
    "metric",
    "same_pattern",
    "precision",
    "max_evaluations",
    "interactions",
)


def _check_documents(section: ExplainSection, is_text: bool, source: Source) -> None:
    """Refuse what has no meaning for words, and for columns what is of words."""
    given = section.model_fields_set
    if not is_text:
        if section.law == "lime":
            message = "lime deletes words of documents, and there is no data.text"
            raise source.error(("explain", "law"), message)
        return
    for name in _OF_COLUMNS:
        if name in given:
            raise source.error(("explain", name), "has no effect with data.text")
    if section.reference is not None:
        message = "documents are explained together; leave it out"
        raise source.error(("explain", "reference"), message)
    if section.law in ("data", "gaussian"):
        message = "words are deleted, not moved; expected 'auto', 'none' or 'lime'"
        raise source.error(("explain", "law"), message)
