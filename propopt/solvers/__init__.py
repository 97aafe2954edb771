"""Solvers: each refuses with a reason, prepares once and solves for many weights."""

from propopt.solvers.centred import Restricted, Transposed
from propopt.solvers.complete import Complete, MinimumNorm
from propopt.solvers.conic import Conic
from propopt.solvers.curves import Krylov, OneBound, Spectral
from propopt.solvers.entries import CompleteEntries, Entries
from propopt.solvers.factored import Factored
from propopt.solvers.lasso import Lasso
from propopt.solvers.normal_equations import NormalEquations
from propopt.solvers.solver import Curve, Prepared, Solution, Solver
from propopt.solvers.solving import solve
from propopt.solvers.splitting import Splitting
from propopt.solvers.task import Auto, Task, find_solver


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
