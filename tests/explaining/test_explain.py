"""``po.explain``: from a model and a table to names, precision, laws and units."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import propopt as po
from propopt.base.errors import ImpreciseWarning, InvalidInput, MissingPatternsWarning
from propopt.explaining.explainers import Gradient, Lime, LimePackage, Shap, SmoothGrad


N, D = 60, 3


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(N, D))


@pytest.fixture(scope="module")
def forest(X):
    return RandomForestRegressor(20, random_state=0).fit(X, X[:, 0] + X[:, 1] ** 2)


@pytest.fixture
def people(rng):
    columns = {
        "age": rng.integers(20, 80, N),
        "income": rng.lognormal(3, 1, N),
        "city": rng.choice(["Bonn", "Oslo", "Rome"], N),
    }
    table = pd.DataFrame(columns, index=[f"c{i}" for i in range(N)])
    noise = rng.normal(size=N)
    y = (table["age"] / 30 + (table["city"] == "Rome") + noise > 2).astype(int)
    return table, y


@pytest.fixture
def pipeline(people):
    numbers = ("numbers", StandardScaler(), ["age", "income"])
    columns = ColumnTransformer([numbers, ("city", OneHotEncoder(), ["city"])])
    return make_pipeline(columns, LogisticRegression()).fit(*people)


def test_explain_sweep_and_each_baseline_keep_the_names(pipeline, people):
    X, few = people[0], people[0].iloc[:9]
    best = po.explain(pipeline, X, output="log_odds")
    pd.testing.assert_index_equal(best.to_frame().index, X.index)
    assert best.gap < 1e-6
    function = po.wrap(pipeline, data=X, output="log_odds")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a tiny fit inside lime
        result = [
            baseline.explain(function, few)
            for baseline in (
                Gradient(),
                SmoothGrad(scale=0.3, n_samples=8),
                Lime(scale=0.3, n_samples=60),
                Shap(background=X.iloc[:3]),
                LimePackage(n_samples=60, background=X),
            )
        ]
    graph = po.knn_graph(function.schema.coordinates(few), 3)
    objective = po.GradientMatching(result[0].to_frame()) + po.PairwiseRobustness(graph)
    curve = po.sweep(objective, {"pairwise_robustness": [0.1, 1.0]}, result)
    for explanation in (*result, *curve.explanations):
        frame = explanation.to_frame()
        assert frame.axes[0].equals(few.index)
        assert frame.axes[1].equals(X.columns)
        assert np.isfinite(frame.to_numpy()).all()
    assert (curve.distances()["excess"] >= -1e-6).all()


def test_attributions_are_effects_of_a_standard_deviation(pipeline, people, rng):
    table, _ = people
    result = po.explain(pipeline, table, output="log_odds", robustness=0.0)
    slopes = pipeline[-1].coef_[0]
    exact = np.tile(slopes[:2], (N, 1))  # the scaler divides by the same deviations
    np.testing.assert_allclose(result.attributions[:, :2], exact, rtol=1e-6)
    shares = table["city"].value_counts(normalize=True).sort_index()
    effect = slopes[2:] - shares @ slopes[2:]
    expected = table["city"].map(dict(zip(shares.index, effect, strict=True)))
    np.testing.assert_allclose(result.attributions[:, 2], expected, rtol=1e-9)
    order = rng.permutation(N)
    result, permuted = (
        po.explain(pipeline, rows, robustness=0.3).to_frame()
        for rows in (table, table.iloc[order])
    )
    difference = (permuted - result.iloc[order]).abs().to_numpy().max()
    assert difference < 1e-6 * result.abs().to_numpy().max()


def test_what_cannot_be_explained_is_refused(pipeline, people, forest, X):
    table, y = people
    numbers = LogisticRegression(max_iter=500).fit(table[["age", "income"]], y)
    function, schema = po.wrap(pipeline, data=table), po.TableSchema.of(table)
    trees, few = po.wrap(forest), po.TableSchema.of(pd.DataFrame(X))
    for model, rows, settings, message in (
        (pipeline, table[:1], {}, r"give more, or .*Gradient"),
        (numbers, table, {}, "unexpected: 'city'"),
        (function, table, {"data": schema}, "belongs to wrap"),
        (trees, X[:30], {"data": few}, "give a table of reference rows"),
        (forest, X, {"scale": [1.0]}, "3 positive numbers"),
        (forest, X, {"law": "uniform"}, "law: expected one of auto, data"),
        (forest, X, {"units": "shap"}, "units: expected 'scaled' or 'output'"),
    ):
        with pytest.raises(InvalidInput, match=message):
            po.explain(model, rows, **settings)


def test_plain_gradients_slopes_and_the_knee(X, forest):
    cube, sine = po.functions.Power(3), po.functions.Sine()
    rows = X * [1.0, 50.0, 1.0]
    result = po.explain(cube, rows, scale=None, robustness=0.0)
    np.testing.assert_allclose(result.attributions, cube.gradient(rows), rtol=1e-12)
    model = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0])
    result = po.explain(model, X)  # one explanation for all rows
    slopes = np.tile([1.0, 2.0, 3.0] * X.std(axis=0), (N, 1))
    np.testing.assert_allclose(result.attributions, slopes, rtol=1e-9)
    assert "jump test" not in result.parameters
    smooth = po.explain(lambda Z: np.sin(Z[:, 0]) * Z[:, 1], X)
    assert "central differences" in smooth.parameters["gradient"]
    wide = po.explain(po.wrap(forest.predict, step=0.3), X)
    assert "central differences, step 0.3" in wide.parameters["gradient"]
    ends = [po.explain(sine, X, robustness=c).losses for c in (0.0, 1e6)]
    for loss, value in po.explain(sine, X).losses.items():
        low, high = sorted(end[loss] for end in ends)
        assert low < value < 0.8 * high


def test_a_forest_is_explained_by_its_mean_over_observed_values(forest, X, rng):
    result = po.explain(forest, X, precision=1e-9)  # warnings are errors
    assert result.parameters["gradient"] == "exact (boxes)"
    assert result.target_error == 0.0
    noise = po.explain(forest, X, law="gaussian")
    assert noise.gradient.shape == result.gradient.shape
    assert (noise.gradient != result.gradient).any()
    # scales are those of the reference table
    few = X[:6].copy()
    few[:, 2] = 0.3  # constant here, and not in the table
    result = po.explain(forest, few, data=X, robustness=0.0)
    slopes = po.smoothed(po.wrap(forest), law="data", data=X).gradient(few)
    np.testing.assert_allclose(result.attributions, slopes * X.std(axis=0), rtol=1e-12)
    many = rng.normal(size=(12, 260))
    wide = RandomForestRegressor(2, random_state=0).fit(many, many[:, 0])
    assert po.explain(wide, many).attributions.shape == (12, 260)


@pytest.fixture(scope="module")
def sampled(forest, X):
    """The forest behind a lambda: nothing of it can be read."""
    return po.explain(lambda Z: forest.predict(Z), X, robustness=0.1)


def test_a_model_that_jumps_is_explained_under_the_data_law(sampled, forest, X):
    assert sampled.parameters["jump test"].startswith("jumps")
    assert sampled.parameters["gradient"].startswith("500 draws, 10 blocks")
    assert f"data law of {N} rows" in sampled.parameters["gradient"]
    assert sampled.target.n_blocks == 10
    assert sampled.evaluations == 500 * N
    assert 0.0 < sampled.target_error < 0.5
    assert "signs" in sampled.parameters["stability"]
    assert "draws of gradient_matching" in sampled.parameters["stability"]
    # the error that is printed is about the true one
    exact = po.explain(forest, X, robustness=0.1)
    objective = po.GradientMatching(exact.gradient) + 0.1 * (
        po.PairwiseRobustness(po.knn_graph(X / X.std(axis=0), 8))
    )
    true = objective.value(sampled.attributions) / exact.objective - 1.0
    low, high = sampled.target.interval
    assert low < true < high
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the network has not converged
        network = MLPRegressor(hidden_layer_sizes=5, max_iter=50)
        vote = VotingRegressor([("forest", forest), ("network", network)])
        vote.fit(X, X[:, 0])
    result = po.explain(vote, X[:9], data=X)
    assert f"data law of {N} rows" in result.parameters["gradient"]
    assert result.target_error > 0.0


def test_precision_is_reached_by_more_draws_or_said(sampled, forest, X, capsys):
    def called(Z):
        return forest.predict(Z)

    goal = sampled.target_error / 3.0
    settings = {"robustness": 0.1, "progress": False}
    result = po.explain(called, X, precision=goal, **settings)
    assert result.target_error <= goal
    assert result.evaluations > 2 * sampled.evaluations
    budget = {"precision": 1e-6, "max_evaluations": N * 200}
    with pytest.warns(ImpreciseWarning, match=r"of 1e-06 was wanted: target error"):
        result = po.explain(called, X, **budget, **settings)
    assert result.evaluations <= N * 200
    # errors that are not known are never precise
    with pytest.warns(ImpreciseWarning, match="central differences"):
        po.explain(lambda Z: np.sin(Z).sum(axis=1), X, precision=0.5)
    capsys.readouterr()
    po.explain(called, X, robustness=0.1, progress=True)
    assert "evaluations, about" in capsys.readouterr().err


def test_a_function_takes_a_table_of_reference_rows(forest, X):
    function, rows, settings = po.wrap(forest), X[:30], {"robustness": 0.1}
    ours = po.explain(function, rows, data=X, **settings)
    same = po.explain(forest, rows, data=X, **settings)
    np.testing.assert_allclose(ours.attributions, same.attributions, atol=1e-12)
    others = po.explain(function, rows, **settings)
    assert np.abs(ours.attributions - others.attributions).max() > 1e-3


def test_batches_are_no_larger_than_asked(X):
    sizes = []

    def remote(Z):
        sizes.append(len(Z))
        return np.round(Z).sum(axis=1)

    settings = {"data": X, "robustness": 0.1, "progress": False}
    for rows, batch in ((X[:10], 100), (X[:1], 7)):  # alone it is asked in parts too
        sizes.clear()
        po.explain(remote, rows, batch_rows=batch, **settings)
        assert max(sizes) <= batch


@pytest.fixture(scope="module")
def gaps(X):
    table = pd.DataFrame(X.copy(), columns=["a", "b", "c"])
    table.loc[::3, "b"] = np.nan
    model = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5)
    return model.fit(table, X[:, 0] + X[:, 1] > 0), table


def test_neighbours_with_other_gaps_are_warned_of_or_left_out(gaps):
    model, table = gaps
    words = "other columns are miss.*same_pattern=True"
    with pytest.warns(MissingPatternsWarning, match=words):
        po.explain(model, table, robustness=0.1)
    settings = {"robustness": 0.0, "same_pattern": True}
    result = po.explain(model, table, **settings)  # warnings are errors
    assert result.target_error == 0.0  # of the margin, which is a sum of trees
    assert "log-odds" in result.parameters["function"]
    assert result.gradient[:, 1][::3].any()  # effects of what is missing
    sampled = po.explain(model, table, output="probability", **settings)
    assert sampled.target_error > 0.0
    assert "margin" in sampled.parameters["gradient"]


def test_slopes_are_scaled_and_effects_are_not(gaps, X):
    table, absent = gaps[1], gaps[1].isna().to_numpy()
    model = make_pipeline(SimpleImputer(), Ridge()).fit(table, X[:, 0] + X[:, 1])
    best = po.explain(model, table, robustness=0.0, same_pattern=True)
    slopes = np.broadcast_to(model[-1].coef_ * table.std(ddof=0).to_numpy(), X.shape)
    # what is missing is imputed by the mean
    expected = np.where(absent, 0.0, slopes)
    np.testing.assert_allclose(best.gradient, expected, rtol=1e-6, atol=1e-8)


def _with_constant(X, unit):
    """A table whose last column is constant but in two new rows, and its model."""
    table = pd.DataFrame(X, columns=list("abc")).assign(same=50_000.0 / unit)
    new = table.iloc[:20].copy()
    new.iloc[3, 3], new.iloc[7, 3] = 60_000.0 / unit, 0.0
    model = LogisticRegression().fit(table.assign(same=0.0), X[:, 0] > 0.0)
    model.coef_ = np.array([[1.0, -2.0, 0.5, 2e-5 * unit]])
    return model, table, new


@pytest.mark.parametrize("law", ["auto", "gaussian"])
def test_a_constant_column_is_zero_per_standard_deviation(X, law):
    settings, units = {"law": law, "robustness": 0.1}, {}
    for unit in (1.0, 1e6):
        model, table, new = _with_constant(X, unit)
        units[unit] = po.explain(model, new, data=table, **settings)
        alone = po.Explainer(model, table, **settings).fit().explain(new)
        np.testing.assert_array_equal(alone.attributions[:, 3], 0.0)
    result = units[1.0]
    np.testing.assert_array_equal(result.attributions[:, 3], 0.0)
    # whatever its unit, it has no part in distances
    np.testing.assert_allclose(units[1e6].attributions, result.attributions, rtol=1e-6)
    assert "column 'same' is constant" in result.parameters["notes"]
    # the log-odds are linear: c_j s_j, which no neighbour differs from
    log_odds = po.explain(model, new, data=table, output="log_odds", **settings)
    expected = np.tile([1.0, -2.0, 0.5] * X.std(axis=0), (20, 1))
    np.testing.assert_allclose(log_odds.attributions[:, :3], expected, rtol=1e-6)


def test_a_constant_column_is_zero_in_baselines_per_standard_deviation(X):
    model, table, new = _with_constant(X, 1.0)
    function = po.wrap(model, data=table, output="log_odds")
    scales = function.schema.scales("std")
    for baseline in (
        po.explainers.Gradient(),
        po.explainers.SmoothGrad(scale=0.5, relative=True),
        po.explainers.Lime(scale=0.5, relative=True),
        po.explainers.Lime(scale=0.5, relative=True, kernel_width=1.0),
    ):
        result = baseline.explain(function, new, rng=0).scaled(scales).attributions
        np.testing.assert_array_equal(result[:, 3], 0.0)
        np.testing.assert_allclose(result[0, :3], [1.0, -2.0, 0.5] * X.std(axis=0))


ONE_ROW = r"data: expected rows that differ, got 1 row, which .*fitted on"


def test_data_of_one_row_is_refused_as_it_has_no_spread(forest, X):
    linear = LinearRegression().fit(X, X[:, 0])
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind="x")
    flat = "scale: no column varies over "
    for call, message in (
        (lambda: po.explain(linear, X, data=X[:1], law="none"), ONE_ROW),
        (lambda: po.explain(forest, X[:1], data=X[:1], law="data"), ONE_ROW),
        (lambda: po.Explainer(forest, X[:1], law="data").fit(X), ONE_ROW),
        (lambda: po.explain(lambda t: t["a"], frame, data=frame[:1]), ONE_ROW),
        (lambda: po.smoothed(po.wrap(forest), law="data", data=X[:1]), ONE_ROW),
        (
            lambda: po.explain(forest, X, data=np.repeat(X[:1], 5, 0)),
            "got 5 equal rows",
        ),
        (lambda: po.explain(linear, np.repeat(X[:1], 60, 0)), flat + "60 rows"),
        (lambda: po.explain(linear, X, data=X[:1], units="output"), flat + "1 rows"),
    ):
        with pytest.raises(InvalidInput, match=message):
            call()
    # where a scale is given one row is a baseline of parts of the output
    settings = {"units": "output", "scale": None, "robustness": 0.0}
    result = po.explain(linear, X, data=X[:1], **settings)
    expected = (X - X[0]) * linear.coef_
    np.testing.assert_allclose(result.attributions, expected, atol=1e-9)
