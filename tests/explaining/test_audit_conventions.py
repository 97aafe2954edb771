"""Conventions of libraries in an audit: shapes, averages, links, unknown levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from library_margins import contributions_of
from quiet_boosters import booster
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import propopt as po
from propopt.base.errors import InvalidInput


RNG = np.random.default_rng(15)
X = pd.DataFrame(RNG.normal(size=(300, 4)), columns=["hours", "age", "gain", "loss"])
SCORE = 0.5 + X.hours * X.age + X.gain
CLASS = (SCORE + RNG.normal(size=300) > 0.0).astype(int)
FOUR = np.digitize(SCORE, [-0.5, 0.5, 1.5])
DATA = X[50:90]


def _boosted(library: str, **settings: Any) -> Any:
    depth = {"max_depth": 3} if library == "xgboost" else {}
    return booster(library, "Classifier", n_estimators=8, **depth, **settings)


@pytest.mark.parametrize("n_rows", [4, 5, 9])
@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_as_many_classes_as_columns(library: str, n_rows: int) -> None:
    """A wrong axis would not add up to the margin of the class."""
    model, rows = _boosted(library).fit(X, FOUR), X[:n_rows]
    phi = np.asarray(contributions_of(model, rows), float)
    native = None
    if library != "catboost":
        native = model.booster_ if library == "lightgbm" else model.get_booster()
    three = phi.reshape(n_rows, 4, 5)
    for k in (0, 3):
        forms: list[Any] = [
            phi,
            three,
            three[:, :, :-1].transpose(0, 2, 1),
            [three[:, j, :-1] for j in range(4)],
            three[:, k],
        ]
        for explained in (model, native):
            for values in forms if explained is not None else ():
                audit = po.audit(
                    values, explained, rows, data=DATA, target=k, output="margin"
                )
                assert audit["row sums"].verdict == "exact"
                assert audit["values"].cause == "path-dependent"


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "scikit-learn"])
def test_paths_of_either_class(library: str) -> None:
    model: Any = GradientBoostingClassifier(n_estimators=8, random_state=0)
    if library != "scikit-learn":
        model = _boosted(library)
    model.fit(X, CLASS)
    shap = pytest.importorskip("shap")
    phi = shap.TreeExplainer(model)(X[:12]).values.reshape(12, 4, -1)[..., -1]
    for target, values in ((1, phi), (0, -phi)):
        how = {"data": DATA, "target": target, "output": "log_odds"}
        assert po.audit(values, model, X[:12], **how)["values"].cause == (
            "path-dependent"
        )


def test_paths_for_a_table_in_another_order() -> None:
    table = X.assign(age=pd.Categorical(np.where(X.age > 0.0, "old", "young")))
    model = booster("lightgbm", n_estimators=8).fit(table, SCORE)
    phi = pd.DataFrame(model.predict(table[:12], pred_contrib=True)[:, :4])
    turned = table[[*table][::-1]]
    values = phi.set_axis(table.columns, axis=1)
    audit = po.audit(values, model, turned[:12], data=turned[50:90])
    assert audit["values"].cause == "path-dependent"


def test_as_many_columns_as_classes_but_one() -> None:
    """(N, D, K) and K = D + 1, where the other reading has a base in each row."""
    model = RandomForestClassifier(5, random_state=0).fit(X[["hours", "age"]], FOUR % 3)
    rows, data = X[:6][["hours", "age"]], DATA[["hours", "age"]]
    parts = [
        po.explainers.ExactShap(data=data)
        .explain(po.wrap(model, k, "probability", data=data), rows)
        .attributions
        for k in range(3)
    ]
    stacked = np.stack(parts, axis=2)
    assert stacked.shape == (6, 2, 3)
    for k in range(3):
        how = {"data": data, "target": k, "output": "probability"}
        audit = po.audit(stacked, model, rows, **how)
        assert audit["values"].verdict == "exact"


@pytest.mark.parametrize("output", ["log_odds", "margin"])
def test_sums_over_an_averaged_forest_are_no_reference(output: str) -> None:
    """LightGBM predicts the mean of the trees of a forest, and explains their sum."""
    settings = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}
    model = booster("lightgbm", "Classifier", n_estimators=10, **settings).fit(X, CLASS)
    rows = X[:20]
    phi = model.predict(rows, pred_contrib=True)
    p = model.predict_proba(rows)[:, 1]
    odds = np.log(p / (1.0 - p))
    assert phi.sum(axis=1) == pytest.approx(10.0 * odds)
    audit = po.audit(phi, model, rows, data=DATA, output=output)
    assert audit["row sums"].verdict == "wrong"
    assert audit["values"].verdict == "wrong"
    assert audit["values"].cause == "a constant factor"
    assert audit.explanation.prediction == pytest.approx(odds)
    mended = po.audit(phi / 10.0, model, rows, data=DATA, output="log_odds")
    assert mended["row sums"].verdict == "exact"


@pytest.mark.parametrize("n_background", [40, 130])
@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "scikit-learn"])
def test_log_odds_that_shap_rescales_to_probabilities(
    library: str, n_background: int
) -> None:
    shap = pytest.importorskip("shap")
    model: Any = GradientBoostingClassifier(n_estimators=20)
    if library != "scikit-learn":
        model = _boosted(library)
    model.fit(X, CLASS)
    rows, data = X[100:115], X[100 : 100 + n_background]  # each against itself, too
    explainer = shap.TreeExplainer(model, data, model_output="probability")
    values = explainer(rows).values
    values = values if values.ndim == 2 else values[..., 1]
    audit = po.audit(values, model, rows, data=data, output="probability")
    assert audit["row sums"].verdict == "exact"
    assert audit["values"].cause == "rescaled log-odds"
    assert audit["values"].verdict == "exact"
    slip = values.copy()
    slip[3, 0] += 0.3
    found = po.audit(slip, model, rows, data=data, output="probability")["values"]
    assert (found.cause, found.source) == ("single slips", audit["values"].source)
    exact = po.explain(model, rows, data=data, output="probability").contributions
    assert np.abs(values - exact).max() > 1e-3  # they are other numbers
    if n_background > 100:  # an explanation takes fewer rows, and an audit all
        return
    right = po.audit(exact, model, rows, data=data, output="probability")
    assert right["values"].verdict == "exact"


def _levels() -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    table = pd.DataFrame(
        {"ward": RNG.choice(["ER", "ICU", "GP"], 120), "score": RNG.normal(size=120)}
    )
    part = table[table.ward != "ICU"]
    encoder = make_column_transformer(
        (OneHotEncoder(), ["ward"]), remainder="passthrough"
    )
    return encoder, table, part


@pytest.mark.parametrize("learner", [RandomForestRegressor(5), Ridge()], ids=str)
def test_a_level_of_data_that_the_model_refuses(learner: Any) -> None:
    encoder, table, part = _levels()
    model = make_pipeline(encoder, learner).fit(part, part.score)
    with pytest.raises(InvalidInput, match="unknown categor") as refused:
        po.audit(np.zeros((12, 2)), model, part[:12], data=table)
    assert "the one that it was fitted on" in str(refused.value)
    po.audit(np.zeros((12, 2)), model, part[:12], data=part)  # the advice


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_output_and_class_are_asked_in_one_message(library: str) -> None:
    model, rows = _boosted(library).fit(X, FOUR), X[:8]
    phi = contributions_of(model, rows)
    booster = model.booster_ if library == "lightgbm" else model.get_booster()
    for explained in (model, booster):
        with pytest.raises(InvalidInput) as asked:
            po.audit(phi, explained, rows, data=DATA)
        assert "output=" in str(asked.value)
        assert "target" in str(asked.value)
        assert "'margin'" in str(asked.value)
        po.audit(phi, explained, rows, data=DATA, output="margin", target=3)
