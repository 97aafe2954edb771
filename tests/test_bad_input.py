"""Bad input has one clear error or a documented behaviour, and takes no memory."""

from __future__ import annotations

import tracemalloc
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import psutil
import pytest

import propopt as po
from propopt.base.errors import InvalidInput, Refused, TrivialObjectiveWarning


N, D = 6, 3
G = np.arange(18.0).reshape(N, D) - 7.5
gradient, sparsity = po.GradientMatching(G), po.Sparsity()
robustness = po.PairwiseRobustness(po.chain_graph(N))

TABLES = {
    "GradientMatching": ("G", po.GradientMatching),
    "FunctionMatching": ("X", lambda X: po.FunctionMatching(X, np.ones(2))),
    "gaussian_graph": ("X", lambda X: po.gaussian_graph(X, 1.0)),
    "threshold_graph": ("X", lambda X: po.threshold_graph(X, 1.0)),
    "knn_graph": ("X", lambda X: po.knn_graph(X, 1)),
    "correlation_graph": ("X", po.correlation_graph),
    "KernelRobustness": ("kernel_matrix", po.KernelRobustness),
    "graph_from_matrix": ("S", po.graph_from_matrix),
    "certify": ("W", lambda W: po.certify(gradient, W)),
}


TABLE = np.eye(4)


def holding(bad):
    """A table with another value in one cell."""
    table = TABLE.copy()
    table[1, 2] = bad
    return table


INFINITE = r"1 of 16 values are (not fin|infin)ite; .*index \(1, 2\)"
DATES = np.zeros((4, 4), dtype="datetime64[s]")
ODD = [
    (holding(np.inf), INFINITE),
    (holding(-np.inf), INFINITE),
    (np.zeros((0, 3)), "the array is empty"),
    (np.zeros((3, 0)), "the array is empty"),
    (np.zeros((0, 0)), "the array is empty"),
    (np.ones(3), "expected 2 dimensions"),
    (np.ones((2, 2, 2)), "expected 2 dimensions"),
    (1.0, "expected 2 dimensions"),
    ([["a", "b"], ["c", "d"]], "expected numbers"),
    (pd.DataFrame({"a": ["x", "y"]}), "expected numbers"),
    ([[1, 2], [3]], "expected numbers"),
    ([[1j]], "expected numbers"),
    (TABLE + 1j, "expected numbers, got complex ones"),
    (pd.DataFrame(TABLE + 1j), "expected numbers, got complex ones"),
    ((TABLE + 1j).tolist(), "expected numbers, got complex ones"),
    (np.ma.masked_less(TABLE, 1.0), "expected numbers, got masked ones; fill them"),
    (DATES, "expected numbers, got dates"),
    (pd.DataFrame(DATES), "expected numbers, got dates"),
    (DATES - DATES, "expected numbers, got lengths of time"),
    (
        np.full((4, 4), 10**400, dtype=object),
        "expected numbers, got int too large to convert to float",
    ),
]


@pytest.mark.parametrize(("what", "make"), TABLES.values(), ids=TABLES)
@pytest.mark.parametrize(("table", "message"), ODD)
def test_tables_that_are_none_are_refused_by_name(what, make, table, message):
    with pytest.raises(InvalidInput, match=f"^{what}: {message}"):
        make(table)


GAPS_ARE_FINE = {
    "gaussian_graph",
    "threshold_graph",
    "knn_graph",
    "correlation_graph",
}
"""Distances of rows with missing numbers are defined."""


@pytest.mark.parametrize("name", [name for name in TABLES if name not in GAPS_ARE_FINE])
def test_missing_numbers_are_refused(name):
    label, make = TABLES[name]
    with pytest.raises(InvalidInput, match=rf"^{label}: (1 of 16|numbers are missing)"):
        make(holding(np.nan))


@pytest.mark.parametrize("name", sorted(GAPS_ARE_FINE))
def test_graphs_take_missing_numbers(name):
    table = np.random.default_rng(0).normal(size=(6, 4))
    table[1, 2] = np.nan
    assert TABLES[name][1](table).n_nodes in table.shape


# shapes that do not fit, data of which nothing can be said, weights that are none


SHORT, ONE = po.chain_graph(N + 1), G[:1]
SAME, TWO = np.ones((3, 2)), np.exp(-(np.subtract.outer([0, 0, 1], [0, 0, 1]) ** 2.0))
REFUSED = {
    "gradient_matching has 6 points and pairwise_robustness has 7": lambda: po.solve(
        gradient + po.PairwiseRobustness(SHORT)
    ),
    "gradient_matching has 3 features and smoothness has 4": lambda: po.solve(
        gradient + po.Smoothness(po.chain_graph(D + 1))
    ),
    "6 points and pairwise_robustness has 7": lambda: po.solve(
        1.0 * gradient, subject_to=[po.PairwiseRobustness(SHORT) <= 1]
    ),
    "3 features and smoothness has 4": lambda: po.solve(
        gradient + 0.0 * po.Smoothness(po.chain_graph(D + 1))
    ),
    "no loss of this objective tells": lambda: po.solve(1.0 * sparsity),
    "tells the number of features": lambda: po.solve(1.0 * robustness),
    "lengthscale: all points coincide": lambda: po.gaussian_graph(ONE),
    "lengthscale: all points coincide.*": lambda: po.gaussian_graph(SAME),
    "lengthscale": lambda: po.knn_graph(SAME, 1, weights="gaussian"),
    "n_neighbors: expected fewer than the 1": lambda: po.knn_graph(ONE, 1),
    "positive definite": lambda: po.KernelRobustness(TWO),
    "graph: has no edges": lambda: po.MaxDifferenceRobustness(
        po.graph_from_matrix(np.zeros((N, N)))
    ),
    "weights: all are zero": lambda: po.solve(0.0 * gradient + 0.0 * sparsity),
    **{
        f"^{name}expected a finite number >= 0, got {weight}": partial(call, weight)
        for weight in (-1.0, np.nan, np.inf)
        for name, call in {
            ".*": lambda weight: weight * sparsity,
            "sparsity: ": lambda weight: po.sweep(
                gradient + sparsity, {"sparsity": [1.0, weight]}
            ),
        }.items()
    },
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_is_refused_by_name(message):
    with pytest.raises(InvalidInput, match=message):
        REFUSED[message]()


# small and degenerate data


def test_one_point_is_explained_by_its_gradient():
    one = po.GradientMatching(G[:1])
    for graph in (po.complete_graph(1), po.chain_graph(1), po.gaussian_graph(G[:1], 1)):
        best = po.solve(one + po.PairwiseRobustness(graph))
        np.testing.assert_allclose(best.attributions, G[:1])


@pytest.mark.parametrize("graph", [po.chain_graph(1), po.pixel_graph(1, 1)], ids=repr)
def test_one_feature_is_as_smooth_as_can_be(graph):
    one = po.GradientMatching(G[:, :1])
    best = po.solve(one + po.Smoothness(graph) + 0.5 * robustness)
    same = po.solve(one + 0.5 * robustness)
    np.testing.assert_allclose(best.attributions, same.attributions, atol=1e-12)


def test_correlation_of_one_feature_is_no_edge():
    assert po.correlation_graph(G[:, :1]).n_edges == 0


def test_coinciding_points_may_have_different_gradients():
    assert po.gaussian_graph(SAME, 1.0).n_edges == 3
    points = np.array([[0.0], [0.0], [1.0]])
    graph = po.gaussian_graph(points, 1.0)
    objective = po.GradientMatching([[1.0], [3.0], [5.0]])
    best = po.solve(objective + 1e6 * po.PairwiseRobustness(graph))
    assert best.attributions[0, 0] == pytest.approx(best.attributions[1, 0], abs=1e-5)


def test_disconnected_graph_keeps_its_parts_apart():
    graph = po.group_graph([0, 0, 0, 1, 1, 1])
    best = po.solve(gradient + 1e6 * po.PairwiseRobustness(graph)).attributions
    np.testing.assert_allclose(best[:3], np.tile(G[:3].mean(axis=0), (3, 1)), atol=1e-5)
    np.testing.assert_allclose(best[3:], np.tile(G[3:].mean(axis=0), (3, 1)), atol=1e-5)


def test_all_zero_similarity_asks_for_nothing():
    empty = po.PairwiseRobustness(po.graph_from_matrix(np.zeros((N, N))))
    best = po.solve(gradient + empty)
    np.testing.assert_allclose(best.attributions, G)
    assert best.losses["pairwise_robustness"] == 0.0


def test_gradients_of_zero_are_explained_by_zero():
    zero = po.GradientMatching(np.zeros((N, D)))
    for objective in (zero + robustness, zero + sparsity, zero + robustness + sparsity):
        best = po.solve(objective)
        np.testing.assert_array_equal(best.attributions, np.zeros((N, D)))
        assert best.certificate.holds(0.0)


# weights


def test_loss_of_weight_zero_still_tells_the_shape_and_its_value():
    best = po.solve(gradient + 0.0 * po.Smoothness(po.chain_graph(D)))
    np.testing.assert_allclose(best.attributions, G)
    assert best.losses["smoothness"] > 0


@pytest.mark.parametrize(
    "objective",
    [
        robustness + po.Smoothness(po.chain_graph(D)),
        robustness + po.Smoothness(po.chain_graph(D)) + sparsity,
        0.0 * gradient + robustness,
        0.0 * gradient + sparsity,
    ],
    ids=repr,
)
def test_objective_without_faithfulness_warns_and_gives_zeros(objective):
    with pytest.warns(TrivialObjectiveWarning, match="no faithfulness loss"):
        best = po.solve(objective)
    np.testing.assert_array_equal(best.attributions, np.zeros((N, D)))
    assert best.certificate.holds(0.0)


def test_faithfulness_may_be_a_bound():
    bound = gradient <= 0.5 * gradient.value(np.zeros((N, D)))
    best = po.solve(1.0 * sparsity, subject_to=[bound])
    assert best.certificate.holds(1e-6)
    assert np.abs(best.attributions).max() > 0.1


# memory


@pytest.fixture
def small_machine(monkeypatch):
    """A machine with one mebibyte of free memory."""
    free = SimpleNamespace(available=2**20)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)


@pytest.mark.parametrize("make", ["gaussian", "complete"])
@pytest.mark.usefixtures("small_machine")
def test_complete_graphs_are_refused_with_the_figure(make):
    points = np.linspace(0, 1, 30_000)[:, None]
    makers = {
        "gaussian": lambda: po.gaussian_graph(points, 1.0),
        "complete": lambda: po.complete_graph(30_000),
    }
    with pytest.raises(Refused, match=r"needs about 20\.1 GiB and 1\.0 MiB are free"):
        makers[make]()


@pytest.mark.usefixtures("small_machine")
def test_sparse_graphs_are_made_nevertheless():
    points = np.linspace(0, 1, 3_000)[:, None]
    assert po.gaussian_graph(points, 1e-4, cutoff=0.1).n_edges < 3_000
    assert po.knn_graph(points, 2).n_edges < 9_000


@pytest.mark.parametrize("solver", ["conic", "CLARABEL", "spectral"])
@pytest.mark.usefixtures("small_machine")
def test_large_programs_are_refused_with_the_figure(solver):
    large = po.GradientMatching(np.ones((3_000, 2)))
    objective = large + po.PairwiseRobustness(po.chain_graph(3_000))
    with pytest.raises(
        Refused, match=r"needs about \d{2,3}\.\d MiB and 1\.0 MiB are free"
    ):
        po.solve(objective, solver)


@pytest.mark.parametrize("solver", ["conic", "CLARABEL", "spectral"])
@pytest.mark.usefixtures("small_machine")
def test_refusal_comes_before_the_memory_is_taken(solver):
    large = po.GradientMatching(np.ones((3_000, 2)))
    objective = large + po.PairwiseRobustness(po.chain_graph(3_000))
    tracemalloc.start()
    try:
        with pytest.raises(Refused):
            po.solve(objective, solver)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 3_000**2 / 10


def test_losses_of_tables_with_other_columns_are_refused(rng):
    G, X = (pd.DataFrame(a, columns=list("abc")) for a in rng.normal(size=(2, 5, 3)))
    objective = po.GradientMatching(G) + po.FunctionMatching(
        X[["c", "a", "b"]], np.ones(5)
    )
    with pytest.raises(InvalidInput, match="features have other names, or another ord"):
        po.solve(objective)


def test_a_mask_that_hides_nothing_is_none():
    table = np.ma.array(TABLE, mask=np.zeros((4, 4), bool))
    assert po.GradientMatching(table).value(TABLE) == 0.0
