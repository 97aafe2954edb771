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
    KMeansInputs,
    RandomInputs,
    posterior,
)
from propopt.inductive.inputs import Candidates, PointKernel


RULES = {
    "random": RandomInputs(7),
    "k-means": KMeansInputs(7),
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
def alike(result, expected):
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
    assert explainer.information_loss_ == 0.0
    sparse = GaussianProcessExplainer(0.2, smoothness, **settings, inducing=X).fit(X, G)
    alike(sparse.explain(new, True), exact)
    assert 0 <= sparse.information_loss_ < 1e-9
    few = GaussianProcessExplainer(
        0.2, smoothness, **settings, inducing=FarthestInputs(9)
    )
    whole = few.fit(X, G).explain(X, True)
    for tables in ("AT_ONCE", "CACHED_TABLES"):
        monkeypatch.setattr(posterior, tables, Budget(700))
    alike(few.fit(X, G).explain(X, True), whole)


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


# ---- bound
def contrasts(mean, n_points, V):
    """An orthonormal basis of observations that the constants do not touch."""
    n_features = len(V)
    if mean == "none":
        return np.eye(n_points * n_features)
    constants = np.kron(np.ones((n_points, 1)), np.eye(n_features))
    if mean == "common":
        constants = np.kron(np.ones((n_points, 1)), V.T @ np.ones((n_features, 1)))
    return la.null_space(constants.T)


def log_density(y, covariance, B):
    seen, inside = B.T @ y, B.T @ covariance @ B
    _, log_det = np.linalg.slogdet(inside)
    return -0.5 * float(seen @ np.linalg.solve(inside, seen) + log_det)


def divergence(X, G, Z, scale, smoothness, graph, mean):
    """KL(sparse ‖ exact): log evidence less Titsias's bound of it, all dense."""
    n, kernel = len(X), Matern(1.0, nu=1.5)
    spectrum, V = np.linalg.eigh(2 * graph.laplacian.toarray())
    p = 1 + smoothness * spectrum
    y = (G @ V / p).ravel()
    K = kernel(X) / scale
    Q = kernel(X, Z) @ np.linalg.solve(kernel(Z), kernel(Z, X)) / scale
    B, noise = contrasts(mean, n, V), np.kron(np.eye(n), np.diag(1 / p))
    eye = np.eye(len(p))
    exact = log_density(y, np.kron(K, eye) + noise, B)
    approximate = log_density(y, np.kron(Q, eye) + noise, B)
    return exact - approximate + 0.5 * np.trace(K - Q) * p.sum()


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.sampled_from(MEANS),
    st.sampled_from([0.0, 0.3, 5.0]),
    st.sampled_from([0.01, 0.3, 10.0]),
)
def test_information_loss_bounds_the_divergence(seed, count, mean, smoothness, weight):
    X, G = data(np.random.default_rng(seed), 12)
    graph, Z = po.graphs.chain_graph(3), X[:count]
    explainer = GaussianProcessExplainer(
        weight,
        smoothness,
        features=graph,
        kernel=Matern(1.0, nu=1.5),
        mean=mean,
        inducing=Z,
    ).fit(X, G)
    true = divergence(X, G, Z, 2 * weight, smoothness, graph, mean)
    assert -1e-8 <= true <= explainer.information_loss_ + 1e-8
    # never worse than knowing nothing: Q = 0 and no gradients explained
    spectrum, V = np.linalg.eigh(2 * graph.laplacian.toarray())
    p = 1 + smoothness * spectrum
    worst = 12 / (2 * weight) * p.sum() + (((G @ V) ** 2).sum(axis=0) / p).sum()
    assert explainer.information_loss_ <= 0.5 * worst + 1e-8
