"""What ``po.explain`` can be asked besides: precision, gaps, units, laws."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

import propopt as po
from propopt.base.errors import ImpreciseWarning, InvalidInput, MissingPatternsWarning


N, D = 60, 3


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(N, D))


@pytest.fixture(scope="module")
def forest(X):
    return RandomForestRegressor(20, random_state=0).fit(X, X[:, 0] + X[:, 1] ** 2)


@pytest.fixture(scope="module")
def sampled(forest, X):
    """The forest behind a lambda: nothing of it can be read."""
    return po.explain(lambda Z: forest.predict(Z), X, robustness=0.1)


def test_a_lambda_that_jumps_is_found_out_and_it_is_said(sampled):
    assert sampled.parameters["jump test"].startswith("jumps")
    assert "data law" in sampled.parameters["gradient"]
    assert 0.0 < sampled.target_error < 0.5


def test_the_error_that_is_printed_is_about_the_true_one(sampled, forest, X):
    exact = po.explain(forest, X, robustness=0.1)
    true = 0.0
    objective = po.GradientMatching(exact.gradient) + 0.1 * (
        po.PairwiseRobustness(po.knn_graph(X / X.std(axis=0), 8))
    )
    true = objective.value(sampled.attributions) / exact.objective - 1.0
    low, high = sampled.target.interval
    assert low < true < high


def test_precision_is_reached_by_more_draws(forest, X, sampled):
    goal = sampled.target_error / 3.0
    result = po.explain(
        lambda Z: forest.predict(Z), X, robustness=0.1, precision=goal, progress=False
    )
    assert result.target_error <= goal
    assert result.evaluations > 2 * sampled.evaluations


def test_a_budget_that_is_spent_is_said(forest, X):
    with pytest.warns(ImpreciseWarning, match=r"of 1e-06 was wanted: target error"):
        result = po.explain(
            lambda Z: forest.predict(Z),
            X,
            robustness=0.1,
            precision=1e-6,
            max_evaluations=N * 200,
            progress=False,
        )
    assert result.evaluations <= N * 200


def test_errors_that_are_not_known_are_never_precise(X):
    with pytest.warns(ImpreciseWarning, match="central differences"):
        po.explain(lambda Z: np.sin(Z).sum(axis=1), X, precision=0.5)


def test_what_costs_long_is_announced_when_asked(forest, X, capsys):
    po.explain(lambda Z: forest.predict(Z), X, robustness=0.1, progress=True)
    assert "evaluations, about" in capsys.readouterr().err


def test_exact_targets_are_as_precise_as_can_be(forest, X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert po.explain(forest, X, precision=1e-9).target_error == 0.0


@pytest.fixture(scope="module")
def gaps(X):
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table.loc[::3, "b"] = np.nan
    model = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5)
    return model.fit(table, X[:, 0] > 0), table


def test_neighbours_with_other_gaps_are_warned_of_or_left_out(gaps):
    model, table = gaps
    with pytest.warns(MissingPatternsWarning, match="same_pattern=True"):
        po.explain(model, table, robustness=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = po.explain(model, table, robustness=0.1, same_pattern=True)
    assert result.target_error == 0.0  # of the margin, which is a sum of trees
    assert "log-odds" in result.parameters["function"]


def test_a_probability_that_is_asked_for_is_sampled(gaps):
    model, table = gaps
    result = po.explain(
        model, table, output="probability", same_pattern=True, robustness=0.1
    )
    assert result.target_error > 0.0
    assert "margin" in result.parameters["gradient"]


def test_scales_are_those_of_the_reference_table(forest, X):
    few = X[:6].copy()
    few[:, 2] = 0.3  # constant here, and not in the table
    result = po.explain(forest, few, data=X, robustness=0.0)
    slopes = po.smoothed(po.wrap(forest), law="data", data=X).gradient(few)
    np.testing.assert_allclose(result.attributions, slopes * X.std(axis=0), rtol=1e-12)


def _with_constant(X, unit):
    """A table whose last column is constant but in two new rows, and its model."""
    table = pd.DataFrame(X, columns=list("abc")).assign(same=50_000.0 / unit)
    new = table.iloc[:20].copy()
    new.iloc[3, 3], new.iloc[7, 3] = 60_000.0 / unit, 0.0
    model = LogisticRegression().fit(table.assign(same=0.0), X[:, 0] > 0.0)
    model.coef_ = np.array([[1.0, -2.0, 0.5, 2e-5 * unit]])
    return model, table, new


def _explained(model, table, new, kind, **settings):
    if kind == "arrays":
        del model.feature_names_in_
        return po.explain(model, new.to_numpy(), data=table.to_numpy(), **settings)
    if kind == "explainer":
        return po.Explainer(model, table, **settings).fit().explain(new)
    return po.explain(model, new, data=table, **settings)


@pytest.mark.parametrize("kind", ["frames", "arrays", "explainer"])
@pytest.mark.parametrize("law", ["auto", "gaussian"])
def test_a_constant_column_is_zero_per_standard_deviation(X, kind, law):
    settings = {"law": law, "robustness": 0.1}
    result, other = (
        _explained(*_with_constant(X, unit), kind, **settings) for unit in (1.0, 1e6)
    )
    np.testing.assert_array_equal(result.attributions[:, 3], 0.0)
    # whatever its unit, it has no part in distances
    np.testing.assert_allclose(other.attributions, result.attributions, rtol=1e-6)
    name = "x3" if kind == "arrays" else "same"
    assert f"column {name!r} is constant" in result.parameters["notes"]
    # the log-odds are linear: c_j s_j, which no neighbour differs from
    log_odds = _explained(
        *_with_constant(X, 1.0), kind, **{**settings, "output": "log_odds"}
    )
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
    for model, name in [(linear, "none"), (forest, "data"), (linear, "data")]:
        with pytest.raises(InvalidInput, match=ONE_ROW):
            po.explain(model, X, data=X[:1], law=name)
        with pytest.raises(InvalidInput, match=ONE_ROW):
            po.explain(model, X[:1], data=X[:1], law=name)
        with pytest.raises(InvalidInput, match=ONE_ROW):
            po.Explainer(model, X[:1], law=name).fit(X)
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind="x")
    with pytest.raises(InvalidInput, match=ONE_ROW):
        po.explain(lambda table: table["a"], frame, data=frame[:1])
    with pytest.raises(InvalidInput, match="got 5 equal rows"):
        po.explain(forest, X, data=np.repeat(X[:1], 5, axis=0))
    with pytest.raises(InvalidInput, match=ONE_ROW):
        po.smoothed(po.wrap(forest), law="data", data=X[:1])
    with pytest.raises(InvalidInput, match="scale: no column varies over 60 rows"):
        po.explain(linear, np.repeat(X[:1], 60, axis=0))


def test_one_row_is_a_baseline_of_parts_of_the_output_where_a_scale_is_given(X):
    model = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput, match="scale: no column varies over 1 rows"):
        po.explain(model, X, data=X[:1], units="output")
    result = po.explain(
        model, X, data=X[:1], units="output", scale=None, robustness=0.0
    )
    np.testing.assert_allclose(result.attributions, (X - X[0]) * [1, 2, 3], atol=1e-9)


def test_laws_and_units_that_are_none_are_refused(forest, X):
    with pytest.raises(InvalidInput, match="law: expected one of auto, data"):
        po.explain(forest, X, law="uniform")
    with pytest.raises(InvalidInput, match="units: expected 'scaled' or 'output'"):
        po.explain(forest, X, units="shap")


def test_stability_is_among_the_parameters(sampled):
    assert "signs" in sampled.parameters["stability"]
    assert "draws of gradient_matching" in sampled.parameters["stability"]


def test_batches_are_no_larger_than_asked(X):
    sizes = []

    def remote(Z):
        sizes.append(len(Z))
        return np.round(Z).sum(axis=1)

    po.explain(remote, X[:10], data=X, robustness=0.1, batch_rows=100, progress=False)
    assert max(sizes) <= 100


def test_smooth_models_keep_their_own_slopes(X):
    model = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0])
    result = po.explain(model, X, robustness=0.0)
    np.testing.assert_allclose(
        result.attributions, np.tile([1.0, 2.0, 3.0] * X.std(axis=0), (N, 1)), rtol=1e-9
    )
    assert "jump test" not in result.parameters
