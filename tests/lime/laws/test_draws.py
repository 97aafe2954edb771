"""Samples of a law: against its expectations, by z-scores.

|z| < 5 is wrong by chance once in 1.7 million comparisons; there are below 200 here.
"""

from __future__ import annotations

import numpy as np
import pytest

import propopt as po
from propopt.base.arrays import Array, Points
from propopt.lime.laws.lime_law import Draws, LimeLaw


N_SAMPLES = 40_000


def table() -> Points:
    rng = np.random.default_rng(5)
    skewed = rng.lognormal(size=300)
    tied = rng.choice([0.0, 1.0, 2.0], p=[0.6, 0.1, 0.3], size=300)
    some = np.where(rng.random(300) < 0.2, np.nan, rng.normal(size=300))
    codes = rng.choice([0.0, 1.0, 5.0], p=[0.5, 0.3, 0.2], size=300)
    return np.column_stack([skewed, tied, some, codes, np.full(300, 7.0)])


LAWS = {
    "default": {},
    "narrow": {"kernel_width": 0.4},
    "bins": {"n_bins": 7, "weights": "uniform"},
}


@pytest.fixture(params=LAWS)
def law(request: pytest.FixtureRequest) -> po.lime.TabularLaw:
    settings = LAWS[request.param]
    return po.lime.TabularLaw.from_data(table(), categorical=[3], **settings)


def z_of(values: Array, mean: float) -> float:
    """How many standard errors the mean of values is from its expectation."""
    error = values.std() / np.sqrt(len(values))
    gap = abs(values.mean() - mean)
    return float(gap / error) if error > 0 else (np.inf if gap > 1e-9 else 0.0)


def test_bits_of_samples_are_those_of_their_bins(
    law: po.lime.TabularLaw, rng: np.random.Generator
) -> None:
    points = table()[[0, 17, 150]]
    draws = law.draw_weighted(points, 1000, rng)
    for j, column in enumerate(law.columns):
        own = column.place(points[:, j])
        for n in range(len(points)):
            place = column.place(draws.samples[n, :, j])
            np.testing.assert_array_equal(draws.bits[n, :, j], place == own[n])


def test_weights_are_those_of_the_kernel_and_have_its_mean(
    law: po.lime.TabularLaw, rng: np.random.Generator
) -> None:
    points = table()[[3, 40]]
    draws = law.draw(points, N_SAMPLES, rng)
    expected = np.exp(-0.5 * (1.0 - draws.bits).sum(axis=-1) / law.kernel_width**2)
    np.testing.assert_allclose(draws.weights, expected, rtol=1e-12)
    tilts = [
        column.tilt(x, law.widths(points))
        for column, x in zip(law.columns, points.T, strict=True)
    ]
    C = np.exp(np.sum([tilt.log_weight for tilt in tilts], axis=0))
    for n in range(2):
        assert z_of(draws.weights[n], C[n]) < 5
    for j, column in enumerate(law.columns):
        shares = column.shares[column.place(points[:, j])]
        for n in range(2):
            assert z_of(draws.bits[n, :, j], shares[n]) < 5


def test_the_package_has_the_row_itself_first(
    law: po.lime.TabularLaw, rng: np.random.Generator
) -> None:
    points = table()[[0, 17]]
    draws = law.draw(points, 50, rng, first_row=True)
    np.testing.assert_array_equal(draws.samples[:, 0], points)
    np.testing.assert_array_equal(draws.bits[:, 0], 1.0)
    np.testing.assert_array_equal(draws.weights[:, 0], 1.0)
    assert (draws.bits[:, 1:] == 0.0).any()


def test_the_same_seed_draws_the_same_samples(law: po.lime.TabularLaw) -> None:
    points = table()[[0, 17]]
    first, again, other = (
        law.draw(points, 20, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.samples, again.samples)
    np.testing.assert_array_equal(first.weights, again.weights)
    assert not np.array_equal(first.bits, other.bits)


def test_normal_samples_are_weighted_row_by_row(rng: np.random.Generator) -> None:
    X = np.where(rng.random((80, 2)) < 0.1, np.nan, rng.normal(size=(80, 2)))
    law: LimeLaw = po.lime.GaussianLaw.from_data(X, kernel_width=1.0)
    points = np.array([[0.3, np.nan], [-1.0, 0.5]])
    joint = law.draw(points, 200, rng)
    for n in range(2):
        alone = Draws(*(part[n : n + 1] for part in vars(joint).values()))
        logs = np.zeros((1, 200))
        for j, column in enumerate(law.columns):
            x, width = points[n : n + 1, j, None], np.ones((1, 1))
            values, bits = alone.samples[..., j], alone.bits[..., j]
            logs += column.log_kernel(x, values, bits, width)
        np.testing.assert_allclose(np.exp(logs), alone.weights, rtol=1e-12)
