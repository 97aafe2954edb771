"""Factors of the graph: long chains, large weights, and where Lanczos gives up."""

import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from oracles import exact_optimum

import propopt as po
from propopt.base.errors import SolverFailure
from propopt.losses import Program
from propopt.solvers import factored
from propopt.solvers.curves import ShiftedSystem, choose_curve_solver
from propopt.solvers.factored import Elimination, Factored


RNG = np.random.default_rng(0)
WEIGHTS = [1e-8, 1e-2, 1.0, 1e4, 1e6, 1e8]


def walk(n_points, n_features=1):
    steps = np.cumsum(RNG.normal(size=(n_points, n_features)), axis=0)
    return 0.1 * steps + RNG.normal(size=(n_points, n_features))


def tree(n_nodes):
    parents = (RNG.random(n_nodes - 1) * np.arange(1, n_nodes)).astype(int)
    entries = (np.ones(n_nodes - 1), (np.arange(1, n_nodes), parents))
    edges = sp.coo_array(entries, shape=(n_nodes, n_nodes))
    return po.graphs.graph_from_matrix(edges + edges.T)


GRAPHS = {
    "chain": po.graphs.chain_graph(12),
    "tree": tree(12),
    "neighbours on a line": po.graphs.knn_graph(RNG.normal(size=(12, 1)), 4),
    "neighbours in a plane": po.graphs.knn_graph(RNG.normal(size=(12, 2)), 4),
    "parts": po.graphs.graph_from_matrix(
        np.kron(
            np.diag([1e-7, 1.0, 1e7]), po.graphs.chain_graph(4).similarities.toarray()
        )
    ),
    "star": po.graphs.graph_from_matrix(
        np.add.outer(np.eye(12)[0], np.eye(12)[0]) % 2.0
    ),
}


@pytest.mark.parametrize("smooth", [False, True], ids=["", "smooth"])
@pytest.mark.parametrize("name", GRAPHS)
def test_losses_are_those_of_a_dense_solve(name, smooth):
    graph, G = GRAPHS[name], walk(12, 2)
    losses = [po.GradientMatching(G), po.PairwiseRobustness(graph)]
    losses += [po.Smoothness(po.graphs.chain_graph(2))] * smooth
    curve = Factored().prepare(Program(tuple(losses)))
    S, T = (g.similarities.toarray() for g in (graph, po.graphs.chain_graph(2)))
    for weight in WEIGHTS:
        weights = np.array([0.5, weight, 3.0][: len(losses)])
        measured = curve.measure(weights, 1e-9)
        value = 0.5 * float(exact_optimum(G, 2.0 * weight * S, 6.0 * smooth * T))
        assert weights @ measured.losses == pytest.approx(value, rel=1e-9)
        assert measured.excess <= 1e-9 * value
        ours = [loss.value(curve.solve(weights, 1e-9).W) for loss in losses]
        np.testing.assert_allclose(measured.losses, ours, rtol=1e-6, atol=1e-12)
        assert weights @ ours == pytest.approx(value, rel=1e-9)


def optimized(G, graph, weights):
    objective = po.GradientMatching(G) + po.PairwiseRobustness(graph)
    return po.sweep(objective, {"pairwise_robustness": weights}).optimized


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_long_chains_at_large_weights_are_certified(offset):
    G, weights = walk(100_000), [1.0, 1e6, 1e8]
    result = optimized(G + offset, po.graphs.chain_graph(100_000), weights)
    for point, weight in zip(result, weights, strict=True):
        assert point.solver == "factored"
        assert point.gap <= 1e-12
        assert point.attributions.shape == G.shape
        assert point.gap <= 1e-9  # what they prove
        assert point.objective == pytest.approx(chain_optimum(G, weight), rel=1e-9)


def chain_optimum(G, weight):
    """By the Thomas algorithm, from ⟨G, G − W⟩ of the means taken out."""
    g = G[:, 0] - G[:, 0].mean()
    band = np.zeros((2, len(g)))
    band[0, 1:] = -2.0 * weight
    band[1] = 1.0 + 4.0 * weight
    band[1, [0, -1]] = 1.0 + 2.0 * weight
    w = la.solveh_banded(band, g)
    return float(((w - g) ** 2).sum() + 2.0 * weight * (np.diff(w) ** 2).sum())


def test_a_wrong_factor_is_detected_by_the_excess(monkeypatch):
    robust = po.PairwiseRobustness(po.graphs.chain_graph(500))
    objective = po.GradientMatching(walk(500)) + robust
    best = po.solve(objective.with_weights({"pairwise_robustness": 10.0}))
    whole = Elimination.factor
    monkeypatch.setattr("propopt.solvers.factored.REFINEMENTS", 0)
    monkeypatch.setattr(
        Elimination, "factor", lambda ours, s, b: whole(ours, s, 1.001 * b)
    )
    program = Program(objective.losses)
    measured = Factored().prepare(program).measure(np.array([1.0, 10.0]), 1e-12)
    value = measured.losses @ [1.0, 10.0]
    assert value > best.objective
    assert value - measured.excess <= best.objective * (1.0 + 1e-12)
    # three refinements, each of which leaves a thousandth
    monkeypatch.setattr("propopt.solvers.factored.REFINEMENTS", 3)
    refined = Factored().prepare(program).measure(np.array([1.0, 10.0]), 1e-12)
    assert refined.excess <= 1e-6 * measured.excess
    assert refined.losses @ [1.0, 10.0] == pytest.approx(best.objective, rel=1e-9)


def test_the_order_of_points_does_not_matter():
    n = 2_000
    order, G = RNG.permutation(n), walk(n)
    chain = po.graphs.chain_graph(n).similarities.tocsr()[order][:, order]
    shuffled = po.graphs.graph_from_matrix(chain)
    assert Elimination.of(shuffled.laplacian).bandwidth == 1
    (one,) = optimized(G[order], shuffled, [1e6])
    (other,) = optimized(G, po.graphs.chain_graph(n), [1e6])
    expected = other.attributions[order]
    np.testing.assert_allclose(one.attributions, expected, rtol=1e-9)


@pytest.mark.parametrize("edge", [1e10, 1e12])
def test_one_heavy_edge_is_certified(edge):
    S = po.graphs.knn_graph(RNG.normal(size=(1000, 3)), 6).similarities.tolil()
    S[0, 1] = S[1, 0] = edge
    G, graph = RNG.normal(size=(1000, 2)), po.graphs.graph_from_matrix(S.tocsr())
    for point in optimized(G, graph, [1e-2, 1.0, 1e4]):
        assert point.gap <= 1e-6
        assert point.attributions.shape == G.shape
        assert point.gap <= 1e-6  # what they prove


def test_a_matrix_that_is_singular_to_rounding_has_no_factor():
    similarities = np.diag(np.tile([1e-18, 1.0], 30)[1:], 1)
    graph = po.graphs.graph_from_matrix(similarities + similarities.T)
    objective = po.GradientMatching(np.ones((60, 1))) + 1e18 * po.PairwiseRobustness(
        graph
    )
    with pytest.raises(SolverFailure, match=r"1.0e\+00 I \+ 1.0e\+18 P"):
        po.solve(objective, solver="factored")


def test_factors_take_over_where_lanczos_does_not_converge(monkeypatch):
    X = RNG.normal(size=(1500, 2))
    robust = po.PairwiseRobustness(po.graphs.knn_graph(X, 5))
    objective = po.GradientMatching(RNG.normal(size=(1500, 1))) + 1e6 * robust
    monkeypatch.setattr("propopt.solvers.curves.PATIENCE", 1e-9)
    with pytest.raises(SolverFailure, match="did not converge"):
        po.solve(objective, po.solvers.Krylov(most_steps=3))
    best = po.solve(objective)
    assert best.solver == "krylov"
    assert best.gap <= 1e-6
    curve = po.sweep(objective, {"pairwise_robustness": [1e6]})
    assert curve.optimized[0].objective == pytest.approx(best.objective, rel=1e-6)


def weighted_star(n_nodes):
    hub = sp.csr_array(RNG.uniform(0.1, 10.0, (1, n_nodes - 1)))
    return po.graphs.graph_from_matrix(sp.block_array([[None, hub], [hub.T, None]]))


@pytest.mark.parametrize("graph", [tree(3_000), weighted_star(3_000)])
def test_a_forest_has_no_fill(monkeypatch, graph):
    whole, made = factored.positive_factors, []

    def counted(matrix, order):
        made.append(whole(matrix, order))
        return made[-1]

    monkeypatch.setattr(factored, "positive_factors", counted)
    factor = Elimination.of(graph.laplacian).factor(1.0, 1e6)
    assert [factors.L.nnz for factors in made] == [2 * 3_000 - 1]
    R = RNG.normal(size=(3_000, 2))
    W = factor(R)
    norm = 2e6 * graph.laplacian.diagonal().max()
    rounding = 8 * np.finfo(float).eps * norm * np.abs(W).max()
    residual = W + 1e6 * (graph.laplacian @ W) - R
    np.testing.assert_allclose(residual, 0.0, atol=rounding)


def test_what_is_done_in_vain_costs_a_few_factors(monkeypatch):
    n = 20_000
    losses = (po.GradientMatching(walk(n)), po.PairwiseRobustness(tree(n)))
    objective = 1.0 * losses[0] + 1e6 * losses[1]
    solver = choose_curve_solver(Program(losses))
    assert solver.name == "krylov"
    assert solver.most_steps < 1_000
    requested = []
    solve = ShiftedSystem.solve
    monkeypatch.setattr(
        ShiftedSystem,
        "solve",
        lambda self, *args: requested.append(self.most_steps) or solve(self, *args),
    )
    assert po.solve(objective, solver).gap <= 1e-6
    assert requested == [solver.most_steps]
