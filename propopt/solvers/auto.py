"""The choice of a solver, by name or by the structure of the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import cvxpy as cp

from propopt.checks import did_you_mean
from propopt.errors import InvalidInput, MissingExtra, Refused
from propopt.losses import Program
from propopt.losses.restricted import Restriction, zeros
from propopt.solvers.base import Prepared, Solver
from propopt.solvers.conic import Conic, missing_backend
from propopt.solvers.curves.bounded import OneBound
from propopt.solvers.curves.choice import choose_curve_solver
from propopt.solvers.curves.krylov import Krylov
from propopt.solvers.curves.spectral import Spectral
from propopt.solvers.factored import Factored
from propopt.solvers.lasso.solver import Lasso
from propopt.solvers.minimum_norm import MinimumNorm
from propopt.solvers.normal_equations import NormalEquations
from propopt.solvers.restricted import Restricted
from propopt.solvers.splitting.solver import Splitting
from propopt.solvers.transposed import Transposed, exchanged


MANY_FEATURES, WIDE = 1_000, 4
"""Beyond so many features, and so many for each point, an eigenbasis costs too much."""


@final
@dataclass(frozen=True)
class Auto(Solver):
    """The first solver that does not refuse.

    ======================================================  =========================
    program                                                 solver
    ======================================================  =========================
    gradient matching (l2), at most one robustness and one  ``spectral``: closed form
    smoothness loss, where an eigenbasis is cheaper than
    products with the graph (see ``solvers/curves.py``)
    the same, where the graph is narrow, such as a chain    ``factored``
    the same, otherwise: many points, few neighbours        ``krylov``, and factors
                                                            where that is in vain
    the same, with one bound on one of these losses         ``one_bound``
    the same and sparsity                                   ``lasso``
    the same and max-differences, with or without sparsity  ``splitting``
    other squared losses that determine W, such as          ``normal_equations``
    function matching with robustness
    anything else: bounds of all kinds, gradient matching   ``conic``: HIGHS for linear
    in l1, function matching with sparsity                  programs, else CLARABEL
    a limit of zero on a robustness, smoothness, matching   one of the above, on what
    or sparsity loss                                        that leaves: ``restricted``
    squared losses that do not determine W                  refused; ask for
                                                            ``minimum_norm``
    more than 1,000 features, and four times as many as     one of the above, with
    points                                                  points and features
                                                            ``transposed``
    ======================================================  =========================

    All were faster than Clarabel on random problems of nearly all sizes that were
    measured, from 5 points on, so that apart from the first three rows size does not
    enter; exceptions stand in ``docs/solvers.md``.

    Use :meth:`select` to see the choice; each result names it too.
    """

    @property
    def name(self) -> str:
        return "auto"

    def refusal(self, program: Program) -> str | None:
        if zeros(program.bounds):
            return None
        solvers = (choose_curve_solver(program), *_PREFERENCE)
        reasons = [solver.refusal(program) for solver in solvers]
        return None if None in reasons else reasons[-1]

    def prepare(self, program: Program) -> Prepared:
        return self.select(program).prepare(program)

    def select(self, program: Program) -> Solver:
        """The solver for this program.

        Raises
        ------
        Refused
            If no solver takes it, with the reason of the most general one.
        """
        restricted = _restricted(self, program)
        if restricted is not None:
            return restricted
        if _is_wide(program) and Transposed(self).refusal(program) is None:
            return Transposed(self.select(exchanged(program)))
        for solver in (choose_curve_solver(program), *_PREFERENCE):
            if solver.refusal(program) is None:
                return solver
        raise Refused(f"no solver takes this program: {self.refusal(program)}")


def _is_wide(program: Program) -> bool:
    n_points, n_features = program.shape
    return n_features > max(MANY_FEATURES, WIDE * n_points)


_PREFERENCE: tuple[Solver, ...] = (
    OneBound(),
    Lasso(),
    Splitting(),
    NormalEquations(),
    Conic(),
)
_NAMED: tuple[Solver, ...] = (
    Auto(),
    Spectral(),
    Factored(),
    Krylov(),
    OneBound(),
    Lasso(),
    Splitting(),
    NormalEquations(),
    Conic(),
    MinimumNorm(),
)
_BY_NAME: dict[str, Solver] = {solver.name: solver for solver in _NAMED}


def find_solver(name: str | Solver) -> Solver:
    """The solver of that name: one of ours, or a backend installed for cvxpy."""
    if isinstance(name, Solver):
        return name
    if name in _BY_NAME:
        return _BY_NAME[name]
    installed = cp.installed_solvers()
    if name.upper() in installed:
        return Conic(backend=name.upper())
    missing = missing_backend(name.upper())
    if missing is not None:
        raise MissingExtra(f"solver: {missing}")
    known = [*_BY_NAME, *installed]
    raise InvalidInput(
        f"solver: {name!r} is not known or not installed{did_you_mean(name, known)}; "
        f"available: {', '.join(known)}"
    )


def chosen_solver(name: str | Solver, program: Program) -> Solver:
    """The named solver, or :class:`Refused` with its reason.

    Limits of zero are taken out of the program before a solver sees it.
    """
    solver = find_solver(name)
    if isinstance(solver, Auto):
        return solver.select(program)
    if not isinstance(solver, Restricted):
        restricted = _restricted(solver, program)
        if restricted is not None:
            return restricted
    reason = solver.refusal(program)
    if reason is not None:
        raise Refused(f"{solver.name} cannot solve this: {reason}")
    return solver


def _restricted(solver: Solver, program: Program) -> Restricted | None:
    """The solver on what limits of zero leave; None where there are none."""
    restriction = Restriction.of(program.bounds, program.shape)
    if restriction is None:
        return None
    if restriction.only is not None:
        return Restricted(None)
    return Restricted(chosen_solver(solver, restriction.program(program)))
