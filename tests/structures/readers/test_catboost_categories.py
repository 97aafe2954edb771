"""CatBoost's splits by categories, one by one and combined, are read as it predicts."""

import json
from dataclasses import replace

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
CATEGORIES = ["job", "town", "code", "flag"]


def table(rng=0):
    rng = np.random.default_rng(rng)
    return pd.DataFrame(
        {
            "size": rng.normal(size=N),
            "job": rng.choice(list("xyz"), N),
            "town": pd.Categorical(rng.choice(list("pqrstuv"), N)),
            "age": rng.normal(size=N).round(1),
            "code": rng.choice(["7", "3a", "11"], N),
            "flag": rng.choice(["m", "f"], N),
        }
    )


X = table()
MATCH = X["town"].isin(["p", "r"]).to_numpy() & (X["job"] == "x") | (X["flag"] == "m")
Y = X["size"] * MATCH + 2.0 * (X["code"] == "7") * (X["age"] > 0) + 3.0 * MATCH
THREE = np.digitize(Y, [0.5, 2.5])
GAPS = X.assign(age=X["age"].mask(X.index % 6 == 0))


def fitted(kind="Regressor", target=Y, data=X, **settings):
    few = {"iterations": 40, "depth": 4, "cat_features": CATEGORIES, "random_seed": 0}
    return booster("catboost", kind, **{**few, **settings}).fit(data, target)


def combinations(model, path):
    """How many columns statistics of the model combine at most, and kinds of parts."""
    model.save_model(str(path / "model.json"), format="json")
    saved = json.loads((path / "model.json").read_text())
    known = [c["identifier"] for c in saved["features_info"].get("ctrs", [])]
    parts = [json.loads(own)["identifier"] for own in known]
    kinds = {part["combination_element"] for own in parts for part in own}
    return max(map(len, parts), default=0), kinds


SETTINGS = {
    "statistics and combinations": {},
    "deep": {"depth": 7, "iterations": 60},
    "one-hot": {"one_hot_max_size": 20},
    "single columns": {"max_ctr_complexity": 1},
    "ordered": {"boosting_type": "Ordered"},
    "counters": {"simple_ctr": "Counter", "combinations_ctr": "Counter"},
    "one tree": {"iterations": 1},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("data", [X, GAPS], ids=["whole", "gaps"])
def test_it_is_read_as_it_predicts(name, data):
    model = fitted(data=data, **SETTINGS[name])
    function = po.wrap(model, data=data)
    read = is_read(function, data)
    assert isinstance(read, Boxes)
    is_read(function, table(1))
    points, _ = function.read(data)
    other = replace(read, values=1.001 * read.values)
    assert np.abs(other.value(points) - function.value(data)).max() > 1e-5


def test_statistics_are_of_combinations_of_categories_and_numbers(tmp_path):
    model = fitted(depth=7, iterations=60, max_ctr_complexity=4)
    most, kinds = combinations(model, tmp_path)
    assert most >= 3
    assert {"cat_feature_value", "float_feature"} <= kinds
    is_read(po.wrap(model, data=X), X)


@pytest.mark.parametrize("target", [0, 1, 2])
def test_each_class_has_its_own_trees(target):
    model = fitted("Classifier", THREE)
    is_read(po.wrap(model, target=target, output="margin", data=X), X)


def test_a_category_that_it_has_not_seen():
    seen = X["job"] != "z"
    model = fitted(data=X[seen], target=Y[seen])
    is_read(po.wrap(model, data=X), X)


def test_whole_numbers_that_are_declared_to_be_categories():
    rows = X.assign(code=X["code"].map({"7": 7, "3a": 3, "11": 11}))
    model = fitted(data=rows)
    assert po.wrap(model, data=rows).boxes is None  # of numbers there might be more
    schema = po.functions.TableSchema.of(rows, categorical=["code"])
    is_read(po.wrap(model, data=schema), rows)


def test_contributions_are_those_of_all_coalitions():
    model = fitted("Classifier", Y > 1)
    rows, background = X.iloc[:3], X.iloc[50:60]
    for output, f in (
        ("log_odds", lambda t: model.predict(t, prediction_type="RawFormulaVal")),
        ("probability", lambda t: model.predict_proba(t)[:, 1]),
    ):
        found = po.explain(model, rows, data=background, output=output, robustness=0)
        truth = shapley_by_definition(f, rows, background)
        assert found.target_error == 0.0
        assert found.contributions == pytest.approx(truth, abs=1e-12)


def test_trees_of_other_shapes_and_too_many_combinations_are_not_read(monkeypatch):
    deep = fitted(grow_policy="Depthwise")
    assert po.wrap(deep, data=X).boxes is None
    place = "propopt.structures.readers.catboost.MAX_LEAF_INDICES"
    monkeypatch.setattr(place, 5)
    function = po.wrap(fitted(), data=X)
    with pytest.warns(InexactBoxesWarning, match="combinations"):
        assert function.boxes is None
