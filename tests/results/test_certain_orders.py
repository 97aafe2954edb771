"""Orders and sums that hold in every near-optimal explanation, against Clarabel."""

import dataclasses
from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import propopt as po
from propopt.losses.faithfulness import Estimate
from propopt.proofs.near_optimal import NearOptimal
from propopt.results.certain import _separated


RNG = np.random.default_rng(5)
N, D = 4, 5
PHI = np.array([3.0, 1.2, -2.0, 0.6, -0.5]) + 0.4 * RNG.normal(size=(N, D))
PHI[3] = [-2.5, -0.7, -1.2, -0.2, -0.4]  # nothing towards a higher output
ROBUST = 0.15 * po.PairwiseRobustness(po.graphs.chain_graph(N))
GROUPS = {"pair": ["x1", "x3"]}
SUMS = np.array([[1, 0, 0, 0, 0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 1.0]])
TOTAL = PHI.sum(axis=1)
BUDGET = 0.3


def parts(W=PHI, **fields):
    return po.results.Explanation(
        attributions=W, method="mine", units="output", **fields
    )


def objective(kind="free"):
    problem = po.GradientMatching(parts()) + ROBUST
    return problem + 0.1 * po.Sparsity() if kind == "sparse" else problem


@cache
def best(kind="free"):
    sums = [po.losses.Completeness(TOTAL)] if kind == "complete" else []
    return po.solve(objective(kind), subject_to=sums, tolerance=1e-10)


@cache
def least(kind, groups):
    """The least v_d − v_e and v_d of all V that are almost as good, by Clarabel."""
    A = SUMS if groups else np.eye(D)
    V, form = cp.Variable((N, D)), cp.Parameter((N, D))
    limits = [objective(kind).expression(V) <= best(kind).objective + BUDGET**2]
    if kind == "complete":
        limits.append(cp.sum(V, axis=1) == TOTAL)
    question = cp.Problem(cp.Minimize(cp.sum(cp.multiply(form, V))), limits)

    def of(n, ell):
        if not ell.any():
            return 0.0
        form.value = np.zeros((N, D))
        form.value[n] = ell
        return float(question.solve(solver="CLARABEL"))

    pairs = [[[of(n, d - e) for e in A] for d in A] for n in range(N)]
    ends = [[(of(n, d), -of(n, -d)) for d in A] for n in range(N)]
    return np.array(pairs), np.array(ends)


def requested(kind="free", groups=False, **how):
    how = {"small_change": BUDGET, "order": "value", **how}
    return best(kind).certain(groups=GROUPS if groups else None, **how)


CASES = [(kind, groups) for kind in ("free", "complete", "sparse") for groups in (0, 1)]


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize(("kind", "groups"), CASES)
def test_ranks_are_those_of_all_near_optimal_explanations(kind, groups):
    certain = requested(kind, groups)
    pairs, ends = least(kind, groups)
    above, K = pairs > 1e-7, pairs.shape[1]  # d above e
    first, last = 1 + above.sum(axis=1), K - above.sum(axis=2)
    signs = (ends[..., 0] > 1e-7) * 1 - (ends[..., 1] < -1e-7)
    if kind == "sparse":  # the parabola below the objective is wider
        assert (certain.best_ranks <= first).all()
        assert (certain.worst_ranks >= last).all()
        assert (certain.signs[certain.signs != 0] == signs[certain.signs != 0]).all()
    else:
        np.testing.assert_array_equal(certain.best_ranks, first)
        np.testing.assert_array_equal(certain.worst_ranks, last)
        np.testing.assert_array_equal(certain.signs, signs)
    fixed = certain.best_ranks == certain.worst_ranks
    assert fixed.any()
    assert not fixed.all()


@pytest.mark.parametrize("kind", ["free", "complete"])
def test_half_widths_of_sums_are_those_of_clarabel(kind):
    certain = best(kind).certain(BUDGET, groups=GROUPS)
    assert certain.features == ("x0", "pair", "x2", "x4")
    _, ends = least(kind, 1)
    W = best(kind).attributions @ SUMS.T
    reach = certain.half_widths
    np.testing.assert_allclose(ends, np.stack([W - reach, W + reach], 2), atol=2e-6)
    alone = best(kind).certain(BUDGET)
    np.testing.assert_allclose(reach[:, 0], alone.half_widths[:, 0], rtol=1e-12)
    # of all features together: as wide as constants are, or what rows add up to
    whole = best(kind).certain(BUDGET, groups={"all": [f"x{d}" for d in range(D)]})
    if kind == "complete":
        np.testing.assert_allclose(whole.half_widths, 0.0, atol=1e-6)
    else:
        same = np.sqrt(D) * alone.half_widths[:, :1]  # features are alike to H
        np.testing.assert_allclose(whole.half_widths, same, rtol=1e-9)


def test_what_is_far_from_the_optimum_is_farther_in_sums():
    close = NearOptimal.around(parts(PHI).certified(objective()), best().program)
    sums = close.of_sums(SUMS)
    ones = np.ones((N, len(SUMS)))
    assert sums.distance == pytest.approx(np.sqrt(2.0) * close.distance, rel=1e-12)
    assert sums.reach(0.0, ones, 1.0).max() <= 2.0 * np.sqrt(close.excess) + 1e-12


def test_the_error_of_a_sum_is_that_of_its_blocks():
    noise = 0.3 * np.random.default_rng(7).normal(size=(8, N, D))
    target = Estimate.of_blocks(PHI + noise - noise.mean(0), source="", n_draws=8)
    drawn = po.solve(po.GradientMatching(target) + ROBUST)
    wider = drawn.certain(BUDGET, groups=GROUPS).half_widths
    wider = wider - best().certain(BUDGET, groups=GROUPS).half_widths
    moved = [
        po.solve(po.GradientMatching(block) + ROBUST).attributions @ SUMS.T
        for block in target.blocks
    ]
    errors = np.std(moved, axis=0, ddof=1) / np.sqrt(8)
    np.testing.assert_allclose(wider, 2.3646242515927844 * errors, rtol=1e-9)  # t_7
    # single standard errors add up at most
    reference = dataclasses.replace(best(), standard_errors=np.full((N, D), 0.01))
    wider = reference.certain(BUDGET, groups=GROUPS).half_widths
    wider = wider - best().certain(BUDGET, groups=GROUPS).half_widths
    expected = np.array([1.0, 2.0, 1.0, 1.0]) * 1.959963984540054e-2
    np.testing.assert_allclose(wider, np.tile(expected, (N, 1)), rtol=1e-6)


def test_sums_of_words_are_over_those_that_are_there():
    present = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]]) > 0
    phi = RNG.normal(size=(4, 4)) * present
    robust = 0.3 * po.losses.SharedRobustness(po.graphs.chain_graph(4), present)
    problem = po.GradientMatching(phi) + robust
    result = po.solve(problem)
    certain, groups = result.certain(0.5, groups={"g": ["x1", "x2"]}), {"one": ["x3"]}
    V, level = cp.Variable((4, 4)), result.objective + 0.5**2
    limits = [problem.expression(V) <= level, cp.multiply(V, ~present) == 0]
    for n in range(4):
        most = cp.Problem(cp.Maximize(V[n, 1] + V[n, 2]), limits)
        reach = most.solve(solver="CLARABEL") - result.attributions[n, 1:3].sum()
        assert certain.half_widths[n, 1] == pytest.approx(reach, rel=1e-4)
    alone, single = result.certain(), result.certain(groups=groups)
    np.testing.assert_allclose(single.half_widths, alone.half_widths, rtol=1e-9)
    assert (single.count, certain.count) == (present.sum(), present.sum() - 2)


def test_rows_of_large_tables_are_proved_by_name(monkeypatch):
    reference = requested(groups=True)
    monkeypatch.setattr("propopt.proofs.hessian.MAX_SPECTRAL_SIZE", 2)
    result = po.solve(objective())
    how = {"groups": GROUPS, "order": "value"}
    named = result.certain(BUDGET, rows=[2, 0], **how)
    for name in ("best_ranks", "worst_ranks"):
        np.testing.assert_array_equal(
            getattr(reference, name)[[2, 0]], getattr(named, name)[[2, 0]]
        )
    ball = result.certain(BUDGET, groups=GROUPS).half_widths  # of a sum of two
    np.testing.assert_allclose(ball, np.sqrt(2.0) * BUDGET, rtol=1e-9)


@pytest.mark.parametrize("weight", [1.0, 4.0])
@pytest.mark.parametrize("rows", [4, 40])
def test_a_budget_is_a_distance_whatever_the_weights_and_the_rows(weight, rows):
    phi = np.tile(PHI, (rows // N, 1))
    plain = po.solve(weight * po.GradientMatching(phi))
    certain = plain.certain(0.7)
    np.testing.assert_allclose(certain.half_widths, 0.7, rtol=1e-9)
    np.testing.assert_allclose(certain.distances, np.abs(phi), rtol=1e-9)
    # by default 5 % of the root mean square of row sizes, so that not all is certain
    size = np.sqrt((PHI**2).sum(axis=1).mean())
    assert plain.certain().small_change == pytest.approx(0.05 * size, rel=1e-12)
    of_others = dataclasses.replace(plain, row_size=20.0)
    assert of_others.certain().small_change == pytest.approx(1.0, rel=1e-12)
    assert of_others.certain().certain_signs == pytest.approx(
        (np.abs(phi) > 1.0).mean()
    )


@pytest.mark.parametrize("by", ["size", "value"])
def test_ranks_by_half_widths_are_those_of_disjoint_intervals(by):
    rng = np.random.default_rng(8)
    W = np.round(3.0 * rng.normal(size=(40, 6)))  # with equal sizes, and zeros
    widths = rng.integers(0, 3, W.shape).astype(float)
    widths[0] = np.inf
    present = rng.random(W.shape) < 0.8
    best, worst = _separated(W, widths, present, by)
    keys = np.abs(W) if by == "size" else W
    for n, d in np.argwhere(present):
        others = [e for e in np.flatnonzero(present[n]) if e != d]
        low, high = keys[n] - widths[n], keys[n] + widths[n]
        assert best[n, d] == 1 + sum(low[e] > high[d] for e in others)
        assert worst[n, d] == present[n].sum() - sum(high[e] < low[d] for e in others)


def test_ranks_by_half_widths_hold_in_every_near_optimal_explanation(monkeypatch):
    rng = np.random.default_rng(9)
    G = [4.0, 2.0, -1.0, 0.2] + 0.3 * rng.normal(size=(12, 4))
    problem = po.GradientMatching(G) + 0.3 * po.PairwiseRobustness(
        po.graphs.chain_graph(12)
    )
    exact = po.solve(problem).certain()
    monkeypatch.setattr("propopt.proofs.hessian.MAX_SPECTRAL_SIZE", 2)
    ball = po.solve(problem).certain()
    assert (ball.best_ranks <= exact.best_ranks).all()
    assert (ball.worst_ranks >= exact.worst_ranks).all()
    certainly_first = ball.worst_ranks[:, 0] == 1
    assert certainly_first.mean() > 0.5
    assert ball.to_frame()["certainly_first"].iloc[0] == certainly_first.mean()
