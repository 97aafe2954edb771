"""Solvers: each refuses with a reason, prepares once and solves for many weights."""

from propopt.solvers.aims import Aim
from propopt.solvers.conic import Conic
from propopt.solvers.curves import Krylov
from propopt.solvers.solver import Curve, Prepared, Solution, Solver
from propopt.solvers.solving import solve
from propopt.solvers.task import Auto, Task


__all__ = [
    "Aim",
    "Auto",
    "Conic",
    "Curve",
    "Krylov",
    "Prepared",
    "Solution",
    "Solver",
    "Task",
    "solve",
]
