"""Linear functions: the numbers of closed forms, and refits on many rows."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from papers.iloco.theory import linear_refit_scores
from propopt.base.errors import InvalidInput, PropoptWarning
from propopt.interactions import ILOCO, DataSplit
from propopt.interactions.errors_of_rows import (
    ABSOLUTE,
    PROBABILITY,
    SQUARED,
)


PAIR = np.array([(0, 1)])


def correlated(rho: float) -> np.ndarray:
    return np.array([[1.0, rho], [rho, 1.0]])


@pytest.mark.parametrize(
    ("rho", "b1", "b2", "score"),
    [(0.9, 2, 2, -13.68), (0.5, 2, 2, -6), (-0.5, 2, 2, 2), (0.5, 2, -2, 2)],
)
def test_pair_of_correlated_features(
    rho: float, b1: float, b2: float, score: float
) -> None:
    result = linear_refit_scores([b1, b2], correlated(rho), PAIR)
    assert result[0] == pytest.approx(score, abs=1e-12)
    assert score == pytest.approx(-2 * rho * b1 * b2 - rho**2 * (b1**2 + b2**2))


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_sign_of_a_pair_with_opposite_effects_changes_at_one_correlation(
    share: float,
) -> None:
    # positive where ρ b1 b2 < 0 and |ρ| < 2 |b1 b2| / (b1² + b2²)
    b1, b2 = 1.0, -3.0
    edge = 2 * abs(b1 * b2) / (b1**2 + b2**2)
    inside = linear_refit_scores([b1, b2], correlated(share * edge), PAIR)
    outside = linear_refit_scores([b1, b2], correlated(edge + share * (1 - edge)), PAIR)
    assert inside[0] > 0 > outside[0]


@pytest.mark.parametrize(("b", "score"), [(1.0, 0.0769), (2.0, 0.3767)])
def test_absolute_errors_of_additive_functions_are_not_zero(
    b: float, score: float
) -> None:
    result = linear_refit_scores([b, b, 5.0], np.eye(3), PAIR, ABSOLUTE)
    assert result[0] == pytest.approx(score, abs=5e-5)
    roots = 2 * np.sqrt(1 + b**2) - 1 - np.sqrt(1 + 2 * b**2)
    assert result[0] == pytest.approx(np.sqrt(2 / np.pi) * roots, abs=1e-14)
    assert linear_refit_scores([b, b, 5.0], np.eye(3), PAIR, SQUARED)[0] == 0.0


def dummies(n_levels: int) -> np.ndarray:
    """Covariance of indicators of equally frequent levels, the last one dropped."""
    share = 1 / n_levels
    return np.eye(n_levels - 1) * share - share**2


@pytest.mark.parametrize("b", [1.0, 2.0])
def test_dummies_of_one_factor_show_an_interaction_that_is_none(b: float) -> None:
    result = linear_refit_scores([b, b, 0.0], dummies(4), PAIR)
    assert result[0] == pytest.approx(b**2 / 12, abs=1e-14)


def test_features_that_others_determine_are_not_missed() -> None:
    # all four dummies: each is one less the others
    sigma = np.eye(4) / 4 - 1 / 16
    singles = np.arange(4)[:, None]
    result = linear_refit_scores([1.0, 2.0, 3.0, 4.0], sigma, singles)
    np.testing.assert_allclose(result, 0.0, atol=1e-14)


def test_of_three_features_by_determinants() -> None:
    # Var(bᵀX | X_R) by b_Tᵀ [(Σ⁻¹)_TT]⁻¹ b_T
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(5, 5))
    sigma, b = factor @ factor.T, rng.normal(size=5)
    precision = np.linalg.inv(sigma)

    def missed(*members: int) -> float:
        own = list(members)
        return b[own] @ np.linalg.solve(precision[np.ix_(own, own)], b[own])

    one = missed(0) + missed(2) + missed(3)
    two = missed(0, 2) + missed(0, 3) + missed(2, 3)
    result = linear_refit_scores(b, sigma, np.array([(0, 2, 3)]))
    assert result[0] == pytest.approx(one - two + missed(0, 2, 3), rel=1e-10)


@pytest.mark.parametrize("error", ["squared", "absolute"])
def test_least_squares_on_many_rows(error: str) -> None:
    """|z| < 5 for 3 pairs: a false alarm in 6e5 tests; the fits add O(M/N) = 1e-4."""
    rng = np.random.default_rng(3)
    sigma, b = np.array([[1, 0.6, 0], [0.6, 1, 0], [0, 0, 1.0]]), [1.5, -1.0, 2.0]
    X = rng.multivariate_normal(np.zeros(3), sigma, size=60_000)
    y = X @ b + rng.normal(size=len(X))
    model = ILOCO(LinearRegression(), DataSplit(), error=error, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PropoptWarning)  # of absolute errors
        result = model.fit(X, y).result_
    kind = ABSOLUTE if error == "absolute" else SQUARED
    expected = linear_refit_scores(b, sigma, result.sets, kind)
    scores = (result.estimates - expected) / result.standard_errors
    assert np.abs(scores).max() < 5.0
    assert np.abs(expected / result.standard_errors).max() > 50.0  # zero is told


@pytest.mark.parametrize(
    ("covariance", "error", "message"),
    [
        (np.eye(3), None, r"expected shape \(2, 2\), as there are 2 slopes"),
        ([[1.0, 0.5], [0.4, 1.0]], None, "symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], None, "no negative eigenvalue, got -1"),
        (np.eye(2), PROBABILITY, "squared and absolute errors, got prob"),
    ],
)
def test_refusals(covariance: object, error: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        linear_refit_scores([1.0, 1.0], covariance, PAIR, error)  # type: ignore[arg-type]


def test_noise_that_is_no_variance() -> None:
    with pytest.raises(InvalidInput, match="noise: expected a finite number >= 0"):
        linear_refit_scores([1.0, 1.0], np.eye(2), PAIR, noise=-1.0)


def test_places_that_are_not_there() -> None:
    with pytest.raises(InvalidInput, match=r"\[0, 2\] is no .* places less than 2"):
        linear_refit_scores([1.0, 1.0], np.eye(2), [(0, 2)])
