"""What is kept and removed: golden values, both ends, and what is not defined."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
from golden_chains import (
    DIFFERENCE,
    FEATURES,
    KEPT,
    POINTS,
    ROBUST_ALONE,
    ROBUST_ALONE_DIFFERENCE,
    ROUGHNESS_REMOVED,
    SMOOTHNESS_REMOVED,
    TARGET_DIFFERENCE,
    G,
    objective,
)

import propopt as po
from propopt.results.shares import Shares


MATCHING, ROBUST, SMOOTH = "gradient_matching", "pairwise_robustness", "smoothness"
TWO_PARTS = po.group_graph([0, 0, 1, 1])
TOTAL = np.array([1.0, 0.5, -0.25, 0.0])
SUMS = [po.Completeness(TOTAL)]


def mine(attributions):
    return po.Explanation(attributions=attributions, method="mine")


def near(number):
    return pytest.approx(number, abs=1e-9)


def test_shares_and_differences_are_the_golden_ones():
    shares = po.solve(objective()).shares()
    assert shares.kept[MATCHING] == near(KEPT)
    assert shares.removed == near(
        {ROBUST: ROUGHNESS_REMOVED, SMOOTH: SMOOTHNESS_REMOVED}
    )
    assert shares.differences[ROBUST] == near(DIFFERENCE)
    assert shares.target_differences[ROBUST] == near(TARGET_DIFFERENCE)
    assert shares.target_rms == pytest.approx(np.sqrt((G**2).mean()), rel=1e-14)
    best = po.solve(objective(c=0.0))  # a loss without weight has no share
    shares = best.shares()
    assert shares.kept[MATCHING] == near(ROBUST_ALONE["kept"])
    assert shares.removed[ROBUST] == near(ROBUST_ALONE["removed"])
    assert shares.differences[ROBUST] == near(ROBUST_ALONE_DIFFERENCE)
    assert math.isnan(shares.removed[SMOOTH])
    assert f"– of {SMOOTH} removed" in repr(shares)
    # the card says first what is kept and removed
    lines = str(shares).splitlines()
    kept, removed = (100 * ROBUST_ALONE[key] for key in ("kept", "removed"))
    both = f"{kept:.1f} % of faithfulness kept, {removed:.1f} % of {ROBUST} removed"
    assert lines[0] == both  # of smoothness no share is defined
    assert lines[3].split()[:3] == [MATCHING, f"{kept:.1f}", "%"]
    assert lines[5].split()[:2] == [SMOOTH, "–"]


@pytest.mark.parametrize("sums", [[], SUMS], ids=["free", "complete"])
def test_the_ends_of_the_curve_keep_all_and_nothing(sums):
    for factor, least in ((1e-9, 0.0), (1e9, 1.0)):
        best = po.solve(objective(0.5 * factor, 0.25 * factor), subject_to=sums)
        kept, removed = best.shares().kept, best.shares().removed
        assert kept == pytest.approx({MATCHING: 1.0 - least}, abs=1e-6)
        assert removed == pytest.approx({ROBUST: least, SMOOTH: least}, abs=1e-6)


def farthest(faithful, others):
    """min faithful(W) where the others cost nothing, by Clarabel."""
    W = cp.Variable(G.shape)
    zero = [loss.map(W) == 0 for loss in others]
    question = cp.Problem(cp.Minimize(faithful.expression(W)), zero)
    return question.solve(solver="CLARABEL")


X = np.random.default_rng(5).normal(size=(4, 3))
NOISE = np.random.default_rng(6).normal(size=(4, 6, 3))
FAITHFUL = {
    "gradients": po.GradientMatching(G),
    "gradients, l1": po.GradientMatching(G, norm="l1"),
    "function": po.FunctionMatching(X, np.exp(X[:, 0])),
    "function, local": po.FunctionMatching(
        X, np.sin(NOISE).sum(axis=2), perturbations=NOISE
    ),
}
KERNEL = np.exp(-0.5 * (X[:, None] - X[None]).__pow__(2).sum(axis=2))
PRESENT = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 1], [1, 1, 0]])
FLAT, SMOOTHING = po.PairwiseRobustness(TWO_PARTS), po.Smoothness(FEATURES)
SHARED = po.SharedRobustness(POINTS, PRESENT)
OTHERS = {
    "robustness": [po.PairwiseRobustness(POINTS)],
    "two components": [FLAT],
    "both": [FLAT, SMOOTHING],
    "sparsity": [po.Sparsity()],
    "kernel": [po.KernelRobustness(KERNEL)],
    "kernel, no mean": [po.KernelRobustness(KERNEL, mean="none")],
    "max": [po.MaxDifferenceRobustness(TWO_PARTS)],
    "shared": [SHARED],
    "shared, and smooth": [SHARED, po.Smoothness(po.group_graph([0, 0, 1]))],
    "shared, and robust": [SHARED, FLAT],
    "shared, and sparse": [SHARED, po.Sparsity()],
}


@pytest.mark.sampled(15)
@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("faithful", FAITHFUL)
def test_nothing_is_kept_where_the_others_are_zero(faithful, others):
    loss = FAITHFUL[faithful]
    whole = sum(OTHERS[others], start=1.0 * loss)
    kept = mine(0.3 * G).shares(whole).kept[loss.name]
    least = farthest(loss, OTHERS[others])
    if least < 1e-9:  # two points per part, and three features: nothing is lost
        assert kept == -math.inf
    else:
        expected = 1.0 - loss.value(0.3 * G) / least
        assert kept == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_largest_differences_are_shared_as_differences():
    for norm in ("l2", "l1", "linf"):
        loss = po.MaxDifferenceRobustness(POINTS, norm=norm)
        shares = mine(0.5 * G).shares(po.GradientMatching(G) + loss)
        assert shares.removed[loss.name] == pytest.approx(0.5, rel=1e-12)
    squared = po.GradientMatching(G) + po.PairwiseRobustness(POINTS)
    removed = mine(0.5 * G).shares(squared).removed[ROBUST]
    assert removed == pytest.approx(0.75, rel=1e-12)
    turned = mine(-G).shares(objective())  # baselines may keep less than nothing
    assert turned.kept[MATCHING] < 0.0
    assert turned.removed[ROBUST] == pytest.approx(0.0, abs=1e-12)


def test_sparsity_is_a_share_of_the_sum_beside_the_zeros():
    sparse = po.GradientMatching(G) + 1.0 * po.Sparsity()
    best = po.solve(sparse)
    shares, W = best.shares(), best.attributions
    expected = 1.0 - np.abs(W).sum() / np.abs(G).sum()
    assert shares.removed["sparsity"] == pytest.approx(expected, rel=1e-12)
    assert shares.n_zero == (W == 0.0).sum() > 0
    assert f"{shares.n_zero} of 12 attributions are zero" in repr(shares)
    # with sums of rows they are not known
    assert math.isnan(po.solve(sparse, subject_to=SUMS).shares().kept[MATCHING])

    class Own(po.PropertyLoss):
        name = "own"
        map = FAITHFUL["function"].map
        penalty = po.Sparsity().penalty

    shares = mine(G).shares(po.GradientMatching(G) + Own())
    assert math.isnan(shares.kept[MATCHING])
    assert shares.removed["own"] == pytest.approx(0.0, abs=1e-12)


def test_a_constant_target_has_dashes_and_nulls_and_no_warning(tmp_path):
    flat = po.GradientMatching(np.full((4, 3), 0.1)) + po.PairwiseRobustness(POINTS)
    best, other = po.solve(flat).shares(), mine(G).shares(flat)
    assert best.kept == {MATCHING: 1.0}
    assert math.isnan(best.removed[ROBUST])
    assert other.kept == {MATCHING: -math.inf}
    assert str(other).startswith("No share is defined\n")
    assert "–" in repr(other)
    assert "–" in other._repr_html_()
    other.save(tmp_path / "shares")
    again = Shares.load(tmp_path / "shares.npz")
    assert again.kept == {MATCHING: -math.inf}
    assert repr(again) == repr(other)
    lonely = po.PairwiseRobustness(po.graph_from_matrix(np.zeros((4, 4))))
    shares = po.solve(po.GradientMatching(G) + lonely).shares()
    assert math.isnan(shares.differences[ROBUST])  # there are no neighbours
    assert shares.kept[MATCHING] == 1.0


def test_differences_of_grids_are_those_of_their_stored_graphs():
    W = np.random.default_rng(0).normal(size=(12, 2))
    points = po.graphs.grid(0, 1, per_dimension=12, dimensions=1)
    grid = po.grid_gaussian_graph(points, lengthscale=0.3)
    for graph in (grid, po.graphs.LatticeGraph((4, 3))):
        one, other = (
            mine(W).shares(po.GradientMatching(W) + po.PairwiseRobustness(g))
            for g in (graph, po.graph_from_matrix(graph.similarities))
        )
        assert one.differences == pytest.approx(other.differences, rel=1e-12)


def test_limits_count_as_losses_that_are_removed():
    bound = po.PairwiseRobustness(POINTS) <= 1.0
    shares = po.solve(1.0 * po.GradientMatching(G), subject_to=[bound]).shares()
    expected = 1.0 - 1.0 / bound.loss.value(G)
    assert shares.removed[ROBUST] == pytest.approx(expected, rel=1e-6)
    assert 0.0 < shares.kept[MATCHING] < 1.0
    # with sums of rows roughness that no weight removes is told apart
    best = po.solve(objective(), subject_to=SUMS)
    irreducible = 2 * TOTAL @ POINTS.laplacian @ TOTAL / 3
    nearest = G + (TOTAL - G.sum(axis=1))[:, None] / 3
    at_target = po.PairwiseRobustness(POINTS).value(nearest)
    left = (best.losses[ROBUST] - irreducible) / (at_target - irreducible)
    assert best.shares().removed[ROBUST] == pytest.approx(1.0 - left, rel=1e-9)
