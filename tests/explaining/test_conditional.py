"""One more row beside fixed ones: golden numbers, other solvers, and its bounds."""

from __future__ import annotations

import dataclasses

import cvxpy as cp
import numpy as np
import pytest

import propopt as po
from propopt.explaining.conditional import ConditionalRow, FeatureModes


GOLDEN_TARGETS = np.array(
    [[1.0, -0.5, 0.25], [0.5, 0.75, -1.0], [0.0, 2.0, -0.5], [-1.0, 0.25, 0.5]]
)
GOLDEN_S = np.array([0.0, 1.0, 0.5, 0.0])
GOLDEN_G = np.array([0.5, 0.0, -0.5])
WEIGHTS = (1.0, 0.5, 0.25)
CHAIN = po.chain_graph(3)


@pytest.fixture(scope="module")
def golden():
    a, b, c = WEIGHTS
    best = po.solve(
        a * po.GradientMatching(GOLDEN_TARGETS)
        + b * po.PairwiseRobustness(po.chain_graph(4))
        + c * po.Smoothness(CHAIN)
    )
    return ConditionalRow(
        target=GOLDEN_G,
        similarities=GOLDEN_S,
        fixed=best.attributions,
        weights=WEIGHTS,
        modes=FeatureModes.of(CHAIN),
    )


def test_the_golden_row(golden):
    w = [0.360483654983, 0.231936290498, -0.213848516910]
    np.testing.assert_allclose(golden.w, w, atol=1e-9)
    assert golden.joint_excess == pytest.approx(0.100930032719, abs=1e-9)
    assert golden.joint_distance == pytest.approx(0.317694873611, abs=1e-9)


def test_the_golden_row_without_a_target(golden):
    row = dataclasses.replace(golden, target=None)
    w = [0.320569379699, 0.351311879394, -0.040928878141]
    np.testing.assert_allclose(row.w, w, atol=1e-9)


def random_rows(seed, n_features=4, n_fixed=6):
    """A conditional row, and the joint program that appends it to the fixed ones."""
    rng = np.random.default_rng(seed)
    a, b, c = 10.0 ** rng.uniform(-1.5, 1.5, 3)
    similar = np.triu(rng.random((n_fixed, n_fixed)) * (rng.random() < 0.9), 1)
    graph = po.graph_from_matrix(similar + similar.T)
    features = np.triu(rng.random((n_features, n_features)) < 0.6, 1)
    feature_graph = po.graph_from_matrix((features + features.T).astype(float))
    G = rng.normal(size=(n_fixed, n_features)) + 3.0
    s = rng.random(n_fixed) * (rng.random(n_fixed) < 0.7)
    s[0] += 0.1
    g = rng.normal(size=n_features)
    return a, b, c, graph, feature_graph, G, s, g


def solved(a, b, c, graph, feature_graph, G):
    return po.solve(
        a * po.GradientMatching(G)
        + b * po.PairwiseRobustness(graph)
        + c * po.Smoothness(feature_graph)
    ).attributions


def appended(graph, s):
    n = graph.n_nodes
    S = np.zeros((n + 1, n + 1))
    S[:n, :n] = graph.similarities.toarray()
    S[n, :n] = S[:n, n] = s
    return S


def joint(a, b, c, graph, feature_graph, G, s, g):
    """F over all rows, and its optimum; without ``g`` the last row has no target."""
    n, D = G.shape
    L = _laplacian(appended(graph, s))
    M = _laplacian(feature_graph.similarities.toarray())
    own = np.append(np.full(n, a), a if g is not None else 0.0)
    T = np.vstack([G, np.zeros(D) if g is None else g])
    H = np.kron(np.diag(own) + 2 * b * L, np.eye(D)) + 2 * c * np.kron(np.eye(n + 1), M)
    W = np.linalg.solve(H, (own[:, None] * T).ravel()).reshape(n + 1, D)

    def F(W):
        return (
            (own * ((W - T) ** 2).sum(axis=1)).sum()
            + 2 * b * np.trace(W.T @ L @ W)
            + 2 * c * np.trace(W @ M @ W.T)
        )

    return F, W


def _laplacian(S):
    return np.diag(S.sum(axis=1)) - S


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("has_target", [True, False])
def test_bounds_hold_against_solving_all_rows_together(seed, has_target):
    a, b, c, graph, feature_graph, G, s, g = random_rows(seed)
    fixed = solved(a, b, c, graph, feature_graph, G)
    row = ConditionalRow(
        target=g if has_target else None,
        similarities=s,
        fixed=fixed,
        weights=(a, b, c),
        modes=FeatureModes.of(feature_graph),
    )
    F, best = joint(a, b, c, graph, feature_graph, G, s, g if has_target else None)
    excess = F(np.vstack([fixed, row.w])) - F(best)
    assert excess <= row.joint_excess * (1 + 1e-9) + 1e-9
    n = len(G)
    moved = np.linalg.norm(fixed - best[:n])
    assert moved <= row.joint_distance * (1 + 1e-9) + 1e-9
    if has_target:
        moved = np.hypot(moved, np.linalg.norm(row.w - best[n]))
        assert moved <= row.joint_distance * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("has_target", [True, False])
def test_it_is_the_optimum_of_the_conditional_program(seed, has_target):
    a, b, c, graph, feature_graph, G, s, g = random_rows(seed)
    fixed = solved(a, b, c, graph, feature_graph, G)
    target = g if has_target else None
    row = ConditionalRow(
        target=target,
        similarities=s,
        fixed=fixed,
        weights=(a, b, c),
        modes=FeatureModes.of(feature_graph),
    )
    w = cp.Variable(len(g))
    S = feature_graph.similarities.toarray()
    terms = [2 * b * s[j] * cp.sum_squares(w - fixed[j]) for j in range(len(s))]
    terms += [
        c * S[d, e] * cp.square(w[d] - w[e])
        for d in range(len(g))
        for e in range(len(g))
    ]
    terms += [a * cp.sum_squares(w - g)] if has_target else []
    problem = cp.Problem(cp.Minimize(sum(terms)))
    problem.solve(solver="CLARABEL")
    assert row.value == pytest.approx(problem.value, rel=1e-7)
    np.testing.assert_allclose(row.w, w.value, atol=1e-5)
    assert row.excess <= 1e-20 * row.value


def test_the_excess_is_that_of_a_row_that_is_not_the_optimum(golden):
    other = dataclasses.replace(golden)
    vars(other)["w"] = golden.w + np.array([0.1, 0.0, 0.0])
    assert golden.value < other.value <= golden.value + other.excess * (1 + 1e-12)
    assert other.distance >= 0.1


def test_the_value_of_zero_is_what_zero_costs(golden):
    other = dataclasses.replace(golden)
    vars(other)["w"] = np.zeros(3)
    assert golden.value_of_zero == pytest.approx(other.value, rel=1e-12)


@pytest.mark.parametrize("weight", [0.0, 1e-12, 1e12])
def test_extreme_weights_give_the_target_and_the_mean_of_the_neighbours(weight):
    fixed = np.array([[1e9, 0.0], [1e9 + 1.0, 3.0]])
    row = ConditionalRow(
        target=np.array([1e9 + 2.0, 7.0]),
        similarities=np.array([1.0, 1.0]),
        fixed=fixed,
        weights=(1.0, weight, 0.0),
    )
    expected = [1e9 + 2.0, 7.0] if weight < 1 else [1e9 + 0.5, 1.5]
    np.testing.assert_allclose(row.w - 1e9, np.array(expected) - 1e9, atol=1e-6)
