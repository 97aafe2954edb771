"""Perturbations: their law, their stream, and the blocks they come in."""

from __future__ import annotations

import numpy as np
import pytest
from baseline_checks import DISTRIBUTIONS, Z

from propopt.base.arrays import Array
from propopt.base.resources import Budget
from propopt.laws import perturbations
from propopt.laws.perturbations import Perturbations


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_draws_have_the_moments_of_their_law(distribution: str) -> None:
    # E ε_d² is δ² (gaussian), δ²/3 (cube), δ²/(D + 2) (ball).
    variance = {"gaussian": 4.0, "uniform": 4 / 3, "ball": 4 / 5}[distribution]
    noise = Perturbations(scale=2.0, n_samples=1, distribution=distribution)  # type: ignore[arg-type]  # a parameter
    draws = noise.draw((40_000, 3), np.random.default_rng(0))
    for sample, truth in [(draws, 0.0), (draws**2, variance)]:
        error = sample.std(axis=0) / np.sqrt(len(sample))
        assert (np.abs(sample.mean(axis=0) - truth) < Z * error).all()


def test_the_ball_is_filled_evenly_to_its_radius() -> None:
    noise = Perturbations(scale=2.0, n_samples=1, distribution="ball")
    draws = noise.draw((40_000, 3), np.random.default_rng(0))
    volumes = (np.linalg.norm(draws, axis=1) / 2) ** 3  # uniform in (0, 1)
    assert volumes.max() <= 1
    # sd of a decile's count: √(40 000 · 0.1 · 0.9) = 60
    assert np.abs(np.histogram(volumes, 10, (0, 1))[0] - 4000).max() < Z * 60


def test_uniform_draws_stay_in_the_cube() -> None:
    noise = Perturbations(scale=2.0, n_samples=1, distribution="uniform")
    assert np.abs(noise.draw((1000, 3), np.random.default_rng(0))).max() <= 2


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("n_samples", [5, 30])
def test_the_block_size_never_changes_the_draws(
    distribution: str, n_samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = Perturbations(scale=1.0, n_samples=n_samples, distribution=distribution)  # type: ignore[arg-type]  # a parameter

    def draws(block: int) -> Array:
        monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(8 * 3 * block))
        parts = noise.blocks((7, 3), np.random.default_rng(1), split=True)
        return np.concatenate([part.reshape(-1, 3) for _, part in parts])

    for block in (1, 13, 200):
        np.testing.assert_array_equal(draws(block), draws(10_000))
