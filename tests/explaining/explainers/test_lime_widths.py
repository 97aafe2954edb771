from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge

import propopt as po
from propopt.base.errors import InvalidInput


WIDTHS = np.geomspace(0.3, 20.0, 9)


@pytest.fixture(scope="module")
def ridge():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1]
    return po.wrap(KernelRidge(kernel="rbf", gamma=0.3).fit(X, y), data=X), X


@pytest.fixture(scope="module")
def curve(ridge):
    function, X = ridge
    rows = X[:30]
    objective = po.GradientMatching(function.gradient(rows)) + po.PairwiseRobustness(
        po.gaussian_graph(rows)
    )
    lime = po.explainers.ExactLime(units="gradient")
    family = lime.at_widths(function, rows, WIDTHS)
    weights = {"pairwise_robustness": np.geomspace(1e-3, 1e3, 25)}
    return po.sweep(objective, weights, family)


@pytest.mark.parametrize("units", ["output", "gradient"])
def test_each_is_the_explanation_with_that_width(ridge, units):
    function, X = ridge
    lime = po.explainers.ExactLime(units=units)
    for one, width in zip(lime.at_widths(function, X[:5], WIDTHS), WIDTHS, strict=True):
        alone = replace(lime, kernel_width=float(width)).explain(function, X[:5])
        np.testing.assert_allclose(one.attributions, alone.attributions, rtol=1e-11)
        assert one.parameters == alone.parameters
        assert one.units == alone.units
        assert set(one.details) == set(alone.details)
        for name, values in alone.details.items():
            np.testing.assert_allclose(one.details[name], values, rtol=1e-9, atol=1e-12)


def test_without_widths_there_are_fifty_around_that_of_the_law(ridge):
    function, X = ridge
    family = po.explainers.ExactLime(kernel_width=2.0).at_widths(function, X[:2])
    widths = [one.parameters["kernel_width"] for one in family]
    np.testing.assert_allclose(widths, np.geomspace(0.2, 20.0, 50))


def test_of_a_function_that_is_no_sum_of_products_each_is_estimated(ridge):
    _, X = ridge
    function = po.wrap(lambda rows: np.tanh(rows.sum(axis=1)))
    lime = po.explainers.ExactLime(n_samples=300)
    with pytest.warns(po.errors.EstimatedWarning):
        family = lime.at_widths(function, X[:3], [1.0, 3.0], rng=1)
    assert [one.parameters["kernel_width"] for one in family] == [1.0, 3.0]
    assert all(one.standard_errors is not None for one in family)


def test_wrong_widths_are_refused(ridge):
    function, X = ridge
    with pytest.raises(InvalidInput, match="widths"):
        po.explainers.ExactLime().at_widths(function, X[:2], [1.0, -1.0])


def test_no_width_beats_an_optimum_at_its_weights(curve):
    assert (curve.distances()["excess"] >= -1e-9).all()
    for best in curve.optimized:
        for one in curve.baselines:
            value = sum(c * one.losses[name] for name, c in best.rates.items())
            optimum = sum(c * best.losses[name] for name, c in best.rates.items())
            assert value >= optimum * (1 - 1e-9)


def test_the_nearest_width_has_the_least_excess(curve):
    frame = curve.distances()
    nearest = curve.nearest("exact_lime")
    place = int(frame["excess"].argmin())
    assert nearest is curve.baselines[place]
    assert nearest.parameters["kernel_width"] == WIDTHS[place]
    assert frame["excess"].max() > 1.01 * frame["excess"].min()


def test_nothing_is_nearest_where_nothing_can_be_compared(ridge, curve):
    function, X = ridge
    with pytest.raises(InvalidInput, match="'shap'"):
        curve.nearest("shap")
    lime = po.explainers.ExactLime().at_widths(function, X[:30], [1.0])
    objective = po.GradientMatching(function.estimate(X[:30])) + po.Sparsity()
    other = po.sweep(objective, {"sparsity": [0.1]}, lime)
    with pytest.raises(InvalidInput, match="distances"):
        other.nearest()


def test_a_forest_is_read_once(ridge):
    _, X = ridge
    forest = RandomForestRegressor(20, max_depth=4, random_state=0).fit(X, X[:, 0])
    function = po.wrap(forest, data=X)
    lime = po.explainers.ExactLime()
    family = lime.at_widths(function, X[:1], np.geomspace(0.5, 5.0, 50))
    before = function.calls.rows
    lime.explain(function, X[:1])
    alone = function.calls.rows - before
    assert sum(one.evaluations for one in family) <= alone + len(family)
