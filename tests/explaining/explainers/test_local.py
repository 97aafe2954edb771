"""SmoothGrad and LIME by noise: loops, limits, errors, blocks and refusals."""

import itertools

import numpy as np
import pytest
from baseline_checks import DISTRIBUTIONS, Recorded, Z, worst_z
from sklearn.linear_model import LinearRegression, Ridge

from propopt.base.errors import InvalidInput, Refused
from propopt.explaining.explainers import Lime, SmoothGrad
from propopt.functions import Power, Sine, wrap
from propopt.functions.formulas import PaperFormula


CURVED = PaperFormula("exponential")


def test_smoothgrad_and_its_error_are_the_mean_and_its_error(X):
    result = SmoothGrad(scale=0.5, n_samples=50).explain(Sine(), X, rng=3)
    draws = 0.5 * np.random.default_rng(3).standard_normal((6, 50, 3))
    gradients = np.cos(X[:, None] + draws)
    errors = gradients.std(axis=1, ddof=1) / np.sqrt(50)
    np.testing.assert_allclose(result.attributions, gradients.mean(axis=1))
    np.testing.assert_allclose(result.standard_errors, errors)
    line = SmoothGrad(scale=3.0, n_samples=5).explain(Power(1), X)
    np.testing.assert_allclose(line.attributions, 1.0)
    np.testing.assert_allclose(line.standard_errors, 0.0, atol=1e-15)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel_width", [None, 0.8])
@pytest.mark.parametrize("ridge", [0.0, 2.5])
def test_lime_equals_scikit_learn_at_every_point(fit_intercept, kernel_width, ridge, X):
    settings = {"kernel_width": kernel_width, "ridge": ridge}
    lime = Lime(scale=0.5, n_samples=60, fit_intercept=fit_intercept, **settings)
    result = lime.explain(CURVED, X)
    draws = np.random.default_rng(0).standard_normal((len(X), 60, X.shape[1]))
    model = Ridge(ridge, fit_intercept=fit_intercept)
    model = model if ridge else LinearRegression(fit_intercept=fit_intercept)
    for n, copies in enumerate(X[:, None] + 0.5 * draws):
        squares = ((copies - X[n]) ** 2).sum(axis=1)
        weights = np.exp(-squares / (2 * (kernel_width or np.inf) ** 2))
        values = CURVED.value(copies)
        model.fit(copies, values, sample_weight=weights)
        np.testing.assert_allclose(result.attributions[n], model.coef_, rtol=1e-8)
        expected = {
            "intercept": model.intercept_,
            "r2": model.score(copies, values, weights),
            "effective_samples": weights.sum() ** 2 / (weights @ weights),
        }
        found = {name: array[n] for name, array in result.details.items()}
        assert found == pytest.approx(expected, rel=1e-8)


def test_lime_has_closed_forms_of_lines_and_cubes(X):
    for distribution, scale in itertools.product(DISTRIBUTIONS, (1e-5, 1e-2, 1.0)):
        lime = Lime(scale=scale, n_samples=50, distribution=distribution)
        result = lime.explain(Power(1), 100 + X).attributions
        # f is known to 300 ε, which a step of δ turns into an error of 300 ε / δ.
        rounding = 3000 * np.finfo(float).eps / scale
        np.testing.assert_allclose(result, 1.0, rtol=1e-12, atol=rounding)
    x = np.array([[-2.0], [0.0], [0.5], [3.0]])
    lime = Lime(scale=0.3, n_samples=20_000, fit_intercept=False)
    truth = (x**4 + 6 * x**2 * 0.3**2 + 3 * 0.3**4) / (x**2 + 0.3**2)
    result = lime.explain(Power(3), x)
    assert worst_z(result, truth) < Z
    np.testing.assert_array_equal(result.details["intercept"], 0.0)


def test_the_r2_of_a_constant_function_is_one(X):
    for height in (0.0, 0.1, -1e9, 1e-300):
        function = wrap(lambda points, h=height: np.full(len(points), h))
        result = Lime(scale=0.1, kernel_width=0.2).explain(function, X)
        np.testing.assert_allclose(result.attributions, 0, atol=1e-13 * abs(height))
        np.testing.assert_array_equal(result.details["r2"], 1.0)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_stay_within_their_budget_and_change_nothing(X, monkeypatch):
    noise, function = {"scale": 0.5, "n_samples": 40}, Recorded()
    explainers = SmoothGrad(**noise), Lime(**noise, kernel_width=0.7)
    blocked = [explainer.explain(Sine(), X) for explainer in explainers]
    explainers[0].explain(function, X)
    assert max(rows for rows, _ in function.shapes) == 13
    assert sum(rows for rows, _ in function.shapes) == 6 * 40
    monkeypatch.undo()
    for explainer, parts in zip(explainers, blocked, strict=True):
        whole = explainer.explain(Sine(), X)
        for name in ("attributions", "standard_errors"):
            one, other = getattr(parts, name), getattr(whole, name)
            np.testing.assert_allclose(one, other, rtol=1e-10)
        for name, detail in whole.details.items():
            np.testing.assert_allclose(parts.details[name], detail, rtol=1e-8)


def test_a_fit_that_is_not_determined_or_too_large_is_refused(X):
    few, small = "do not determine the fit", "kernel_width: 1e-09 is so small"
    own = {"fit_intercept": False}
    for settings, sentence in (
        ({"kernel_width": 0.03, "n_samples": 20}, rf"lime at point \d: .*{few[:16]}"),
        ({"kernel_width": 1e-9}, small),
        ({"kernel_width": 1e-9, **own}, small),
        ({"scale": 1e-18, "n_samples": 20, **own}, few),
        ({"n_samples": 3}, "3 samples cannot determine 4 unknowns"),
        ({"n_samples": 10**10}, "10000000000 samples x 3 features needs about"),
    ):
        with pytest.raises((InvalidInput, Refused), match=sentence):
            Lime(**{"scale": 1.0, **settings}).explain(Sine(), X)
    Lime(scale=0.1, n_samples=4).explain(Sine(), X)
    Lime(scale=0.1, n_samples=3, **own).explain(Sine(), X)
    Lime(scale=0.1, n_samples=1, ridge=1.0).explain(Sine(), X)
