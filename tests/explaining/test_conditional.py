"""One more row beside fixed ones: golden numbers, other solvers, and its bounds."""

from __future__ import annotations

import dataclasses

import cvxpy as cp
import numpy as np
import pytest

import propopt as po
from propopt.explaining.conditional import ConditionalRow


GOLDEN_TARGETS = np.array(
    [[1.0, -0.5, 0.25], [0.5, 0.75, -1.0], [0.0, 2.0, -0.5], [-1.0, 0.25, 0.5]]
)
GOLDEN_S = np.array([0.0, 1.0, 0.5, 0.0])
GOLDEN_G = np.array([0.5, 0.0, -0.5])
WEIGHTS = (1.0, 0.5)


@pytest.fixture(scope="module")
def golden():
    a, b = WEIGHTS
    best = po.solve(
        a * po.GradientMatching(GOLDEN_TARGETS)
        + b * po.PairwiseRobustness(po.chain_graph(4))
    )
    return ConditionalRow(
        target=GOLDEN_G,
        near=np.arange(4),
        similarities=GOLDEN_S,
        fixed=best.attributions,
        weights=WEIGHTS,
    )


def test_the_golden_row(golden):
    np.testing.assert_allclose(
        golden.w, [0.342857142857, 0.478571428571, -0.442857142857], atol=1e-9
    )
    assert golden.joint_excess == pytest.approx(0.171967120181, abs=1e-9)
    assert golden.joint_distance == pytest.approx(0.414689185031, abs=1e-9)


def random_row(seed, n_features=4, n_fixed=6):
    """A conditional row, the joint program that appends it, and that one's optimum."""
    rng = np.random.default_rng(seed)
    a, b = 10.0 ** rng.uniform(-1.5, 1.5, 2)
    similar = np.triu(rng.random((n_fixed, n_fixed)) * (rng.random() < 0.9), 1)
    S = np.zeros((n_fixed + 1, n_fixed + 1))
    S[:-1, :-1] = similar + similar.T
    G = rng.normal(size=(n_fixed + 1, n_features)) + 3.0
    s = rng.random(n_fixed) * (rng.random(n_fixed) < 0.7)
    s[0] += 0.1
    objective = a * po.GradientMatching(G[:-1]) + b * po.PairwiseRobustness(
        po.graph_from_matrix(S[:-1, :-1])
    )
    S[-1, :-1] = S[:-1, -1] = s
    L = np.diag(S.sum(axis=1)) - S
    W = np.linalg.solve(a * np.eye(len(G)) + 2 * b * L, a * G)

    def F(W):
        return a * ((W - G) ** 2).sum() + 2 * b * np.trace(W.T @ L @ W)

    row = ConditionalRow(
        target=G[-1],
        near=np.arange(n_fixed),
        similarities=s,
        fixed=po.solve(objective).attributions,
        weights=(a, b),
    )
    return row, F, W


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_against_solving_all_rows_together(seed):
    row, F, best = random_row(seed)
    W = np.vstack([row.fixed, row.w])
    excess = F(W) - F(best)
    assert excess <= row.joint_excess * (1 + 1e-9) + 1e-9
    moved = np.linalg.norm(W - best)
    assert moved <= row.joint_distance * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_optimum_of_the_conditional_program(seed):
    row, _, _ = random_row(seed)
    a, b = row.weights
    w = cp.Variable(len(row.target))
    terms = [a * cp.sum_squares(w - row.target)]
    terms += [
        2 * b * s * cp.sum_squares(w - v)
        for s, v in zip(row.similarities, row.fixed, strict=True)
    ]
    problem = cp.Problem(cp.Minimize(sum(terms)))
    problem.solve(solver="CLARABEL")
    assert row.value == pytest.approx(problem.value, rel=1e-7)
    np.testing.assert_allclose(row.w, w.value, atol=1e-5)
    assert row.excess <= 1e-20 * row.value


def test_the_excess_is_that_of_a_row_that_is_not_the_optimum(golden):
    other = dataclasses.replace(golden)
    vars(other)["w"] = golden.w + np.array([0.1, 0.0, 0.0])
    assert golden.value < other.value <= golden.value + other.excess * (1 + 1e-12)
    assert other.distance == pytest.approx(0.1, rel=1e-12)


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
        near=np.arange(2),
        weights=(1.0, weight),
    )
    expected = [1e9 + 2.0, 7.0] if weight < 1 else [1e9 + 0.5, 1.5]
    np.testing.assert_allclose(row.w - 1e9, np.array(expected) - 1e9, atol=1e-6)
