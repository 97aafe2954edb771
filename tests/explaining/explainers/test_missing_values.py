"""Every baseline of rows with missing numbers: explained, or refused with the cure."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.explainers import Gradient, Lime, LimePackage, Shap, SmoothGrad


RNG = np.random.default_rng(11)
X = pd.DataFrame(RNG.normal(size=(30, 3)), columns=["age", "dose", "weight"])
X = X.mask(RNG.random(X.shape) < 0.2)
COLOURED = X.assign(colour=pd.Series(RNG.choice(["red", None], 30), dtype=object))
ABSENT = X.isna().to_numpy()


def additive(table):
    """2·age (5 if missing) − dose (1 if missing) + weight (0 if missing)."""
    values = np.asarray(table, float)
    filled = np.where(np.isnan(values), [2.5, -1.0, 0.0], values)
    return filled @ [2.0, -1.0, 1.0]


def slopes_and_effects():
    """2, −1 and 1; where one is missing, its value less that of the mean."""
    means = X.mean().to_numpy()
    effects = np.array([2.0, -1.0, 1.0]) * ([2.5, -1.0, 0.0] - means)
    return np.where(ABSENT, effects, [2.0, -1.0, 1.0])


FORMS = {"table": lambda t: t, "array": lambda t: t.to_numpy()}
each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


@each_form
def test_the_gradient_has_effects_where_numbers_are_missing(form):
    function = po.wrap(additive, data=form(X))
    result = Gradient().explain(function, form(X)).attributions
    np.testing.assert_allclose(result, slopes_and_effects(), rtol=1e-8)


@each_form
def test_noise_leaves_what_is_missing(form):
    observed = []

    def model(table):
        observed.append(np.isnan(np.asarray(table, float)).sum(axis=1))
        return additive(table)

    function = po.wrap(model, data=form(X))
    result = SmoothGrad(scale=0.3, n_samples=5).explain(function, form(X))
    np.testing.assert_allclose(result.attributions, slopes_and_effects(), rtol=1e-7)
    assert max(map(max, observed)) == ABSENT.sum(axis=1).max()


@each_form
@pytest.mark.parametrize("kernel_width", [None, 1.5])
def test_lime_draws_observed_values_for_what_is_missing(form, kernel_width):
    function = po.wrap(additive, data=form(X))
    lime = Lime(scale=0.5, n_samples=4000, kernel_width=kernel_width)
    result = lime.explain(function, form(X))
    errors = np.maximum(result.standard_errors, 1e-9)
    scores = (result.attributions - slopes_and_effects()) / errors
    assert np.abs(scores).max() <= 5.0  # false alarm 5e-5 over 90 scores


def test_lime_of_missing_numbers_does_not_depend_on_other_rows(monkeypatch):
    function = po.wrap(additive, data=X)
    lime = Lime(scale=0.5, n_samples=40)
    joint = lime.explain(function, X, rng=3).attributions
    few = lime.explain(function, X.iloc[:9], rng=3).attributions
    np.testing.assert_allclose(few, joint[:9], rtol=1e-12)
    from propopt.base.resources import Budget
    from propopt.laws import perturbations

    monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(1))
    np.testing.assert_allclose(
        lime.explain(function, X, rng=3).attributions, joint, rtol=1e-12
    )


def test_lime_of_a_column_without_values_is_zero():
    table = X.assign(weight=np.nan)
    function = po.wrap(additive, data=table)
    result = Lime(scale=0.5, n_samples=100).explain(function, table).attributions
    np.testing.assert_array_equal(result[:, 2], 0.0)


@pytest.mark.parametrize("method", [Gradient(), Lime(scale=0.5)])
def test_without_a_table_effects_are_refused_with_the_cure(method):
    with pytest.raises(InvalidInput, match=r"wrap\(model, data=X_train\)"):
        method.explain(po.wrap(additive), X)


def test_a_baseline_of_missing_numbers_and_categories():
    def model(table):
        redness = 3.0 * (table["colour"] == "red").to_numpy()
        return additive(table[X.columns]) + redness

    function = po.wrap(model, data=COLOURED)
    share = COLOURED["colour"].notna().mean()
    effects = 3.0 * (COLOURED["colour"].notna() - share)
    expected = np.column_stack([slopes_and_effects(), effects])
    result = Gradient().explain(function, COLOURED).attributions
    np.testing.assert_allclose(result, expected, rtol=1e-8)
    lime = Lime(scale=0.5, n_samples=4000).explain(function, COLOURED)
    scores = (lime.attributions - expected) / np.maximum(lime.standard_errors, 1e-9)
    assert np.abs(scores).max() <= 5.0  # false alarm 7e-5 over 120 scores


# --- packages


def shapley(value, D):
    """φ by the definition, from v(S)."""
    phi = np.zeros(D)
    for j in range(D):
        rest = [i for i in range(D) if i != j]
        for size in range(D):
            weight = math.factorial(size) * math.factorial(D - 1 - size)
            for S in itertools.combinations(rest, size):
                phi[j] += weight * (value({*S, j}) - value(set(S)))
    return phi / math.factorial(D)


def curved(table):
    values = np.asarray(table, float)
    age, dose, weight = np.where(np.isnan(values), [2.5, -1.0, 0.5], values).T
    return age * dose + weight * age**2


@pytest.mark.parametrize("algorithm", ["exact", "permutation"])
def test_shap_knows_that_a_feature_is_missing(algorithm):
    pytest.importorskip("shap")
    background = X.iloc[:6]
    shap = Shap(background=background, algorithm=algorithm, n_permutations=200)
    result = shap.explain(po.wrap(curved), X.iloc[:12])
    table, B = X.to_numpy(), background.to_numpy()
    for n in range(12):

        def value(S, n=n):
            rows = B.copy()
            rows[:, list(S)] = table[n, list(S)]
            return curved(rows).mean()

        tolerance = 1e-9 if algorithm == "exact" else 0.2
        expected = shapley(value, 3)
        np.testing.assert_allclose(result.attributions[n], expected, atol=tolerance)
    np.testing.assert_allclose(result.completeness_gap, 0.0, atol=1e-12)


def test_shap_values_per_unit_stay_effects_where_a_number_is_missing():
    pytest.importorskip("shap")
    function = po.wrap(additive)
    plain = Shap(background="mean").explain(function, X)
    result = Shap(background="mean", units="gradient").explain(function, X)
    np.testing.assert_allclose(
        result.attributions[ABSENT], plain.attributions[ABSENT], rtol=1e-12
    )
    expected = np.broadcast_to([2.0, -1.0, 1.0], X.shape)
    np.testing.assert_allclose(
        result.attributions[~ABSENT], expected[~ABSENT], rtol=1e-9
    )
    np.testing.assert_array_equal(result.details["undefined"], 0.0)
    np.testing.assert_allclose(plain.base_value, additive(X.mean().to_numpy()[None])[0])


def test_the_lime_package_takes_no_missing_numbers():
    complete = X.fillna(0.0)
    for rows, background, label in ((X, complete, "X"), (complete, X, "background")):
        lime = LimePackage(n_samples=20, background=background)
        message = rf"^lime_package: {label} has missing numbers in 'age', .*Lime does"
        with pytest.raises(InvalidInput, match=message):
            lime.explain(po.wrap(additive), rows)


def test_mixtures_of_explanations_of_missing_values():
    function = po.wrap(additive, data=X)
    first = Gradient().explain(function, X)
    matching = po.GradientMatching(first)
    mixed = po.explainers.aggregate(matching, [first, first.to_frame() * 2])
    np.testing.assert_allclose(mixed.attributions, first.attributions, rtol=1e-6)


def test_effects_of_missing_numbers_are_not_scaled():
    function = po.wrap(additive, data=X)
    plain = Gradient().explain(function, X)
    np.testing.assert_array_equal(plain.effects, ABSENT)
    scaled = plain.scaled([10.0, 100.0, 1000.0])
    sizes = np.where(ABSENT, 1.0, [10.0, 100.0, 1000.0])
    np.testing.assert_array_equal(scaled.attributions, plain.attributions * sizes)
