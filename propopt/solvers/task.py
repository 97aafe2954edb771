"""From an objective to a certified explanation, by the solver that takes it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, final

import numpy as np

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import did_you_mean, read_only, refuse_overflow
from propopt.base.declared import lazily
from propopt.base.errors import (
    InvalidInput,
    MissingExtra,
    Refused,
    SolverFailure,
    TrivialObjectiveWarning,
    UncertifiedWarning,
)
from propopt.base.resources import few_threads
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Reason
from propopt.losses import MaxDifferenceRobustness, Program
from propopt.losses.algebra import Faithfulness, TrivialLosses
from propopt.losses.completeness import Totals
from propopt.losses.faithfulness import quantity_of_target, units_of_target
from propopt.losses.restricted import Restriction, is_completeness, zeros
from propopt.proofs.certificate import Certificate, certificate_of
from propopt.proofs.hessian import least_among
from propopt.proofs.target_error import TargetErrorOperator, sampled_blocks
from propopt.results.explanation import Explanation, LazyAttributions
from propopt.solvers.complete import CompletenessReduction, MinimumNorm, without_totals
from propopt.solvers.conic import Conic, missing_backend
from propopt.solvers.curves import (
    Diagonal,
    Krylov,
    OneBound,
    Spectral,
    choose_curve_solver,
    energy_on_curve,
)
from propopt.solvers.edge_newton import edge_weights
from propopt.solvers.entries import ConstrainedEntryCg, EntryReduction
from propopt.solvers.factored import Factored
from propopt.solvers.lasso import Lasso
from propopt.solvers.normal_equations import NormalEquations
from propopt.solvers.reductions import (
    ShiftReduction,
    TransposeReduction,
    ZeroBoundReduction,
)
from propopt.solvers.solver import (
    Curve,
    Dispatcher,
    Measurement,
    Prepared,
    Solution,
    Solver,
    innermost,
    jackknife_errors,
)
from propopt.solvers.splitting import Splitting


MANY_FEATURES, WIDE = 1_000, 4
"""Beyond so many features, and so many for each point, an eigenbasis costs too much."""


@final
@suggests_arguments
@dataclass(frozen=True)
class Auto(Dispatcher):
    """The first solver that does not refuse.

    ======================================================  =========================
    program                                                 solver
    ======================================================  =========================
    gradient matching (l2), at most one robustness and one  ``spectral``: closed form
    smoothness loss, where an eigenbasis is cheaper than
    products with the graph, or known, as that of lattices
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
    squared losses of W, over points or over features, and  one of the above, on what
    rows with given sums (``po.losses.Completeness``)       that leaves: ``complete``
    rows with given sums and other losses                   ``splitting``, ``conic``
    squared losses that do not determine W                  refused; ask for
                                                            ``minimum_norm``
    more than 1,000 features, and four times as many as     one of the above, with
    points                                                  points and features
                                                            ``transposed``
    gradient matching, robustness over shared features and  one of the above, with
    sparsity, with or without bounds                        ``entries`` for points
    the first two, and rows with given sums of entries      ``entries, complete``
    robustness without main effects, and losses with targets   one of the above, with
                                                            what is left ``shifted``
    ======================================================  =========================

    All were faster than Clarabel on random problems of nearly all sizes that were
    measured, from 5 points on, so that apart from the first three rows size does not
    enter; exceptions stand in ``docs/background/solvers.md``.

    Use :meth:`select` to see the choice; each result names it too.
    """

    name = "auto"

    def take(self, program: Program) -> Solver | Reason:
        return _without_shift(program, _first)

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
        if isinstance(answer, Reason):
            raise Refused(f"no solver takes this program: {answer.reason}")
        return answer


def _first(program: Program) -> Solver | Reason:
    """The first of the table that takes it; else the reason of the last."""
    for of_entries in (EntryReduction(Auto()), ConstrainedEntryCg()):
        answer = of_entries.take(program)
        if isinstance(answer, Solver):
            return answer
    n_points, n_features = program.shape
    if n_features > max(MANY_FEATURES, WIDE * n_points):
        answer = TransposeReduction(Auto()).take(program)
        if isinstance(answer, Solver):
            return answer
    answer = choose_curve_solver(program)
    for solver in _PREFERENCE:
        if isinstance(answer, Solver):
            break
        answer = solver.take(program)
    return answer


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
    *_PREFERENCE,
    MinimumNorm(),
)
_BY_NAME: dict[str, Solver] = {solver.name: solver for solver in _NAMED}


def find_solver(name: str | Solver) -> Solver:
    """The solver of that name: one of ours, or a backend installed for cvxpy."""
    if isinstance(name, Solver):
        return name
    if not isinstance(name, str):
        raise InvalidInput(
            f"solver: expected a name, such as 'auto' or 'CLARABEL', got {name!r}; "
            "constraints are subject_to=[loss <= 1.0], and losses are added: "
            "po.solve(loss + 0.5 * other)"
        )
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
    """The named solver, or :class:`Refused` with its reason."""
    solver = find_solver(name)
    if isinstance(solver, Auto):
        return solver.select(program)
    if isinstance(solver, ZeroBoundReduction | CompletenessReduction | ShiftReduction):
        answer = solver.take(program)
    else:
        answer = _without_shift(program, solver.take)
    if isinstance(answer, Reason):
        raise Refused(f"{solver.name} cannot solve this: {answer.reason}")
    return answer


def _without_shift(
    program: Program, take: Callable[[Program], Solver | Reason]
) -> Solver | Reason:
    """What takes the program of W − G, where losses are beside G; else this one."""
    reduced = ShiftReduction(None).reduced(program)
    if isinstance(reduced, Program):
        inner = _without_zeros(reduced, take)
        return inner if isinstance(inner, Reason) else ShiftReduction(inner)
    for bound in program.bounds:
        if bound.limit == 0.0 and bound.loss.offset is not None:
            return Reason(
                f"{bound} is not known beside these losses, for {reduced.reason}; give a "
                "small limit in place of zero"
            )
    return _without_zeros(program, take)


def _without_zeros(
    program: Program, take: Callable[[Program], Solver | Reason]
) -> Solver | Reason:
    """What takes the program that limits of zero leave, :class:`ZeroBoundReduction` to it."""
    restriction = Restriction.of(program.bounds, program.shape)
    if restriction is None:
        return _without_totals(program, take)
    if restriction.only is not None:
        return ZeroBoundReduction(None)
    inner = _without_zeros(restriction.program(program), take)
    return inner if isinstance(inner, Reason) else ZeroBoundReduction(inner)


def _without_totals(
    program: Program, take: Callable[[Program], Solver | Reason]
) -> Solver | Reason:
    """What takes the program that given row sums leave; else the given one."""
    if not any(map(is_completeness, program.bounds)):
        return take(program)
    reduced = without_totals(program)
    if isinstance(reduced, Reason):
        return take(program)
    inner = _without_zeros(reduced, take)
    return inner if isinstance(inner, Reason) else CompletenessReduction(inner)


FINE = 1e-9
"""The gap of optima whose differences count: they are smaller than errors of draws."""

FINEST = 1e-13
"""No gap below this is asked of attributions on a curve: rounding takes the rest."""


@suggests_arguments
@dataclass(frozen=True, eq=False)
class Task:
    """A program and its solver: asked once and prepared once, solved for many weights.

    Weights are arrays (k,) ≥ 0 in the order of the losses of the program, some of them
    above zero. They are not checked again, nor are attributions on their way from the
    solver to the explanation.

    Parameters
    ----------
    program : Program
        The losses, all of which are measured, and the bounds.
    solver : str or Solver
        Its name, or ``"auto"``.
    active : tuple of int, optional
        Places of the losses that ever have a weight: the solver sees no others. All by
        default.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> objective = po.GradientMatching(np.eye(3)) + po.Sparsity()
    >>> task = po.solvers.Task(po.losses.Program(objective.losses), "auto")
    >>> solutions = [task.solve(np.array([1.0, c]), 1e-6) for c in (0.5, 1.0, 4.0)]
    >>> [float(solution.W.max()) for solution in solutions]
    [0.75, 0.5, 0.0]
    """

    program: Program
    solver: str | Solver = "auto"
    active: tuple[int, ...] | None = None

    @classmethod
    def taken(cls, program: Program, solver: Solver) -> Task:
        """The task of a solver that is known to take the program: it is not asked."""
        task = cls(program, solver)
        vars(task)["chosen"] = solver  # kept as ``cached_property`` keeps it
        return task

    @cached_property
    def chosen(self) -> Solver:
        """The solver that takes the program, which is :class:`Refused` else."""
        _ = self.program.labels  # refuses losses of different tables
        return chosen_solver(self.solver, self._posed)

    @cached_property
    def prepared(self) -> Prepared:
        """The program made ready by its solver."""
        chosen = self.chosen
        with few_threads(self.program.shape[0]):
            return chosen.prepare(self._posed)

    @cached_property
    def _posed(self) -> Program:
        """The program that the solver sees."""
        if self.active is None:
            return self.program
        losses = tuple(self.program.losses[place] for place in self.active)
        return replace(self.program, losses=losses, sizes=self.program.shape)

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        """The minimiser for these weights."""
        shape = self.program.shape
        self._trivial.refuse_underflow(self.program.weighed(weights).weights)
        if self._zero_is_free(weights):
            tied = [loss for c, loss in self.program.weighed(weights).terms if c > 0]
            tied += [bound.loss for bound in self.program.bounds]
            if not any(isinstance(loss, Faithfulness) for loss in tied):
                warnings.warn(
                    f"{self.program.weighed(weights)!r} has no faithfulness loss with "
                    "a weight above zero, so its optimum is the zero explanation",
                    TrivialObjectiveWarning,
                    stacklevel=4,
                )
            prices = (0.0,) * len(self.program.bounds)
            return Solution(W=np.zeros(shape), multipliers=prices)
        reduced = weights if self.active is None else weights[list(self.active)]
        with few_threads(shape[0]):
            solution = self.prepared.solve(reduced, tolerance, start)
        # what no certificate could be made of: this is all that is not trusted
        if not np.isfinite(solution.W).all():
            raise SolverFailure(
                f"{self.chosen.name} gave attributions that are not finite"
            )
        if not all(multiplier >= 0.0 for multiplier in solution.multipliers):
            raise SolverFailure(
                f"{self.chosen.name} gave a multiplier that is not a number >= 0"
            )
        refuse_overflow(solution.W, "attributions")
        return solution

    def best(self, weights: Array, tolerance: float, began: float) -> Explanation:
        """The optimum for these weights, with its proof and standard errors."""
        solution = self.solve(weights, tolerance)
        errors = lazily(partial(self.standard_errors, weights, tolerance, solution))
        return self.explain(solution, weights, tolerance, began, errors)

    def explain(
        self,
        solution: Solution,
        weights: Array,
        tolerance: float,
        began: float,
        errors: Array | None = None,
    ) -> Explanation:
        """The solution with its losses and its certificate.

        And with standard errors: by default those that take no further solving.
        """
        program = self.program
        with few_threads(program.shape[0]):
            losses = [loss.value_at(solution.W) for loss in program.all_losses]
            certificate = self._certified(solution, weights, losses, tolerance)
        prices = zip(program.bounds, solution.multipliers, strict=True)
        return self._explanation(
            weights,
            certificate,
            losses,
            began,
            multipliers=solution.multipliers,
            attributions=read_only(solution.W),
            prices={bound.loss.name: price for bound, price in prices},
            details={**self._details(solution), **self._of_totals(solution, weights)},
            errors=errors,
        )

    def _explanation(
        self,
        weights: Array,
        certificate: Certificate,
        losses: list[float],
        began: float,
        *,
        attributions: Attributions,
        details: Mapping[str, Array],
        multipliers: tuple[float, ...] = (),
        prices: Mapping[str, float] | None = None,
        errors: Array | None = None,
    ) -> Explanation:
        program = self.program
        return Explanation(
            attributions=attributions,
            method="optimized",
            labels=program.labels,
            weights=program.weighed(weights).weights,
            certificate=certificate,
            multipliers=prices or {},
            # on a curve those of bounds are not known
            losses={
                loss.name: value
                for loss, value in zip(program.all_losses, losses, strict=False)
            },
            details=details,
            target=lazily(
                partial(self._aim.error, weights, certificate.scale, multipliers)
            ),
            standard_errors=self._linear_errors(weights) if errors is None else errors,
            units=units_of_target(program.all_losses) or "gradient",
            quantity=quantity_of_target(program.all_losses),
            program=program,
            solver=self._solver_name(weights),
            seconds=time.perf_counter() - began,
        )

    def with_program(self, best: Explanation, weights: Array) -> Explanation:
        """An explanation that :meth:`explain` gave elsewhere, of an equal program."""
        return replace(
            best, program=self.program, standard_errors=self._linear_errors(weights)
        )

    def _certified(
        self, solution: Solution, weights: Array, losses: list[float], tolerance: float
    ) -> Certificate:
        program = self.program
        values = zip(map(id, program.all_losses), losses, strict=True)
        certificate = certificate_of(
            program.weighed(weights),
            solution.W,
            dict(values),
            duals=solution.duals,
            bounds=program.bounds,
            multipliers=solution.multipliers,
            trivial=self._trivial,
        )
        if not certificate.holds(tolerance):
            warnings.warn(
                f"{self._solver_name(weights)} reached a certified gap of "
                f"{certificate.gap:.1e} and a violation of bounds of "
                f"{certificate.violation:.1e}, where {tolerance:.1e} was wanted; "
                "another solver may do better",
                UncertifiedWarning,
                stacklevel=5,
            )
        return certificate

    def _details(self, solution: Solution) -> dict[str, Array]:
        """Where the explanation has to change fastest, for max-differences in l2."""
        return {
            f"edge_weights.{loss.name}": read_only(edge_weights(loss, solution))
            for loss in self._posed.losses
            if isinstance(loss, MaxDifferenceRobustness)
            and loss.norm == "l2"
            and loss.name in solution.duals
        }

    def standard_errors(
        self, weights: Array, tolerance: float, solution: Solution
    ) -> Array | None:
        """Of the solution, (N, D), from the draws of its target; None without draws.

        By the jackknife where W is no linear function of the target, and None where
        that would take the conic solver.
        """
        linear = self._aim.standard_errors(weights)
        if linear is not None or not self._can_leave_out(weights):
            return linear
        reduced = weights if self.active is None else weights[list(self.active)]
        fine = min(tolerance, FINE)
        return read_only(
            jackknife_errors(self._posed, self.chosen, reduced, fine, solution)
        )

    def _can_leave_out(self, weights: Array) -> bool:
        """Whether one loss was drawn, and the solver is fast enough for that."""
        if self._zero_is_free(weights):
            return False
        sampled = [sampled_blocks(loss) is not None for loss in self._posed.losses]
        return sum(sampled) == 1 and not isinstance(innermost(self.chosen), Conic)

    def _linear_errors(self, weights: Array) -> Array | None:
        return lazily(partial(self._aim.standard_errors, weights))

    @cached_property
    def _aim(self) -> TargetErrorOperator:
        """With what the solver knows of the curvature of the whole program."""
        everything = self.active is None or len(self.active) == len(self.program.losses)
        prepared = vars(self).get("prepared")  # not made for this
        if everything and isinstance(prepared, Diagonal):
            return TargetErrorOperator(self.program, bases=prepared.bases)
        if everything and isinstance(self.chosen, Krylov):
            energy = partial(energy_on_curve, self.program, self.chosen)
            return TargetErrorOperator(self.program, energy=energy)
        return TargetErrorOperator(self.program)

    def _of_totals(self, solution: Solution, weights: Array) -> dict[str, Array]:
        """Multipliers of given row sums, and what these leave of each loss."""
        if self._totals is None:
            return {}
        terms = self.program.weighed(weights).terms
        y = self._totals.multiplier(terms, solution.W, solution.duals)
        return {"completeness.multiplier": read_only(y), **self._irreducible}

    @cached_property
    def _totals(self) -> Totals | None:
        """The row sums that are given; None where limits of zero say more than they."""
        bounds = self.program.bounds
        return None if zeros(bounds) else Totals.of(bounds)

    @cached_property
    def _irreducible(self) -> dict[str, Array]:
        """For each loss its smallest value among rows of the given sums."""
        if self._totals is None:
            return {}
        least = {
            loss.name: least_among(self.program, self._totals, loss)
            for loss in self.program.losses
        }
        return {
            f"irreducible.{name}": read_only(np.array(value))
            for name, value in least.items()
            if value is not None
        }

    def _solver_name(self, weights: Array) -> str:
        return "none" if self._zero_is_free(weights) else self.chosen.name

    def has_curve(self, weights: Array) -> bool:
        """True if the losses of the optimum are known without its attributions."""
        return isinstance(self.prepared, Curve) and not self._zero_is_free(weights)

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        """The losses of the optimum, in the order of the program, without it."""
        assert isinstance(self.prepared, Curve), "see has_curve"
        indices = slice(None) if self.active is None else list(self.active)
        with few_threads(self.program.shape[0]):
            result = self.prepared.measure(weights[indices], tolerance)
        if self.active is None:
            return result
        losses = np.full(len(weights), np.nan)  # nobody knows the others
        losses[indices] = result.losses
        return Measurement(losses=losses, excess=result.excess)

    def on_curve(self, weights: Array, tolerance: float, began: float) -> Explanation:
        """The losses of the optimum; its attributions when they are first read.

        Now, if the curve does not know its losses to the tolerance: attributions may
        prove more, and say so if they do not.
        """
        named = self.program.weighed(weights).weights
        self._trivial.refuse_underflow(named)
        measurement = self.measure(weights, tolerance)
        value = float(weights @ measurement.losses)
        certificate = Certificate(
            value=value,
            lower_bound=value - measurement.excess,
            scale=self._trivial.scale(value, named),
            kind="curve",
        )
        lazy: Any = LazyAttributions(
            shape=self.program.shape,
            compute=partial(self._explained, weights, tolerance),
            tolerance=tolerance,
        )  # a field takes it, and has attributions when it is read
        best = self._explanation(
            weights,
            certificate,
            measurement.losses.tolist(),
            began,
            attributions=lazy,
            details=self._irreducible,
        )
        if not certificate.holds(tolerance):
            _ = best.attributions
        return best

    def _explained(self, weights: Array, tolerance: float) -> Explanation:
        began = time.perf_counter()
        # losses err by the root of the excess: these are to agree with the curve's
        fine = max(tolerance**2, min(tolerance, FINEST))
        return self.explain(self.solve(weights, fine), weights, tolerance, began)

    def _zero_is_free(self, weights: Array) -> bool:
        """True if zero attributions cost nothing and respect all bounds."""
        costs, bounds = self._costs_of_zero, self.program.bounds
        limited = costs[len(weights) :]
        within = all(c <= b.limit for c, b in zip(limited, bounds, strict=True))
        return within and not (weights * costs[: len(weights)]).any()

    @cached_property
    def _costs_of_zero(self) -> Array:
        """The losses of zero attributions, those of the bounds last."""
        return np.array([*self._trivial.zero.values()])

    @cached_property
    def _trivial(self) -> TrivialLosses:
        """The value of each loss for explanations without work."""
        return TrivialLosses.of(self.program.all_losses)
