"""Graphs without edges, with isolated points, with one node: losses that cost nothing.

An empty sum is zero, for every solver and every backend.
"""

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
each_solver = pytest.mark.parametrize("solver", SOLVERS)
each_nothing = pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)


def solved(objective: po.Objective, name: str):
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
    zero = 1e-6 * base.value(np.zeros((N, 1)))
    assert result.objective == pytest.approx(optimum, rel=2e-7, abs=zero)


@each_nothing
def test_sweeps_and_expressions_without_edges_are_flat(nothing):
    front = po.sweep(gradient + 0.3 * sparsity + nothing, {nothing.name: [0.1, 1, 10]})
    values = [point.objective for point in front.explanations]
    assert values == pytest.approx(3 * [values[0]], rel=1e-9)
    W = cp.Variable((N, 1))
    cost = cp.sum(cp.abs(W - G)) + nothing.expression(W)
    problem = cp.Problem(cp.Minimize(cost), [nothing.expression(W) <= 1.0])
    problem.solve(solver="HIGHS")
    assert problem.value == pytest.approx(0.0, abs=1e-9)
    for phi in (Squared(), Absolute(), GroupMax(np.array([0]), 1, "l2")):
        assert phi.expression(np.zeros((0, N)) @ cp.Variable((N, 2))).value == 0.0


ONE = {
    "lattice": po.graphs.LatticeGraph((1,)),
    "grid": po.graphs.GridGaussianGraph([np.zeros(1)], 1.0),
    "chain": po.chain_graph(1),
}


@each_solver
@pytest.mark.parametrize("sparse", [0.0, 0.5])
def test_one_point_and_isolated_ones_keep_their_gradient_or_are_cut(sparse, solver):
    def cut(own):
        return np.sign(own) * np.maximum(np.abs(own) - sparse / 2, 0.0)

    def checked(objective):
        result = solved(objective + sparse * sparsity, solver)
        assert result is None or result.gap <= SOLVERS[solver].gap
        return result

    one = np.array([[2.0, -0.1]])
    for graph in ONE.values():
        result = checked(po.GradientMatching(one) + po.PairwiseRobustness(graph))
        if result is not None:
            np.testing.assert_allclose(result.attributions, cut(one), atol=2e-3)
    target = np.round(np.random.default_rng(8).normal(size=(N, 3)), 3)
    features = po.Smoothness(po.group_graph(["a", "a", "b"]))
    robust = po.PairwiseRobustness(half)
    if (result := checked(po.GradientMatching(target) + robust + features)) is not None:
        own = result.attributions[3:, 2]
        np.testing.assert_allclose(own, cut(target[3:, 2]), atol=2e-3)
