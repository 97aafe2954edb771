"""Graphs without edges, with isolated points, with one node: losses that cost nothing.

An empty sum is zero, for every solver and every backend.
"""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
from catalogue import SOLVERS

import propopt as po
from propopt.base.errors import Refused, UncertifiedWarning
from propopt.losses.maps import Absolute, GroupMax, Squared


N = 6
_rng = np.random.default_rng(3)
G = np.round(_rng.normal(size=(N, 1)), 3)
X, NOISE = _rng.normal(size=(N, 1)), _rng.normal(size=(N, 4, 1))
CHANGES = np.sin(NOISE[:, :, 0])

gradient, absolute = po.GradientMatching(G), po.GradientMatching(G, norm="l1")
local = po.FunctionMatching(X, CHANGES, perturbations=NOISE)
sparsity = po.Sparsity()
isolated = po.graph_from_matrix(np.zeros((N, N)))
half = po.group_graph([0, 0, 0, 1, 2, 3])

NOTHING: dict[str, po.PropertyLoss] = {
    "no edges": po.PairwiseRobustness(isolated),
    "empty threshold": po.PairwiseRobustness(
        po.threshold_graph(np.arange(6.0)[:, None], 0.5)
    ),
    "vanished grid": po.PairwiseRobustness(
        po.graphs.GridGaussianGraph([np.arange(6.0)], 1e-3)
    ),
    "chain of one feature": po.Smoothness(po.chain_graph(1)),
    "lattice of one feature": po.Smoothness(po.graphs.LatticeGraph((1, 1))),
}
BASES: dict[str, po.Objective] = {
    "gradient": 1.0 * gradient,
    "gradient, sparsity": gradient + 0.3 * sparsity,
    "gradient l1": 1.0 * absolute,
    "gradient l1, sparsity": absolute + 0.3 * sparsity,
    "gradient, max": gradient + 0.3 * po.MaxDifferenceRobustness(half),
    "gradient, sum": gradient + 0.3 * po.MaxDifferenceRobustness(half, "sum"),
    "gradient, sum l1": gradient + 0.3 * po.MaxDifferenceRobustness(half, "sum", "l1"),
    "function": 1.0 * local,
    "function, sparsity": local + 0.3 * sparsity,
    "function, pairwise": local + po.PairwiseRobustness(half, name="others"),
}
each_base = pytest.mark.parametrize("base", BASES.values(), ids=BASES)
each_nothing = pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
each_solver = pytest.mark.parametrize("solver", SOLVERS)


def solved(objective: po.Objective, name: str, **others: object) -> po.Explanation:
    """The solution; a test is skipped where a solver refuses, or is not installed."""
    case = SOLVERS[name]
    if isinstance(case.solver, str) and case.solver not in cp.installed_solvers():
        pytest.skip(f"{case.solver} is not installed")
    with warnings.catch_warnings():
        # gaps are judged below, each solver by its own
        warnings.simplefilter("ignore", UncertifiedWarning)
        try:
            return po.solve(objective, case.solver, **others)
        except Refused as refused:
            pytest.skip(str(refused))


def zero_of(base: po.Objective) -> float:
    """What counts as zero where an optimum is."""
    return 1e-6 * base.value(np.zeros((N, 1)))


@each_nothing
@each_base
def test_a_loss_without_edges_changes_nothing(base, nothing):
    result = po.solve(base + 2.0 * nothing, tolerance=1e-7)
    assert result.losses[nothing.name] == 0.0
    assert result.gap <= 1e-7
    optimum = po.solve(base, tolerance=1e-7).objective
    assert result.objective == pytest.approx(optimum, rel=2e-7, abs=zero_of(base))


@each_solver
@each_base
def test_every_solver_takes_a_loss_without_edges(base, solver):
    every = NOTHING["no edges"] + 0.5 * NOTHING["chain of one feature"]
    result = solved(base + every, solver)
    best = po.solve(base, tolerance=1e-7)
    within = 1 + 10 * SOLVERS[solver].gap
    assert result.objective <= best.objective * within + zero_of(base)


@each_solver
@each_nothing
def test_every_solver_takes_a_bound_without_edges(nothing, solver):
    bounds = [nothing <= 1.0, sparsity <= 0.5 * np.abs(G).sum()]
    result = solved(1.0 * gradient, solver, subject_to=bounds)
    best = po.solve(1.0 * gradient, "conic", subject_to=bounds[1:], tolerance=1e-7)
    assert result.objective == pytest.approx(best.objective, rel=1e-4)
    assert result.multipliers[nothing.name] == pytest.approx(0.0, abs=1e-6)


@each_nothing
def test_a_sweep_over_a_loss_without_edges_is_flat(nothing):
    front = po.sweep(gradient + 0.3 * sparsity + nothing, {nothing.name: [0.1, 1, 10]})
    values = [point.objective for point in front.explanations]
    assert values == pytest.approx(3 * [values[0]], rel=1e-9)


@pytest.mark.parametrize(
    "phi", [Squared(), Absolute(), GroupMax(np.array([0]), 1, "l2")], ids=repr
)
def test_the_expression_of_nothing_is_zero(phi):
    empty = np.zeros((0, N)) @ cp.Variable((N, 2))
    assert phi.expression(empty).value == 0.0


@each_nothing
def test_expressions_without_edges_are_part_of_any_program(nothing):
    W = cp.Variable((N, 1))
    cost = cp.sum(cp.abs(W - G)) + nothing.expression(W)
    problem = cp.Problem(cp.Minimize(cost), [nothing.expression(W) <= 1.0])
    problem.solve(solver="HIGHS")
    assert problem.value == pytest.approx(0.0, abs=1e-9)


ONE = {
    "lattice": po.graphs.LatticeGraph((1,)),
    "grid": po.graphs.GridGaussianGraph([np.zeros(1)], 1.0),
    "chain": po.chain_graph(1),
}


@each_solver
@pytest.mark.parametrize("graph", ONE.values(), ids=ONE)
@pytest.mark.parametrize("sparse", [0.0, 0.5])
def test_one_point_keeps_its_gradient_or_is_cut(graph, sparse, solver):
    target = np.array([[2.0, -0.1]])
    objective = po.GradientMatching(target) + po.PairwiseRobustness(graph)
    if sparse:
        objective += sparse * sparsity
    result = solved(objective, solver)
    best = np.sign(target) * np.maximum(np.abs(target) - sparse / 2, 0.0)
    np.testing.assert_allclose(result.attributions, best, atol=2e-3)
    assert result.gap <= SOLVERS[solver].gap


@each_solver
@pytest.mark.parametrize("sparse", [0.0, 0.1])
def test_isolated_points_and_features_keep_their_gradients(sparse, solver):
    target = np.round(np.random.default_rng(8).normal(size=(N, 3)), 3)
    features = po.group_graph(["a", "a", "b"])
    objective = po.GradientMatching(target) + po.PairwiseRobustness(half)
    objective += po.Smoothness(features)
    if sparse:
        objective += sparse * sparsity
    result = solved(objective, solver)
    assert result.gap <= SOLVERS[solver].gap
    own = target[3:, 2]
    expected = np.sign(own) * np.maximum(np.abs(own) - sparse / 2, 0.0)
    np.testing.assert_allclose(result.attributions[3:, 2], expected, atol=2e-3)
