"""The contract of a solver: every solver on every objective that it does not refuse."""

from __future__ import annotations

from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from catalogue import LOSSES, OBJECTIVES, SHAPE, SOLVERS, SQUARED, VALUES, G, X
from oracles import normal_equations, reference_optimum, subclasses

import propopt as po
from propopt.base.errors import Refused
from propopt.losses import Program
from propopt.solvers import Solver, Task
from propopt.solvers.task import find_solver


REFERENCE = 2e-8  # relative accuracy of Clarabel as a reference
gradient, sparsity = LOSSES["gradient l2"], LOSSES["sparsity"]
robustness, largest = LOSSES["pairwise, gaussian"], LOSSES["difference, max l2"]
function = LOSSES["function"]


@cache
def reference(name: str) -> float:
    return reference_optimum(OBJECTIVES[name], SHAPE)


def find(name: str) -> Solver:
    """The solver of the catalogue; skips where its backend is not installed."""
    solver = SOLVERS[name].solver
    if isinstance(solver, str) and solver not in cp.installed_solvers():
        pytest.skip(f"{solver} is not installed")
    return find_solver(solver)


def refusal(solver: Solver, objective: po.Objective) -> str | None:
    return solver.refusal(Program(objective.losses, sizes=SHAPE))


each_objective = pytest.mark.parametrize("name", OBJECTIVES)
OF_EACH_KIND = (
    "gradient, pairwise, smoothness",
    "gradient, pairwise, sparsity",
    "gradient, max",
    "gradient l1, max linf",
    "gradient l1, pairwise",
    "function, pairwise",
)
each_solver = pytest.mark.parametrize("solver", SOLVERS)
each_squared = pytest.mark.parametrize("name", SQUARED)


def test_every_solver_is_in_the_catalogue():
    assert subclasses(Solver) == {
        type(find_solver(case.solver))
        for case in SOLVERS.values()
        if isinstance(case.solver, Solver)
    }


@each_objective
@each_solver
def test_solution_is_certified_and_is_the_optimum(solver, name):
    objective, wanted = OBJECTIVES[name], SOLVERS[solver].gap
    if (reason := refusal(find(solver), objective)) is not None:
        with pytest.raises(Refused) as raised:
            po.solve(objective, find(solver))
        assert reason in str(raised.value)
        assert len(reason.split()) >= 3
        return
    best = po.solve(objective, find(solver), tolerance=wanted)
    assert best.certificate.holds(wanted)
    assert best.objective == pytest.approx(
        reference(name), rel=wanted + REFERENCE, abs=1e-12
    )


@each_squared
def test_squared_losses_solve_the_normal_equations(name):
    best = po.solve(OBJECTIVES[name], tolerance=1e-13)
    expected = normal_equations(OBJECTIVES[name], SHAPE)
    # a gap bounds the attributions by its root only
    np.testing.assert_allclose(best.attributions, expected, atol=1e-5)


@pytest.mark.sampled(15)
@pytest.mark.parametrize("name", OF_EACH_KIND)
@each_solver
def test_prepared_once_equals_prepared_afresh(solver, name):
    objective, wanted = OBJECTIVES[name], SOLVERS[solver].gap
    if refusal(find(solver), objective) is not None:
        return
    task = Task(Program(objective.losses), find(solver))
    start = None
    first, *_, last = objective.weights
    for weights in ({first: 0.1}, {first: 10.0}, {last: 0.01}, {last: 10.0}):
        other = objective.with_weights(weights)
        start = task.solve(other.coefficients, wanted, start)
        afresh = po.solve(other, find(solver), tolerance=wanted)
        assert other.value(start.W) == pytest.approx(
            afresh.objective, rel=2 * wanted, abs=1e-12
        )


@each_solver
def test_solving_leaves_its_data_as_they_were(solver):
    before = G.copy()
    if (reason := refusal(find(solver), 1.0 * gradient)) is not None:
        pytest.skip(reason)
    po.solve(1.0 * gradient, find(solver), tolerance=SOLVERS[solver].gap)
    np.testing.assert_array_equal(gradient.G, before)


def test_same_program_has_the_same_answer_every_time():
    objective = OBJECTIVES["gradient, max, sparsity"]
    first, second = po.solve(objective), po.solve(objective)
    np.testing.assert_array_equal(first.attributions, second.attributions)


def scaled(scale: float) -> dict[str, po.Objective]:
    """Objectives of data in other units."""
    gradient = po.GradientMatching(scale * G)
    absolute = po.GradientMatching(scale * G, norm="l1")
    function = po.FunctionMatching(X, scale * VALUES)
    return {
        "squared": gradient + 0.7 * robustness,
        "sparse": gradient + 0.7 * robustness + 0.5 * scale * sparsity,
        "function": function + 0.3 * robustness,
        "function, sparse": function + 0.3 * robustness + 0.1 * scale * sparsity,
        "max": gradient + 0.5 * largest,
        "linear": absolute + 0.3 * LOSSES["difference, sum linf"],
        "absolute": absolute + 0.3 / scale * robustness,
    }


@pytest.mark.sampled(28)
@pytest.mark.parametrize("name", scaled(1.0))
@pytest.mark.parametrize("weight", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_units_of_data_and_weights_do_not_matter(name, weight, unit):
    best = po.solve(weight * scaled(unit)[name])
    assert best.certificate.holds(1e-6)
    plain = po.solve(scaled(1.0)[name])
    degree = 1 if name == "linear" else 2
    degree = 1 if name == "absolute" else degree
    expected = weight * unit**degree * plain.objective
    assert best.objective == pytest.approx(expected, rel=3e-6)


@pytest.mark.parametrize("name", ["squared", "sparse", "function", "max", "absolute"])
@pytest.mark.parametrize("weight", [1e-6, 1e-3, 1e3, 1e6])
def test_weights_far_apart_are_certified(name, weight):
    objective = scaled(1.0)[name]
    last = list(objective.weights)[-1]
    best = po.solve(objective.with_weights({last: weight}))
    assert best.certificate.holds(1e-6)
