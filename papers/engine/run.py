"""Running figures: live lines, pages as they are finished, and a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from rich.console import Console

from papers.engine.figure import AnyPanel, AnyResult, PaperFigure
from papers.engine.findings import Finding, Verdict
from papers.engine.pages import write_figure, write_index, written_files
from papers.engine.paper import Paper
from papers.engine.tally import FigureReport, Tally, findings_table
from propopt.base.errors import InvalidInput
from propopt.base.files import require_writable, writable_folder
from propopt.base.resources import in_workers, read_workers, threads_of_run
from propopt.base.terminal import PlainConsole


@dataclass(frozen=True, eq=False, kw_only=True)
class Report:
    """What came of some figures.

    Parameters
    ----------
    figures : tuple
        The reports of those that were run, in order.
    interrupted : bool
        True if the run was stopped before its end.
    """

    figures: tuple[FigureReport, ...]
    interrupted: bool = False

    @property
    def tally(self) -> Tally:
        """Invariants of ours and statements of the paper, counted apart."""
        return Tally.of(self.figures)

    @property
    def n_failed(self) -> int:
        """How many invariants fail; what the paper states is no promise of ours."""
        return self.tally.n_failed

    def to_frame(self) -> pd.DataFrame:
        """One row per finding, as in ``statements.csv``."""
        return findings_table(self.figures)


def reproduce_paper(
    paper: Paper,
    figures: Sequence[str],
    folder: str | Path,
    *,
    csv: str | Path | None = None,
    target: str | None = None,
    task: str | None = None,
    n_jobs: int | None = None,
    quiet: bool = False,
) -> Report:
    """Run a paper's figures, draw them and check the paper's statements.

    Writes ``<figure>.svg`` and ``<figure>.md`` as each figure is finished, then
    ``README.md``, the index, ``claims.csv`` (statements of the paper),
    ``statements.csv`` (every finding) and ``values.csv`` (losses and distances).

    Parameters
    ----------
    paper : Paper
        Such as ``papers.find_paper("properties")``.
    figures : sequence of str
        ``"all"``, or some of ``paper.figures``; of the paper ``"properties"`` there are
        ``"fig1"`` to ``"fig6"``, ``"appendix"``, ``"tables"``, ``"trends"`` and
        ``"errors"``.
    folder : path
        Where to write; made if it is not there.
    csv, target, task
        A table of your own beside those of ``tables``: the file, the column to learn,
        and ``"classification"`` or ``"regression"``; by default the former where the
        column is text or has two values.
    n_jobs : int, optional
        Panels at once, each in a process of its own; -1 for all processors.
    quiet : bool
        Print nothing.

    Returns
    -------
    Report
        Of an interrupted run what was finished, which is written all the same.

    Raises
    ------
    InvalidInput
        For an unknown figure, a folder or a name that cannot be written to,
        or a table that cannot be read.
    WriteFailure
        If a page cannot be written after all; those before it are whole.
    MissingExtra
        If ``shap`` is needed and not installed.
    """
    chosen = paper.chosen(figures)
    place = writable_folder(folder)
    for file in written_files(chosen):
        require_writable(place / file, [] if csv is None else [Path(csv)])
    table = _read_table(csv, target, task)
    if table is not None:
        chosen = paper.with_table(chosen, *table)
    console = PlainConsole(quiet=quiet)
    return _Run(paper, place, n_jobs, console).all(chosen)


def _read_table(
    csv: str | Path | None, target: str | None, task: str | None
) -> tuple[Path, str, str | None] | None:
    """The table of the user's own: the file, the column to learn and the task."""
    if csv is None:
        if target is not None or task is not None:
            raise InvalidInput(
                "--target and --task say something of a table: add --csv"
            )
        return None
    if target is None:
        raise InvalidInput("--csv needs --target, the column to learn")
    return Path(csv), target, task


@dataclass(frozen=True)
class _Run:
    """Where a run writes, what it prints, and what its verdicts are held against."""

    paper: Paper
    folder: Path
    n_jobs: int | None
    console: Console

    def all(self, figures: Mapping[str, PaperFigure]) -> Report:
        """Each figure in turn, with its pages; until it is interrupted."""
        self.console.print(self.paper.title, markup=False, soft_wrap=True)
        reports: list[FigureReport] = []
        interrupted = False
        for name, figure in figures.items():
            report = self._figure(name, figure)
            interrupted = not report.complete
            _print_claims(report, self.console)
            if report.results:
                write_figure(report, self.folder)
                reports.append(report)
                write_index(reports, self.folder, self.paper.title)
            if interrupted:
                break
        if not reports:
            raise KeyboardInterrupt
        _print_verdict(reports, self.folder, self.console)
        return Report(figures=tuple(reports), interrupted=interrupted)

    def _figure(self, name: str, figure: PaperFigure) -> FigureReport:
        began = time.perf_counter()
        self.console.print(f"{name}: {figure.title}", style="bold", markup=False)
        results: list[AnyResult] = []
        try:
            with self.console.status(f"{name}: {len(figure.panels)} panels"):
                for result in panel_results(figure.panels, self.n_jobs):
                    results.append(result)
                    _print_panel(result, self.console)
        except KeyboardInterrupt:
            self.console.print("interrupted", style="bold red")
        return FigureReport(
            name=name,
            figure=figure,
            results=tuple(results),
            seconds=time.perf_counter() - began,
            record=self.paper.record,
            values=self.paper.values_on_record,
            sentences=self.paper.sentences,
        )


def panel_results(
    panels: Sequence[AnyPanel], n_jobs: int | None
) -> Iterator[AnyResult]:
    """The results in the order of the panels, each as soon as it is there."""
    workers = read_workers(n_jobs)
    runs: list[Callable[[], AnyResult]] = [panel.run for panel in panels]
    with threads_of_run(0):  # tables are small, here as in workers
        if workers == 1:
            yield from (run() for run in runs)
        else:
            yield from in_workers(runs, workers)


def _print_panel(result: AnyResult, console: Console) -> None:
    unmet = [finding for finding in result.findings if not finding.holds]
    holding = len(result.findings) - len(unmet)
    console.print(
        f"  {result.panel.title:<32} {holding:>2} of {len(result.findings):>2} hold "
        f"{result.seconds:7.1f} s",
        markup=False,
        style="red" if any(map(_fails, unmet)) else None,
    )
    for finding in unmet:
        word = "FAIL" if _fails(finding) else "does not hold"
        console.print(
            f"    {word}: {finding.statement}: {finding.value:.6g}, "
            f"expected {finding.condition}{_aside(finding.note)}",
            style="red" if _fails(finding) else None,
            markup=False,
            soft_wrap=True,
        )


def _print_claims(report: FigureReport, console: Console) -> None:
    """The verdict of each statement of the paper that is not confirmed."""
    for claim in report.claims:
        if claim.verdict is not Verdict.CONFIRMED:
            console.print(
                f"  {claim.verdict}: {claim.text}{_aside(claim.reason)}",
                style="yellow",
                markup=False,
                soft_wrap=True,
            )


def _aside(note: str) -> str:
    return f" ({note})" if note else ""


def _fails(finding: Finding) -> bool:
    return finding.verdict is Verdict.FAIL


def _print_verdict(
    reports: Sequence[FigureReport], folder: Path, console: Console
) -> None:
    tally = Tally.of(reports)
    for report in reports:
        for claim in report.changed:
            console.print(
                f"{claim.figure}: {claim.text}: {claim.now.in_words()}, on record: "
                f"{claim.recorded.in_words() if claim.recorded else 'none'}",
                style="bold yellow",
                markup=False,
                soft_wrap=True,
            )
        for drift in report.drifted:
            console.print(
                drift.in_words(), style="bold yellow", markup=False, soft_wrap=True
            )
    console.print(
        f"{tally.in_words()} Wrote {folder / 'README.md'}",
        style="bold red" if tally.n_failed else "bold green",
        markup=False,
        soft_wrap=True,
    )
