"""What a run of a problem file writes and prints."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from propopt.explanation import Explanation
from propopt.files import written_whole
from propopt.problem import Problem
from propopt.tradeoffs import TradeOffs


DONE, SOLVER_FAILURE, INTERRUPTED = 0, 3, 130


def run_problem(
    problem: Problem,
    folder: Path,
    *,
    n_jobs: int | None = None,
    solver: str | None = None,
    quiet: bool = False,
) -> int:
    """Solve a problem file, write ``<name>.csv`` and ``<name>.svg``, print the front.

    Returns
    -------
    int
        0; 3 if a solver failed or missed its tolerance for some weights; 130 if the
        sweep was interrupted. What was finished is written all the same.
    """
    began = time.perf_counter()
    console = Console(quiet=quiet, highlight=False)
    console.print(f"[bold]{problem.name}[/bold] ({problem.source.path})")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        baselines = _baselines(problem, console)
        trade_offs = problem.sweep(
            baselines, solver=solver, n_jobs=n_jobs, progress=_shown(quiet)
        )
    _write(trade_offs, problem, folder)
    _print(trade_offs, problem, console)
    for message in dict.fromkeys(str(w.message) for w in caught):
        print(f"warning: {message}", file=sys.stderr)
    seconds = time.perf_counter() - began
    console.print(f"wrote {folder / problem.name}.csv and .svg in {seconds:.1f} s\n")
    return _exit_code(trade_offs, problem.schema.tolerance)


def _baselines(problem: Problem, console: Console) -> list[Explanation]:
    made = []
    with console.status("the function and its gradients") as status:
        points, function = problem.points, problem.function
        n_points, n_features = points.shape
        for explainer in problem.explainers():
            status.update(f"baseline {explainer!r}")
            made.append(explainer.explain(function, points, rng=problem.schema.seed))
    console.print(
        f"{n_points} points × {n_features} features, {function.gradient_method} gradients, "
        f"{len(made)} baseline explanations"
    )
    return made


def _write(trade_offs: TradeOffs, problem: Problem, folder: Path) -> None:
    trade_offs.to_csv(folder / f"{problem.name}.csv")
    figure = Figure(figsize=(5.2, 3.9), layout="constrained")
    x, y = problem.axes
    trade_offs.plot(x, y, ax=figure.subplots())
    with written_whole(folder / f"{problem.name}.svg") as draft:
        figure.savefig(draft, format="svg", metadata={"Date": None})


def _print(trade_offs: TradeOffs, problem: Problem, console: Console) -> None:
    losses = [f"loss.{name}" for name in trade_offs.losses]
    swept = [f"weight.{name}" for name in problem.weights]
    front = _with_settings(trade_offs.front().to_frame())
    console.print(_table("The front", front[["method", *swept, *losses, "gap"]]))
    if trade_offs.baselines:
        distances = _with_settings(trade_offs.distances())
        title = "Baselines: above the best possible objective by at least the excess"
        console.print(_table(title, distances[["method", *losses, "excess"]]))


def _with_settings(frame: pd.DataFrame) -> pd.DataFrame:
    """The method of each row together with those settings that vary within it."""
    columns = [c for c in frame if c.startswith("parameter.")]
    parts = []
    for _, rows in frame.groupby("method", sort=False):
        varying = [c for c in columns if rows[c].nunique() > 1]
        names = rows["method"]
        for column in varying:
            names = (
                names + f" {column.removeprefix('parameter.')}=" + rows[column].map(str)
            )
        parts.append(names)
    return frame.assign(method=pd.concat(parts)) if parts else frame


def _table(title: str, frame: pd.DataFrame) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in frame:
        name = str(column).removeprefix("loss.").removeprefix("parameter.")
        table.add_column(
            name.replace("_", " "), justify="left" if column == "method" else "right"
        )
    for row in frame.itertuples(index=False):
        cells = zip(frame.columns, row, strict=True)
        table.add_row(*(_cell(str(name), value) for name, value in cells))
    return table


def _cell(column: str, value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload]  # a scalar of any kind
        return "–"
    if column == "excess":
        return f"{value:.1%}"
    if column == "gap":
        return f"{value:.0e}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _shown(quiet: bool) -> bool | None:
    return False if quiet else None


def _exit_code(trade_offs: TradeOffs, tolerance: float) -> int:
    if trade_offs.interrupted:
        return INTERRUPTED
    certificates = [e.certificate for e in trade_offs.optimized]
    certified = all(c is not None and c.holds(tolerance) for c in certificates)
    return DONE if certified and not trade_offs.failures else SOLVER_FAILURE
