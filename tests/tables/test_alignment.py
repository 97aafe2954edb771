"""Attributions come in by name: another order is put right, other names are refused."""

from __future__ import annotations

from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.resources import require
from propopt.tables.frames import Labels, order_of


NAMES = ["age", "dose", "weight"]
ROWS = list("pqrstuv")
GRAPH = po.chain_graph(7)


@pytest.fixture
def G(rng):
    return pd.DataFrame(rng.normal(size=(7, 3)), columns=NAMES, index=ROWS)


@pytest.fixture
def objective(G):
    return po.GradientMatching(G) + 0.3 * po.PairwiseRobustness(GRAPH)


@pytest.fixture
def best(objective):
    return po.solve(objective)


def explanation(frame):
    labels = Labels(tuple(frame.index), tuple(frame.columns))
    return po.Explanation(attributions=frame.to_numpy(), method="mine", labels=labels)


def shap_explanation(frame):
    """What shap.Explanation has; a test below takes a real one."""
    return SimpleNamespace(
        values=frame.to_numpy(), feature_names=list(frame.columns), data=None
    )


def curve_point(objective):
    curve = po.sweep(objective, {"pairwise_robustness": [0.3]})
    return curve.optimized[0]


SHUFFLES = {
    "columns": lambda W: W[NAMES[::-1]],
    "rows": lambda W: W.iloc[[3, 0, 6, 2, 5, 1, 4]],
    "both": lambda W: W.iloc[::-1][["dose", "age", "weight"]],
}
each_shuffle = pytest.mark.parametrize("shuffled", SHUFFLES.values(), ids=SHUFFLES)
each_form = pytest.mark.parametrize("form", [pd.DataFrame, explanation])


@each_shuffle
@each_form
def test_the_optimum_is_the_optimum_in_any_order(shuffled, form, objective, best):
    given = form(shuffled(best.to_frame()))
    result = po.certify(objective, given)
    assert result == po.certify(objective, best.attributions)
    assert result.gap == pytest.approx(0.0, abs=1e-12)


@each_shuffle
@each_form
def test_losses_do_not_depend_on_the_order(shuffled, form, objective, rng):
    W = pd.DataFrame(rng.normal(size=(7, 3)), columns=NAMES, index=ROWS)
    given, array = form(shuffled(W)), W.to_numpy()
    assert objective.value(given) == objective.value(array)
    assert objective.breakdown(given) == objective.breakdown(array)
    loss = objective.losses[0]
    assert loss.value(given) == loss.value(array)
    np.testing.assert_array_equal(loss.gradient(given), loss.gradient(array))


@each_shuffle
@each_form
def test_baselines_are_measured_by_name(shuffled, form, objective, rng):
    W = pd.DataFrame(rng.normal(size=(7, 3)), columns=NAMES, index=ROWS)
    curve = po.sweep(objective, baselines=[form(shuffled(W))])
    assert curve.baselines[0].losses == objective.breakdown(W.to_numpy())


def test_every_carrier_of_attributions_is_the_same_baseline(objective, best):
    frame = best.to_frame()
    carriers = [
        best,
        curve_point(objective),
        frame,
        frame.to_numpy(),
        shap_explanation(frame[NAMES[::-1]]),
        frame.to_numpy().tolist(),
    ]
    curve = po.sweep(objective, baselines=carriers)
    names = ["optimized", "optimized", "baseline 3", "baseline 4", "shap", "baseline 6"]
    assert [e.method for e in curve.baselines] == names
    expected = objective.breakdown(frame.to_numpy())
    for carrier, result in zip(carriers, curve.baselines, strict=True):
        assert result.losses == pytest.approx(expected, rel=1e-12)
        gap = po.certify(objective, carrier).gap
        assert gap == pytest.approx(0.0, abs=1e-12)
        assert objective.value(carrier) == pytest.approx(best.objective, rel=1e-12)
        matching = po.GradientMatching(carrier)
        assert matching.value(carrier) == 0.0
        assert po.metrics.Sparseness()(carrier) == pytest.approx(
            po.metrics.Sparseness()(best)
        )
    assert curve.baselines[4].units == "output"


def test_a_mapping_names_the_baselines(objective, best):
    given = {"one": best, "two": best.attributions}
    curve = po.sweep(objective, baselines=given)
    assert [e.method for e in curve.baselines] == ["one", "two"]
    assert curve.baselines[0].certificate == best.certificate


@pytest.mark.parametrize("form", [lambda e: e, lambda e: e.to_frame()])
def test_one_table_is_no_list_of_baselines(form, objective, best):
    with pytest.raises(InvalidInput, match=r"baselines: expected a list of them"):
        po.sweep(objective, baselines=form(best))


def test_names_of_a_shap_explanation_are_kept(G):
    labels = po.GradientMatching(shap_explanation(G)).labels
    assert labels == Labels(features=tuple(NAMES))
    nameless = SimpleNamespace(values=G.to_numpy(), feature_names=None)
    assert po.GradientMatching(nameless).labels == Labels()


def test_a_real_shap_explanation_is_read_by_name(G):
    shap = require("shap")
    given = shap.Explanation(G[NAMES[::-1]].to_numpy(), feature_names=NAMES[::-1])
    assert po.GradientMatching(G).value(given) == 0.0
    many = shap.Explanation(np.ones((7, 3, 2)), feature_names=NAMES)
    with pytest.raises(InvalidInput, match=r"one output.*explanation\[\.\.\., 1\]"):
        po.GradientMatching(many)
    assert po.GradientMatching(many[..., 1]).n_features == 3


def test_shap_names_have_to_be_as_many_as_features(G):
    wrong = SimpleNamespace(values=G.to_numpy(), feature_names=["a", "b"])
    with pytest.raises(InvalidInput, match="a name for each of 3 features, got 2"):
        po.GradientMatching(wrong)


def test_a_column_may_have_the_name_of_an_attribute(rng):
    names = ["attributions", "labels", "feature_names"]
    G = pd.DataFrame(rng.normal(size=(4, 3)), columns=names)
    assert po.GradientMatching(G).value(G[names[::-1]]) == 0.0


BAD = {
    "columns are not .* 'age' missing, 'size' not known": lambda W: W.rename(
        columns={"age": "size"}
    ),
    "columns are not .* 'weight' missing": lambda W: W[["age", "dose"]],
    "columns are not .* 'more' not known": lambda W: W.assign(more=0.0),
    "rows are not .* 'p' missing, 'z' not known": lambda W: W.rename(index={"p": "z"}),
    "rows are not .* 'v' missing": lambda W: W.iloc[:-1],
    "rows are not .*, 0, 1, 2 and 4 more not": lambda W: W.reset_index(drop=True),
    "columns are not told apart": lambda W: W[["age", "age", "weight", "dose"]],
    "rows are not told apart": lambda W: pd.concat([W.iloc[1:], W]),
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD)
@each_form
def test_other_names_are_refused_everywhere(change, form, objective, best, request):
    message = request.node.callspec.id.rsplit("-", 1)[-1]
    given = form(change(best.to_frame()))
    loss = objective.losses[0]
    calls = [
        lambda: po.certify(objective, given),
        lambda: objective.value(given),
        lambda: objective.breakdown(given),
        lambda: loss.value(given),
        lambda: loss.gradient(given),
        lambda: po.sweep(objective, baselines=[given]),
        lambda: po.explainers.aggregate(objective, [best, given]),
        lambda: po.plots.plot_comparison(best, given),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match=message):
            call()


def test_without_names_position_decides(objective, best):
    frame = best.to_frame()
    only_columns = explanation(frame).labels.of_columns()
    other = po.Explanation(
        attributions=frame.to_numpy()[:, ::-1],
        method="mine",
        labels=Labels(features=only_columns.features[::-1]),
    )
    assert po.certify(objective, other).gap == pytest.approx(0.0, abs=1e-12)
    nameless = po.GradientMatching(frame.to_numpy())
    assert nameless.value(frame[NAMES[::-1]]) > 0.0


def test_a_counted_index_is_put_in_no_other_order(rng):
    values = rng.normal(size=(4, 2))
    G = pd.DataFrame(values, columns=["a", "b"], index=[3, 1, 0, 2])
    W = pd.DataFrame(values, columns=["a", "b"])  # as made without an index
    with pytest.raises(InvalidInput, match="rows are counted"):
        po.GradientMatching(G).value(W)
    # an index that does not only count is of the rows
    assert po.GradientMatching(W).value(W.iloc[[3, 1, 0, 2]]) == 0.0


def test_names_equal_those_that_a_file_has_of_them(tmp_path, rng):
    days = pd.date_range("2024-01-01", periods=5)
    G = pd.DataFrame(rng.normal(size=(5, 2)), index=days, columns=["a", "b"])
    objective = 1.0 * po.GradientMatching(G)
    po.solve(objective).save(tmp_path / "best")
    again = po.Explanation.load(tmp_path / "best")
    assert po.certify(objective, again).gap == 0.0


def test_the_order_is_where_each_wanted_name_stands():
    assert list(order_of(("c", "a", "b"), ("a", "b", "c"), "W", "X")) == [1, 2, 0]
    assert order_of(("a", "b"), ("a", "b"), "W", "X") is None
    assert order_of(None, ("a", "b"), "W", "X") is None
    assert order_of(("a", "a"), ("a", "a"), "W", "X") is None


def test_references_and_values_are_read_by_name(G, rng):
    X = pd.DataFrame(rng.normal(size=(7, 3)), columns=NAMES, index=ROWS)
    values = pd.Series(rng.normal(size=7), index=ROWS)
    reference = pd.Series([1.0, 2.0, 3.0], index=NAMES)
    one = po.FunctionMatching(X, values, (reference, 0.5))
    other = po.FunctionMatching(X, values.iloc[::-1], (reference.iloc[::-1], 0.5))
    assert other.value(G) == one.value(G)
    with pytest.raises(InvalidInput, match="values: its labels are not those of X"):
        po.FunctionMatching(X, values.reset_index(drop=True))
    with pytest.raises(InvalidInput, match="reference: its labels are not those of X"):
        po.FunctionMatching(X, values, (reference.rename({"age": "size"}), 0.5))


def test_scales_are_read_by_name(best):
    sizes = pd.Series([1.0, 10.0, 100.0], index=NAMES)
    result = best.scaled(sizes.iloc[::-1]).attributions
    np.testing.assert_array_equal(result, best.attributions * sizes.to_numpy())


def test_baselines_of_a_metric_are_read_by_name(G):
    X = G + 1.0
    f = po.wrap(lambda X: (X * [1.0, 2.0, 4.0]).sum(axis=1) ** 2)
    baseline = pd.Series([0.1, 0.2, 0.3], index=NAMES)

    def measured(b):
        metric = po.metrics.FaithfulnessCorrelation(baseline=b, k=1)
        return metric(G, po.wrap(lambda T: f.value(np.asarray(T))), X)

    np.testing.assert_array_equal(measured(baseline.iloc[::-1]), measured(baseline))
    np.testing.assert_array_equal(measured(baseline.to_numpy()), measured(baseline))


def test_names_of_bounds_reach_the_explanation(G):
    best = po.solve(
        1.0 * po.PairwiseRobustness(GRAPH), subject_to=[po.GradientMatching(G) <= 1.0]
    )
    assert best.labels.features == tuple(NAMES)
    result = po.certify(
        po.PairwiseRobustness(GRAPH),
        best.to_frame()[NAMES[::-1]],
        bounds=[po.GradientMatching(G) <= 1.0],
    )
    assert result.violation <= 1e-6


def test_a_mixture_is_made_by_name(objective, best):
    frame = best.to_frame()
    others = [frame * 0.5, (frame * 1.5).iloc[::-1][NAMES[::-1]]]
    mixed = po.explainers.aggregate(objective, others)
    np.testing.assert_allclose(mixed.attributions, best.attributions, rtol=1e-6)
    assert mixed.labels == best.labels


def test_plots_take_what_carries_attributions(best):
    mpl.use("Agg")
    frame = best.to_frame()
    other = frame.iloc[::-1][NAMES[::-1]]
    assert "cosine 1.00" in po.plots.plot_comparison(best, other).get_title()
    assert po.plots.plot_heatmap(frame).images
    assert len(po.plots.plot_row(shap_explanation(frame), 2).patches) == 3
    assert len(po.plots.plot_agreement({"a": frame, "b": best}, GRAPH).lines) == 2


def test_values_beside_the_names_are_those_of_the_row(best):
    X = pd.DataFrame(np.arange(21.0).reshape(7, 3), columns=NAMES, index=ROWS)
    axes = po.plots.plot_row(best, "q", X=X.iloc[::-1][NAMES[::-1]])
    labels = {label.get_text() for label in axes.get_yticklabels()}
    assert labels == {"age = 3", "dose = 4", "weight = 5"}
    with pytest.raises(InvalidInput, match="X: its columns are not those"):
        po.plots.plot_row(best, "q", X=X.rename(columns={"age": "size"}))


def test_a_method_may_answer_in_another_order(rng):
    X = pd.DataFrame(rng.normal(size=(7, 3)), columns=NAMES, index=ROWS)

    def explain(table):
        return 2.0 * table

    def turned(table):
        return explain(table)[NAMES[::-1]]

    metric = po.metrics.MaxSensitivity(n_samples=5)
    np.testing.assert_array_equal(metric(turned, X), metric(explain, X))


def test_tables_are_evaluated_beside_explainers(best, rng):
    X = pd.DataFrame(rng.normal(size=(7, 3)), columns=NAMES, index=ROWS)
    frame = best.to_frame()
    given = [best, frame.iloc[::-1], frame.to_numpy(), shap_explanation(frame)]
    metrics = [po.metrics.Infidelity(), po.metrics.MaxSensitivity(n_samples=5)]
    f = po.wrap(lambda table: np.asarray(table).sum(axis=1) ** 2)
    table = po.metrics.evaluate(metrics, f, X, [*given, po.explainers.Gradient()])
    assert list(table.index)[:4] == ["optimized", "method 2", "method 3", "shap"]
    assert table["Infidelity"].iloc[:4].nunique() == 1
    assert table[metrics[1].name].notna().tolist() == [False] * 4 + [True]


def test_gradients_of_an_inductive_explainer_may_be_an_explanation(best, rng):
    X = pd.DataFrame(rng.normal(size=(7, 3)), columns=NAMES, index=ROWS)
    explainer = po.inductive.GaussianProcessExplainer(lengthscale=1.0)
    expected = explainer.fit(X, best.to_frame()).explain(X).attributions
    turned = explanation(best.to_frame().iloc[::-1])
    result = explainer.fit(X, turned).explain(X).attributions
    np.testing.assert_array_equal(result, expected)


def test_maps_of_images_may_be_tables(rng):
    W = pd.DataFrame(rng.normal(size=(2, 4)), columns=list("abcd"))
    shape = po.ImageShape(channels=1, height=2, width=2)
    assert po.plots.plot_image_maps([W, W.to_numpy()], shape).shape == (2, 2)


# ---- graphs know the names of the rows that they were made of


GRAPHS = {
    "gaussian": po.gaussian_graph,
    "cut": lambda X: po.gaussian_graph(X, cutoff=1e-3),
    "threshold": lambda X: po.threshold_graph(X, 4.0),
    "knn": lambda X: po.knn_graph(X, n_neighbors=2),
    "knn by name": lambda X: po.knn_graph(X=X, n_neighbors=2, weights="gaussian"),
}


@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
def test_a_graph_of_rows_in_another_order_is_refused(make, G, rng):
    X = pd.DataFrame(rng.normal(size=(7, 3)), columns=NAMES, index=ROWS)
    matching = po.GradientMatching(G)
    assert po.solve(matching + po.PairwiseRobustness(make(X))).gap <= 1e-9
    assert po.solve(matching + po.PairwiseRobustness(make(X.to_numpy()))).gap <= 1e-9
    for kind in (po.PairwiseRobustness, po.MaxDifferenceRobustness):
        objective = matching + kind(make(X.iloc[::-1]))
        with pytest.raises(InvalidInput, match="its points have other names, or anoth"):
            po.solve(objective)


def test_a_graph_of_columns_in_another_order_is_refused(G):
    matching = po.GradientMatching(G)
    assert po.solve(matching + po.Smoothness(po.correlation_graph(G))).gap <= 1e-9
    turned = po.Smoothness(po.correlation_graph(G[NAMES[::-1]]))
    with pytest.raises(InvalidInput, match="its features have other names, or anoth"):
        po.solve(matching + turned)


def test_a_grid_knows_its_rows():
    X = pd.DataFrame(po.graphs.grid(-1, 1, per_dimension=3, dimensions=2))
    X.index = list("abcdefghi")
    robust = po.PairwiseRobustness(po.grid_gaussian_graph(X, lengthscale=1.0))
    assert robust.labels == Labels(points=tuple("abcdefghi"))
    result = po.solve(po.GradientMatching(np.ones((9, 2))) + robust)
    assert result.labels.points == tuple("abcdefghi")


def test_rows_without_a_name_are_those_of_the_same_table(tmp_path):
    table = pd.DataFrame(np.eye(3), index=[np.nan, 1.0, 2.0])
    objective = po.GradientMatching(table) + po.PairwiseRobustness(
        po.gaussian_graph(table.copy(), 1.0)
    )
    best = po.solve(objective)
    best.save(tmp_path / "best")
    loaded = po.Explanation.load(tmp_path / "best")
    for given in (best, best.to_frame().iloc[::-1], loaded, loaded.to_frame()):
        assert objective.value(given) == pytest.approx(best.objective, rel=1e-12)
