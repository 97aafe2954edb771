"""The linear paper's bounds: as printed, where they fail, and repaired."""

from __future__ import annotations

import numpy as np
import pytest

from papers.lime import gaussian_theory
from papers.lime.linear_bounds import linear_theorem_samples
from papers.lime.linear_limits import linear_limits
from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw, GlimeLaw


ROW = np.append([0.9607, 0.0892], np.linspace(-0.9, 0.9, 8))[None]
SLOPES = [10.0, -10.0, *[0.0] * 8]


def moments(result):
    """Σ / C and its inverse for one row."""
    alpha = result.alpha[0]
    full = np.append(1.0, alpha)
    Sigma = np.outer(full, full)
    Sigma[np.arange(len(full)), np.arange(len(full))] = full
    return Sigma, np.linalg.inv(Sigma)


def test_the_terms_are_those_of_the_paper():
    law = GaussianLaw.of(np.zeros(10), 1.0, 1.0)
    result = gaussian_theory.gains(law, ROW)
    bound = linear_theorem_samples(law, SLOPES, ROW, 0.5, 0.05, 0.3)
    C = np.exp(result.log_weight[0])
    A = (1.0 / (result.alpha * (1.0 - result.alpha))).max()
    f_mean = 10.0 * result.mean[0, 0] - 10.0 * result.mean[0, 1] + 0.3
    F2 = 3.0 * f_mean**2 + 0.5 * 200.0
    expected = [
        288.0 * 200.0 * 100.0 * A**2 / (0.25 * C**2) * np.log(120.0 / 0.05),
        18.0 * 100.0 * A**2 / C**2 * np.log(2400.0 / 0.05),
        648.0 * 1e5 * A**4 * F2 / (C**2 * 0.25) * np.log(2400.0 / 0.05),
    ]
    np.testing.assert_allclose(bound.paper[0], expected, rtol=1e-12)
    assert 1e17 < bound.paper.max() < 1e20


def test_the_repaired_bound_is_what_its_proof_asks_for():
    law = GaussianLaw.of(np.zeros(10), 1.0, 1.0)
    result = gaussian_theory.gains(law, ROW)
    bound = linear_theorem_samples(law, SLOPES, ROW, 0.5, 0.05)
    Sigma, inverse = moments(result)
    C = np.exp(result.log_weight[0])
    K = np.linalg.norm(inverse, 2) / C
    np.testing.assert_allclose(bound.inverse_norm, K, rtol=1e-10)
    limits = linear_limits(result, SLOPES)
    beta = np.append(limits.intercept, limits.coefficients)
    Gamma = C * np.linalg.norm(Sigma @ beta)
    N, a = 1 + 10 + 45, np.sqrt(200.0)
    R = abs(ROW[0] @ SLOPES) + 2.0 * a * np.exp(-0.5)
    matrix = 121 / 2 * max(4 * K**2, 16 * K**4 * Gamma**2 / 0.25) * np.log(4 * N / 0.05)
    vector = 8 * 11 * R**2 * K**2 / 0.25 * np.log(44 / 0.05)
    np.testing.assert_allclose(bound.repaired, max(matrix, vector), rtol=1e-10)
    assert 1e13 < bound.repaired[0] < 1e16


@pytest.mark.parametrize("width", [0.3, 1.0, 50.0])
def test_the_papers_bound_of_the_inverse_holds(width):
    law = GaussianLaw.of(np.zeros(10), 1.0, width)
    result = gaussian_theory.gains(law, ROW)
    bound = linear_theorem_samples(law, SLOPES, ROW, 0.5, 0.05)
    A = (1.0 / (result.alpha * result.complement)).max()
    assert bound.inverse_norm[0] <= 30.0 * A / np.exp(result.log_weight[0])


def test_units_do_not_matter():
    one = GaussianLaw.of(np.zeros(10), 1.0, 1.0)
    other = GaussianLaw.of(np.zeros(10), 5.0, 1.0, unit=5.0)
    a = linear_theorem_samples(one, SLOPES, ROW, 0.5, 0.05)
    scaled = np.array(SLOPES) / 5.0
    b = linear_theorem_samples(other, scaled, 5.0 * ROW, 0.5, 0.05)
    np.testing.assert_allclose(a.paper, b.paper, rtol=1e-10)
    np.testing.assert_allclose(a.repaired, b.repaired, rtol=1e-10)


def test_a_weight_that_underflows_needs_infinitely_many_samples():
    law = GaussianLaw.of(np.zeros(10), 1.0, 1e-3)
    bound = linear_theorem_samples(law, SLOPES, 10.0 * ROW, 0.5, 0.05)
    assert np.isinf(bound.paper).all()
    assert np.isinf(bound.repaired).all()


@pytest.mark.slow
def test_the_papers_lemma_on_the_matrix_of_bits_is_false(rng):
    """Measured .89 in 300 runs, where the lemma says 1.8e-4.

    If it were true, more than 15 of 60 runs would have probability below 1e-40.
    """
    law = GaussianLaw.of(np.zeros(20), 1.0, 50.0)
    x = np.full((1, 20), 0.3)
    result = gaussian_theory.gains(law, x)
    Sigma = moments(result)[0] * np.exp(result.log_weight[0])
    large = 0
    for _ in range(60):
        draws = law.draw(x, 200, rng)
        Z = np.column_stack([np.ones(200), draws.bits[0]])
        estimate = (Z.T * draws.weights[0]) @ Z / 200
        large += np.linalg.norm(estimate - Sigma, 2) >= 0.2
    assert 4 * 20**2 * np.exp(-2 * 200 * 0.2**2) < 1.9e-4
    assert large > 15


@pytest.mark.parametrize(
    "law",
    [
        GaussianLaw.of(np.zeros(10), [1.0] * 9 + [2.0], 1.0),
        GlimeLaw(GaussianLaw.of(np.zeros(10), 1.0, 1.0)),
    ],
)
def test_laws_that_the_theorem_is_not_about_are_refused(law):
    with pytest.raises(InvalidInput, match="the theorem is about"):
        linear_theorem_samples(law, SLOPES, ROW, 0.5, 0.05)


def test_a_failure_that_is_sure_is_refused():
    law = GaussianLaw.of(np.zeros(10), 1.0, 1.0)
    with pytest.raises(InvalidInput, match="below 1"):
        linear_theorem_samples(law, SLOPES, ROW, 0.5, 1.0)
