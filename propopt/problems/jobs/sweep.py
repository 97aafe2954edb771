"""``propopt sweep``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from math import prod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Field
from rich.text import Text

from propopt.base.checks import did_you_mean
from propopt.base.document import Document
from propopt.base.errors import (
    InvalidInput,
    PropoptError,
    SolverFailure,
    Unwritten,
)
from propopt.base.files import write_svg
from propopt.base.terminal import PlainConsole
from propopt.base.text import plural, printable
from propopt.base.words_of_others import knows_other_words
from propopt.explaining.between import MOST_LOSSES
from propopt.explaining.explainers import Baseline
from propopt.explaining.trade_offs import TradeOffs
from propopt.functions import Function
from propopt.losses import Objective
from propopt.problems.baselines import AnyBaseline
from propopt.problems.inductive import InductiveSection
from propopt.problems.jobs.job import (
    Answer,
    JobRun,
    JobSection,
    Writer,
    manifest,
    page_writers,
)
from propopt.problems.losses import Losses, LossSection
from propopt.problems.problem import ROBUSTNESS, Problem, check_pick
from propopt.problems.sections import (
    MOST_WEIGHTS,
    Interval,
    Location,
    Missing,
    Mistakes,
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
    """What chooses the weights, or the pick, stands alone."""
    if schema.error is not None:
        for name in ("sweep", "limits"):
            if getattr(schema, name):
                yield wrong("has no effect beside error, which chooses weights", name)
        if not 2 <= len(schema.losses) <= MOST_LOSSES:
            message = f"expected 2 to {MOST_LOSSES} losses, whose front has an error"
            yield wrong(f"{message}, got {len(schema.losses)}", "objective")
    if schema.aim is not None and "pick" in schema.model_fields_set:
        yield wrong("has no effect beside aim, which is picked", "pick")


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
        if schema.data.text is not None and vars(loss).get("beside") is not None:
            own = ("objective", name, "beside")
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
        if vars(loss).get("beside") is not None:
            own = ("objective", name, "beside")
            yield wrong(f"{setting} has no own values of inputs to come", *own)
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
            mistakes = Mistakes()
            with mistakes.noted():
                self.build()
            yield from mistakes.found


class Plot(Section):
    """The losses on the axes."""

    x: str
    y: str
    scale: Literal["linear", "log"] = "linear"


PickSection: TypeAlias = Annotated[
    Literal["knee"] | dict[str, Nonnegative],
    Shaped("'knee', or a mapping of each loss swept to a value"),
]


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
    pick: PickSection = Field(
        "knee",
        description="whose attributions are written as a table: those at the knee, or "
        "at the weights and limits nearest to one given for each loss swept",
    )
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

    def problem(self, file: ProblemFile) -> Problem:
        """The problem of a file; its parts are made when they are first asked for."""
        same = ("solver", "tolerance", "seed", "pick", "attributions", "error")
        setting, plot = None, self.plot
        if self.setting == "inductive":
            robust = [self.losses[name] for name in ROBUSTNESS if name in self.losses]
            setting = self.inductive.build(robust[0])

        def objective() -> Objective:
            assert self.objective is not None
            with file.source.blaming():
                return self.objective.build(file.subject)

        return Problem(
            subject=lambda: file.subject,
            objective=objective,
            weights=_listed(self.sweep),
            limits=_listed(self.limits),
            baselines=self.build_baselines(),
            aim=self.aim.build() if isinstance(self.aim, AimSection) else self.aim,
            setting=setting,
            name=file.name,
            axes=None if plot is None else (plot.x, plot.y),
            scale="linear" if plot is None else plot.scale,
            files=file.files,
            **{name: getattr(self, name) for name in same},
        )

    @classmethod
    def own_keys(cls) -> set[str]:
        return {*SweepKeys.model_fields} - CommonKeys.model_fields.keys()

    def mistakes(self, schema: CommonKeys) -> Iterator[PropoptError]:
        del schema  # it is this
        for some in (_in_names, _in_aims, _in_weights, _in_words, _in_columns):
            yield from some(self)
        if self.setting == "inductive":
            yield from islice(_not_inductive(self), 1)
        elif "inductive" in self.model_fields_set:
            yield wrong("has no effect without setting: inductive", "inductive")
        mistakes = Mistakes()
        with mistakes.noted("solver"):
            find_solver(self.solver)
        with mistakes.noted():
            check_pick(self.pick, {**_listed(self.sweep), **_listed(self.limits)})
        for place, baseline in enumerate(self.baselines):
            with mistakes.noted("baselines", place):
                baseline.build(is_text=self.data.text is not None)
        yield from mistakes.found

    def check_formula(self, function: Function, points: Any) -> None:
        if "gradient_matching" in self.losses:
            function.gradient(points)
        if "function_matching" in self.losses:
            function.value(points)

    def check_all(self, subject: Callable[[], Subject]) -> None:
        for name, loss in self.losses.items():
            of_words = self.data.text is not None and loss.of_features
            if self.function is not None or not (loss.needs_function or of_words):
                with part("objective", name):
                    loss.build(subject())

    def run(self, file: ProblemFile, folder: str | Path, *, quiet: bool = False) -> Any:
        find_solver(file.solver or self.solver)  # a typo costs no work
        return super().run(file, folder, quiet=quiet)

    def do(self, file: ProblemFile, run: JobRun) -> TradeOffs:
        report = partial(self.report, file=file) if file.report else None
        return _run(self.problem(file), run, file.n_jobs, file.solver, report)

    def documents(self, found: TradeOffs, file: ProblemFile) -> Sequence[Document]:
        return super().documents(with_rows(found, file.subject), file)


def with_rows(found: TradeOffs, subject: Subject) -> TradeOffs:
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


# ---- Which attributions of a sweep are written, and which are too many


_MOST_OF_A_FRONT = 10_000_000
"""Numbers in the attributions of a front that are written without being asked for."""

_MOST_OF_A_TABLE = 1_000_000
"""Numbers in the table of one explanation."""


def _attributions(
    trade_offs: TradeOffs, problem: Problem
) -> tuple[dict[str, Writer], Explanation | None, list[str]]:
    """What writes them, the picked optimum, and sentences on what is left out."""
    if problem.attributions == "none":
        return {}, None, ["attributions are not written: none are asked for"]
    try:
        best = problem.picked(trade_offs)
    except InvalidInput as error:
        return {}, None, [f"attributions are not written: {error}"]
    front, page = trade_offs.front(), page_writers(best, problem.subject)
    n_numbers = len(problem.points) * problem.subject.n_features
    of_front = n_numbers * (len(front.optimized) + len(front.baselines))
    table: Writer = partial(_write_table, best)
    writers: dict[str, Writer] = {}
    left_out = []
    for suffix, label, count, most, writer in (
        (".npz", "of the front", of_front, _MOST_OF_A_FRONT, front.save),
        ("_attributions.csv", "picked", n_numbers, _MOST_OF_A_TABLE, table),
    ):
        if problem.attributions == "all" or count <= most:
            writers[suffix] = writer
        else:
            left_out.append(
                f"attributions {label} are not written ({suffix}): {count:,} numbers "
                f"are more than {most:,}; `attributions: all` writes them"
            )
    return writers | page, best, left_out


def _write_table(best: Explanation, path: str) -> None:
    try:
        best.to_csv(path)
    except SolverFailure as failure:  # a point on a curve that is not found
        raise Unwritten(f"cannot write {path}: {failure}") from failure


# ---- A sweep that is run: what is written, and what is printed meanwhile


@knows_other_words
def run_problem(
    problem: Problem,
    folder: str | Path,
    *,
    n_jobs: int | None = None,
    solver: str | None = None,
    quiet: bool = False,
) -> TradeOffs:
    """Solve a problem for all its weights and limits, write files, print the front.

    =========================== =======================================================
    ``<name>.csv``              one row for each explanation: :meth:`TradeOffs.to_frame`
    ``<name>.svg``              the two losses of the axes
    ``<name>.npz``              the front with attributions: :meth:`TradeOffs.save`
    ``<name>_attributions.csv`` of the optimum at ``problem.pick``, with their names
    ``<name>.html``             of documents: the first with their words highlighted;
                                with ``--report`` a page of what was found
    ``<name>.json``             what was explained and picked; the score of the model
    =========================== =======================================================

    Attributions of a curve are computed for these files. More than 10 million numbers
    for the front, or one million for the table, are left out, as the printout and
    ``<name>.json`` then say; ``attributions="all"`` writes them.

    Parameters
    ----------
    problem : Problem
        Made of objects, or by :func:`propopt.problems.read_problem` and ``build()``.
    folder : path
        Where to write; made if it is not there.
    n_jobs, solver
        As for :func:`propopt.sweep`; by default the solver of the problem.
    quiet : bool
        Print nothing but warnings, which go to standard error.

    Returns
    -------
    TradeOffs
        Of an interrupted sweep what was finished, which is written all the same.

    Raises
    ------
    InvalidInput
        If the folder or the names cannot be written, or are those of files that the
        problem reads, before any work.
    Unwritten
        If a file cannot be written at the end: the front is printed, and the error has
        the trade-offs as ``result``.
    """
    find_solver(solver or problem.solver)  # a typo costs no work
    run = JobRun(SweepKeys, problem.name, problem.files, folder, quiet=quiet)
    return _run(problem, run, n_jobs, solver, None)


def _run(
    problem: Problem,
    run: JobRun,
    n_jobs: int | None,
    solver: str | None,
    report: Callable[[TradeOffs], Answer] | None,
) -> TradeOffs:
    """The same, once the names of files are tried."""
    found: TradeOffs = run.do(
        partial(_solved, problem, run, n_jobs, solver),
        partial(_answers, problem, run, report),
    )
    if run.interrupted:
        found = replace(found, interrupted=True)
    calls = problem.function.calls
    rows = calls.rows + calls.trials
    run.end(found, f"{rows:,} model evaluations, " if rows else "")
    return found


def _answers(
    problem: Problem,
    run: JobRun,
    report: Callable[[TradeOffs], Answer] | None,
    found: TradeOffs,
) -> Iterator[Answer]:
    """Losses first, as reading attributions moves last digits; then what is picked."""
    whole = not (found.interrupted or found.failures)
    run.is_whole = whole and bool(found.certified(problem.tolerance))
    yield Answer(_of_losses(found, problem), documents=[found.document()])
    with run.console.status("attributions"):
        writers, picked, left_out = _attributions(found, problem)
        yield Answer(writers, is_lazy=True)
    left_out += ["attributions: interrupted"] * run.interrupted
    gradient = problem.subject.sloped.gradient_method
    told = manifest(problem.subject, picked, gradient)
    if problem.aim is not None and picked is not None:
        told["aim"] = picked.parameters["aim"]
    if found.error is not None:
        told["front_error"] = found.error
    yield Answer({}, {**told, "pick": problem.pick, "left_out": left_out}, left_out)
    if picked is not None:
        yield Answer(documents=[] if is_lazy(picked) else [picked.document()])
    if report is not None:
        yield report(found)


def _solved(
    problem: Problem, run: JobRun, n_jobs: int | None, solver: str | None
) -> TradeOffs:
    """The trade-offs, some of them certified from attributions; all if stopped."""
    subject = problem.subject
    with run.console.status("the function and its gradients"):
        _ = problem.objective
    slopes = "effects of words" if subject.is_text else "slopes"
    run.introduce(
        subject,
        plural(len(problem.methods), "baseline"),
        problem.setting and f"slopes known at {len(subject.others)} inputs",
        slopes=f"{slopes}: {subject.sloped.gradient_method}",
    )
    trade_offs = problem.sweep(
        _watched(problem, run.console),
        solver=solver,
        n_jobs=n_jobs,
        progress=run.progress,
    )
    if trade_offs.interrupted:
        return trade_offs
    with run.console.status("the curve, certified from attributions"):
        try:
            trade_offs.prove()
        except KeyboardInterrupt:
            return replace(trade_offs, interrupted=True)
    return trade_offs


def _watched(problem: Problem, console: PlainConsole) -> Iterator[Explanation]:
    """The baselines, with a note of how many are made."""
    total = len(problem.methods)
    with console.status("baselines") as status:
        for number, explanation in enumerate(problem.baselines(), start=1):
            method = printable(explanation.method)
            status.update(Text(f"baselines: {number} of {total}, {method}"))
            yield explanation


def _of_losses(trade_offs: TradeOffs, problem: Problem) -> dict[str, Writer]:
    """Table and plot."""

    def plot(path: str) -> None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.0, 5.0), layout="constrained")
        trade_offs.plot(*problem.axes, ax=figure.subplots(), scale=problem.scale)
        write_svg(figure, path, salt=printable(problem.name))

    return {".csv": trade_offs.to_csv, ".svg": plot}
