"""Losses that couple single entries of W: other solvers, given the entries as points.

- :class:`~propopt.solvers.entries.solver.Entries`: without constraints, or with bounds.
- :class:`~propopt.solvers.entries.complete.CompleteEntries`: where rows add up.
"""

from propopt.solvers.entries.complete import CompleteEntries
from propopt.solvers.entries.solver import Entries


__all__ = ["CompleteEntries", "Entries"]
