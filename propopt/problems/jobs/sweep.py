"""The job of ``objective``: minimise it for many weights or limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from propopt.explainers import Baseline
from propopt.functions import Function
from propopt.problems.baselines import AnyBaseline
from propopt.problems.extent import Extent
from propopt.problems.inductive import InductiveSection
from propopt.problems.jobs.base import Job
from propopt.problems.jobs.sweep_checks import check_sweep, check_tied
from propopt.problems.losses import Losses, LossSection
from propopt.problems.parts import part
from propopt.problems.section import Nonnegative, Positive, Section
from propopt.problems.setting import ROBUSTNESS, Setting, Transductive
from propopt.problems.sources.base import Faults, Source
from propopt.problems.weights import Weights, listed_weights


if TYPE_CHECKING:
    from propopt.problems.file import ProblemFile
    from propopt.problems.schema import ProblemSchema


class Plot(Section):
    """The losses on the axes."""

    x: str
    y: str
    scale: Literal["linear", "log"] = "linear"


def _shape_of_pick(value: Any) -> str | None:
    match value:
        case "knee":
            return "knee"
        case dict():
            return "values"
    return None


PickSection: TypeAlias = Annotated[
    Annotated[Literal["knee"], Tag("knee")]
    | Annotated[dict[str, Nonnegative], Tag("values")],
    Discriminator(
        _shape_of_pick,
        custom_error_type="pick_type",
        custom_error_message="expected knee or a mapping",
    ),
]


class SweepKeys(Section):
    """The keys of a sweep."""

    setting: Literal["transductive", "inductive"] = Field(
        "transductive",
        description="inductive: explain the rows of data.explain from gradients at the "
        "other rows, beside the optimum",
    )
    objective: Losses | None = None
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
    pick: PickSection = Field(
        "knee",
        description="whose attributions are written as a table: those at the knee, or "
        "at the weights and limits nearest to one given for each loss swept",
    )
    attributions: Literal["auto", "all", "none"] = Field(
        "auto",
        description="which are written: auto leaves out the very large, and says so",
    )
    solver: str = "auto"
    tolerance: Positive = 1e-6

    @property
    def losses(self) -> dict[str, LossSection]:
        """The losses of the objective, by name."""
        return {} if self.objective is None else self.objective.losses

    @property
    def axes(self) -> tuple[str, str]:
        """The losses on the axes of the plot."""
        if self.plot is not None:
            return self.plot.x, self.plot.y
        first, second, *_ = (*self.losses, *self.losses)
        return first, second

    def build_weights(self) -> dict[str, list[float]]:
        """The weights to sweep, by loss name."""
        return {name: listed_weights(values) for name, values in self.sweep.items()}

    def build_limits(self) -> dict[str, list[float]]:
        """The limits to sweep, by loss name."""
        return {name: listed_weights(values) for name, values in self.limits.items()}

    def build_baselines(self, *, is_text: bool = False) -> list[list[Baseline]]:
        """The baselines of each entry, one for each combination of listed settings.

        Parameters
        ----------
        is_text : bool
            Whether they explain documents.
        """
        groups = []
        for place, baseline in enumerate(self.baselines):
            with part("baselines", place):
                groups.append(baseline.build(is_text=is_text))
        return groups

    def build_setting(self) -> Setting:
        """When the inputs are known."""
        if self.setting == "transductive":
            return Transductive()
        (robustness,) = (
            self.losses[name] for name in ROBUSTNESS if name in self.losses
        )
        return self.inductive.build(robustness)


class Sweep(Job):
    """``propopt sweep``: see :func:`propopt.problems.run_problem`."""

    key: ClassVar[str] = "objective"
    command: ClassVar[str] = "propopt sweep"
    keys: ClassVar[type[Section]] = SweepKeys
    suffixes: ClassVar[tuple[str, ...]] = (
        ".csv",
        ".svg",
        ".npz",
        "_attributions.csv",
        ".html",
        ".json",
    )

    def check(self, schema: ProblemSchema, source: Source) -> None:
        faults, is_text = Faults(), schema.data.text is not None
        with faults.noted():
            check_sweep(schema, source)
        for place, baseline in enumerate(schema.baselines):
            with faults.noted(), source.blaming("baselines", place):
                baseline.build(is_text=is_text)
        faults.refuse()

    def check_extent(self, schema: ProblemSchema, extent: Extent) -> None:
        assert schema.objective is not None
        schema.objective.check(extent)
        if schema.setting == "inductive":
            schema.inductive.check(extent)

    def check_formula(
        self, schema: ProblemSchema, function: Function, points: Any
    ) -> None:
        if "gradient_matching" in schema.losses:
            function.gradient(points)
        if "function_matching" in schema.losses:
            function.value(points)

    def check_data(self, schema: ProblemSchema, source: Source) -> None:
        check_tied(schema, source)

    def check_all(self, file: ProblemFile) -> None:
        schema = file.schema
        for name, loss in schema.losses.items():
            of_words = schema.data.text is not None and loss.of_features
            if schema.function is not None or not (loss.of_function or of_words):
                with part("objective", name):
                    loss.build(file.subject)
