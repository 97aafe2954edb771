"""Values that packages make are reproduced by an audit, each by its own game."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.explaining.sources import N_SAMPLED, shap_kmeans


shap = pytest.importorskip("shap")
RNG = np.random.default_rng(3)
X = pd.DataFrame(RNG.normal(size=(200, 4)).round(1), columns=list("abcd"))
Y = X["a"] * (X["b"] > 0.0) + X["c"] + np.abs(X["d"])
ROWS = X[150:180]
DATA = X[:120]


def audited(values, model, base=None, data=DATA):
    base = None if base is None else np.full(len(ROWS), base)
    return po.audit(values, model, ROWS, data=data, base=base)


@pytest.mark.parametrize("n_rows", [60, 120])
@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingRegressor(max_iter=20, random_state=0),
        RandomForestRegressor(10, random_state=0),
        GradientBoostingRegressor(n_estimators=20, random_state=0),
        DecisionTreeRegressor(random_state=0),
    ],
    ids=["histogram", "forest", "boosting", "tree"],
)
def test_thresholds_in_single_precision_give_the_numbers_of_shap(model, n_rows):
    # a cut of a histogram is a number of the table only if there are many
    fine = np.random.default_rng(7).normal(size=(700, 4)).round(2)
    many = pd.DataFrame(fine, columns=X.columns)
    model.fit(many, many["a"] * (many["b"] > 0.0) + many["c"])
    rows = many[300:330]
    data = many[400:520]
    explainer = shap.TreeExplainer(model, data[:n_rows])
    phi = explainer.shap_values(rows, check_additivity=False)
    base = float(np.ravel(explainer.expected_value)[0])
    how = {"data": data[:n_rows]}
    audit = po.audit(phi, model, rows, base=np.full(30, base), **how)
    assert np.abs(phi - audit.exact).max() > 1e-4  # as midpoints are data
    assert audit.verdict == "wrong"
    assert audit["values"].cause == "single precision"
    assert ("100 rows" in audit["values"].source) == (n_rows > N_SAMPLED)
    right = po.explainers.TreeShap(data=data[:n_rows]).explain(po.wrap(model), rows)
    assert po.audit(right, model, rows, **how).verdict == "exact"


@pytest.mark.parametrize("has_background", [True, False])
@pytest.mark.parametrize("is_one_hot", [True, False])
@pytest.mark.parametrize(
    "model",
    [
        RandomForestRegressor(10, max_depth=6, random_state=0),
        HistGradientBoostingClassifier(max_iter=20, random_state=0),
    ],
    ids=["forest", "histogram"],
)
def test_values_of_shap_for_the_model_behind_steps(model, is_one_hot, has_background):
    """Computed for encoded rows, and summed over one-hot columns."""
    rng = np.random.default_rng(7)
    numbers = ["a", "b", "k_2"]
    many = pd.DataFrame(rng.normal(size=(700, 3)).round(2), columns=numbers)
    y = many["a"] * (many["b"] > 0.0) + many["k_2"]
    encoder = StandardScaler()
    if is_one_hot:
        many["k"] = rng.choice(list("xyz"), 700)
        y += many["a"] * (many["k"] == "x")
        encoder = make_column_transformer(
            (OneHotEncoder(sparse_output=False), ["k"]),
            (OneHotEncoder(), []),  # never fitted
            (StandardScaler(), numbers),
        )
    counts = np.arange(40) % 3 + 1
    how = {"sample_weight": counts}
    if is_classifier(model):
        y = np.where(y > 0.0, "yes", "no")
        how["output"] = "log_odds"
    pipe = make_pipeline(encoder, model).fit(many, y)
    rows = many[300:330]
    data = many[400:440]
    encoded = None
    if has_background:
        encoded = np.repeat(encoder.transform(data), counts, axis=0)
    explainer = shap.TreeExplainer(pipe[-1], encoded)
    phi = explainer.shap_values(encoder.transform(rows), check_additivity=False)
    if is_one_hot:
        phi = np.c_[phi[:, 3:], phi[:, :3].sum(axis=1)]
    how["base"] = np.full(30, np.ravel(explainer.expected_value)[-1])
    audit = po.audit(phi, pipe, rows, data=data, **how)
    assert np.abs(phi - audit.exact).max() > 1e-3
    expected = ("exact", "path-dependent")
    if has_background:
        expected = ("wrong", "single precision")
    assert (audit.verdict, audit["values"].cause) == expected
    assert audit["values"].source.startswith("sums over one-hot") == is_one_hot


def walked(forest, rows):
    """Changes of node means on the path of each row, as treeinterpreter adds them."""
    phi = np.zeros(rows.shape)
    for tree in (member.tree_ for member in forest.estimators_):
        for n, x in enumerate(rows.to_numpy(np.float32)):
            node = 0
            while (j := tree.feature[node]) >= 0:
                sides = tree.children_right, tree.children_left
                after = sides[int(x[j] <= tree.threshold[node])][node]
                phi[n, j] += tree.value[after, 0, 0] - tree.value[node, 0, 0]
                node = after
    return phi / len(forest.estimators_)


def test_changes_of_node_means_are_saabas_values():
    forest = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, Y)
    audit = audited(walked(forest, ROWS), forest)
    assert (audit.verdict, audit["values"].cause) == ("exact", "Saabas")
    xgboost = pytest.importorskip("xgboost")
    boosted = xgboost.XGBRegressor(n_estimators=8, max_depth=3, n_jobs=1).fit(X, Y)
    how = {"pred_contribs": True, "approx_contribs": True}
    phi = boosted.get_booster().predict(xgboost.DMatrix(ROWS), **how)
    for model in (boosted, boosted.get_booster()):
        assert audited(phi, model)["values"].cause == "Saabas"


def test_centres_of_clusters_are_those_of_shap():
    lightgbm = pytest.importorskip("lightgbm")
    centres, counts = shap_kmeans(DATA.to_numpy(), 10)
    theirs = shap.kmeans(DATA, 10)
    np.testing.assert_array_equal(centres, theirs.data)
    np.testing.assert_allclose(counts / len(DATA), theirs.weights)
    model = lightgbm.LGBMRegressor(n_estimators=9, min_child_samples=5, verbosity=-1)
    model.fit(X, Y)

    def f(x):
        return model.predict(pd.DataFrame(x, columns=X.columns))

    kernel = shap.KernelExplainer(f, theirs)  # of all coalitions, weighted
    for phi, words in (
        (shap.TreeExplainer(model, theirs.data)(ROWS), "10 centres"),
        (kernel.shap_values(ROWS, silent=True), "10 weighted centres"),
    ):
        audit = audited(phi, model)
        assert audit.verdict == "exact"
        assert words in audit["values"].source


@pytest.mark.parametrize("seed", range(3))
def test_conditional_means_of_a_linear_model_are_those_of_shap(seed):
    from sklearn.linear_model import LinearRegression

    mixed = X.assign(b=X["a"] + 0.3 * X["b"])
    model = LinearRegression().fit(mixed, Y)
    np.random.seed(seed)  # noqa: NPY002 - shap draws from the global generator
    masker = shap.maskers.Impute(mixed[:120])
    phi = shap.LinearExplainer(model, masker).shap_values(mixed[150:180])
    audit = po.audit(phi, model, mixed[150:180], data=mixed[:120])
    assert (audit.verdict, audit["values"].cause) == ("exact", "correlated")
    phi[:, 0] += 0.8 * phi[:, 1]  # also linear in all columns
    phi[:, 1] *= 0.2
    moved = po.audit(phi, model, mixed[150:180], data=mixed[:120])
    assert moved.verdict != "exact"


def test_samples_are_named_only_if_errors_look_like_draws():
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMRegressor(n_estimators=20, min_child_samples=5, verbosity=-1)
    model.fit(X, Y)

    def f(x):
        return model.predict(pd.DataFrame(x, columns=X.columns))

    data = DATA[:50]
    explainer = shap.PermutationExplainer(f, data.to_numpy(), seed=1)
    drawn = explainer(ROWS.to_numpy(), max_evals=40, silent=True).values
    assert audited(drawn, model, data=data)["values"].cause == "samples"
    best = po.explain(model, ROWS, data=data)
    optimized = audited(best.attributions, model, data=data)["values"]
    assert (optimized.verdict, optimized.cause) == ("not reproduced", "undetermined")


def test_values_of_a_black_box_that_are_permuted_in_rows_are_found():
    def f(x):
        x = np.asarray(x)
        return np.sin(x[:, 0] * x[:, 1]) + 2.0 * x[:, 2] + x[:, 3] ** 2

    explainer = shap.ExactExplainer(f, shap.maskers.Independent(DATA, 200))
    right = explainer(ROWS, silent=True).values
    audit = audited(right, f)
    assert audit.verdict == "not reproduced"
    assert audit["values"].number == 0.0  # false in 1 % of tables
    assert audit["power"].number > 0.5
    permuted = audited(RNG.permuted(right, axis=1), f)
    assert permuted["values"].number > 0.5
    assert permuted["values"].count >= 0.8 * len(ROWS)


def test_a_column_without_values_that_the_model_uses_is_not_left_out():
    """The least change that halves removable differences, by another solver."""
    import cvxpy as cp

    forest = RandomForestRegressor(8, max_depth=4, random_state=0).fit(X, Y)
    W = po.explainers.TreeShap(data=DATA).explain(po.wrap(forest), ROWS).attributions
    W = W.copy()
    W[:, 0] += W[:, 2]
    W[:, 2] = 0.0
    graph = po.graphs.knn_graph(ROWS, 5)
    audit = po.audit(W, forest, ROWS, data=DATA, graph=graph)
    G = po.explainers.main_effects(forest, ROWS, data=DATA).explanation.attributions
    root = np.asarray(graph.differences(np.eye(len(W))))

    def roughness(V):
        return ((root @ (V - G)) ** 2).sum()

    V = cp.Variable(W.shape)
    sums = [cp.sum(V, axis=1) == W.sum(axis=1)]
    least = cp.Problem(cp.Minimize(cp.sum_squares(root @ (V - G))), sums).solve()
    half = 0.5 * (roughness(W) + least)
    limit = cp.norm(root @ (V - G), "fro") <= half**0.5
    cp.Problem(cp.Minimize(cp.norm(V - W, "fro")), [*sums, limit]).solve()
    change = np.linalg.norm(V.value - W) / np.linalg.norm(W)
    assert audit["change to halve them"].number == pytest.approx(change, rel=1e-3)
