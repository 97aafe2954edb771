"""What main effects leak: against the closed form of targets, and least squares."""

import numpy as np
import pytest
from scipy.optimize import nnls

from papers.iloco.theory import FixedColumns, ideal_scores
from propopt.interactions.errors_of_rows import (
    ABSOLUTE,
    PROBABILITY,
    SQUARED,
    RowError,
)
from propopt.interactions.features import Features
from propopt.interactions.patch_draws import additive_leak


ERRORS = (SQUARED, PROBABILITY)


def all_sets(n_features: int, order: int) -> np.ndarray:
    return Features.of(list(range(n_features))).all_sets(order)


def additive(variances: np.ndarray) -> dict[tuple[int, ...], float]:
    return {(j,): float(v) for j, v in enumerate(variances)}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("n_features", "m"), [(5, 2), (10, 2), (10, 5), (50, 10)])
@pytest.mark.parametrize("order", [2, 3])
def test_of_additive_functions_the_leak_is_the_whole_target(
    error: RowError, n_features: int, m: int, order: int
) -> None:
    rng = np.random.default_rng(n_features + m)
    variances = rng.exponential(size=n_features) * (rng.random(n_features) < 0.6)
    shares = FixedColumns(n_features, m)
    terms = additive(variances)
    mains = ideal_scores(terms, all_sets(n_features, 1), shares, error)
    sets = all_sets(n_features, order)[:300]
    np.testing.assert_allclose(
        additive_leak(mains, m, sets, error),
        ideal_scores(terms, sets, shares, error),
        atol=1e-12 * variances.sum(),
    )


@pytest.mark.parametrize("error", ERRORS)
def test_of_effects_that_are_noise_variances_are_least_squares(error: RowError) -> None:
    rng = np.random.default_rng(0)
    shares, singles = FixedColumns(8, 3), all_sets(8, 1)
    design = np.stack(
        [ideal_scores({(j,): 1.0}, singles, shares, error) for j in range(8)], axis=1
    )
    pairs = all_sets(8, 2)
    residuals = []
    for _ in range(30):
        mains = rng.normal(size=8)
        fitted, residual = nnls(design, mains)
        expected = ideal_scores(additive(fitted), pairs, shares, error)
        np.testing.assert_allclose(
            additive_leak(mains, 3, pairs, error), expected, atol=1e-10
        )
        residuals.append(residual)
    assert max(residuals) > 0.1


def test_effects_below_zero_leak_nothing() -> None:
    pairs = all_sets(6, 2)
    assert not additive_leak(np.full(6, -1.0), 3, pairs, SQUARED).any()


def test_of_a_single_feature_it_is_what_the_others_make_of_one_without_effect() -> None:
    shares, singles = FixedColumns(6, 2), all_sets(6, 1)
    variances = np.array([3.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    mains = ideal_scores(additive(variances), singles, shares)
    leak = additive_leak(mains, 2, singles, SQUARED)
    np.testing.assert_allclose(leak[3:], mains[3:], atol=1e-13)
    for j in range(3):
        without = additive(np.where(np.arange(6) == j, 0.0, variances))
        assert leak[j] == pytest.approx(
            ideal_scores(without, singles, shares)[j], abs=1e-13
        )


def test_of_other_errors_it_is_not_known() -> None:
    leak = additive_leak(np.array([1.0, 2.0, 3.0]), 2, all_sets(3, 1), ABSOLUTE)
    assert np.isnan(leak).all()


def test_five_hundred_features_are_quick_and_exact() -> None:
    variances = np.random.default_rng(2).exponential(size=500)
    shares = FixedColumns(500, 100)
    terms, pairs = additive(variances), all_sets(500, 2)[:5]
    mains = ideal_scores(terms, all_sets(500, 1), shares)
    np.testing.assert_allclose(
        additive_leak(mains, 100, pairs, SQUARED),
        ideal_scores(terms, pairs, shares),
        rtol=1e-9,
    )
