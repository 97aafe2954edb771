"""Models of CatBoost with categories, read as they predict."""

import json

import numpy as np
import pandas as pd
import pytest
from coalitions import shapley_by_definition
from model_answers import is_read
from quiet_boosters import booster

import propopt as po
from propopt.base.errors import InexactBoxesWarning
from propopt.structures.boxes.boxes import Boxes


N = 400
CATEGORIES = ["job", "town", "code"]


def table(seed=0):
    """Numbers with gaps, few values, three kinds of categories, a constant."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=N).round(2)
    return pd.DataFrame(
        {
            "size": np.where(rng.random(N) < 0.1, np.nan, size),
            "count": rng.integers(0, 4, N),
            "job": rng.choice(list("xyz"), N),
            "town": pd.Categorical(rng.choice(list("pqrstuv"), N)),
            "code": rng.choice(["7", "3a", "11"], N),
            "same": np.ones(N),
        }
    )


X = table()
MATCH = X["town"].isin(["p", "r"]).to_numpy() & (X["job"] == "x") | (X["code"] == "7")
Y = X["size"].fillna(0.7) * X["count"] * MATCH + 2.0 * (X["job"] == "y") + 3.0 * MATCH
THREE = np.digitize(Y, [0.5, 2.5])
WHOLE = X.fillna({"size": 0.3})


def cat(kind="Regressor", target=Y, data=X, **settings):
    """A fitted model of CatBoost."""
    few = {"iterations": 40, "depth": 4, "cat_features": CATEGORIES, "random_seed": 0}
    return booster("catboost", kind, **{**few, **settings}).fit(data, target)


MARGIN = {"output": "margin"}
CASES = {
    "statistics and combinations": (cat, {}, {}),
    "no gaps": (cat, {"data": WHOLE}, {}),
    "one-hot": (cat, {"one_hot_max_size": 20}, {}),
    "counters": (cat, {"simple_ctr": "Counter", "combinations_ctr": "Counter"}, {}),
    "one tree": (cat, {"iterations": 1}, {}),
    "three classes": (
        cat,
        {"kind": "Classifier", "target": THREE},
        {**MARGIN, "target": 1},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_models_are_read_as_they_predict(name):
    fit, settings, output = CASES[name]
    data = settings.get("data", X)
    function = po.wrap(fit(**settings), data=data, **output)
    assert isinstance(is_read(function, data), Boxes)
    assert np.ptp(function.value(data)) > 0.1
    is_read(function, table(1))


def test_statistics_combine_categories_and_numbers(tmp_path):
    model, path = cat(depth=7, iterations=60, max_ctr_complexity=4), tmp_path / "m.json"
    model.save_model(str(path), format="json")
    statistics = json.loads(path.read_text())["features_info"]["ctrs"]
    parts = [json.loads(c["identifier"])["identifier"] for c in statistics]
    assert max(map(len, parts)) >= 3
    kinds = {element["combination_element"] for part in parts for element in part}
    assert {"cat_feature_value", "float_feature"} <= kinds
    is_read(po.wrap(model, data=X), X)


def test_categories_that_are_new():
    model = cat(data=X[X["job"] != "z"], target=Y[X["job"] != "z"])
    is_read(po.wrap(model, data=X), X)


def test_numbers_as_categories():
    """As codes of shops are, which are no quantities."""
    rows = X.assign(code=X["code"].map({"7": 7, "3a": 3, "11": 11}))
    model = cat(data=rows)
    assert po.wrap(model, data=rows).boxes is None  # of numbers there might be more
    schema = po.functions.TableSchema.of(rows, categorical=["code"])
    is_read(po.wrap(model, data=schema), rows)


OUTPUTS = {
    "log-odds": (
        cat,
        "log_odds",
        lambda model: lambda t: model.predict(t, prediction_type="RawFormulaVal"),
    ),
    "probability": (
        cat,
        "probability",
        lambda model: lambda t: model.predict_proba(t)[:, 1],
    ),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_contributions_are_those_of_all_coalitions(name):
    fit, output, answer = OUTPUTS[name]
    model = fit("Classifier", Y > 1)
    rows, background = X.iloc[[0, 3, 5]], X.iloc[40:52]
    best = po.explain(model, rows, data=background, output=output, robustness=0)
    truth = shapley_by_definition(answer(model), rows, background)
    assert best.sampling_excess == 0.0
    assert best.quantity.kind == output
    assert best.contributions == pytest.approx(truth, abs=1e-12)


def test_models_without_a_structure(monkeypatch):
    assert po.wrap(cat(grow_policy="Depthwise"), data=X).boxes is None
    limit = "propopt.structures.readers.catboost.MAX_LEAF_INDICES"
    monkeypatch.setattr(limit, 5)
    function = po.wrap(cat(), data=X)
    with pytest.warns(InexactBoxesWarning, match="combinations"):
        assert function.boxes is None
