"""Baselines that need no optional package: gradient, SmoothGrad, LIME."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from propopt import explainers
from propopt._typing import Array, Attributions, Points, Values
from propopt.batches import Budget
from propopt.errors import InvalidInput, Refused
from propopt.explainers import (
    BASELINES,
    Baseline,
    Gradient,
    Lime,
    LimePackage,
    Shap,
    SmoothGrad,
    aggregate,
)
from propopt.functions import (
    Exponential,
    Function,
    Interactions,
    Power,
    QuadraticPlusSine,
    Sine,
)
from propopt.graphs.patterns import complete_graph
from propopt.losses import (
    GradientMatching,
    MaxDifferenceRobustness,
    Objective,
    PairwiseRobustness,
    PropertyLoss,
    Sparsity,
)
from propopt.results.explanation import Explanation
from propopt.sampling import perturbations
from propopt.sampling.perturbations import Perturbations
from propopt.tables.names import Labels


# Bound on |error| / standard error. Errors of means over thousands of samples are
# close to gaussian, so that one entry in 5e8 would fail by chance; the seeds are
# fixed, hence a test that passes keeps passing.
Z = 6.0

DISTRIBUTIONS = ["gaussian", "uniform", "ball"]


@pytest.fixture
def X() -> Points:
    return np.random.default_rng(7).normal(size=(6, 3))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 13 perturbed points in three dimensions."""
    monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(8 * 3 * 13))


@dataclass(frozen=True)
class Recorded(Function):
    """The sum of squares; remembers what it was asked."""

    shapes: list[tuple[int, ...]] = field(default_factory=list)
    names: list[Labels] = field(default_factory=list)

    @property
    def gradient_method(self) -> str:
        return "exact"

    def _value(self, points: Points, labels: Labels) -> Values:
        self.shapes.append(points.shape)
        self.names.append(labels)
        return np.asarray((points**2).sum(axis=1))

    def _gradient(self, points: Points, labels: Labels) -> Attributions:
        self._value(points, labels)
        return 2 * points


def worst_z(explanation: Explanation, truth: Array) -> float:
    error = np.abs(explanation.attributions - truth)
    return float((error / explanation.details["standard_error"]).max())


# --- what all have in common


def test_every_explainer_is_registered_under_its_method() -> None:
    assert {name: cls.method for name, cls in BASELINES.items()} == {
        name: name for name in BASELINES
    }


def test_the_public_names_are_sorted_and_exist() -> None:
    names = explainers.__all__
    assert names == sorted(names)
    assert all(name in vars(explainers) for name in names)


def test_gradient_gives_the_gradients(X: Points) -> None:
    found = Gradient().explain(Interactions(), X)
    np.testing.assert_array_equal(found.attributions, Interactions().gradient(X))


@pytest.mark.parametrize(
    "explainer", [Gradient(), SmoothGrad(scale=0.1), Lime(scale=0.1)]
)
def test_the_names_of_points_and_features_are_kept(explainer: Baseline) -> None:
    X = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=["a", "b"], columns=["u", "v"])
    found = explainer.explain(Power(2), X).to_frame()
    assert list(found.index) == ["a", "b"]
    assert list(found.columns) == ["u", "v"]


@pytest.mark.parametrize(
    "explainer", [Gradient(), SmoothGrad(scale=0.1), Lime(scale=0.1)]
)
def test_perturbed_points_reach_the_function_with_the_columns_of_the_input(
    explainer: Baseline,
) -> None:
    function = Recorded()
    X = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["u", "v"])
    explainer.explain(function, X)
    assert {names.features for names in function.names} == {("u", "v")}


def test_the_result_tells_how_it_was_made(X: Points) -> None:
    found = Lime(scale=0.5, n_samples=20, kernel_width=2.0).explain(Sine(), X)
    assert found.method == "lime"
    assert found.parameters == {
        "scale": 0.5,
        "n_samples": 20,
        "distribution": "gaussian",
        "kernel_width": 2.0,
        "ridge": 0.0,
        "fit_intercept": True,
        "relative": False,
    }
    assert found.seconds > 0


def test_settings_from_numpy_are_written_as_plain_numbers() -> None:
    explainer = SmoothGrad(scale=np.float64(0.5), n_samples=np.int64(20))  # type: ignore[arg-type]  # users pass them
    assert json.dumps(explainer.parameters) == (
        '{"scale": 0.5, "n_samples": 20, "distribution": "gaussian", "relative": false}'
    )


@pytest.mark.parametrize("explainer", [SmoothGrad(scale=0.1), Lime(scale=0.1)])
def test_results_are_the_same_from_run_to_run(explainer: Baseline, X: Points) -> None:
    once = explainer.explain(Sine(), X).attributions
    np.testing.assert_array_equal(explainer.explain(Sine(), X).attributions, once)
    np.testing.assert_array_equal(
        explainer.explain(Sine(), X, rng=0).attributions, once
    )


@pytest.mark.parametrize("explainer", [SmoothGrad(scale=0.1), Lime(scale=0.1)])
def test_another_seed_gives_another_result(explainer: Baseline, X: Points) -> None:
    found = [explainer.explain(Sine(), X, rng=seed).attributions for seed in (0, 1)]
    assert (found[0] != found[1]).all()


def test_a_generator_is_advanced(X: Points) -> None:
    rng = np.random.default_rng(0)
    found = [SmoothGrad(scale=0.1).explain(Sine(), X, rng=rng) for _ in range(2)]
    assert (found[0].attributions != found[1].attributions).all()


@pytest.mark.parametrize("rng", [-1, 1.5, "0", True, np.random.RandomState(0)])
def test_a_seed_that_is_none_is_refused(rng: object, X: Points) -> None:
    with pytest.raises(InvalidInput, match=r"rng: expected an integer >= 0"):
        Gradient().explain(Sine(), X, rng=rng)  # type: ignore[arg-type]  # on purpose


def test_a_function_that_is_none_is_refused(X: Points) -> None:
    with pytest.raises(InvalidInput, match=r"propopt\.wrap"):
        Gradient().explain(np.sin, X)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("table", [[1.0, 2.0], np.zeros((0, 2)), [[np.nan]]])
def test_a_table_that_is_none_is_refused(table: object) -> None:
    with pytest.raises(InvalidInput, match=r"^X: "):
        Gradient().explain(Sine(), table)


# --- perturbations


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_draws_have_the_moments_of_their_law(distribution: str) -> None:
    # E ε_d² is δ² (gaussian), δ²/3 (cube), δ²/(D + 2) (ball).
    variance = {"gaussian": 4.0, "uniform": 4 / 3, "ball": 4 / 5}[distribution]
    noise = Perturbations(scale=2.0, n_samples=1, distribution=distribution)  # type: ignore[arg-type]  # a parameter
    draws = noise.draw((40_000, 3), np.random.default_rng(0))
    for sample, truth in [(draws, 0.0), (draws**2, variance)]:
        error = sample.std(axis=0) / np.sqrt(len(sample))
        assert (np.abs(sample.mean(axis=0) - truth) < Z * error).all()


def test_the_ball_is_filled_evenly_to_its_radius() -> None:
    noise = Perturbations(scale=2.0, n_samples=1, distribution="ball")
    draws = noise.draw((40_000, 3), np.random.default_rng(0))
    volumes = (np.linalg.norm(draws, axis=1) / 2) ** 3  # uniform in (0, 1)
    assert volumes.max() <= 1
    # sd of a decile's count: √(40 000 · 0.1 · 0.9) = 60
    assert np.abs(np.histogram(volumes, 10, (0, 1))[0] - 4000).max() < Z * 60


def test_uniform_draws_stay_in_the_cube() -> None:
    noise = Perturbations(scale=2.0, n_samples=1, distribution="uniform")
    assert np.abs(noise.draw((1000, 3), np.random.default_rng(0))).max() <= 2


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("n_samples", [5, 30])
def test_the_block_size_never_changes_the_draws(
    distribution: str, n_samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = Perturbations(scale=1.0, n_samples=n_samples, distribution=distribution)  # type: ignore[arg-type]  # a parameter

    def draws(block: int) -> Array:
        monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(8 * 3 * block))
        parts = noise.blocks((7, 3), np.random.default_rng(1), split=True)
        return np.concatenate([part.reshape(-1, 3) for _, part in parts])

    for block in (1, 13, 200):
        np.testing.assert_array_equal(draws(block), draws(10_000))


def test_the_draws_of_a_point_do_not_depend_on_later_points(X: Points) -> None:
    for explainer in (SmoothGrad(scale=0.1), Lime(scale=0.1)):
        all_points = explainer.explain(Sine(), X).attributions
        first_two = explainer.explain(Sine(), X[:2]).attributions
        np.testing.assert_allclose(first_two, all_points[:2], rtol=1e-12)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_stay_within_their_budget(X: Points) -> None:
    function = Recorded()
    SmoothGrad(scale=0.1, n_samples=40).explain(function, X)
    assert max(rows for rows, _ in function.shapes) == 13
    assert sum(rows for rows, _ in function.shapes) == 6 * 40


# --- SmoothGrad


@pytest.mark.parametrize(
    "function", [Power(3), Sine(), Exponential(), QuadraticPlusSine()]
)
@pytest.mark.parametrize("scale", [0.1, 0.7])
def test_smoothgrad_tends_to_the_smoothed_gradient(
    function: Power, scale: float, X: Points
) -> None:
    found = SmoothGrad(scale=scale, n_samples=4000).explain(function, X)
    assert worst_z(found, function.smoothed_gradient(X, scale)) < Z


def test_smoothgrad_of_a_cube_is_3x2_plus_3_delta2(X: Points) -> None:
    found = SmoothGrad(scale=0.5, n_samples=4000).explain(Power(3), X)
    assert worst_z(found, 3 * X**2 + 3 * 0.5**2) < Z


@pytest.mark.parametrize(
    ("distribution", "variance"), [("uniform", 1 / 3), ("ball", 1 / 5)]
)
def test_uniform_smoothgrad_of_a_cube_has_the_variance_of_its_law(
    distribution: perturbations.Distribution, variance: float, X: Points
) -> None:
    smooth = SmoothGrad(scale=0.5, n_samples=4000, distribution=distribution)
    truth = 3 * X**2 + 3 * 0.25 * variance
    assert worst_z(smooth.explain(Power(3), X), truth) < Z


def test_smoothgrad_of_a_linear_function_is_exact(X: Points) -> None:
    found = SmoothGrad(scale=3.0, n_samples=5).explain(Power(1), X)
    np.testing.assert_allclose(found.attributions, 1.0)
    np.testing.assert_allclose(found.details["standard_error"], 0.0, atol=1e-15)


def test_smoothgrad_and_its_error_are_the_mean_and_its_error(X: Points) -> None:
    found = SmoothGrad(scale=0.5, n_samples=50).explain(Sine(), X, rng=3)
    draws = 0.5 * np.random.default_rng(3).standard_normal((6, 50, 3))
    gradients = np.cos(X[:, None] + draws)
    np.testing.assert_allclose(found.attributions, gradients.mean(axis=1))
    np.testing.assert_allclose(
        found.details["standard_error"],
        gradients.std(axis=1, ddof=1) / np.sqrt(50),
    )


@pytest.mark.usefixtures("small_blocks")
def test_smoothgrad_does_not_depend_on_the_block_size(
    X: Points, monkeypatch: pytest.MonkeyPatch
) -> None:
    smooth = SmoothGrad(scale=0.5, n_samples=40)
    blocked = smooth.explain(Sine(), X)
    monkeypatch.undo()
    whole = smooth.explain(Sine(), X)
    np.testing.assert_allclose(blocked.attributions, whole.attributions, rtol=1e-12)
    np.testing.assert_allclose(
        blocked.details["standard_error"], whole.details["standard_error"], rtol=1e-12
    )


# --- LIME


def samples(X: Points, scale: float, n_samples: int) -> Array:
    draws = np.random.default_rng(0).standard_normal((len(X), n_samples, X.shape[1]))
    return X[:, None] + scale * draws


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel_width", [None, 0.8])
@pytest.mark.parametrize("ridge", [0.0, 2.5])
def test_lime_equals_scikit_learn_at_every_point(
    fit_intercept: bool, kernel_width: float | None, ridge: float, X: Points
) -> None:
    lime = Lime(
        scale=0.5,
        n_samples=60,
        kernel_width=kernel_width,
        ridge=ridge,
        fit_intercept=fit_intercept,
    )
    found = lime.explain(Exponential(), X)
    for n, copies in enumerate(samples(X, 0.5, 60)):
        squares = ((copies - X[n]) ** 2).sum(axis=1)
        width = np.inf if kernel_width is None else kernel_width
        weights = np.exp(-squares / (2 * width**2))
        values = Exponential().value(copies)
        model = (
            Ridge(alpha=ridge, fit_intercept=fit_intercept)
            if ridge
            else LinearRegression(fit_intercept=fit_intercept)
        ).fit(copies, values, sample_weight=weights)
        np.testing.assert_allclose(found.attributions[n], model.coef_, rtol=1e-8)
        details = {name: array[n] for name, array in found.details.items()}
        assert details["intercept"] == pytest.approx(model.intercept_, rel=1e-8)
        assert details["r2"] == pytest.approx(
            model.score(copies, values, weights), rel=1e-8
        )
        assert details["effective_samples"] == pytest.approx(
            weights.sum() ** 2 / (weights**2).sum()
        )


@pytest.mark.parametrize("scale", [1e-5, 1e-2, 1.0])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_lime_finds_the_slopes_of_a_linear_function_at_any_scale(
    scale: float, distribution: perturbations.Distribution, X: Points
) -> None:
    lime = Lime(scale=scale, n_samples=50, distribution=distribution)
    found = lime.explain(Power(1), 100 + X)
    # f is known to 300 ε, which a step of δ turns into an error of 300 ε / δ.
    rounding = 300 * np.finfo(float).eps / scale
    np.testing.assert_allclose(found.attributions, 1.0, rtol=1e-12, atol=10 * rounding)


def test_lime_tends_to_the_gradient_as_its_scale_goes_to_zero(X: Points) -> None:
    found = Lime(scale=1e-5, n_samples=50).explain(Exponential(), X)
    np.testing.assert_allclose(found.attributions, np.exp(X), rtol=1e-4)


@pytest.mark.parametrize(
    "function", [Power(3), Sine(), Exponential(), QuadraticPlusSine()]
)
def test_gaussian_lime_has_the_limit_of_smoothgrad(function: Power, X: Points) -> None:
    found = Lime(scale=0.5, n_samples=10_000).explain(function, X)
    assert worst_z(found, function.smoothed_gradient(X, 0.5)) < Z


def test_a_gaussian_kernel_narrows_gaussian_draws(X: Points) -> None:
    # N(0, δ²) tilted by exp(−ε²/2κ²) is N(0, δ²κ²/(δ² + κ²)).
    found = Lime(scale=0.8, n_samples=10_000, kernel_width=0.6).explain(Power(3), X)
    assert worst_z(found, Power(3).smoothed_gradient(X, 0.48)) < Z


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_lime_without_intercept_of_a_cube_has_its_closed_form(scale: float) -> None:
    x = np.array([[-2.0], [0.0], [0.5], [3.0]])
    lime = Lime(scale=scale, n_samples=20_000, fit_intercept=False)
    truth = (x**4 + 6 * x**2 * scale**2 + 3 * scale**4) / (x**2 + scale**2)
    found = lime.explain(Power(3), x)
    assert worst_z(found, truth) < Z
    np.testing.assert_array_equal(found.details["intercept"], 0.0)


def test_the_standard_error_of_lime_is_the_spread_over_seeds() -> None:
    lime = Lime(scale=0.7, n_samples=400, kernel_width=1.0)
    found = [lime.explain(Power(3), [[0.5, -1.0]], rng=seed) for seed in range(200)]
    spread = np.std([run.attributions for run in found], axis=0, ddof=1)
    claimed = np.mean([run.details["standard_error"] for run in found], axis=0)
    # The sd of 200 runs is itself known to 1/√400 = 5 %; twice that for the tails.
    np.testing.assert_allclose(claimed, spread, rtol=6 * 0.05 * 0.5 + 0.1)


@pytest.mark.usefixtures("small_blocks")
def test_lime_does_not_depend_on_the_block_size(
    X: Points, monkeypatch: pytest.MonkeyPatch
) -> None:
    lime = Lime(scale=0.5, n_samples=40, kernel_width=0.7)
    blocked = lime.explain(Sine(), X)
    monkeypatch.undo()
    whole = lime.explain(Sine(), X)
    np.testing.assert_allclose(blocked.attributions, whole.attributions, rtol=1e-10)
    for name, detail in whole.details.items():
        np.testing.assert_allclose(blocked.details[name], detail, rtol=1e-8)


def test_the_local_r2_tends_to_the_share_of_variance_that_is_linear() -> None:
    x, delta = np.array([[0.3], [1.0], [2.0]]), 0.8
    found = Lime(scale=delta, n_samples=20_000).explain(Sine(), x)
    slope = np.cos(x) * np.exp(-(delta**2) / 2)
    mean = np.sin(x) * np.exp(-(delta**2) / 2)
    variance = (1 - np.cos(2 * x) * np.exp(-2 * delta**2)) / 2 - mean**2
    truth = (slope * delta) ** 2 / variance
    # The sd of a squared correlation is at most about 2/√S = 0.014 (heavy tails
    # included); the seed is fixed.
    np.testing.assert_allclose(found.details["r2"], truth[:, 0], atol=0.03)


@dataclass(frozen=True)
class Constant(Function):
    """One number everywhere."""

    height: float

    @property
    def gradient_method(self) -> str:
        return "exact"

    def _value(self, points: Points, labels: Labels) -> Values:  # noqa: ARG002  # no names needed
        return np.full(len(points), self.height)

    def _gradient(self, points: Points, labels: Labels) -> Attributions:  # noqa: ARG002  # no names needed
        return np.zeros_like(points)


@pytest.mark.parametrize("height", [0.0, 0.1, -1e9, 1e-300])
def test_the_r2_of_a_constant_function_is_one(height: float, X: Points) -> None:
    found = Lime(scale=0.1, kernel_width=0.2).explain(Constant(height), X)
    np.testing.assert_allclose(found.attributions, 0, atol=1e-13 * abs(height))
    np.testing.assert_array_equal(found.details["r2"], 1.0)


def test_a_fit_that_does_not_fit_into_memory_is_refused_with_its_size() -> None:
    with pytest.raises(Refused, match=r"10000000000 samples x 2 features needs about"):
        Lime(scale=0.1, n_samples=10**10).explain(Sine(), [[0.0, 1.0]])


def test_too_few_samples_are_refused_with_the_numbers(X: Points) -> None:
    with pytest.raises(InvalidInput, match=r"3 samples cannot determine 4 unknowns"):
        Lime(scale=0.1, n_samples=3).explain(Sine(), X)
    Lime(scale=0.1, n_samples=4).explain(Sine(), X)
    Lime(scale=0.1, n_samples=3, fit_intercept=False).explain(Sine(), X)
    Lime(scale=0.1, n_samples=1, ridge=1.0).explain(Sine(), X)


def test_a_kernel_that_leaves_one_sample_is_refused(X: Points) -> None:
    with pytest.raises(InvalidInput, match=r"lime at point \d: .*do not determine"):
        Lime(scale=1.0, kernel_width=0.03, n_samples=20).explain(Sine(), X)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_kernel_that_leaves_no_sample_is_refused(
    fit_intercept: bool, X: Points
) -> None:
    lime = Lime(scale=1.0, kernel_width=1e-9, fit_intercept=fit_intercept)
    with pytest.raises(InvalidInput, match=r"kernel_width: 1e-09 is so small"):
        lime.explain(Sine(), X)


def test_equal_copies_without_intercept_are_refused() -> None:
    lime = Lime(scale=1e-18, n_samples=20, fit_intercept=False)
    with pytest.raises(InvalidInput, match=r"do not determine the fit"):
        lime.explain(Sine(), [[1.0, 2.0]])


# --- aggregation


@pytest.fixture
def candidates(X: Points) -> list[Explanation]:
    settings = [
        Gradient(),
        SmoothGrad(scale=0.5),
        SmoothGrad(scale=1.5),
        Lime(scale=2.0),
    ]
    return [explainer.explain(Power(3), X) for explainer in settings]


def objectives(X: Points) -> list[Objective]:
    matching = 1.0 * GradientMatching(Power(3).gradient(X))
    graph = complete_graph(len(X))
    others: list[PropertyLoss] = [
        PairwiseRobustness(graph),
        Sparsity(),
        MaxDifferenceRobustness(graph),
        MaxDifferenceRobustness(graph, norm="linf"),
    ]
    return [matching + 0.5 * other for other in others]


@pytest.mark.parametrize("which", range(4))
def test_no_mixture_beats_the_aggregate(
    which: int, X: Points, candidates: list[Explanation]
) -> None:
    objective = objectives(X)[which]
    found = aggregate(objective, candidates)
    stack = np.array([given.attributions for given in candidates])
    shares = np.random.default_rng(0).dirichlet(np.ones(4), size=500)
    rivals = [*np.tensordot(shares, stack, axes=1), *stack]
    best = min(objective.value(rival) for rival in rivals)
    assert found.objective is not None
    assert found.objective <= best * (1 + 1e-8)


def test_the_aggregate_is_the_mixture_that_it_says(
    X: Points, candidates: list[Explanation]
) -> None:
    found = aggregate(objectives(X)[0], candidates)
    shares = found.details["shares"]
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)
    mixture = sum(
        share * given.attributions
        for share, given in zip(shares, candidates, strict=True)
    )
    np.testing.assert_allclose(found.attributions, mixture)
    assert found.losses == objectives(X)[0].breakdown(found.attributions)


def test_an_explanation_that_is_already_best_is_kept(
    X: Points, candidates: list[Explanation]
) -> None:
    matching = GradientMatching(Power(3).gradient(X))
    found = aggregate(matching, candidates)
    np.testing.assert_array_equal(found.details["shares"], [1, 0, 0, 0])
    assert aggregate(matching, candidates[1:2]).details["shares"] == [1.0]


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_the_aggregate_does_not_depend_on_units(
    size: float, X: Points, candidates: list[Explanation]
) -> None:
    graph = complete_graph(len(X))
    gradients = Power(3).gradient(X)

    def shares(unit: float) -> Array:
        objective = GradientMatching(unit * gradients) + PairwiseRobustness(graph)
        scaled = [
            Explanation(attributions=unit * given.attributions, method="scaled")
            for given in candidates
        ]
        return aggregate(objective, scaled).details["shares"]

    np.testing.assert_allclose(shares(size), shares(1.0), atol=1e-6)


def test_explanations_of_different_shape_are_not_mixed(X: Points) -> None:
    given = [Gradient().explain(Sine(), points) for points in (X, X[:2])]
    with pytest.raises(InvalidInput, match=r"got \(2, 3\), \(6, 3\)"):
        aggregate(Sparsity(), given)
    with pytest.raises(InvalidInput, match=r"at least one, .* got none"):
        aggregate(Sparsity(), [])


# --- settings


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
        (LimePackage, {"units": "grad"}, r"units: expected 'output' or 'gradient'"),
        (LimePackage, {"units": "gradient"}, r"need discretize=False"),
        (LimePackage, {"sample_around": True}, r"need discretize=False"),
        (LimePackage, {"background": [1.0]}, r"background: expected 2 dimensions"),
        (Shap, {"units": "grad"}, r"units: expected one of gradient, output"),
        (Shap, {"algorithm": "kernel"}, r"algorithm: expected one of auto, exact"),
        (Shap, {"n_permutations": 0}, r"n_permutations"),
        (Shap, {"background": [[np.inf]]}, r"background: 1 of 1 values"),
    ],
)
def test_a_bad_setting_is_refused_at_birth(
    cls: type[Baseline], settings: dict[str, object], complaint: str
) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        cls(**settings)


def test_a_mixture_has_the_units_that_all_have_and_the_calls_of_all() -> None:
    def made(units: str, evaluations: int) -> Explanation:
        return Explanation(
            attributions=np.full((2, 2), float(evaluations)),
            method="some",
            units=units,  # type: ignore[arg-type]  # one of its values
            evaluations=evaluations,
        )

    objective = GradientMatching(np.full((2, 2), 1.5))
    alike = aggregate(objective, [made("gradient", 1), made("gradient", 2)])
    assert (alike.units, alike.evaluations) == ("gradient", 3)
    assert aggregate(objective, [made("gradient", 1), made("output", 2)]).units == (
        "output"
    )


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
