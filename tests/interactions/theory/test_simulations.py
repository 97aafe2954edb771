"""Which sets the simulations of the paper find, by splitting and by patches."""

import numpy as np
import pytest
from iloco_simulations import Simulation, largest, smallest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from papers.iloco.theory import linear_refit_scores
from propopt.interactions import ILOCO, DataSplit


def split_scores(learner: BaseEstimator, simulation: Simulation, n: int, order: int):
    model = ILOCO(learner, DataSplit(), order=order, random_state=0, progress=False)
    return model.fit(*simulation.rows(n))


@pytest.mark.parametrize(("snr", "low", "high"), [(0.0, 0, 2), (3.0, 6, 6)])
def test_product_is_found_by_splitting(snr: float, low: int, high: int) -> None:
    """Of 6 tables; at 0 a pair of 45 is as likely: 3 are a false alarm in 4500."""
    squares = make_pipeline(PolynomialFeatures(2), Ridge(1e-6))
    simulations = [Simulation(np.random.default_rng(run), snr) for run in range(6)]
    scores = [split_scores(squares, own, 2000, 2).result_ for own in simulations]
    assert low <= sum(largest(own) == (0, 1) for own in scores) <= high
    mean = np.mean([own.estimates[0] for own in scores])
    assert mean == pytest.approx(snr**2, rel=0.2, abs=0.5)  # V_01


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_most_negative_pair_is_the_correlated_one(rho: float) -> None:
    """Scores lie within 5 sd of the closed form; main effects do not show the pair."""
    n_results = n_top = 0
    errors = []
    for run in range(8):
        simulation = Simulation(np.random.default_rng(run), correlation=rho)
        model = split_scores(LinearRegression(), simulation, 500, 2)
        result, top = model.result_, np.argsort(model.main_effects_.estimates)[-2:]
        n_results += smallest(result) == (0, 1)
        n_top += set(top.tolist()) == {0, 1}
        sigma = np.eye(10)
        sigma[0, 1] = sigma[1, 0] = rho
        expected = linear_refit_scores(simulation.slopes, sigma, result.sets[:1])
        errors.append(result.estimates[0] - expected[0])
    assert n_results == 8 if rho else n_results <= 4
    assert n_top <= (1 if rho else 5)
    spread = np.std(errors, ddof=1) / np.sqrt(8)
    assert abs(np.mean(errors)) < 5.0 * spread  # t of 7 degrees: 2 in 10^3


@pytest.mark.parametrize("snr", [0.0, 2.0, 4.0])
def test_product_of_three_is_found_by_third_order(snr: float) -> None:
    """V_012 = snr², and cubic fits on many rows know it but for their noise."""
    cubic = make_pipeline(PolynomialFeatures(3), Ridge(1e-6))
    simulation = Simulation(np.random.default_rng(3), snr, order=3, n_features=6)
    result = split_scores(cubic, simulation, 4000, 3).result_
    expected = np.where(np.arange(len(result)) == 0, snr**2, 0.0)
    bounds = 5.0 * result.standard_errors + 0.1  # z of 20 sets; what fits add is 0.1
    assert (np.abs(result.estimates - expected) < bounds).all()
    assert largest(result) == (0, 1, 2) or snr == 0.0
