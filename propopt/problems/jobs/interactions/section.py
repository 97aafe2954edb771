"""The job of ``interactions``: which sets of features, how, and how sure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import comb
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    TypeAlias,
)

from pydantic import Discriminator, Field, Tag, model_validator

from propopt.errors import InvalidInput
from propopt.functions import Function
from propopt.interactions import Screen
from propopt.interactions.features import Features
from propopt.interactions.inference.adjust import Adjustment
from propopt.interactions.inference.law import Null, Side
from propopt.interactions.sets import SetChoice, read_order, read_sets
from propopt.problems.extent import Extent
from propopt.problems.jobs.base import Job
from propopt.problems.jobs.interactions.schemes import MINIPATCHES, AnyScheme
from propopt.problems.parts import part
from propopt.problems.section import Count, Section, refuse_settings
from propopt.problems.sources.base import Source
from propopt.problems.subject.models.onnx import OnnxModel


if TYPE_CHECKING:
    from propopt.problems.schema import ProblemSchema


class ScreenSection(Section):
    """The sets of largest scores, by :class:`propopt.interactions.Screen`."""

    n_sets: Count = Field(100, description="how many are scored, of either sign")

    def build(self) -> Screen:
        """The screen of these settings."""
        return Screen(n_sets=self.n_sets)


def _shape_of_sets(value: Any) -> str | None:
    match value:
        case "all":
            return "all"
        case list():
            return "list"
        case dict() | ScreenSection():
            return "screen"
    return None


_MOST_SETS: Final = 1_000_000

SetOfNames: TypeAlias = Annotated[list[str], Field(min_length=1)]
SetsToScore: TypeAlias = Annotated[
    Annotated[Literal["all"], Tag("all")]
    | Annotated[list[SetOfNames], Field(min_length=1), Tag("list")]
    | Annotated[ScreenSection, Tag("screen")],
    Discriminator(
        _shape_of_sets,
        custom_error_type="sets_type",
        custom_error_message="expected all, a list of sets of names, or "
        "{n_sets: }, the number of those that are chosen",
    ),
]


class InteractionsSection(Section):
    """Scores of sets of features, by :class:`propopt.interactions.ILOCO`."""

    scheme: AnyScheme = Field(
        MINIPATCHES, description="how predictors without features are had"
    )
    order: Annotated[int, Field(ge=1, le=8)] = Field(
        2, description="how many features a set has: 1 is LOCO, 2 are pairs"
    )
    sets: SetsToScore = Field(
        "all", description="which: all, lists of names, or the n_sets of largest score"
    )
    groups: dict[str, SetOfNames] = Field(
        {},
        description="columns that are left out together, by the name of the feature "
        "that they are; those of data.groups are",
    )
    error: Literal["auto", "squared", "absolute", "probability"] = Field(
        "auto",
        description="of a prediction: of regressions squared by default, of classes 1 "
        "less the probability of the right one",
    )
    level: Annotated[float, Field(gt=0, lt=1)] = Field(0.9, description="of intervals")
    adjust: Adjustment = Field(
        "bonferroni", description="intervals and p-values for how many sets there are"
    )
    side: Side = Field(
        "both", description="which ends intervals have; lower tells what is above zero"
    )
    against: Null = Field(
        "zero",
        description="what is rejected: a score of zero, or what main effects alone "
        "would show where all patches have one number of features",
    )

    @model_validator(mode="after")
    def _sets_say_their_size(self) -> Self:
        if isinstance(self.sets, list):
            refuse_settings(self, "a list of sets", ("order",))
        return self

    @property
    def chosen(self) -> SetChoice | Screen:
        """Which sets, as :class:`propopt.interactions.ILOCO` takes them."""
        return self.sets.build() if isinstance(self.sets, ScreenSection) else self.sets

    def check(
        self, columns: Sequence[str], n_rows: int, others: Mapping[str, Sequence[str]]
    ) -> None:
        """Refuse sets and patches that a table cannot have.

        Parameters
        ----------
        columns : sequence of str
            Of the table.
        n_rows : int
            Of the table.
        others : mapping
            Groups of the data.

        Raises
        ------
        InvalidInput
            If names are unknown, features too few, sets too many, or patches too small.
        """
        groups: dict[Hashable, Sequence[Hashable]] = dict(others.items())
        features = self.features(columns, groups)
        if isinstance(self.sets, list):
            order = read_sets(self.sets, self.order, features).shape[1]
        else:
            order = read_order(self.order, len(features))
        if self.sets == "all" and comb(len(features), order) > _MOST_SETS:
            raise InvalidInput(
                f"sets: all are {comb(len(features), order):,}, more than "
                f"{_MOST_SETS:,}; list some, or take {{n_sets: 100}}"
            )
        with part("scheme"):
            self.scheme.check(n_rows, features, order)

    @property
    def inference(self) -> dict[str, Any]:
        """Keyword arguments of :meth:`InteractionScores.to_frame`."""
        names = ("level", "adjust", "side", "against")
        return {name: getattr(self, name) for name in names}

    def features(
        self, columns: Sequence[str], others: Mapping[Hashable, Sequence[Hashable]]
    ) -> Features:
        """What is left out of a table with these columns, some in other groups.

        Raises
        ------
        InvalidInput
            If a group names no column, or one that another has.
        """
        return Features.of(columns, self.all_groups(others))

    def all_groups(
        self, others: Mapping[Hashable, Sequence[Hashable]]
    ) -> dict[Hashable, Sequence[Hashable]]:
        """Groups of the data, and those of this section."""
        groups: dict[Hashable, Sequence[Hashable]] = dict(others)
        groups.update(self.groups.items())
        return groups


class InteractionsKeys(Section):
    """The keys of interactions."""

    interactions: InteractionsSection | None = Field(
        None,
        description="how much features matter jointly, with intervals; {} takes all "
        "defaults",
    )


_REFITTED: Final = "has no effect: predictions are judged, of all classes"
_NOT_OF_REFITS: Final = {
    "output": _REFITTED,
    "target_class": _REFITTED,
    "smooth": "has no effect: no slopes are taken",
}


class InteractionsJob(Job):
    """``propopt interactions``: see :func:`propopt.problems.run_interactions`."""

    key: ClassVar[str] = "interactions"
    command: ClassVar[str] = "propopt interactions"
    keys: ClassVar[type[Section]] = InteractionsKeys
    is_of_one_output: ClassVar[bool] = False
    suffixes: ClassVar[tuple[str, ...]] = (
        "_interactions.csv",
        "_main_effects.csv",
        ".svg",
        ".npz",
        ".json",
    )

    def check(self, schema: ProblemSchema, source: Source) -> None:
        _check_learner(schema, source)
        _check_data(schema, source)

    def check_extent(self, schema: ProblemSchema, extent: Extent) -> None:
        assert schema.interactions is not None
        with part("interactions"):
            schema.interactions.check(extent.columns, extent.n_rows, schema.data.groups)

    def check_formula(
        self, schema: ProblemSchema, function: Function, points: Any
    ) -> None:
        """There is none: a formula is refused before."""


def _check_learner(schema: ProblemSchema, source: Source) -> None:
    """Refuse what cannot be fitted again and again, and settings that are not used."""
    model = schema.model
    if model is None:
        message = "a formula cannot be fitted without a feature; interactions need a"
        raise source.error(("function",), f"{message} model")
    if isinstance(model, OnnxModel):
        raise source.error(("model",), f"{model.words} cannot be fitted again")
    for name, message in _NOT_OF_REFITS.items():
        if name in model.model_fields_set:
            raise source.error(("model", name), message)


def _check_data(schema: ProblemSchema, source: Source) -> None:
    data = schema.data
    if data.text is not None:
        message = "words of documents cannot be left out by refits; leave it out"
        raise source.error(("data", "text"), message)
    if data.explain is not None:
        message = "has no effect: each row is judged by models that did not see it"
        raise source.error(("data", "explain"), message)
    if data.csv is not None and data.target is None:
        message = "required, and missing: the column that models learn"
        raise source.error(("data",), message, missing="target")
    if not data.is_table:
        raise source.error(("data",), "expected sklearn or csv, which models learn")
