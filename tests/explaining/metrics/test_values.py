"""Values of metrics: loops, closed forms, undefined rows; what they draw."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from metric_cases import (
    EXACT,
    FAITHFUL,
    FUNCTION,
    ROBUST,
    S,
    asked,
    attribution,
    distances,
    explain,
    f,
    noise,
    norm,
    value,
)
from scipy.stats import pearsonr

import propopt as po
from propopt.base.resources import Budget
from propopt.explaining.explainers import Gradient
from propopt.explaining.metrics import (
    CompletenessGap,
    FaithfulnessCorrelation,
    Infidelity,
    MaxSensitivity,
    Sparseness,
    UndefinedRowsWarning,
)
from propopt.explaining.metrics.metric import metric_rng
from propopt.laws import perturbations


LINE = po.wrap(lambda X: X @ np.array([1.0, -2.0, 0.5, 3.0]))
CUBE = po.functions.Power(3)


@pytest.mark.parametrize("distribution", ["uniform", "gaussian", "ball"])
def test_sensitivity_is_a_loop_over_samples(distribution, X):
    settings = {"n_samples": S, "distribution": distribution}
    sizes = np.array([norm(attribution(x)) for x in X])
    metric = MaxSensitivity(**settings)
    absolute = np.array([max(row) for row in distances(metric, X)])
    np.testing.assert_allclose(metric(explain, X), absolute / sizes, **EXACT)
    same = dataclasses.replace(metric, units="absolute")
    np.testing.assert_allclose(same(explain, X), absolute, **EXACT)


def test_infidelity_is_a_loop_and_the_best_scale_a_fit(X):
    metric = Infidelity(n_samples=S)
    best = Infidelity(n_samples=S, rescaling="best")
    parts, plain = best.parts(explain(X), FUNCTION, X), metric(explain(X), FUNCTION, X)
    for row, (x, draws) in enumerate(zip(X, noise(metric, X.shape), strict=True)):
        forecast = draws @ attribution(x)
        changes = np.array([value(x) - value(x - e) for e in draws])
        expected = np.mean((forecast - changes) ** 2)
        np.testing.assert_allclose(plain[row], expected, rtol=1e-11)
        fit, residual, *_ = np.linalg.lstsq(forecast[:, None], changes)
        np.testing.assert_allclose(parts.factor[row], fit[0], rtol=1e-10)
        np.testing.assert_allclose(parts.scale_free[row], residual[0] / S, rtol=1e-10)
    np.testing.assert_array_equal(parts.scale_free, best(explain(X), FUNCTION, X))
    zero = metric.parts(np.zeros_like(X), FUNCTION, X)
    np.testing.assert_array_equal(zero.factor, 0)
    np.testing.assert_array_equal(zero.raw, zero.scale_free)


@pytest.mark.parametrize("k", [1, 3])
def test_faithfulness_correlation_is_a_loop_over_subsets(k, X):
    baseline = np.array([0.5, -1.0, 2.0, 0.1])
    metric = FaithfulnessCorrelation(k=k, n_samples=S, baseline=baseline)
    keys = metric_rng(0).uniform(-1, 1, (len(X), S, 4))
    expected = []
    for x, draws in zip(X, keys, strict=True):
        sums, effects = [], []
        for subset in np.argsort(draws)[:, :k]:
            removed = x.copy()
            removed[subset] = baseline[subset]
            sums.append(attribution(x)[subset].sum())
            effects.append(value(x) - value(removed))
        expected.append(pearsonr(sums, effects).statistic)
    np.testing.assert_allclose(metric(explain(X), FUNCTION, X), expected, rtol=1e-10)


def test_completeness_gap_is_what_is_missing(X, rng):
    background = rng.normal(size=(3, 4))
    total = f(X) - f(background).mean()
    gap = np.abs(explain(X).sum(axis=1) - total)
    for units, expected in [("absolute", gap), ("relative", gap / np.abs(total))]:
        metric = CompletenessGap(data=background, units=units)
        np.testing.assert_allclose(metric(explain(X), FUNCTION, X), expected, **EXACT)
    # Shapley values of Σ x_j³ are x_j³ less its mean over the background
    values = X**3 - (X**3).mean(axis=0)
    assert CompletenessGap(data=X)(values, CUBE, X).max() < 1e-12


def test_sparseness_is_its_definition():
    """Gini = Σ_ij ||w_i| − |w_j|| / (2 D Σ_i |w_i|)."""
    W = np.random.default_rng(1).normal(size=(5, 7))
    pairs = [itertools.product(w, w) for w in W]
    apart = np.array([sum(abs(abs(a) - abs(b)) for a, b in own) for own in pairs])
    gini = apart / (2 * 7 * np.abs(W).sum(axis=1))
    np.testing.assert_allclose(Sparseness()(W), gini, **EXACT)


ONES = [1.0, 1.0]
POINTS = [[0.0, 0.0], [1.0, 0.0], ONES]
AT_BASELINE = POINTS, po.functions.Power(2), [ONES, ONES, [2, 1]]
ROWS = np.array([[1.0, 2.0, 0.3, 0.1], [3.0, 1.1, 2.0, 0.7]])
FLAT = po.wrap(lambda X: np.full(len(X), 0.7))
CORRELATION = FaithfulnessCorrelation(k=2, baseline=np.zeros(4))
RELATIVE = CompletenessGap(data=[ONES], units="relative")
UNDEFINED = [
    (lambda: Sparseness()([[0.0, 0.0], [1.0, 0.0]]), [np.nan, 0.5]),
    # correlations with equal attributions, zeros, and a constant function
    (lambda: CORRELATION(np.full((2, 4), 0.1), LINE, ROWS), [np.nan, np.nan]),
    (lambda: CORRELATION(np.zeros((2, 4)), LINE, ROWS), [np.nan, np.nan]),
    (lambda: CORRELATION([[1.0, 2.0, 3.0, 4.0]] * 2, FLAT, ROWS), [np.nan, np.nan]),
    (lambda: RELATIVE(*AT_BASELINE), [np.nan, np.inf, 1 / 3]),
]


@pytest.mark.parametrize(("call", "expected"), UNDEFINED)
def test_zero_over_zero_is_nan_and_counted(call, expected):
    count = f"{len(expected) - np.isfinite(expected).sum()} of {len(expected)} rows"
    with pytest.warns(UndefinedRowsWarning, match=count):
        np.testing.assert_allclose(call(), expected)


def test_relative_sensitivity_at_zero_is_nan_or_infinite(X):
    def jumps(points: np.ndarray) -> np.ndarray:
        moved = ~np.isin(points[:, 0], X[:, 0]) & (points[:, 1] > X[:, 1].mean())
        return moved[:, None] * np.ones(4)

    with pytest.warns(UndefinedRowsWarning, match="6 of 6 rows"):
        result = MaxSensitivity(scale=1e-3)(jumps, X)
    above = X[:, 1] > X[:, 1].mean()
    assert np.isnan(result[~above]).all()
    assert (result[above] == np.inf).all()


@pytest.fixture(scope="module")
def holed():
    """Rows, what they miss, a function, and its explanation."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(12, 3))
    X[rng.random(X.shape) < 0.25] = np.nan
    X[0] = [1.0, np.nan, 2.0]
    function = po.wrap(
        lambda t: np.where(np.isnan(t), 4.0, t * SLOPES).sum(axis=1), data=X
    )
    return X, np.isnan(X), function, Gradient().explain(function, X)


SLOPES = np.array([2.0, -1.0, 0.5])


def test_noise_leaves_what_is_missing(holed):
    X, absent, function, W = holed
    shifted = W.attributions + 7.0 * absent  # effects of what does not move are free
    for own in (W, shifted):
        infidelity = Infidelity(n_samples=20)(own, function, X)
        np.testing.assert_allclose(infidelity, 0.0, atol=1e-14)
    effects = np.nan_to_num(X * SLOPES) + 4.0 * absent
    metric = FaithfulnessCorrelation(baseline=np.zeros(3), k=1)
    result = metric(effects, function, X)
    np.testing.assert_allclose(result[~np.isnan(result)], 1.0, rtol=1e-9)
    np.testing.assert_array_equal(Sparseness()(W), Sparseness()(W.attributions))


def test_methods_are_asked_about_rows_that_miss_the_same(holed):
    X, absent, _, _ = holed
    observed = []

    def watched(table):
        observed.append(np.isnan(table).sum() / len(table))
        return np.where(np.isnan(table), 9.0, SLOPES)

    np.testing.assert_array_equal(MaxSensitivity()(watched, X), 0.0)
    assert max(observed) <= absent.sum(axis=1).max()


SAMPLED = [*ROBUST, *FAITHFUL[:-1]]


@pytest.mark.parametrize("metric", SAMPLED, ids=lambda m: m.name)
def test_seeds_and_rows_decide_what_is_drawn_and_blocks_do_not(metric, X, monkeypatch):
    whole = asked(metric, X)
    np.testing.assert_array_equal(whole, asked(metric, X, rng=0))
    assert (whole != asked(metric, X, rng=1)).any()
    generator = np.random.default_rng(0)
    first, second = (asked(metric, X, rng=generator) for _ in range(2))
    assert (first != second).any()
    np.testing.assert_allclose(asked(metric, X[:2]), whole[:2], rtol=1e-12)
    for n_bytes in (1, 8 * 4 * 4, 8 * 4 * 2 * S):
        monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(n_bytes))
        np.testing.assert_allclose(asked(metric, X), whole, rtol=1e-12, atol=1e-16)


def test_metrics_do_not_draw_what_explainers_draw():
    ours, theirs = metric_rng(3).normal(size=8), np.random.default_rng(3).normal(size=8)
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
FIXED = np.random.default_rng(0).normal(size=(3, 5))
SIGNS = st.sampled_from([-1, 1])


@given(
    W=ATTRIBUTIONS,
    order=st.permutations(range(5)),
    exponent=st.integers(-250, 250),
    sign=SIGNS,
)
def test_order_and_scale_of_parts_do_not_matter(W, order, exponent, sign):
    metric = Sparseness()
    np.testing.assert_allclose(metric(W[:, order]), metric(W), atol=1e-14)
    scaled = sign * 10.0**exponent * W
    np.testing.assert_allclose(metric(scaled), metric(W), atol=1e-13)


@given(W=ATTRIBUTIONS, exponent=st.integers(-150, 150), sign=SIGNS)
def test_scale_free_infidelity_does_not_depend_on_the_scale(W, exponent, sign):
    factor = sign * 10.0**exponent
    metric = Infidelity(n_samples=20)
    once = metric.parts(W, FUNCTION, FIXED)
    parts = metric.parts(factor * W, FUNCTION, FIXED)
    np.testing.assert_allclose(parts.scale_free, once.scale_free, rtol=1e-9)
    np.testing.assert_allclose(parts.factor * factor, once.factor, rtol=1e-9)
    assert (once.scale_free <= once.raw * (1 + 1e-12)).all()
