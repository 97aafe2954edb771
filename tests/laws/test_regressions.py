"""Many regressions at once: as one after the other, by either factorisation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from propopt.laws import regressions as least_squares
from propopt.laws.regressions import Regressions


N, S, D = 4, 40, 3


def one_by_one(problems):
    """Each problem by numpy.linalg.lstsq, the ridge as more rows."""
    slopes = []
    for n in range(len(problems.design)):
        weights = np.ones(S) if problems.weights is None else problems.weights[n]
        root = np.sqrt(weights)
        Z = np.vstack(
            [problems.design[n] * root[:, None], np.diag(problems.root_ridge[n])]
        )
        y = np.concatenate([problems.targets[n] * root, np.zeros(D)])
        slopes.append(np.linalg.lstsq(Z, y, rcond=None)[0])
    return np.array(slopes)


@pytest.fixture
def problems(rng):
    return Regressions(
        design=rng.normal(size=(N, S, D)),
        targets=rng.normal(size=(N, S)),
        weights=rng.uniform(0.1, 2.0, size=(N, S)),
        root_ridge=np.full((N, D), 0.7),
    )


def test_slopes_are_those_of_each_problem_alone(problems):
    exact = one_by_one(problems)
    np.testing.assert_allclose(problems.slopes, exact, rtol=1e-12)


def test_both_factorisations_agree(problems, monkeypatch):
    first, second = problems, replace(problems)
    before = first.slopes
    monkeypatch.setattr(least_squares, "SAFE_PIVOTS", np.inf)  # never Cholesky
    np.testing.assert_allclose(before, second.slopes, rtol=1e-12)
    np.testing.assert_allclose(first.errors, second.errors, rtol=1e-10)


@pytest.mark.parametrize("spread", [1e-2, 1e-6, 1e-10])
def test_nearly_collinear_regressors_keep_their_digits(spread, rng):
    shared = rng.normal(size=(N, S, 1))
    design = shared + spread * rng.normal(size=(N, S, D))
    slopes = rng.normal(size=(N, D))
    targets = (design @ slopes[..., None])[..., 0]
    fits = Regressions(design, targets, None, np.zeros((N, D)))
    # backward stable: an error of the condition number, about 1/spread, times rounding
    np.testing.assert_allclose(fits.slopes, slopes, atol=1e-13 / spread)


def test_the_factor_is_a_root_of_the_normal_equations(problems):
    fits = problems
    weighted = problems.design * problems.weights[..., None]
    H = weighted.transpose(0, 2, 1) @ problems.design + 0.49 * np.eye(D)
    np.testing.assert_allclose(fits.factor.transpose(0, 2, 1) @ fits.factor, H)


def test_standard_errors_are_the_sandwich(problems):
    fits = problems
    H = fits.factor.transpose(0, 2, 1) @ fits.factor
    scores = problems.weights * fits.residuals
    u = problems.design * scores[..., None]
    covariance = np.linalg.inv(H) @ (u.transpose(0, 2, 1) @ u) @ np.linalg.inv(H)
    exact = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    np.testing.assert_allclose(fits.errors, exact, rtol=1e-10)


def test_a_regressor_that_is_zero_is_undetermined(rng):
    design = rng.normal(size=(N, S, D))
    design[2, :, 1] = 0.0
    targets = rng.normal(size=(N, S))
    fits = Regressions(design, targets, None, np.zeros((N, D)))
    assert fits.undetermined.tolist() == [False, False, True, False]
