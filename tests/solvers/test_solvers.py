"""The contract of a solver: every solver on every objective that it does not refuse."""

from __future__ import annotations

from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from catalogue import (
    LOSSES,
    OBJECTIVES,
    POINT_GRAPHS,
    SHAPE,
    SOLVERS,
    SQUARED,
    VALUES,
    D,
    G,
    N,
    X,
)
from cvxpy.reductions.solvers.solving_chain import SolvingChain
from oracles import normal_equations, reference_optimum, subclasses

import propopt as po
from propopt.errors import (
    Infeasible,
    InvalidInput,
    Refused,
    SolverFailure,
    UncertifiedWarning,
)
from propopt.losses import Program
from propopt.solvers import Solver, Task, find_solver
from propopt.solvers import conic as conic_module


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


@pytest.mark.parametrize(
    "name", [n for n in SQUARED if refusal(po.solvers.Spectral(), SQUARED[n]) is None]
)
@pytest.mark.parametrize("backend", ["CLARABEL", "OSQP"])
def test_closed_form_equals_the_backends(name, backend):
    closed = po.solve(OBJECTIVES[name], "spectral")
    conic = po.solve(OBJECTIVES[name], backend, tolerance=1e-8)
    assert conic.objective == pytest.approx(closed.objective, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("name", OF_EACH_KIND)
@each_solver
def test_prepared_once_equals_prepared_afresh(solver, name):
    objective, wanted = OBJECTIVES[name], SOLVERS[solver].gap
    if refusal(find(solver), objective) is not None:
        return
    task = Task(objective, solver=find(solver))
    start = None
    first, *_, last = objective.weights
    for weights in ({first: 0.1}, {first: 10.0}, {last: 0.01}, {last: 10.0}):
        other = objective.with_weights(weights)
        start = task.solve(other, wanted, start)
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


# scales


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


# the choice of a solver


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("gradient, pairwise, smoothness", "spectral"),
        ("gradient, kernel", "spectral"),
        ("gradient, pairwise, sparsity", "lasso"),
        ("gradient, max", "splitting"),
        ("function, pairwise", "normal_equations"),
        ("gradient l1, max linf", "conic"),
    ],
)
def test_automatic_choice_is_named_on_the_result(name, choice):
    assert po.solve(OBJECTIVES[name]).solver == choice
    program = Program(OBJECTIVES[name].losses)
    assert po.solvers.Auto().select(program).name == choice


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gradient l1, max linf", "LP"),
        ("gradient, pairwise, sparsity", "QP"),
        ("gradient l1, pairwise", "QP"),
        ("gradient l1, max", "SOCP"),
    ],
)
def test_program_has_the_smallest_class_that_holds_it(name, kind):
    program = Program(OBJECTIVES[name].losses)
    assert conic_module.program_class(program) == kind


def test_unknown_solver_is_refused_with_a_suggestion():
    with pytest.raises(InvalidInput, match=r"did you mean 'spectral'\?.*minimum_norm"):
        po.solve(1.0 * gradient, "spectrall")


def test_backends_are_found_in_any_case():
    assert find_solver("clarabel").name == "CLARABEL"


@pytest.mark.parametrize("backend", ["OSQP", "PIQP", "HIGHS"])
def test_backend_without_cones_refuses_them(backend):
    if backend not in cp.installed_solvers():
        pytest.skip(f"{backend} is not installed")
    with pytest.raises(Refused, match="second-order cones"):
        po.solve(OBJECTIVES["gradient, max"], backend)
    with pytest.raises(Refused, match="second-order cones"):
        po.solve(1.0 * gradient, backend, subject_to=[robustness <= 1])


def test_options_reach_the_backend():
    hurried = po.solvers.Conic("CLARABEL", options={"max_iter": 1})
    with pytest.warns(UncertifiedWarning, match="CLARABEL reached a certified gap"):
        po.solve(OBJECTIVES["gradient, max"], hurried)


def test_backend_that_gives_nothing_is_a_failure_with_advice():
    spoilt = po.solvers.Conic(
        "CLARABEL", options={"static_regularization_constant": 1e10}
    )
    with pytest.raises(SolverFailure, match=r"CLARABEL stopped.*solver='SCS'"):
        po.solve(OBJECTIVES["gradient, pairwise, sparsity"], spoilt)


def test_missed_tolerance_is_a_warning_and_not_an_error():
    solver = po.solvers.Conic(
        "CLARABEL", options={"tol_gap_rel": 1e-2, "tol_gap_abs": 1e-2}
    )
    with pytest.warns(UncertifiedWarning, match="another solver may do better"):
        rough = po.solve(OBJECTIVES["gradient, max"], solver, tolerance=1e-13)
    assert rough.gap > 1e-13


@pytest.mark.parametrize("tolerance", [0, -1, np.nan, "tight"])
def test_tolerance_is_a_positive_number(tolerance):
    with pytest.raises(InvalidInput, match=r"^tolerance:"):
        po.solve(1.0 * gradient, tolerance=tolerance)


# what W is determined by


def test_function_matching_alone_is_refused_with_a_hint():
    with pytest.raises(Refused, match=r"undetermined.*solver='minimum_norm'"):
        po.solve(1.0 * function)


def test_function_matching_needs_a_connected_graph():
    objective = function + LOSSES["pairwise, disconnected"]
    with pytest.raises(Refused, match="undetermined"):
        po.solve(objective)


def test_function_matching_is_determined_in_one_dimension():
    loss = po.FunctionMatching(X[:, :1], VALUES)
    best = po.solve(1.0 * loss)
    np.testing.assert_allclose(best.attributions[:, 0], VALUES / X[:, 0], rtol=1e-6)


def test_minimum_norm_is_the_smallest_exact_fit():
    best = po.solve(1.0 * function, "minimum_norm")
    expected = X * (VALUES / (X**2).sum(axis=1))[:, None]
    np.testing.assert_allclose(best.attributions, expected, rtol=1e-12)


def test_minimum_norm_is_the_pseudoinverse():
    objective = function + 0.5 * LOSSES["pairwise, disconnected"]
    rows = [
        np.sqrt(weight) * loss.map.flat(SHAPE).toarray()
        for weight, loss in objective.terms
    ]
    targets = np.concatenate([VALUES, np.zeros(len(rows[1]))])
    expected, *_ = np.linalg.lstsq(np.vstack(rows), targets, rcond=None)
    best = po.solve(objective, "minimum_norm")
    np.testing.assert_allclose(best.attributions.ravel(), expected, atol=1e-10)


# bounds


@pytest.mark.parametrize(
    ("loss", "fraction"),
    [
        (robustness, 0.3),
        (sparsity, 0.5),
        (largest, 0.2),
        (LOSSES["difference, sum linf"], 0.4),
        (LOSSES["smoothness, chain"], 0.1),
        (LOSSES["kernel"], 0.05),
        (function, 0.1),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_multiplier_as_weight_reproduces_the_constrained_optimum(loss, fraction):
    bound = loss <= fraction * loss.value(G)
    best = po.solve(1.0 * gradient, subject_to=[bound])
    assert best.certificate.holds(1e-6)
    assert best.losses[loss.name] == pytest.approx(bound.limit, rel=1e-6)
    price = best.multipliers[loss.name]
    assert price > 0
    weighted = po.solve(gradient + price * loss)
    total = gradient.value(best.attributions) + price * loss.value(best.attributions)
    assert total == pytest.approx(weighted.objective, rel=1e-6)
    np.testing.assert_allclose(weighted.attributions, best.attributions, atol=2e-3)


def test_slack_bound_changes_nothing_and_costs_nothing():
    free = po.solve(gradient + 0.5 * robustness)
    bound = sparsity <= 2 * sparsity.value(free.attributions)
    best = po.solve(gradient + 0.5 * robustness, subject_to=[bound])
    assert best.objective == pytest.approx(free.objective, rel=1e-6)
    assert best.multipliers["sparsity"] == pytest.approx(0, abs=1e-6)


def test_several_bounds_hold_together():
    bounds = [
        robustness <= 0.3 * robustness.value(G),
        sparsity <= 0.5 * sparsity.value(G),
    ]
    best = po.solve(1.0 * gradient, subject_to=bounds)
    assert best.certificate.holds(1e-6)
    assert best.objective == pytest.approx(
        reference_optimum(1.0 * gradient, SHAPE, bounds), rel=1e-6
    )


def test_bounds_are_reported_beside_the_losses():
    best = po.solve(1.0 * gradient, subject_to=[sparsity <= 3])
    assert list(best.losses) == ["gradient_matching", "sparsity"]
    assert list(best.weights) == ["gradient_matching"]


def test_closed_forms_refuse_bounds_by_name():
    for solver in ("spectral", "minimum_norm"):
        with pytest.raises(Refused, match="no bounds, and sparsity <= 3 is one"):
            po.solve(1.0 * gradient, solver, subject_to=[sparsity <= 3])


def test_loss_is_either_minimised_or_bounded():
    with pytest.raises(InvalidInput, match="sparsity"):
        po.solve(gradient + sparsity, subject_to=[sparsity <= 3])


CONFLICTS = {
    "local": ([LOSSES["function, local"]], []),
    "faithful and robust": ([gradient], [(robustness, 0.01)]),
    "faithful and sparse": ([gradient], [(sparsity, 0.2)]),
    "faithful and even": ([gradient], [(largest, 0.01)]),
}


@pytest.mark.parametrize(("first", "others"), CONFLICTS.values(), ids=CONFLICTS)
def test_infeasible_bound_names_the_smallest_attainable_value(first, others):
    rest = [loss <= fraction * loss.value(G) for loss, fraction in others]
    attainable = reference_optimum(1.0 * first[0], SHAPE, rest)
    bound = first[0] <= 0.5 * attainable
    objective = 1.0 * po.GradientMatching(-G, name="other")
    with pytest.raises(Infeasible) as raised:
        po.solve(objective, subject_to=[bound, *rest])
    beside = ", ".join(map(repr, rest)) or "no other bound"
    sentence = f"{bound} cannot hold: under {beside} the smallest attainable value of "
    sentence += f"{bound.loss.name} is "
    assert sentence in str(raised.value)
    number = str(raised.value).split(sentence)[1].split(";")[0]
    assert float(number) == pytest.approx(attainable, rel=1e-5)


def test_attainable_bound_is_feasible():
    rest = [robustness <= 0.01 * robustness.value(G)]
    attainable = reference_optimum(1.0 * gradient, SHAPE, rest)
    best = po.solve(1.0 * sparsity, subject_to=[gradient <= 1.001 * attainable, *rest])
    assert best.certificate.violation <= 1e-6


# prepared once


@pytest.fixture
def compilations(monkeypatch):
    """One entry for each time that cvxpy takes a program through all its reductions."""
    found = []
    original = SolvingChain.apply

    def apply(self, problem, verbose=False):
        found.append(problem)
        return original(self, problem, verbose)

    monkeypatch.setattr(SolvingChain, "apply", apply)
    return found


@pytest.mark.parametrize(
    "name",
    [
        "gradient, pairwise, sparsity",
        "gradient, max",
        "gradient l1, max linf",
        "function, pairwise",
    ],
)
def test_a_sweep_compiles_once(name, compilations):
    objective = OBJECTIVES[name]
    last = list(objective.weights)[-1]
    weights = {last: np.geomspace(0.01, 100, 25)}
    curve = po.sweep(objective, weights, solver="conic")
    assert len(curve.optimized) == 25
    assert len(compilations) == 1


def test_separate_solves_compile_each_time(compilations):
    for _ in range(3):
        po.solve(OBJECTIVES["gradient, max"], "conic")
    assert len(compilations) == 3


def test_spectral_sweep_finds_its_eigenbasis_once(monkeypatch):
    calls = []
    original = po.solvers.curves.eigenbasis.la.eigh

    def eigh(matrix):
        calls.append(matrix.shape)
        return original(matrix)

    monkeypatch.setattr(po.solvers.curves.eigenbasis.la, "eigh", eigh)
    objective = OBJECTIVES["gradient, pairwise, smoothness"]
    po.sweep(objective, {"pairwise_robustness": np.geomspace(0.01, 100, 25)})
    assert calls == [(N, N), (D, D)]


# graphs at the edge


def test_graph_without_edges_changes_nothing():
    empty = po.PairwiseRobustness(po.graph_from_matrix(np.zeros((N, N))))
    for solver in ("spectral", "CLARABEL", "minimum_norm"):
        best = po.solve(gradient + empty, solver)
        np.testing.assert_allclose(best.attributions, G, atol=1e-6)


def test_graph_without_edges_may_stand_beside_any_loss():
    empty = po.PairwiseRobustness(po.graph_from_matrix(np.zeros((N, N))))
    with_it = po.solve(gradient + empty + 0.5 * sparsity)
    without = po.solve(gradient + 0.5 * sparsity)
    assert with_it.objective == pytest.approx(without.objective, rel=1e-6)


def test_components_are_explained_apart():
    graph = POINT_GRAPHS["disconnected"]
    best = po.solve(gradient + po.PairwiseRobustness(graph)).attributions
    for rows in ([0, 1, 2], [3, 4], [5, 6]):
        part = po.solve(
            po.GradientMatching(G[rows])
            + po.PairwiseRobustness(po.complete_graph(len(rows)))
        )
        np.testing.assert_allclose(best[rows], part.attributions, atol=1e-12)
