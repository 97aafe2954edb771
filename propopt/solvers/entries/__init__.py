"""Losses that couple single entries of W: other solvers, given the entries as points.

- :class:`~propopt.solvers.entries.solver.Entries`: without constraints, or with bounds.
"""

from propopt.solvers.entries.solver import Entries


__all__ = ["Entries"]
