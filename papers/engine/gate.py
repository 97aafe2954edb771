"""The gate: deliberate errors, each of which has to be seen in every figure it touches.

An error changes what one call returns, in a copy of the figures that is cheap. It
touches a figure if that call is made. It is seen if a check of ours fails, if a
statement is not what it was without the error, or if a value on record moves. A crash
is no catch.

A statement that no error turns is blind, though others see the errors. What was
measured is changed then in each of its numbers, until one change turns the statement.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, final

from rich.console import Console

from papers.engine.figure import AnyPanel, PaperFigure
from papers.engine.findings import Finding
from papers.engine.perturbed import perturbed
from papers.engine.tally import FigureReport, Recorded, RecordedValues
from propopt.base.resources import threads_of_run


Thinned: TypeAlias = Callable[[PaperFigure], PaperFigure]
"""The same figure with fewer and cheaper panels."""


def _same(one: Any) -> Any:
    return one


@final
@dataclass(frozen=True, kw_only=True)
class Mistake:
    """An error that is made on purpose.

    Parameters
    ----------
    name : str
        What is wrong.
    places : tuple of (module or class, str)
        Functions, methods or properties, by owner and name.
    change : callable
        From what these return to what they return instead.
    arguments : callable
        From positional arguments to those that are given instead.
    """

    name: str
    places: tuple[tuple[Any, str], ...]
    change: Callable[[Any], Any] = _same
    arguments: Callable[[tuple[Any, ...]], tuple[Any, ...]] = _same

    @contextmanager
    def made(self) -> Iterator[list[str]]:
        """Make it; the list tells what was called meanwhile."""
        calls: list[str] = []
        with ExitStack() as stack:
            for owner, name in self.places:
                original = vars(owner)[name]
                wrong = self._wrong(original, name, calls)
                for home in _homes(owner, name):
                    setattr(home, name, wrong)
                    stack.callback(setattr, home, name, original)
            yield calls

    def _wrong(self, original: Any, name: str, calls: list[str]) -> Any:
        function = original
        if isinstance(original, property):
            function = original.fget
        elif isinstance(original, cached_property):
            function = original.func
        elif isinstance(original, classmethod | staticmethod):
            function = original.__func__

        def changed(*arguments: Any, **settings: Any) -> Any:
            calls.append(name)
            return self.change(function(*self.arguments(arguments), **settings))

        if isinstance(original, property | cached_property):
            return property(changed)
        if isinstance(original, classmethod | staticmethod):
            return type(original)(changed)
        return changed


@final
@dataclass(frozen=True, kw_only=True)
class Gate:
    """The mistakes that a paper's figures have to see.

    Parameters
    ----------
    mistakes : tuple of Mistake
        Each is made in every figure.
    thinned : mapping
        By figure, what makes it cheap.
    left_out : mapping
        Other figures, each with the reason.
    excused : mapping
        Figure and mistake, where that has no effect, each with the reason.
    apart : mapping
        Figure and statement, where that is of nothing measured, each with the reason.
    always : tuple of Mistake
        What makes runs cheap, with mistakes and without.
    """

    mistakes: tuple[Mistake, ...]
    thinned: Mapping[str, Thinned]
    left_out: Mapping[str, str] = field(default_factory=dict)
    excused: Mapping[tuple[str, str], str] = field(default_factory=dict)
    apart: Mapping[tuple[str, str], str] = field(default_factory=dict)
    always: tuple[Mistake, ...] = ()


@final
@dataclass(frozen=True, kw_only=True)
class Trial:
    """What became of a mistake in a figure.

    Parameters
    ----------
    paper, figure, mistake : str
        Their names.
    seen : tuple of str
        Where it was seen.
    turned : frozenset of str
        The statements that it turned.
    touched : bool
        Whether it was made at all.
    crash : str
        What was raised, if anything was.
    excuse : str
        Why it needs not be seen.
    """

    paper: str
    figure: str
    mistake: str
    seen: tuple[str, ...] = ()
    turned: frozenset[str] = frozenset()
    touched: bool = True
    crash: str = ""
    excuse: str = ""

    @property
    def passes(self) -> bool:
        """True if it was seen, was not made, or cannot be seen."""
        if self.crash:
            return False
        return bool(self.seen or self.excuse) or not self.touched

    def in_words(self) -> str:
        """One line."""
        if self.crash:
            told = f"CRASHED: {self.crash}"
        elif not self.touched:
            told = "not touched"
        elif self.seen:
            more = f", and {len(self.seen) - 1} more" * (len(self.seen) > 1)
            told = f"seen: {self.seen[0]}{more}"
        else:
            told = f"without effect: {self.excuse}" if self.excuse else "NOT SEEN"
        return f"{self.paper} {self.figure}: {self.mistake}: {told}"


def panels(
    *places: int, change: Callable[[AnyPanel], AnyPanel] | None = None
) -> Thinned:
    """Keep the panels at these places, each perhaps changed."""

    def thinned(figure: PaperFigure) -> PaperFigure:
        kept = [figure.panels[place] for place in places]
        return replace(figure, panels=tuple(map(change or _same, kept)))

    return thinned


def try_gate(
    name: str,
    gate: Gate,
    figures: Mapping[str, Callable[[], PaperFigure]],
    values: RecordedValues,
    console: Console,
) -> Iterator[Trial]:
    """Make each mistake in each of these figures.

    Parameters
    ----------
    name : str
        That of the paper.
    gate : Gate
        Its mistakes.
    figures : mapping
        By name, what makes a figure.
    values : mapping
        Values on record: only those panels are compared by value that have any.
    console : Console
        Tells the processor time of each figure.
    """
    on_record = {key[:2] for key in values}
    for figure, make in figures.items():
        began = time.process_time()
        with ExitStack() as stack:
            for cheaper in gate.always:
                stack.enter_context(cheaper.made())
            thin = gate.thinned[figure](make())
            right = _run(figure, thin)
            kept = {k: x for k, x in right.measured.items() if k[:2] in on_record}
            record = {(c.figure, c.text, c.difference): c.now for c in right.claims}
            for failing in _failing(right):
                yield Trial(paper=name, figure=figure, mistake="none", crash=failing)
            checks = (s for s in right.invariants if s.n_holding == len(s.findings))
            statements = {s.text for s in [*right.claims, *checks]}
            for mistake in gate.mistakes:
                trial = _tried(name, right, mistake, record, kept)
                statements -= trial.turned
                excuse = gate.excused.get((figure, mistake.name), "")
                yield replace(trial, excuse=excuse)
            for text, change in _turned_by_changes(thin, statements):
                excuse = gate.apart.get((figure, text), "")
                trial = Trial(paper=name, figure=figure, mistake=f"what turns {text!r}")
                yield replace(trial, seen=(change,) * bool(change), excuse=excuse)
        seconds = time.process_time() - began
        console.print(f"{name} {figure}: {seconds:.1f} s", style="dim", markup=False)


def _tried(
    name: str,
    right: FigureReport,
    mistake: Mistake,
    record: Mapping[tuple[str, str, str], Recorded],
    values: RecordedValues,
) -> Trial:
    trial = Trial(paper=name, figure=right.name, mistake=mistake.name)
    with mistake.made() as calls:
        try:
            report = _run(right.name, right.figure, record, values)
        except Exception as error:  # noqa: BLE001  # any crash is told, and is no catch
            return replace(trial, crash=f"{type(error).__name__}: {error}")
    seen = [
        *_failing(report),
        *(f"{c.text}: {c.now.in_words()}" for c in report.changed),
        *(drift.in_words() for drift in report.drifted),
    ]
    turned = {c.text for c in report.changed}
    turned |= {s.text for s in report.invariants if s.n_holding < len(s.findings)}
    pairs = zip(report.findings, right.findings, strict=True)
    turned |= {own.statement for (_, own), (_, was) in pairs if _moves(own, was)}
    return replace(
        trial, seen=tuple(seen), turned=frozenset(turned), touched=bool(calls)
    )


def _turned_by_changes(
    figure: PaperFigure, statements: set[str]
) -> Iterator[tuple[str, str]]:
    """For each of these statements a change that turns it, or nothing."""
    clear_caches()
    found: dict[str, str] = dict.fromkeys(sorted(statements), "")
    for panel in figure.panels if found else ():
        with warnings.catch_warnings(), threads_of_run(0):
            warnings.simplefilter("ignore")
            measured = panel.measured()
            for statement in panel.statements:
                finding = statement(measured)
                if found.get(finding.statement) == "":
                    found[finding.statement] = _turning(statement, measured, finding)
    yield from found.items()


def _turning(statement: Callable[[Any], Finding], measured: Any, right: Finding) -> str:
    """The first change of what was measured that turns a statement.

    What does not hold has to be of what was measured: its value has to move.
    """
    for change, wrong in perturbed(measured):
        try:
            result = statement(wrong)
        except Exception:  # noqa: BLE001  # numbers that no statement can take
            continue
        if result.holds is not right.holds or _moves(result, right):
            return f"{change}: {result.value:.4g} for {right.value:.4g}"
    return ""


def _moves(result: Finding, right: Finding) -> bool:
    return not right.holds and math.isfinite(result.value) and result != right


def _run(
    name: str,
    figure: PaperFigure,
    record: Mapping[tuple[str, str, str], Recorded] | None = None,
    values: RecordedValues | None = None,
) -> FigureReport:
    """The report of all panels, without anything that was computed before."""
    clear_caches()
    with warnings.catch_warnings(), threads_of_run(0):
        warnings.simplefilter("ignore")
        results = tuple(panel.run() for panel in figure.panels)
    return FigureReport(
        name=name,
        figure=figure,
        results=results,
        seconds=0.0,
        record=record or {},
        values=values or {},
    )


def _failing(report: FigureReport) -> list[str]:
    return [
        f"{s.text}: FAIL" for s in report.invariants if s.n_holding < len(s.findings)
    ]


def _homes(owner: Any, name: str) -> list[Any]:
    """Where a name is the same object: its owner, and modules that imported it."""
    original = vars(owner)[name]
    ours = (
        module
        for key, module in list(sys.modules.items())
        if key.split(".")[0] in ("papers", "propopt")
    )
    importers = [module for module in ours if vars(module).get(name) is original]
    return [owner, *(home for home in importers if home is not owner)]


def clear_caches() -> None:
    """Forget what functions of papers have computed."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "papers":
            for function in list(vars(module).values()):
                clear = getattr(function, "cache_clear", None)
                if clear is not None:
                    clear()
