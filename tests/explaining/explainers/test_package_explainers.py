"""Baselines around optional packages: ``lime`` and ``shap``."""

import numpy as np
import pytest
from coalitions import all_orders

from propopt.base.arrays import Array, Values
from propopt.base.extras import require
from propopt.base.resources import Budget
from propopt.explaining.explainers import LimePackage, Shap
from propopt.functions import Power, Sine, wrap
from propopt.functions.formulas import PaperFormula
from propopt.laws import perturbations


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(11).normal(size=(5, 3))


@pytest.fixture(scope="module")
def background():
    return np.random.default_rng(12).normal(size=(40, 3))


PRODUCT = wrap(lambda points: np.asarray(points).prod(axis=1))
"""Of all features: every Shapley value has interactions in it."""


@pytest.mark.parametrize("cls", [LimePackage, Shap])
def test_a_background_is_copied(cls, background):
    pytest.importorskip("lime")
    table = background.copy()
    explainer = cls(data=table)
    before = explainer.parameters["data"]
    table[:] = 0
    assert explainer.parameters["data"] == before
    assert str(before).startswith("40x3 sha256:")


def test_lime_package_equals_the_package_called_by_hand(X, background):
    pytest.importorskip("lime")
    tabular = require("lime.lime_tabular")
    settings = {"n_samples": 300, "kernel_width": 1.5, "data": background}
    lime = LimePackage(**settings)
    result = lime.explain(PaperFormula("exponential"), X, rng=4)
    seeds = np.random.default_rng(4).integers(2**32, size=len(X))
    for n, (row, seed) in enumerate(zip(X, seeds, strict=True)):
        fit = tabular.LimeTabularExplainer(
            background,
            mode="regression",
            kernel_width=1.5,
            random_state=int(seed),
        ).explain_instance(
            row, PaperFormula("exponential").value, num_features=3, num_samples=300
        )
        slopes = dict(fit.as_map()[1])
        expected = [slopes[j] for j in range(3)]
        np.testing.assert_allclose(result.attributions[n], expected, rtol=1e-10)
        assert result.details["intercept"][n] == pytest.approx(fit.intercept[1])
        assert result.details["r2"][n] == pytest.approx(fit.score)


def test_a_constant_column_gets_no_attribution_of_the_package(background):
    pytest.importorskip("lime")
    table = background * np.array([0.1, 1.0, 5.0])
    table[:, 1] = 5.0
    constant = LimePackage(n_samples=200, data=table).explain(Power(2), table[:2])
    np.testing.assert_allclose(constant.attributions[:, 1], 0.0, atol=1e-8)


def cells(rng: np.random.Generator, shape: tuple[int, int], kind: str) -> Array:
    """Numbers; whole ones, so that many are equal; or some that are missing."""
    table = rng.normal(size=shape)
    if kind == "numbers":
        return table
    table = table.round()
    if kind == "missing":
        table[rng.random(shape) < 0.2] = np.nan
    return table


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ["numbers", "equal", "missing"])
@pytest.mark.parametrize("n_rows", [1, 20])
@pytest.mark.parametrize("algorithm", ["exact", "permutation"])
def test_shap_equals_the_package_and_asks_no_more_of_the_model(algorithm, n_rows, kind):
    pytest.importorskip("shap")
    package, rng = require("shap"), np.random.default_rng(5)
    points, background = cells(rng, (4, 6), kind), cells(rng, (n_rows, 6), kind)
    asked = []

    def model(rows: Array) -> Values:
        asked.append(len(rows))
        rows = np.nan_to_num(rows, nan=2.5)
        return np.asarray(np.sin(rows).prod(axis=1) + rows[:, 0] ** 2)

    shap = Shap(data=background, algorithm=algorithm, n_permutations=3)
    result = shap.explain(wrap(model), points, rng=4)
    asked.clear()
    masker = package.maskers.Independent(background, max_samples=n_rows)
    missing = np.isnan(background)
    masker.invariants = lambda x: (x == background) | (np.isnan(x) & missing)
    if algorithm == "exact":
        explainer = package.explainers.ExactExplainer(model, masker)
        wanted = explainer(points, max_evals=2**6, silent=True).values
    else:
        seeds = np.random.default_rng(4).integers(2**32, size=len(points))
        wanted = np.vstack(
            [
                package.explainers.PermutationExplainer(model, masker, seed=int(seed))(
                    point[None], max_evals=3 * 13, silent=True
                ).values
                for point, seed in zip(points, seeds, strict=True)
            ]
        )
    # 2^6 changes of f at most are added up, each rounded to ε of the largest value
    np.testing.assert_allclose(result.attributions, wanted, rtol=0, atol=64 * 2e-15)
    own = n_rows + len(points) + 6  # base values, gaps, and rows that are tried twice
    assert result.evaluations <= sum(asked) + own


@pytest.mark.parametrize("algorithm", ["exact", "permutation"])
def test_shap_is_what_it_is_whatever_its_blocks(algorithm, X, background, monkeypatch):
    line = Shap(algorithm=algorithm).explain(Power(1), X)
    np.testing.assert_allclose(line.attributions, X - X.mean(axis=0), atol=1e-8)
    shap = Shap(data=background, algorithm=algorithm, n_permutations=200)
    result = shap.explain(PRODUCT, X)
    truth = all_orders(PRODUCT, X, background)
    tolerance = 1e-12 if algorithm == "exact" else 0.1
    np.testing.assert_allclose(result.attributions, truth, atol=tolerance)
    base = PRODUCT.value(background).mean()
    np.testing.assert_allclose(result.base_value, base)
    np.testing.assert_allclose(result.additivity_error, 0.0, atol=1e-12)
    np.testing.assert_allclose(result.attributions.sum(axis=1), PRODUCT.value(X) - base)
    monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(8 * 3 * 40 * 2))
    again = shap.explain(PRODUCT, X).attributions
    np.testing.assert_allclose(again, result.attributions, rtol=1e-10)


def test_gradient_units_divide_by_the_distance_to_the_reference():
    # features at their reference are set to zero and counted, those close to it are not
    for background, power, rows, expected, undefined in (
        ([0.0, 1.0, 2.0], 2, [0.0, 1.0, 2.0], [0.0, 0.0, 0.0], 3),
        ([0.0, 1.0, 2.0], 2, [0.0, 3.0, 2.0 + 1e-12], [0.0, 4.0, 0.0], 2),
        ([0.0, 1.0, 2.0], 2, [2.0, 3.0, 1.0], [2.0, 4.0, 3.0], 0),
        ([2020.0, 0.0], 1, [2020.01, 1.0], [1.0, 1.0], 0),
    ):
        shap = Shap(data=[background], units="gradient")
        result = shap.explain(Power(power), [rows])
        np.testing.assert_allclose(result.attributions, [expected], rtol=1e-9)
        np.testing.assert_array_equal(result.details["undefined"], [undefined])


def test_shap_is_exact_up_to_twelve_features_and_samples_above(capfd):
    rng = np.random.default_rng(0)
    for n_features in (12, 13):
        result = Shap().explain(Sine(), rng.normal(size=(1, n_features)))
        assert np.abs(result.additivity_error).max() < 1e-12
    assert capfd.readouterr() == ("", "")
    table = np.arange(300.0)[:, None]  # the whole background is used
    result = Shap(data=table).explain(Power(1), [[0.0]])
    np.testing.assert_allclose(result.attributions, -table.mean())
