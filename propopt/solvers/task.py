"""Tasks: from an objective to a certified explanation, by a suitable solver."""

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
from propopt.losses.algebra import Faithfulness, positive_terms
from propopt.losses.completeness import Totals
from propopt.losses.faithfulness import quantity_of_target, units_of_target
from propopt.losses.graphs.points import Graph
from propopt.proofs.certificate import Certificate, certificate_of
from propopt.proofs.hessian import least_among
from propopt.proofs.optimum import Parameter
from propopt.proofs.sampling_error import TargetErrorOperator, sampled_blocks
from propopt.results.explanation import Explanation, LazyAttributions
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
from propopt.solvers.factored import Factored
from propopt.solvers.lasso import Lasso
from propopt.solvers.minimum_norm import MinimumNorm
from propopt.solvers.normal_equations import ConstrainedEntryCg, NormalEquations
from propopt.solvers.reductions import (
    CompletenessReduction,
    EntryReduction,
    ShiftReduction,
    TransposeReduction,
)
from propopt.solvers.solver import (
    Curve,
    Dispatcher,
    Measurement,
    Prepared,
    Reduction,
    Solution,
    Solver,
    innermost,
    jackknife_errors,
)
from propopt.solvers.splitting import Splitting


MANY_FEATURES = 1_000
WIDE = 4
"""Beyond this many features, and this many per point, an eigenbasis costs too much."""


@final
@suggests_arguments
@dataclass(frozen=True)
class Auto(Dispatcher):
    """Choose the first suitable solver from the structure of the program.

    ======================================================  =========================
    program                                                 solver
    ======================================================  =========================
    gradient matching (l2), at most one robustness and one  ``spectral``: closed form
    smoothness loss, where an eigenbasis is cheaper than
    products with the graph, or closed form (lattices)
    the same, where the graph is narrow, such as a chain    ``factored``
    the same, otherwise: many points, few neighbours        ``krylov``, and factors
                                                            where that stalls
    the same, with one bound on one of these losses         ``one_bound``
    the same and sparsity                                   ``lasso``
    the same and max-differences, with or without           ``splitting``
    sparsity; sparsity and a kernel
    other squared losses that determine W, such as          ``normal_equations``
    function matching with robustness
    anything else: bounds of all kinds, gradient matching   ``conic``: HIGHS for linear
    in l1, function matching with sparsity                  programs, else CLARABEL
    squared losses of W, over points or over features, and  one of the above, for the
    rows with given sums (``po.losses.Completeness``)       rest: ``complete``
    rows with given sums and other losses                   ``splitting``, ``conic``
    squared losses that do not determine W                  refused; ask for
                                                            ``minimum_norm``
    more than 1,000 features, and four times as many as     one of the above, with
    points                                                  points and features
                                                            ``transposed``
    gradient matching, robustness over shared features and  one of the above, with
    sparsity, with or without bounds                        ``entries`` for points
    the first two, and rows with given sums of entries      ``entries, complete``
    robustness of W − G (``offset``), and losses with       one of the above, for
    targets                                                 W − G: ``shifted``
    ======================================================  =========================

    All were faster than Clarabel on random problems of nearly all measured sizes, from
    5 points on, so size matters only in the first three rows;
    ``docs/background/solvers.md`` lists exceptions.

    :meth:`select` shows the choice, and each result names it.
    """

    name = "auto"

    def take(self, program: Program) -> Solver | Reason:
        return _reduced_first(program, _first)

    def prepare(self, program: Program) -> Prepared:
        return self.select(program).prepare(program)

    def select(self, program: Program) -> Solver:
        """Return the solver for this program.

        Raises
        ------
        Refused
            If no solver takes it, with the reason of the most general one.
        """
        choice = self.take(program)
        if isinstance(choice, Reason):
            raise Refused(f"no solver takes this program: {choice.reason}")
        return choice


def _first(program: Program) -> Solver | Reason:
    """The first solver of the table that takes the program, or the last reason."""
    if program.bounds or program.kinds["other squared"]:
        choice = EntryReduction(Auto()).take(program)
        if isinstance(choice, Solver):
            return choice
    n_points, n_features = program.shape
    if n_features > max(MANY_FEATURES, WIDE * n_points):
        choice = TransposeReduction(Auto()).take(program)
        if isinstance(choice, Solver):
            return choice
    choice = choose_curve_solver(program)
    for solver in _PREFERENCE:
        if isinstance(choice, Solver):
            break
        choice = solver.take(program)
    return choice


_PREFERENCE: tuple[Solver, ...] = (
    OneBound(),
    Lasso(),
    Splitting(),
    NormalEquations(),
    ConstrainedEntryCg(),
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
    """Find a solver by name: one of this library or a backend of cvxpy."""
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
        f"solver: {name!r} is unknown or not installed{did_you_mean(name, names)}; "
        f"available: {', '.join(names)}"
    )


def chosen_solver(name: str | Solver, program: Program) -> Solver:
    """The named solver, or :class:`Refused` with its reason."""
    solver = find_solver(name)
    if isinstance(solver, Auto):
        return solver.select(program)
    if isinstance(solver, CompletenessReduction | ShiftReduction):
        choice = solver.take(program)
    else:
        choice = _reduced_first(program, solver.take)
    if isinstance(choice, Reason):
        raise Refused(f"{solver.name} cannot solve this: {choice.reason}")
    return choice


def _reduced_first(
    program: Program, take: Callable[[Program], Solver | Reason]
) -> Solver | Reason:
    """The solver of what an offset G and given row sums leave, else of the program."""
    reductions: list[Reduction] = []
    if program.kinds["with offset"]:
        reductions.append(ShiftReduction(None))
    if program.bounds:
        reductions.append(CompletenessReduction(None))
    for reduction in reductions:
        reduced = reduction.reduced(program)
        if isinstance(reduced, Program):
            inner = _reduced_first(reduced, take)
            if isinstance(inner, Reason):
                return inner
            return replace(reduction, solver=inner)
    return take(program)


FINE = 1e-9
"""The gap of jackknife optima, whose differences are below errors of draws."""

FINEST = 1e-13
"""The smallest gap requested for attributions on a curve: below it is rounding."""


@suggests_arguments
@dataclass(frozen=True, eq=False)
class Task:
    """A program with its solver: prepared once, solved for many weights.

    Weights are arrays (k,) ≥ 0 in the order of the losses of the program, some of them
    above zero. Weights and attributions are not checked again.

    Parameters
    ----------
    program : Program
        The losses, all of which are computed, and the bounds.
    solver : str or Solver
        The solver or its name, or ``"auto"``.
    active : tuple of int, optional
        Indices of the losses that ever get a weight: the solver ignores the others. All
        by default.

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
        """Make the task for a solver already known to take the program.

        Parameters
        ----------
        program : Program
            The losses and bounds.
        solver : Solver
            A solver without a reason to refuse the program.

        Returns
        -------
        Task
            With that solver as its choice.
        """
        task = cls(program, solver)
        vars(task)["chosen"] = solver  # stored where ``cached_property`` does
        return task

    @cached_property
    def chosen(self) -> Solver:
        """The solver that takes the program; raises :class:`Refused` without one."""
        _ = self.program.labels  # refuses losses of different tables
        return chosen_solver(self.solver, self._active_program)

    @cached_property
    def prepared(self) -> Prepared:
        """The program as prepared by its solver."""
        return self.chosen.prepare(self._active_program)

    @cached_property
    def _active_program(self) -> Program:
        """The program given to the solver, with active losses only."""
        losses = tuple(self.program.losses[index] for index in self._indices)
        if len(losses) == len(self.program.losses):
            return self.program
        return replace(self.program, losses=losses, sizes=self.program.shape)

    @cached_property
    def _indices(self) -> list[int]:
        """Indices of the active losses."""
        every = range(len(self.program.losses))
        return list(every if self.active is None else self.active)

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        """Compute the minimiser W for these weights, with duals.

        Parameters
        ----------
        weights : array (number of losses,)
            Weights in the order of the program's losses.
        tolerance : float
            The relative gap to reach.
        start : Solution, optional
            A solution for near weights, where iterative solvers start.

        Returns
        -------
        Solution
            W (N, D) and, where the solver has them, duals.
        """
        shape = self.program.shape
        self.program.trivial.refuse_underflow(weights)
        if self._zero_is_free(weights):
            tied = [loss for _, loss in positive_terms(weights, self.program.losses)]
            tied += [bound.loss for bound in self.program.bounds]
            if not any(isinstance(loss, Faithfulness) for loss in tied):
                warnings.warn(
                    f"{self.program.weighed(weights)!r} has no faithfulness loss with "
                    "a weight above zero, so its optimum is the zero explanation",
                    TrivialObjectiveWarning,
                    stacklevel=4,
                )
            prices = (0.0,) * len(self.program.bounds)
            return Solution(W=np.zeros(shape), multipliers=prices, is_free=True)
        reduced = weights[self._indices]
        with few_threads(shape[0]):
            solution = self.prepared.solve(reduced, tolerance, start)
        # these are the only checks: no certificate could be computed from such numbers
        if not np.isfinite(solution.W).all():
            raise SolverFailure(
                f"{self.chosen.name} gave attributions that are not finite"
            )
        if not np.greater_equal(solution.multipliers, 0.0).all():
            raise SolverFailure(
                f"{self.chosen.name} gave a multiplier that is not a number >= 0"
            )
        refuse_overflow(solution.W, "attributions")
        return solution

    def best(self, weights: Array, tolerance: float, began: float) -> Explanation:
        """The optimum for these weights, with certificate and standard errors.

        Parameters
        ----------
        weights : array (number of losses,)
            Weights in the order of the program's losses.
        tolerance : float
            The relative gap to reach.
        began : float
            Time of ``perf_counter`` at the start, for the seconds taken.

        Returns
        -------
        Explanation
            Its standard errors are computed when first read.
        """
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
        """Make an explanation of a solution, with losses and certificate.

        Parameters
        ----------
        solution : Solution
            Attributions, with duals where the solver has them.
        weights : array (number of losses,)
            Weights in the order of the program's losses.
        tolerance : float
            The relative gap to reach.
        began : float
            Time of ``perf_counter`` at the start, for the seconds taken.
        errors : array (N, D), optional
            Standard errors; by default those that need no further solving.

        Returns
        -------
        Explanation
            The solution's attributions with their losses and certificate.
        """
        program = self.program
        with few_threads(program.shape[0]):
            losses = program.values_at(solution.W)
            certificate = self._certified(solution, weights, losses, tolerance)
        return self._explanation(
            weights,
            certificate,
            losses,
            began,
            multipliers=solution.multipliers,
            attributions=read_only(solution.W),
            details={
                **self._details(solution),
                **self._total_details(solution, weights),
            },
            errors=errors,
            solver=self._solver_name(solution),
        )

    def _explanation(
        self,
        weights: Array,
        certificate: Certificate,
        losses: Array,
        began: float,
        *,
        attributions: Attributions,
        details: Mapping[str, Array],
        multipliers: tuple[float, ...] = (),
        errors: Array | None = None,
        solver: str,
    ) -> Explanation:
        names = self.program.trivial.names
        return Explanation(
            **self._of_program,
            parameters=dict(self._searches),
            attributions=attributions,
            weights=dict(zip(names, weights.tolist(), strict=False)),
            certificate=certificate,
            multipliers=dict(zip(names[len(weights) :], multipliers, strict=False)),
            # a curve does not give the losses of bounds
            losses=dict(zip(names, losses.tolist(), strict=False)),
            details=details,
            target=lazily(
                partial(
                    self._target_error.error, weights, certificate.scale, multipliers
                )
            ),
            standard_errors=self._linear_errors(weights) if errors is None else errors,
            solver=solver,
            seconds=time.perf_counter() - began,
        )

    @cached_property
    def _of_program(self) -> dict[str, Any]:
        """The fields of an explanation that do not depend on weights."""
        program = self.program
        losses = program.all_losses
        return {
            "method": "optimized",
            "labels": program.labels,
            "units": units_of_target(losses) or "gradient",
            "quantity": quantity_of_target(losses),
            "program": program,
        }

    @cached_property
    def _searches(self) -> dict[str, Parameter]:
        """How similar rows were found, unless all searches were exact."""
        of_rows = [loss for loss in self.program.all_losses if loss.n_points]
        graphs = [getattr(loss, "graph", None) for loss in of_rows]
        searches = [x.recall_in_words for x in graphs if isinstance(x, Graph)]
        words = dict.fromkeys(filter(None, searches))
        return {"similar rows": "; ".join(words)} if words else {}

    def with_program(self, best: Explanation, weights: Array) -> Explanation:
        """An explanation computed in another process, with the program of this task.

        Parameters
        ----------
        best : Explanation
            Computed from an equal program.
        weights : array (number of losses,)
            Weights in the order of the program's losses.

        Returns
        -------
        Explanation
            The same attributions; their errors are those linear in the target.
        """
        return replace(
            best, program=self.program, standard_errors=self._linear_errors(weights)
        )

    def _certified(
        self, solution: Solution, weights: Array, losses: Array, tolerance: float
    ) -> Certificate:
        certificate = certificate_of(
            self.program,
            weights,
            solution.W,
            losses,
            duals=solution.duals,
            multipliers=solution.multipliers,
        )
        if not certificate.holds(tolerance):
            warnings.warn(
                f"{self._solver_name(solution)} reached a certified gap of "
                f"{certificate.gap:.1e} and a violation of bounds of "
                f"{certificate.violation:.1e}, where {tolerance:.1e} was requested; "
                "another solver may do better",
                UncertifiedWarning,
                stacklevel=5,
            )
        return certificate

    def _details(self, solution: Solution) -> dict[str, Array]:
        """Weights of the binding edges, for max-differences."""
        return {
            f"edge_weights.{loss.name}": read_only(edge_weights(loss, solution))
            for loss in self._active_program.losses
            if isinstance(loss, MaxDifferenceRobustness) and loss.name in solution.duals
        }

    def standard_errors(
        self, weights: Array, tolerance: float, solution: Solution
    ) -> Array | None:
        """Standard errors (N, D) of a solution due to its sampled target, or None.

        The jackknife is used where W is not linear in the target; None without draws
        and where the jackknife would need the conic solver.

        Parameters
        ----------
        weights : array (number of losses,)
            Weights in the order of the program's losses.
        tolerance : float
            The relative gap to reach.
        solution : Solution
            The optimum for these weights, where the jackknife starts.

        Returns
        -------
        array (N, D) or None
            Standard deviations of W over draws of the target.
        """
        linear = self._target_error.standard_errors(weights)
        if linear is not None or not self._can_leave_out(weights):
            return linear
        reduced = weights[self._indices]
        fine = min(tolerance, FINE)
        return read_only(
            jackknife_errors(self._active_program, self.chosen, reduced, fine, solution)
        )

    def _can_leave_out(self, weights: Array) -> bool:
        """Whether exactly one target was sampled and the solver is fast enough."""
        if self._zero_is_free(weights):
            return False
        sampled = [
            sampled_blocks(loss) is not None for loss in self._active_program.losses
        ]
        return sum(sampled) == 1 and not isinstance(innermost(self.chosen), Conic)

    def _linear_errors(self, weights: Array) -> Array | None:
        return lazily(partial(self._target_error.standard_errors, weights))

    @cached_property
    def _target_error(self) -> TargetErrorOperator:
        """Errors of the target, by the eigenbases or the curve of the solver if any."""
        everything = self._active_program is self.program
        prepared = vars(self).get("prepared")  # only if prepared already
        if everything and isinstance(prepared, Diagonal):
            return TargetErrorOperator(self.program, bases=prepared.bases)
        if everything and isinstance(self.chosen, Krylov):
            energy = partial(energy_on_curve, self.program, self.chosen)
            return TargetErrorOperator(self.program, energy=energy)
        return TargetErrorOperator(self.program)

    def _total_details(self, solution: Solution, weights: Array) -> dict[str, Array]:
        """Multipliers of given row sums, and the irreducible part of each loss."""
        if self._totals is None:
            return {}
        terms = self.program.weighed(weights).terms
        y = self._totals.multiplier(terms, solution.W, solution.duals)
        return {"completeness.multiplier": read_only(y), **self._irreducible}

    @cached_property
    def _totals(self) -> Totals | None:
        """The given row sums, or None."""
        return Totals.of(self.program)

    @cached_property
    def _irreducible(self) -> dict[str, Array]:
        """The smallest value of each loss among rows with the given sums."""
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

    def _solver_name(self, solution: Solution) -> str:
        return "none" if solution.is_free else self.chosen.name

    def has_curve(self, weights: Array) -> bool:
        """Whether the losses of the optimum are available without attributions."""
        with few_threads(self.program.shape[0]):
            prepared = self.prepared
        return isinstance(prepared, Curve) and not self._zero_is_free(weights)

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        """Compute the losses of the optimum, in program order, without attributions.

        Parameters
        ----------
        weights : array (number of losses,)
            Weights in the order of the program's losses.
        tolerance : float
            The relative gap to reach.

        Returns
        -------
        Measurement
            The losses, and by how much the objective may exceed its minimum.
        """
        with few_threads(self.program.shape[0]):
            curve = self.prepared
            assert isinstance(curve, Curve), "see has_curve"
            result = curve.measure(weights[self._indices], tolerance)
        losses = np.full(len(weights), np.nan)  # the others are undefined
        losses[self._indices] = result.losses
        return Measurement(losses=losses, excess=result.excess)

    def on_curve(self, weights: Array, tolerance: float, began: float) -> Explanation:
        """An explanation with losses from the curve; attributions follow on access.

        They are computed at once if the losses of the curve miss the tolerance:
        attributions may prove a smaller gap, and warn if they do not.

        Parameters
        ----------
        weights : array (number of losses,)
            Weights in the order of the program's losses.
        tolerance : float
            The relative gap to reach.
        began : float
            Time of ``perf_counter`` at the start, for the seconds taken.

        Returns
        -------
        Explanation
            With the losses of the curve and their certificate.
        """
        self.program.trivial.refuse_underflow(weights)
        measurement = self.measure(weights, tolerance)
        value = float(weights @ measurement.losses)
        certificate = Certificate(
            value=value,
            lower_bound=value - measurement.excess,
            scale=self.program.trivial.scale(value, weights),
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
            measurement.losses,
            began,
            attributions=lazy,
            details=self._irreducible,
            solver=self.chosen.name,
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
        """Whether zero attributions cost nothing and respect all bounds."""
        costs = self.program.trivial.zero
        k = len(weights)
        within = (costs[k:] <= self._limits).all()
        return bool(within and not (weights * costs[:k]).any())

    @cached_property
    def _limits(self) -> Array:
        """The limits of the bounds."""
        return np.array([bound.limit for bound in self.program.bounds])
