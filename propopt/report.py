"""What a run of a problem file writes and prints."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from rich.text import Text

from propopt.errors import InvalidInput, Unwritten
from propopt.output.files import require_free_name, writable_folder
from propopt.output.progress import PlainConsole
from propopt.output.svg import write_svg
from propopt.output.terminal import print_table
from propopt.output.text import printable, printable_lines
from propopt.problems import Problem
from propopt.results.explanation import Explanation
from propopt.solvers import find_solver
from propopt.tradeoffs.table import TradeOffs


def run_problem(
    problem: Problem,
    folder: str | Path,
    *,
    n_jobs: int | None = None,
    solver: str | None = None,
    quiet: bool = False,
) -> TradeOffs:
    """Solve a problem file, write ``<name>.csv`` and ``<name>.svg``, print the front.

    Parameters
    ----------
    problem : Problem
        See :func:`propopt.problems.read_problem`.
    folder : path
        Where to write; made if it is not there.
    n_jobs, solver
        As for :func:`propopt.sweep`; by default the solver that the file names.
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
    began = time.perf_counter()
    find_solver(solver or problem.solver)  # a typo costs no work
    target = writable_folder(folder) / problem.name
    for suffix in (".csv", ".svg"):
        require_free_name(f"{target}{suffix}", problem.files)
    console = PlainConsole(quiet=quiet)
    console.print(printable(problem.name), style="bold", end=" ")
    console.print(f"({printable(problem.files[0])})" if problem.files else "")
    with _warnings_printed():
        with console.status("the function and its gradients"):
            _ = problem.objective
        _describe(problem, console)
        trade_offs = problem.sweep(
            _watched(problem, console),
            solver=solver,
            n_jobs=n_jobs,
            progress=False if quiet else None,
        )
        if not trade_offs.interrupted:
            with console.status("the curve, certified from attributions"):
                trade_offs = _proved(trade_offs)
        unwritten = _write(trade_offs, problem, target)
        # what no file holds is shown at least
        console.quiet = quiet and not unwritten
        _print(trade_offs, problem, console)
    if unwritten:
        raise Unwritten("; ".join(unwritten), trade_offs)
    seconds = time.perf_counter() - began
    calls = problem.function.calls
    rows = calls.rows + calls.trials
    asked = f"{rows:,} model evaluations, " if rows else ""
    files = f"{printable(target)}.csv and .svg"
    console.print(f"{asked}wrote {files} in {seconds:.1f} s\n")
    return trade_offs


def _proved(trade_offs: TradeOffs) -> TradeOffs:
    """The same with some points certified from attributions; all of it if stopped."""
    try:
        trade_offs.prove()
    except KeyboardInterrupt:
        return replace(trade_offs, interrupted=True)
    return trade_offs


@contextmanager
def _warnings_printed() -> Iterator[None]:
    """Print each warning once, on standard error, also before an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for message in dict.fromkeys(str(w.message) for w in caught):
                print(f"warning: {printable_lines(message)}", file=sys.stderr)


def _describe(problem: Problem, console: PlainConsole) -> None:
    parts = (
        f"{len(problem.points)} points × {problem.subject.n_features} features",
        f"{problem.function.gradient_method} gradients",
        f"{len(problem.methods)} baseline explanations",
        problem.setting.describe(problem),
    )
    console.print(", ".join(filter(None, parts)))


def _watched(problem: Problem, console: PlainConsole) -> Iterator[Explanation]:
    """The baselines, with a note of how many are made."""
    total = len(problem.methods)
    with console.status("baselines") as status:
        for number, explanation in enumerate(problem.baselines(), start=1):
            made = printable(explanation.method)
            status.update(Text(f"baselines: {number} of {total}, {made}"))
            yield explanation


def _write(trade_offs: TradeOffs, problem: Problem, target: Path) -> list[str]:
    """Write table and plot; of each that cannot be written the reason."""
    unwritten = []
    for write in (_write_table, _write_plot):
        try:
            write(trade_offs, problem, target)
        except (Unwritten, InvalidInput) as error:  # the folder may be gone
            unwritten.append(str(error))
    return unwritten


def _write_table(trade_offs: TradeOffs, problem: Problem, target: Path) -> None:
    del problem
    trade_offs.to_csv(f"{target}.csv")


def _write_plot(trade_offs: TradeOffs, problem: Problem, target: Path) -> None:
    figure = Figure(figsize=(5.2, 3.9), layout="constrained")
    trade_offs.plot(*problem.axes, ax=figure.subplots(), scale=problem.scale)
    write_svg(figure, f"{target}.svg", salt=printable(problem.name))


def _print(trade_offs: TradeOffs, problem: Problem, console: PlainConsole) -> None:
    losses = [f"loss.{name}" for name in trade_offs.losses]
    swept = [f"weight.{name}" for name in problem.swept]
    table = _with_settings(trade_offs.to_frame())
    front = table.loc[trade_offs.on_front, ["method", *swept, *losses, "gap"]]
    _show("The front", front, console)
    if trade_offs.baselines and trade_offs.optimized:
        distances = _with_settings(trade_offs.distances())
        title = "Baselines: above the best possible objective by at least the excess"
        _show(title, distances[["method", *losses, "excess"]], console)


def _with_settings(frame: pd.DataFrame) -> pd.DataFrame:
    """The method of each row together with those settings that vary within it."""
    columns = [c for c in map(str, frame) if c.startswith("parameter.")]
    parts = []
    for _, rows in frame.groupby("method", sort=False):
        names = rows["method"]
        for column in columns:
            if rows[column].nunique(dropna=False) > 1:
                setting = column.removeprefix("parameter.")
                names = names + f" {setting}=" + rows[column].map(_plain)
        parts.append(names)
    return frame.assign(method=pd.concat(parts)) if parts else frame


def _show(title: str, frame: pd.DataFrame, console: PlainConsole) -> None:
    columns = list(map(str, frame))
    names = [c.removeprefix("loss.").replace("weight.", "weight of_") for c in columns]
    rows = (list(map(_cell, columns, row)) for row in frame.itertuples(index=False))
    print_table(console, title, names, rows)


def _plain(value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload]  # a scalar of any kind
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cell(column: str, value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload]  # a scalar of any kind
        return "–"
    if column == "excess":
        return f"{value:.1%}"
    if column == "gap":
        return f"{value:.0e}" if value else "0"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
