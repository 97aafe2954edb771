"""What all baselines have in common: names, seeds, settings and refusals."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from baseline_checks import Recorded

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining import explainers
from propopt.explaining.explainers import (
    BASELINES,
    Gradient,
    Lime,
    LimePackage,
    Shap,
    SmoothGrad,
)
from propopt.functions import Power, Sine
from propopt.functions.formulas import Interactions


def test_every_explainer_is_registered_under_its_method():
    assert {name: cls.method for name, cls in BASELINES.items()} == {
        name: name for name in BASELINES
    }


def test_the_public_names_are_sorted_and_exist():
    names = explainers.__all__
    assert names == sorted(names)
    assert all(name in vars(explainers) for name in names)


def test_gradient_gives_the_gradients(X):
    result = Gradient().explain(Interactions(), X)
    np.testing.assert_array_equal(result.attributions, Interactions().gradient(X))


@pytest.mark.parametrize(
    "explainer",
    [
        Gradient(),
        SmoothGrad(scale=0.1),
        Lime(scale=0.1),
        LimePackage(n_samples=50),
        Shap(),
        Shap(algorithm="permutation"),
    ],
)
def test_the_names_of_points_and_features_are_kept(explainer):
    for package, kind in {"lime": LimePackage, "shap": Shap}.items():
        if isinstance(explainer, kind):
            pytest.importorskip(package)
    X = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=["a", "b"], columns=["u", "v"])
    result = explainer.explain(Power(2), X).to_frame()
    assert list(result.index) == ["a", "b"]
    assert list(result.columns) == ["u", "v"]


@pytest.mark.parametrize(
    "explainer", [Gradient(), SmoothGrad(scale=0.1), Lime(scale=0.1)]
)
def test_perturbed_points_reach_the_function_with_the_columns_of_the_input(explainer):
    function = Recorded()
    X = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["u", "v"])
    explainer.explain(function, X)
    assert {names.features for names in function.names} == {("u", "v")}


def test_the_result_tells_how_it_was_made(X):
    result = Lime(scale=0.5, n_samples=20, kernel_width=2.0).explain(Sine(), X)
    assert result.method == "lime"
    assert result.parameters == {
        "scale": 0.5,
        "n_samples": 20,
        "distribution": "gaussian",
        "kernel_width": 2.0,
        "ridge": 0.0,
        "fit_intercept": True,
        "relative": False,
    }
    assert result.seconds > 0


def test_settings_from_numpy_are_written_as_plain_numbers():
    explainer = SmoothGrad(scale=np.float64(0.5), n_samples=np.int64(20))
    assert json.dumps(explainer.parameters) == (
        '{"scale": 0.5, "n_samples": 20, "distribution": "gaussian", "relative": false}'
    )


@pytest.mark.parametrize("explainer", [SmoothGrad(scale=0.1), Lime(scale=0.1)])
def test_results_are_the_same_from_run_to_run(explainer, X):
    once = explainer.explain(Sine(), X).attributions
    np.testing.assert_array_equal(explainer.explain(Sine(), X).attributions, once)
    np.testing.assert_array_equal(
        explainer.explain(Sine(), X, rng=0).attributions, once
    )


@pytest.mark.parametrize("explainer", [SmoothGrad(scale=0.1), Lime(scale=0.1)])
def test_another_seed_gives_another_result(explainer, X):
    results = [explainer.explain(Sine(), X, rng=seed).attributions for seed in (0, 1)]
    assert (results[0] != results[1]).all()


def test_a_generator_is_advanced(X):
    rng = np.random.default_rng(0)
    results = [SmoothGrad(scale=0.1).explain(Sine(), X, rng=rng) for _ in range(2)]
    assert (results[0].attributions != results[1].attributions).all()


@pytest.mark.parametrize("rng", [-1, 1.5, "0", True, np.random.RandomState(0)])
def test_a_seed_that_is_none_is_refused(rng, X):
    with pytest.raises(InvalidInput, match=r"rng: expected an integer >= 0"):
        Gradient().explain(Sine(), X, rng=rng)


def test_a_function_that_is_none_is_refused(X):
    with pytest.raises(InvalidInput, match=r"propopt\.wrap"):
        Gradient().explain(np.sin, X)


@pytest.mark.parametrize("table", [[1.0, 2.0], np.zeros((0, 2)), [[np.inf]]])
def test_a_table_that_is_none_is_refused(table):
    with pytest.raises(InvalidInput, match=r"^X: "):
        Gradient().explain(Sine(), table)


def test_the_draws_of_a_point_do_not_depend_on_later_points(X):
    for explainer in (SmoothGrad(scale=0.1), Lime(scale=0.1)):
        all_points = explainer.explain(Sine(), X).attributions
        first_two = explainer.explain(Sine(), X[:2]).attributions
        np.testing.assert_allclose(first_two, all_points[:2], rtol=1e-12)


@pytest.mark.parametrize(
    ("cls", "settings", "complaint"),
    [
        (SmoothGrad, {"scale": 0.0}, r"scale: expected a number > 0"),
        (SmoothGrad, {"scale": np.nan}, r"scale: expected a finite"),
        (SmoothGrad, {"scale": 1.0, "n_samples": 1}, r"n_samples: expected at least 2"),
        (SmoothGrad, {"scale": 1.0, "n_samples": 2.5}, r"n_samples: expected an int"),
        (SmoothGrad, {"scale": 1.0, "distribution": "cauchy"}, r"ball, gaussian, unif"),
        (Lime, {"scale": -1.0}, r"scale: expected a finite number >= 0"),
        (Lime, {"scale": 1.0, "n_samples": 0}, r"n_samples: expected an integer >= 1"),
        (Lime, {"scale": 1.0, "kernel_width": 0.0}, r"kernel_width: expected a number"),
        (Lime, {"scale": 1.0, "ridge": -1.0}, r"ridge: expected a finite number >= 0"),
        (LimePackage, {"n_samples": 1}, r"n_samples: expected at least 2"),
        (LimePackage, {"kernel_width": -1}, r"kernel_width"),
        (LimePackage, {"units": "grad"}, r"units: expected 'gradient' or 'output'"),
        (LimePackage, {"units": "gradient"}, r"need discretize=False"),
        (LimePackage, {"sample_around": True}, r"need discretize=False"),
        (LimePackage, {"background": [1.0]}, r"background: expected 2 dimensions"),
        (Shap, {"units": "grad"}, r"units: expected one of gradient, output"),
        (Shap, {"algorithm": "kernel"}, r"algorithm: expected one of auto, exact"),
        (Shap, {"n_permutations": 0}, r"n_permutations"),
        (Shap, {"background": [[np.inf]]}, r"background: 1 of 1 values"),
    ],
)
def test_a_bad_setting_is_refused_at_birth(cls, settings, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        cls(**settings)


@pytest.mark.parametrize(
    "explainer",
    [SmoothGrad(scale=0.1, n_samples=50), Lime(scale=0.1, n_samples=50)],
    ids=lambda explainer: explainer.method,
)
def test_progress_is_shown_where_asked_and_reaches_the_end(explainer, capsys):
    X = np.zeros((7, 2))
    silent = explainer.explain(Power(3), X)
    assert capsys.readouterr().err == ""
    shown = explainer.explain(Power(3), X, progress=True)
    assert "7/7" in capsys.readouterr().err
    np.testing.assert_array_equal(shown.attributions, silent.attributions)


@pytest.mark.parametrize(
    ("baseline", "rows"),
    [
        (Lime(scale=0.5, n_samples=30_000), 10),
        (Shap(algorithm="permutation", n_permutations=10), 100),
    ],
    ids=["lime", "shap"],
)
def test_what_many_evaluations_cost_is_announced_before(baseline, rows, capsys):
    if isinstance(baseline, Shap):
        pytest.importorskip("shap")
    function = po.wrap(lambda Z: Z.sum(axis=1))
    table = np.random.default_rng(0).normal(size=(rows, 2))
    result = baseline.explain(function, table, progress=True)
    said = capsys.readouterr().err
    assert f"{baseline.method}: " in said
    number = said.split(f"{baseline.method}: ")[1].split(" evaluations")[0]
    assert int(number.replace(",", "")) >= 200_000
    assert result.evaluations <= 1.1 * int(number.replace(",", ""))
