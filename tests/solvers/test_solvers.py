"""The contract of a solver, each on every objective; losses that cost nothing."""

import re
import warnings
from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from catalogue import LOSSES, OBJECTIVES, SHAPE, SOLVERS, SQUARED, VALUES, G, X
from oracles import normal_equations, reference_optimum, subclasses

import propopt as po
from propopt.base.errors import Refused, SolverFailure, UncertifiedWarning
from propopt.losses import Program
from propopt.losses.maps import Absolute, GroupMax, Squared
from propopt.solvers import Solver, Task
from propopt.solvers import conic as conic_module
from propopt.solvers import custom as custom_module
from propopt.solvers.reductions import ShiftReduction
from propopt.solvers.task import find_solver


REFERENCE = 2e-8  # relative accuracy of Clarabel as a reference
gradient, sparsity = LOSSES["gradient l2"], LOSSES["sparsity"]
robustness, largest = LOSSES["pairwise, gaussian"], LOSSES["difference, max"]
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


def refusal(solver: Solver, objective: po.losses.Objective) -> str | None:
    program = Program(objective.losses, sizes=SHAPE)
    left = ShiftReduction(None).reduced(program)  # what any solver is given of it
    shifts = isinstance(left, Program) and not isinstance(solver, ShiftReduction)
    return solver.refusal(left if shifts else program)


OF_EACH_KIND = (
    "gradient, pairwise, smoothness",
    "gradient, pairwise, sparsity",
    "gradient, max",
    "gradient l1, sparsity",
    "gradient l1, pairwise",
    "function, pairwise",
)
each_solver = pytest.mark.parametrize("solver", SOLVERS)


def test_every_solver_is_in_the_catalogue_and_has_a_name():
    solvers = [case.solver for case in SOLVERS.values()]
    available = {type(find_solver(x)) for x in solvers if isinstance(x, Solver)}
    assert subclasses(Solver) == available
    assert find_solver("clarabel").name == "CLARABEL"  # in any case


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
        same = pytest.approx(afresh.objective, rel=2 * wanted, abs=1e-12)
        assert other.value(start.W) == same


def scaled(scale: float) -> dict[str, po.losses.Objective]:
    """Objectives of data in other units."""
    gradient = po.GradientMatching(scale * G)
    absolute = po.GradientMatching(scale * G, norm="l1")
    function = po.losses.FunctionMatching(X, scale * VALUES)
    return {
        "squared": gradient + 0.7 * robustness,
        "sparse": gradient + 0.7 * robustness + 0.5 * scale * sparsity,
        "function": function + 0.3 * robustness,
        "function, sparse": function + 0.3 * robustness + 0.1 * scale * sparsity,
        "max": gradient + 0.5 * largest,
        "linear": absolute + 0.3 * sparsity,
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


CHOSEN = {
    "gradient, pairwise, smoothness": "spectral",
    "gradient, kernel": "spectral",
    "gradient, pairwise, sparsity": "lasso",
    "gradient, max": "splitting",
    "function, pairwise": "normal_equations",
    "gradient l1, sparsity": "conic",
}


def test_automatic_choice_is_named_on_the_result():
    for name, choice in CHOSEN.items():
        assert po.solve(OBJECTIVES[name]).solver == choice
        program = Program(OBJECTIVES[name].losses)
        assert po.solvers.Auto().select(program).name == choice


def test_program_has_the_smallest_class_that_holds_it():
    for name, kind in {
        "gradient l1, sparsity": "LP",
        "gradient, pairwise, sparsity": "QP",
        "gradient l1, pairwise": "QP",
        "gradient l1, max": "SOCP",
    }.items():
        assert conic_module.program_class(Program(OBJECTIVES[name].losses)) == kind


@pytest.mark.parametrize("backend", ["OSQP", "PIQP", "HIGHS"])
def test_backend_without_cones_refuses_them(backend):
    if backend not in cp.installed_solvers():
        pytest.skip(f"{backend} is not installed")
    with pytest.raises(Refused, match="second-order cones"):
        po.solve(OBJECTIVES["gradient, max"], backend)


def clarabel(**options):
    return po.solvers.Conic("CLARABEL", options=options)


def test_options_reach_the_backend_and_missed_gaps_are_reported():
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


@pytest.mark.parametrize("failed", ["CLARABEL", "SCS", "OSQP"])
@pytest.mark.parametrize("is_custom", [False, True])
def test_a_backend_that_failed_is_not_advised(failed, is_custom, monkeypatch):
    objective = OBJECTIVES["gradient, pairwise, sparsity"]
    if is_custom:
        objective = objective + po.losses.Custom(lambda W: cp.norm1(W))

    def fails(*_, **__):
        raise cp.SolverError("no")

    with monkeypatch.context() as patched:
        patched.setattr(cp.Problem, "solve", fails)
        patched.setattr(custom_module, "Solved", fails)
        with pytest.raises(SolverFailure) as caught:
            po.solve(objective, failed)
    advised = re.findall(r"solver='(\w+)'", str(caught.value))
    assert advised
    assert failed not in advised
    for name in advised:
        assert po.solve(objective, solver=name, tolerance=1e-3).gap < 1e-3


def test_function_matching_needs_what_determines_it():
    best = po.solve(1.0 * po.losses.FunctionMatching(X[:, :1], VALUES))
    np.testing.assert_allclose(best.attributions[:, 0], VALUES / X[:, 0], rtol=1e-6)


def test_minimum_norm_is_the_pseudoinverse():
    best = po.solve(1.0 * function, "minimum_norm")
    expected = X * (VALUES / (X**2).sum(axis=1))[:, None]
    np.testing.assert_allclose(best.attributions, expected, rtol=1e-12)
    objective = function + 0.5 * LOSSES["pairwise, disconnected"]
    terms = [(np.sqrt(c), loss.map.flat(SHAPE)) for c, loss in objective.terms]
    rows = [root * matrix.toarray() for root, matrix in terms]
    targets = np.concatenate([VALUES, np.zeros(len(rows[1]))])
    expected, *_ = np.linalg.lstsq(np.vstack(rows), targets, rcond=None)
    best = po.solve(objective, "minimum_norm")
    np.testing.assert_allclose(best.attributions.ravel(), expected, atol=1e-10)


IMAGE = po.functions.ImageShape(1, 36, 36)


@pytest.fixture
def wide(rng):
    points, target = rng.normal(size=(2, 5, IMAGE.n_features))
    robust = po.PairwiseRobustness(po.graphs.knn_graph(points, 2))
    smooth = po.Smoothness(IMAGE.pixel_graph())
    return po.GradientMatching(target) + 0.5 * robust + 0.3 * smooth


def test_wide_programs_are_exchanged_and_have_the_optimum_of_the_eigenbasis(wide):
    assert po.solve(wide + 0.1 * po.Sparsity()).solver == "lasso, transposed"
    result, exact = po.solve(wide), po.solve(wide, solver="spectral")
    assert result.solver == "spectral, transposed"
    # strongly convex with modulus 1: ‖W − W*‖² is at most the excess
    assert result.gap < 1e-6
    distance = np.linalg.norm(result.attributions - exact.attributions)
    assert distance**2 <= 1e-6 * result.objective
    weights = {"smoothness": [0.01, 1.0, 100.0]}
    curve, other = po.sweep(wide, weights), po.sweep(wide, weights, solver="spectral")
    np.testing.assert_allclose(curve.values, other.values, rtol=1e-6)
    assert curve.certified(1e-6)


SIX = 6
_rng = np.random.default_rng(3)
GIVEN = np.round(_rng.normal(size=(SIX, 1)), 3)
AT, NOISE = _rng.normal(size=(SIX, 1)), _rng.normal(size=(SIX, 4, 1))
CHANGES = np.sin(NOISE[:, :, 0])
plain, absolute = po.GradientMatching(GIVEN), po.GradientMatching(GIVEN, norm="l1")
local = po.losses.FunctionMatching(AT, CHANGES, perturbations=NOISE)
isolated = po.graphs.graph_from_matrix(np.zeros((SIX, SIX)))
half = po.graphs.group_graph([0, 0, 0, 1, 2, 3])
NOTHING: dict[str, po.losses.PropertyLoss] = {
    "no edges": po.PairwiseRobustness(isolated),
    "empty threshold": po.PairwiseRobustness(
        po.graphs.threshold_graph(np.arange(6.0)[:, None], 0.5)
    ),
    "vanished grid": po.PairwiseRobustness(
        po.graphs.GridGaussianGraph([np.arange(6.0)], 1e-3)
    ),
    "chain of one feature": po.Smoothness(po.graphs.chain_graph(1)),
    "lattice of one feature": po.Smoothness(po.graphs.LatticeGraph((1, 1))),
}
BASES: dict[str, po.losses.Objective] = {
    "gradient": 1.0 * plain,
    "gradient, sparsity": plain + 0.3 * sparsity,
    "gradient l1": 1.0 * absolute,
    "gradient l1, sparsity": absolute + 0.3 * sparsity,
    "gradient, max": plain + 0.3 * po.losses.MaxDifferenceRobustness(half),
    "gradient, sum": plain + 0.3 * po.losses.MaxDifferenceRobustness(half, "sum"),
    "function": 1.0 * local,
    "function, sparsity": local + 0.3 * sparsity,
    "function, pairwise": local + po.PairwiseRobustness(half, name="others"),
}
each_nothing = pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)


def solved(objective: po.losses.Objective, name: str):
    """The solution, or None where a solver refuses, or is not installed."""
    case = SOLVERS[name]
    if isinstance(case.solver, str) and case.solver not in cp.installed_solvers():
        return None
    with warnings.catch_warnings():
        # gaps are judged below, each solver by its own
        warnings.simplefilter("ignore", UncertifiedWarning)
        try:
            return po.solve(objective, case.solver)
        except Refused:
            return None


@each_nothing
@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_a_loss_without_edges_changes_nothing(base, nothing):
    result = po.solve(base + 2.0 * nothing, tolerance=1e-7)
    assert result.losses[nothing.name] == 0.0
    assert result.gap <= 1e-7
    optimum = po.solve(base, tolerance=1e-7).objective
    zero = 1e-6 * base.value(np.zeros((SIX, 1)))
    assert result.objective == pytest.approx(optimum, rel=2e-7, abs=zero)


@each_nothing
def test_sweeps_and_expressions_without_edges_are_flat(nothing):
    front = po.sweep(plain + 0.3 * sparsity + nothing, {nothing.name: [0.1, 1, 10]})
    values = [point.objective for point in front.explanations]
    assert values == pytest.approx(3 * [values[0]], rel=1e-9)
    W = cp.Variable((SIX, 1))
    cost = cp.sum(cp.abs(W - GIVEN)) + nothing.expression(W)
    problem = cp.Problem(cp.Minimize(cost), [nothing.expression(W) <= 1.0])
    problem.solve(solver="HIGHS")
    assert problem.value == pytest.approx(0.0, abs=1e-9)
    for phi in (Squared(), Absolute(), GroupMax(np.array([0]), 1)):
        assert phi.expression(np.zeros((0, SIX)) @ cp.Variable((SIX, 2))).value == 0.0


ONE = {
    "lattice": po.graphs.LatticeGraph((1,)),
    "grid": po.graphs.GridGaussianGraph([np.zeros(1)], 1.0),
    "chain": po.graphs.chain_graph(1),
}


@each_solver
@pytest.mark.parametrize("sparse", [0.0, 0.5])
def test_one_point_and_isolated_ones_keep_their_gradient_or_are_cut(sparse, solver):
    def cut(ours):
        return np.sign(ours) * np.maximum(np.abs(ours) - sparse / 2, 0.0)

    def checked(objective):
        result = solved(objective + sparse * sparsity, solver)
        assert result is None or result.gap <= SOLVERS[solver].gap
        return result

    one = np.array([[2.0, -0.1]])
    for graph in ONE.values():
        result = checked(po.GradientMatching(one) + po.PairwiseRobustness(graph))
        if result is not None:
            np.testing.assert_allclose(result.attributions, cut(one), atol=2e-3)
    target = np.round(np.random.default_rng(8).normal(size=(SIX, 3)), 3)
    features = po.Smoothness(po.graphs.group_graph(["a", "a", "b"]))
    robust = po.PairwiseRobustness(half)
    if (result := checked(po.GradientMatching(target) + robust + features)) is not None:
        ours = result.attributions[3:, 2]
        np.testing.assert_allclose(ours, cut(target[3:, 2]), atol=2e-3)
