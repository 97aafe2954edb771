"""Metrics where their values are known without sampling."""

from __future__ import annotations

import numpy as np
from metric_cases import S, noise

import propopt as po
from propopt.explaining.explainers import Gradient
from propopt.explaining.metrics import (
    PGI,
    PGU,
    AvgSensitivity,
    BaselineMethod,
    CompletenessGap,
    FaithfulnessCorrelation,
    Infidelity,
    LocalLipschitz,
    MaxSensitivity,
)


LINE = po.wrap(lambda X: X @ np.array([1.0, -2.0, 0.5, 3.0]))


def test_the_gradient_of_a_line_is_perfect(X):
    W = np.tile([1.0, -2.0, 0.5, 3.0], (len(X), 1))
    constant = BaselineMethod(explainer=Gradient(), function=LINE)
    assert Infidelity()(W, LINE, X).max() < 1e-25
    assert MaxSensitivity()(constant, X).max() < 1e-8  # differences of f
    effects = W * (X - X.mean(axis=0))
    np.testing.assert_allclose(FaithfulnessCorrelation(k=2)(effects, LINE, X), 1)
    assert CompletenessGap()(effects, LINE, X).max() < 1e-13


def test_constant_attributions_have_no_sensitivity(X):
    for metric in (MaxSensitivity(), AvgSensitivity(), LocalLipschitz()):
        assert (metric(np.ones_like, X) == 0).all()


def test_relative_sensitivity_of_the_identity_is_that_of_the_points(X):
    metric = MaxSensitivity(n_samples=S)
    steps = np.linalg.norm(noise(metric, X.shape), axis=2).max(axis=1)
    result = metric(lambda points: points, X)
    np.testing.assert_allclose(result, steps / np.linalg.norm(X, axis=1), rtol=1e-10)


def test_infidelity_of_a_square_is_its_curvature():
    """For x² and w = 2x the error is I², E I⁴ = 3δ⁴; false alarms below 1e-6.

    Over 100,000 draws the mean of I⁴, of variance 96δ⁸, is normal enough for z < 6.
    """
    X = np.linspace(-2, 2, 200)[:, None]
    result = Infidelity(scale=0.5, n_samples=500)(2 * X, po.functions.Power(2), X)
    z = (result.mean() - 3 * 0.5**4) / np.sqrt(96 * 0.5**8 / 100_000)
    assert abs(z) < 6


def test_prediction_gap_of_a_line_is_that_of_a_normal():
    """E|mᵀ(w∘ε)| = δ‖m∘w‖√(2/π); over 50,000 draws z < 5, false alarms 6e-7."""
    w = np.array([1.0, -2.0, 0.5, 3.0])
    X = np.zeros((100, 4))
    for metric, size in [
        (PGI(k=2, scale=0.3, n_samples=500), np.hypot(2, 3)),
        (PGU(k=2, scale=0.3, n_samples=500), np.hypot(1, 0.5)),
    ]:
        gaps = metric(np.tile(w, (100, 1)), LINE, X)
        scale = 0.3 * size
        spread = scale * np.sqrt((1 - 2 / np.pi) / 50_000)
        assert abs(gaps.mean() - scale * np.sqrt(2 / np.pi)) < 5 * spread


def test_subsets_are_uniform_among_all_of_their_size():
    """χ² of 10 subsets, 9 degrees of freedom: above 50 with probability 1e-7."""
    observed: list[np.ndarray] = []

    def spy(points: np.ndarray) -> np.ndarray:
        observed.append(np.asarray(points) == 0)
        return np.asarray(points) @ np.arange(1.0, 6.0)

    metric = FaithfulnessCorrelation(k=2, n_samples=10_000, baseline=np.zeros(5))
    metric(np.arange(5.0)[None], po.wrap(spy), np.ones((1, 5)))
    subsets = np.concatenate([part for part in observed if part.any()])
    assert (subsets.sum(axis=1) == 2).all()
    _, counts = np.unique(subsets, axis=0, return_counts=True)
    assert len(counts) == 10
    assert ((counts - 1000) ** 2 / 1000).sum() < 50
