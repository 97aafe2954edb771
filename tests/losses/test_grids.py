"""Graphs of grids: what they list is what they say, and energies are exact."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import propopt as po
from propopt.losses.graphs.grids import GridGaussianGraph, LatticeGraph


BOXES = [box for n in (1, 2, 3) for box in itertools.product((1, 2, 3), repeat=n)]

# coordinates along each axis, and a lengthscale for which some similarities vanish
GRIDS = {
    "neighbours vanish": ([np.arange(20.0) * 3], 0.1),
    "all vanish": ([np.arange(5.0) * 10], 0.1),
    "two groups": ([np.array([0.0, 0.1, 9.0, 9.1, 9.3])], 0.2),
    "groups on two axes": ([np.array([0.0, 1.0, 90.0]), np.array([0.0, 60.0])], 1.0),
    "products vanish": ([np.arange(4.0) * 9, np.arange(3.0) * 8], 0.5),
    "one point on an axis": ([np.zeros(1), np.arange(3.0), np.zeros(1)], 1.0),
    "in no order": ([np.array([9.1, 0.0, 9.0, 0.1])], 0.2),
    "one point": ([np.zeros(1)], 1.0),
    "small lengthscale": ([np.arange(3.0) * 1e-200], 1e-200),
    "large coordinates": ([np.arange(3.0) * 1e200, np.arange(2.0)], 1.0),
}
each_grid = pytest.mark.parametrize("name", GRIDS)


def exact_energy(graph: po.graphs.Graph, W: np.ndarray) -> np.longdouble:
    """Σ over ordered pairs in extended precision."""
    S = graph.similarities.toarray().astype(np.longdouble)
    total = np.longdouble(0.0)
    for w in W.T.astype(np.longdouble):
        total += (S * np.subtract.outer(w, w) ** 2).sum()
    return total


@pytest.mark.parametrize("box", BOXES, ids=str)
def test_lattice_lists_the_neighbours_and_no_others(box):
    graph = LatticeGraph(box)
    place = np.stack(np.unravel_index(np.arange(graph.n_nodes), box), axis=1)
    apart = np.abs(place[:, None] - place[None]).sum(axis=2)
    np.testing.assert_array_equal(graph.edges, np.argwhere(np.triu(apart == 1)))
    assert graph.n_edges == len(graph.edges) == graph.incidence.shape[0]
    assert graph.similarities.nnz == 2 * graph.n_edges


def test_largest_difference_on_a_square_of_four_points():
    W = np.array([[0.0], [1.0], [1.0], [2.0]])
    loss = po.MaxDifferenceRobustness(LatticeGraph((2, 2)))
    assert loss.value(W) == 1.0


@each_grid
def test_grid_counts_the_edges_and_components_that_it_lists(name):
    axes, lengthscale = GRIDS[name]
    graph = GridGaussianGraph(axes, lengthscale)
    assert graph.n_edges == len(graph.edges) == graph.similarities.nnz / 2
    count, labels = connected_components(graph.similarities, directed=False)
    assert graph.n_components == count
    pairs = set(zip(graph.components.labels.tolist(), labels.tolist(), strict=True))
    assert len(pairs) == count  # the same parts, whatever their numbers


def test_vanishing_similarities_are_counted_without_a_matrix_of_all_pairs():
    axis = np.arange(1000.0) * 2
    graph = GridGaussianGraph([axis, axis], 0.1)
    assert graph.n_edges == ((1000 + 2 * 999) ** 2 - 10**6) // 2


@each_grid
def test_what_is_constant_on_components_of_a_grid_costs_exactly_nothing(name, rng):
    graph = GridGaussianGraph(*GRIDS[name])
    means = 1e17 * rng.normal(size=(graph.n_components, 2))
    W = means[graph.components.labels]
    assert po.PairwiseRobustness(graph).value(W) == 0.0
    assert not po.PairwiseRobustness(graph).map.gradient(W).any()


ENERGIES = {
    **{f"lattice {box}": LatticeGraph(box) for box in [(40,), (5, 1, 7), (2, 3, 4)]},
    "long lengthscale": GridGaussianGraph([np.linspace(0, 1, 9)] * 2, 2.0),
    "short lengthscale": GridGaussianGraph([np.arange(6.0), np.arange(5.0)], 0.12),
    "one axis": GridGaussianGraph([np.linspace(0, 1, 30)], 0.05),
    "three axes": GridGaussianGraph(
        [np.linspace(0, 1, n) ** 2 for n in (5, 2, 4)], 0.3
    ),
    # similarities of 1e-16 and 1e-20 between points of similarity one
    "far groups": GridGaussianGraph(
        [np.array([0.0, 0.1, 8.6, 8.7]), np.array([0.0, 0.2, 9.6])], 1.0
    ),
}
each_energy = pytest.mark.parametrize("name", ENERGIES)


@each_energy
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_energy_is_that_of_extended_precision(name, offset, rng):
    graph = ENERGIES[name]
    W = rng.normal(size=(graph.n_nodes, 2)) + offset
    exact = exact_energy(graph, W)
    result = po.PairwiseRobustness(graph).value(W)
    assert abs(result - exact) <= 1e-13 * exact


@each_energy
def test_energy_of_smooth_attributions_is_that_of_extended_precision(name):
    graph = ENERGIES[name]
    smooth = np.linspace(1e6, 1e6 + 1e-3, graph.n_nodes)[:, None]
    exact = exact_energy(graph, smooth)
    result = po.PairwiseRobustness(graph).value(smooth)
    assert abs(result - exact) <= 1e-12 * exact


def test_energy_between_far_groups_of_different_means_is_not_lost():
    graph = ENERGIES["far groups"]
    near = np.add.outer([0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 2.0]).reshape(-1, 1)
    exact = exact_energy(graph, near)
    assert exact < 1e-14
    result = po.PairwiseRobustness(graph).value(near)
    assert abs(result - exact) <= 1e-12 * exact


@pytest.mark.parametrize("slab", [1, 7, 100])
def test_energy_does_not_depend_on_slabs(slab, monkeypatch, rng):
    monkeypatch.setattr("propopt.losses.operators.SLAB", slab)
    for graph in ENERGIES.values():
        W = rng.normal(size=(graph.n_nodes, 1))
        result = po.PairwiseRobustness(graph).value(W)
        assert result == pytest.approx(float(exact_energy(graph, W)), rel=1e-13)


def test_products_with_small_similarities_keep_them(rng):
    graph = ENERGIES["short lengthscale"]  # of the next: exp(−35) = 8e-16
    W = rng.normal(size=(graph.n_nodes, 3))
    exact = 2.0 * graph.laplacian.toarray() @ W
    np.testing.assert_allclose(graph.differences.gram @ W, exact, rtol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_no_grid_has_a_lower_bound_above_its_optimum(offset, rng):
    X = po.graphs.grid(-5, 5, per_dimension=12, dimensions=2)
    loss = po.PairwiseRobustness(po.grid_gaussian_graph(X, lengthscale=0.5))
    G = np.round(rng.normal(size=(144, 2)), 3)
    best = po.solve(po.GradientMatching(G) + 10.0 * loss)
    # the same problem, but for the last digits of its gradients
    result = po.certify(
        po.GradientMatching(G + offset) + 10.0 * loss, best.attributions + offset
    )
    assert result.value == pytest.approx(best.objective, rel=1e-9)
    assert result.gap <= 1e-9
    assert result.lower_bound <= best.objective * (1 + 1e-9)


SHAPES = {
    "square": LatticeGraph((2, 2)),
    "line": LatticeGraph((4,)),
    "grid": GridGaussianGraph([np.arange(4.0)], 1.0),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("weight", [1.0, 100.0])
@pytest.mark.parametrize("smooth", [False, True])
def test_fewer_points_than_features_with_sparsity(name, weight, smooth, rng):
    G = rng.normal(size=(4, 6))
    objective = po.GradientMatching(G) + 0.1 * po.Sparsity()
    objective += weight * po.PairwiseRobustness(SHAPES[name])
    if smooth:
        objective += 0.5 * po.Smoothness(po.chain_graph(6))
    result = po.solve(objective, solver="lasso", tolerance=1e-8)
    assert result.gap <= 1e-8
    assert result.objective == pytest.approx(
        po.solve(objective, solver="conic").objective, rel=1e-6
    )
