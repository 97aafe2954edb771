"""Couplings as small as faithfulness allows: constants cost nothing."""

import numpy as np
import pytest

import propopt as po


RNG = np.random.default_rng(0)


def setting(n_points, offset=5.0):
    X = RNG.normal(size=(n_points, 2))
    X[n_points // 2 :] += 10.0
    G = RNG.normal(size=(n_points, 3)) + offset
    graph = po.knn_graph(X, 4)
    labels = graph.components.labels
    M = np.stack([G[labels == own].mean(axis=0) for own in range(labels.max() + 1)])
    return po.GradientMatching(G), po.PairwiseRobustness(graph), G, M[labels]


def square(R):
    return float(np.vdot(R, R))


@pytest.mark.parametrize("n_points", [40, 2000])
@pytest.mark.parametrize("share", [0.0, 1e-9, 0.3, 0.9])
def test_means_are_the_answer_where_faithfulness_allows_them(n_points, share):
    matching, robustness, G, M = setting(n_points)
    lowest = square(G - M)
    limit = (lowest + share * (square(G) - lowest)) * (1.0 + 1e-12)
    best = po.solve(1.0 * robustness, subject_to=[matching <= limit])
    assert best.objective == 0.0
    assert best.gap == 0.0
    assert best.certificate.violation <= 1e-15
    np.testing.assert_allclose(best.attributions, M, rtol=1e-12)
    assert best.multipliers == {"gradient_matching": 0.0}


@pytest.mark.parametrize("n_points", [40, 2000])
@pytest.mark.parametrize("below", [1e-6, 1e-5, 1e-4, 1e-2, 0.5, 1.0 - 1e-8])
@pytest.mark.parametrize("smooth", [0.0, 2.0])
def test_just_below_the_means_the_bound_holds_with_proof(n_points, below, smooth):
    matching, robustness, G, M = setting(n_points)
    objective = 1.0 * robustness
    if smooth:
        objective = objective + smooth * po.Smoothness(po.chain_graph(3))
        M = np.repeat(M.mean(axis=1, keepdims=True), 3, axis=1)
    limit = square(G - M) * (1.0 - below)
    best = po.solve(objective, subject_to=[matching <= limit])
    assert best.gap <= 1e-6
    assert best.certificate.violation <= 1e-12
    assert best.losses["gradient_matching"] == pytest.approx(limit, rel=1e-6)
    assert best.objective > 0.0


def test_the_optimum_agrees_with_a_dense_root_search():
    matching, robustness, G, M = setting(40)
    limit = 0.9 * square(G - M)
    best = po.solve(1.0 * robustness, subject_to=[matching <= limit])
    P = 2.0 * robustness.graph.laplacian.toarray()
    values, U = np.linalg.eigh(P)
    squares = ((U.T @ G) ** 2).sum(axis=1)

    def loss(mu):
        return float(squares @ (values / (mu + values)) ** 2)

    low, high = -20.0, 20.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if loss(np.exp(middle)) > limit else (low, middle)
    mu = np.exp(low)
    W = U @ ((mu / (mu + values))[:, None] * (U.T @ G))
    assert best.multipliers["gradient_matching"] == pytest.approx(mu, rel=1e-6)
    assert best.objective == pytest.approx(float(np.vdot(W, P @ W)), rel=1e-6)


def test_means_are_not_free_for_a_kernel_without_them():
    X = np.linspace(-1.0, 1.0, 20)[:, None]
    K = np.exp(-((X - X.T) ** 2) / 0.1) + 0.1 * np.eye(20)
    G = X**2 + 3.0
    matching = po.GradientMatching(G)
    robustness = po.KernelRobustness(K, mean="none")
    best = po.solve(1.0 * robustness, subject_to=[matching <= 0.5 * square(G)])
    assert best.objective > 0.0
    assert best.gap <= 1e-6
    assert best.losses["gradient_matching"] == pytest.approx(0.5 * square(G), rel=1e-6)


def test_a_limit_sweep_of_faithfulness_ends_at_zero():
    matching, robustness, G, M = setting(40)
    limits = square(G - M) * np.array([0.5, 0.99, 1.0, 1.5, 3.0])
    curve = po.sweep(1.0 * robustness, limits={matching: limits})
    result = curve.to_frame()["objective"].to_numpy()
    assert (result[2:] == 0.0).all()
    assert (result[:2] > 0.0).all()
    assert curve.to_frame()["gap"].max() <= 1e-6
