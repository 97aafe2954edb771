"""The paper's statements: figure 1, and that no baseline beats the optimum.

Random tests compare |found − exact| with Z standard errors. For gaussian errors each
comparison fails by chance with probability 2e-9; some 500 are made, so one run in a
million would fail if seeds were not fixed.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from smoothed_formulas import LIMITS

import propopt as po
from propopt.explaining.explainers import Gradient, Lime, SmoothGrad, aggregate
from propopt.functions import PAPER_FUNCTIONS, Function, Power
from propopt.losses.graphs import grid


Z = 6.0
S = 4_000

# figure 1


def points(dimensions: int) -> np.ndarray:
    return grid(-5, 5, {1: 20, 3: 3}[dimensions], dimensions)


def losses(dimensions: int) -> tuple[po.GradientMatching, po.PairwiseRobustness]:
    X = points(dimensions)
    graph = po.gaussian_graph(X, 3.0)
    return po.GradientMatching(Power(3).gradient(X)), po.PairwiseRobustness(graph)


@pytest.mark.parametrize("dimensions", [1, 3])
@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0])
def test_sampled_smoothgrad_of_a_cube_agrees_within_its_errors(dimensions, scale):
    X = points(dimensions)
    faithfulness, robustness = losses(dimensions)
    result = SmoothGrad(scale=scale, n_samples=S).explain(Power(3), X)
    # (x + δε)² has the variance 4x²δ² + 2δ⁴, and SmoothGrad is three times its mean
    variances = 9 * (4 * X**2 * scale**2 + 2 * scale**4) / S
    limit = LIMITS["x³"][1](X, scale)  # which explainers are held to
    flat = robustness.value(faithfulness.G)
    assert robustness.value(limit) == pytest.approx(flat, rel=1e-12)
    laplacian = 2 * robustness.graph.laplacian.toarray()
    for loss, matrix, shift, exact in [
        (faithfulness, np.eye(len(X)), limit - faithfulness.G, 9 * X.size * scale**4),
        (robustness, laplacian, limit, flat),
    ]:
        mean, error = noise_of_a_quadratic(matrix, shift, variances)
        assert abs(loss.value(result.attributions) - exact - mean) <= Z * error


def noise_of_a_quadratic(
    matrix: np.ndarray, shift: np.ndarray, variances: np.ndarray
) -> tuple[float, float]:
    """Mean and standard deviation of tr((B+E)ᵀM(B+E)) − tr(BᵀMB) for gaussian noise E.

    Entries of E are independent: mean Σ_d Σ_n M_nn v_nd, variance
    Σ_d 4 Σ_n (MB)²_nd v_nd + 2 Σ_nm M²_nm v_nd v_md.
    """
    mean = (np.diag(matrix)[:, None] * variances).sum()
    linear = 4 * ((matrix @ shift) ** 2 * variances).sum()
    square = 2 * np.einsum("nm,nd,md->", matrix**2, variances, variances)
    return mean, np.sqrt(linear + square)


# no baseline beats the optimum


def paper_function(name: str) -> Function:
    return PAPER_FUNCTIONS[name](3) if name == "power" else PAPER_FUNCTIONS[name]()


@cache
def baselines(name: str) -> tuple[np.ndarray, np.ndarray, list[po.Explanation]]:
    function = paper_function(name)
    X = grid(-2, 2, 4, 2)
    made = [Gradient().explain(function, X)]
    for scale in (1e-3, 0.1, 0.5, 1.0, 3.0):
        own = {"scale": scale, "n_samples": 200}
        ball, bare = {"distribution": "ball"}, {"fit_intercept": False}
        rivals = [SmoothGrad(**own), SmoothGrad(**own, **ball)]
        rivals += [Lime(**own), Lime(**own, **bare)]
        made += [rival.explain(function, X) for rival in rivals]
    return X, function.gradient(X), made


def objectives(
    X: np.ndarray, G: np.ndarray, values: np.ndarray
) -> dict[str, po.Objective]:
    gradient = po.GradientMatching(G)
    graph = po.gaussian_graph(X)
    near = po.knn_graph(X, 3)
    return {
        "pairwise": gradient + po.PairwiseRobustness(graph),
        "sparsity": gradient + po.Sparsity(),
        "max": gradient + po.MaxDifferenceRobustness(near),
        "function": po.FunctionMatching(X, values) + po.PairwiseRobustness(graph),
    }


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", ["pairwise", "sparsity", "max", "function"])
@pytest.mark.parametrize("name", PAPER_FUNCTIONS)
def test_no_baseline_beats_the_optimum(name, kind):
    X, G, made = baselines(name)
    objective = objectives(X, G, paper_function(name).value(X))[kind]
    last = list(objective.weights)[-1]
    for weight in (1e-2, 1.0, 1e2):
        weighed = objective.with_weights({last: weight})
        best = po.solve(weighed)
        assert best.certificate.holds(1e-6)
        optimum = best.certificate.value - best.gap * best.certificate.scale
        for rival in [*made, aggregate(weighed, made[:6])]:
            assert weighed.value(rival.attributions) >= optimum * (1 - 1e-12)
