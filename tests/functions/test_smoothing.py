"""Smoothed functions: closed forms, calibrated errors, blocks of draws, tables, memory.

A bound of 4.5 standard errors is passed by chance in one of 1.5e5 draws; with at most
120 entries in a test the probability of a false alarm is below 1e-3, and as the seeds
are fixed it happens never or always.
"""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusals
from scipy.stats import norm, t
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.functions import PAPER_FUNCTIONS, Power, Sine
from propopt.functions.formulas import PaperFormula


LIMITS = {
    "x³": (Power(3), lambda x, d: 3 * x**2 + 3 * d**2),
    "sin x": (Sine(), lambda x, d: np.cos(x) * np.exp(-(d**2) / 2)),
    "eˣ": (PAPER_FUNCTIONS["exponential"](), lambda x, d: np.exp(x + d**2 / 2)),
    "x²/10 + sin 3x": (
        PAPER_FUNCTIONS["quadratic_plus_sine"](),
        lambda x, d: x / 5 + 3 * np.cos(3 * x) * np.exp(-9 * d**2 / 2),
    ),
}
"""f, and E ∇f(x + δ ε) of x and δ."""


Z, T = 4.5, t.ppf(norm.cdf(4.5), 9)
"""T has the same probability for standard errors from ten blocks."""

X = np.random.default_rng(11).normal(size=(12, 3))


@pytest.mark.parametrize(("function", "limit"), LIMITS.values(), ids=LIMITS)
def test_gradients_of_smoothed_formulas_are_their_closed_forms(function, limit):
    drawn = po.functions.smoothed(function, scale=0.4, n_samples=1000).estimate(X)
    errors = (drawn.values - limit(X, 0.4)) / drawn.standard_errors
    assert np.abs(errors).max() < T


def test_values_are_means_over_the_noise():
    smooth = po.functions.smoothed(Power(3), scale=0.5, n_samples=4000)
    # f_δ = Σ x³ + 3 δ² x; of an antithetic pair 3x δ²(ε² − 1) is left, variance 2·9x²δ⁴
    expected = (X**3 + 3 * 0.25 * X).sum(axis=1)
    error = np.sqrt(2 * 9 * 0.5**4 * (X**2).sum(axis=1) / 4000)
    assert (np.abs(smooth.value(X) - expected) / error).max() < Z


def test_the_standard_errors_cover_the_truth():
    truth = np.exp(X + 0.5**2 / 2)
    covered = []
    for seed in range(100):
        smooth = po.functions.smoothed(
            PaperFormula("exponential"), 0.5, n_samples=100, rng=seed
        )
        drawn = smooth.estimate(X)
        error = np.abs(drawn.values - truth)
        covered.append((error < t.ppf(0.975, 9) * drawn.standard_errors).mean())
    # seeds are independent, points of one seed are not: the spread over seeds tells
    z = (np.mean(covered) - 0.95) / (np.std(covered) / 10)
    assert abs(z) < Z
    assert 0.90 < np.mean(covered) < 0.99


@given(st.integers(0, 1000))
def test_linear_functions_have_no_error_and_the_method_is_named(seed):
    w = np.random.default_rng(seed).normal(size=3)
    smooth = po.functions.smoothed(po.wrap(lambda P: P @ w + 2.0), 0.3, 20, rng=seed)
    np.testing.assert_allclose(smooth.gradient(X), np.tile(w, (12, 1)), rtol=1e-9)
    assert smooth.estimate(X).standard_errors.max() < 1e-12


def test_results_depend_on_the_seed_and_on_nothing_else():
    smooth = po.functions.smoothed(PaperFormula("exponential"), 0.5, 50, rng=3)
    other = po.functions.smoothed(PaperFormula("exponential"), 0.5, 50, rng=4)
    np.testing.assert_array_equal(smooth.gradient(X), smooth.gradient(X))
    np.testing.assert_allclose(smooth.gradient(X)[3:5], smooth.gradient(X[3:5]))
    assert (smooth.gradient(X) != other.gradient(X)).all()
    generator = np.random.default_rng(0)
    first, second = (
        po.functions.smoothed(Power(3), 0.5, 50, rng=generator) for _ in range(2)
    )
    assert first.seed != second.seed
    copy = pickle.loads(pickle.dumps(smooth))
    np.testing.assert_array_equal(copy.gradient(X), smooth.gradient(X))


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
    smooth = po.functions.smoothed(called, 0.5, n_samples=20)
    gradient = smooth.gradient(table)
    np.testing.assert_allclose(gradient["size"], 3.0)
    np.testing.assert_allclose(gradient["colour"], worth - worth.mean(), atol=1e-9)
    assert smooth.estimate(table).standard_errors.max() < 1e-9
    assert "of a category" in smooth.gradient_method


@pytest.mark.parametrize("law", [{"scale": 0.5}, {"law": "data"}])
def test_codes_that_no_row_has_are_no_part_of_effects(mixed, law):
    """Of a missing colour the encoder knows nothing: its factors are NaN there."""
    table, worth, model = mixed
    smooth = po.functions.smoothed(po.wrap(model, data=table), data=table, **law)
    assert smooth.estimate(table).source == "exact (computed from the model)"
    gradient = smooth.gradient(table)
    np.testing.assert_allclose(gradient["size"], 3.0, rtol=1e-12)
    np.testing.assert_allclose(gradient["colour"], worth - worth.mean(), atol=1e-12)


def test_a_column_without_noise_stays_as_it_is():
    """Then the others have the law of the table without it, at that value."""
    X = np.random.default_rng(0).uniform(-1, 1, (80, 3))
    X[:, 1] = X[:, 1] > 0.0
    forest = RandomForestRegressor(5, random_state=0, max_depth=4)
    forest.fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    still = np.array([0.5, 0.0, 0.3])
    result = po.functions.smoothed(po.wrap(forest), still)
    for value in (0.0, 0.5, 1.0):  # on the split between both, too
        rows = X[:5].copy()
        rows[:, 1] = value

        def without(Z, value=value):
            return forest.predict(np.insert(Z, 1, value, axis=1))

        alone = po.functions.smoothed(po.wrap(without), still[[0, 2]], n_samples=40_000)
        drawn = alone.estimate(rows[:, [0, 2]])
        error = result.gradient(rows)[:, [0, 2]] - drawn.values
        assert np.abs(error / drawn.standard_errors).max() < T
    np.testing.assert_array_equal(result.gradient(X[:5])[:, 1], 0.0)


FAR = po.wrap(lambda P: np.where(abs(P[:, 0]) > 5, np.inf, P[:, 0]))


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "smoothing"))
def test_what_cannot_be_smoothed_is_refused(line, message):
    def smoothed(function=CUBE, **settings):
        return po.functions.smoothed(function, **settings).gradient(X)

    with pytest.raises((InvalidInput, Refused), match=message):
        eval(line, globals() | locals())


# ---- blocks of draws: what they say of the error of slopes


CUBE = po.functions.Power(3)
SCALE = 0.7
TABLE = np.random.default_rng(0).normal(size=(25, 3))
EXACT = 3 * TABLE**2 + 3 * SCALE**2
"""The gradient of the mean of x³."""


def test_blocks_have_the_mean_that_the_gradient_is_and_the_errors_of_the_regression():
    mean = po.functions.smoothed(CUBE, SCALE, 200, 0)
    result = mean.estimate(TABLE)
    np.testing.assert_allclose(result.blocks.mean(axis=0), result.values, atol=1e-12)
    np.testing.assert_array_equal(result.values, mean.gradient(TABLE))
    assert (len(result.blocks), result.n_draws, result.exact) == (10, 400, False)
    assert result.source == mean.gradient_method
    line = po.wrap(lambda X: X @ [1.0, -2.0, 0.5])
    assert (
        po.functions.smoothed(line, SCALE, 50, 0).estimate(TABLE).standard_errors.max()
        < 1e-12
    )
    result = po.functions.smoothed(CUBE, SCALE, 9, 0).estimate(
        TABLE
    )  # fewer pairs than blocks
    assert result.blocks is result.standard_errors is None


def objective(target):
    return po.GradientMatching(target) + po.PairwiseRobustness(
        po.graphs.knn_graph(TABLE, 4)
    )


def test_the_excess_that_they_estimate_is_the_true_one():
    excess, estimated = 0.0, 0.0
    least = po.solve(objective(EXACT)).objective
    for seed in range(40):
        drawn = po.functions.smoothed(CUBE, SCALE, 200, seed).estimate(TABLE)
        best = po.solve(objective(drawn))
        excess += objective(EXACT).value(best.attributions) - least
        estimated += best.target.value
    assert 0.6 <= estimated / excess <= 1.6


def test_effects_of_categories_and_of_missing_numbers_have_blocks_too():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "size": np.where(rng.random(40) < 0.3, np.nan, rng.normal(size=40)),
            "kind": rng.choice(["a", "b", "c"], 40),
        }
    )

    def model(frame):
        bonus = frame["kind"].map({"a": 0.0, "b": 1.0, "c": 4.0}).astype(float)
        return np.round(2 * frame["size"].fillna(3.0)) * (1.0 + bonus)

    mean = po.functions.smoothed(po.wrap(model, data=table), SCALE, 200, 0)
    result = mean.estimate(table[:10])
    np.testing.assert_array_equal(result.values, mean.gradient(table[:10]))
    np.testing.assert_allclose(result.blocks.mean(axis=0), result.values, atol=1e-12)
    noisy = table["size"][:10].notna().to_numpy()  # missing numbers get no noise
    assert (result.standard_errors[noisy, 1] > 1e-6).all()
    assert (result.standard_errors[~noisy, 0] > 1e-6).all()


# ---- rows with missing numbers: no noise on them, and effects


GENERATOR = np.random.default_rng(5)
GAPS = pd.DataFrame(GENERATOR.normal(size=(60, 2)), columns=["age", "dose"])
GAPS["age"] = GAPS["age"].clip(-0.9, 0.9)  # beyond, few draws reach the step
GAPS["dose"] = GAPS["dose"].round(1).mask(GENERATOR.random(60) < 0.2)
WIDTH = 0.4


def step(table):
    """1[age > 0] (2 where the dose is missing, else the dose)."""
    values = np.asarray(table, float)
    return (values[:, 0] > 0) * np.where(np.isnan(values[:, 1]), 2.0, values[:, 1])


def of_the_mean(table):
    """Of the mean of the step under gaussian noise."""
    age, dose = table.to_numpy().T
    absent = np.isnan(dose)
    size, slope = norm.cdf(age / WIDTH), norm.pdf(age / WIDTH) / WIDTH
    first = slope * np.where(absent, 2.0, dose)
    effect = size * (2.0 - GAPS["dose"].mean())
    return np.column_stack([first, np.where(absent, effect, size)])


@pytest.mark.parametrize("form", [lambda t: t, lambda t: t.to_numpy()], ids=["df", "a"])
def test_slopes_and_effects_are_those_of_the_mean_under_noise(form):
    function = po.wrap(step, data=form(GAPS))
    smooth = po.functions.smoothed(function, WIDTH, n_samples=4000)
    drawn = smooth.estimate(form(GAPS))
    error = np.maximum(drawn.standard_errors, 1e-12)
    assert np.abs((drawn.values - of_the_mean(GAPS)) / error).max() < T


@pytest.mark.filterwarnings("ignore::propopt.base.errors.JumpsWarning")
def test_effects_are_told_from_slopes():
    function = po.wrap(step, data=GAPS)
    for estimate in (
        function.estimate(GAPS),
        po.functions.smoothed(function, WIDTH).estimate(GAPS),
    ):
        np.testing.assert_array_equal(estimate.effects, GAPS.isna())
        scaled = estimate.scaled(np.array([1.0, 10.0])).values
        expected = np.where(GAPS.isna(), 1.0, [1.0, 10.0]) * estimate.values
        np.testing.assert_array_equal(scaled, expected)
    assert po.wrap(step).estimate(GAPS.dropna()).effects is None


def test_values_of_missing_numbers_need_no_table():
    smooth = po.functions.smoothed(po.wrap(step), WIDTH)
    assert np.isfinite(smooth.value(GAPS)).all()
    table = GAPS.assign(dose=np.nan)  # a column without values has no effect
    smooth = po.functions.smoothed(po.wrap(step, data=table), WIDTH)
    np.testing.assert_array_equal(smooth.gradient(table)["dose"], 0.0)
