"""Smoothed functions: closed forms, calibrated errors, forests, tables, memory.

A bound of 4.5 standard errors is passed by chance in one of 1.5e5 draws; with at most
100 entries in a test the probability of a false alarm is below 1e-3, and as the seeds
are fixed it happens never or always.
"""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from differentiated import central_differences
from hypothesis import given
from hypothesis import strategies as st
from random_trees import boxes_of_trees
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor
from smoothed_formulas import LIMITS

import propopt as po
from propopt.base import resources
from propopt.base.errors import InvalidInput, Refused
from propopt.base.resources import Budget
from propopt.functions import Power
from propopt.functions.formulas import PaperFormula
from propopt.laws.data_law import Means, NoiseLaw
from propopt.structures.boxes.sets import Tree


Z = 4.5
X = np.random.default_rng(11).normal(size=(12, 3))


def assert_within_errors(function, points, expected):
    z = (function.gradient(points) - expected) / function.gradient_error(points)
    assert np.abs(z).max() < Z


@pytest.mark.parametrize(("function", "limit"), LIMITS.values(), ids=LIMITS)
def test_gradients_of_smoothed_formulas_are_their_closed_forms(function, limit):
    smooth = po.smoothed(function, scale=0.4, n_samples=1000)
    assert_within_errors(smooth, X, limit(X, 0.4))


def test_the_gradient_of_a_smoothed_cube_has_the_variance_of_the_noise_in_it():
    smooth = po.smoothed(Power(3), scale=0.7, n_samples=2000)
    assert_within_errors(smooth, X, 3 * X**2 + 3 * 0.7**2)


@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_the_gradient_of_a_smoothed_stump_is_a_normal_density(scale):
    stump = DecisionTreeRegressor(max_depth=1).fit([[0.0], [1.0]], [0.0, 1.0])
    threshold = stump.tree_.threshold[0]
    points = threshold + scale * np.linspace(-2, 2, 9)[:, None]
    expected = norm.pdf((points - threshold) / scale) / scale
    # what is called is sampled, what is read is exact
    called = po.smoothed(po.wrap(lambda P: stump.predict(P)), scale, n_samples=4000)
    assert_within_errors(called, points, expected)
    exact = po.smoothed(po.wrap(stump), scale)
    # scikit-learn compares in single precision
    np.testing.assert_allclose(exact.gradient(points), expected, rtol=1e-6)


def test_values_are_means_over_the_noise():
    smooth = po.smoothed(Power(3), scale=0.5, n_samples=4000)
    # f_δ = Σ x³ + 3 δ² x; of an antithetic pair 3x δ²(ε² − 1) is left, variance 2·9x²δ⁴
    expected = (X**3 + 3 * 0.25 * X).sum(axis=1)
    error = np.sqrt(2 * 9 * 0.5**4 * (X**2).sum(axis=1) / 4000)
    assert (np.abs(smooth.value(X) - expected) / error).max() < Z


def test_each_feature_has_a_scale_of_its_own():
    scale = np.array([0.1, 0.5, 2.0])
    smooth = po.smoothed(Power(3), scale, n_samples=2000)
    assert_within_errors(smooth, X, 3 * X**2 + 3 * scale**2)


def test_the_standard_errors_cover_the_truth():
    truth = np.exp(X + 0.5**2 / 2)
    covered = []
    for seed in range(100):
        smooth = po.smoothed(PaperFormula("exponential"), 0.5, n_samples=100, rng=seed)
        error = np.abs(smooth.gradient(X) - truth)
        covered.append((error < norm.ppf(0.975) * smooth.gradient_error(X)).mean())
    # seeds are independent, points of one seed are not: the spread over seeds tells
    z = (np.mean(covered) - 0.95) / (np.std(covered) / 10)
    assert abs(z) < Z
    assert 0.90 < np.mean(covered) < 0.99


@given(st.integers(0, 1000))
def test_linear_functions_have_no_error(seed):
    w = np.random.default_rng(seed).normal(size=3)
    smooth = po.smoothed(po.wrap(lambda P: P @ w + 2.0), 0.3, 6, rng=seed)
    np.testing.assert_allclose(smooth.gradient(X), np.tile(w, (12, 1)), rtol=1e-9)
    np.testing.assert_allclose(smooth.gradient_error(X), 0.0, atol=1e-12)


def test_the_gradient_is_that_of_the_smoothed_values():
    # in as many pairs as this the two estimates, which share their draws, are one
    smooth = po.smoothed(PaperFormula("exponential"), 0.3, n_samples=20_000)
    differences = central_differences(smooth.value, X[:3], 1e-3)
    np.testing.assert_allclose(smooth.gradient(X[:3]), differences, rtol=0.03)


def test_a_smoothed_forest_has_the_slopes_of_the_truth(rng):
    points = rng.uniform(-1, 1, size=(800, 3))
    y = 3.0 * points[:, 0] - 2.0 * points[:, 1]
    forest = RandomForestRegressor(30, random_state=0).fit(points, y)
    smooth = po.smoothed(po.wrap(forest), 0.3)
    inner = rng.uniform(-0.5, 0.5, size=(10, 3))
    gradient = smooth.gradient(inner)
    assert (gradient[:, 0] > 1.0).all()
    assert (gradient[:, 1] < -0.5).all()
    assert np.abs(gradient[:, 2]).max() < 0.5


def test_fewer_samples_have_larger_errors():
    few = po.smoothed(Power(3), 0.5, 100).gradient_error(X).mean()
    many = po.smoothed(Power(3), 0.5, 10_000).gradient_error(X).mean()
    assert 7 < few / many < 14


def test_results_depend_on_the_seed_and_on_nothing_else():
    smooth = po.smoothed(PaperFormula("exponential"), 0.5, 50, rng=3)
    again = po.smoothed(PaperFormula("exponential"), 0.5, 50, rng=3)
    other = po.smoothed(PaperFormula("exponential"), 0.5, 50, rng=4)
    np.testing.assert_array_equal(smooth.gradient(X), smooth.gradient(X))
    np.testing.assert_array_equal(smooth.gradient(X), again.gradient(X))
    np.testing.assert_allclose(smooth.gradient(X)[3:5], smooth.gradient(X[3:5]))
    assert (smooth.gradient(X) != other.gradient(X)).all()
    generator = np.random.default_rng(0)
    first, second = (po.smoothed(Power(3), 0.5, 50, rng=generator) for _ in range(2))
    assert first.seed != second.seed
    copy = pickle.loads(pickle.dumps(smooth))
    np.testing.assert_array_equal(copy.gradient(X), smooth.gradient(X))


def test_models_are_called_in_tables_of_bounded_size(monkeypatch):
    rows = []

    def model(points):
        rows.append(len(points))
        return np.exp(points).sum(axis=1)

    smooth = po.smoothed(po.wrap(model), 0.5, n_samples=30)
    gradient, value = smooth.gradient(X), smooth.value(X)
    assert rows == [2 * 30 * 12, 3, 3, 2 * 30 * 12]
    assert smooth.calls.rows + smooth.calls.trials == sum(rows)
    monkeypatch.setattr(resources, "MODEL_CALLS", Budget(2**25, 100))
    rows.clear()
    np.testing.assert_allclose(smooth.gradient(X), gradient)
    np.testing.assert_allclose(smooth.value(X), value)
    assert max(rows) <= 100
    assert sum(rows) == 4 * 30 * 12


def test_names_are_kept_and_seen_by_the_model():
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=list("pqrstuvwxyzä"))
    smooth = po.smoothed(po.wrap(lambda table: table["a"] * table["c"]), 0.1)
    gradient, error = smooth.gradient(frame), smooth.gradient_error(frame)
    for table in (gradient, error):
        assert table.index.equals(frame.index)
        assert table.columns.equals(frame.columns)
    # the odd part of a product is linear, so that nothing is left to chance
    expected = np.stack([X[:, 2], np.zeros(12), X[:, 0]], axis=1)
    np.testing.assert_allclose(gradient, expected, atol=1e-9)


def test_matching_the_changes_is_matching_the_smoothed_gradient():
    smooth = po.smoothed(PaperFormula("exponential"), 0.5, n_samples=40)
    changes = smooth.changes(X)
    assert changes.values.shape == (12, 80)
    assert changes.perturbations.shape == (12, 80, 3)
    moved = X[:, None] + changes.perturbations
    expected = np.exp(moved).sum(axis=2) - np.exp(X).sum(axis=1)[:, None]
    np.testing.assert_allclose(changes.values, expected, rtol=1e-9, atol=1e-12)
    loss = po.FunctionMatching(X, changes.values, perturbations=changes.perturbations)
    best = po.solve(loss).attributions
    np.testing.assert_allclose(best, smooth.gradient(X), rtol=1e-6)


def test_changes_that_do_not_fit_into_memory_are_refused():
    smooth = po.smoothed(Power(1), 0.5, n_samples=10**12)
    with pytest.raises(Refused, match="GiB"):
        smooth.changes(X)


@pytest.fixture
def mixed(rng):
    """A table with a categorical column, and a model that is linear in indicators."""
    table = pd.DataFrame(
        {
            "size": rng.normal(size=60),
            "colour": rng.choice(["red", "blue", "green"], 60),
        }
    )
    worth = table["colour"].map({"red": 1.0, "blue": -2.0, "green": 0.5})
    encode = make_column_transformer(
        (OneHotEncoder(), ["colour"]), remainder="passthrough"
    )
    model = make_pipeline(encode, LinearRegression())
    return table, worth, model.fit(table, 3.0 * table["size"] + worth)


def test_categories_have_effects_and_get_no_noise(mixed):
    table, worth, model = mixed
    called = po.wrap(model.predict, data=table)
    smooth = po.smoothed(called, 0.5, n_samples=20)
    gradient = smooth.gradient(table)
    np.testing.assert_allclose(gradient["size"], 3.0)
    np.testing.assert_allclose(gradient["colour"], worth - worth.mean(), atol=1e-9)
    np.testing.assert_allclose(smooth.gradient_error(table), 0.0, atol=1e-9)
    assert not smooth.changes(table).perturbations[:, :, 1].any()
    assert "of a category" in smooth.gradient_method


@pytest.mark.parametrize("law", [{"scale": 0.5}, {"law": "data"}])
def test_codes_that_no_row_has_are_no_part_of_effects(mixed, law):
    """Of a missing colour the encoder knows nothing: its factors are NaN there."""
    table, worth, model = mixed
    smooth = po.smoothed(po.wrap(model, data=table), data=table, **law)
    assert smooth.estimate(table).source == "exact (products)"
    gradient = smooth.gradient(table)
    np.testing.assert_allclose(gradient["size"], 3.0, rtol=1e-12)
    np.testing.assert_allclose(gradient["colour"], worth - worth.mean(), atol=1e-12)


def test_effects_of_categories_are_averaged_over_the_noise(mixed):
    table, _, _ = mixed
    share = (table["colour"] == "red").mean()

    def model(frame):
        return (frame["size"] > 0) * (frame["colour"] == "red")

    smooth = po.smoothed(po.wrap(model, data=table), 0.5, n_samples=2000)
    near = table[table["size"].abs() < 1.0]  # where both outcomes are frequent
    # E 1[size + δε > 0] = Φ(size/δ)
    expected = norm.cdf(near["size"] / 0.5) * ((near["colour"] == "red") - share)
    error = smooth.gradient(near)["colour"] - expected
    assert (error / smooth.gradient_error(near)["colour"]).abs().max() < Z


@pytest.mark.parametrize("read", [True, False])
def test_a_column_without_noise_stays_as_it_is(read):
    """Then the others have the law of the table without it, at that value."""
    X = np.random.default_rng(0).uniform(-1, 1, (80, 3))
    X[:, 1] = X[:, 1] > 0.0
    forest = RandomForestRegressor(5, random_state=0, max_depth=4)
    forest.fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    still = np.array([0.5, 0.0, 0.3])
    model = forest if read else lambda Z: forest.predict(Z)
    result = po.smoothed(po.wrap(model), still)
    for value in (0.0, 0.5, 1.0):  # on the split between both, too
        rows = X[:5].copy()
        rows[:, 1] = value

        def without(Z, value=value):
            return forest.predict(np.insert(Z, 1, value, axis=1))

        alone = po.smoothed(po.wrap(without), still[[0, 2]], n_samples=40_000)
        error = result.gradient(rows)[:, [0, 2]] - alone.gradient(rows[:, [0, 2]])
        own, other = (
            f.gradient_error(x) for f, x in ((result, rows), (alone, rows[:, [0, 2]]))
        )
        z = error / np.hypot(own[:, [0, 2]], other)
        assert np.abs(z).max() < Z
    np.testing.assert_array_equal(result.gradient(X[:5])[:, 1], 0.0)


def test_without_noise_the_mean_of_boxes_is_their_value():
    step = Tree.of([0, -1, -1], [0, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 1])
    means = Means(boxes_of_trees([step], n_columns=1), NoiseLaw(np.zeros(1), (None,)))
    values, slopes = means.of(np.array([[-1.0], [0.0], [1e-300], [2.0]]))
    np.testing.assert_array_equal(values, [0.0, 0.0, 1.0, 1.0])
    np.testing.assert_array_equal(slopes, 0.0)


def test_the_method_is_named():
    smooth = po.smoothed(Power(3), 0.5)
    method = "Stein's identity over antithetic pairs, scale=0.5, n_samples=500"
    assert smooth.gradient_method == method
    assert repr(smooth) == "SmoothedFunction(Power(degree=3), scale=0.5, n_samples=500)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scale": 0.0}, "scale: expected numbers > 0"),
        ({"scale": [0.0, 0.0]}, "scale: expected numbers > 0"),
        ({"scale": [1.0, -1.0]}, "scale: expected numbers > 0"),
        ({"scale": [[1.0]]}, "scale: expected 1 dimensions"),
        ({"scale": "wide"}, "scale: expected numbers"),
        ({"scale": 1.0, "n_samples": 1}, "n_samples: expected at least 2"),
        ({"scale": 1.0, "n_samples": 2.5}, "n_samples: expected an integer"),
        ({"scale": 1.0, "rng": -1}, "rng"),
        ({"scale": 1.0, "rng": True}, "rng"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        po.smoothed(Power(3), **arguments)


def test_what_is_no_function_is_refused():
    with pytest.raises(InvalidInput, match=r"propopt\.wrap"):
        po.smoothed(np.sin, 0.5)


def test_scales_of_another_table_are_refused():
    with pytest.raises(InvalidInput, match="scale: expected one number, or 3"):
        po.smoothed(Power(3), [1.0, 2.0]).value(X)


def test_pairs_that_are_too_few_for_the_features_are_refused():
    with pytest.raises(InvalidInput, match=r"5 pairs are too few.*give at least 6"):
        po.smoothed(Power(3), 1.0, n_samples=5).gradient(X)


def test_values_that_are_not_finite_are_said_to_be_at_perturbed_points():
    function = po.wrap(lambda P: np.where(np.abs(P[:, 0]) > 5.0, np.inf, P[:, 0]))
    smooth = po.smoothed(function, 10.0, n_samples=20)
    with pytest.raises(InvalidInput, match=r"at perturbed points.*not finite"):
        smooth.gradient(X)


def test_forests_inside_other_models_are_flat_too(rng):
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    X = rng.normal(size=(60, 2))
    calibrated = CalibratedClassifierCV(RandomForestClassifier(3), cv=2)
    transformed = TransformedTargetRegressor(RandomForestRegressor(3))
    assert po.wrap(calibrated.fit(X, X[:, 0] > 0)).piecewise_constant
    assert po.wrap(transformed.fit(X, X[:, 0])).piecewise_constant


def test_linear_boosters_of_xgboost_have_slopes_in_single_precision(rng):
    xgboost = pytest.importorskip("xgboost")
    X = rng.normal(size=(80, 3)) * [1.0, 10.0, 100.0]
    model = xgboost.XGBRegressor(booster="gblinear", n_estimators=50)
    model.fit(X, X @ [1.0, 0.2, -0.01])
    G = po.wrap(model).gradient(X)
    np.testing.assert_allclose(G, np.tile(model.coef_, (80, 1)), rtol=1e-3, atol=1e-4)
