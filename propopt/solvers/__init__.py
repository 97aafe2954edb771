"""Solvers: each refuses with a reason, prepares once and solves for many weights."""

from propopt.solvers.auto import Auto, find_solver
from propopt.solvers.base import Curve, Prepared, Solution, Solver
from propopt.solvers.complete import Complete
from propopt.solvers.conic import Conic
from propopt.solvers.curves.bounded import OneBound
from propopt.solvers.curves.krylov import Krylov
from propopt.solvers.curves.spectral import Spectral
from propopt.solvers.entries import CompleteEntries, Entries
from propopt.solvers.factored import Factored
from propopt.solvers.lasso.solver import Lasso
from propopt.solvers.minimum_norm import MinimumNorm
from propopt.solvers.normal_equations import NormalEquations
from propopt.solvers.restricted import Restricted
from propopt.solvers.solving import solve
from propopt.solvers.splitting.solver import Splitting
from propopt.solvers.task import Task
from propopt.solvers.transposed import Transposed


__all__ = [
    "Auto",
    "Complete",
    "CompleteEntries",
    "Conic",
    "Curve",
    "Entries",
    "Factored",
    "Krylov",
    "Lasso",
    "MinimumNorm",
    "NormalEquations",
    "OneBound",
    "Prepared",
    "Restricted",
    "Solution",
    "Solver",
    "Spectral",
    "Splitting",
    "Task",
    "Transposed",
    "find_solver",
    "solve",
]
