"""Metrics: against loops over rows and samples, closed forms and invariants."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import entropy, pearsonr

import propopt as po
from propopt import metrics
from propopt.batches import Budget
from propopt.errors import InvalidInput
from propopt.explainers import Gradient, Lime, Shap, SmoothGrad
from propopt.metrics import (
    PGI,
    PGU,
    AvgSensitivity,
    BaselineMethod,
    CompletenessGap,
    Complexity,
    EffectiveComplexity,
    FaithfulnessCorrelation,
    Infidelity,
    LocalLipschitz,
    MaxSensitivity,
    RelativeInputStability,
    RelativeOutputStability,
    Sparseness,
    UndefinedRowsWarning,
    evaluate,
    evaluate_rows,
)
from propopt.metrics.reading import read_rng
from propopt.sampling import perturbations
from propopt.sampling.perturbations import Perturbations


S = 9  # samples
EXACT = {"rtol": 1e-12, "atol": 1e-14}


def f(points: np.ndarray) -> np.ndarray:
    points = np.asarray(points)
    return np.sin(points[:, 0]) * points[:, 1] + (points[:, 2:] ** 2).sum(axis=1)


def explain(points: np.ndarray) -> np.ndarray:
    points = np.asarray(points)
    return np.cos(points) + 0.3 * points[:, ::-1] ** 2


FUNCTION = po.wrap(f)


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.normal(size=(6, 4))


def noise(metric: metrics.Metric, shape: tuple[int, int]) -> np.ndarray:
    """What a metric draws for seed 0, (N, S, D)."""
    law = Perturbations(
        scale=metric.scale, n_samples=S, distribution=metric.distribution
    )
    return law.draw((shape[0], S, shape[1]), read_rng(0))


def norm(vector: np.ndarray) -> float:
    return float(sum(entry**2 for entry in vector) ** 0.5)


def value(point: np.ndarray) -> float:
    return float(f(point[None])[0])


def attribution(point: np.ndarray) -> np.ndarray:
    return explain(point[None])[0]


def distances(metric: metrics.Metric, X: np.ndarray) -> list[list[float]]:
    return [
        [norm(attribution(x) - attribution(x + e)) for e in draws]
        for x, draws in zip(X, noise(metric, X.shape), strict=True)
    ]


@pytest.mark.parametrize(
    ("kind", "reduce"),
    [(MaxSensitivity, max), (AvgSensitivity, np.mean)],
    ids=["max", "mean"],
)
@pytest.mark.parametrize("distribution", ["uniform", "gaussian", "ball"])
def test_sensitivity_is_a_loop_over_samples(kind, reduce, distribution, X):
    metric = kind(n_samples=S, distribution=distribution)
    absolute = np.array([reduce(row) for row in distances(metric, X)])
    sizes = np.array([norm(attribution(x)) for x in X])
    np.testing.assert_allclose(metric(explain, X), absolute / sizes, **EXACT)
    same = dataclasses.replace(metric, units="absolute")
    np.testing.assert_allclose(same(explain, X), absolute, **EXACT)


def test_local_lipschitz_is_a_loop_over_samples(X):
    metric = LocalLipschitz(n_samples=S)
    expected = [
        max(d / norm(e) for d, e in zip(row, draws, strict=True))
        for row, draws in zip(distances(metric, X), noise(metric, X.shape), strict=True)
    ]
    # x + ε − x is not ε to the last digit
    np.testing.assert_allclose(metric(explain, X), expected, rtol=1e-10)


def test_relative_input_stability_is_a_loop_over_samples(X):
    metric = RelativeInputStability(n_samples=S)

    def ratio(x: np.ndarray, e: np.ndarray) -> float:
        change = norm((attribution(x) - attribution(x + e)) / attribution(x))
        return change / max(norm((x - (x + e)) / x), 1e-6)

    expected = [
        max(ratio(x, e) for e in draws)
        for x, draws in zip(X, noise(metric, X.shape), strict=True)
    ]
    np.testing.assert_allclose(metric(explain, X), expected, **EXACT)


def test_relative_output_stability_is_a_loop_over_samples(X):
    metric = RelativeOutputStability(n_samples=S, floor=0.05)

    def ratio(x: np.ndarray, e: np.ndarray) -> float:
        change = norm((attribution(x) - attribution(x + e)) / attribution(x))
        return change / max(abs(value(x) - value(x + e)), 0.05)

    expected = [
        max(ratio(x, e) for e in draws)
        for x, draws in zip(X, noise(metric, X.shape), strict=True)
    ]
    np.testing.assert_allclose(metric(explain, FUNCTION, X), expected, **EXACT)


def test_infidelity_is_a_loop_over_samples(X):
    metric = Infidelity(n_samples=S)
    expected = [
        np.mean([(e @ attribution(x) - (value(x) - value(x - e))) ** 2 for e in draws])
        for x, draws in zip(X, noise(metric, X.shape), strict=True)
    ]
    np.testing.assert_allclose(metric(explain(X), FUNCTION, X), expected, rtol=1e-11)


def test_scale_free_infidelity_is_that_of_a_least_squares_fit(X):
    metric = Infidelity(n_samples=S, rescaling="best")
    parts = metric.parts(explain(X), FUNCTION, X)
    for row, (x, draws) in enumerate(zip(X, noise(metric, X.shape), strict=True)):
        forecast = draws @ attribution(x)
        change = np.array([value(x) - value(x - e) for e in draws])
        fit, residual, *_ = np.linalg.lstsq(forecast[:, None], change)
        np.testing.assert_allclose(parts.factor[row], fit[0], rtol=1e-10)
        np.testing.assert_allclose(parts.scale_free[row], residual[0] / S, rtol=1e-10)
    np.testing.assert_array_equal(parts.scale_free, metric(explain(X), FUNCTION, X))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_faithfulness_correlation_is_a_loop_over_subsets(k, X):
    baseline = np.array([0.5, -1.0, 2.0, 0.1])
    metric = FaithfulnessCorrelation(k=k, n_samples=S, baseline=baseline)
    keys = read_rng(0).uniform(-1, 1, (len(X), S, 4))
    expected = []
    for x, draws in zip(X, keys, strict=True):
        subsets = [np.argsort(key)[:k] for key in draws]
        sums = [attribution(x)[subset].sum() for subset in subsets]
        effects = []
        for subset in subsets:
            removed = x.copy()
            removed[subset] = baseline[subset]
            effects.append(value(x) - value(removed))
        expected.append(pearsonr(sums, effects).statistic)
    np.testing.assert_allclose(metric(explain(X), FUNCTION, X), expected, rtol=1e-10)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_prediction_gaps_are_loops_over_samples(k, X):
    important, other = PGI(k=k, n_samples=S), PGU(k=k, n_samples=S)
    W = explain(X)
    gaps = {PGI: [], PGU: []}
    for x, w, draws in zip(X, W, noise(important, X.shape), strict=True):
        top = sorted(range(4), key=lambda d: -abs(w[d]))[:k]
        mask = np.array([d in top for d in range(4)])
        for kind, chosen in [(PGI, mask), (PGU, ~mask)]:
            moved = [value(x + chosen * e) for e in draws]
            gaps[kind].append(np.mean([abs(value(x) - there) for there in moved]))
    np.testing.assert_allclose(important(W, FUNCTION, X), gaps[PGI], rtol=1e-11)
    np.testing.assert_allclose(other(W, FUNCTION, X), gaps[PGU], **EXACT)


def test_completeness_gap_is_what_is_missing(X, rng):
    background = rng.normal(size=(3, 4))
    change = f(X) - f(background).mean()
    gap = np.abs(explain(X).sum(axis=1) - change)
    metric = CompletenessGap(background=background)
    np.testing.assert_allclose(metric(explain(X), FUNCTION, X), gap, **EXACT)
    metric = CompletenessGap(background=background, units="relative")
    np.testing.assert_allclose(
        metric(explain(X), FUNCTION, X), gap / np.abs(change), **EXACT
    )


def test_shapley_values_are_complete(X):
    """Of Σ x_j³ they are x_j³ less its mean over the background."""
    values = X**3 - (X**3).mean(axis=0)
    gap = CompletenessGap(background=X)(values, po.functions.Power(3), X)
    assert gap.max() < 1e-12


def test_sparseness_is_the_mean_absolute_difference():
    """Gini = Σ_ij ||w_i| − |w_j|| / (2 D Σ_i |w_i|)."""
    W = np.random.default_rng(1).normal(size=(5, 7))
    expected = [
        sum(abs(abs(a) - abs(b)) for a, b in itertools.product(w, w))
        / (2 * 7 * np.abs(w).sum())
        for w in W
    ]
    np.testing.assert_allclose(Sparseness()(W), expected, **EXACT)


def test_complexity_is_the_entropy_of_scipy():
    W = np.random.default_rng(2).normal(size=(5, 7))
    np.testing.assert_allclose(Complexity()(W), entropy(np.abs(W), axis=1), **EXACT)


@pytest.mark.parametrize("n_features", [1, 2, 10])
def test_one_attribution_and_equal_ones_are_the_extremes(n_features):
    W = np.stack([3.0 * np.eye(n_features)[0], np.full(n_features, -0.1)])
    np.testing.assert_allclose(Sparseness()(W), [1 - 1 / n_features, 0], atol=1e-15)
    np.testing.assert_allclose(Complexity()(W), [0, np.log(n_features)], atol=1e-14)
    np.testing.assert_array_equal(EffectiveComplexity()(W), [1, n_features])


def test_effective_complexity_counts_above_the_threshold():
    W = [[0.5, -0.5, 0.51, -2.0]]
    np.testing.assert_array_equal(EffectiveComplexity(threshold=0.5)(W), [2])


LINE = po.wrap(lambda X: X @ np.array([1.0, -2.0, 0.5, 3.0]))


def test_the_gradient_of_a_line_is_perfect(X):
    W = np.tile([1.0, -2.0, 0.5, 3.0], (len(X), 1))
    constant = BaselineMethod(explainer=Gradient(), function=LINE)
    assert Infidelity()(W, LINE, X).max() < 1e-25
    assert MaxSensitivity()(constant, X).max() < 1e-8  # differences of f
    effects = W * (X - X.mean(axis=0))
    np.testing.assert_allclose(FaithfulnessCorrelation(k=2)(effects, LINE, X), 1)
    assert CompletenessGap()(effects, LINE, X).max() < 1e-13


def test_constant_attributions_have_no_sensitivity(X):
    for metric in (MaxSensitivity(), AvgSensitivity(), LocalLipschitz()):
        assert (metric(np.ones_like, X) == 0).all()


def test_relative_sensitivity_of_the_identity_is_that_of_the_points(X):
    metric = MaxSensitivity(n_samples=S)
    steps = np.linalg.norm(noise(metric, X.shape), axis=2).max(axis=1)
    found = metric(lambda points: points, X)
    np.testing.assert_allclose(found, steps / np.linalg.norm(X, axis=1), rtol=1e-10)


def test_infidelity_of_a_square_is_its_curvature():
    """For x² and w = 2x the error is I², E I⁴ = 3δ⁴; false alarms below 1e-6.

    Over 100,000 draws the mean of I⁴, of variance 96δ⁸, is normal enough for z < 6.
    """
    X = np.linspace(-2, 2, 200)[:, None]
    found = Infidelity(scale=0.5, n_samples=500)(2 * X, po.functions.Power(2), X)
    z = (found.mean() - 3 * 0.5**4) / np.sqrt(96 * 0.5**8 / 100_000)
    assert abs(z) < 6


def test_prediction_gap_of_a_line_is_that_of_a_normal():
    """E|mᵀ(w∘ε)| = δ‖m∘w‖√(2/π); over 50,000 draws z < 5, false alarms 6e-7."""
    w = np.array([1.0, -2.0, 0.5, 3.0])
    X = np.zeros((100, 4))
    for metric, size in [
        (PGI(k=2, scale=0.3, n_samples=500), np.hypot(2, 3)),
        (PGU(k=2, scale=0.3, n_samples=500), np.hypot(1, 0.5)),
    ]:
        gaps = metric(np.tile(w, (100, 1)), LINE, X)
        scale = 0.3 * size
        spread = scale * np.sqrt((1 - 2 / np.pi) / 50_000)
        assert abs(gaps.mean() - scale * np.sqrt(2 / np.pi)) < 5 * spread


def test_subsets_are_uniform_among_all_of_their_size():
    """χ² of 10 subsets, 9 degrees of freedom: above 50 with probability 1e-7."""
    seen: list[np.ndarray] = []

    def spy(points: np.ndarray) -> np.ndarray:
        seen.append(np.asarray(points) == 0)
        return np.asarray(points) @ np.arange(1.0, 6.0)

    metric = FaithfulnessCorrelation(k=2, n_samples=10_000, baseline=np.zeros(5))
    metric(np.arange(5.0)[None], po.wrap(spy), np.ones((1, 5)))
    subsets = np.concatenate([part for part in seen if part.any()])
    assert (subsets.sum(axis=1) == 2).all()
    _, counts = np.unique(subsets, axis=0, return_counts=True)
    assert len(counts) == 10
    assert ((counts - 1000) ** 2 / 1000).sum() < 50


ROBUST = [
    MaxSensitivity(n_samples=S),
    AvgSensitivity(n_samples=S),
    LocalLipschitz(n_samples=S),
    RelativeInputStability(n_samples=S),
]
FAITHFUL = [
    Infidelity(n_samples=S),
    Infidelity(n_samples=S, rescaling="best"),
    FaithfulnessCorrelation(n_samples=S, baseline=np.zeros(4)),
    PGI(n_samples=S),
    PGU(n_samples=S),
    CompletenessGap(background=np.zeros((1, 4))),
]


def asked(metric: metrics.Metric, X: np.ndarray, rng: object = None) -> np.ndarray:
    """Any metric of the same function and method."""
    match metric:
        case metrics.RobustnessMetric():
            return metric(explain, X, rng=rng)
        case metrics.OutputRobustnessMetric():
            return metric(explain, FUNCTION, X, rng=rng)
        case metrics.FaithfulnessMetric():
            return metric(explain(X), FUNCTION, X, rng=rng)
    return metric(explain(X))


SAMPLED = [*ROBUST, RelativeOutputStability(n_samples=S), *FAITHFUL[:-1]]


@pytest.mark.parametrize("metric", SAMPLED, ids=lambda m: m.name)
def test_blocks_do_not_change_a_result(metric, X, monkeypatch):
    whole = asked(metric, X)
    for n_bytes in (1, 8 * 4 * 4, 8 * 4 * 2 * S):
        monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(n_bytes))
        np.testing.assert_allclose(asked(metric, X), whole, rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("metric", SAMPLED, ids=lambda m: m.name)
def test_a_point_does_not_depend_on_later_ones(metric, X):
    np.testing.assert_allclose(asked(metric, X[:2]), asked(metric, X)[:2], rtol=1e-12)


@pytest.mark.parametrize("metric", SAMPLED, ids=lambda m: m.name)
def test_seeds_decide_and_none_is_zero(metric, X):
    np.testing.assert_array_equal(asked(metric, X), asked(metric, X, rng=0))
    assert (asked(metric, X) != asked(metric, X, rng=1)).any()
    generator = np.random.default_rng(0)
    first, second = (asked(metric, X, rng=generator) for _ in range(2))
    assert (first != second).any()


def test_metrics_do_not_draw_what_explainers_draw():
    ours, theirs = read_rng(3).normal(size=8), np.random.default_rng(3).normal(size=8)
    assert not np.isin(ours, theirs).any()


@pytest.mark.parametrize("metric", FAITHFUL[:-1], ids=lambda m: m.name)
def test_the_model_is_asked_in_blocks(metric, monkeypatch):
    sizes: list[int] = []

    def spy(points: np.ndarray) -> np.ndarray:
        sizes.append(len(points))
        return f(points)

    X = np.random.default_rng(0).normal(size=(40, 4))
    monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(8 * 4 * 10 * S))
    function = po.wrap(spy)
    function.value(X[:1])
    sizes.clear()  # of the trial
    metric(explain(X), function, X)
    assert sorted(sizes) == [40] + [10 * S] * 4 or sizes == [40] + [10 * S] * 4


ATTRIBUTIONS = arrays(
    float, (3, 5), elements=st.floats(-10, 10).map(lambda w: round(w, 3))
).filter(lambda W: (W != 0).any(axis=1).all())
COMPLEXITIES = [Sparseness(), Complexity(), EffectiveComplexity()]


@given(W=ATTRIBUTIONS, order=st.permutations(range(5)))
@pytest.mark.parametrize("metric", COMPLEXITIES, ids=lambda m: m.name)
def test_the_order_of_features_does_not_matter(metric, W, order):
    np.testing.assert_allclose(metric(W[:, order]), metric(W), atol=1e-14)


@given(W=ATTRIBUTIONS, exponent=st.integers(-250, 250), sign=st.sampled_from([-1, 1]))
@pytest.mark.parametrize("metric", COMPLEXITIES[:2], ids=lambda m: m.name)
def test_the_scale_of_attributions_does_not_matter(metric, W, exponent, sign):
    np.testing.assert_allclose(metric(sign * 10.0**exponent * W), metric(W), atol=1e-13)


@given(W=ATTRIBUTIONS, exponent=st.integers(-150, 150), sign=st.sampled_from([-1, 1]))
def test_scale_free_infidelity_does_not_depend_on_the_scale(W, exponent, sign):
    factor = sign * 10.0**exponent
    X = np.random.default_rng(0).normal(size=(3, 5))
    metric = Infidelity(n_samples=20)
    once = metric.parts(W, FUNCTION, X)
    parts = metric.parts(factor * W, FUNCTION, X)
    np.testing.assert_allclose(parts.scale_free, once.scale_free, rtol=1e-9)
    np.testing.assert_allclose(parts.factor * factor, once.factor, rtol=1e-9)
    assert (once.scale_free <= once.raw * (1 + 1e-12)).all()


@given(W=ATTRIBUTIONS, factor=st.floats(1e-6, 1e6))
def test_correlation_is_scale_free_and_odd(W, factor):
    X = np.random.default_rng(0).normal(size=(3, 5))
    metric = FaithfulnessCorrelation(n_samples=20, k=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedRowsWarning)  # equal attributions
        once = metric(W, FUNCTION, X)
        np.testing.assert_allclose(metric(factor * W, FUNCTION, X), once, atol=1e-9)
        np.testing.assert_allclose(metric(-W, FUNCTION, X), -once, atol=1e-9)
    assert (np.abs(once[~np.isnan(once)]) <= 1).all()


@given(factor=st.floats(1e-6, 1e6))
def test_relative_robustness_is_scale_free_and_absolute_is_not(factor):
    X = np.random.default_rng(0).normal(size=(3, 4))

    def scaled(points: np.ndarray) -> np.ndarray:
        return factor * explain(points)

    for metric in (*ROBUST[:2], ROBUST[3]):
        np.testing.assert_allclose(metric(scaled, X), metric(explain, X), rtol=1e-9)
    for metric in (
        MaxSensitivity(n_samples=S, units="absolute"),
        AvgSensitivity(n_samples=S, units="absolute"),
        LocalLipschitz(n_samples=S),
    ):
        expected = factor * metric(explain, X)
        np.testing.assert_allclose(metric(scaled, X), expected, rtol=1e-9)


@pytest.mark.parametrize("metric", COMPLEXITIES[:2], ids=lambda m: m.name)
def test_zero_over_zero_is_nan_and_counted(metric):
    with pytest.warns(UndefinedRowsWarning, match="1 of 2 rows"):
        found = metric([[0.0, 0.0], [1.0, 2.0]])
    assert np.isnan(found[0])
    assert np.isfinite(found[1])


def test_relative_sensitivity_at_zero_is_nan_or_infinite(X):
    def jumps(points: np.ndarray) -> np.ndarray:
        moved = ~np.isin(points[:, 0], X[:, 0]) & (points[:, 1] > X[:, 1].mean())
        return moved[:, None] * np.ones(4)

    with pytest.warns(UndefinedRowsWarning, match="6 of 6 rows"):
        found = MaxSensitivity(scale=1e-3)(jumps, X)
    above = X[:, 1] > X[:, 1].mean()
    assert np.isnan(found[~above]).all()
    assert (found[above] == np.inf).all()


def test_steps_that_rounding_makes_zero_are_left_out():
    with pytest.warns(UndefinedRowsWarning, match="1 of 2 rows"):
        found = LocalLipschitz(scale=1e-3)(lambda X: 2 * X, [[1e20], [1.0]])
    assert np.isnan(found[0])
    np.testing.assert_allclose(found[1], 2)
    # steps of less than 1 vanish beside 1e16, and those above do not
    found = LocalLipschitz(scale=1.0)(lambda X: 2 * X, [[1e16]])
    np.testing.assert_array_equal(found, [2])


@pytest.mark.parametrize(
    ("W", "function"),
    [
        (np.full((2, 3), 0.1), po.wrap(lambda X: X @ [1.0, 2.0, 3.0])),
        (np.zeros((2, 3)), po.wrap(lambda X: X @ [1.0, 2.0, 3.0])),
        ([[1.0, 2.0, 3.0]] * 2, po.wrap(lambda X: np.full(len(X), 0.7))),
    ],
    ids=["equal attributions", "zeros", "constant function"],
)
def test_correlation_with_a_constant_is_undefined(W, function):
    X = np.array([[1.0, 2.0, 0.3], [3.0, 1.1, 2.0]])
    metric = FaithfulnessCorrelation(k=2, baseline=np.zeros(3))
    with pytest.warns(UndefinedRowsWarning, match="2 of 2 rows"):
        assert np.isnan(metric(W, function, X)).all()


def test_infidelity_of_zeros_is_defined(X):
    parts = Infidelity().parts(np.zeros_like(X), FUNCTION, X)
    np.testing.assert_array_equal(parts.factor, 0)
    np.testing.assert_array_equal(parts.raw, parts.scale_free)


def test_relative_completeness_at_the_baseline_is_undefined():
    metric = CompletenessGap(background=[[1.0, 1.0]], units="relative")
    with pytest.warns(UndefinedRowsWarning, match="2 of 3 rows"):
        found = metric(
            [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]],
            po.functions.Power(2),
            [[1.0, 1.0], [1.0, 1.0], [2.0, 1.0]],
        )
    np.testing.assert_array_equal(found, [np.nan, np.inf, 1 / 3])


def test_frames_reach_function_and_method_as_frames(X):
    frame = pd.DataFrame(X, columns=list("abcd"), index=list("uvwxyz"))

    def by_name(table: pd.DataFrame) -> np.ndarray:
        return f(table[["a", "b", "c", "d"]].to_numpy())

    def explain_by_name(table: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(
            explain(table[["a", "b", "c", "d"]].to_numpy()), columns=list("abcd")
        )

    function = po.wrap(by_name)
    W = pd.DataFrame(explain(X), columns=list("abcd"), index=frame.index)
    for metric in FAITHFUL:
        np.testing.assert_array_equal(metric(W, function, frame), asked(metric, X))
    for metric in ROBUST:
        np.testing.assert_array_equal(metric(explain_by_name, frame), asked(metric, X))
    metric = RelativeOutputStability(n_samples=S)
    found = metric(explain_by_name, function, frame)
    np.testing.assert_array_equal(found, asked(metric, X))


def test_categories_are_never_perturbed(rng):
    X = pd.DataFrame({"a": rng.normal(size=8), "colour": list("rgbrgbrg")})

    def model(table: pd.DataFrame) -> np.ndarray:
        return np.exp(table["a"].to_numpy()) * (table["colour"] == "r").to_numpy()

    function = po.wrap(model, data=X)
    columns = [*ROBUST, RelativeOutputStability(n_samples=S), *FAITHFUL[:2], PGI(k=2)]
    table = evaluate(columns, function, X, [Gradient()])
    assert np.isfinite(table.to_numpy()).all()
    flat = X["colour"].to_numpy() != "r"  # there f is zero, whatever the number
    assert (PGI(k=2)(np.ones((8, 2)), function, X)[flat] == 0).all()
    assert (PGI(k=2)(np.ones((8, 2)), function, X)[~flat] > 0).all()


def test_categories_have_no_mean(rng):
    X = pd.DataFrame({"a": rng.normal(size=8), "colour": list("rgbrgbrg")})
    function = po.wrap(lambda table: table["a"].to_numpy(), data=X)
    for metric in (CompletenessGap(), FaithfulnessCorrelation()):
        with pytest.raises(InvalidInput, match="categories have no mean"):
            metric(np.ones((8, 2)), function, X)


def test_an_explanation_is_as_good_as_its_attributions(X):
    explanation = Gradient().explain(FUNCTION, X)
    found = Infidelity()(explanation, FUNCTION, X)
    np.testing.assert_array_equal(
        found, Infidelity()(explanation.attributions, FUNCTION, X)
    )


def test_a_point_of_a_curve_is_an_explanation(X):
    objective = po.GradientMatching(X) + po.PairwiseRobustness(po.gaussian_graph(X))
    point = po.sweep(objective, {"pairwise_robustness": [0.1, 1.0]}).optimized[0]
    np.testing.assert_array_equal(Sparseness()(point), Sparseness()(point.attributions))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: Infidelity()(X[:2], FUNCTION, X), "shape of X"),
        (lambda X: Infidelity()(X, f, X), "propopt.wrap"),
        (lambda X: Infidelity()(X, FUNCTION, X, rng=-1), "rng"),
        (lambda X: Infidelity()(X, FUNCTION, X, rng=True), "rng"),
        (lambda X: PGI(k=5)(X, FUNCTION, X), "k: expected at most"),
        (lambda X: FaithfulnessCorrelation(baseline=[1.0])(X, FUNCTION, X), "baseline"),
        (lambda X: CompletenessGap(background=[[1.0]])(X, FUNCTION, X), "background"),
        (lambda X: MaxSensitivity()(X, X), "BaselineMethod"),
        (lambda X: MaxSensitivity()(lambda p: p[:, :2], X), "of shape"),
        (lambda X: MaxSensitivity()(lambda p: p * np.nan, X), "not finite"),
        (lambda _: Sparseness()([1.0, 2.0]), "2 dimensions"),
        (lambda _: MaxSensitivity(units="percent"), "units"),
        (lambda _: MaxSensitivity(scale=0), "scale"),
        (lambda _: MaxSensitivity(distribution="cauchy"), "distribution"),
        (lambda _: Infidelity(rescaling="some"), "rescaling"),
        (lambda _: PGI(k=0), "k:"),
        (lambda _: FaithfulnessCorrelation(n_samples=1), "n_samples"),
        (lambda _: RelativeInputStability(floor=0), "floor"),
        (lambda _: EffectiveComplexity(threshold=-1), "threshold"),
    ],
)
def test_what_cannot_be_used_is_refused(call: Callable, message: str, X):
    with pytest.raises(InvalidInput, match=message):
        call(X)


@pytest.mark.parametrize("axis", ["index", "columns"])
def test_attributions_in_another_order_are_read_by_name(axis, X, rng):
    frame = pd.DataFrame(X, columns=list("abcd"))
    W = pd.DataFrame(rng.normal(size=X.shape), columns=list("abcd"))
    other = W.sort_index(axis=axis, ascending=False)
    for metric in (Infidelity(), Sparseness()):
        table = evaluate([metric], FUNCTION, frame, {"W": W, "other": other})
        assert table.loc["other"].equals(table.loc["W"])
    np.testing.assert_array_equal(
        Infidelity()(other, FUNCTION, frame), Infidelity()(W, FUNCTION, frame)
    )


@pytest.mark.parametrize("axis", ["index", "columns"])
def test_attributions_of_other_rows_or_columns_are_refused(axis, X):
    frame = pd.DataFrame(X, columns=list("abcd"))
    other = frame.rename(**{axis: {"a": "e", 0: 99}})
    noun = "rows" if axis == "index" else "columns"
    with pytest.raises(InvalidInput, match=f"its {noun} are not those of X"):
        Infidelity()(other, FUNCTION, frame)


def test_a_method_begins_its_draws_afresh(X):
    method = BaselineMethod(
        explainer=SmoothGrad(scale=0.2, n_samples=5), function=FUNCTION, rng=4
    )
    metric = MaxSensitivity(n_samples=S)
    np.testing.assert_array_equal(method(X), method(X))
    np.testing.assert_array_equal(metric(method, X), metric(method, X))


@pytest.mark.parametrize(
    "explainer",
    [SmoothGrad(scale=0.2, n_samples=5), Lime(scale=0.2, n_samples=12)],
    ids=lambda e: e.method,
)
def test_blocks_do_not_change_a_sampled_method(explainer, X, monkeypatch):
    method = BaselineMethod(explainer=explainer, function=FUNCTION)
    whole = AvgSensitivity(n_samples=S)(method, X)
    monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(8 * 4 * 7))
    found = AvgSensitivity(n_samples=S)(method, X)
    np.testing.assert_allclose(found, whole, rtol=1e-7)


def test_a_method_whose_background_would_move_is_refused():
    with pytest.raises(InvalidInput, match="background=X"):
        BaselineMethod(explainer=Shap(), function=FUNCTION)


@pytest.fixture
def explained(X) -> list[object]:
    return [
        Gradient(),
        SmoothGrad(scale=0.3, n_samples=7),
        po.Explanation(attributions=explain(X), method="given"),
    ]


def test_evaluate_is_the_mean_of_each_metric(explained, X):
    columns = [MaxSensitivity(n_samples=S), *FAITHFUL, Sparseness()]
    table = evaluate(columns, FUNCTION, X, explained, rng=5)
    assert list(table.index) == ["gradient", "smoothgrad", "given"]
    assert list(table.columns) == [metric.name for metric in columns]
    smooth = explained[1].explain(FUNCTION, X, rng=5)
    for metric in FAITHFUL:
        expected = metric(smooth, FUNCTION, X, rng=5).mean()
        assert table.loc["smoothgrad", metric.name] == pytest.approx(expected)
    method = BaselineMethod(explainer=explained[1], function=FUNCTION, rng=5)
    expected = columns[0](method, X, rng=5).mean()
    assert table.loc["smoothgrad", columns[0].name] == pytest.approx(expected)


def test_an_explanation_has_no_robustness_elsewhere(explained, X):
    columns = [MaxSensitivity(), RelativeOutputStability(), Sparseness()]
    table = evaluate(columns, FUNCTION, X, explained)
    assert table.loc["given"].isna().tolist() == [True, True, False]
    assert table.drop("given").notna().all(axis=None)


def test_rows_have_the_names_of_the_points(X):
    frame = pd.DataFrame(X, columns=list("abcd"), index=list("uvwxyz"))
    function = po.wrap(lambda table: f(table.to_numpy()))
    rows = evaluate_rows({"gini": Sparseness()}, function, frame, [Gradient()])
    assert rows.index.names == ["method", "point"]
    assert rows.loc["gradient"].index.tolist() == list("uvwxyz")
    W = Gradient().explain(function, frame)
    np.testing.assert_array_equal(rows["gini"], Sparseness()(W))


def test_means_leave_out_what_is_undefined():
    given = po.Explanation(attributions=np.array([[0.0, 0], [0, 1]]), method="given")
    with pytest.warns(UndefinedRowsWarning, match="1 of 2"):
        table = evaluate([Sparseness()], FUNCTION, np.ones((2, 2)), [given])
    assert table.loc["given", "Sparseness"] == 0.5


def test_a_mapping_gives_names_to_callables_and_settings(X):
    table = evaluate(
        {"near": MaxSensitivity(scale=0.01), "far": MaxSensitivity(scale=0.5)},
        FUNCTION,
        X,
        {"ours": explain, "gradient": Gradient()},
    )
    assert list(table.columns) == ["near", "far"]
    assert (table["near"] < table["far"]).all()


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ([Sparseness(), Sparseness()], [Gradient()]),
        ([Sparseness()], [Gradient(), Gradient()]),
        ([], [Gradient()]),
        ([Sparseness()], []),
    ],
)
def test_names_that_are_not_unique_are_refused(columns, rows, X):
    with pytest.raises(InvalidInput, match="different names"):
        evaluate(columns, FUNCTION, X, rows)


def test_a_generator_gives_one_seed_for_all(explained, X):
    rng = np.random.default_rng(8)
    seed = int(np.random.default_rng(8).integers(2**63))
    pd.testing.assert_frame_equal(
        evaluate(FAITHFUL, FUNCTION, X, explained, rng=rng),
        evaluate(FAITHFUL, FUNCTION, X, explained, rng=seed),
    )


def test_names_tell_the_settings_that_are_not_the_default():
    assert Infidelity().name == "Infidelity"
    assert Infidelity(rescaling="best").name == "Infidelity(rescaling='best')"
    named = FaithfulnessCorrelation(k=2, baseline=np.zeros(3)).name
    assert named == "FaithfulnessCorrelation(k=2, baseline=3)"


@pytest.mark.parametrize("name", metrics.__all__)
def test_what_is_public_is_documented(name):
    assert len((inspect.getdoc(getattr(metrics, name)) or "").split()) >= 3
