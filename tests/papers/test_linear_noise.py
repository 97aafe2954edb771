"""The scatter of single runs for linear functions, without samples."""

from __future__ import annotations

import numpy as np
import pytest
from linear_sums import linear
from normal_samples import weighted_fit, weighted_grid

from papers.lime.linear_limits import linear_noise
from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw, GlimeLaw


SLOPES = np.array([1.0, -2.0, 0.5])
ROW = np.array([0.5, -0.3, 1.2])


@pytest.mark.parametrize("width", [0.6, 1.0, 5.0])
def test_it_is_the_sandwich_on_a_grid(width):
    """√n SD_j = √E π² r² (z_j − α_j)² / (C α_j (1 − α_j)); the grid has P π."""
    law = GaussianLaw.of([0.2, -1.0, 0.0], [1.0, 2.5, 0.4], width, n_bins=[2, 3, 2])
    samples, bits, weights = weighted_grid(law, ROW, nodes=40)
    values = linear(SLOPES).value(samples)
    beta, _ = weighted_fit(bits, weights, values)
    rest = values - beta[0] - bits @ beta[1:]
    pi = np.exp(-((samples - ROW) ** 2).sum(axis=1) / (2.0 * width**2))
    alpha = weights @ bits / weights.sum()
    squares = (weights * pi * rest**2) @ (bits - alpha) ** 2
    expected = np.sqrt(squares) / (weights.sum() * alpha * (1.0 - alpha))
    result = linear_noise(law, SLOPES, ROW[None], 400)
    np.testing.assert_allclose(20.0 * result[0], expected, rtol=1e-8)
    glime = linear_noise(GlimeLaw(law), SLOPES, ROW[None], 1)
    squares = (weights * rest**2) @ (bits - alpha) ** 2 / weights.sum()
    expected = np.sqrt(squares) / (alpha * (1.0 - alpha))
    np.testing.assert_allclose(glime[0], expected, rtol=1e-8)


def test_columns_without_slopes_scatter_too_and_constants_do_not(rng):
    X = np.column_stack([rng.normal(size=80), np.ones(80), rng.integers(0, 2, 80)])
    law = GaussianLaw.from_data(X, categorical=[2])
    result = linear_noise(law, [2.0, 0.0, 0.0], X[:4])
    assert (result[:, [0, 2]] > 0.0).all()
    np.testing.assert_array_equal(result[:, 1], np.zeros(4))
    with pytest.raises(InvalidInput, match="'x2' has a slope"):
        linear_noise(law, [2.0, 0.0, 1.0], X[:4])


def test_a_shift_of_everything_changes_nothing():
    here, there = (
        GaussianLaw.of(mean, [1.0, 2.5, 0.4], 0.7)
        for mean in (np.zeros(3), np.full(3, 1e6))
    )
    a = linear_noise(here, SLOPES, ROW[None])
    b = linear_noise(there, SLOPES, ROW[None] + 1e6)
    np.testing.assert_allclose(a, b, rtol=1e-7)


def test_a_function_that_is_constant_has_no_noise():
    law = GaussianLaw.of(np.zeros(3), 1.0, 1.0)
    result = linear_noise(law, np.zeros(3), ROW[None])
    np.testing.assert_array_equal(result, np.zeros((1, 3)))
