"""How strong an interaction has to be: thresholds in closed form."""

import numpy as np
import pytest

from papers.iloco.theory import (
    BernoulliColumns,
    FixedColumns,
    Refitted,
    detectable_ratio,
    ideal_scores,
)
from propopt.interactions.errors_of_rows import PROBABILITY, SQUARED, RowError


@pytest.mark.parametrize(
    ("n_features", "m", "probability", "squared"),
    [
        (10, 2, 1.40, 1.077),
        (10, 5, 0.35, 0.154),
        (100, 20, 0.054, 0.044),
        (500, 100, 0.010, 0.008),
    ],
)
def test_thresholds_of_patches(
    n_features: int, m: int, probability: float, squared: float
) -> None:
    shares = FixedColumns(n_features, m)
    result = detectable_ratio(shares, PROBABILITY)
    assert result == pytest.approx(probability, abs=6e-4)
    assert result == pytest.approx((n_features - 3) / ((m - 1) * (n_features - 5)))
    result = detectable_ratio(shares, SQUARED)
    assert result == pytest.approx(squared, abs=6e-4)
    assert result == pytest.approx(_squared(n_features, m), rel=1e-9)


def _squared(n_features: int, m: int) -> float:
    one, two = m / (n_features - 1), m / (n_features - 2)
    pair = m * (m - 1)
    first = pair / ((n_features - 1) * (n_features - 2))
    second = pair / ((n_features - 2) * (n_features - 3))
    leak = (1 - one) ** 2 - (1 - two) ** 2
    return leak / (1 - 2 * (1 - first) ** 2 + (1 - second) ** 2)


@pytest.mark.parametrize("error", [SQUARED, PROBABILITY])
def test_at_the_threshold_both_pairs_have_one_score(
    error: RowError,
) -> None:
    shares = FixedColumns(12, 5)
    joint = 5.0 * detectable_ratio(shares, error)
    pairs = np.array([(0, 1), (2, 3)])
    mains = {(0,): 2.0, (1,): 3.0}
    first, other = ideal_scores({**mains, (0, 1): joint}, pairs, shares, error)
    assert first == pytest.approx(other, abs=1e-13)
    first, other = ideal_scores({**mains, (0, 1): 1.01 * joint}, pairs, shares, error)
    assert first > other


def test_without_leaks_any_interaction_stands_out() -> None:
    assert detectable_ratio(BernoulliColumns(0.2)) == 0.0
    assert detectable_ratio(Refitted()) == 0.0


def test_patches_of_one_feature_show_none() -> None:
    assert detectable_ratio(FixedColumns(10, 1)) == np.inf
