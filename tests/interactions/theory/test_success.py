"""How often the pair that interacts, or is correlated, stands out, by slower learners.

Counts of a few tables: where the share is 0.05 or 0.95, bounds are left in less than
one of 100 tests. With 500 rows, and patches of 100.
"""

import numpy as np
import pytest
from iloco_simulations import Simulation, largest, smallest
from scipy.special import expit
from sklearn.svm import SVR
from studies import study

from papers.iloco.theory import FixedColumns, detectable_ratio, ideal_scores
from propopt.interactions import ILOCO, DataSplit, InteractionScores, Minipatches
from propopt.interactions.errors_of_rows import ABSOLUTE


pytestmark = pytest.mark.slow

at_once = study("patches_at_once")
PAIR = (0, 1)


def simulation(run: int, snr: float, **settings: float) -> Simulation:
    return Simulation(np.random.default_rng([run, 77]), snr, **settings)


def by_patches(
    learner, X: np.ndarray, y: np.ndarray, seed: int, m: int, **settings: object
) -> InteractionScores:
    scheme = Minipatches(n_patches=2000, rows=0.2, n_features=m)
    return at_once.Ensemble(learner, scheme, X, y, seed, **settings).scores()


def by_split(learner, X: np.ndarray, y: np.ndarray, seed: int, **settings: object):
    model = ILOCO(learner, DataSplit(), random_state=seed, progress=False, **settings)
    return model.fit(X, y).result_


@pytest.mark.parametrize(("snr", "low", "high"), [(0.0, 0, 2), (2.0, 6, 8)])
def test_support_vectors_by_splitting(snr: float, low: int, high: int) -> None:
    """Of 8 tables; the score is near snr², what the fits shrink apart."""
    scores = [
        by_split(SVR(C=10.0), *simulation(run, snr).rows(500), run) for run in range(8)
    ]
    assert low <= sum(largest(own) == PAIR for own in scores) <= high
    mean = np.mean([own.estimates[0] for own in scores])
    assert 0.8 * snr**2 <= mean <= snr**2 + 1.0


@pytest.mark.parametrize(
    ("m", "snr", "low", "high"), [(2, 2.0, 0, 1), (2, 5.0, 5, 6), (5, 3.0, 5, 6)]
)
def test_kernel_ridge_by_patches(m: int, snr: float, low: int, high: int) -> None:
    """Of 6 tables: found where the product stands out of what main effects leak."""
    stands_out = detectable_ratio(FixedColumns(10, m)) < snr**2 / 8.0
    assert stands_out == (low > 0)
    result = [
        by_patches(at_once.kernel_ridge, *simulation(run, snr).rows(500), run, m)
        for run in range(6)
    ]
    assert low <= sum(largest(own) == PAIR for own in result) <= high


@pytest.mark.parametrize(("snr", "low", "high"), [(1.0, 0, 2), (3.0, 4, 5)])
def test_trees_by_patches(snr: float, low: int, high: int) -> None:
    """Of 5 tables, half of the features in each patch."""
    result = [
        by_patches(at_once.trees, *simulation(run, snr).rows(500), run, 5)
        for run in range(5)
    ]
    assert low <= sum(largest(own) == PAIR for own in result) <= high


@pytest.mark.parametrize(("snr", "low", "high"), [(0.0, 0, 2), (8.0, 4, 5)])
def test_trees_of_two_classes_by_patches(snr: float, low: int, high: int) -> None:
    """Of 5 tables; P(Y = 1) = sigmoid(snr tanh(x_0 x_1) + Xβ).

    Trees of squared errors on 0 and 1 are those of Gini's index, their means are
    probabilities, and |y − p| is 1 − p of the class.
    """
    result = []
    for run in range(5):
        own = simulation(run, 0.0)
        X, f = own.rows_without_noise(500)
        chance = expit(f + snr * np.tanh(X[:, 0] * X[:, 1]))
        y = (own.rng.random(500) < chance).astype(float)
        result.append(by_patches(at_once.trees, X, y, run, 5, error=ABSOLUTE))
    assert low <= sum(largest(own) == PAIR for own in result) <= high


def test_leak_of_kernel_ridge_is_that_of_ideal_learners() -> None:
    """Means of 5 tables within a fifth of the closed form, for null and other pairs."""
    result, ideal = [], []
    for run in range(5):
        own = simulation(run, 0.0)
        scores = by_patches(at_once.kernel_ridge, *own.rows(500), run, 2)
        variances = {(j,): own.slopes[j] ** 2 for j in range(5)}
        result.append(scores.estimates)
        ideal.append(ideal_scores(variances, scores.sets, FixedColumns(10, 2)))
    n_strong = (scores.sets < 5).sum(axis=1)
    for count in (0, 2):
        own_mean = np.mean(result, axis=0)[n_strong == count].mean()
        known = np.mean(ideal, axis=0)[n_strong == count].mean()
        assert own_mean == pytest.approx(known, rel=0.2)
        assert (own_mean > 0.0) == (count == 0)


@pytest.mark.parametrize(("rho", "low", "high"), [(0.0, 0, 2), (0.6, 5, 6)])
def test_correlated_pair_by_patches(rho: float, low: int, high: int) -> None:
    """Of 6 tables without interaction the most negative pair; features stay on top.

    Where few features are in a patch the effects of both are seen one by one.
    """
    result = [
        by_patches(
            at_once.kernel_ridge,
            *simulation(run, 0.0, correlation=rho).rows(500),
            run,
            2,
        )
        for run in range(6)
    ]
    assert low <= sum(smallest(own) == PAIR for own in result) <= high
    tops = [set(np.argsort(own.main.estimates)[-2:].tolist()) for own in result]
    n_top = sum(top == {0, 1} for top in tops)
    assert n_top >= 3 if rho else n_top <= 2


@pytest.mark.parametrize(("snr", "low", "high"), [(0.0, 0.0, 1.0), (4.0, 13.0, 18.0)])
def test_product_of_three_by_support_vectors(
    snr: float, low: float, high: float
) -> None:
    """The mean of two tables: snr², and what 1000 rows do not tell."""
    learner = SVR(C=30.0, gamma=0.1)
    result = []
    for run in range(2):
        own = simulation(run, snr, order=3, n_features=6)
        result.append(by_split(learner, *own.rows(2000), run, order=3))
    assert low <= np.mean([own.estimates[0] for own in result]) <= high
    if snr > 0.0:
        assert [largest(own) for own in result] == [(0, 1, 2)] * 2
        others = np.mean([own.estimates[1:] for own in result])
        assert abs(others) < 0.5


def test_widths_and_scores_of_both_schemes() -> None:
    """By patches both are far smaller: widths are not to be compared."""
    widths, scores = [], []
    for run in range(6):
        X, y = simulation(run, 0.0).rows(250)
        both = [
            by_split(SVR(C=10.0), X, y, run, sets=[PAIR]),
            by_patches(at_once.kernel_ridge, X, y, run, 2),
        ]
        ends = [own.intervals(adjust="none", errors="rows")[0] for own in both]
        widths.append([high - low for low, high in ends])
        X, y = simulation(run, 5.0).rows(250)
        both = [
            by_split(SVR(C=10.0), X, y, run, sets=[PAIR]),
            by_patches(at_once.kernel_ridge, X, y, run, 2),
        ]
        scores.append([own.estimates[0] for own in both])
    split, patches = np.mean(widths, axis=0)
    assert 10.0 < split / patches < 60.0  # 28 is what was seen first
    split, patches = np.mean(scores, axis=0)
    assert 10.0 < split / patches < 150.0
