"""``propopt sweep``: optima for many weights or limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from math import inf, prod
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Field
from rich.text import Text

from propopt.base.checks import did_you_mean
from propopt.base.document import Document
from propopt.base.errors import (
    InvalidInput,
    PropoptError,
)
from propopt.base.terminal import PlainConsole
from propopt.base.text import plural, printable
from propopt.explaining.explainers import Baseline
from propopt.explaining.trade_offs import TradeOffs
from propopt.functions import Function
from propopt.problems.inductive import ROBUSTNESS, InductiveSection
from propopt.problems.jobs.job import (
    JobOutput,
    JobRun,
    JobSection,
    Writer,
    figure_file,
    manifest,
    page_writers,
    row_table_writer,
)
from propopt.problems.losses import AnyBaseline, Losses, LossSection
from propopt.problems.problem import Problem
from propopt.problems.sections import (
    MOST_WEIGHTS,
    ErrorGroup,
    Location,
    Positive,
    Section,
    Shaped,
    Smaller,
    Weights,
    listed_values,
    part,
    wrong,
)
from propopt.problems.subject.data import CommonKeys, ProblemFile
from propopt.problems.subject.subject import Subject
from propopt.results.explanation import Explanation
from propopt.solvers.aims import Aim
from propopt.solvers.task import find_solver


_OF_WORDS: Final = ("correlation", "complete")
"""Graphs of features that need no order of columns."""


class AimSection(Section):
    """The aim of an optimum, instead of weights."""

    shares: dict[str, Smaller] = Field(
        {}, description="requested change of each loss, such as -50%"
    )
    order: list[str] = Field([], description="losses in order of importance, each once")
    within: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.01,
        description="for order: how far each may be above its minimum, as a share of "
        "its range",
    )

    def build(self) -> Aim:
        """Make the aim from these settings."""
        if self.shares:
            return Aim.shares(self.shares)
        return Aim.order(self.order, self.within)

    def conflicts(self) -> Iterator[PropoptError]:
        if self.shares:
            yield from self.without_effect("shares", "order", "within")


class Plot(Section):
    """The losses on the axes of the plot."""

    x: str
    y: str


AimChoice: TypeAlias = Annotated[
    Literal["knee"] | AimSection,
    Shaped("'knee', or a mapping with shares or order"),
]


class SweepKeys(CommonKeys, JobSection):
    """The keys of a sweep, which are keys of the file itself."""

    key = "objective"
    command = "sweep"
    suffixes: ClassVar[tuple[str, ...]] = (
        ".csv",
        ".svg",
        ".npz",
        "_attributions.csv",
        "_attributions.parquet",
        ".html",
        ".json",
    )

    setting: Literal["transductive", "inductive"] = Field(
        "transductive",
        description="inductive: explain the rows of data.explain from gradients at the "
        "other rows, for comparison with the optimum",
    )
    objective: Losses | None = None
    inductive: InductiveSection = Field(
        default_factory=lambda: InductiveSection.model_validate({}),
        description="settings of setting: inductive; optional",
    )
    sweep: dict[str, Weights] = Field({}, description="weights to try, by loss")
    limits: dict[str, Weights] = Field(
        {},
        description="upper limits to try, by loss: these losses are bounded instead of "
        "weighted",
    )
    baselines: list[AnyBaseline] = Field([])
    plot: Plot | None = None
    aim: AimChoice | None = Field(
        None,
        description="an additional optimum, which is then selected: the exact knee, "
        "shares, or losses by importance",
    )
    error: Annotated[Positive, Field(lt=1)] | None = Field(
        None,
        description="instead of sweep and limits: the whole front, with at most this "
        "error, as a share of the range of each loss",
    )
    attributions: Literal["auto", "all", "none"] = Field(
        "auto",
        description="which are written: auto omits very large ones, with a message; "
        "those of the selected optimum are a Parquet file of any size, if data are",
    )
    solver: str = "auto"
    tolerance: Positive = 1e-6

    @property
    def losses(self) -> dict[str, LossSection]:
        """Sections of the losses in the objective, by name."""
        return {} if self.objective is None else self.objective.losses

    def build_baselines(self) -> list[list[Baseline]]:
        """The baselines of each entry, one for each combination of listed settings."""
        groups = []
        for index, baseline in enumerate(self.baselines):
            with part("baselines", index):
                groups.append(baseline.build(is_text=self.data.text is not None))
        return groups

    def build(self, file: ProblemFile) -> Problem:
        """The problem of a file; its parts are made on demand."""
        return Problem(file)

    @classmethod
    def job_keys(cls) -> set[str]:
        return SweepKeys.model_fields.keys() - CommonKeys.model_fields.keys()

    def mistakes(self, schema: CommonKeys) -> Iterator[PropoptError]:
        """Errors that would come late, or of a sweep that would not end."""
        del schema  # the same as self
        losses = self.losses
        for location, name in self._mentioned():
            if name not in losses:
                hint = did_you_mean(name, list(losses))
                message = f"the objective has no {name!r}{hint}"
                yield wrong(f"{message}; it has {', '.join(losses)}", *location)
        if self.data.text is not None:
            yield from self._not_of_words()
        tried = (*self.sweep.values(), *self.limits.values())
        count = prod(len(listed_values(values)) for values in tried)
        if count > MOST_WEIGHTS:
            key = "sweep" if self.sweep else "limits"
            message = f"expected at most {MOST_WEIGHTS:,} combinations, got {count:,}"
            yield wrong(message, key)
        if self.setting == "inductive":
            yield from islice(self._not_inductive(), 1)
        elif "inductive" in self.model_fields_set:
            yield wrong("has no effect without setting: inductive", "inductive")
        group = ErrorGroup()
        with group.noted("solver"):
            find_solver(self.solver)
        yield from group.errors

    def _mentioned(self) -> Iterator[tuple[Location, str]]:
        """The location and the name of each loss that other keys mention."""
        for key in ("sweep", "limits"):
            for name in getattr(self, key):
                yield (key, name), name
        if self.plot is not None:
            yield ("plot", "x"), self.plot.x
            yield ("plot", "y"), self.plot.y
        if isinstance(self.aim, AimSection):
            for name in self.aim.shares:
                yield ("aim", "shares", name), name
            for name in self.aim.order:
                yield ("aim", "order"), name

    def _not_of_words(self) -> Iterator[PropoptError]:
        """Errors of settings that need values or an order of columns."""
        for name, loss in self.losses.items():
            if loss.settings().get("offset") is not None:
                message = "words have no values, and so no main effects"
                yield wrong(message, "objective", name, "offset")
        smoothness = self.losses.get("smoothness")
        if smoothness is None:
            return
        if smoothness.settings()["graph"].kind not in _OF_WORDS:
            kinds = " or ".join(_OF_WORDS)
            message = f"words have no order or positions for this graph; use {kinds}"
            yield wrong(message, "objective", "smoothness", "graph")

    def _not_inductive(self) -> Iterator[PropoptError]:
        """Errors of losses and keys that the inductive setting does not support."""
        losses = self.losses
        others = losses.keys() - {"gradient_matching", *ROBUSTNESS, "smoothness"}
        n_robust = sum(name in losses for name in ROBUSTNESS)
        if others or "gradient_matching" not in losses or n_robust != 1:
            needs = f"gradient_matching, one of {', '.join(ROBUSTNESS)}"
            message = f"the inductive setting takes {needs}, and smoothness"
            yield wrong(message, "objective", *sorted(others)[:1])
        for name, loss in losses.items():
            where = ("objective", name)
            if loss.settings().get("norm", "l2") != "l2":
                yield wrong("the inductive setting needs 'l2'", *where, "norm")
            if loss.settings().get("offset") is not None:
                message = "the inductive setting has no main effects of new inputs"
                yield wrong(message, *where, "offset")
            least = min(listed_values(self.sweep.get(name, [loss.weight])))
            if name != "smoothness" and least == 0.0:
                where = ("sweep", name) if name in self.sweep else where
                yield wrong("the inductive setting needs a weight > 0", *where)
        for name in ("limits", "aim", "error"):
            if getattr(self, name):
                message = "the inductive setting takes only weights; give sweep"
                yield wrong(message, name)

    def check_size(self, n_observed: int) -> None:
        if self.setting == "inductive":
            self.inductive.check_size(n_observed)

    def check_formula(self, function: Function, points: Any) -> None:
        if "gradient_matching" in self.losses:
            function.gradient(points)
        if "function_matching" in self.losses:
            function.value(points)

    def introduce(self, file: ProblemFile, run: JobRun) -> None:
        problem = file.build()
        subject = file.subject
        with run.console.status("the function and its gradients"):
            _ = problem.objective
        inputs_with_slopes = f"slopes at {len(subject.others)} inputs"
        run.introduce(
            subject,
            plural(len(problem.methods), "baseline"),
            inputs_with_slopes if self.setting == "inductive" else None,
            slopes=subject.function_with_slopes.gradient_method,
        )

    def solve(self, file: ProblemFile, progress: bool | None = None) -> TradeOffs:
        """Solve the sweep, and certify its curve from attributions."""
        problem = file.build()
        console = PlainConsole(quiet=progress is False)
        trade_offs = problem.sweep(_watched(problem, console), progress=progress)
        if trade_offs.interrupted:
            return trade_offs
        n_numbers = len(problem.points) * problem.subject.n_features
        if n_numbers > _MOST_PROVED:  # the written optimum is certified when it is read
            return trade_offs
        with console.status("the curve, certified from attributions"):
            try:
                trade_offs.prove()
            except KeyboardInterrupt:
                return replace(trade_offs, interrupted=True)
        return trade_offs

    def is_whole(self, trade_offs: TradeOffs, file: ProblemFile) -> bool:
        del file
        is_done = not (trade_offs.interrupted or trade_offs.failures)
        return is_done and bool(trade_offs.certified(self.tolerance))

    def outputs(self, trade_offs: TradeOffs, run: JobRun) -> Iterator[JobOutput]:
        """Losses first, as computing attributions may change last digits."""
        problem = run.file.build()
        plot = partial(_write_plot, trade_offs, problem)
        writers: dict[str, Writer] = {".csv": trade_offs.to_csv, ".svg": plot}
        documents = [trade_offs.document()]
        yield JobOutput(
            writers, documents=documents, interrupted=trade_offs.interrupted
        )
        with run.console.status("attributions"):
            writers, picked, left_out = self._attributions(
                trade_offs, problem, run.file
            )
            yield JobOutput(writers, is_lazy=True)
        if run.interrupted and not trade_offs.interrupted:
            left_out.append("attributions: interrupted")
        subject = problem.subject
        content = manifest(
            subject, picked, subject.function_with_slopes.gradient_method
        )
        if self.aim is not None and picked is not None:
            content["aim"] = picked.parameters["aim"]
        if trade_offs.error is not None:
            content["front_error"] = trade_offs.error
        yield JobOutput({}, {**content, "left_out": left_out}, left_out)
        if picked is not None:
            yield JobOutput(
                documents=[] if picked.is_lazy("attributions") else [picked.document()]
            )

    def _attributions(
        self, trade_offs: TradeOffs, problem: Problem, file: ProblemFile
    ) -> tuple[dict[str, Writer], Explanation | None, list[str]]:
        """Writers of attributions, the selected optimum, and lines on omitted files."""
        if self.attributions == "none":
            return {}, None, ["attributions are not written: `attributions: none`"]
        try:
            best = problem.picked(trade_offs)
        except InvalidInput as error:
            return {}, None, [f"attributions are not written: {error}"]
        front = trade_offs.front()
        writers = page_writers(best, problem.subject)
        n_numbers = len(problem.points) * problem.subject.n_features
        of_front = n_numbers * (len(front.optimized) + len(front.baselines))
        left_out = []
        ending, table = row_table_writer(best, file)
        most_of_a_table = inf if ending == ".parquet" else _MOST_OF_A_TABLE
        for suffix, label, count, most, writer in (
            (".npz", "of the front", of_front, _MOST_OF_A_FRONT, front.save),
            (f"_attributions{ending}", "picked", n_numbers, most_of_a_table, table),
        ):
            if self.attributions == "all" or count <= most:
                writers[suffix] = writer
            else:
                left_out.append(
                    f"attributions {label} are not written ({suffix}): {count:,} "
                    f"numbers are more than {most:,}; `attributions: all` writes them"
                )
        return writers, best, left_out

    def documents(self, trade_offs: TradeOffs, file: ProblemFile) -> Sequence[Document]:
        return super().documents(_with_rows(trade_offs, file.subject), file)


def _with_rows(trade_offs: TradeOffs, subject: Subject) -> TradeOffs:
    """The trade-offs with the values of the explained rows."""
    if subject.is_text:
        return trade_offs
    points, _ = subject.function.read(subject.points)
    schema = subject.function.schema
    categories = {} if schema is None else schema.words_of_codes
    optima = (
        replace(one, points=points, categories=categories)
        for one in trade_offs.optimized
    )
    return replace(trade_offs, optimized=tuple(optima))


# ---- Output files and progress


_MOST_PROVED = 10_000_000
"""Attributions of an optimum up to which others than the written one are computed."""

_MOST_OF_A_FRONT = 10_000_000
"""Largest number of attributions of a front that ``auto`` writes."""

_MOST_OF_A_TABLE = 1_000_000
"""Largest number of attributions in a CSV that ``auto`` writes."""


def _write_plot(trade_offs: TradeOffs, problem: Problem, path: str) -> None:
    with figure_file(path, problem.name, (6.0, 5.0)) as figure:
        trade_offs.plot(*problem.axes, ax=figure.subplots())


def _watched(problem: Problem, console: PlainConsole) -> Iterator[Explanation]:
    """The baselines, with their progress on the console."""
    total = len(problem.methods)
    with console.status("baselines") as status:
        for number, explanation in enumerate(problem.baselines(), start=1):
            method = printable(explanation.method)
            status.update(Text(f"baselines: {number} of {total}, {method}"))
            yield explanation
