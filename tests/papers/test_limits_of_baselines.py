"""The paper's statements: limits of baselines, figure 1, none beats the optimum.

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

each_limit = pytest.mark.parametrize(("function", "limit"), LIMITS.values(), ids=LIMITS)
each_scale = pytest.mark.parametrize("scale", [0.1, 0.5, 1.0])
each_dimension = pytest.mark.parametrize("dimensions", [1, 3])


@pytest.fixture
def X(rng):
    return rng.uniform(-2, 2, size=(5, 2))


def assert_within_errors(result: po.Explanation, exact: np.ndarray) -> None:
    error = result.standard_errors
    assert (np.abs(result.attributions - exact) <= Z * error + 1e-12).all()


@each_scale
@each_limit
def test_smoothgrad_has_its_exact_limit(function, limit, scale, X):
    result = SmoothGrad(scale=scale, n_samples=S).explain(function, X)
    assert_within_errors(result, limit(X, scale))


@each_scale
@each_limit
def test_lime_with_intercept_has_the_limit_of_smoothgrad(function, limit, scale, X):
    result = Lime(scale=scale, n_samples=20 * S).explain(function, X)
    assert_within_errors(result, limit(X, scale))


@each_scale
def test_lime_without_intercept_of_a_cube_has_its_exact_limit(scale, rng):
    x = rng.uniform(-2, 2, size=(5, 1))
    lime = Lime(scale=scale, n_samples=20 * S, fit_intercept=False)
    exact = x**4 + 6 * x**2 * scale**2 + 3 * scale**4
    assert_within_errors(lime.explain(Power(3), x), exact / (x**2 + scale**2))


# figure 1


def points(dimensions: int) -> np.ndarray:
    return grid(-5, 5, {1: 20, 3: 3}[dimensions], dimensions)


def losses(dimensions: int) -> tuple[po.GradientMatching, po.PairwiseRobustness]:
    X = points(dimensions)
    graph = po.gaussian_graph(X, 3.0)
    return po.GradientMatching(Power(3).gradient(X)), po.PairwiseRobustness(graph)


@each_dimension
@pytest.mark.parametrize("scale", [0.01, 0.5, 3.0])
def test_robustness_of_smoothgrad_of_a_cube_does_not_depend_on_its_scale(
    dimensions, scale
):
    X = points(dimensions)
    _, robustness = losses(dimensions)
    flat = robustness.value(Power(3).gradient(X))
    result = robustness.value(LIMITS["x³"][1](X, scale))
    assert result == pytest.approx(flat, rel=1e-12)


@each_dimension
@pytest.mark.parametrize("scale", [0.01, 0.5, 3.0])
def test_faithfulness_loss_of_smoothgrad_of_a_cube_is_9_n_d_delta4(dimensions, scale):
    X = points(dimensions)
    faithfulness, _ = losses(dimensions)
    result = faithfulness.value(LIMITS["x³"][1](X, scale))
    assert result == pytest.approx(9 * X.size * scale**4, rel=1e-9)


@each_dimension
@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0])
def test_sampled_smoothgrad_of_a_cube_agrees_within_its_errors(dimensions, scale):
    X = points(dimensions)
    faithfulness, robustness = losses(dimensions)
    result = SmoothGrad(scale=scale, n_samples=S).explain(Power(3), X)
    # (x + δε)² has the variance 4x²δ² + 2δ⁴, and SmoothGrad is three times its mean
    variances = 9 * (4 * X**2 * scale**2 + 2 * scale**4) / S
    limit = LIMITS["x³"][1](X, scale)
    laplacian = 2 * robustness.graph.laplacian.toarray()
    flat = robustness.value(faithfulness.G)
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
        made.append(SmoothGrad(scale=scale, n_samples=200).explain(function, X))
        made.append(
            SmoothGrad(scale=scale, n_samples=200, distribution="ball").explain(
                function, X
            )
        )
        made.append(Lime(scale=scale, n_samples=200).explain(function, X))
        made.append(
            Lime(scale=scale, n_samples=200, fit_intercept=False).explain(function, X)
        )
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
