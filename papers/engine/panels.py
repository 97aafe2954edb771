"""A panel: one problem, solved, and what follows for its statements."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from papers.engine.findings import Finding
from papers.engine.frontier import Enclosure, Frontier
from propopt.base.arrays import Array
from propopt.explaining.trade_offs import TradeOffs
from propopt.problems import Problem, ProblemFile, read_problem
from propopt.results.explanation import Explanation


@dataclass(frozen=True, eq=False)
class Solved:
    """A problem and its trade-offs.

    Parameters
    ----------
    problem, trade_offs
        The problem, and what its sweep gave.
    redrawn : tuple of Solved
        The same with its random inputs drawn by other seeds.
    """

    problem: Problem
    trade_offs: TradeOffs
    redrawn: tuple[Solved, ...] = ()
    claims: tuple[float | None, ...] = field(init=False)
    """Objectives of the optima before attributions were computed, such as a curve's."""

    def __post_init__(self) -> None:
        claims = tuple(best.objective for best in self.trade_offs.optimized)
        object.__setattr__(self, "claims", claims)

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


Statement: TypeAlias = Callable[[Solved], Finding]
"""What is said of a solved problem: its finding."""


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
    """``TradeOffs.distances()``, and the share given away at equal other losses.

    Of a baseline that is not compared neither is known.
    """
    table = solved.trade_offs.distances()
    saved = [enclosure.saved for enclosure in solved.enclosures]
    return table.assign(saved=np.where(solved.trade_offs.compared, saved, np.nan))


def lowest_totals(solved: Solved) -> pd.DataFrame:
    """The lowest total loss F of each method at three weights, over the optimum's.

    F/F* − 1 at the first, the middle and the last of the sweep: each method has its
    best setting at each of them, as a user would choose it.
    """
    optima = solved.trade_offs.optimized
    if len(optima) < len(_WEIGHTS_SHOWN):  # inductive, with one weight
        return pd.DataFrame()
    rows: dict[str, dict[str, object]] = {}
    for share in _WEIGHTS_SHOWN:
        best = optima[round(share * (len(optima) - 1))]
        first = next(iter(best.weights))
        weights = {k: w for k, w in best.weights.items() if k != first}
        head = ", ".join(f"{k} × {w:.3g}" for k, w in weights.items())
        rows.setdefault("optimized (F*)", {})[head] = float(best.objective or np.nan)
        for method in dict.fromkeys(b.method for b in solved.trade_offs.baselines):
            pairs = [(_total(b, best), b) for b in solved.of_method(method)]
            total, lowest = min(pairs, key=lambda pair: pair[0])
            scale = lowest.parameters.get("scale")
            aside = "" if scale is None else f" (δ = {scale})"
            told = f"{total / float(best.objective or np.nan) - 1.0:.3g}{aside}"
            rows.setdefault(method, {})[head] = told
    return pd.DataFrame(rows).T.reset_index(names="method")


_WEIGHTS_SHOWN = (0.0, 0.5, 1.0)
"""Which optima of a sweep, by their place."""


def _total(explanation: Explanation, best: Explanation) -> float:
    return sum(c * explanation.losses[name] for name, c in best.weights.items())


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What one panel of a figure shows.

    Parameters
    ----------
    column, row : str
        Where it stands: the function, and the set-up.
    problem : path or ProblemFile
        A problem file.
    statements : tuple
        The statements to check.
    rivals : callable
        Baselines besides those of the file, rivals when the optima are known.
    pictures : callable
        Arrays that the drawing needs besides the losses.
    distances : callable
        The table of baselines, with what each gives away against the optima.
    seeds : tuple of int
        The problem is solved once more for each, with its random inputs drawn anew, so
        that statements can tell their spread; a file says how.
    """

    column: str
    row: str
    problem: Path | ProblemFile
    statements: tuple[Statement, ...]
    rivals: Rivals = no_rivals
    pictures: Pictures = no_pictures
    distances: Distances = enclosed_distances
    seeds: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        """Column and row."""
        return ", ".join(filter(None, (self.column, self.row)))

    def run(self) -> PanelResult:
        """Solve the problem and check the statements; warnings are kept."""
        began = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            solved = self.measured()
            pictures = self.pictures(solved)  # before, so that what is drawn is checked
            findings = tuple(statement(solved) for statement in self.statements)
        return PanelResult(
            panel=self,
            axes=solved.problem.axes,
            table=solved.trade_offs.to_frame(),
            distances=self.distances(solved),
            totals=lowest_totals(solved),
            findings=findings,
            pictures=pictures,
            warnings=tuple(dict.fromkeys(str(w.message) for w in caught)),
            seconds=time.perf_counter() - began,
        )

    def measured(self) -> Solved:
        """The problem, solved."""
        first, *others = map(self._solve, self._problems())
        return replace(first, redrawn=tuple(others))

    def _problems(self) -> Iterator[Problem]:
        """The problem, and the same with its random inputs drawn anew.

        Copies compute: nothing of that is sent home with the panel.
        """
        problem = self.problem
        file = read_problem(problem) if isinstance(problem, Path) else copy(problem)
        yield file.build()
        yield from (file.with_seed(seed).build() for seed in self.seeds)

    def _solve(self, problem: Problem) -> Solved:
        trade_offs = problem.sweep(problem.baselines(), progress=False)
        if trade_offs.interrupted:
            raise KeyboardInterrupt
        rivals = [
            rival.measured(problem.objective)
            for rival in self.rivals(problem, trade_offs)
        ]
        return Solved(
            problem,
            replace(trade_offs, baselines=(*trade_offs.baselines, *rivals)),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class PanelResult:
    """What a panel found: tables and numbers, light enough to be sent home."""

    panel: Panel
    axes: tuple[str, str]
    table: pd.DataFrame
    distances: pd.DataFrame
    totals: pd.DataFrame
    findings: tuple[Finding, ...]
    pictures: Mapping[str, Array] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
