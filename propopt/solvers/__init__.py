"""Solvers: each refuses with a reason, prepares once and solves for many weights."""

from propopt.solvers.auto import Auto, find_solver
from propopt.solvers.base import Curve, Prepared, Solution, Solver
from propopt.solvers.conic import Conic
from propopt.solvers.conjugate import Conjugate
from propopt.solvers.constrained import Constrained
from propopt.solvers.exchanged import Exchanged
from propopt.solvers.factored import Factored
from propopt.solvers.krylov import Krylov
from propopt.solvers.minimum_norm import MinimumNorm
from propopt.solvers.proximal import Proximal
from propopt.solvers.restricted import Restricted
from propopt.solvers.solve import Task, solve
from propopt.solvers.spectral import Spectral
from propopt.solvers.splitting import Splitting


__all__ = [
    "Auto",
    "Conic",
    "Conjugate",
    "Constrained",
    "Curve",
    "Exchanged",
    "Factored",
    "Krylov",
    "MinimumNorm",
    "Prepared",
    "Proximal",
    "Restricted",
    "Solution",
    "Solver",
    "Spectral",
    "Splitting",
    "Task",
    "find_solver",
    "solve",
]
