"""shap.TreeExplainer's interface: numbers, units, shapes, tables and refusals."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from lightgbm import Dataset, LGBMClassifier, LGBMRegressor
from refusals import refused
from scipy.special import logit
from sklearn import ensemble
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from propopt.base.errors import InvalidInput
from propopt.shap import Explainer, Explanation, TreeExplainer


shap = pytest.importorskip("shap")
xgboost = pytest.importorskip("xgboost")
catboost = pytest.importorskip("catboost")

N = 240
rng = np.random.default_rng(20241023)
X = pd.DataFrame(rng.normal(size=(N, 4)), columns=list("abcd"))
SCORE = (X["a"] * X["b"] + X["c"] + 0.1 * rng.normal(size=N)).to_numpy()
TWO = np.where(SCORE > 0.0, "yes", "no")
THREE = np.array(["high", "low", "mid"])[np.digitize(SCORE, [-0.5, 0.7]) % 3]
ROWS = X.iloc[:12]
BACKGROUND = X.iloc[40:90]
ALL = shap.maskers.Independent(X, max_samples=N)  # of 240 rows shap takes 100

QUIET = {"verbosity": -1, "n_jobs": 1}
CAT = {"iterations": 12, "verbose": False, "allow_writing_files": False}
NUMBERS = {
    "lightgbm": LGBMRegressor(n_estimators=12, **QUIET),
    "xgboost": xgboost.XGBRegressor(n_estimators=12, n_jobs=1),
    "catboost": catboost.CatBoostRegressor(**CAT),
    "forest": ensemble.RandomForestRegressor(8, random_state=0),
    "boosting": ensemble.GradientBoostingRegressor(n_estimators=12),
}
CLASSES = {
    "lightgbm": LGBMClassifier(n_estimators=12, **QUIET),
    "xgboost": xgboost.XGBClassifier(n_estimators=12, n_jobs=1),
    "catboost": catboost.CatBoostClassifier(**CAT),
    "forest": ensemble.RandomForestClassifier(8, random_state=0),
    "boosting": ensemble.GradientBoostingClassifier(n_estimators=12),
    "histograms": ensemble.HistGradientBoostingClassifier(max_iter=12),
}


def fitted(model, y, table=X):
    if isinstance(model, xgboost.XGBClassifier):
        y = np.unique(y, return_inverse=True)[1]
    return type(model)(**model.get_params()).fit(table, y)


def added(explanation):
    return explanation.values.sum(axis=1) + explanation.base_values


# ---- Numbers


@pytest.mark.parametrize("data", [None, BACKGROUND], ids=["paths", "background"])
@pytest.mark.parametrize("name", NUMBERS)
def test_values_and_bases_of_regressors_are_those_of_shap(name, data):
    model = fitted(NUMBERS[name], SCORE)
    ours, theirs = (kind(model, data) for kind in (TreeExplainer, shap.TreeExplainer))
    before = [np.shape(explainer.expected_value) for explainer in (ours, theirs)]
    assert before == [(1,) if data is None else ()] * 2
    values, expected = ours.shap_values(ROWS), theirs.shap_values(ROWS)
    assert np.shape(ours.expected_value) == np.shape(theirs.expected_value)
    # shap's weights, and XGBoost's sums, are in single precision
    most = 1e-12 if data is None and name != "xgboost" else 2e-6
    np.testing.assert_allclose(values, expected, rtol=0.0, atol=most)
    base = (
        model.predict(BACKGROUND).mean() if data is not None else theirs.expected_value
    )
    assert ours.expected_value == pytest.approx(np.ravel(base)[0], abs=2e-6)
    np.testing.assert_allclose(added(ours(ROWS)), model.predict(ROWS), atol=2e-6)


@pytest.mark.parametrize("data", [None, BACKGROUND], ids=["paths", "background"])
@pytest.mark.parametrize("name", CLASSES)
def test_three_classes_are_in_the_order_of_the_model(name, data):
    if name == "boosting" and data is None:
        pytest.skip("shap explains two classes of it only")
    model = fitted(CLASSES[name], THREE)
    explainer = TreeExplainer(model, data)
    explanation = explainer(ROWS)
    assert explanation.shape == (12, 4, 3)
    assert np.shape(explainer.expected_value) == (3,)
    outputs = added(explanation)
    if name != "forest":
        outputs = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(outputs, model.predict_proba(ROWS), atol=2e-6)


@pytest.mark.parametrize("data", [None, BACKGROUND], ids=["paths", "background"])
@pytest.mark.parametrize("name", CLASSES)
def test_two_classes_are_log_odds_of_the_second_or_both_probabilities(name, data):
    model = fitted(CLASSES[name], TWO)
    explanation = TreeExplainer(model, data)(ROWS)
    p = model.predict_proba(ROWS)
    if name == "forest":
        np.testing.assert_allclose(added(explanation), p, atol=1e-12)
    else:
        np.testing.assert_allclose(added(explanation), logit(p[:, 1]), atol=1e-5)


@pytest.mark.parametrize("data", [None, BACKGROUND], ids=["paths", "background"])
@pytest.mark.parametrize("y", [SCORE, THREE], ids=["numbers", "classes"])
def test_interactions_add_up_to_values(y, data):
    model = fitted((NUMBERS if y is SCORE else CLASSES)["lightgbm"], y)
    explainer = TreeExplainer(model, data)
    pairs = explainer.shap_interaction_values(ROWS)
    values = explainer.shap_values(ROWS)
    np.testing.assert_allclose(pairs.sum(axis=2), values, atol=1e-12)
    np.testing.assert_array_equal(pairs, pairs.swapaxes(1, 2))
    assert np.abs(pairs[:, 0, 1]).max() > 0.01  # the model has a product
    if data is None:
        theirs = shap.TreeExplainer(model).shap_interaction_values(ROWS)
        np.testing.assert_allclose(pairs, theirs, atol=1e-6)
    np.testing.assert_array_equal(explainer(ROWS, interactions=True).values, pairs)


@pytest.mark.parametrize("name", ["lightgbm", "boosting", "catboost"])
def test_probabilities_are_rescaled_by_rows_as_in_shap(name):
    model = fitted(CLASSES[name], TWO)
    of_shap = shap.TreeExplainer(model, BACKGROUND, model_output="probability")
    ours = TreeExplainer(model, BACKGROUND, model_output="probability")
    values = ours.shap_values(ROWS)
    np.testing.assert_allclose(values, of_shap.shap_values(ROWS), atol=1e-6)
    p = model.predict_proba(ROWS)
    np.testing.assert_allclose(values.sum(1) + ours.expected_value, p[:, 1], atol=1e-9)
    both = TreeExplainer(model, BACKGROUND, model_output="predict_proba")(ROWS)
    np.testing.assert_allclose(added(both), p, atol=1e-9)
    np.testing.assert_array_equal(both.values[..., 1], values)


def test_log_loss_adds_up_to_the_loss_of_each_row():
    model = fitted(CLASSES["lightgbm"], TWO)
    second = (TWO[:12] == "yes").astype(float)
    ours = TreeExplainer(model, BACKGROUND, model_output="log_loss")
    explanation = ours(ROWS, second)
    loss = -np.log(model.predict_proba(ROWS)[np.arange(12), second.astype(int)])
    np.testing.assert_allclose(added(explanation), loss, atol=1e-9)
    of_shap = shap.TreeExplainer(model, BACKGROUND, model_output="log_loss")
    theirs = of_shap.shap_values(ROWS, second)
    np.testing.assert_allclose(explanation.values, theirs, atol=1e-6)
    assert ours.expected_value(1) == pytest.approx(of_shap.expected_value(1), abs=1e-9)
    squares = TreeExplainer(
        fitted(NUMBERS["forest"], SCORE), X, model_output="log_loss"
    )
    errors = (SCORE[:12] - squares.model.predict(ROWS)) ** 2
    np.testing.assert_allclose(added(squares(ROWS, SCORE[:12])), errors, atol=1e-9)


@pytest.mark.parametrize("name", ["lightgbm", "forest", "xgboost"])
def test_changes_of_node_means_are_those_of_shap(name):
    model = fitted(NUMBERS[name], SCORE)
    data, how = (X, ALL), {"feature_perturbation": "tree_path_dependent"}
    if name == "xgboost":  # shap's own sums miss the prediction with data
        data = None, None
    theirs = shap.TreeExplainer(model, data[1], **how)
    expected = theirs.shap_values(ROWS, approximate=True)
    ours = TreeExplainer(model, data[0]).shap_values(ROWS, approximate=True)
    np.testing.assert_allclose(ours, expected, atol=2e-6)


def test_paths_may_have_the_shares_of_given_rows():
    """Also of few: where none of them arrives, both branches count the same."""
    model = fitted(NUMBERS["lightgbm"], SCORE)
    how = {"feature_perturbation": "tree_path_dependent"}
    explainer = TreeExplainer(model, X, **how)
    expected = shap.TreeExplainer(model, ALL, **how).shap_values(ROWS)
    np.testing.assert_allclose(explainer.shap_values(ROWS), expected, atol=1e-12)
    some = TreeExplainer(model, BACKGROUND.iloc[:9], **how)
    assert some.expected_value == pytest.approx(model.predict(BACKGROUND[:9]).mean())
    np.testing.assert_allclose(added(some(ROWS)), model.predict(ROWS))


@pytest.mark.parametrize("most", [1.0, 0.5])
def test_isolation_forests_are_the_mean_length_of_their_paths(most):
    rows = X.round(1)  # leaves with several rows
    settings = {"n_estimators": 9, "max_samples": 60, "random_state": 0}
    forest = ensemble.IsolationForest(max_features=most, **settings).fit(rows)
    explainer = TreeExplainer(forest)
    explanation = explainer(rows[:12])
    theirs = shap.TreeExplainer(forest)(rows[:12])
    np.testing.assert_allclose(explanation.values, theirs.values, rtol=0.0, atol=1e-13)
    # the mean length of a search in 60 rows (Liu et al. 2008)
    mean = 2.0 * (np.log(59.0) + np.euler_gamma) - 2.0 * 59.0 / 60.0
    scores = -(2.0 ** -(added(explanation) / mean))
    np.testing.assert_allclose(scores, forest.score_samples(rows[:12]), rtol=1e-13)
    against = TreeExplainer(forest, rows[40:90])
    lengths = explainer.model.predict(rows)
    np.testing.assert_allclose(added(against(rows[:12])), lengths[:12], rtol=1e-13)
    assert against.expected_value == pytest.approx(lengths[40:90].mean(), rel=1e-13)
    pairs = against.shap_interaction_values(rows[:12])
    np.testing.assert_allclose(pairs.sum(axis=2), against(rows[:12]).values, atol=1e-13)
    assert explainer.model.original_model is forest


def test_fewer_trees_are_the_first_ones():
    model = fitted(CLASSES["lightgbm"], THREE)
    explainer = TreeExplainer(model, BACKGROUND)
    assert explainer.model.tree_limit == 36
    few = explainer.shap_values(ROWS, tree_limit=9)
    theirs = shap.TreeExplainer(model, BACKGROUND)
    expected = theirs.shap_values(ROWS, tree_limit=9, check_additivity=False)
    np.testing.assert_allclose(few, expected, atol=1e-6)
    np.testing.assert_array_equal(explainer.shap_values(ROWS), explainer(ROWS).values)
    margins = model.predict(ROWS, raw_score=True, num_iteration=3)
    np.testing.assert_allclose(explainer.model.predict(ROWS, tree_limit=9), margins)


# ---- Tables


def test_categories_and_missing_values():
    table = X.assign(kind=pd.Categorical(rng.choice(["u", "v", "w"], N)))
    table.loc[::7, "a"] = np.nan
    y = SCORE + 2.0 * (table["kind"] == "v")
    boosted = fitted(
        LGBMRegressor(n_estimators=12, min_child_samples=5, **QUIET), y, table
    )
    texts = table.assign(kind=table["kind"].astype(str))
    cat = catboost.CatBoostRegressor(cat_features=["kind"], **CAT).fit(texts, y)
    for model, rows in ((boosted, table), (cat, texts)):
        paths = TreeExplainer(model)
        np.testing.assert_allclose(added(paths(rows[:12])), model.predict(rows[:12]))
        background = TreeExplainer(model, rows[50:60])
        explanation = background(rows[:12])
        np.testing.assert_allclose(added(explanation), model.predict(rows[:12]))
        assert np.abs(explanation.values[:, 4]).min() > 0.0
        assert list(explanation.feature_names) == list(rows)
        assert explanation.data.tolist()[0][4] == rows["kind"].iloc[0]
    paths = TreeExplainer(cat)
    assert paths.expected_value is None
    paths.shap_values(texts[:1])
    assert paths.expected_value == pytest.approx(
        shap.TreeExplainer(cat)(texts[:1]).base_values[0]
    )


def test_pipelines_are_explained_by_their_columns():
    table = X.mask(X > 2.0)
    model = make_pipeline(SimpleImputer(), fitted(NUMBERS["forest"], SCORE)).fit(
        table, SCORE
    )
    explanation = TreeExplainer(model, table)(table[:12])
    np.testing.assert_allclose(added(explanation), model.predict(table[:12]))


def test_containers_of_libraries_are_tables():
    values = X.to_numpy()
    boosted = fitted(NUMBERS["xgboost"], SCORE, values)
    matrix = xgboost.DMatrix(values[:12])
    explanation = TreeExplainer(boosted.get_booster())(matrix)
    expected = TreeExplainer(boosted).shap_values(values[:12])
    np.testing.assert_allclose(explanation.values, expected, atol=1e-12)
    assert explanation.data.shape == (12, 4)
    cat = fitted(NUMBERS["catboost"], SCORE, values)
    pool = TreeExplainer(cat).shap_values(catboost.Pool(values[:12]))
    np.testing.assert_array_equal(pool, TreeExplainer(cat).shap_values(values[:12]))
    light = fitted(NUMBERS["lightgbm"], SCORE, values)
    rows = Dataset(values[:12], free_raw_data=False)
    booster = TreeExplainer(light.booster_)
    np.testing.assert_array_equal(
        booster.shap_values(rows), booster.shap_values(values[:12])
    )


def test_one_row_has_no_axis_of_rows():
    explainer = TreeExplainer(fitted(CLASSES["forest"], THREE), BACKGROUND)
    whole = explainer.shap_values(ROWS)
    for row in (X.iloc[3], X.to_numpy()[3]):
        np.testing.assert_array_equal(explainer.shap_values(row), whole[3])
        assert explainer.shap_interaction_values(row).shape == (4, 4, 3)


def test_other_names_are_taken_by_position_with_a_warning():
    model = fitted(NUMBERS["xgboost"], SCORE)
    other = X.set_axis(list("efgh"), axis=1)
    with pytest.warns(UserWarning, match="columns are taken by position"):
        values = TreeExplainer(model).shap_values(other[:12])
    np.testing.assert_array_equal(values, TreeExplainer(model).shap_values(ROWS))
    order = X[["d", "a", "c", "b"]]
    moved = TreeExplainer(model, order[40:90])(order[:12])
    expected = TreeExplainer(model, BACKGROUND).shap_values(ROWS)
    np.testing.assert_allclose(moved.values[:, [1, 3, 2, 0]], expected, atol=1e-12)


def test_maskers_and_weighted_rows_are_backgrounds():
    model = fitted(NUMBERS["forest"], SCORE)
    masker = shap.maskers.Independent(BACKGROUND, max_samples=9)
    rows = pd.DataFrame(masker.data, columns=list("abcd"))
    values = TreeExplainer(model, masker).shap_values(ROWS)
    np.testing.assert_array_equal(values, TreeExplainer(model, rows).shap_values(ROWS))
    centres = shap.kmeans(X, 4)
    explainer = TreeExplainer(model, centres)
    mean = np.average(
        model.predict(pd.DataFrame(centres.data, columns=list("abcd"))),
        weights=centres.weights,
    )
    assert explainer.expected_value == pytest.approx(mean)


# ---- Explanations


def test_explanations_without_the_package_have_the_same_fields(monkeypatch):
    model = fitted(CLASSES["forest"], THREE)
    explainer = TreeExplainer(model, BACKGROUND)
    theirs = explainer(ROWS)
    assert isinstance(theirs, shap.Explanation)
    monkeypatch.setitem(sys.modules, "shap", None)
    ours = explainer(ROWS)
    assert type(ours) is Explanation
    for key in (
        3,
        slice(2, 5),
        (slice(None), "b"),
        (Ellipsis, 1),
        (2, "b", 0),
        ([1, 4],),
    ):
        one, other = ours[key], theirs[key]
        assert one.shape == other.shape
        for field in ("values", "base_values", "data"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
    assert list(ours[:, 1:3].feature_names) == ["b", "c"]
    pairs = Explanation(np.zeros((12, 4, 4)), np.zeros(12), ROWS.to_numpy())
    np.testing.assert_array_equal(pairs[:, 1, 2].data, ROWS["b"])
    with pytest.raises(InvalidInput, match=r"features: no column 'e'.*there are"):
        ours[:, "e"]


def test_explainers_can_be_pickled():
    explainer = TreeExplainer(fitted(CLASSES["lightgbm"], TWO), BACKGROUND)
    again = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(again.shap_values(ROWS), explainer.shap_values(ROWS))


# ---- Refusals


def test_a_row_that_does_not_add_up_is_named():
    table = X.set_axis([f"case {n}" for n in range(N)])
    model = fitted(NUMBERS["lightgbm"], SCORE, table)
    explainer = TreeExplainer(model, table[40:90])
    model.fit(table, SCORE + 10.0 * (table.index == "case 5"))
    with pytest.raises(
        InvalidInput, match=r"row 'case 5' add up to .*, and the model predicts"
    ):
        explainer.shap_values(table[:12])
    with pytest.raises(InvalidInput, match="row 'case 5'"):
        explainer(table[:12])
    assert explainer.shap_values(table[:12], check_additivity=False).shape == (12, 4)


def test_a_background_needs_data():
    with pytest.warns(FutureWarning, match="values are path-dependent"):
        explainer = TreeExplainer(
            fitted(NUMBERS["forest"], SCORE), feature_perturbation="interventional"
        )
    assert explainer.feature_perturbation == "tree_path_dependent"


@pytest.mark.parametrize(("call", "words"), refused(__file__, globals()))
def test_what_is_refused(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


def test_rows_may_have_texts_that_the_background_has_not():
    def f(table):
        return table["a"].to_numpy() * table["note"].str.len().to_numpy()

    data = pd.DataFrame({"a": [1.0, 2.0], "note": ["on", "time"]})
    rows = pd.DataFrame({"a": [3.0, 2.0], "note": ["late again", "on"]})
    of_rows = Explainer(f, data)(rows).values
    # both orders: f(a, b) − f(b, b) and f(x) − f(b, x), and means over the data
    a, note = rows["a"].to_numpy()[:, None], np.array([[10], [2]])
    other, length = np.array([1.0, 2.0]), np.array([2, 4])
    expected = (a - other) * (note + length) / 2.0
    np.testing.assert_allclose(of_rows[:, 0], expected.mean(axis=1), rtol=1e-12)
    alone = [Explainer(f, data)(rows.iloc[[n]]).values[0] for n in (0, 1)]
    np.testing.assert_array_equal(of_rows, alone)
