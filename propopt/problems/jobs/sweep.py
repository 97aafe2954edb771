"""``propopt sweep``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from math import prod
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, Tag
from rich.text import Text

from propopt.base.checks import did_you_mean
from propopt.base.errors import (
    InvalidInput,
    MissingExtra,
    ProblemFileError,
    SolverFailure,
    Unwritten,
)
from propopt.base.files import write_svg
from propopt.base.terminal import PlainConsole, silent
from propopt.base.text import printable
from propopt.explaining.explainers import Baseline
from propopt.explaining.trade_offs import TradeOffs
from propopt.functions import Function
from propopt.problems.baselines import AnyBaseline
from propopt.problems.inductive import InductiveSection
from propopt.problems.jobs.job import (
    Job,
    JobRun,
    Writer,
    manifest,
    page_writers,
    print_finding,
    print_subject,
    print_trade_offs,
    warnings_printed,
    write_json,
)
from propopt.problems.losses import (
    GradientMatchingLoss,
    Losses,
    LossSection,
    SmoothnessLoss,
)
from propopt.problems.problem import ROBUSTNESS, Inductive, Problem, check_pick
from propopt.problems.sections import (
    MOST_WEIGHTS,
    Location,
    Nonnegative,
    Positive,
    Section,
    Weights,
    count_weights,
    listed_values,
    part,
    shaped,
)
from propopt.problems.sources import Faults, Source
from propopt.problems.subject.data import CommonKeys, Extent
from propopt.problems.subject.subject import Subject
from propopt.results.explanation import Explanation
from propopt.solvers.task import find_solver


# ---- The job of ``objective``: minimise it for many weights or limits


def _mistakes(schema: SweepKeys, source: Source) -> Iterator[ProblemFileError]:
    """What the file alone shows to fail."""
    for check in (
        _in_names,
        _in_weights,
        _in_setting,
        _in_words,
        _in_baselines,
        _in_columns,
    ):
        yield from check(schema, source)
    try:
        find_solver(schema.solver)
    except (InvalidInput, MissingExtra) as error:
        yield source.error(("solver",), str(error).removeprefix("solver: "))


def _in_names(schema: SweepKeys, source: Source) -> Iterator[ProblemFileError]:
    """Only losses of the objective have weights, limits and axes."""
    named: list[tuple[Location, str]] = []
    for key, swept in (("sweep", schema.sweep), ("limits", schema.limits)):
        named += [((key, name), name) for name in swept]
    if schema.plot is not None:
        named += [(("plot", "x"), schema.plot.x), (("plot", "y"), schema.plot.y)]
    known = list(schema.losses)
    for location, name in named:
        if name not in known:
            yield source.error(
                location,
                f"the objective has no {name!r}{did_you_mean(name, known)}; "
                f"it has {', '.join(known)}",
            )
    for name in schema.limits:
        if name in schema.sweep:
            message = "has weights in sweep; give limits or weights"
            yield source.error(("limits", name), message)


def _in_weights(schema: SweepKeys, source: Source) -> Iterator[ProblemFileError]:
    """Some weight is above zero, and there are not too many combinations."""
    losses = schema.losses
    smallest = {n: loss.weight for n, loss in losses.items() if n not in schema.limits}
    smallest |= {
        name: min(listed_values(values)) for name, values in schema.sweep.items()
    }
    if not any(smallest.values()):
        yield source.error(
            ("objective",),
            "expected a weight above zero, got all zero (for some weights of the "
            "sweep, if there is one)",
        )
        return
    tried = (*schema.sweep.values(), *schema.limits.values())
    count = prod(map(count_weights, tried))
    if count > MOST_WEIGHTS:
        yield source.error(
            ("sweep",) if schema.sweep else ("limits",),
            f"expected at most {MOST_WEIGHTS:,} combinations, got {count:,}",
        )


def _in_words(schema: SweepKeys, source: Source) -> Iterator[ProblemFileError]:
    """No words where there are columns, and no order of words."""
    is_text = schema.data.text is not None
    if "shared_robustness" in schema.losses and not is_text:
        yield source.error(
            ("objective", "shared_robustness"),
            "is of words that documents share, and there is no data.text; rows of a "
            "table share all columns, as pairwise_robustness has it",
        )
    smoothness = schema.losses.get("smoothness")
    if is_text and isinstance(smoothness, SmoothnessLoss):
        kind = getattr(smoothness.graph, "kind", None)
        if kind not in _OF_WORDS:
            yield source.error(
                ("objective", "smoothness", "graph"),
                f"words have no place beside others to tell here; take "
                f"{' or '.join(_OF_WORDS)}",
            )


def _in_baselines(schema: SweepKeys, source: Source) -> Iterator[ProblemFileError]:
    """No settings of tables where there are documents, and none of these elsewhere."""
    is_text = schema.data.text is not None
    for place, baseline in enumerate(schema.baselines):
        unused, needed = baseline.unused(is_text=is_text), baseline.needed
        if unused is not None:
            name, message = unused
            yield source.error(("baselines", place, name), message)
        elif needed is not None and not is_text and getattr(baseline, needed) is None:
            location = ("baselines", place)
            yield source.error(location, "required, and missing", missing=needed)


_NO_NUMBERS: Final = ("categorical", "groups", "text")
_OF_WORDS: Final = ("correlation", "complete")


def _in_columns(schema: SweepKeys, source: Source) -> Iterator[ProblemFileError]:
    """No categories where numbers are needed."""
    for name in _NO_NUMBERS:
        if not getattr(schema.data, name):
            continue
        if schema.function is not None and name != "text":  # which was told
            yield source.error(("data", name), "a formula takes numbers alone")
            return
        if "function_matching" in schema.losses:
            yield source.error(
                ("objective", "function_matching"),
                f"needs columns that are numbers, and there is data.{name}",
            )
            return


# ---- the inductive setting

_OF_INDUCTIVE = ("gradient_matching", *ROBUSTNESS, "smoothness")


def _in_setting(schema: SweepKeys, source: Source) -> Iterator[ProblemFileError]:
    """No ``inductive`` without its setting, and in it only what it knows."""
    if schema.setting == "inductive":
        yield from islice(_not_inductive(schema, source), 1)
    elif "inductive" in schema.model_fields_set:
        message = "has no effect without setting: inductive"
        yield source.error(("inductive",), message)


def _not_inductive(schema: SweepKeys, source: Source) -> Iterator[ProblemFileError]:
    """Other losses than gradient matching, one robustness, and perhaps smoothness.

    And weights of zero for what carries from one input to another, limits, categories.
    """
    losses = schema.losses
    for name in losses:
        if name not in _OF_INDUCTIVE:
            message = f"the inductive setting knows {', '.join(_OF_INDUCTIVE)} alone"
            yield source.error(("objective", name), message)
    faithfulness = losses.get("gradient_matching")
    one_robustness = sum(name in losses for name in ROBUSTNESS) == 1
    if not (isinstance(faithfulness, GradientMatchingLoss) and one_robustness):
        yield source.error(
            ("objective",),
            "the inductive setting needs gradient_matching, and either "
            "kernel_robustness or pairwise_robustness",
        )
    elif faithfulness.norm != "l2":
        yield source.error(
            ("objective", "gradient_matching", "norm"),
            f"the inductive setting needs 'l2', got {faithfulness.norm!r}",
        )
    for name, loss in losses.items():
        least = min(listed_values(schema.sweep.get(name, [loss.weight])))
        if name != "smoothness" and least == 0.0:
            yield source.error(
                ("sweep" if name in schema.sweep else "objective", name),
                "the inductive setting needs a weight > 0; with none, gradients at "
                "some inputs say nothing of another",
            )
    if schema.limits:
        yield source.error(
            ("limits",), "the inductive setting knows weights alone; give sweep instead"
        )
    for name in _NO_NUMBERS:
        if getattr(schema.data, name):
            yield source.error(
                ("data", name), "the inductive setting needs columns that are numbers"
            )


class Plot(Section):
    """The losses on the axes."""

    x: str
    y: str
    scale: Literal["linear", "log"] = "linear"


PickSection: TypeAlias = Annotated[
    Annotated[Literal["knee"], Tag("knee")]
    | Annotated[dict[str, Nonnegative], Tag("values")],
    shaped("pick_type", "expected knee or a mapping", knee="knee", values=dict),
]


class SweepKeys(CommonKeys):
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
        return {name: listed_values(values) for name, values in self.sweep.items()}

    def build_limits(self) -> dict[str, list[float]]:
        """The limits to sweep, by loss name."""
        return {name: listed_values(values) for name, values in self.limits.items()}

    def build_baselines(self, *, is_text: bool = False) -> list[list[Baseline]]:
        """The baselines of each entry, one for each combination of listed settings."""
        groups = []
        for place, baseline in enumerate(self.baselines):
            with part("baselines", place):
                groups.append(baseline.build(is_text=is_text))
        return groups

    def build_setting(self) -> Inductive | None:
        """What is added for inputs that come later."""
        if self.setting == "transductive":
            return None
        (robustness,) = (
            self.losses[name] for name in ROBUSTNESS if name in self.losses
        )
        return self.inductive.build(robustness)


class Sweep(Job[SweepKeys]):
    """``propopt sweep``: see :func:`propopt.problems.run_problem`.

    Its section is all keys of the file.
    """

    key = "objective"
    command = "propopt sweep"
    suffixes = (".csv", ".svg", ".npz", "_attributions.csv", ".html", ".json")

    @classmethod
    def own_keys(cls) -> set[str]:
        return {*SweepKeys.model_fields} - CommonKeys.model_fields.keys()

    @classmethod
    def section_of(cls, schema: CommonKeys) -> SweepKeys:
        assert isinstance(schema, SweepKeys)
        return schema

    @classmethod
    def check(cls, section: SweepKeys, schema: CommonKeys, source: Source) -> None:
        is_text = schema.data.text is not None
        faults = Faults(*_mistakes(section, source))
        swept = {**section.build_weights(), **section.build_limits()}
        with faults.noted(), source.blaming():
            check_pick(section.pick, swept)
        for place, baseline in enumerate(section.baselines):
            with faults.noted(), source.blaming("baselines", place):
                baseline.build(is_text=is_text)
        faults.refuse()

    @classmethod
    def check_extent(
        cls, section: SweepKeys, schema: CommonKeys, extent: Extent
    ) -> None:
        del schema
        assert section.objective is not None
        section.objective.check(extent)
        if section.setting == "inductive":
            section.inductive.check(extent)

    @classmethod
    def check_formula(cls, section: SweepKeys, function: Function, points: Any) -> None:
        if "gradient_matching" in section.losses:
            function.gradient(points)
        if "function_matching" in section.losses:
            function.value(points)

    @classmethod
    def check_data(cls, section: SweepKeys, source: Source) -> None:
        if not any(loss.counts_points for loss in section.losses.values()):
            message = "no loss tells the number of points"
            raise source.error(
                ("objective",), f"{message}; add gradient_matching or another"
            )

    @classmethod
    def check_all(cls, section: SweepKeys, subject: Callable[[], Subject]) -> None:
        for name, loss in section.losses.items():
            of_words = section.data.text is not None and loss.of_features
            if section.function is not None or not (loss.of_function or of_words):
                with part("objective", name):
                    loss.build(subject())


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


def run_problem(
    problem: Problem,
    folder: str | Path,
    *,
    n_jobs: int | None = None,
    solver: str | None = None,
    quiet: bool = False,
) -> TradeOffs:
    """Solve a problem for all its weights and limits, write files, print the front.

    ===================== =============================================================
    ``<name>.csv``        one row for each explanation: :meth:`TradeOffs.to_frame`
    ``<name>.svg``        the two losses of the axes
    ``<name>.npz``        the front with its attributions: :meth:`TradeOffs.save`
    ``<name>_attributions.csv``
                          those of the optimum at ``problem.pick``, with their names
    ``<name>.html``       of documents: the first with their words highlighted
    ``<name>.json``       what was explained and picked, and the score of the model
    ===================== =============================================================

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
    run = JobRun(Sweep, problem.name, problem.files, folder, quiet=quiet)
    console, interrupted = run.console, False
    with warnings_printed(), silent(quiet):
        trade_offs = _solved(problem, console, n_jobs, solver)
        run.write(_of_losses(trade_offs, problem))
        run.show_unwritten()
        print_trade_offs(trade_offs, problem.swept, console)
        with console.status("attributions"):
            writers, picked, left_out = _attributions(trade_offs, problem)
            try:
                run.write(writers)
            except KeyboardInterrupt:
                writers, interrupted = {}, True
                left_out.append("attributions: interrupted")
        for sentence in left_out:
            console.print(sentence)
        content = manifest(
            Sweep.key,
            problem.name,
            problem.subject,
            picked,
            gradient=problem.subject.sloped.gradient_method,
            pick=problem.pick,
            left_out=left_out,
        )
        run.write({".json": partial(write_json, content)})
        print_finding(trade_offs, picked, problem.pick, console)
    if interrupted:
        trade_offs = replace(trade_offs, interrupted=True)
    run.end(trade_offs, [".csv", ".svg", *writers, ".json"], _asked(problem))
    return trade_offs


def _asked(problem: Problem) -> str:
    calls = problem.function.calls
    rows = calls.rows + calls.trials
    return f"{rows:,} model evaluations, " if rows else ""


def _slopes(problem: Problem) -> str:
    """How slopes are had; of documents they are effects of words."""
    name = "effects of words" if problem.subject.is_text else "gradients"
    return f"{problem.subject.sloped.gradient_method} {name}"


def _solved(
    problem: Problem, console: PlainConsole, n_jobs: int | None, solver: str | None
) -> TradeOffs:
    """The trade-offs, some of them certified from attributions."""
    with console.status("the function and its gradients"):
        _ = problem.objective
    print_subject(
        problem.subject,
        console,
        _slopes(problem),
        f"{len(problem.methods)} baseline explanations",
        problem.setting and f"gradients known at {len(problem.subject.others)} inputs",
    )
    trade_offs = problem.sweep(
        _watched(problem, console),
        solver=solver,
        n_jobs=n_jobs,
        progress=False if console.quiet else None,
    )
    if trade_offs.interrupted:
        return trade_offs
    with console.status("the curve, certified from attributions"):
        return _proved(trade_offs)


def _proved(trade_offs: TradeOffs) -> TradeOffs:
    """The same with some points certified from attributions; all of it if stopped."""
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
    """Table and plot; written first, as reading attributions moves last digits."""

    def plot(path: str) -> None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.0, 5.0), layout="constrained")
        trade_offs.plot(*problem.axes, ax=figure.subplots(), scale=problem.scale)
        write_svg(figure, path, salt=printable(problem.name))

    return {".csv": trade_offs.to_csv, ".svg": plot}
