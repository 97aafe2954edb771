"""Exact curves: losses for every weight without attributions, to the last digit."""

import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from heavy_edges import heavy
from oracles import exact_optimum

import propopt as po
from propopt.base.errors import (
    SolverFailure,
    UncertifiedWarning,
)
from propopt.losses import Program
from propopt.losses.operators import LatticeLaplacian
from propopt.solvers import Krylov
from propopt.solvers.curves import Spectral


SOLVERS = [Krylov(), Spectral()]
each_solver = pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)


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


def test_curves_agree_and_their_excess_bounds_the_distance_to_the_optimum(X, G):
    for graph in graphs(X):
        program = Program(objective(G, graph).losses)
        exact, lanczos = Spectral().prepare(program), Krylov().prepare(program)
        for b in (0.0, 1e-3, 1.0, 1e3):
            for c in (0.0, 0.1, 10.0):
                weights = np.array([1.0, b, c])
                one, two = (x.measure(weights, 1e-9) for x in (exact, lanczos))
                np.testing.assert_allclose(
                    two.losses, one.losses, rtol=1e-6, atol=1e-12
                )
        weights = np.array([1.0, 30.0, 0.2])
        best = weights @ exact.measure(weights, 1e-9).losses
        for tolerance in (1e-1, 1e-2, 1e-4, 1e-8):
            result = lanczos.measure(weights, tolerance)
            value = weights @ result.losses
            assert value - result.excess <= best * (1 + 1e-12)
            assert best <= value * (1 + 1e-12)
            assert result.excess <= tolerance * value


# ---- limits


def test_krylov_meets_limits_too(rng):
    graph = po.graphs.LatticeGraph((20, 20, 20))
    G = rng.normal(size=(8000, 1))
    matching, robustness = po.GradientMatching(G), po.PairwiseRobustness(graph)
    limit = 0.1 * robustness.value(G)
    best = po.solve(matching, subject_to=[robustness <= limit])
    assert best.certificate.holds(1e-6)
    assert best.losses["pairwise_robustness"] == pytest.approx(limit, rel=1e-6)


# ---- the choice, and what does not converge


def test_auto_takes_an_eigenbasis_for_few_points_and_krylov_for_many(rng):
    points = rng.uniform(-5, 5, size=(700, 2))
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    chosen = {
        "krylov": po.PairwiseRobustness(po.knn_graph(rng.normal(size=(20_000, 3)), 8)),
        "spectral": po.PairwiseRobustness(po.chain_graph(20)),
        "factored": po.PairwiseRobustness(po.chain_graph(20_000)),
        "factored ": po.PairwiseRobustness(
            po.knn_graph(rng.normal(size=(20_000, 1)), 3)
        ),
        "spectral ": po.KernelRobustness(np.exp(-squares / 4.5) + 1e-8 * np.eye(700)),
    }
    for name, loss in chosen.items():
        matching = po.GradientMatching(np.ones((loss.n_points, 2)))
        program = Program((matching, loss))
        assert po.solvers.Auto().select(program).name == name.strip()


def test_lanczos_that_does_not_converge_says_so(rng, monkeypatch):
    monkeypatch.setattr("propopt.solvers.curves.MOST_STEPS", 20)
    G = rng.normal(size=(2000, 1))
    objective = po.GradientMatching(G) + po.PairwiseRobustness(po.chain_graph(2000))
    with pytest.raises(SolverFailure, match=r"Lanczos did not converge in \d+ steps"):
        po.sweep(objective, {"pairwise_robustness": [1e6]}, solver="krylov")


# ---- grids


def test_products_with_whole_numbers_are_taken():
    product = LatticeLaplacian((2,)) @ np.array([1, 0])
    np.testing.assert_array_equal(product, [2.0, -2.0])


def test_gradients_that_are_constant_on_components_are_their_own_explanation(rng):
    apart = po.graph_from_matrix(np.kron(np.eye(2), np.ones((300, 300))) - np.eye(600))
    whole = po.knn_graph(rng.normal(size=(600, 2)), 6)
    for graph, G in (
        (whole, np.ones((600, 2))),
        (apart, np.repeat([[1.0], [-3.0]], 300, axis=0)),
    ):
        objective = po.GradientMatching(G) + po.PairwiseRobustness(graph)
        weights = {"pairwise_robustness": [0.1, 10.0]}
        result = po.sweep(objective, weights, solver="krylov")
        # P g is rounding: so is everything that Lanczos sees
        np.testing.assert_allclose(result.values, 0.0, atol=1e-12)
        assert result.certified(1e-6)
        np.testing.assert_allclose(result.optimized[0].attributions, G, rtol=1e-9)


# ---- digits: offsets and scales


def curve_of(objective, solver):
    return solver.prepare(Program(objective.losses))


def optimum(objective, solver, weights, tolerance=1e-12):
    """The objective on the curve, and its bar."""
    result = curve_of(objective, solver).measure(np.array(weights), tolerance)
    return float(weights @ result.losses), result.excess


@pytest.mark.parametrize("offset", [1e4, 1e5, 1e6])
@pytest.mark.parametrize(("solver", "n_points"), [(Krylov(), 3000), (Spectral(), 300)])
def test_an_offset_costs_no_digits(solver, n_points, offset, rng):
    graph = po.knn_graph(rng.normal(size=(n_points, 3)), 6)
    G = rng.normal(size=(n_points, 3)) + offset
    smooth = po.Smoothness(po.chain_graph(3))

    def objective(G):
        return po.GradientMatching(G) + po.PairwiseRobustness(graph) + smooth

    for weight in (1e-2, 1.0, 1e3):
        weights = np.array([1.0, weight, 0.3])
        result, _ = optimum(objective(G), solver, weights)
        # G − offset is exact, and constants cost nothing
        without, _ = optimum(objective(G - offset), solver, weights)
        assert result == pytest.approx(without, rel=1e-11, abs=0)


@each_solver
def test_attributions_keep_the_offset_of_each_component(solver, rng):
    S = np.kron(np.eye(2), np.ones((20, 20)) - np.eye(20))
    R = rng.normal(size=(40, 2))
    offset = np.repeat([[1e6, -3e6], [2e5, 0.0]], 20, axis=0)
    robust = po.PairwiseRobustness(po.graph_from_matrix(S))
    G = R + offset
    weights = np.array([1.0, 0.7])
    plain = curve_of(po.GradientMatching(G - offset) + robust, solver)
    moved = curve_of(po.GradientMatching(G) + robust, solver)
    expected = plain.solve(weights, 1e-13).W + offset
    # to the last digit of numbers of that size
    np.testing.assert_allclose(moved.solve(weights, 1e-13).W, expected, rtol=4e-16)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
@pytest.mark.parametrize("weight", [1e-5, 1.0, 1e5, 1e8])
def test_components_of_different_scale_each_keep_their_digits(solver, weight, rng):
    S = rng.uniform(0.5, 1.0, size=(6, 6))
    S = np.triu(S, 1) + np.triu(S, 1).T
    G = rng.normal(size=(18, 1))
    scales = [1e-7, 1.0, 1e7]
    blocks = la.block_diag(*(scale * S for scale in scales))
    objective = po.GradientMatching(G) + po.PairwiseRobustness(
        po.graph_from_matrix(blocks)
    )
    curve = curve_of(objective, solver)
    result = curve.measure(np.array([1.0, weight]), 1e-12)
    parts = zip(np.split(G, 3), scales, strict=True)
    exact = float(sum(exact_optimum(g, weight * scale * S) for g, scale in parts))
    assert result.losses @ [1.0, weight] == pytest.approx(exact, rel=1e-11, abs=0)
    assert result.excess <= 1e-9 * exact
    W = curve.solve(np.array([1.0, weight]), 1e-13).W
    assert objective.losses[0].value(W) == pytest.approx(result.losses[0], rel=1e-6)


@each_solver
@pytest.mark.parametrize("block", range(5))
def test_the_bar_of_a_curve_holds_the_optimum_whatever_the_graph(solver, block):
    for seed in range(5 * block, 5 * block + 5):
        objective, weights, exact = random_problem(np.random.default_rng(seed))
        value, excess = optimum(objective, solver, weights, tolerance=1e-9)
        assert abs(value - exact) <= excess
        assert excess >= 1e-14 * exact  # no curve knows more digits than it has
        if solver.name == "spectral":  # over sixteen decades
            value, excess = optimum(objective, solver, weights)
            assert value == pytest.approx(exact, rel=1e-9, abs=0)
            assert excess <= 1e-8 * exact


def random_problem(rng):
    """Similarities over up to 16 decades, offsets and scales, and the exact optimum."""
    n_points, n_features = int(rng.integers(2, 9)), int(rng.integers(1, 3))
    decades = rng.choice([0, 6, 10, 16]) * rng.uniform(-0.5, 0.5, (n_points, n_points))
    S = np.where(rng.random(decades.shape) < rng.choice([0.3, 1.0]), 10.0**decades, 0.0)
    S = np.triu(S, 1) + np.triu(S, 1).T
    T = np.triu(rng.uniform(0.1, 10.0, (n_features, n_features)), 1)
    T += T.T
    G = rng.normal(size=(n_points, n_features)) * 10.0 ** rng.integers(-6, 7)
    G += rng.choice([0.0, 1e3, 1e6])
    b, c = 10.0 ** rng.uniform(-8, 8), 10.0 ** rng.uniform(-4, 4)
    objective = (
        po.GradientMatching(G)
        + po.PairwiseRobustness(po.graph_from_matrix(S))
        + po.Smoothness(po.graph_from_matrix(T))
    )
    return objective, np.array([1.0, b, c]), float(exact_optimum(G, b * S, c * T))


# ---- digits: one heavy edge


def with_equal_ends(S, G, weight):
    """The best explanation with W[0] = W[1], and its objective."""
    n_points = len(G)
    S = S.tolil()
    S[0, 1] = S[1, 0] = 0.0
    laplacian = 2.0 * po.graph_from_matrix(S.tocsr()).laplacian
    indices = np.maximum(np.arange(n_points) - 1, 0)
    merged = sp.csr_array((np.ones(n_points), (np.arange(n_points), indices)))
    hessian = merged.T @ (sp.eye_array(n_points) + weight * laplacian) @ merged
    W = merged @ spla.spsolve(sp.csc_array(hessian), merged.T @ G)
    return float(((W - G) ** 2).sum() + weight * np.vdot(W, laplacian @ W))


HEAVY = [
    (solver, n_points, edge)
    for solver, n_points in ((Krylov(), 1000), (Spectral(), 200))
    for edge in (1e6, 1e10, 1e13, 1e17)
]


@pytest.mark.parametrize(("solver", "n_points", "edge"), HEAVY)
@pytest.mark.filterwarnings("ignore::propopt.base.errors.UncertifiedWarning")
def test_no_curve_claims_more_than_a_known_explanation(solver, n_points, edge, rng):
    S, G = heavy(rng, edge, n_points)
    objective = po.GradientMatching(G) + po.PairwiseRobustness(po.graph_from_matrix(S))
    for weight in (1e-2, 1.0, 1e2):
        weights = np.array([1.0, weight])
        value, excess = optimum(objective, solver, weights, tolerance=1e-6)
        known = with_equal_ends(S, G, weight)
        assert value - excess <= known * (1 + 1e-9)
        # the heavy edge forces its ends together: nothing much better is possible
        assert value + excess >= known * (1 - 1e-2 / edge - 1e-9)
        if solver.name == "spectral" and edge > 1e6:  # it sees past the edge
            value, excess = optimum(objective, solver, weights)
            assert value == pytest.approx(known, rel=1e-12 + 1e-2 / edge)
            assert excess <= 1e-11 * known


def test_what_a_heavy_edge_hides_is_announced(rng):
    S, G = heavy(rng, 1e17, 1000)
    objective = po.GradientMatching(G) + po.PairwiseRobustness(po.graph_from_matrix(S))
    with pytest.warns(UncertifiedWarning, match="certified gap"):
        result = po.sweep(objective, {"pairwise_robustness": [1.0]}, solver="krylov")
    known = with_equal_ends(S, G, 1.0)
    (point,) = result.optimized
    assert point.gap > 1e-6
    assert point.certificate.lower_bound <= known * (1 + 1e-9)
    assert point.objective >= known * (1 - 1e-9)
