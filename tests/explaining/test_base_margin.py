"""Offsets of rows: in base and prediction, and in no contribution."""

import numpy as np
import pandas as pd
import pytest
from library_margins import margin_of
from quiet_boosters import QUIET, booster
from refusals import refusals
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po
from propopt.base.errors import InvalidInput


RNG = np.random.default_rng(8)
X = pd.DataFrame(RNG.normal(size=(80, 3)), columns=["age", "power", "region"])
EXPOSURE = RNG.uniform(0.1, 1.0, 80)
OFFSET = np.log(EXPOSURE)
COUNTS = RNG.poisson(EXPOSURE * np.exp(0.4 * X["age"] + 0.3 * X["power"] ** 2))
CLASS = (X["age"] * X["power"] > 0.0).astype(int)


SETTINGS = {"n_estimators": 8, "max_depth": 3}


def _fitted(library, kind, y, margins, **settings):
    """A model of a library, trained with base margins or without."""
    model = booster(library, kind, **SETTINGS, **settings)
    if library == "catboost":
        package = pytest.importorskip(library)
        return model.fit(package.Pool(X, y, baseline=margins))
    keyword = {"lightgbm": "init_score", "xgboost": "base_margin"}[library]
    if library == "lightgbm" and np.ndim(margins) == 2:
        margins = margins.ravel(order="F")  # as LightGBM takes several classes
    return model.fit(X, y, **{keyword: margins})


def _check(model, seen, **settings):
    """Base, contributions and predictions, by each way to ask for them.

    The tolerance is that of margins in float32.
    """
    rows, own = X[:6], OFFSET[:6]
    seen = np.asarray(seen, float)
    result = po.explain(model, rows, data=X, base_margin=own, **settings)
    plain = po.explain(model, rows, data=X, **settings)
    assert result.prediction == pytest.approx(seen, abs=5e-6)
    sums = result.base_value + result.attributions.sum(axis=1)
    assert sums == pytest.approx(seen, abs=5e-6)
    assert np.array_equal(result.attributions, plain.attributions)
    assert np.array_equal(result.contributions, plain.contributions)
    assert np.abs(result.additivity_error).max() < 1e-9
    assert "base margin" in result.parameters
    assert result.sampling_excess == 0.0  # exact, from the trees
    table = po.Explainer(model, X, **settings).fit().transform(rows, base_margin=own)
    for name in ("base_value", "prediction"):
        assert np.array_equal(table[name], getattr(result, name))
    joint = po.explain(model, rows, base_margin=own, **settings)
    assert joint.prediction == pytest.approx(seen, abs=5e-6)


VALUES = 3.0 + X["age"] * X["power"]
THREE = np.digitize(VALUES, [2.5, 3.3])
MATRIX = np.stack([0.5 * OFFSET, OFFSET, np.zeros(80)], axis=1)
TRAINED = pytest.mark.parametrize("trained", [False, True], ids=["plain", "margins"])
LIBRARIES = pytest.mark.parametrize("library", sorted(QUIET))


@TRAINED
@LIBRARIES
def test_the_prediction_is_that_of_the_library(library, trained):
    """Of a regressor and of two classes, whose intercepts are not zero."""
    margins = OFFSET if trained else None
    regressor = _fitted(library, "Regressor", VALUES, margins)
    rows = X[:6]
    _check(regressor, margin_of(regressor, rows, OFFSET[:6]))
    classifier = _fitted(library, "Classifier", CLASS, margins)
    seen = margin_of(classifier, rows, OFFSET[:6])
    _check(classifier, seen)
    _check(classifier, -seen, target=0)


@TRAINED
@LIBRARIES
def test_one_of_several_classes_has_its_margins(library, trained):
    model = _fitted(library, "Classifier", THREE, MATRIX if trained else None)
    seen = np.asarray(margin_of(model, X[:6], MATRIX[:6]))
    _check(model, seen[:, 1], target=1)
    settings = {"target": 1, "output": "log_odds"}
    with pytest.raises(InvalidInput, match="give output='margin'"):
        po.explain(model, X[:6], data=X, base_margin=OFFSET[:6], **settings)


@TRAINED
@pytest.mark.parametrize("kind", ["squared", "logistic", "classes", "dart", "linear"])
def test_native_boosters_of_xgboost_replace_their_intercepts(kind, trained):
    xgboost = pytest.importorskip("xgboost")
    target, column = VALUES, None
    settings = {"max_depth": 3, "nthread": 1}
    if kind == "logistic":
        target, settings["objective"] = CLASS, "binary:logistic"
    elif kind == "classes":
        target, column = THREE, 1
        settings |= {"objective": "multi:softprob", "num_class": 3}
    elif kind == "dart":
        settings |= {"booster": "dart", "rate_drop": 0.5}
    elif kind == "linear":
        settings = {"booster": "gblinear", "nthread": 1, "objective": "binary:logistic"}
        target = CLASS
    offsets = OFFSET if column is None else MATRIX
    margins = offsets if trained else None
    table = xgboost.DMatrix(X, target, base_margin=margins)
    native = xgboost.train(settings, table, 6)
    rows = xgboost.DMatrix(X[:6], base_margin=offsets[:6])
    seen = native.predict(rows, output_margin=True)
    if kind != "linear":
        _check(native, seen if column is None else seen[:, column], target=column)
        return
    linear = po.explain(native, X[:6], data=X, base_margin=OFFSET[:6])
    assert linear.prediction == pytest.approx(seen, abs=5e-6)


def test_rankers_pipelines_saved_explainers_and_functions(tmp_path):
    rows, own = X[:6], OFFSET[:6]
    ranker = booster("xgboost", "Ranker", **SETTINGS).fit(
        X, CLASS, qid=np.arange(80) // 10
    )
    _check(ranker, ranker.predict(rows, base_margin=own))
    pipeline = make_pipeline(StandardScaler(), booster("xgboost", "Classifier"))
    pipeline.fit(X, CLASS)
    seen = pipeline.predict(rows, output_margin=True, base_margin=own)
    _check(pipeline, seen)
    po.Explainer(pipeline, X).fit().save(tmp_path / "e.npz")
    again = po.Explainer.load(tmp_path / "e.npz", pipeline)
    assert again.explain(rows, base_margin=own).prediction == pytest.approx(
        seen, abs=5e-6
    )
    function = po.wrap(pipeline, data=X)
    of_function = po.explain(function, rows, data=X, base_margin=own)
    assert of_function.prediction == pytest.approx(seen, abs=5e-6)


LINKS = [
    *(("catboost", name) for name in ("Poisson", "Tweedie:variance_power=1.5")),
    *(("lightgbm", name) for name in ("poisson", "gamma", "tweedie")),
    *(("xgboost", name) for name in ("count:poisson", "reg:gamma", "reg:tweedie")),
]


@TRAINED
@pytest.mark.parametrize(("library", "objective"), LINKS)
def test_the_advice_for_a_link_has_the_right_numbers(library, objective, trained):
    margins = OFFSET if trained else None
    positive = np.exp(0.3 * VALUES)
    keyword = "loss_function" if library == "catboost" else "objective"
    settings = {keyword: objective}
    model = _fitted(library, "Regressor", positive, margins, **settings)
    with pytest.raises(InvalidInput, match=r"; give output='margin'$"):
        po.explain(model, X[:6], data=X, base_margin=OFFSET[:6])
    _check(model, margin_of(model, X[:6], OFFSET[:6]), output="margin")


def test_labels_of_xgboost_have_their_own_intercepts():
    both = np.stack([CLASS, THREE > 1], axis=1)
    model = booster("xgboost", "Classifier", **SETTINGS).fit(X, both)
    given = np.stack([np.zeros(6), OFFSET[:6]], axis=1)
    p = model.predict_proba(X[:6], base_margin=given)[:, 1].astype(float)
    result = po.explain(model, X[:6], data=X, target=1, base_margin=OFFSET[:6])
    assert result.prediction == pytest.approx(np.log(p / (1.0 - p)), abs=1e-5)


def test_the_scale_of_a_sigmoid_counts():
    model = _fitted("lightgbm", "Classifier", CLASS, None, sigmoid=2.0)
    raw = model.predict(X[:6], raw_score=True) + OFFSET[:6]
    _check(model, 2.0 * raw, output="log_odds")
    _check(model, raw, output="margin")


def test_what_the_library_does_not_add_to_its_trees_is_refused():
    """XGBoost's estimators add it to each tree with dropout, its boosters once."""
    xgboost = pytest.importorskip("xgboost")
    settings = {"booster": "dart", "rate_drop": 0.5}
    model = _fitted("xgboost", "Regressor", VALUES, None, **settings)
    with pytest.raises(InvalidInput, match="base_margin: XGBRegressor"):
        po.explain(model, X[:6], data=X, base_margin=OFFSET[:6])
    native = model.get_booster()  # as the message advises
    rows = xgboost.DMatrix(X[:6], base_margin=OFFSET[:6])
    _check(native, native.predict(rows))


@LIBRARIES
def test_methods_of_models_are_refused(library):
    """The function cannot be asked for its link, nor for its intercept."""
    model = _fitted(library, "Regressor", VALUES, None)
    with pytest.raises(InvalidInput, match="give the fitted model itself"):
        po.explain(model.predict, X[:6], data=X, base_margin=OFFSET[:6])


def test_of_a_margin_with_a_link_by_a_function():
    model = PoissonRegressor().fit(X, COUNTS)

    def margin(rows):
        return np.log(model.predict(rows))

    result = po.explain(margin, X[:5], data=X, base_margin=OFFSET[:5])
    seen = np.log(model.predict(X[:5])) + OFFSET[:5]
    assert result.prediction == pytest.approx(seen, abs=1e-12)
    with pytest.raises(InvalidInput, match="a link such as exp"):
        po.explain(model, X[:5], data=X, base_margin=OFFSET[:5])


def test_a_series_is_put_in_the_order_of_rows():
    model = LogisticRegression().fit(X, CLASS)
    named = pd.Series(OFFSET, index=X.index)
    settings = {"data": X, "output": "log_odds"}
    one = po.explain(model, X[:6], base_margin=named[:6], **settings)
    other = po.explain(model, X[:6], base_margin=named[5::-1], **settings)
    assert np.array_equal(one.prediction, other.prediction)


class Counted:
    """A black-box regressor that counts the rows it predicts."""

    n_rows = 0

    def predict(self, X):
        self.n_rows += len(X)
        return np.asarray(X) @ [1.0, 2.0, 3.0]


class CountedClassifier(Counted):
    """The same with two classes."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        p = 1.0 / (1.0 + np.exp(-self.predict(X)))
        return np.stack([1.0 - p, p], axis=1)


@pytest.mark.parametrize("data", [None, X], ids=["jointly", "with data"])
@pytest.mark.parametrize(("line", "reason"), refusals(__file__, "base margins"))
def test_margins_are_refused_before_the_model_is_called(line, reason, data):
    model, settings = eval(line)
    with pytest.raises(InvalidInput, match=reason):
        po.explain(model, X[:20], data, **{"base_margin": OFFSET[:20], **settings})
    assert model.n_rows == 0
