"""Samples of LIME against its limits: all of these are slow.

A z-score beyond 5 has probability 6e-7; of all of them here, some hundreds, one is
with probability 2e-4. Sandwich errors of few effective samples are too small, so runs
are averaged there and the error is that of their mean.
"""

from __future__ import annotations

import numpy as np
import pytest
from linear_sums import curved, linear, wavy
from normal_samples import weighted_fit, with_intercept
from scipy.special import ndtri
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from papers.lime import gaussian_theory
from papers.lime.linear_limits import linear_limits, linear_noise
from propopt.lime import GaussianLaw, GlimeLaw
from propopt.lime.expectations import ExactLimits
from propopt.structures.products.families import Bumps
from propopt.structures.products.sums import SumOfProducts


pytestmark = pytest.mark.slow


def run(law, f, x, n, rng):
    """β̂ and its errors of one run."""
    draws = law.draw(x[None], n, rng)
    return weighted_fit(draws.bits[0], draws.weights[0], f.value(draws.samples[0]))


def runs(law, f, x, n, times, rng):
    """β̂ of several runs, (times, D + 1)."""
    return np.array([run(law, f, x, n, rng)[0] for _ in range(times)])


@pytest.mark.parametrize("width", [0.7, 1.5, 5.0, 100.0])
def test_weighted_samples_of_a_linear_function(width, rng):
    """The largest error is .0066, .0038, .0031, .0048 where two million were taken."""
    law = GaussianLaw.of([0.5, -1.0, 2.0], 1.7, width)
    f, x = linear([1.0, -2.0, 0.5], 0.7), np.array([1.2, -3.0, 2.3])
    beta, errors = run(law, f, x, 500_000, rng)
    expected = with_intercept(ExactLimits(f, law).of(x[None]))
    assert np.abs((beta - expected) / errors).max() < 5.0
    assert np.abs(beta - expected).max() < 0.05


@pytest.mark.parametrize("kind", [lambda law: law, GlimeLaw], ids=["weighted", "glime"])
def test_samples_of_a_function_with_an_interaction(kind, rng):
    law = kind(GaussianLaw.of(np.zeros(4), 1.0, 0.8))
    x = np.array([0.5, -0.3, 1.2, 0.1])
    beta, errors = run(law, wavy(), x, 500_000, rng)
    expected = with_intercept(ExactLimits(wavy(), law).of(x[None]))
    assert np.abs((beta - expected) / errors).max() < 5.0


@pytest.mark.parametrize("width", [0.6, 2.0])
def test_scales_of_columns_of_the_data(width, rng):
    X = rng.exponential(size=(500, 3)) * [1.0, 3.0, 0.2]
    law = GaussianLaw.from_data(X, kernel_width=width)
    x = X[7]
    beta, errors = run(law, curved(), x, 400_000, rng)
    expected = with_intercept(ExactLimits(curved(), law).of(x[None]))
    assert np.abs((beta - expected) / errors).max() < 5.0


def test_twenty_runs_of_ten_columns(rng):
    law = GaussianLaw.of(np.zeros(10), 1.0, 1.0)
    x = np.append([0.9607, 0.0892], np.linspace(-1.0, 1.0, 8))
    f = linear([10.0, -10.0, *[0.0] * 8])
    result = runs(law, f, x, 10_000, 20, rng)
    expected = with_intercept(ExactLimits(f, law).of(x[None]))
    error = result.std(axis=0, ddof=1) / np.sqrt(20)
    # Student's t with 19 degrees: |t| > 6.5 has probability 3e-6 for each of 11
    assert np.abs((result.mean(axis=0) - expected) / error).max() < 6.5
    assert 0.1 < result[:, 1].std() < 1.0


def test_bins_drawn_first_are_the_same_samples(rng):
    """With quartiles of the normal law each bin has the mass 1/4."""
    law = GaussianLaw.of(np.zeros(3), 1.0, 0.8)
    x, f = np.array([0.5, -0.3, 1.2]), curved()
    n = 400_000
    bins = rng.integers(0, 4, (n, 3))
    samples = ndtri((bins + rng.random((n, 3))) / 4.0)
    own = [column.place(x[[j]])[0] for j, column in enumerate(law.columns)]
    weights = np.exp(-((samples - x) ** 2).sum(axis=1) / (2 * 0.8**2))
    bits = (bins == own).astype(float)
    beta, errors = weighted_fit(bits, weights, f.value(samples))
    expected = with_intercept(ExactLimits(f, law).of(x[None]))
    assert np.abs((beta - expected) / errors).max() < 5.0


@pytest.mark.parametrize(
    ("width", "low", "high"), [(0.5, 4.0, 30.0), (1.0, 1.5, 3.2), (2.0, 0.9, 1.3)]
)
def test_glime_scatters_less_than_lime(width, low, high, rng):
    """Of 60 runs of 2,000 samples: elsewhere .112, .171, .215 and 1.087, .371, .234.

    The function was not told, so ratios are bounded: 9.7, 2.2 and 1.1 there. Those of
    660 errors each are known to 4 %, and the bounds are five times that away or more;
    at ν = 0.5 few weights decide, errors have heavy tails, and bounds are a factor of
    two away.
    """
    law = GaussianLaw.of(np.zeros(10), 1.0, width)
    x = np.append([0.9607, 0.0892], np.full(8, 0.4667))
    f = linear([5.0, -5.0, *[0.0] * 8])
    share = gaussian_theory.gains(law.with_width(0.5), x[None]).log_weight[0]
    np.testing.assert_allclose(np.exp(share), 1.1e-4, rtol=0.02)
    expected = with_intercept(ExactLimits(f, law).of(x[None]))
    glime, lime = (
        np.sqrt(((runs(one, f, x, 2_000, 60, rng) - expected) ** 2).mean())
        for one in (GlimeLaw(law), law)
    )
    assert low < lime / glime < high


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def machine():
    """A kernel ridge machine of 442 centres, as a sum of products."""
    X, y = diabetes()
    model = KernelRidge(kernel="rbf", gamma=0.02, alpha=1.0).fit(X, y)
    n, d = X.shape
    column = np.tile(np.arange(d), n)
    bumps = Bumps(column, X.ravel(), np.full(n * d, 5.0))
    paths = np.arange(n * d).reshape(n, d)
    f = SumOfProducts(0.0, model.dual_coef_, paths, (bumps,), d)
    np.testing.assert_allclose(f.value(X[:9]), model.predict(X[:9]), rtol=1e-9)
    return f, model.predict, X


def tree():
    X, y = diabetes()
    model = DecisionTreeRegressor(max_depth=5, random_state=0).fit(X, y)
    return po.wrap(model).products, model.predict, X


@pytest.mark.parametrize("make", [machine, tree])
def test_kernel_machines_and_trees(make, rng):
    """The largest errors were .068 and .25 with a million samples of GLIME."""
    f, predict, X = make()
    law = GlimeLaw(GaussianLaw.of(np.zeros(10), 1.0, 1.0))
    draws = law.draw(X[10:11], 40_000, rng)
    beta, errors = weighted_fit(
        draws.bits[0], draws.weights[0], predict(draws.samples[0])
    )
    expected = with_intercept(ExactLimits(f, law).of(X[10:11]))
    assert np.abs((beta - expected) / errors).max() < 5.0
    assert np.abs(beta - expected).max() < 5.0
    assert np.abs(expected[1:]).max() > 10.0


def test_the_error_at_the_row_is_biased_as_told(rng):
    """100 runs of 10,000: elsewhere −.136 is told, −.230 was measured, SD .80."""
    law = GaussianLaw.of(np.zeros(10), 1.0, 1.0)
    x = np.append([0.9607, 0.0892], np.full(8, 0.3))
    f = linear([10.0, -10.0, *[0.0] * 8])
    told = ExactLimits(f, law).of(x[None]).at_row[0] - f.value(x[None])[0]
    np.testing.assert_allclose(told, -0.136, rtol=0, atol=5.1e-4)
    result = runs(law, f, x, 10_000, 100, rng).sum(axis=1) - f.value(x[None])[0]
    error = result.std(ddof=1) / 10.0
    assert abs(result.mean() - told) < 5.0 * error
    assert 0.3 < result.std() < 2.0


@pytest.mark.parametrize(
    ("width", "of_matrix", "of_vector"), [(0.7, 0.008, 0.072), (100.0, 0.0005, 0.005)]
)
def test_moments_of_bits_and_of_the_function(width, of_matrix, of_vector, rng):
    """E π z z' and E π z f over C, of 500,000 samples: within thrice what four times
    as many samples gave elsewhere, so that errors are 1.5 times those at most."""
    law = GaussianLaw.of([0.5, -1.0, 2.0], 1.7, width)
    x, a, n = np.array([[1.2, -3.0, 2.3]]), np.array([1.0, -2.0, 0.5]), 500_000
    result = gaussian_theory.gains(law, x)
    C = np.exp(result.log_weight[0])
    draws = law.draw(x, n, rng)
    Z = np.column_stack([np.ones(n), draws.bits[0]])
    scores = Z * (draws.weights[0] / C)[:, None]
    full = np.append(1.0, result.alpha[0])
    Sigma = np.outer(full, full)
    np.fill_diagonal(Sigma, full)
    np.testing.assert_allclose(Z.T @ scores / n, Sigma, rtol=0, atol=3 * of_matrix)
    mean = linear_limits(result, a, 0.7).mean[0]
    Gamma = np.append(mean, result.alpha[0] * mean - a * result.theta[0])
    values = draws.samples[0] @ a + 0.7
    np.testing.assert_allclose(values @ scores / n, Gamma, rtol=0, atol=3 * of_vector)


@pytest.mark.parametrize("width", [0.6, 1.0])
def test_scatter_of_runs_is_what_the_narrow_law_tells(width, rng):
    """Five columns, 200 runs of 10,000: SD over its prediction from .87 to 1.12.

    A standard deviation of 200 runs is known to 5 %, so that 1 ± .25 fails with 6e-7.
    """
    law = GaussianLaw.of(np.zeros(5), 1.0, width)
    x, a = np.array([0.5, -0.3, 0.2, 1.0, -0.8]), np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    f = linear(a)
    result = runs(law, f, x, 10_000, 200, rng).std(axis=0, ddof=1)[1:]
    told = linear_noise(law, a, x[None], 10_000)[0]
    np.testing.assert_allclose(result / told, np.ones(5), rtol=0, atol=0.25)
