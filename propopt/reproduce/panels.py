"""A panel: one problem file, solved, and what was found about its statements."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeAlias

import pandas as pd

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.problems import Problem, read_problem
from propopt.reproduce.findings import Claim, Finding
from propopt.results.explanation import Explanation
from propopt.tradeoffs.frontier import Enclosure, Frontier
from propopt.tradeoffs.table import TradeOffs


@dataclass(frozen=True, eq=False)
class Solved:
    """A problem file and its trade-offs.

    Parameters
    ----------
    problem, trade_offs
        The file, and what its sweep found.
    redrawn : tuple of Solved
        The same file with its random inputs drawn by other seeds.
    """

    problem: Problem
    trade_offs: TradeOffs
    redrawn: tuple[Solved, ...] = ()

    @property
    def draws(self) -> tuple[Solved, ...]:
        """This, and the same with other random inputs."""
        return (self, *self.redrawn)

    def of_method(self, method: str) -> list[Explanation]:
        """The baselines of a method, in order."""
        return [b for b in self.trade_offs.baselines if b.method == method]

    @cached_property
    def enclosures(self) -> tuple[Enclosure, ...]:
        """For each baseline the most faithful explanation at its other losses."""
        frontier = Frontier(
            self.problem.objective,
            self.trade_offs.optimized,
            self.problem.tolerance,
        )
        return tuple(frontier.enclose(b.losses) for b in self.trade_offs.baselines)


Law: TypeAlias = Callable[[Solved], Finding]


class ClaimLaw(Protocol):
    """A law on a statement of the paper, told in what the set-up differs."""

    def __call__(self, solved: Solved, *, difference: str = ...) -> Claim: ...


Rivals: TypeAlias = Callable[[Problem, TradeOffs], tuple[Explanation, ...]]
Pictures: TypeAlias = Callable[[Solved], Mapping[str, Array]]
Distances: TypeAlias = Callable[[Solved], pd.DataFrame]


def no_rivals(problem: Problem, trade_offs: TradeOffs) -> tuple[Explanation, ...]:
    """No further baselines."""
    del problem, trade_offs
    return ()


def no_pictures(solved: Solved) -> Mapping[str, Array]:
    """Nothing but losses is drawn."""
    del solved
    return {}


def enclosed_distances(solved: Solved) -> pd.DataFrame:
    """``TradeOffs.distances()``, and the share given away at equal other losses."""
    table = solved.trade_offs.distances()
    return table.assign(saved=[enclosure.saved for enclosure in solved.enclosures])


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What one panel of a figure shows.

    Parameters
    ----------
    column, row : str
        Where it stands: the function, and the set-up.
    file : path
        The problem file.
    laws : tuple
        The statements to check.
    rivals : callable
        Baselines besides those of the file, made when the optima are known.
    pictures : callable
        Arrays that the drawing needs besides the losses.
    distances : callable
        The table of baselines, with what each gives away against the optima.
    seeds : tuple of int
        The file is solved once more for each, with its random inputs drawn anew, so
        that statements can tell their spread.
    """

    column: str
    row: str
    file: Path
    laws: tuple[Law, ...]
    rivals: Rivals = no_rivals
    pictures: Pictures = no_pictures
    distances: Distances = enclosed_distances
    seeds: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        """Column and row."""
        return ", ".join(filter(None, (self.column, self.row)))

    def run(self) -> Result:
        """Solve the file and check the statements; warnings are kept."""
        began = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            solved = self._solved()
            findings = tuple(law(solved) for law in self.laws)
            pictures = self.pictures(solved)
        return Result(
            panel=self,
            axes=solved.problem.axes,
            table=solved.trade_offs.to_frame(),
            distances=self.distances(solved),
            findings=findings,
            pictures=pictures,
            warnings=tuple(dict.fromkeys(str(w.message) for w in caught)),
            seconds=time.perf_counter() - began,
        )

    def _solved(self) -> Solved:
        file = read_problem(self.file)
        redrawn = [self._solve(file.with_seed(seed).build()) for seed in self.seeds]
        return replace(self._solve(file.build()), redrawn=tuple(redrawn))

    def _solve(self, problem: Problem) -> Solved:
        trade_offs = problem.sweep(problem.baselines(), progress=False)
        if trade_offs.interrupted:
            raise KeyboardInterrupt
        made = [
            rival.measured(problem.objective)
            for rival in self.rivals(problem, trade_offs)
        ]
        return Solved(
            problem,
            replace(trade_offs, baselines=(*trade_offs.baselines, *made)),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """What a panel found: tables and numbers, light enough to be sent home."""

    panel: Panel
    axes: tuple[str, str]
    table: pd.DataFrame
    distances: pd.DataFrame
    findings: tuple[Finding, ...]
    pictures: Mapping[str, Array] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0


def paper_file(name: str) -> Path:
    """A problem file of the paper, in the checkout or in the installed package."""
    here = Path(__file__).parent
    for folder in (here.parents[1] / "problems" / "paper", here / "problems"):
        if (folder / f"{name}.yaml").is_file():
            return folder / f"{name}.yaml"
    raise InvalidInput(
        f"there is no problem file {name}.yaml, neither in problems/paper nor in the "
        "installed package; install propopt again"
    )
