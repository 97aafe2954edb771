"""Noise, mean and needed samples of runs, against runs of every law."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import propopt as po
from propopt.lime import GaussianLaw, GlimeLaw, TabularLaw, limits


RUNS, N = 300, 400


def table() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(300, 3))


def laws():
    X = table()
    tabular = TabularLaw.from_data(X, kernel_width=0.8)
    yield "tabular", tabular
    yield "gaussian", GaussianLaw.from_data(X, kernel_width=1.5)
    yield "glime of bins", GlimeLaw(tabular)
    yield "glime of normals", GlimeLaw(GaussianLaw.from_data(X, kernel_width=1.0))


def forest():
    X = table()
    y = X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2])
    return po.wrap(RandomForestRegressor(10, max_depth=6, random_state=0).fit(X, y))


def fitted(bits, values, weights, ridge):
    """Coefficients by weighted least squares with a free intercept."""
    Z = np.column_stack([np.ones(len(bits)), bits])
    penalty = ridge * np.diag([0.0, *np.ones(bits.shape[1])])
    system = Z.T @ (weights[:, None] * Z) + penalty
    return np.linalg.solve(system, Z.T @ (weights * values))[1:]


@pytest.mark.parametrize("law", [law for _, law in laws()], ids=[n for n, _ in laws()])
def test_runs_scatter_as_they_are_said_to(law):
    f, row = forest(), table()[[3]]
    lime = limits(f, row, law, n_samples=N)
    rng = np.random.default_rng(5)
    runs = []
    for _ in range(RUNS):
        samples = law.draw(row, N, rng, first_row=lime.first_row)
        values = f.value(samples.samples[0])
        runs.append(fitted(samples.bits[0], values, samples.weights[0], lime.ridge))
    mean, sd = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1)
    # 4.5 standard errors of 12 numbers: a false alarm in 10^4; of sd 1/√(2 R) is 4 %,
    # and noise is known to 2 %; a first-order formula is off by some 1/N
    z = (mean - lime.expected()[0]) / (sd / np.sqrt(RUNS))
    assert np.abs(z).max() < 4.5
    assert lime.noise()[0] == pytest.approx(sd, rel=0.25)
    assert np.mean(lime.noise()[0] / sd) == pytest.approx(1.0, abs=0.13)


@pytest.mark.parametrize("law", [law for _, law in laws()], ids=[n for n, _ in laws()])
def test_needed_samples_give_the_error_asked_for(law):
    lime = limits(forest(), table()[[3]], law, n_samples=2000)
    goal = float(lime.noise().max()) / 3.0
    needed = lime.required_n(goal)
    worst = np.unravel_index(needed.argmax(), needed.shape)
    assert needed[worst] == pytest.approx(9 * 2000, rel=1e-3)
    # with ridge and first row the sandwich is not quite 1/√n
    assert lime.noise(int(needed[worst]))[worst] == pytest.approx(goal, rel=0.03)
