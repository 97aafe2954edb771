"""What the data law says of trees does not depend on the library that grew them."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GridSearchCV
from tree_cases import X, Y

import propopt as po
from propopt.base.errors import InvalidInput


def by_the_data_law(function, data, rows=slice(30)):
    smooth = po.smoothed(function, law="data", data=data)
    return smooth.value(data[rows]), smooth.gradient(data[rows])


def moved(thresholds, columns, data, rng):
    """Each anywhere between the values of its column that it is between."""
    places = np.array(thresholds, dtype=np.float64)
    for i, j in enumerate(columns):
        atoms = np.unique(data[:, j])
        above = np.searchsorted(atoms, places[i], side="right")
        if 0 < above < len(atoms) and atoms[above - 1] < places[i]:
            low, high = atoms[above - 1], atoms[above]
            places[i] = low + (high - low) * rng.uniform(0.05, 0.95)
    return places


def moved_forest(forest, rng):
    for tree in forest.estimators_:
        nodes = tree.tree_
        inner = nodes.children_left >= 0
        cuts = moved(nodes.threshold[inner], nodes.feature[inner], X, rng)
        nodes.threshold[inner] = cuts
    return forest


def moved_histograms(model, rng):
    for predictor, *_ in model._predictors:  # noqa: SLF001
        nodes = predictor.nodes
        inner = nodes["is_leaf"] == 0
        cuts = moved(nodes["num_threshold"], nodes["feature_idx"], X, rng)
        nodes["num_threshold"][inner] = cuts[inner]
    return model


def moved_lightgbm(booster, rng):
    import lightgbm

    def move(tree):
        columns = np.array(tree["columns"].split(), dtype=int)
        cuts = moved(tree["cuts"].split(), columns, X, rng)
        return tree[0].replace(tree["cuts"], " ".join(map(repr, cuts.tolist())))

    pattern = r"split_feature=(?P<columns>.*)\n(?:.*\n)*?threshold=(?P<cuts>.*)\n"
    text = re.sub(pattern, move, booster.model_to_string())
    return lightgbm.Booster(model_str=re.sub(r"tree_sizes=.*\n", "", text))


def moved_xgboost(booster, rng):
    import xgboost

    model = json.loads(booster.save_raw("json"))
    for tree in model["learner"]["gradient_booster"]["model"]["trees"]:
        inner = np.array(tree["left_children"]) >= 0
        values = np.array(tree["split_conditions"], dtype=np.float32)
        columns = np.array(tree["split_indices"])[inner]
        # what is less goes left, in float32: the next of them above is as good
        single = X.astype(np.float32)
        cuts = moved(np.nextafter(values[inner], -np.inf), columns, single, rng)
        values[inner] = np.nextafter(cuts.astype(np.float32), np.inf)
        tree["split_conditions"] = values.tolist()
    return xgboost.Booster(model_file=bytearray(json.dumps(model).encode()))


def forest():
    return RandomForestRegressor(5, max_depth=6, random_state=0).fit(X, Y)


def histograms():
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(max_iter=20).fit(X, Y)


def lightgbm_booster():
    lightgbm = pytest.importorskip("lightgbm")
    return lightgbm.train({"verbose": -1}, lightgbm.Dataset(X, Y), 20)


def xgboost_booster():
    xgboost = pytest.importorskip("xgboost")
    return xgboost.train({}, xgboost.DMatrix(X, Y), 20)


@pytest.mark.parametrize(
    ("grow", "move"),
    [
        (forest, moved_forest),
        (histograms, moved_histograms),
        (lightgbm_booster, moved_lightgbm),
        (xgboost_booster, moved_xgboost),
    ],
    ids=lambda part: part.__name__,
)
def test_moving_splits_between_observed_values_changes_no_bit(grow, move):
    values, slopes = by_the_data_law(po.wrap(grow()), X)
    changed = po.wrap(move(grow(), np.random.default_rng(0)))
    assert not np.array_equal(changed.boxes.sets.high, po.wrap(grow()).boxes.sets.high)
    moved_values, moved_slopes = by_the_data_law(changed, X)
    np.testing.assert_array_equal(moved_values, values)
    np.testing.assert_array_equal(moved_slopes, slopes)


# ---- LightGBM keeps names with an underscore for each blank

BLANKS = ["Call  Failure", "Seconds of Use", "a"]


@pytest.mark.parametrize("searched", [False, True])
def test_columns_with_blanks_are_those_that_lightgbm_keeps(searched):
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 3)), columns=BLANKS)
    model = lightgbm.LGBMRegressor(n_estimators=8, verbose=-1)
    if searched:
        model = GridSearchCV(model, {"max_depth": [2]}, cv=2)
    model.fit(table, 2.0 * table[BLANKS[0]] - table[BLANKS[1]])
    assert list(model.feature_names_in_) == ["Call__Failure", "Seconds_of_Use", "a"]
    function = po.wrap(model)
    np.testing.assert_array_equal(function.value(table), model.predict(table))
    result = po.explain(function, table, data=table, robustness=0.1).to_frame()
    assert list(result.columns) == BLANKS
    told = po.explain(model, table, data=table, robustness=0.1)
    np.testing.assert_allclose(result, told.attributions, rtol=1e-9, atol=1e-12)
    for other in (
        table[BLANKS[::-1]],
        table.rename(columns={BLANKS[0]: "Call Failure"}),
        table.set_axis(["Call  Failure", "Call__Failure", "a"], axis=1),
    ):
        with pytest.raises(InvalidInput, match="columns"):
            function.value(other)
    # what the message says does it
    renamed = table.set_axis(list("xyz"), axis=1)
    with pytest.raises(InvalidInput, match=r"data=X\) hands it X's own, and a problem"):
        function.value(renamed)
    if not searched:  # which scikit-learn refuses itself
        own = po.wrap(model, data=renamed).value(renamed)
        np.testing.assert_array_equal(own, model.predict(table))
