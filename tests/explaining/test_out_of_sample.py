"""One more row beside fixed ones, which may have to add up: optimum, bounds, losses."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.linalg as la

import propopt as po
from propopt.base.errors import Refused
from propopt.explaining.out_of_sample import CompleteRows, OutOfSampleRows
from propopt.functions import Function
from propopt.losses.faithfulness import Estimate


def best_of(row):
    """The optimum of a row, and its measures there."""
    w = row.optima()
    return w, SimpleNamespace(**row.measures(w))


def at(row, w):
    return SimpleNamespace(**row.measures(w))


def test_the_golden_row():
    targets = [[1.0, -0.5, 0.25], [0.5, 0.75, -1.0], [0.0, 2.0, -0.5], [-1, 0.25, 0.5]]
    matching = po.GradientMatching(np.array(targets))
    best = po.solve(matching + 0.5 * po.PairwiseRobustness(po.graphs.chain_graph(4)))
    target, similarities = np.array([0.5, 0.0, -0.5]), np.array([0.0, 1.0, 0.5, 0.0])
    beside = {"fixed": best.attributions, "weights": (1.0, 0.5)}
    row = OutOfSampleRows(target=target, similarities=similarities, **beside)
    w, golden = best_of(row)
    assert golden.joint_excess == pytest.approx(0.171967120181, abs=1e-9)
    assert golden.joint_distance == pytest.approx(0.414689185031, abs=1e-9)
    other = at(row, w + np.array([0.1, 0.0, 0.0]))
    assert golden.value < other.value <= golden.value + other.excess * (1 + 1e-12)
    assert other.distance == pytest.approx(0.1, rel=1e-12)
    zero = at(row, np.zeros(3)).value
    assert golden.value_of_zero == pytest.approx(zero, rel=1e-12)


def random_row(shared):
    """A row that has to add up, next to rows that add up over fewer columns."""
    rng = np.random.default_rng(0)
    n_features, k = 6, 5
    axis = rng.uniform(0.3, 2.0, n_features)
    axis[5] = 0.0  # contributes to nobody
    fixed_axis = axis.copy()
    fixed_axis[4] = 0.0  # contributes to the row alone
    return CompleteRows(
        target=rng.normal(size=n_features) * (axis > 0),
        similarities=rng.random(k),
        fixed=rng.normal(size=(k, n_features)) * (fixed_axis > 0),
        weights=(float(10 ** rng.uniform(-1, 1)), float(10 ** rng.uniform(-1, 1))),
        shared=rng.random((k, n_features)) < 0.6 if shared else None,
        axis=axis,
        fixed_axis=fixed_axis,
        total=float(3 * rng.normal()),
    )


@pytest.mark.parametrize("shared", [False, True])
def test_a_row_that_adds_up_elsewhere_is_proved_worse_by_what_it_is(shared):
    row = random_row(shared)
    step = np.array([1.0, -row.axis[0] / row.axis[1], 0, 0, 0, 0]) * 0.01
    w, best = best_of(row)
    other = at(row, w + step)  # still complete
    assert best.value < other.value
    assert other.value - other.excess == pytest.approx(best.value, rel=1e-9)
    assert other.distance == pytest.approx(np.linalg.norm(step), rel=1e-6)


def test_extreme_weights_give_the_target_and_the_mean_of_the_neighbours():
    ends = {0.0: [2.0, 7.0], 1e-12: [2.0, 7.0], 1e12: [0.5, 1.5]}
    for weight, expected in ends.items():
        target, fixed = (
            np.array([1e9 + 2.0, 7.0]),
            np.array([[1e9, 0.0], [1e9 + 1.0, 3.0]]),
        )
        neighbours = {"similarities": np.ones(2), "fixed": fixed}
        row = OutOfSampleRows(target=target, weights=(1.0, weight), **neighbours)
        np.testing.assert_allclose(row.optima() - [1e9, 0.0], expected, atol=1e-6)


def joint(seed, complete):
    """A row appended to rows that were the optimum without it, and their optimum."""
    rng = np.random.default_rng(seed)
    n, n_features = 7, 4
    S = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.6), 1)
    s = rng.random(n) * (rng.random(n) < 0.7)
    s[0] += 0.2
    whole = np.zeros((n + 1, n + 1))
    whole[:n, :n], whole[n, :n], whole[:n, n] = S + S.T, s, s
    a, b = 10.0 ** rng.uniform(-1, 1, 2)
    axes = np.ones((n + 1, n_features))
    if complete:
        axes[:] = rng.uniform(0.5, 1.5, n_features)
        axes[:n, 3] = 0.0  # contributes to the new row alone
    G, totals = rng.normal(size=axes.shape) * (axes > 0), rng.normal(size=n + 1)
    given = a, b, whole, G, axes, totals
    _, alone = optimum(*given[:2], whole[:n, :n], *(x[:n] for x in given[3:]), complete)
    fields = {"similarities": s, "fixed": alone}
    row = OutOfSampleRows(target=G[n], weights=(a, b), **fields)
    row = row.complete(axes[n], axes[0], float(totals[n])) if complete else row
    return *optimum(*given, complete), alone, row


def optimum(a, b, S, G, axes, totals, complete):
    """F of all rows, and its least point where rows add up over their own columns."""
    L = np.diag(S.sum(axis=1)) - S
    here = axes.ravel() > 0
    H = np.kron(a * np.eye(len(G)) + 2 * b * L, np.eye(G.shape[1]))[np.ix_(here, here)]
    A = la.block_diag(*axes)[: len(G) * complete, here]
    K = np.block([[H, A.T], [A, np.zeros((len(A), len(A)))]])
    right = np.append(a * G.ravel()[here], totals[: len(A)])
    w = np.zeros(G.size)
    w[here] = np.linalg.solve(K, right)[: here.sum()]
    W = w.reshape(G.shape)
    return lambda W: a * ((W - G) ** 2).sum() + 2 * b * np.trace(W.T @ L @ W), W


@pytest.mark.parametrize("complete", [False, True])
def test_bounds_hold_against_solving_all_rows_together(complete):
    for seed in range(20):
        F, best, alone, row = joint(seed, complete)
        w, bounds = best_of(row)
        W = np.vstack([alone, w])
        excess = F(W) - F(best)
        assert -1e-12 < excess <= bounds.joint_excess * (1 + 1e-9) + 1e-12
        moved = np.linalg.norm(W - best)
        assert 1e-9 < moved <= bounds.joint_distance * (1 + 1e-9)


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
    return po.Explainer(
        black_box, data=X, robustness=0.3, scale=None, kind="slopes"
    ).fit()


def test_solvers_find_the_same_rows_and_their_prices(fitted):
    result = fitted.explain(X_NEW)
    program = result.program
    weights = np.array([result.weights[loss.name] for loss in program.losses])
    objective = program.weighed(weights)
    for solver in ("auto", "CLARABEL"):
        best = po.solve(objective, solver)
        assert best.objective == pytest.approx(result.objective, rel=1e-6)
        np.testing.assert_allclose(best.attributions, result.attributions, atol=1e-3)
    certified = result.certified(objective)
    assert certified.gap < 1e-12
    assert certified.losses == pytest.approx(result.losses, rel=1e-12)
    stiffness = 1.0 + 2.0 * 0.3 * result.details["similarity"][:, None]
    prices = result.attributions**2 * stiffness
    np.testing.assert_allclose(result.certain().prices, prices, rtol=1e-9)
    for other in ("spectral", po.solvers.Krylov()):
        with pytest.raises(Refused, match="couples attributions, and has a target"):
            po.solve(objective, other)


def test_errors_of_the_target_are_carried_to_the_rows():
    explainer = po.Explainer(
        Noisy(), data=X, robustness=0.3, scale=None, kind="slopes"
    ).fit()
    result = explainer.explain(X_NEW)
    joint = Noisy().estimate(X_NEW)
    keep = 1.0 / (1.0 + 2.0 * 0.3 * result.details["similarity"][:, None])
    errors = keep * joint.standard_errors
    np.testing.assert_allclose(result.standard_errors, errors, rtol=1e-9)
    deviations = joint.blocks - joint.values
    energy = (deviations**2 * keep).sum() / (B * (B - 1))
    assert result.target.value == pytest.approx(energy, rel=1e-9)
    assert result.sampling_excess == pytest.approx(energy / result.objective, rel=1e-9)
