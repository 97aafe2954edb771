"""A sweep that is run: what is written, and what is printed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from propopt.errors import Unwritten
from propopt.output.progress import PlainConsole, silent
from propopt.output.svg import write_svg
from propopt.output.text import printable
from propopt.problems.jobs.artefacts import Artefacts, Writer, write_json
from propopt.problems.jobs.kept import KeptAttributions
from propopt.problems.jobs.manifest import manifest
from propopt.problems.jobs.printout import (
    print_finding,
    print_subject,
    print_title,
    print_trade_offs,
    warnings_printed,
)
from propopt.problems.jobs.sweep import Sweep
from propopt.problems.problem import Problem
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
    began = time.perf_counter()
    find_solver(solver or problem.solver)  # a typo costs no work
    artefacts = Artefacts.tried(folder, problem.name, Sweep.suffixes, problem.files)
    console = PlainConsole(quiet=quiet)
    print_title(problem.name, problem.files, console)
    with warnings_printed(), silent(quiet):
        trade_offs = _solved(problem, console, n_jobs, solver)
        unwritten = artefacts.write(_of_losses(trade_offs, problem))
        # what no file holds is shown at least
        console.quiet = quiet and not unwritten
        print_trade_offs(trade_offs, problem.swept, console)
        kept, reasons = _kept(trade_offs, problem, artefacts, console)
        print_finding(trade_offs, kept.picked, problem.pick, console)
    if kept.interrupted:
        trade_offs = replace(trade_offs, interrupted=True)
    if unwritten or reasons:
        raise Unwritten("; ".join([*unwritten, *reasons]), trade_offs)
    seconds = time.perf_counter() - began
    files = artefacts.in_words([".csv", ".svg", *kept.writers, ".json"])
    console.print(f"{_asked(problem)}wrote {files} in {seconds:.1f} s\n")
    return trade_offs


def _kept(
    trade_offs: TradeOffs, problem: Problem, artefacts: Artefacts, console: PlainConsole
) -> tuple[KeptAttributions, list[str]]:
    """Write attributions, and what the run was; the reasons of what is not written."""
    with console.status("attributions"):
        kept, reasons = KeptAttributions.of(trade_offs, problem).write(artefacts)
    for sentence in kept.left_out:
        console.print(sentence, markup=False)
    content = _manifest(problem, kept)
    return kept, reasons + artefacts.write({".json": partial(write_json, content)})


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
        problem.setting.describe(problem),
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


def _manifest(problem: Problem, kept: KeptAttributions) -> dict[str, Any]:
    return manifest(
        Sweep.key,
        problem.name,
        problem.subject,
        kept.picked,
        gradient=problem.subject.sloped.gradient_method,
        pick=problem.pick,
        left_out=kept.left_out,
    )
