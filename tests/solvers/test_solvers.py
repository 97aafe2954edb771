"""The contract of a solver: each on every objective that it does not refuse."""

from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from catalogue import (
    LOSSES,
    OBJECTIVES,
    SHAPE,
    SOLVERS,
    SQUARED,
    VALUES,
    G,
    X,
)
from oracles import normal_equations, reference_optimum, subclasses

import propopt as po
from propopt.base.errors import Refused, SolverFailure, UncertifiedWarning
from propopt.losses import Program
from propopt.solvers import Solver, Task
from propopt.solvers import conic as conic_module
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


OF_EACH_KIND = (
    "gradient, pairwise, smoothness",
    "gradient, pairwise, sparsity",
    "gradient, max",
    "gradient l1, max linf",
    "gradient l1, pairwise",
    "function, pairwise",
)
each_solver = pytest.mark.parametrize("solver", SOLVERS)


def test_every_solver_is_in_the_catalogue():
    assert subclasses(Solver) == {
        type(find_solver(case.solver))
        for case in SOLVERS.values()
        if isinstance(case.solver, Solver)
    }


@each_solver
@pytest.mark.parametrize("name", OBJECTIVES)
def test_solution_is_certified_and_is_the_optimum(solver, name):
    objective, wanted = OBJECTIVES[name], SOLVERS[solver].gap
    if (reason := refusal(find(solver), objective)) is not None:
        with pytest.raises(Refused) as raised:
            po.solve(objective, find(solver))
        assert reason in str(raised.value)
        assert len(reason.split()) >= 3
        return
    before = G.copy()
    best = po.solve(objective, find(solver), tolerance=wanted)
    np.testing.assert_array_equal(gradient.G, before)
    assert best.certificate.holds(wanted)
    least = pytest.approx(reference(name), rel=wanted + REFERENCE, abs=1e-12)
    assert best.objective == least


@pytest.mark.parametrize("name", SQUARED)
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
    degree = 1 if name in ("linear", "absolute") else 2
    expected = weight * unit**degree * plain.objective
    assert best.objective == pytest.approx(expected, rel=3e-6)


# ---- the choice


CHOSEN = {
    "gradient, pairwise, smoothness": "spectral",
    "gradient, kernel": "spectral",
    "gradient, pairwise, sparsity": "lasso",
    "gradient, max": "splitting",
    "function, pairwise": "normal_equations",
    "gradient l1, max linf": "conic",
}


def test_automatic_choice_is_named_on_the_result():
    for name, choice in CHOSEN.items():
        assert po.solve(OBJECTIVES[name]).solver == choice
        program = Program(OBJECTIVES[name].losses)
        assert po.solvers.Auto().select(program).name == choice


def test_program_has_the_smallest_class_that_holds_it():
    for name, kind in {
        "gradient l1, max linf": "LP",
        "gradient, pairwise, sparsity": "QP",
        "gradient l1, pairwise": "QP",
        "gradient l1, max": "SOCP",
    }.items():
        assert conic_module.program_class(Program(OBJECTIVES[name].losses)) == kind


def test_solvers_are_found_by_name_in_any_case():
    assert find_solver("clarabel").name == "CLARABEL"


@pytest.mark.parametrize("backend", ["OSQP", "PIQP", "HIGHS"])
def test_backend_without_cones_refuses_them(backend):
    if backend not in cp.installed_solvers():
        pytest.skip(f"{backend} is not installed")
    with pytest.raises(Refused, match="second-order cones"):
        po.solve(OBJECTIVES["gradient, max"], backend)
    with pytest.raises(Refused, match="second-order cones"):
        po.solve(1.0 * gradient, backend, subject_to=[robustness <= 1])


def clarabel(**options):
    return po.solvers.Conic("CLARABEL", options=options)


def test_options_reach_the_backend_and_what_it_misses_is_told():
    program = OBJECTIVES["gradient, max"]
    with pytest.warns(UncertifiedWarning, match="CLARABEL reached a certified gap"):
        po.solve(program, clarabel(max_iter=1))
    loose = clarabel(tol_gap_rel=1e-2, tol_gap_abs=1e-2)
    with pytest.warns(UncertifiedWarning, match="another solver may do better"):
        rough = po.solve(program, loose, tolerance=1e-13)
    assert rough.gap > 1e-13
    spoilt = clarabel(static_regularization_constant=1e10)
    with pytest.raises(SolverFailure, match=r"CLARABEL stopped.*solver='SCS'"):
        po.solve(OBJECTIVES["gradient, pairwise, sparsity"], spoilt)


# ---- what losses determine


def test_function_matching_needs_what_determines_it():
    best = po.solve(1.0 * po.FunctionMatching(X[:, :1], VALUES))
    np.testing.assert_allclose(best.attributions[:, 0], VALUES / X[:, 0], rtol=1e-6)


def test_minimum_norm_is_the_pseudoinverse():
    best = po.solve(1.0 * function, "minimum_norm")
    expected = X * (VALUES / (X**2).sum(axis=1))[:, None]
    np.testing.assert_allclose(best.attributions, expected, rtol=1e-12)
    objective = function + 0.5 * LOSSES["pairwise, disconnected"]
    rows = [
        np.sqrt(weight) * loss.map.flat(SHAPE).toarray()
        for weight, loss in objective.terms
    ]
    targets = np.concatenate([VALUES, np.zeros(len(rows[1]))])
    expected, *_ = np.linalg.lstsq(np.vstack(rows), targets, rcond=None)
    best = po.solve(objective, "minimum_norm")
    np.testing.assert_allclose(best.attributions.ravel(), expected, atol=1e-10)


# ---- few points of very many features: points and features are exchanged


IMAGE = po.ImageShape(1, 36, 36)


@pytest.fixture
def wide(rng):
    points, target = rng.normal(size=(2, 5, IMAGE.n_features))
    return (
        po.GradientMatching(target)
        + 0.5 * po.PairwiseRobustness(po.knn_graph(points, 2))
        + 0.3 * po.Smoothness(IMAGE.pixel_graph())
    )


def test_wide_programs_are_exchanged_and_have_the_optimum_of_the_eigenbasis(wide):
    assert po.solve(wide + 0.1 * po.Sparsity()).solver == "lasso, transposed"
    result, exact = po.solve(wide), po.solve(wide, solver="spectral")
    assert result.solver == "factored, transposed"
    # strongly convex with modulus 1: ‖W − W*‖² is at most the excess
    assert result.gap < 1e-6
    distance = np.linalg.norm(result.attributions - exact.attributions)
    assert distance**2 <= 1e-6 * result.objective
    weights = {"smoothness": [0.01, 1.0, 100.0]}
    curve, other = po.sweep(wide, weights), po.sweep(wide, weights, solver="spectral")
    np.testing.assert_allclose(curve.values, other.values, rtol=1e-6)
    assert curve.certified(1e-6)


def test_no_matrix_over_features_is_formed(rng):
    image = po.ImageShape(3, 112, 112)  # 37,632 features: their square is 11 GiB
    G = rng.normal(size=(2, image.n_features))
    objective = (
        po.GradientMatching(G)
        + po.PairwiseRobustness(po.complete_graph(2))
        + po.Smoothness(image.pixel_graph())
    )
    assert po.solve(objective).gap < 1e-6
