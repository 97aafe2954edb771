"""Features that matter jointly are joined, under the names of the columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from interaction_scores import scores_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.interactions import ILOCO, DataSplit, InteractionScores, interaction_graph


NAMES = ("a", "b", "c", "d")
SCORES = {(0, 1): 2.0, (0, 2): 0.1, (1, 2): -1.0, (2, 3): 0.5}
"""Of errors of 0.1: clear are all but (0, 2)."""
WANTED = np.zeros((4, 4))
WANTED[[0, 1, 2, 3], [1, 0, 3, 2]] = [1.0, 1.0, 0.25, 0.25]
PAIRS = scores_of(NAMES, SCORES)


def dense(graph):
    return graph.similarities.toarray()


def test_clear_joint_contributions_are_similarities_in_units_of_the_largest():
    graph = interaction_graph(PAIRS)
    assert_array_equal(dense(graph), WANTED)
    assert graph.names == NAMES
    assert repr(graph) == "<interaction graph: 4 nodes, 2 edges, largest=2>"
    # what leaks is taken off and has to be exceeded
    leak = np.array([0.5, 0.0, 0.0, 0.45])
    graph = interaction_graph(scores_of(NAMES, SCORES, leak=leak))
    assert graph.n_edges == 1
    assert graph.parameters == {"largest": 1.5}
    low = scores_of(NAMES, SCORES, leak=-leak)
    assert interaction_graph(low).parameters == {"largest": 2.0}


def test_the_level_decides_with_all_candidates_counted():
    for shift, edges in ((1e-9, 1), (-1e-9, 0)):
        at_bound = 0.1 * norm.isf(0.05 / 2 / 10) + shift
        result = scores_of(NAMES, {(0, 1): 9.0, (2, 3): at_bound}, n_candidates=10)
        assert interaction_graph(result, level=0.95).n_edges == 1 + edges
        assert interaction_graph(result, level=0.95, adjust="none").n_edges == 2


def test_nodes_are_in_the_order_of_the_table():
    table = {"d": [0.0], "c": [1.0], "a": [2.0], "b": [3.0]}
    order = [3, 2, 0, 1]
    for made in (pd.DataFrame(table), pl.DataFrame(table)):
        for columns in (made, po.TableSchema.of(made)):
            graph = interaction_graph(PAIRS, columns)
            assert graph.names == ("d", "c", "a", "b")
            assert_array_equal(dense(graph), WANTED[np.ix_(order, order)])


def test_smoothness_draws_joint_attributions_together():
    G = np.array([[1.0, 0.0, 1.0, 0.0]])
    smooth = po.Smoothness(interaction_graph(PAIRS))
    result = po.solve(po.GradientMatching(G) + 1e6 * smooth).attributions
    assert_allclose(result, [[0.5, 0.5, 0.5, 0.5]], atol=1e-5)
    value = 2.0 * (1.0 + 0.25)  # both pairs differ by one, in both orders
    assert smooth.value(G) == pytest.approx(value, rel=1e-15)
    W = pd.DataFrame(np.eye(4), columns=list("abcx"))
    with pytest.raises(InvalidInput, match="smoothness: its features have other names"):
        po.solve(po.GradientMatching(W) + 0.1 * smooth)


def test_columns_of_a_feature_share_its_similarities():
    columns = (("a",), ("b", "c"), ("d", "e"))
    scores = {(0, 1): 1.0, (1, 2): 0.8, (0, 2): 0.0}
    result = scores_of(("a", "bc", "de"), scores, columns=columns)
    assert interaction_graph(result).names == tuple("abcde")
    names = list("acbed")
    S = pd.DataFrame(dense(interaction_graph(result, names)), names, names)
    assert S.loc["a", "b"] == S.loc["c", "a"] == 0.5
    assert S.loc["b", "d"] == S.loc["e", "c"] == pytest.approx(0.2)
    assert S.loc["b", "c"] == S.loc["e", "d"] == 1.0
    assert S.loc["a", "d"] == 0.0
    assert not np.diag(S).any()
    assert_array_equal(S, S.T)
    # a feature of many columns weighs no more than another
    grouped = scores_of(("a", "b"), {(0, 1): 1.0}, columns=(("a",), ("x", "y", "z")))
    W = np.array([[2.0, -1.0, -1.0, -1.0]])
    one = po.Smoothness(interaction_graph(scores_of(("a", "b"), {(0, 1): 1.0})))
    value = po.Smoothness(interaction_graph(grouped)).value(W)
    assert value == pytest.approx(one.value(W[:, :2]), rel=1e-14)


def test_the_columns_of_an_array_go_by_position():
    counted = scores_of(range(4), SCORES)
    graph = interaction_graph(counted, pd.DataFrame(np.eye(4), columns=NAMES))
    assert graph.names == NAMES
    assert_array_equal(dense(graph), WANTED)
    with pytest.raises(InvalidInput, match="expected scores of the 3 columns of the"):
        interaction_graph(counted, list("abc"))
    with pytest.raises(InvalidInput, match="counted, and those of the graph have"):
        interaction_graph(counted, [1, 0, 2, 3])
    graph = interaction_graph(
        scores_of(("g", 1), {(0, 1): 1.0}, columns=((0, 2), (1,)))
    )
    assert graph.names is None
    groups = [[0.0, 0.5, 1.0], [0.5, 0.0, 0.5], [1.0, 0.5, 0.0]]
    assert_array_equal(dense(graph), groups)
    G = pd.DataFrame([[1.0, 0.0, 1.0]], columns=list("xyz"))
    result = po.solve(po.GradientMatching(G) + 1e6 * po.Smoothness(graph))
    assert_allclose(result.attributions, [[2 / 3] * 3], atol=1e-5)


WEAK = scores_of(NAMES, SCORES, errors=5.0)
NEGATIVE = scores_of(NAMES, {(0, 1): -1.0})
TRIPLE = scores_of(NAMES, {(0, 1, 2): 1.0}, order=3)
OTHERS = r"columns are not those of the graph: "


@pytest.mark.parametrize(
    ("scores", "settings", "message"),
    [
        (PAIRS, {"columns": ["a", "b", "c"]}, OTHERS + "'d' not known"),
        (PAIRS, {"columns": list("abcx")}, OTHERS + "'x' missing, 'd' not known"),
        (PAIRS, {"level": 1.5}, "level: expected a number between 0 and 1"),
        (WEAK, {}, r"of 4 pairs none .*Bonferroni of 4.*join$"),
        (NEGATIVE, {}, r"nothing to join$"),
        (TRIPLE, {}, "expected scores of pairs, got sets of 3"),
    ],
)
def test_what_cannot_be_joined_is_refused(scores, settings, message):
    with pytest.raises(InvalidInput, match=message):
        interaction_graph(scores, **settings)


def test_a_fitted_estimator_gives_the_columns_of_its_groups(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("axby"))
    learner = make_pipeline(PolynomialFeatures(2), LinearRegression())
    model = ILOCO(learner, DataSplit(), groups={"xy": ["x", "y"]})
    result = model.fit(X, 3.0 * X["a"] * (X["x"] + X["y"])).result_
    result.save(path := tmp_path / "scores.npz")
    wanted = [[0, 0.5, 0, 0.5], [0.5, 0, 0, 1], [0, 0, 0, 0], [0.5, 1, 0, 0]]
    for scores in (result, InteractionScores.load(path)):
        graph = interaction_graph(scores, X)
        assert graph.names == tuple("axby")
        assert_allclose(dense(graph), wanted, atol=1e-12)
