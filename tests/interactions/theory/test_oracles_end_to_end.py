"""Ideal learners through the whole package: scores are what the theory says."""

import numpy as np
import pytest
from oracle_learners import (
    OracleClassifier,
    OracleRegressor,
    Terms,
    named,
    sum_of_terms,
    variances,
)

from papers.iloco.theory import (
    BernoulliColumns,
    FixedColumns,
    Refitted,
    ideal_scores,
)
from propopt.interactions import ILOCO, DataSplit, InteractionScores, Minipatches
from propopt.interactions.errors_of_rows import PROBABILITY, SQUARED


REGRESSION: Terms = {
    (): 1.0,
    (0,): 2.0,
    (1,): 1.5,
    (2,): -1.0,
    (0, 1): 0.8,
    (0, 1, 2): 0.5,
}
CLASSES: Terms = {
    (): 0.5,
    (0,): 0.15,
    (1,): 0.1,
    (0, 1): 0.1,
    (0, 1, 2): 0.05,
}


def z_scores(result: InteractionScores, expected: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # 0/0 of features that are not used
        return (result.estimates - expected) / result.total_errors


@pytest.mark.parametrize(
    ("order", "expected"),
    [(2, [0.89, 0.25, 0.25]), (3, [0.25]), (1, [4.89, 3.14, 1.25])],
)
def test_regression_by_splitting(order: int, expected: list[float]) -> None:
    """|z| < 5 for 7 scores in all: a false alarm in 2e5 runs."""
    rng = np.random.default_rng(order)
    X = rng.normal(size=(200_000, 3))
    y = sum_of_terms(REGRESSION, X) + rng.normal(size=len(X))
    model = ILOCO(OracleRegressor(REGRESSION), DataSplit(), order=order, progress=False)
    result = model.fit(named(X), y).result_
    own = ideal_scores(variances(REGRESSION), result.sets, Refitted(), SQUARED)
    np.testing.assert_allclose(own, expected, atol=1e-14)
    assert np.abs(z_scores(result, own)).max() < 5.0
    assert (result.estimates > 10 * result.standard_errors).all()


@pytest.mark.parametrize(
    ("order", "expected"), [(2, [0.025, 0.005, 0.005]), (3, [0.005])]
)
def test_classification_by_splitting(order: int, expected: list[float]) -> None:
    """|z| < 5 for 4 scores in all: a false alarm in 4e5 runs."""
    rng = np.random.default_rng(10 + order)
    X = rng.choice([-1.0, 1.0], size=(200_000, 3))
    y = np.where(rng.random(len(X)) < sum_of_terms(CLASSES, X), "yes", "no")
    model = ILOCO(OracleClassifier(CLASSES), DataSplit(), order=order, progress=False)
    result = model.fit(named(X), y).result_
    own = ideal_scores(variances(CLASSES), result.sets, Refitted(), PROBABILITY)
    np.testing.assert_allclose(own, expected, atol=1e-14)
    assert np.abs(z_scores(result, own)).max() < 5.0
    assert (result.estimates > 8 * result.standard_errors).all()


PAPER: Terms = {(0, 1): 3.0, **{(j,): 2.0 for j in range(5)}}


@pytest.mark.parametrize("columns", ["fixed", "bernoulli"])
def test_regression_by_patches(columns: str) -> None:
    """|t| < 7 for 45 pairs, with 19 degrees at least: a false alarm in 2e4 runs."""
    rng = np.random.default_rng(4)
    X = rng.choice([-1.0, 1.0], size=(400, 10))
    y = sum_of_terms(PAPER, X) + rng.normal(size=len(X))
    scheme = Minipatches(n_patches=2000, rows=30, n_features=3, columns=columns)
    model = ILOCO(OracleRegressor(PAPER), scheme, random_state=1, progress=False)
    result = model.fit(named(X), y).result_
    shares = FixedColumns(10, 3) if columns == "fixed" else BernoulliColumns(0.3)
    own = ideal_scores(variances(PAPER), result.sets, shares, SQUARED)
    used = ~result.are_not_used  # by patches of one size others are not zero
    assert used.sum() == (45 if columns == "fixed" else 10)
    assert np.abs((result.estimates - own)[~used]).max(initial=0.0) < 1e-12
    assert np.abs(z_scores(result, own)[used]).max() < 7.0
    null = (result.sets >= 5).all(axis=1)
    # what is not shared by chance: the mean over ten null pairs is told from zero
    leak = result.estimates[null].mean()
    assert (leak > 0.12) == (columns == "fixed")
    assert own[null] == pytest.approx(0.2755 if columns == "fixed" else 0.0, abs=5e-5)
