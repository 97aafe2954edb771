"""``propopt sweep``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from math import prod
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
)
from propopt.problems.losses import AnyBaseline, Losses, LossSection
from propopt.problems.problem import Problem
from propopt.problems.sections import (
    MOST_WEIGHTS,
    ErrorGroup,
    Interval,
    Location,
    Missing,
    Nonnegative,
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


# ---- The job of ``objective``: minimise it for many weights or limits


def _in_names(schema: SweepKeys) -> Iterator[PropoptError]:
    """Only losses of the objective have weights, limits and axes."""
    named: list[tuple[Location, str]] = [
        *((("sweep", name), name) for name in schema.sweep),
        *((("limits", name), name) for name in schema.limits),
    ]
    if isinstance(schema.aim, AimSection):
        named += [(("aim", key, name), name) for key, name in schema.aim.named]
    if schema.plot is not None:
        named += [(("plot", "x"), schema.plot.x), (("plot", "y"), schema.plot.y)]
    known = list(schema.losses)
    for location, name in named:
        if name not in known:
            hint = did_you_mean(name, known)
            has = f"it has {', '.join(known)}"
            yield wrong(f"the objective has no {name!r}{hint}; {has}", *location)
    for name in schema.limits:
        if name in schema.sweep:
            yield wrong("has weights in sweep; give limits or weights", "limits", name)


def _in_aims(schema: SweepKeys) -> Iterator[PropoptError]:
    """What chooses the weights stands alone."""
    if schema.error is not None:
        for name in ("sweep", "limits"):
            if getattr(schema, name):
                yield wrong("has no effect beside error, which chooses weights", name)
        if not 2 <= len(schema.losses) <= MOST_LOSSES:
            message = f"expected 2 to {MOST_LOSSES} losses, whose front has an error"
            yield wrong(f"{message}, got {len(schema.losses)}", "objective")


def _in_weights(schema: SweepKeys) -> Iterator[PropoptError]:
    """Some weight is above zero, and there are not too many combinations."""
    losses = schema.losses
    smallest = {n: loss.weight for n, loss in losses.items() if n not in schema.limits}
    smallest |= {name: min(values) for name, values in _listed(schema.sweep).items()}
    tried = (*schema.sweep.values(), *schema.limits.values())
    count = prod(map(count_values, tried))
    if not any(loss.counts_points for loss in losses.values()):
        message = "no loss tells the number of points; add gradient_matching or another"
        yield wrong(message, "objective")
    if not any(smallest.values()):
        yield wrong(
            "expected a weight above zero, got all zero (for some weights of the "
            "sweep, if there is one)",
            "objective",
        )
    elif count > MOST_WEIGHTS:
        place = "sweep" if schema.sweep else "limits"
        yield wrong(
            f"expected at most {MOST_WEIGHTS:,} combinations, got {count:,}", place
        )


def _in_words(schema: SweepKeys) -> Iterator[PropoptError]:
    """No order of words where there are no columns; lengths where there are."""
    smoothness = schema.losses.get("smoothness")
    for name, loss in schema.losses.items():
        if schema.data.text is not None and vars(loss).get("offset") is not None:
            own = ("objective", name, "offset")
            yield wrong("words are there or not, and have no values", *own)
    if schema.data.text is None:
        for place, baseline in enumerate(schema.baselines):
            if getattr(baseline, "scale", ()) is None:
                missing = ("baselines", place, Missing("scale"))
                yield wrong("required, and missing", *missing)
    elif (
        smoothness is not None and smoothness.settings()["graph"].kind not in _OF_WORDS
    ):
        kinds = " or ".join(_OF_WORDS)
        message = f"words have no place beside others to tell here; take {kinds}"
        yield wrong(message, "objective", "smoothness", "graph")


_NO_NUMBERS: Final = ("categorical", "groups", "text")
_OF_WORDS: Final = ("correlation", "complete")


def _in_columns(schema: SweepKeys) -> Iterator[PropoptError]:
    """No categories where numbers are needed."""
    for name in _NO_NUMBERS:
        if not getattr(schema.data, name):
            continue
        if schema.function is not None and name != "text":  # which was told
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
    """What the inductive setting has no way to carry from one input to another."""
    losses, setting = schema.losses, "the inductive setting"
    for name in losses:
        if name not in _OF_INDUCTIVE:
            known = ", ".join(_OF_INDUCTIVE)
            yield wrong(f"{setting} knows {known} alone", "objective", name)
    faithfulness = losses.get("gradient_matching")
    if faithfulness is None or sum(name in losses for name in ROBUSTNESS) != 1:
        needs = "gradient_matching, and either kernel_robustness or pairwise_robustness"
        yield wrong(f"{setting} needs {needs}", "objective")
    elif (norm := faithfulness.settings()["norm"]) != "l2":
        place = ("objective", "gradient_matching", "norm")
        yield wrong(f"{setting} needs 'l2', got {norm!r}", *place)
    for name, loss in losses.items():
        least = min(listed_values(schema.sweep.get(name, [loss.weight])))
        if name != "smoothness" and least == 0.0:
            yield wrong(
                f"{setting} needs a weight > 0; with none, gradients at some inputs "
                "say nothing of another",
                *("sweep" if name in schema.sweep else "objective", name),
            )
        if vars(loss).get("offset") is not None:
            own = ("objective", name, "offset")
            yield wrong(f"{setting} has no main effects of inputs to come", *own)
    for name in ("limits", "aim", "error"):
        if getattr(schema, name):
            yield wrong(f"{setting} knows weights alone; give sweep instead", name)
    for name in _NO_NUMBERS:
        if getattr(schema.data, name):
            yield wrong(f"{setting} needs columns that are numbers", "data", name)


class WeightBox(Interval):
    """Weights of which any may be meant."""

    low: Nonnegative
    high: Positive


class AimSection(Section):
    """What an optimum is to reach, in place of weights."""

    shares: dict[str, Smaller] = Field(
        {}, description="by loss how much smaller it is to be, such as -50%"
    )
    order: list[str] = Field([], description="losses by importance, each once")
    within: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.01, description="of order: by what share of its range each may be above least"
    )
    regret: dict[str, WeightBox] = Field(
        {}, description="by loss the weights for which the largest regret is least"
    )

    @property
    def named(self) -> list[tuple[str, str]]:
        """The key and the name of each loss."""
        keys = ("shares", "order", "regret")
        return [(key, name) for key in keys for name in getattr(self, key)]

    def build(self) -> Aim:
        """The aim."""
        if self.shares:
            return Aim.shares(self.shares)
        if self.order:
            return Aim.order(self.order, self.within)
        boxes = {name: (box.low, box.high) for name, box in self.regret.items()}
        return Aim.regret(boxes)

    def conflicts(self) -> Iterator[PropoptError]:
        given = sorted({key for key, _ in self.named})
        if len(given) != 1:
            came = " and ".join(given) or "none"
            yield wrong(f"expected one of shares, order and regret, got {came}")
        elif "order" not in given:
            yield from self.without_effect(given[0], "within")
        else:
            mistakes = ErrorGroup()
            with mistakes.noted():
                self.build()
            yield from mistakes.found


class Plot(Section):
    """The losses on the axes."""

    x: str
    y: str
    scale: Literal["linear", "log"] = "linear"


AimChoice: TypeAlias = Annotated[
    Literal["knee"] | AimSection,
    Shaped("'knee', or a mapping with shares, order or regret"),
]


class SweepKeys(CommonKeys, JobSection):
    """The keys of a sweep: its section is the whole file."""

    key = "objective"
    command = "sweep"
    suffixes: ClassVar[tuple[str, ...]] = (
        ".csv",
        ".svg",
        ".npz",
        "_attributions.csv",
        ".html",
        ".json",
    )

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
    aim: AimChoice | None = Field(
        None,
        description="what is solved besides and picked: the exact knee, shares, losses "
        "by importance, or the least regret; alone where nothing is swept",
    )
    error: Annotated[Positive, Field(lt=1)] | None = Field(
        None,
        description="in place of sweep and limits: the whole front, to within so large "
        "a share of the range of each loss",
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

    def build_baselines(self) -> list[list[Baseline]]:
        """The baselines of each entry, one for each combination of listed settings."""
        groups = []
        for place, baseline in enumerate(self.baselines):
            with part("baselines", place):
                groups.append(baseline.build(is_text=self.data.text is not None))
        return groups

    def build(self, file: ProblemFile) -> Problem:
        """The problem of a file; its parts are made when they are first asked for."""
        return Problem(file)

    @classmethod
    def job_keys(cls) -> set[str]:
        return {*SweepKeys.model_fields} - CommonKeys.model_fields.keys()

    def mistakes(self, schema: CommonKeys) -> Iterator[PropoptError]:
        del schema  # it is this
        for some in _CHECKS:
            yield from some(self)
        if self.setting == "inductive":
            yield from islice(_not_inductive(self), 1)
        elif "inductive" in self.model_fields_set:
            yield wrong("has no effect without setting: inductive", "inductive")
        mistakes = ErrorGroup()
        with mistakes.noted("solver"):
            find_solver(self.solver)
        for place, baseline in enumerate(self.baselines):
            with mistakes.noted("baselines", place):
                baseline.build(is_text=self.data.text is not None)
        yield from mistakes.found

    def check_formula(self, function: Function, points: Any) -> None:
        if "gradient_matching" in self.losses:
            function.gradient(points)
        if "function_matching" in self.losses:
            function.value(points)

    def introduce(self, file: ProblemFile, run: JobRun) -> None:
        problem, subject = file.build(), file.subject
        with run.console.status("the function and its gradients"):
            _ = problem.objective
        slopes = "effects of words" if subject.is_text else "slopes"
        known = f"slopes known at {len(subject.others)} inputs"
        run.introduce(
            subject,
            plural(len(problem.methods), "baseline"),
            known if self.setting == "inductive" else None,
            slopes=f"{slopes}: {subject.sloped.gradient_method}",
        )

    def solve(self, file: ProblemFile, progress: bool | None = None) -> TradeOffs:
        """The trade-offs, some of them certified from attributions; all if stopped."""
        problem, console = file.build(), PlainConsole(quiet=progress is False)
        found = problem.sweep(_watched(problem, console), progress=progress)
        if found.interrupted:
            return found
        with console.status("the curve, certified from attributions"):
            try:
                found.prove()
            except KeyboardInterrupt:
                return replace(found, interrupted=True)
        return found

    def is_whole(self, found: TradeOffs, file: ProblemFile) -> bool:
        del file
        is_done = not (found.interrupted or found.failures)
        return is_done and bool(found.certified(self.tolerance))

    def outputs(self, found: TradeOffs, run: JobRun) -> Iterator[JobOutput]:
        """Losses first, as reading attributions moves last digits; then the picked."""
        problem = run.file.build()
        plot = partial(_write_plot, found, problem)
        writers: dict[str, Writer] = {".csv": found.to_csv, ".svg": plot}
        documents = [found.document()]
        yield JobOutput(writers, documents=documents, interrupted=found.interrupted)
        with run.console.status("attributions"):
            writers, picked, left_out = self._attributions(found, problem)
            yield JobOutput(writers, is_lazy=True)
        if run.interrupted and not found.interrupted:
            left_out.append("attributions: interrupted")
        subject = problem.subject
        told = manifest(subject, picked, subject.sloped.gradient_method)
        if self.aim is not None and picked is not None:
            told["aim"] = picked.parameters["aim"]
        if found.error is not None:
            told["front_error"] = found.error
        yield JobOutput({}, {**told, "left_out": left_out}, left_out)
        if picked is not None:
            yield JobOutput(documents=[] if is_lazy(picked) else [picked.document()])

    def _attributions(
        self, found: TradeOffs, problem: Problem
    ) -> tuple[dict[str, Writer], Explanation | None, list[str]]:
        """What writes them, the picked optimum, and sentences on what is left out."""
        if self.attributions == "none":
            return {}, None, ["attributions are not written: none are asked for"]
        try:
            best = problem.picked(found)
        except InvalidInput as error:
            return {}, None, [f"attributions are not written: {error}"]
        front, writers = found.front(), page_writers(best, problem.subject)
        n_numbers = len(problem.points) * problem.subject.n_features
        of_front = n_numbers * (len(front.optimized) + len(front.baselines))
        left_out = []
        for suffix, label, count, most, writer in (
            (".npz", "of the front", of_front, _MOST_OF_A_FRONT, front.save),
            (
                *("_attributions.csv", "picked", n_numbers, _MOST_OF_A_TABLE),
                partial(_write_table, best),
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

    def documents(self, found: TradeOffs, file: ProblemFile) -> Sequence[Document]:
        return super().documents(_with_rows(found, file.subject), file)


def _with_rows(found: TradeOffs, subject: Subject) -> TradeOffs:
    """The optima with the values of the rows that they explain."""
    if subject.is_text:
        return found
    points, _ = subject.function.read(subject.points)
    schema = subject.function.schema
    told = {} if schema is None else schema.words_of_codes
    optima = (replace(one, points=points, categories=told) for one in found.optimized)
    return replace(found, optimized=tuple(optima))


def _listed(swept: Mapping[str, Any]) -> dict[str, list[float]]:
    """The weights or limits to sweep, by loss name."""
    return {name: listed_values(values) for name, values in swept.items()}


# ---- What is written, and what is printed meanwhile


_MOST_OF_A_FRONT = 10_000_000
"""Numbers in the attributions of a front that are written without being asked for."""

_MOST_OF_A_TABLE = 1_000_000
"""Numbers in the table of one explanation."""


def _write_table(best: Explanation, path: str) -> None:
    try:
        best.to_csv(path)
    except SolverFailure as failure:  # a point on a curve that is not found
        raise WriteFailure(f"cannot write {path}: {failure}") from failure


def _write_plot(found: TradeOffs, problem: Problem, path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 5.0), layout="constrained")
    plot: Plot | None = problem.keys.plot
    scale = "linear" if plot is None else plot.scale
    found.plot(*problem.axes, ax=figure.subplots(), scale=scale)
    write_svg(figure, path, salt=printable(problem.name))


def _watched(problem: Problem, console: PlainConsole) -> Iterator[Explanation]:
    """The baselines, with a note of how many are made."""
    total = len(problem.methods)
    with console.status("baselines") as status:
        for number, explanation in enumerate(problem.baselines(), start=1):
            method = printable(explanation.method)
            status.update(Text(f"baselines: {number} of {total}, {method}"))
            yield explanation
