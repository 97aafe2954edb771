"""Interaction values: all coalitions of four libraries, sums, names, and cards."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from coalitions import interactions_of, worths
from estimators import sk
from refusals import refusals

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.explainers import TreeInteractions, TreeShap
from propopt.laws import background


LEARNERS = {
    "sklearn": {"max_iter": 8, "categorical_features": "from_dtype"},
    "lightgbm": {"n_estimators": 12, "num_leaves": 12, "verbosity": -1},
    "xgboost": {"n_estimators": 8, "max_depth": 5, "enable_categorical": True},
    "catboost": {"iterations": 12, "depth": 5, "verbose": False},
}
CLASSES = {
    "sklearn": "HistGradientBoostingRegressor",
    "lightgbm": "LGBMRegressor",
    "xgboost": "XGBRegressor",
    "catboost": "CatBoostRegressor",
}


def random_case(library, seed):
    """A random model, and its table: missing numbers, categories where it has them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(400, 5)).round(1), columns=list("abcde"))
    y = X.a * X.b + X.c * (X.d > 0) + rng.normal(size=400) * 0.1
    X = X.mask(rng.random(X.shape) < rng.choice([0.0, 0.1]))
    colour = rng.integers(0, 4, 400)
    X["colour"] = pd.Categorical(np.array([*"rgbk"])[colour])
    y = y + (colour == rng.integers(0, 4)) * y + colour * X.e.fillna(2.0)
    package = sk if library == "sklearn" else pytest.importorskip(library)
    settings = LEARNERS[library]
    if library == "catboost":
        X["colour"] = X.colour.astype(str)
        settings = settings | {"cat_features": ["colour"], "one_hot_max_size": 6}
    return getattr(package, CLASSES[library])(**settings).fit(X, y), X


@pytest.mark.sampled(8)
@pytest.mark.parametrize("library", LEARNERS)
@pytest.mark.parametrize("seed", range(25))
def test_pairs_are_those_of_all_coalitions(library, seed):
    model, X = random_case(library, seed)
    function = po.wrap(model, data=X)
    data, rows = X[:20], X[200:203]
    found = TreeInteractions(data=data).explain(function, rows)
    points, others = (function.read(part)[0] for part in (rows, data))
    # XGBoost adds up in single precision, and the sum of its trees is as exact as ours
    f = function.boxes.value if library == "xgboost" else function.value_at
    worth = worths(f, points, others)
    wanted = interactions_of(worth, 2)
    size = np.abs(wanted).max()
    assert size > 0.05
    np.testing.assert_allclose(found.pairs, wanted, rtol=0, atol=1e-12 * size)
    phi = TreeShap(data=data).explain(function, rows)
    np.testing.assert_allclose(found.contributions, phi.attributions, atol=1e-12 * size)
    np.testing.assert_array_equal(found.prediction, phi.prediction)
    assert found.labels.features == tuple(X)


def test_each_class_has_interaction_values():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)), columns=[*"abc"])
    y = np.digitize(X.a * X.b + X.c, [-0.5, 0.5])
    model = pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=5, verbosity=-1)
    model.fit(X, y)
    sums = 0.0
    for target in range(3):
        function = po.wrap(model, data=X, output="margin", target=target)
        found = TreeInteractions(data=X).explain(function, X[:4])
        worth = worths(function.value_at, X[:4].to_numpy(), X.to_numpy())
        np.testing.assert_allclose(found.pairs, interactions_of(worth, 2), atol=1e-12)
        sums = sums + np.abs(found.pairs)
    assert sums.max() > 0.1


# ---- numbers that follow: the additive part of x₀x₁ + x₂ is that of x₂

N = 200
RNG = np.random.default_rng(1)
X = pd.DataFrame(RNG.choice([0.0, 1.0], (N, 3)), columns=["a", "b", "c"])
X.index = [f"row {n}" for n in range(N)]
MODEL = sk.DecisionTreeRegressor().fit(X, X.a * X.b + X.c)
EVEN = pd.DataFrame(np.indices((2, 2, 2)).reshape(3, -1).T * 1.0, columns=[*X])


def explained(data=EVEN, rows=X[:20]):
    return TreeInteractions(data=data).explain(po.wrap(MODEL, data=X), rows)


def test_an_interaction_of_two_switches_is_as_by_hand():
    found = explained()
    sign = (2.0 * X[:20] - 1.0).to_numpy()  # x₀x₁ = (1 + s₀)(1 + s₁)/4
    pair = sign[:, 0] * sign[:, 1] / 4.0
    wanted = np.zeros((20, 3, 3))
    wanted[:, 0, 1] = wanted[:, 1, 0] = pair
    np.testing.assert_allclose(found.pairs, wanted, atol=1e-15)
    phi = np.column_stack([sign[:, :2] / 4.0 + pair[:, None] / 2.0, sign[:, 2] / 2.0])
    np.testing.assert_allclose(found.contributions, phi, atol=1e-15)
    total = found.prediction - found.base_value
    np.testing.assert_allclose(found.values.sum(axis=(1, 2)), total, atol=1e-15)
    np.testing.assert_allclose(found.from_pairs, [1 / 3, 1 / 3, 0.0], atol=1e-12)
    table = found.to_frame()
    assert table.loc[0, ["feature", "with"]].tolist() == ["a", "b"]
    np.testing.assert_allclose(table.mean_size, [0.25, 0, 0], atol=1e-12)
    share = 1 / 16 / (1 / 16 + 2 / 16 + 1 / 4)
    np.testing.assert_allclose(table.share_of_squares, [share, 0, 0], atol=1e-12)
    assert "14%" in str(found)


def test_heat_maps_are_of_a_row_or_of_all():
    found = explained()
    image = found.plot(n_features=2).images[0].get_array()
    alone = np.abs(found.values[:, 2, 2]).mean()
    np.testing.assert_allclose(image, [[alone, 0.0], [0.0, 0.25]], atol=1e-12)
    row = found.plot("row 7").images[0].get_array()
    assert row.sum() == pytest.approx(found.values[7].sum())


@pytest.mark.parametrize("data", [X, X[:150]], ids=["whole", "some"])
@pytest.mark.parametrize("groups", [None, {"both": ["a", "c"]}])
def test_explanations_know_what_comes_from_pairs(data, groups):
    best = po.explain(MODEL, X[:20], data=data, groups=groups)
    found = best.interactions()
    np.testing.assert_allclose(found.contributions, best.contributions, atol=1e-14)
    assert found.labels == best.labels
    assert found.quantity == best.quantity
    if groups is None:
        direct = explained(data)
        np.testing.assert_allclose(found.values, direct.values, atol=1e-15)
    some = best[3:5].interactions()
    np.testing.assert_array_equal(some.values, found.values[3:5])
    assert some.labels.points == ("row 3", "row 4")


def test_drawn_backgrounds_are_those_of_the_explanation(monkeypatch):
    monkeypatch.setattr(background, "MOST_TREE_ROWS", 1_000)
    rows = pd.DataFrame(RNG.normal(size=(12_000, 3)), columns=[*"abc"])
    model = sk.DecisionTreeRegressor(max_depth=4).fit(rows, rows.a * rows.b)
    best = po.explain(model, rows[:5], data=rows)
    found = best.interactions()
    assert "1,000 draws of 12,000" in found.background
    np.testing.assert_allclose(found.contributions, best.contributions, atol=1e-12)


def test_without_a_background_values_are_those_of_shap():
    shap = pytest.importorskip("shap")
    theirs = shap.TreeExplainer(MODEL).shap_interaction_values(X[:20])
    found = explained(None)
    np.testing.assert_allclose(found.values, theirs, atol=1e-12)
    assert "training rows" in found.background


def saved_and_loaded(tmp_path):
    best = po.explain(MODEL, X[:20], data=X)
    best.save(tmp_path / "best.npz")
    return po.results.Explanation.load(tmp_path / "best.npz")


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "interactions"))
def test_what_has_no_interaction_values_is_refused(line, message, tmp_path):
    with pytest.raises(InvalidInput, match=message):
        eval(line, globals() | {"tmp_path": tmp_path})


def test_a_row_in_which_trees_differ_from_the_model_is_named():
    function = po.wrap(MODEL, data=X)
    found = explained()
    wrong = found.prediction.copy()
    wrong[7] += 0.01
    with pytest.raises(InvalidInput, match=r"those of row 'row 7' add up to"):
        replace(found, prediction=wrong).validate()
    tree = function.boxes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(function), "boxes", tree.plus(0.1))
        with (
            pytest.warns(po.errors.InexactBoxesWarning),
            pytest.raises(InvalidInput, match=r"in row 'row \d+' of those compared"),
        ):
            TreeInteractions(data=EVEN).explain(function, X[:20])
