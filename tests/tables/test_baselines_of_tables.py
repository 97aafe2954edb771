"""Baselines on tables with categories, against closed forms and brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from people import CATEGORIES, SMALL, X, Z, additive, interacting, n_rows_of_gradient
from sklearn.linear_model import Ridge

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.explaining.explainers import (
    Baseline,
    Gradient,
    Lime,
    LimePackage,
    Shap,
    SmoothGrad,
)
from propopt.laws import perturbations


def worst_z(explanation, truth):
    error = np.abs(explanation.attributions - truth)
    return float((error / explanation.standard_errors).max())


BASELINES = [
    Gradient(),
    SmoothGrad(scale=0.1, n_samples=4),
    SmoothGrad(scale=0.1, n_samples=4, relative=True, distribution="ball"),
    Lime(scale=0.1, n_samples=40, relative=True),
    Shap(),
    Shap(background=X[:5], units="gradient"),
    LimePackage(n_samples=40, background=X),
    LimePackage(n_samples=40, units="gradient", discretize=False),
]


@pytest.mark.parametrize("explainer", BASELINES, ids=lambda e: e.method)
def test_explainers_keep_names_and_count(explainer, spy, function):
    pytest.importorskip("shap" if isinstance(explainer, Shap) else "lime")
    rows = X[:4]
    result = explainer.explain(function, rows)
    assert list(result.to_frame().index) == list(rows.index)
    assert list(result.to_frame().columns) == list(X.columns)
    assert result.evaluations == sum(spy.sizes) - function.calls.trials > 0
    assert np.isfinite(result.attributions).all()
    assert result.units == getattr(explainer, "units", "gradient")


def test_gradients_as_an_explanation(function, expected):
    result = Gradient().explain(function, X)
    np.testing.assert_allclose(result.attributions, expected, atol=1e-7)
    assert result.evaluations == n_rows_of_gradient(X, 2, CATEGORIES)


@pytest.mark.parametrize("relative", [False, True])
def test_smoothgrad_of_an_additive_model_is_its_gradient(relative, simple):
    smooth = SmoothGrad(scale=0.3, n_samples=5, relative=relative)
    result = smooth.explain(simple, SMALL[:9])
    np.testing.assert_allclose(
        result.attributions, simple.gradient(SMALL[:9]), atol=1e-7
    )


def test_smoothgrad_averages_effects_over_noise_in_the_numbers():
    def value(frame):
        return frame["bmi"] ** 2 * (frame["colour"] == "red")

    table = X[["bmi", "colour"]]
    function = po.wrap(value, data=table)
    result = SmoothGrad(scale=2.0, n_samples=3000).explain(function, table[:8])
    red = (table["colour"] == "red").to_numpy()
    x = table["bmi"].to_numpy()[:8]
    truth = np.stack([2 * x * red[:8], (x**2 + 4) * (red[:8] - red.mean())], axis=1)
    loud = result.standard_errors > 0  # slopes of the others are zero
    errors = np.where(loud, result.standard_errors, 1.0)
    assert (np.abs(result.attributions - truth) / errors).max() < Z
    np.testing.assert_array_equal(loud[:, 0], red[:8])


def test_relative_noise_is_in_units_of_the_deviations():
    observed = []

    def value(frame):
        observed.append(frame["age"].to_numpy() - X["age"].iloc[0])
        return frame["age"] + 0.0

    function = po.wrap(value, data=X[["age", "colour"]])
    SmoothGrad(scale=0.5, n_samples=4000, relative=True).explain(
        function, X[["age", "colour"]][:1]
    )
    spread = np.concatenate(observed)
    assert spread.std() == pytest.approx(0.5 * X["age"].std(ddof=0), rel=0.05)


def test_the_ball_has_the_dimension_of_the_numbers():
    # E ε² = δ²/(D + 2) with D = 1 number, though there are two categories besides; its
    # standard error is √(4/45 / 4000) δ², and six of them fail once in 5e8
    observed = []

    def value(frame):
        observed.append(frame["age"].to_numpy() - SMALL["age"].iloc[0])
        return additive(frame)

    function = po.wrap(value, data=po.TableSchema.of(SMALL, categorical=["job"]))
    ball = SmoothGrad(scale=3.0, n_samples=4000, distribution="ball")
    ball.explain(function, SMALL[:1])
    assert (np.concatenate(observed) ** 2).mean() == pytest.approx(
        3.0, abs=Z * 9 * 0.0048
    )


def test_relative_noise_needs_a_schema():
    for explainer in (SmoothGrad(scale=1, relative=True), Lime(scale=1, relative=True)):
        with pytest.raises(InvalidInput, match=r"relative: .*data=X\)"):
            explainer.explain(po.functions.Sine(), [[0.0]])


@pytest.mark.parametrize("kernel_width", [None, 1.5])
def test_lime_of_an_additive_model_tends_to_its_gradient(kernel_width, simple):
    lime = Lime(scale=0.5, relative=True, n_samples=4000, kernel_width=kernel_width)
    result = lime.explain(simple, SMALL[:6])
    assert worst_z(result, simple.gradient(SMALL[:6]).to_numpy()) < Z
    assert result.standard_errors.max() < 0.2


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kernel_width": 0.8},
        {"ridge": 3.0},
        {"fit_intercept": False, "kernel_width": 2.0, "ridge": 0.5},
    ],
)
def test_lime_is_a_weighted_ridge_regression_on_its_samples(settings):
    tables = []

    def value(frame):
        tables.append(frame)
        return interacting(frame).to_numpy()

    function = po.wrap(value, data=po.TableSchema.of(SMALL, categorical=["job"]))
    lime = Lime(scale=3.0, n_samples=80, **settings)
    function.value(SMALL[:1])
    tables.clear()  # of the trial
    result = lime.explain(function, SMALL[:1])
    samples, point = pd.concat(tables), SMALL.iloc[0]
    same = samples[["colour", "job"]] == point[["colour", "job"]]
    shares = (SMALL[["colour", "job"]] == point[["colour", "job"]]).mean()
    design = np.column_stack([samples["age"], same - shares])
    width = np.inf if lime.kernel_width is None else lime.kernel_width
    squares = (samples["age"] - point["age"]) ** 2 + (~same).sum(axis=1)
    ridge = Ridge(lime.ridge, fit_intercept=lime.fit_intercept, tol=1e-12)
    ridge.fit(design, interacting(samples), np.exp(-squares / (2 * width**2)))
    slopes = ridge.coef_ * [1.0, *(1 - shares)]
    np.testing.assert_allclose(result.attributions[0], slopes, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        result.details["intercept"][0], ridge.intercept_, rtol=1e-6, atol=1e-9
    )


def test_lime_in_standard_units_does_not_see_the_units(simple):
    lime = Lime(scale=0.5, relative=True, n_samples=200, kernel_width=1.0)
    result = lime.explain(simple, SMALL[:3])
    months = SMALL.assign(age=12.0 * SMALL["age"])
    other = po.wrap(
        lambda frame: additive(frame.assign(age=frame["age"] / 12)),
        data=po.TableSchema.of(months, categorical=["job"]),
    )
    again = lime.explain(other, months[:3])
    np.testing.assert_allclose(
        again.attributions * [12, 1, 1], result.attributions, rtol=1e-6
    )


def test_lime_contrasts_a_category_that_the_table_never_has():
    table = pd.DataFrame(
        {"x": np.arange(6.0), "size": pd.Categorical(list("ssslll"), list("sml"))}
    )
    parts = {"s": 1.0, "m": 5.0, "l": 2.0}
    function = po.wrap(
        lambda X: X["size"].map(parts).astype(float) + X["x"], data=table
    )
    rare = table[:1].assign(size=pd.Categorical(["m"], list("sml")))
    result = Lime(scale=0.1, n_samples=3000).explain(function, rare)
    assert worst_z(result, np.array([[1.0, 3.5]])) < Z


def test_a_column_of_one_category_has_no_effect():
    table = SMALL.assign(colour="red")
    function = po.wrap(additive, data=po.TableSchema.of(table, categorical=["job"]))
    for explainer in (
        Gradient(),
        Lime(scale=0.5, n_samples=100),
        Lime(scale=0.5, n_samples=100, kernel_width=1.0, ridge=0.1),
    ):
        result = explainer.explain(function, table[:3])
        np.testing.assert_array_equal(result.attributions[:, 1], 0)


@pytest.mark.parametrize("explainer", [BASELINES[2], BASELINES[3]])
def test_points_are_explained_alike_in_small_blocks(explainer, simple, monkeypatch):
    whole = explainer.explain(simple, SMALL[:6]).attributions
    monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(8 * 3 * 50))
    np.testing.assert_allclose(explainer.explain(simple, SMALL[:6]).attributions, whole)
    fewer = explainer.explain(simple, SMALL[:2]).attributions
    np.testing.assert_allclose(fewer, whole[:2])


def brute_force_shapley(value, row, background):
    """Shapley values from their definition, by replacing columns of DataFrames."""
    labels = list(background.columns)

    def worth(members):
        table = background.assign(**{label: row[label] for label in members})
        return float(np.mean(value(table)))

    values = np.zeros(len(labels))
    for j, label in enumerate(labels):
        others = [other for other in labels if other != label]
        for size in range(len(labels)):
            share = math.factorial(size) * math.factorial(len(labels) - size - 1)
            for members in itertools.combinations(others, size):
                gain = worth((*members, label)) - worth(members)
                values[j] += share / math.factorial(len(labels)) * gain
    return values


def test_shap_replaces_whole_categories():
    pytest.importorskip("shap")
    function = po.wrap(interacting, data=po.TableSchema.of(SMALL, categorical=["job"]))
    background = SMALL[50:57]
    result = Shap(background=background).explain(function, SMALL[:3])
    for n in range(3):
        expected = brute_force_shapley(interacting, SMALL.iloc[n], background)
        np.testing.assert_allclose(result.attributions[n], expected, atol=1e-9)


def test_shap_in_slopes_leaves_categories_as_they_are(simple):
    pytest.importorskip("shap")
    output = Shap(background=SMALL).explain(simple, SMALL[:3])
    slopes = Shap(background=SMALL, units="gradient").explain(simple, SMALL[:3])
    np.testing.assert_allclose(slopes.attributions[:, 0], 0.5)
    np.testing.assert_array_equal(
        slopes.attributions[:, 1:], output.attributions[:, 1:]
    )
    # f is additive: φ_j = f_j(x) − mean f_j, which is the effect
    np.testing.assert_allclose(
        output.attributions[:, 1:], simple.gradient(SMALL)[["colour", "job"]][:3]
    )


def test_shap_knows_a_reference_of_means_and_modes(simple):
    pytest.importorskip("shap")
    result = Shap(background="mean").explain(simple, SMALL)
    modes = [SMALL["colour"].mode()[0], SMALL["job"].mode()[0]]
    typical = pd.DataFrame([[SMALL["age"].mean(), *modes]], columns=SMALL.columns)
    np.testing.assert_allclose(result.base_value, additive(typical)[0])


def test_lime_package_hands_the_categories_to_the_package(simple):
    tabular = pytest.importorskip("lime.lime_tabular")
    result = LimePackage(n_samples=300, background=SMALL).explain(simple, SMALL[:2])
    points, _ = simple.read(SMALL)
    seeds = np.random.default_rng(0).integers(2**32, size=2)
    for n, seed in enumerate(seeds):
        package = tabular.LimeTabularExplainer(
            points,
            mode="regression",
            categorical_features=[1, 2],
            feature_selection="none",
            random_state=int(seed),
        )
        fit = package.explain_instance(
            points[n], simple.value_at, num_features=3, num_samples=300
        )
        expected = [slope for _, slope in sorted(fit.as_map()[1])]
        np.testing.assert_allclose(result.attributions[n], expected)


def test_a_background_of_text_is_copied_and_named_by_what_it_holds():
    background = SMALL[:5].copy()
    explainer = Shap(background=background)
    before = explainer.parameters["background"]
    assert Shap(background=SMALL[:5].copy()).parameters["background"] == before
    background.loc["p0", "colour"] = "pink"
    assert explainer.parameters["background"] == before
    assert Shap(background=background).parameters["background"] != before


def test_a_background_with_another_category_is_refused(simple):
    pytest.importorskip("shap")
    explainer: Baseline = Shap(background=SMALL.assign(colour="pink"))
    with pytest.raises(InvalidInput, match="background: column 'colour', row 'p0'"):
        explainer.explain(simple, SMALL[:2])


def test_explanations_are_optimized_on_tables(simple):
    graph = po.gaussian_graph(simple.schema.coordinates(SMALL))
    objective = po.GradientMatching(simple.gradient(SMALL)) + po.PairwiseRobustness(
        graph
    )
    best = po.solve(objective)
    assert list(best.to_frame().columns) == ["age", "colour", "job"]
    assert list(best.to_frame().index) == list(SMALL.index)
