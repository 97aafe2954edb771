"""Intervals of minipatches have what the same patches score on many new rows.

At 90 % somewhat less, as n is not small beside √N; means over pairs are 0.82 or more.
"""

import numpy as np
import pytest
from iloco_simulations import Simulation, has
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor
from studies import study

from propopt.interactions import ILOCO, Minipatches
from propopt.interactions.errors_of_rows import ABSOLUTE, SQUARED, RowError


at_once = study("patches_at_once")


class SmallTree(DecisionTreeRegressor):
    """Leaves of five rows or more, and one seed for all."""

    def __init__(self) -> None:
        super().__init__(min_samples_leaf=5, random_state=0)


class KernelOfWidth(RegressorMixin, BaseEstimator):
    """Kernel ridge with γ = 1/M, of the columns that are there."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "KernelOfWidth":
        self.n_features_in_ = X.shape[1]
        self.own_ = KernelRidge(kernel="rbf", gamma=1.0 / X.shape[1]).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.own_.predict(X)


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore::propopt.base.errors.FewPatchesWarning")
@pytest.mark.parametrize(
    ("estimator", "learner", "columns"),
    [
        (LinearRegression(), at_once.least_squares, "bernoulli"),
        (KernelOfWidth(), at_once.kernel_ridge, "fixed"),
        (KernelOfWidth(), at_once.kernel_ridge, "bernoulli"),
        (SmallTree(), at_once.trees, "bernoulli"),
    ],
)
def test_fits_in_blocks_are_those_of_the_package(estimator, learner, columns) -> None:
    """Of kernel ridge and trees exactly; of least squares but for 1e-6 on XᵀX."""
    X, y = Simulation(np.random.default_rng(2), 2.0).rows(40)
    scheme = Minipatches(n_patches=600, rows=20, n_features=2, columns=columns)
    result = ILOCO(estimator, scheme, random_state=9, progress=False).fit(X, y).result_
    own = at_once.Ensemble(learner, scheme, X, y, seed=9).scores()
    for name in ("estimates", "standard_errors", "monte_carlo", "counts", "leak"):
        np.testing.assert_allclose(
            getattr(own, name),
            getattr(result, name),
            rtol=1e-5,
            atol=1e-6,
            err_msg=name,
        )


def coverage(
    learner,
    scheme: Minipatches,
    *,
    snr: float,
    n_rows: int,
    n_runs: int,
    error: RowError | None = None,
    n_new: int = 2000,
) -> tuple[float, float]:
    """Mean share of all 45 pairs, of what the same patches score on new rows.

    As it is, and with the error of finitely many new rows as a part of the intervals:
    without it the shares are lower, of trees and 500 rows 0.81 and not 0.86.
    """
    result = []
    for run in range(n_runs):
        simulation = Simulation(np.random.default_rng([run, n_rows]), snr)
        ensemble = at_once.Ensemble(
            learner, scheme, *simulation.rows(n_rows), run, error or SQUARED
        )
        scores = ensemble.scores()
        new = (simulation.rows if error else simulation.rows_without_noise)(n_new)
        target = ensemble.judged(*new, scores.sets)
        both = np.hypot(scores.standard_errors, target["standard_errors"])
        apart = np.abs(scores.estimates - target["estimates"])
        result.append(
            [has(scores, target["estimates"]), apart <= norm.ppf(0.95) * both]
        )
    plain, wider = np.mean(result, axis=(0, 2))
    return float(plain), float(wider)


@pytest.mark.parametrize("columns", ["fixed", "bernoulli"])
def test_small_tables(columns: str) -> None:
    """0.8 to 0.96: means of 20 tables near 0.88 have sd 0.02, out in 10,000 tests."""
    scheme = Minipatches(n_patches=400, rows="sqrt", n_features=2, columns=columns)
    plain, wider = coverage(
        at_once.least_squares, scheme, snr=0.0, n_rows=100, n_runs=20, n_new=1000
    )
    assert 0.8 <= plain <= wider <= 0.96


@pytest.mark.slow
@pytest.mark.parametrize(
    ("snr", "m", "rows", "columns", "error"),
    [
        (0.0, 2, 0.2, "fixed", None),
        (0.0, 2, "sqrt", "fixed", None),
        (0.0, 2, 0.2, "bernoulli", None),
        (2.0, 2, 0.2, "fixed", None),
        (2.0, 5, 0.2, "fixed", None),
        (2.0, 5, "sqrt", "bernoulli", None),
        (0.0, 2, 0.2, "fixed", ABSOLUTE),
        (0.0, 2, "sqrt", "fixed", ABSOLUTE),
    ],
)
def test_kernel_ridge(snr, m, rows, columns, error) -> None:
    """Means of 30 tables near 0.86 have sd 0.015: below 0.82 in one of 250 tests."""
    scheme = Minipatches(n_patches=1000, rows=rows, n_features=m, columns=columns)
    learner, sizes = at_once.kernel_ridge, {"n_rows": 250, "n_runs": 30}
    plain, wider = coverage(learner, scheme, snr=snr, error=error, **sizes)
    assert 0.82 <= plain <= wider <= 0.95


@pytest.mark.slow
@pytest.mark.parametrize(("snr", "m"), [(0.0, 2), (2.0, 5)])
def test_trees(snr: float, m: int) -> None:
    """Means of 15 tables near 0.86 have sd 0.02, out in one of 1000 tests."""
    scheme = Minipatches(n_patches=1500, rows=0.2, n_features=m)
    _, result = coverage(at_once.trees, scheme, snr=snr, n_rows=500, n_runs=15)
    assert 0.79 <= result <= 0.95
