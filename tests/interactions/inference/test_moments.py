"""Means of rows and their errors, against loops and formulas."""

from __future__ import annotations

import numpy as np
import pytest

from propopt.interactions.inference import moments


def test_of_equal_weights_they_are_the_mean_and_its_standard_error(rng):
    z = rng.normal(size=(40, 3))
    means, errors, _ = moments(z, np.ones(40))
    np.testing.assert_allclose(means, z.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(errors, z.std(axis=0, ddof=1) / np.sqrt(40), rtol=1e-13)


def test_of_any_weights_they_are_those_of_a_ratio_of_means(rng):
    # the mean and the linearised error of Σ w z/Σ w, row by row
    z, weights = rng.normal(size=(40, 2)), rng.uniform(0.2, 3.0, size=40)
    weights *= 40 / weights.sum()
    means, errors, _ = moments(z, weights)
    for q in range(2):
        mean = sum(w * v for w, v in zip(weights, z[:, q], strict=True)) / sum(weights)
        spread = sum(
            (w * (v - mean)) ** 2 for w, v in zip(weights, z[:, q], strict=True)
        )
        error = np.sqrt(40 / 39 * spread) / sum(weights)
        assert means[q] == pytest.approx(mean, rel=1e-13)
        assert errors[q] == pytest.approx(error, rel=1e-13)


def test_rows_without_weight_are_as_if_they_were_not_there(rng):
    z, weights = rng.normal(size=(12, 2)), np.resize([1.5, 0.0, 1.5], 12)
    result, expected = moments(z, weights), moments(z[weights > 0], np.ones(8))
    for own, other in zip(result, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-13)


def test_rows_of_one_size_all_carry_the_error_and_one_row_alone_does_it_alone():
    signs = np.resize([1.0, -1.0], 100)
    spike = np.zeros(1000)
    spike[3] = 1e-8  # the others carry next to nothing
    assert moments(signs[:, None], np.ones(100))[2] == pytest.approx(100)
    assert moments(spike[:, None], np.ones(1000))[2] == pytest.approx(1.0, abs=0.01)


def test_of_normal_rows_eight_for_pi_of_them_carry_it(rng):
    # ρ = E|d|³/σ³ = √(8/π): of 200,000 rows the error is far below 2 %
    carried = moments(rng.normal(size=(200_000, 1)), np.ones(200_000))[2]
    assert carried[0] == pytest.approx(200_000 * np.pi / 8, rel=0.02)


def test_scale_does_not_matter_even_where_cubes_are_not_finite(rng):
    z = rng.normal(size=(30, 1))
    _, own, own_rows = moments(z, np.ones(30))
    for scale in (1e-140, 1e140):
        _, errors, rows = moments(scale * z, np.ones(30))
        np.testing.assert_allclose(rows, own_rows, rtol=1e-9)
        np.testing.assert_allclose(errors, scale * own, rtol=1e-12)


def test_equal_rows_have_no_error_and_no_row_that_carries_it():
    means, errors, rows = moments(np.full((10, 1), 0.25), np.ones(10))
    assert means == 0.25
    assert errors == 0.0
    assert np.isnan(rows)
