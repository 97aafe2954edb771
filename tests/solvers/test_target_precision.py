"""The stopping rule of draws: the target error of the optimum for another estimate."""

import numpy as np

import propopt as po


def test_draws_stop_where_the_error_is_small_enough():
    X = np.random.default_rng(2).normal(size=(60, 2))
    steps = po.wrap(lambda X: np.round(2 * X).sum(axis=1))
    mean = po.smoothed(steps, law="data", data=X, n_samples=50)
    robust = 0.3 * po.PairwiseRobustness(po.knn_graph(X, 4))

    def error(estimate):
        return po.solve(po.GradientMatching(estimate) + robust).target_error

    few = error(mean.estimate(X))
    grown = mean.growing(X).until(few / 3.0, error=lambda drawn: error(drawn.estimate))
    assert grown.n_draws > 100
    assert error(grown.estimate) <= few / 3.0
