"""Laws of optimal explanations, on random programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import propopt as po


WEIGHTS = st.floats(-3, 3).map(lambda exponent: 10.0**exponent)
SEEDS = st.integers(0, 2**32 - 1)
KINDS = ("closed form", "sparse", "largest difference", "function", "linear")
each_kind = pytest.mark.parametrize("kind", KINDS)


class Case:
    """Random points, gradients and values, and an objective of some kind on them."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.n, self.d = rng.integers(2, 6), rng.integers(1, 4)
        self.X = rng.normal(size=(self.n, self.d))
        self.G = rng.normal(size=(self.n, self.d)) * 10 ** rng.uniform(-2, 2)
        self.values = rng.normal(size=self.n)
        self.rng = rng

    def objective(self, kind: str, *weights: float) -> po.Objective:
        first, second, third = weights
        graph = po.gaussian_graph(self.X, 1.0)
        robustness = po.PairwiseRobustness(graph)
        largest = po.MaxDifferenceRobustness(po.complete_graph(self.n), norm="linf")
        difference = po.MaxDifferenceRobustness(po.complete_graph(self.n), "sum")
        smoothness = po.Smoothness(po.chain_graph(int(self.d)))
        gradient = po.GradientMatching(self.G)
        function = po.FunctionMatching(self.X, self.values)
        absolute = po.GradientMatching(self.G, norm="l1")
        parts: list[po.PropertyLoss] = {
            "closed form": [gradient, robustness, smoothness],
            "sparse": [gradient, po.Sparsity(), robustness],
            "largest difference": [gradient, difference, po.Sparsity()],
            "function": [function, gradient, robustness],
            "linear": [absolute, largest, po.Sparsity()],
        }[kind]
        return first * parts[0] + second * parts[1] + third * parts[2]


def slack(best: po.Explanation) -> float:
    """How far the objective can be above the optimum, in its own units."""
    result = best.certificate
    return max(result.value - result.lower_bound, 0.0) + 1e-12 * result.value


THREE = st.tuples(WEIGHTS, WEIGHTS, WEIGHTS)


@pytest.mark.sampled(2)
@each_kind
@given(seed=SEEDS, weights=THREE)
def test_permuted_points_and_features_have_permuted_explanations(kind, seed, weights):
    case = Case(seed)
    best = po.solve(case.objective(kind, *weights), tolerance=1e-3)
    rows, columns = case.rng.permutation(case.n), np.arange(case.d)
    if kind in ("sparse", "largest difference", "function"):  # no chain of features
        columns = case.rng.permutation(case.d)
    cells = np.ix_(rows, columns)
    case.X, case.G, case.values = case.X[cells], case.G[cells], case.values[rows]
    permuted = po.solve(case.objective(kind, *weights), tolerance=1e-3)
    apart = abs(best.objective - permuted.objective)
    assert apart <= slack(best) + slack(permuted)
    if best.certificate.distance is not None:
        expected = best.attributions[cells]
        away = np.linalg.norm(permuted.attributions - expected)
        allowed = permuted.certificate.distance + best.certificate.distance
        assert away <= allowed + 1e-9 * np.linalg.norm(expected)


@given(seed=SEEDS, weights=THREE, factor=WEIGHTS)
def test_scaled_gradients_and_infinite_robustness_are_closed_forms(
    seed, weights, factor
):
    case = Case(seed)
    best = po.solve(case.objective("closed form", *weights))
    labels = case.rng.integers(0, 2, size=case.n)
    robustness = po.PairwiseRobustness(po.group_graph(labels))
    stiff = po.solve(po.GradientMatching(case.G) + 1e6 * robustness).attributions
    means = np.array([case.G[labels == label].mean(axis=0) for label in labels])
    np.testing.assert_allclose(stiff, means, atol=1e-5 * np.abs(case.G).max())
    case.G = factor * case.G
    scaled = po.solve(case.objective("closed form", *weights))
    size = 1e-9 * np.abs(case.G).max()
    expected = factor * best.attributions
    np.testing.assert_allclose(scaled.attributions, expected, atol=size)


@given(seed=SEEDS, share=st.floats(0.05, 0.95), robust=WEIGHTS)
def test_sparsity_gives_zero_from_its_largest_weight_on(seed, share, robust):
    # zero is optimal where |∇q(0)| = 2|G| is within the weight, whatever else is added
    case = Case(seed)
    largest = 2 * np.abs(case.G).max()
    objective = case.objective("sparse", 1.0, largest / share, robust)
    assert po.certify(objective, np.zeros_like(case.G)).gap <= 1e-12
    best = po.solve(objective)
    assert np.linalg.norm(best.attributions) <= best.certificate.distance + 1e-12
    best = po.solve(case.objective("sparse", 1.0, share * largest, 0.0))
    cut = np.maximum(np.abs(case.G) - share * largest / 2, 0)
    away = np.linalg.norm(best.attributions - np.sign(case.G) * cut)
    assert away <= best.certificate.distance + 1e-9 * np.abs(case.G).max()
    assert cut.max() > 0
