"""Attributions come in by name: another order is put right, other names are refused."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from refusals import refusals

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.tables.frames import Labels


NAMES, ROWS = ["age", "dose", "weight"], list("pqrstuv")
GRAPH = po.graphs.chain_graph(7)


VALUES = np.random.default_rng(20241023).normal(size=(2, 7, 3))
G, X = (pd.DataFrame(own, columns=NAMES, index=ROWS) for own in VALUES)
MATCHING = po.GradientMatching(G)
OBJECTIVE = MATCHING + 0.3 * po.PairwiseRobustness(GRAPH)
BEST = po.solve(OBJECTIVE)
FRAME = BEST.to_frame()
TURNED = NAMES[::-1]


def explanation(frame):
    labels = Labels(tuple(frame.index), tuple(frame.columns))
    return po.results.Explanation(
        attributions=frame.to_numpy(), method="mine", labels=labels
    )


def of_shap(frame):
    """What shap.Explanation has; a test below takes a real one."""
    names = list(frame.columns)
    return SimpleNamespace(values=frame.to_numpy(), feature_names=names, data=None)


SHUFFLES = {
    "columns": lambda W: W[TURNED],
    "rows": lambda W: W.iloc[[3, 0, 6, 2, 5, 1, 4]],
    "both": lambda W: W.iloc[::-1][["dose", "age", "weight"]],
}
each_form = pytest.mark.parametrize("form", [pd.DataFrame, explanation])


@pytest.mark.parametrize("shuffled", SHUFFLES.values(), ids=SHUFFLES)
@each_form
def test_nothing_depends_on_the_order(shuffled, form):
    result = po.proofs.certify(OBJECTIVE, form(shuffled(FRAME)))
    assert result == po.proofs.certify(OBJECTIVE, BEST.attributions)
    assert result.gap == pytest.approx(0.0, abs=1e-12)
    given, array = form(shuffled(X)), X.to_numpy()
    assert OBJECTIVE.value(given) == OBJECTIVE.value(array)
    assert OBJECTIVE.breakdown(given) == OBJECTIVE.breakdown(array)
    assert MATCHING.value(given) == MATCHING.value(array)
    assert_array_equal(MATCHING.gradient(given), MATCHING.gradient(array))
    curve = po.sweep(OBJECTIVE, baselines=[given])
    assert curve.baselines[0].losses == OBJECTIVE.breakdown(array)


def test_every_carrier_of_attributions_is_the_same_baseline():
    point = po.sweep(OBJECTIVE, {"pairwise_robustness": [0.3]}).optimized[0]
    array = FRAME.to_numpy()
    carriers = [BEST, point, FRAME, array, of_shap(FRAME[TURNED]), array.tolist()]
    curve = po.sweep(OBJECTIVE, baselines=carriers)
    names = ["optimized", "optimized", "baseline 3", "baseline 4", "shap", "baseline 6"]
    assert [e.method for e in curve.baselines] == names
    expected = OBJECTIVE.breakdown(array)
    for carrier, result in zip(carriers, curve.baselines, strict=True):
        assert result.losses == pytest.approx(expected, rel=1e-12)
        assert po.proofs.certify(OBJECTIVE, carrier).gap == pytest.approx(
            0.0, abs=1e-12
        )
        assert OBJECTIVE.value(carrier) == pytest.approx(BEST.objective, rel=1e-12)
        assert po.GradientMatching(carrier).value(carrier) == 0.0
    assert curve.baselines[4].units == "output"
    given = {"one": BEST, "two": BEST.attributions}  # a mapping names them
    curve = po.sweep(OBJECTIVE, baselines=given)
    assert [e.method for e in curve.baselines] == ["one", "two"]
    assert curve.baselines[0].certificate == BEST.certificate
    with pytest.raises(InvalidInput, match="baselines: expected a list of them"):
        po.sweep(OBJECTIVE, baselines=FRAME)


def test_explanations_of_shap_are_read_by_name():
    labels = po.GradientMatching(of_shap(G)).labels
    assert labels == Labels(features=tuple(NAMES))
    nameless = SimpleNamespace(values=G.to_numpy(), feature_names=None)
    assert po.GradientMatching(nameless).labels == Labels()
    wrong = SimpleNamespace(values=G.to_numpy(), feature_names=["a", "b"])
    with pytest.raises(InvalidInput, match="a name for each of 3 features, got 2"):
        po.GradientMatching(wrong)
    shap = require("shap")
    given = shap.Explanation(G[TURNED].to_numpy(), feature_names=TURNED)
    assert MATCHING.value(given) == 0.0
    many = shap.Explanation(np.ones((7, 3, 2)), feature_names=NAMES)
    with pytest.raises(InvalidInput, match=r"one output.*explanation\[\.\.\., 1\]"):
        po.GradientMatching(many)
    assert po.GradientMatching(many[..., 1]).n_features == 3


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "alignment"))
@each_form
def test_other_names_are_refused_everywhere(line, message, form):
    try:
        given = form(eval(line))
    except InvalidInput as error:  # an explanation has no equal names to begin with
        assert re.search(message, str(error))  # noqa: PT017
        return
    for call in (
        lambda: po.proofs.certify(OBJECTIVE, given),
        lambda: OBJECTIVE.value(given),
        lambda: OBJECTIVE.breakdown(given),
        lambda: MATCHING.value(given),
        lambda: MATCHING.gradient(given),
        lambda: po.sweep(OBJECTIVE, baselines=[given]),
        lambda: po.explainers.aggregate(OBJECTIVE, [BEST, given]),
    ):
        with pytest.raises(InvalidInput, match=message):
            call()


def test_without_names_position_decides(rng):
    labels = Labels(features=explanation(FRAME).labels.features[::-1])
    turned = FRAME.to_numpy()[:, ::-1]
    other = po.results.Explanation(attributions=turned, method="mine", labels=labels)
    assert po.proofs.certify(OBJECTIVE, other).gap == pytest.approx(0.0, abs=1e-12)
    assert po.GradientMatching(FRAME.to_numpy()).value(FRAME[TURNED]) > 0.0
    # a counted index is put in no other order; one that does not only count is
    values = rng.normal(size=(4, 2))
    own = pd.DataFrame(values, columns=["a", "b"], index=[3, 1, 0, 2])
    W = pd.DataFrame(values, columns=["a", "b"])  # as made without an index
    with pytest.raises(InvalidInput, match="rows are the numbers 0, 1, 2"):
        po.GradientMatching(own).value(W)
    assert po.GradientMatching(W).value(W.iloc[[3, 1, 0, 2]]) == 0.0
    # a column may have the name of an attribute
    names = ["attributions", "labels", "feature_names"]
    own = pd.DataFrame(rng.normal(size=(4, 3)), columns=names)
    assert po.GradientMatching(own).value(own[names[::-1]]) == 0.0


@pytest.mark.parametrize(
    ("index", "columns"),
    [
        (pd.date_range("2024-01-01", periods=3), ["a", "b", "c"]),
        ([np.nan, 1.0, 2.0], [0, 1, 2]),  # a row without a name
    ],
)
def test_names_equal_those_that_a_file_has_of_them(tmp_path, index, columns):
    table = pd.DataFrame(np.eye(3), index=index, columns=columns)
    graph = po.graphs.gaussian_graph(pd.DataFrame(np.eye(3), index=index), 1.0)
    objective = po.GradientMatching(table) + po.PairwiseRobustness(graph)
    best = po.solve(objective)
    best.save(tmp_path / "best")
    loaded = po.results.Explanation.load(tmp_path / "best")
    for given in (best, best.to_frame().iloc[::-1], loaded, loaded.to_frame()):
        assert objective.value(given) == pytest.approx(best.objective, rel=1e-12)


# ---- whatever else has names
def by_function_matching(turned):
    values = pd.Series(range(7), ROWS)
    return po.losses.FunctionMatching(X, values.iloc[::-1] if turned else values).value(
        G
    )


def scaled(turned):
    sizes = pd.Series([1.0, 10.0, 100.0], NAMES)
    return BEST.scaled(sizes.iloc[::-1] if turned else sizes.to_numpy()).attributions


def of_new_rows(turned):
    explainer = po.inductive.GaussianProcessExplainer(lengthscale=1.0)
    gradients = explanation(FRAME.iloc[::-1]) if turned else FRAME
    return explainer.fit(X, gradients).explain(X).attributions


BY_NAME = [by_function_matching, scaled, of_new_rows]


@pytest.mark.parametrize("read", BY_NAME)
def test_it_is_read_by_name(read):
    assert_array_equal(read(True), read(False))


def test_values_of_other_names_are_refused():
    values = pd.Series(range(7), ROWS)
    with pytest.raises(InvalidInput, match="values: its labels are not those of X"):
        po.losses.FunctionMatching(X, values.reset_index(drop=True))


def test_names_of_bounds_reach_the_explanation():
    robust, bounds = po.PairwiseRobustness(GRAPH), [MATCHING <= 1.0]
    best = po.solve(1.0 * robust, subject_to=bounds)
    assert best.labels.features == tuple(NAMES)
    result = po.proofs.certify(robust, best.to_frame()[TURNED], bounds=bounds)
    assert result.violation <= 1e-6


def test_a_mixture_is_made_by_name():
    others = [FRAME * 0.5, (FRAME * 1.5).iloc[::-1][TURNED]]
    mixed = po.explainers.aggregate(OBJECTIVE, others)
    assert_allclose(mixed.attributions, BEST.attributions, rtol=1e-6)
    assert mixed.labels == BEST.labels


# ---- graphs know the names of the rows that they were made of
GRAPHS = {
    "gaussian": po.graphs.gaussian_graph,
    "cut": lambda X: po.graphs.gaussian_graph(X, cutoff=1e-3),
    "threshold": lambda X: po.graphs.threshold_graph(X, 4.0),
    "knn": lambda X: po.graphs.knn_graph(X, n_neighbors=2, weights="gaussian"),
}


@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
def test_a_graph_of_rows_in_another_order_is_refused(make):
    for table in (X, X.to_numpy()):
        robust = po.PairwiseRobustness(make(table))
        assert po.solve(MATCHING + robust).gap <= 1e-9
    for kind in (po.PairwiseRobustness, po.losses.MaxDifferenceRobustness):
        with pytest.raises(InvalidInput, match="its points have other names, or anoth"):
            po.solve(MATCHING + kind(make(X.iloc[::-1])))


def test_a_graph_of_columns_in_another_order_is_refused_and_a_grid_knows_its_rows():
    smooth = po.Smoothness(po.graphs.correlation_graph(G))
    assert po.solve(MATCHING + smooth).gap <= 1e-9
    turned = po.Smoothness(po.graphs.correlation_graph(G[TURNED]))
    with pytest.raises(InvalidInput, match="its features have other names, or anoth"):
        po.solve(MATCHING + turned)
    grid = pd.DataFrame(po.graphs.grid(-1, 1, per_dimension=3, dimensions=2))
    grid.index = list("abcdefghi")
    robust = po.PairwiseRobustness(po.graphs.grid_gaussian_graph(grid, lengthscale=1.0))
    assert robust.labels == Labels(points=tuple("abcdefghi"))
    result = po.solve(po.GradientMatching(np.ones((9, 2))) + robust)
    assert result.labels.points == tuple("abcdefghi")
