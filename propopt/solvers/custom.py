"""Programs with custom cvxpy losses or constraints, solved by any backend.

The backend gives W, and its losses are computed from W. The bound comes from duals of
Clarabel for the same conic program, whatever the backend, and they are checked
(:mod:`propopt.proofs.conic_bound`). So the gap holds for W from any source.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from propopt.base.checks import read_only, refuse_overflow
from propopt.base.errors import Infeasible, Refused, SolverFailure, UncertifiedWarning
from propopt.base.text import Reason
from propopt.losses import Bound, GradientMatching, Objective, Program
from propopt.losses.algebra import Faithfulness
from propopt.losses.custom import ConstraintFunction
from propopt.losses.faithfulness import quantity_of_target, units_of_target
from propopt.proofs.conic_bound import CustomProgram, Solved, clarabel_options
from propopt.proofs.sampling_error import (
    TargetError,
    exact_targets,
    unknown_target,
)
from propopt.results.explanation import Explanation
from propopt.solvers.conic import (
    Conic,
    accuracy_of,
    failures_of,
    options_of,
    too_large_refusal,
)
from propopt.solvers.solver import Solver
from propopt.solvers.task import Auto, find_solver


NOT_PROVED = "not proved"
"""The parameter of a result with the reason why it has no gap."""


def solve_custom(
    objective: Objective,
    bounds: tuple[Bound, ...],
    custom: tuple[ConstraintFunction, ...],
    solver: str | Solver,
    tolerance: float,
) -> Explanation:
    """The optimum of a program with custom losses or constraints, with its proof."""
    began = time.perf_counter()
    conic = _conic(find_solver(solver))
    program = CustomProgram(objective, bounds, custom)
    standard = program.standard
    too_large = too_large_refusal(standard)
    if too_large is not None:
        raise Refused(too_large)
    backend = conic.backend or "CLARABEL"
    solved = _run(program, backend, tolerance, conic.options)
    W = np.array(program.W.value, dtype=np.float64)
    if not np.isfinite(W).all():
        raise SolverFailure(f"{backend} gave attributions that are not finite")
    refuse_overflow(W, "attributions")
    values = {loss.name: loss.value_at(W) for loss in program.losses}
    certificate = program.certificate(W, values, solved)
    parameters = {}
    if custom:
        count = len(program.constraints)
        parameters["subject_to"] = f"{count} constraint{'s' * (count > 1)} of cvxpy"
    scale = 0.0
    if isinstance(certificate, Reason):
        parameters[NOT_PROVED] = certificate.reason
        warnings.warn(
            f"{backend}: no proof of these attributions: {certificate.reason}",
            UncertifiedWarning,
            stacklevel=3,
        )
    else:
        scale = certificate.scale
        if not certificate.holds(tolerance):
            warnings.warn(
                f"{backend} reached a certified gap of {certificate.gap:.1e} and a "
                f"violation of constraints of {certificate.violation:.1e}, where "
                f"{tolerance:.1e} was requested; another solver may do better",
                UncertifiedWarning,
                stacklevel=3,
            )
    return Explanation(
        attributions=read_only(W),
        method="optimized",
        labels=standard.labels,
        parameters=parameters,
        weights=objective.weights,
        certificate=None if isinstance(certificate, Reason) else certificate,
        multipliers={
            bound.loss.name: program.unit * max(float(np.sum(limit.dual_value)), 0.0)
            for bound, limit in zip(program.bounds, program.limits, strict=True)
            if bound.limit > 0.0 and limit.dual_value is not None
        },
        losses=values,
        target=_target(standard, scale),
        problem_data=standard.problem_data(standard.shape),
        units=units_of_target(standard.all_losses) or "gradient",
        quantity=quantity_of_target(standard.all_losses),
        solver=backend,
        seconds=time.perf_counter() - began,
    )


def _conic(solver: Solver) -> Conic:
    if isinstance(solver, Auto):
        return Conic()
    if not isinstance(solver, Conic):
        raise Refused(
            f"{solver.name} cannot solve this: custom losses and constraints need "
            "cvxpy: solver='conic' takes them, or a backend such as "
            "'CLARABEL'"
        )
    return solver


def _run(
    program: CustomProgram, backend: str, tolerance: float, options: Mapping[str, Any]
) -> Solved:
    """Solve with the backend; the duals are Clarabel's for the same program."""
    accuracy = accuracy_of(tolerance)
    settings = {**options_of(backend, accuracy), **options}
    with failures_of(backend):
        if backend == "CLARABEL":
            solved = Solved(program.problem, settings)
            solved.unpack()
        else:
            program.problem.solve(solver=backend, **settings)
    status = program.problem.status
    if "infeasible" in status and program.problem.constraints:
        raise Infeasible(
            f"no attributions satisfy all constraints of subject_to ({backend}: "
            f"{status})"
        )
    if program.W.value is None:
        raise SolverFailure(f"{backend} stopped with status {status!r}, without W")
    if backend != "CLARABEL":
        solved = Solved(program.problem, clarabel_options(accuracy))
    return solved


def _target(standard: Program, scale: float) -> TargetError:
    """The error of the target, if it is available."""
    matched = [loss for loss in standard.all_losses if isinstance(loss, Faithfulness)]
    exact = exact_targets(matched, scale)
    if exact is not None:
        return exact
    given = any(isinstance(x, GradientMatching) and x.estimate is None for x in matched)
    return unknown_target("given as numbers" if given else "estimated", scale)
