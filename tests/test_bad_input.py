"""Bad input has one clear error or a documented behaviour."""

import numpy as np
import pandas as pd
import pytest
from refusals import refusals

import propopt as po
from propopt.base.errors import InvalidInput, TrivialObjectiveWarning


N, D = 6, 3
G = np.arange(18.0).reshape(N, D) - 7.5
gradient, sparsity = po.GradientMatching(G), po.Sparsity()
robustness = po.PairwiseRobustness(po.graphs.chain_graph(N))
TABLES = {
    "GradientMatching": ("G", po.GradientMatching),
    "FunctionMatching": ("X", lambda X: po.losses.FunctionMatching(X, np.ones(2))),
    "gaussian_graph": ("X", lambda X: po.graphs.gaussian_graph(X, 1.0)),
    "threshold_graph": ("X", lambda X: po.graphs.threshold_graph(X, 1.0)),
    "knn_graph": ("X", lambda X: po.graphs.knn_graph(X, 1)),
    "correlation_graph": ("X", po.graphs.correlation_graph),
    "KernelRobustness": ("kernel_matrix", po.losses.KernelRobustness),
    "graph_from_matrix": ("S", po.graphs.graph_from_matrix),
    "certify": ("W", lambda W: po.proofs.certify(gradient, W)),
}
TABLE = np.eye(4)


def holding(bad):
    """A table with another value in one cell."""
    table = TABLE.copy()
    table[1, 2] = bad
    return table


DATES = np.zeros((4, 4), dtype="datetime64[s]")


@pytest.mark.parametrize(("what", "make"), TABLES.values(), ids=TABLES)
def test_tables_that_are_none_are_refused_by_name(what, make):
    for line, said in refusals(__file__, "tables"):
        with pytest.raises(InvalidInput, match=f"^{what}: {said}"):
            make(eval(line))


DISTANCES = {"gaussian_graph", "threshold_graph", "knn_graph", "correlation_graph"}


@pytest.mark.parametrize("name", TABLES)
def test_missing_numbers_are_refused_where_distances_are_not_defined(name):
    label, make = TABLES[name]
    if name in DISTANCES:
        table = np.random.default_rng(0).normal(size=(6, 4))
        table[1, 2] = np.nan
        assert make(table).n_nodes in table.shape
        return
    with pytest.raises(InvalidInput, match=rf"^{label}: (1 of 16|numbers are missing)"):
        make(holding(np.nan))


def test_a_mask_that_hides_nothing_is_none():
    table = np.ma.array(TABLE, mask=np.zeros((4, 4), bool))
    assert po.GradientMatching(table).value(TABLE) == 0.0


# ---- shapes that do not fit, data of which nothing can be said, weights that are none
SAME, TWO = np.ones((3, 2)), np.exp(-(np.subtract.outer([0, 0, 1], [0, 0, 1]) ** 2.0))
LONG = po.PairwiseRobustness(po.graphs.chain_graph(N + 1))
WIDE = po.Smoothness(po.graphs.chain_graph(D + 1))
TURNED = [pd.DataFrame(np.eye(3), columns=list(names)) for names in ("abc", "cab")]
NAMED = po.GradientMatching(TURNED[0]) + po.losses.FunctionMatching(
    TURNED[1], np.ones(3)
)
EMPTY = po.graphs.graph_from_matrix(np.zeros((N, N)))


@pytest.mark.parametrize(("line", "said"), refusals(__file__, "programs"))
def test_what_cannot_be_is_refused_by_name(line, said):
    with pytest.raises(InvalidInput, match=said):
        eval(line)


# ---- small and degenerate data
def test_one_point_and_one_feature_are_explained_by_their_gradients():
    one = po.GradientMatching(G[:1])
    for graph in (
        po.graphs.complete_graph(1),
        po.graphs.chain_graph(1),
        po.graphs.gaussian_graph(G[:1], 1),
    ):
        best = po.solve(one + po.PairwiseRobustness(graph))
        np.testing.assert_allclose(best.attributions, G[:1])
    column = po.GradientMatching(G[:, :1]) + 0.5 * robustness
    same = po.solve(column).attributions
    for graph in (po.graphs.chain_graph(1), po.graphs.pixel_graph(1, 1)):
        best = po.solve(column + po.Smoothness(graph)).attributions
        np.testing.assert_allclose(best, same, atol=1e-12)
    assert po.graphs.correlation_graph(G[:, :1]).n_edges == 0


# ---- weights
def test_losses_of_weight_zero_or_without_edges_tell_their_value():
    empty = po.PairwiseRobustness(EMPTY)
    best = po.solve(gradient + empty + 0.0 * po.Smoothness(po.graphs.chain_graph(D)))
    np.testing.assert_allclose(best.attributions, G)
    assert best.losses["smoothness"] > 0
    assert best.losses["pairwise_robustness"] == 0.0


@pytest.mark.parametrize(
    "objective",
    [
        robustness + po.Smoothness(po.graphs.chain_graph(D)),
        robustness + po.Smoothness(po.graphs.chain_graph(D)) + sparsity,
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
