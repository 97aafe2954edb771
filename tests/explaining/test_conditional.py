"""One more row beside fixed ones, which may have to add up: optimum, bounds, losses."""

import dataclasses

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.linalg as la

import propopt as po
from propopt.base.errors import Refused
from propopt.explaining.conditional import ConditionalRow
from propopt.functions import Function
from propopt.losses.faithfulness import Estimate


GOLDEN_TARGETS = np.array(
    [[1.0, -0.5, 0.25], [0.5, 0.75, -1.0], [0.0, 2.0, -0.5], [-1.0, 0.25, 0.5]]
)

GOLDEN_S = np.array([0.0, 1.0, 0.5, 0.0])

GOLDEN_G = np.array([0.5, 0.0, -0.5])


@pytest.fixture(scope="module")
def golden():
    matching = po.GradientMatching(GOLDEN_TARGETS)
    best = po.solve(matching + 0.5 * po.PairwiseRobustness(po.chain_graph(4)))
    return ConditionalRow(
        target=GOLDEN_G,
        near=np.arange(4),
        similarities=GOLDEN_S,
        fixed=best.attributions,
        weights=(1.0, 0.5),
    )


def moved_to(row, w):
    other = dataclasses.replace(row)
    vars(other)["w"] = w
    return other


def test_the_golden_row(golden):
    np.testing.assert_allclose(
        golden.w, [0.342857142857, 0.478571428571, -0.442857142857], atol=1e-9
    )
    assert golden.joint_excess == pytest.approx(0.171967120181, abs=1e-9)
    assert golden.joint_distance == pytest.approx(0.414689185031, abs=1e-9)
    other = moved_to(golden, golden.w + np.array([0.1, 0.0, 0.0]))
    assert golden.value < other.value <= golden.value + other.excess * (1 + 1e-12)
    assert other.distance == pytest.approx(0.1, rel=1e-12)
    zero = moved_to(golden, np.zeros(3)).value
    assert golden.value_of_zero == pytest.approx(zero, rel=1e-12)


def random_row(seed, shared, complete):
    """Beside rows that add up over fewer columns, where it has to add up."""
    rng = np.random.default_rng(seed)
    n_features, k = 6, 5
    axis = rng.uniform(0.3, 2.0, n_features)
    axis[5] = 0.0  # contributes to nobody
    fixed_axis = axis.copy()
    fixed_axis[4] = 0.0  # contributes to the row alone
    if not complete:
        axis, fixed_axis = np.ones(n_features), np.ones(n_features)
    row = ConditionalRow(
        target=rng.normal(size=n_features) * (axis > 0),
        near=np.arange(k),
        similarities=rng.random(k),
        fixed=rng.normal(size=(k, n_features)) * (fixed_axis > 0),
        weights=(float(10 ** rng.uniform(-1, 1)), float(10 ** rng.uniform(-1, 1))),
        shared=rng.random((k, n_features)) < 0.6 if shared else None,
    )
    sums = {"axis": axis, "fixed_axis": fixed_axis, "total": float(3 * rng.normal())}
    return dataclasses.replace(row, **sums) if complete else row


each_kind = pytest.mark.parametrize(
    ("shared", "complete"), [(False, False), (False, True), (True, True)]
)


@each_kind
@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_optimum_of_its_program(seed, shared, complete):
    row = random_row(seed, shared, complete)
    (a, b), w = row.weights, cp.Variable(6)
    here = np.ones(row.fixed.shape) if row.shared is None else row.shared
    pairs = [
        s * cp.sum_squares(cp.multiply(counts, w - v))
        for s, v, counts in zip(row.similarities, row.fixed, here, strict=True)
    ]
    value = a * cp.sum_squares(w - row.target) + 2 * b * sum(pairs)
    kept = [row.axis @ w == row.total, w[5] == 0.0] if complete else []
    problem = cp.Problem(cp.Minimize(value), kept)
    problem.solve(solver="CLARABEL")
    np.testing.assert_allclose(row.w, w.value, atol=1e-5)
    assert row.value == pytest.approx(problem.value, rel=1e-7)
    assert row.excess <= 1e-15 * row.value
    # and solves the equations of its optimum to rounding
    used = row.axis > 0 if complete else np.full(6, True)
    s = row.similarities[:, None] * here
    h = np.diag(a + 2 * b * s.sum(axis=0)[used])
    right = (a * row.target + 2 * b * (s * row.fixed).sum(axis=0))[used]
    if complete:
        v = row.axis[used][:, None]
        h = np.block([[h, v], [v.T, np.zeros((1, 1))]])
        right = np.append(right, row.total)
        assert row.w[5] == 0.0
        assert abs(row.axis @ row.w - row.total) <= 1e-14
        assert row.violation <= 1e-15
    exact = np.linalg.solve(h, right)[: used.sum()]
    np.testing.assert_allclose(row.w[used], exact, rtol=0, atol=1e-13)


@pytest.mark.parametrize("shared", [False, True])
def test_a_row_that_adds_up_elsewhere_is_proved_worse_by_what_it_is(shared):
    row = random_row(0, shared, complete=True)
    step = np.array([1.0, -row.axis[0] / row.axis[1], 0, 0, 0, 0]) * 0.01
    other = moved_to(row, row.w + step)  # still complete
    assert row.value < other.value
    assert other.value - other.excess == pytest.approx(row.value, rel=1e-9)
    assert other.distance == pytest.approx(np.linalg.norm(step), rel=1e-6)


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


def joint(seed, complete):
    """A row appended to rows that were the optimum without it, and their optimum."""
    rng = np.random.default_rng(seed)
    n, n_features = 7, 4
    S = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.6), 1)
    S = S + S.T
    s = rng.random(n) * (rng.random(n) < 0.7)
    s[0] += 0.2
    a, b = 10.0 ** rng.uniform(-1, 1, 2)
    axes = np.tile(rng.uniform(0.5, 1.5, n_features), (n + 1, 1))
    axes[:n, 3] = 0.0  # contributes to the new row alone
    if not complete:
        axes = np.ones_like(axes)
    G, totals = rng.normal(size=axes.shape) * (axes > 0), rng.normal(size=n + 1)
    alone = optimum(a, b, S, G[:n], axes[:n], totals[:n] if complete else None)[1]
    row = ConditionalRow(
        target=G[n], similarities=s, fixed=alone, near=np.arange(n), weights=(a, b)
    )
    sums = {"axis": axes[n], "fixed_axis": axes[0], "total": float(totals[n])}
    row = dataclasses.replace(row, **sums) if complete else row
    whole = np.zeros((n + 1, n + 1))
    whole[:n, :n], whole[n, :n], whole[:n, n] = S, s, s
    F, W = optimum(a, b, whole, G, axes, totals if complete else None)
    return F, W, alone, row


def optimum(a, b, S, G, axes, totals):
    """F of all rows, and its least point where rows add up over their own columns."""
    n, n_features = G.shape
    L = np.diag(S.sum(axis=1)) - S
    H = np.kron(a * np.eye(n) + 2 * b * L, np.eye(n_features))
    here = axes.ravel() > 0
    A = (
        la.block_diag(*axes)[:, here]
        if totals is not None
        else np.zeros((0, here.sum()))
    )
    K = np.block([[H[np.ix_(here, here)], A.T], [A, np.zeros((len(A), len(A)))]])
    right = a * G.ravel()[here]
    w = np.zeros(n * n_features)
    solution = np.linalg.solve(K, right if totals is None else np.append(right, totals))
    w[here] = solution[: here.sum()]
    return (
        lambda W: a * ((W - G) ** 2).sum() + 2 * b * np.trace(W.T @ L @ W),
        w.reshape(n, n_features),
    )


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_against_solving_all_rows_together(seed, complete):
    F, best, alone, row = joint(seed, complete)
    W = np.vstack([alone, row.w])
    excess = F(W) - F(best)
    assert -1e-12 < excess <= row.joint_excess * (1 + 1e-9) + 1e-12
    moved = np.linalg.norm(W - best)
    assert 1e-9 < moved <= row.joint_distance * (1 + 1e-9)


N, D, B = 40, 3, 10

X = pd.DataFrame(np.random.default_rng(0).normal(size=(N, D)), columns=list("abc"))

X_NEW = pd.DataFrame(np.random.default_rng(1).normal(size=(6, D)), columns=list("abc"))


def black_box(table):
    return np.asarray(table) ** 2 @ np.arange(1.0, D + 1.0)


class Noisy(Function):
    """f with slopes that are estimated from B blocks of draws."""

    gradient_method = "sampled"

    def _value(self, points, _):
        return black_box(points)

    def _gradient(self, points, labels):
        return self.estimate_at(points, labels).values

    def estimate_at(self, points, labels):
        noise = np.random.default_rng(3).normal(size=(B, 1, D))
        blocks = 2.0 * points * np.arange(1.0, D + 1.0) + noise
        return Estimate.of_blocks(blocks, source="noise", n_draws=500, labels=labels)


@pytest.fixture(scope="module")
def fitted():
    return po.Explainer(black_box, data=X, robustness=0.3, scale=None).fit()


def objective_of(result):
    weights = np.array([result.weights[loss.name] for loss in result.program.losses])
    return result.program.weighed(weights)


@pytest.mark.parametrize("solver", ["auto", "CLARABEL"])
def test_solvers_find_the_same_rows_and_their_prices(fitted, solver):
    result = fitted.explain(X_NEW)
    best = po.solve(objective_of(result), solver)
    assert best.objective == pytest.approx(result.objective, rel=1e-6)
    np.testing.assert_allclose(best.attributions, result.attributions, atol=1e-3)
    certified = result.certified(objective_of(result))
    assert certified.gap < 1e-12
    for name, value in result.losses.items():
        assert certified.losses[name] == pytest.approx(value, rel=1e-12)
    stiffness = 1.0 + 2.0 * 0.3 * result.details["similarity"][:, None]
    prices = result.attributions**2 * stiffness
    np.testing.assert_allclose(result.certain().prices, prices, rtol=1e-9)
    for other in ("spectral", po.solvers.Krylov()):
        with pytest.raises(Refused, match="couples attributions, and has a target"):
            po.solve(objective_of(result), other)


def test_errors_of_the_target_are_carried_to_the_rows():
    explainer = po.Explainer(Noisy(), data=X, robustness=0.3, scale=None).fit()
    result = explainer.explain(X_NEW)
    joint = Noisy().estimate(X_NEW)
    keep = 1.0 / (1.0 + 2.0 * 0.3 * result.details["similarity"][:, None])
    np.testing.assert_allclose(
        result.standard_errors, keep * joint.standard_errors, rtol=1e-9
    )
    deviations = joint.blocks - joint.values
    energy = (deviations**2 * keep).sum() / (B * (B - 1))
    assert result.target.value == pytest.approx(energy, rel=1e-9)
    assert result.target_error == pytest.approx(energy / result.objective, rel=1e-9)
