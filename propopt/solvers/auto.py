"""The choice of a solver, by name or by the structure of the program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from propopt.checks import did_you_mean
from propopt.errors import InvalidInput, MissingExtra, Refused
from propopt.losses import Program
from propopt.losses.restricted import Restriction, is_complete
from propopt.solvers.base import Dispatcher, Prepared, Solver
from propopt.solvers.complete import Complete, without_totals
from propopt.solvers.conic import Conic, missing_backend
from propopt.solvers.curves.bounded import OneBound
from propopt.solvers.curves.choice import choose_curve_solver
from propopt.solvers.curves.krylov import Krylov
from propopt.solvers.curves.spectral import Spectral
from propopt.solvers.entries import CompleteEntries, Entries
from propopt.solvers.factored import Factored
from propopt.solvers.lasso.solver import Lasso
from propopt.solvers.minimum_norm import MinimumNorm
from propopt.solvers.normal_equations import NormalEquations
from propopt.solvers.restricted import Restricted
from propopt.solvers.splitting.solver import Splitting
from propopt.solvers.transposed import Transposed


MANY_FEATURES, WIDE = 1_000, 4
"""Beyond so many features, and so many for each point, an eigenbasis costs too much."""


@final
@dataclass(frozen=True)
class Auto(Dispatcher):
    """The first solver that does not refuse.

    ======================================================  =========================
    program                                                 solver
    ======================================================  =========================
    gradient matching (l2), at most one robustness and one  ``spectral``: closed form
    smoothness loss, where an eigenbasis is cheaper than
    products with the graph (see ``curves/choice.py``)
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
    rows with given sums (``po.Completeness``) and squared  one of the above, on what
    losses of W, over points or over features               that leaves: ``complete``
    rows with given sums and other losses                   ``splitting``, ``conic``
    squared losses that do not determine W                  refused; ask for
                                                            ``minimum_norm``
    more than 1,000 features, and four times as many as     one of the above, with
    points                                                  points and features
                                                            ``transposed``
    gradient matching, robustness over shared features and  one of the above, with
    sparsity, with or without bounds                        ``entries`` for points
    the first two, and rows with given sums of entries      ``entries, complete``
    ======================================================  =========================

    All were faster than Clarabel on random problems of nearly all sizes that were
    measured, from 5 points on, so that apart from the first three rows size does not
    enter; exceptions stand in ``docs/solvers.md``.

    Use :meth:`select` to see the choice; each result names it too.
    """

    @property
    def name(self) -> str:
        return "auto"

    def take(self, program: Program) -> Solver | str:
        return _without_zeros(program, _first)

    def prepare(self, program: Program) -> Prepared:
        return self.select(program).prepare(program)

    def select(self, program: Program) -> Solver:
        """The solver for this program.

        Raises
        ------
        Refused
            If no solver takes it, with the reason of the most general one.
        """
        answer = self.take(program)
        if isinstance(answer, str):
            raise Refused(f"no solver takes this program: {answer}")
        return answer


def _first(program: Program) -> Solver | str:
    """The first of the table that takes it; else the reason of the last."""
    for of_entries in (Entries(Auto()), CompleteEntries()):
        answer = of_entries.take(program)
        if isinstance(answer, Solver):
            return answer
    if _is_wide(program):
        answer = Transposed(Auto()).take(program)
        if isinstance(answer, Solver):
            return answer
    answer = choose_curve_solver(program)
    for solver in _PREFERENCE:
        if isinstance(answer, Solver):
            break
        answer = solver.take(program)
    return answer


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
    import cvxpy as cp

    installed = cp.installed_solvers()
    if name.upper() in installed:
        return Conic(backend=name.upper())
    missing = missing_backend(name.upper())
    if missing is not None:
        raise MissingExtra(f"solver: {missing}")
    names = [*_BY_NAME, *installed]
    raise InvalidInput(
        f"solver: {name!r} is not known or not installed{did_you_mean(name, names)}; "
        f"available: {', '.join(names)}"
    )


def chosen_solver(name: str | Solver, program: Program) -> Solver:
    """The named solver, or :class:`Refused` with its reason.

    Limits of zero are taken out of the program before a solver sees it.
    """
    solver = find_solver(name)
    if isinstance(solver, Auto):
        return solver.select(program)
    if isinstance(solver, Restricted | Complete):
        answer = solver.take(program)
    else:
        answer = _without_zeros(program, solver.take)
    if isinstance(answer, str):
        raise Refused(f"{solver.name} cannot solve this: {answer}")
    return answer


def innermost(solver: Solver) -> Solver | None:
    """What solves in the end, below those that change the program before."""
    while isinstance(solver, Restricted | Transposed | Complete | Entries):
        if solver.solver is None:
            return None
        solver = solver.solver
    return solver


def _without_zeros(
    program: Program, take: Callable[[Program], Solver | str]
) -> Solver | str:
    """What takes the program that limits of zero leave, :class:`Restricted` to it."""
    restriction = Restriction.of(program.bounds, program.shape)
    if restriction is None:
        return _without_totals(program, take)
    if restriction.only is not None:
        return Restricted(None)
    inner = _without_zeros(restriction.program(program), take)
    return inner if isinstance(inner, str) else Restricted(inner)


def _without_totals(
    program: Program, take: Callable[[Program], Solver | str]
) -> Solver | str:
    """What takes the program that given row sums leave, :class:`Complete` of it.

    Where there is no such program, what takes the constraint as it is.
    """
    if not any(map(is_complete, program.bounds)):
        return take(program)
    posed = without_totals(program)
    if isinstance(posed, str):
        return take(program)
    inner = _without_zeros(posed, take)
    return inner if isinstance(inner, str) else Complete(inner)
