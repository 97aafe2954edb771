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
    SolverFailure,
    WriteFailure,
)
from propopt.base.files import write_svg
from propopt.base.terminal import PlainConsole
from propopt.base.text import plural, printable
from propopt.explaining.explainers import Baseline
from propopt.explaining.front_bounds import MOST_LOSSES
from propopt.explaining.trade_offs import TradeOffs
from propopt.functions import Function
from propopt.problems.inductive import ROBUSTNESS, InductiveSection
from propopt.problems.jobs.job import (
    JobOutput,
    JobRun,
    JobSection,
    Writer,
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
    Missing,
    Positive,
    Section,
    Shaped,
    Smaller,
    Weights,
    count_values,
    listed_values,
    part,
    wrong,
)
from propopt.problems.subject.data import CommonKeys, ProblemFile
from propopt.problems.subject.subject import Subject
from propopt.results.explanation import Explanation, is_lazy
from propopt.solvers.aims import Aim
from propopt.solvers.task import find_solver


# ---- Errors that the keys of a sweep show


def _in_names(schema: SweepKeys) -> Iterator[PropoptError]:
    """Errors of weights, limits and axes of losses that the objective lacks."""
    mentioned: list[tuple[Location, str]] = [
        *((("sweep", name), name) for name in schema.sweep),
        *((("limits", name), name) for name in schema.limits),
    ]
    if isinstance(schema.aim, AimSection):
        mentioned += [(("aim", key, name), name) for key, name in schema.aim.named]
    if schema.plot is not None:
        mentioned += [(("plot", "x"), schema.plot.x), (("plot", "y"), schema.plot.y)]
    loss_names = list(schema.losses)
    for location, name in mentioned:
        if name not in loss_names:
            hint = did_you_mean(name, loss_names)
            message = f"it has {', '.join(loss_names)}"
            yield wrong(f"the objective has no {name!r}{hint}; {message}", *location)
    for name in schema.limits:
        if name in schema.sweep:
            yield wrong("has weights in sweep; give limits or weights", "limits", name)


def _in_aims(schema: SweepKeys) -> Iterator[PropoptError]:
    """Errors of ``error`` with other keys for weights."""
    if schema.error is not None:
        for name in ("sweep", "limits"):
            if getattr(schema, name):
                yield wrong("has no effect with error, which chooses weights", name)
        if not 2 <= len(schema.losses) <= MOST_LOSSES:
            message = f"error needs 2 to {MOST_LOSSES} losses in the objective"
            yield wrong(f"{message}, got {len(schema.losses)}", "objective")


def _in_weights(schema: SweepKeys) -> Iterator[PropoptError]:
    """Errors of weights that are all zero, or of too many combinations."""
    losses = schema.losses
    smallest = {n: loss.weight for n, loss in losses.items() if n not in schema.limits}
    smallest |= {n: min(listed_values(values)) for n, values in schema.sweep.items()}
    tried = (*schema.sweep.values(), *schema.limits.values())
    count = prod(map(count_values, tried))
    if not any(loss.counts_points for loss in losses.values()):
        message = (
            "no loss determines the number of points; add gradient_matching or another"
        )
        yield wrong(message, "objective")
    if not any(smallest.values()):
        yield wrong(
            "expected a weight above zero, got all zero (for some weights of the "
            "sweep, if there is one)",
            "objective",
        )
    elif count > MOST_WEIGHTS:
        key = "sweep" if schema.sweep else "limits"
        yield wrong(
            f"expected at most {MOST_WEIGHTS:,} combinations, got {count:,}", key
        )


def _in_words(schema: SweepKeys) -> Iterator[PropoptError]:
    """No order of words where there are no columns; lengths where there are."""
    smoothness = schema.losses.get("smoothness")
    for name, loss in schema.losses.items():
        if schema.data.text is not None and vars(loss).get("offset") is not None:
            location = ("objective", name, "offset")
            yield wrong("words have no values, and so no main effects", *location)
    if schema.data.text is None:
        for index, baseline in enumerate(schema.baselines):
            if getattr(baseline, "scale", ()) is None:
                location_of_scale = ("baselines", index, Missing("scale"))
                yield wrong("required, and missing", *location_of_scale)
    elif (
        smoothness is not None and smoothness.settings()["graph"].kind not in _OF_WORDS
    ):
        kinds = " or ".join(_OF_WORDS)
        message = f"words have no order or positions for this graph; use {kinds}"
        yield wrong(message, "objective", "smoothness", "graph")


_NO_NUMBERS: Final = ("categorical", "groups", "text")
_OF_WORDS: Final = ("correlation", "complete")


def _in_columns(schema: SweepKeys) -> Iterator[PropoptError]:
    """Errors of categories and documents where numbers are needed."""
    for name in _NO_NUMBERS:
        if not getattr(schema.data, name):
            continue
        if schema.function is not None and name != "text":  # which has an error already
            yield wrong("a formula takes numbers alone", "data", name)
            return
        if "function_matching" in schema.losses:
            message = f"needs columns that are numbers, and there is data.{name}"
            yield wrong(message, "objective", "function_matching")
            return


_CHECKS = (_in_names, _in_aims, _in_weights, _in_words, _in_columns)


# ---- the inductive setting

_OF_INDUCTIVE = ("gradient_matching", *ROBUSTNESS, "smoothness")


def _not_inductive(schema: SweepKeys) -> Iterator[PropoptError]:
    """Errors of losses and keys that the inductive setting does not support."""
    losses = schema.losses
    setting = "the inductive setting"
    for name in losses:
        if name not in _OF_INDUCTIVE:
            possible = ", ".join(_OF_INDUCTIVE)
            yield wrong(f"{setting} supports only {possible}", "objective", name)
    faithfulness = losses.get("gradient_matching")
    if faithfulness is None or sum(name in losses for name in ROBUSTNESS) != 1:
        needs = "gradient_matching, and either kernel_robustness or pairwise_robustness"
        yield wrong(f"{setting} needs {needs}", "objective")
    elif (norm := faithfulness.settings()["norm"]) != "l2":
        location = ("objective", "gradient_matching", "norm")
        yield wrong(f"{setting} needs 'l2', got {norm!r}", *location)
    for name, loss in losses.items():
        least = min(listed_values(schema.sweep.get(name, [loss.weight])))
        if name != "smoothness" and least == 0.0:
            yield wrong(
                f"{setting} needs a weight > 0; without it, gradients at some inputs "
                "do not determine explanations of others",
                *("sweep" if name in schema.sweep else "objective", name),
            )
        if vars(loss).get("offset") is not None:
            location_of_offset = ("objective", name, "offset")
            yield wrong(
                f"{setting} has no main effects of new inputs", *location_of_offset
            )
    for name in ("limits", "aim", "error"):
        if getattr(schema, name):
            yield wrong(f"{setting} supports only weights; give sweep instead", name)
    for name in _NO_NUMBERS:
        if getattr(schema.data, name):
            yield wrong(f"{setting} needs columns that are numbers", "data", name)


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

    @property
    def named(self) -> list[tuple[str, str]]:
        """The key and the name of each loss that the aim mentions."""
        keys = ("shares", "order")
        return [(key, name) for key in keys for name in getattr(self, key)]

    def build(self) -> Aim:
        """Make the aim from these settings."""
        if self.shares:
            return Aim.shares(self.shares)
        return Aim.order(self.order, self.within)

    def conflicts(self) -> Iterator[PropoptError]:
        given = sorted({key for key, _ in self.named})
        if len(given) != 1:
            got = " and ".join(given) or "none"
            yield wrong(f"expected one of shares and order, got {got}")
        elif self.shares:
            yield from self.without_effect("shares", "within")
        else:
            group = ErrorGroup()
            with group.noted():
                self.build()
            yield from group.errors


class Plot(Section):
    """The losses on the axes of the plot."""

    x: str
    y: str
    scale: Literal["linear", "log"] = "linear"


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
        return {*SweepKeys.model_fields} - CommonKeys.model_fields.keys()

    def mistakes(self, schema: CommonKeys) -> Iterator[PropoptError]:
        del schema  # the same as self
        for check in _CHECKS:
            yield from check(self)
        if self.setting == "inductive":
            yield from islice(_not_inductive(self), 1)
        elif "inductive" in self.model_fields_set:
            yield wrong("has no effect without setting: inductive", "inductive")
        group = ErrorGroup()
        with group.noted("solver"):
            find_solver(self.solver)
        for index, baseline in enumerate(self.baselines):
            with group.noted("baselines", index):
                baseline.build(is_text=self.data.text is not None)
        yield from group.errors

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
        slopes = "effects of words" if subject.is_text else "slopes"
        inputs_with_slopes = f"slopes at {len(subject.others)} inputs"
        run.introduce(
            subject,
            plural(len(problem.methods), "baseline"),
            inputs_with_slopes if self.setting == "inductive" else None,
            slopes=f"{slopes}: {subject.function_with_slopes.gradient_method}",
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
            written = self._attributions(trade_offs, problem, run.file)
            writers, picked, left_out = written
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
            yield JobOutput(documents=[] if is_lazy(picked) else [picked.document()])

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
            (
                *(f"_attributions{ending}", "picked", n_numbers, most_of_a_table),
                partial(_write_table, table),
            ),
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


def _write_table(write: Writer, path: str) -> None:
    try:
        write(path)
    except SolverFailure as failure:  # a point of a curve was not solved
        raise WriteFailure(f"cannot write {path}: {failure}") from failure


def _write_plot(trade_offs: TradeOffs, problem: Problem, path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 5.0), layout="constrained")
    plot: Plot | None = problem.keys.plot
    scale = "linear" if plot is None else plot.scale
    trade_offs.plot(*problem.axes, ax=figure.subplots(), scale=scale)
    write_svg(figure, path, salt=printable(problem.name))


def _watched(problem: Problem, console: PlainConsole) -> Iterator[Explanation]:
    """The baselines, with their progress on the console."""
    total = len(problem.methods)
    with console.status("baselines") as status:
        for number, explanation in enumerate(problem.baselines(), start=1):
            method = printable(explanation.method)
            status.update(Text(f"baselines: {number} of {total}, {method}"))
            yield explanation
