"""Exact curves: losses for every weight without attributions, and limits on a loss."""

import sys

import numpy as np
import pytest
import scipy.sparse.linalg as spla

import propopt as po
from propopt.base.errors import InvalidInput, MissingExtra, SolverFailure
from propopt.losses import Program
from propopt.losses.operators import LatticeLaplacian
from propopt.solvers import Krylov, Task
from propopt.solvers.curves import Spectral


WEIGHTS = {
    "pairwise_robustness": np.geomspace(1e-3, 1e3, 7),
    "smoothness": [0, 0.1, 10],
}


@pytest.fixture
def X(rng):
    return rng.normal(size=(40, 3))


@pytest.fixture
def G(rng):
    return rng.normal(size=(40, 5))


def graphs(X):
    yield po.gaussian_graph(X)
    yield po.knn_graph(X, 4)
    yield po.graphs.LatticeGraph((5, 8))
    yield po.graphs.GridGaussianGraph([np.linspace(0, 1, 5), np.linspace(0, 2, 8)], 0.5)
    yield po.chain_graph(40)


def objective(G, graph):
    return (
        po.GradientMatching(G)
        + po.PairwiseRobustness(graph)
        + po.Smoothness(po.chain_graph(5))
    )


@pytest.mark.parametrize("solver", ["spectral", "krylov"])
def test_losses_on_the_curve_are_those_of_the_attributions(solver, X, G):
    for graph in graphs(X):
        curve = po.sweep(objective(G, graph), WEIGHTS, solver=solver, tolerance=1e-9)
        for point in curve.optimized[::5]:
            assert point.certificate.kind == "curve"
            losses, value = point.losses, point.objective
            assert point.attributions.shape == G.shape
            for name, loss in point.losses.items():
                assert losses[name] == pytest.approx(loss, rel=1e-4, abs=1e-9)
            assert value == pytest.approx(point.objective, rel=1e-8)


def test_spectral_and_krylov_curves_agree(X, G):
    for graph in graphs(X):
        program = Program(objective(G, graph).losses)
        exact, lanczos = Spectral().prepare(program), Krylov().prepare(program)
        for b in (0.0, 1e-3, 1.0, 1e3):
            for c in (0.0, 0.1, 10.0):
                weights = np.array([1.0, b, c])
                first = exact.measure(weights, 1e-9)
                second = lanczos.measure(weights, 1e-9)
                np.testing.assert_allclose(
                    second.losses, first.losses, rtol=1e-6, atol=1e-12
                )


def test_the_excess_of_a_curve_bounds_the_distance_to_the_optimum(X, G):
    for graph in graphs(X):
        program = Program(objective(G, graph).losses)
        exact, lanczos = Spectral().prepare(program), Krylov().prepare(program)
        weights = np.array([1.0, 30.0, 0.2])
        best = weights @ exact.measure(weights, 1e-9).losses
        for tolerance in (1e-1, 1e-2, 1e-4, 1e-8):
            result = lanczos.measure(weights, tolerance)
            value = weights @ result.losses
            assert value - result.excess <= best * (1 + 1e-12)
            assert best <= value * (1 + 1e-12)
            assert result.excess <= tolerance * value


def test_attributions_are_computed_only_when_they_are_read(X, G, monkeypatch):
    task_solve = Task.solve
    asked = []
    monkeypatch.setattr(Task, "solve", lambda *a: asked.append(a) or task_solve(*a))
    curve = po.sweep(objective(G, po.knn_graph(X, 4)), WEIGHTS)
    curve.to_frame()
    curve.front()
    assert not asked
    first = curve.optimized[3].attributions
    assert curve.optimized[3].attributions is first
    assert len(asked) == 1


def test_large_lattices_agree_with_an_independent_solver(rng):
    graph = po.graphs.LatticeGraph((30, 30, 30))
    G = rng.normal(size=(27_000, 2))
    curve = po.sweep(
        po.GradientMatching(G) + po.PairwiseRobustness(graph),
        {"pairwise_robustness": [0.1, 10.0, 300.0]},
        solver="krylov",
    )
    matrix = 2 * graph.laplacian
    for point in curve.optimized:
        weight = point.weights["pairwise_robustness"]
        shifted = weight * matrix
        shifted.setdiag(shifted.diagonal() + 1.0)
        W = np.column_stack([spla.cg(shifted, g, rtol=1e-12)[0] for g in G.T])
        robustness = float(np.vdot(W, matrix @ W))
        assert point.losses["pairwise_robustness"] == pytest.approx(
            robustness, rel=1e-6
        )
        matching = float(((W - G) ** 2).sum())
        assert point.losses["gradient_matching"] == pytest.approx(matching, rel=1e-6)


# ---- limits


def test_krylov_meets_limits_too(rng):
    graph = po.graphs.LatticeGraph((20, 20, 20))
    G = rng.normal(size=(8000, 1))
    matching, robustness = po.GradientMatching(G), po.PairwiseRobustness(graph)
    limit = 0.1 * robustness.value(G)
    best = po.solve(matching, subject_to=[robustness <= limit])
    assert best.certificate.holds(1e-6)
    assert best.losses["pairwise_robustness"] == pytest.approx(limit, rel=1e-6)


def test_even_limits_give_an_even_front(X, G):
    matching = po.GradientMatching(G)
    robustness = po.PairwiseRobustness(po.knn_graph(X, 4))
    limits = np.linspace(0.1, 0.9, 9) * robustness.value(G)
    baseline = po.Explanation(attributions=0.5 * G, method="half")
    curve = po.sweep(matching, {}, [baseline], limits={robustness: limits})
    frame = curve.to_frame()
    result = frame["loss.pairwise_robustness"][:-1]
    np.testing.assert_allclose(result, limits, rtol=1e-6)
    assert frame["on_front"][:-1].all()
    multipliers = frame["weight.pairwise_robustness"][:-1]
    assert (np.diff(multipliers) < 0).all()
    assert curve.distances()["excess"][0] > 0
    for point, weight in zip(curve.optimized, multipliers, strict=True):
        same = po.solve(matching + weight * robustness)
        assert same.losses["pairwise_robustness"] == pytest.approx(
            point.losses["pairwise_robustness"], rel=1e-5
        )


def test_limits_work_for_losses_without_a_curve(G):
    sparsity = po.Sparsity()
    limits = np.array([0.2, 0.5]) * sparsity.value(G)
    curve = po.sweep(po.GradientMatching(G), limits={sparsity: limits})
    result = curve.to_frame()["loss.sparsity"]
    np.testing.assert_allclose(result, limits, rtol=1e-6)


# ---- the choice


def test_auto_takes_an_eigenbasis_for_few_points_and_krylov_for_many():
    few = Program((po.GradientMatching(np.ones((20, 2))), robustness_of(20)))
    crowd = po.knn_graph(np.random.default_rng(0).normal(size=(20_000, 3)), 8)
    many = Program(
        (po.GradientMatching(np.ones((20_000, 2))), po.PairwiseRobustness(crowd))
    )
    assert po.solvers.Auto().select(few).name == "spectral"
    assert po.solvers.Auto().select(many).name == "krylov"


def robustness_of(n):
    return po.PairwiseRobustness(po.chain_graph(n))


# ---- preconditioners


def test_auto_takes_an_eigenbasis_for_the_precision_of_a_kernel(rng):
    X, G = rng.uniform(-5, 5, size=(2, 700, 2))
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    kernel = po.KernelRobustness(np.exp(-squares / 4.5) + 1e-8 * np.eye(len(X)))
    program = Program((po.GradientMatching(G), kernel))
    assert po.solvers.Auto().select(program).name == "spectral"


def test_lanczos_that_does_not_converge_says_so(rng, monkeypatch):
    monkeypatch.setattr("propopt.solvers.curves.MOST_STEPS", 20)
    G = rng.normal(size=(2000, 1))
    objective = po.GradientMatching(G) + po.PairwiseRobustness(po.chain_graph(2000))
    with pytest.raises(SolverFailure, match=r"Lanczos did not converge in \d+ steps"):
        po.sweep(objective, {"pairwise_robustness": [1e6]}, solver="krylov")


@pytest.mark.parametrize("weight", [1.0, 1e4])
def test_multigrid_gives_the_same_attributions(weight, rng):
    pytest.importorskip("pyamg")
    graph = po.pixel_graph(20, 30)
    G = rng.normal(size=(600, 2))
    objective = po.GradientMatching(G) + weight * po.PairwiseRobustness(graph)
    plain = po.solve(objective, po.solvers.Krylov(), tolerance=1e-12)
    multigrid = po.solve(objective, po.solvers.Krylov("multigrid"), tolerance=1e-12)
    np.testing.assert_allclose(
        multigrid.attributions, plain.attributions, rtol=1e-4, atol=1e-6
    )


def test_multigrid_without_its_package_says_what_to_install(monkeypatch, rng):
    monkeypatch.setitem(sys.modules, "pyamg", None)
    graph = po.pixel_graph(5, 5)
    objective = po.GradientMatching(rng.normal(size=(25, 1)))
    with pytest.raises(MissingExtra, match="pip install"):
        po.solve(
            objective + po.PairwiseRobustness(graph), po.solvers.Krylov("multigrid")
        )


def test_multigrid_refuses_graphs_that_are_not_stored(rng):
    pytest.importorskip("pyamg")
    objective = po.GradientMatching(rng.normal(size=(25, 1)))
    with pytest.raises(InvalidInput, match="stored sparse graph"):
        po.solve(
            objective + po.PairwiseRobustness(po.graphs.LatticeGraph((5, 5))),
            po.solvers.Krylov("multigrid"),
        )


# ---- grids


def test_grid_gaussian_graph_of_points_is_that_of_their_axes():
    X = po.graphs.grid(-1, 1, per_dimension=4, dimensions=2)
    grid, stored = po.grid_gaussian_graph(X), po.gaussian_graph(X)
    assert grid.parameters == stored.parameters
    np.testing.assert_allclose(
        grid.similarities.toarray(), stored.similarities.toarray(), atol=1e-14
    )


@pytest.mark.parametrize("spoil", ["order", "subset", "moved"])
def test_points_that_are_no_grid_are_refused(spoil):
    X = po.graphs.grid(-1, 1, per_dimension=4, dimensions=2)
    if spoil == "order":
        X = X[::-1]
    elif spoil == "subset":
        X = X[:-1]
    else:
        X[3, 0] += 0.1
    with pytest.raises(InvalidInput, match="product grid"):
        po.grid_gaussian_graph(X, 0.5)


def test_operators_take_whole_numbers():
    product = LatticeLaplacian((2,)) @ np.array([1, 0])
    np.testing.assert_array_equal(product, [2.0, -2.0])


def test_constant_gradients_are_their_own_explanation(rng):
    graph = po.knn_graph(rng.normal(size=(600, 2)), 6)
    objective = po.GradientMatching(np.ones((600, 2))) + po.PairwiseRobustness(graph)
    result = po.sweep(objective, {"pairwise_robustness": [0.1, 10.0]}, solver="krylov")
    # P g is rounding: so is everything that Lanczos sees
    np.testing.assert_allclose(result.values, 0.0, atol=1e-12)
    assert result.certified(1e-6)


def test_gradients_that_are_constant_on_components_are_too():
    S = np.kron(np.eye(2), np.ones((300, 300))) - np.eye(600)
    G = np.repeat([[1.0], [-3.0]], 300, axis=0)
    objective = po.GradientMatching(G) + po.PairwiseRobustness(po.graph_from_matrix(S))
    result = po.sweep(objective, {"pairwise_robustness": [1.0]}, solver="krylov")
    np.testing.assert_allclose(result.optimized[0].attributions, G, rtol=1e-9)
