"""Few inducing inputs for many observations: rules, inference and its bound."""

import numpy as np
import pytest
import scipy.linalg as la
from hypothesis import given
from hypothesis import strategies as st
from inductive_cases import MEANS
from sklearn.gaussian_process.kernels import RBF, Matern

import propopt as po
from propopt.base.resources import Budget
from propopt.inductive import (
    FarthestInputs,
    GaussianProcessExplainer,
    GivenInputs,
    GreedyVariance,
    RandomInputs,
    posterior,
)
from propopt.inductive.inputs import Candidates, PointKernel


RULES = {
    "random": RandomInputs(7),
    "farthest": FarthestInputs(7),
    "greedy": GreedyVariance(7, 1e-9),
}


def observed(X, noise=0.1, seed=0):
    kernel = PointKernel(function=RBF(1.0), jitter=0.0, radial=False)
    return Candidates(X=X, kernel=kernel, noise=noise, rng=np.random.default_rng(seed))


def data(rng, n_points=40, n_features=3):
    X = rng.uniform(-2, 2, size=(n_points, n_features))
    return X, np.sin(2 * X) + 0.3 * rng.normal(size=X.shape)


# ---- rules
@pytest.mark.parametrize("name", RULES)
def test_a_rule_gives_so_many_different_inputs_of_those_observed(name, rng):
    rule, (X, _) = RULES[name], data(rng)
    first, second = rule.select(observed(X)), rule.select(observed(X))
    assert first.shape == (7, 3)
    assert len(np.unique(first, axis=0)) == 7
    np.testing.assert_array_equal(first, second)
    if name != "k-means":
        assert {tuple(z) for z in first} <= {tuple(x) for x in X}
    if name in ("random", "k-means"):
        assert not np.array_equal(first, rule.select(observed(X, seed=1)))
    twice = np.repeat(rng.normal(size=(3, 2)), 4, axis=0)  # none is taken again
    chosen = rule.select(observed(twice))
    assert len(chosen) == 3
    np.testing.assert_allclose(
        np.unique(chosen, axis=0), np.unique(twice, axis=0), atol=1e-12
    )


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_farthest_input_is_the_farthest(seed, count):
    X = np.random.default_rng(seed).normal(size=(15, 2))
    chosen = FarthestInputs(count).select(observed(X))
    for m in range(1, count):
        before = np.linalg.norm(X[:, None] - chosen[None, :m], axis=2).min(axis=1)
        now = np.linalg.norm(chosen[m] - chosen[:m], axis=1).min()
        np.testing.assert_allclose(now, before.max())


def left_over(X, Z):
    """K − Q, dense."""
    kernel = RBF(1.0)
    return kernel(X) - kernel(X, Z) @ la.lstsq(kernel(Z), kernel(Z, X))[0]


@given(st.integers(0, 2**32 - 1))
def test_greedy_input_is_the_least_explained(seed):
    X = np.random.default_rng(seed).normal(size=(15, 2))
    chosen = GreedyVariance(6, 1e-9).select(observed(X))
    for m in range(1, len(chosen)):
        left = np.diag(left_over(X, chosen[:m]))
        pick = int(np.flatnonzero((chosen[m] == X).all(axis=1))[0])
        assert left[pick] >= left.max() - 1e-8


@pytest.mark.parametrize("tolerance", [1e-4, 0.01, 1.0])
def test_greedy_rule_stops_at_its_tolerance_and_no_sooner_than_needed(tolerance, rng):
    X, _ = data(rng, 100, 2)
    chosen = GreedyVariance(100, tolerance).select(observed(X, noise=0.5))
    assert len(chosen) < 100
    assert np.trace(left_over(X, chosen)) <= tolerance * 0.5 + 1e-9
    assert np.trace(left_over(X, chosen[:-1])) > tolerance * 0.5


# ---- inference
def are_equal(result, expected):
    np.testing.assert_allclose(result.attributions, expected.attributions, atol=1e-9)
    deviations = (x.details["standard_deviation"] for x in (result, expected))
    np.testing.assert_allclose(*deviations, atol=1e-9)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("smoothness", [0.0, 0.4])
def test_with_all_inputs_inducing_it_is_exact_whatever_its_blocks(
    mean, smoothness, rng, monkeypatch
):
    X, G = data(rng)
    new, chain = rng.normal(size=(5, 3)), po.graphs.chain_graph(3)
    settings = {"features": chain, "kernel": Matern(1.0, nu=1.5), "mean": mean}
    explainer = GaussianProcessExplainer(0.2, smoothness, **settings)
    exact = explainer.fit(X, G).explain(new, True)
    sparse = GaussianProcessExplainer(0.2, smoothness, **settings, inducing=X).fit(X, G)
    are_equal(sparse.explain(new, True), exact)
    few = GaussianProcessExplainer(
        0.2, smoothness, **settings, inducing=FarthestInputs(9)
    )
    whole = few.fit(X, G).explain(X, True)
    for tables in ("BATCH_BUDGET", "CACHED_TABLES"):
        monkeypatch.setattr(posterior, tables, Budget(700))
    are_equal(few.fit(X, G).explain(X, True), whole)


def test_it_is_the_variational_posterior_of_titsias(rng):
    # his formulas in function space, with unit noise and the kernel k/λ
    X, G = data(rng, 60)
    Z, new, kernel, scale = X[:12], rng.normal(size=(4, 3)), Matern(1.0, nu=1.5), 0.6
    K_zz, K_zx, K_zs = (kernel(Z, points) / scale for points in (Z, X, new))
    S = K_zz + K_zx @ K_zx.T
    mean = K_zs.T @ la.solve(S, K_zx @ G, assume_a="pos")
    variance = kernel.diag(new) / scale
    variance -= np.einsum("ms,ms->s", K_zs, la.solve(K_zz, K_zs, assume_a="pos"))
    variance += np.einsum("ms,ms->s", K_zs, la.solve(S, K_zs, assume_a="pos"))
    explainer = GaussianProcessExplainer(
        scale / 2, kernel=kernel, mean="none", inducing=GivenInputs(Z)
    ).fit(X, G)
    result = explainer.explain(new, return_std=True)
    np.testing.assert_allclose(result.attributions, mean, atol=1e-10)
    np.testing.assert_allclose(
        result.details["standard_deviation"] ** 2, variance[:, None] * np.ones(3)
    )
