"""Which attributions of a sweep are written, and which are too many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from propopt.errors import InvalidInput, SolverFailure, Unwritten
from propopt.problems.jobs.artefacts import Artefacts, Writer
from propopt.problems.jobs.page import page_writers
from propopt.problems.problem import Problem
from propopt.results.explanation import Explanation
from propopt.tradeoffs.table import TradeOffs


_MOST_OF_A_FRONT = 10_000_000
"""Numbers in the attributions of a front that are written without being asked for."""

_MOST_OF_A_TABLE = 1_000_000
"""Numbers in the table of one explanation."""


@dataclass(frozen=True, eq=False)
class KeptAttributions:
    """What is written of the attributions of a sweep.

    Parameters
    ----------
    writers : dict
        For each suffix what writes the file.
    picked : Explanation or None
        The optimum at the knee, or at what the problem picks.
    left_out : tuple of str
        Sentences on what is not written.
    interrupted : bool
        Whether writing was stopped.
    """

    writers: dict[str, Writer]
    picked: Explanation | None
    left_out: tuple[str, ...]
    interrupted: bool = False

    def write(self, artefacts: Artefacts) -> tuple[KeptAttributions, list[str]]:
        """Write them; what was kept after all, and the reasons of what was not."""
        try:
            return self, artefacts.write(self.writers)
        except KeyboardInterrupt:
            left_out = (*self.left_out, "attributions: interrupted")
            stopped = replace(self, writers={}, left_out=left_out, interrupted=True)
            return stopped, []

    @classmethod
    def of(cls, trade_offs: TradeOffs, problem: Problem) -> KeptAttributions:
        """The front and the picked optimum, unless these are very large."""
        if problem.attributions == "none":
            return cls({}, None, ("attributions are not written: none are asked for",))
        try:
            best = problem.picked(trade_offs)
        except InvalidInput as error:
            return cls({}, None, (f"attributions are not written: {error}",))
        front = trade_offs.front()
        n_numbers = len(problem.points) * problem.subject.n_features
        files = (
            _File(".npz", "of the front", n_numbers * _count(front), _MOST_OF_A_FRONT),
            _File("_attributions.csv", "picked", n_numbers, _MOST_OF_A_TABLE),
        )
        kept = [f for f in files if f.is_small or problem.attributions == "all"]
        writers: dict[str, Writer] = {
            ".npz": front.save,
            "_attributions.csv": partial(_write_table, best),
        }
        return cls(
            {file.suffix: writers[file.suffix] for file in kept}
            | page_writers(best, problem.subject),
            best,
            tuple(file.left_out for file in files if file not in kept),
        )


@dataclass(frozen=True)
class _File:
    suffix: str
    what: str
    n_numbers: int
    most: int

    @property
    def is_small(self) -> bool:
        return self.n_numbers <= self.most

    @property
    def left_out(self) -> str:
        return (
            f"attributions {self.what} are not written ({self.suffix}): "
            f"{self.n_numbers:,} numbers are more than {self.most:,}; "
            "`attributions: all` writes them"
        )


def _count(front: TradeOffs) -> int:
    return len(front.optimized) + len(front.baselines)


def _write_table(best: Explanation, path: str) -> None:
    try:
        best.to_csv(path)
    except SolverFailure as failure:  # a point on a curve that is not found
        raise Unwritten(f"cannot write {path}: {failure}") from failure
