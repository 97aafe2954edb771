"""What is kept and removed: golden values, both ends, and what is not defined."""

from __future__ import annotations

import json
import math

import cvxpy as cp
import numpy as np
import pytest
from exact_values import same
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
from propopt.base.declared import Bounds, Members, part_of
from propopt.base.errors import InvalidInput
from propopt.results.shares import Ends, Shares


MATCHING, ROBUST, SMOOTH = "gradient_matching", "pairwise_robustness", "smoothness"
TWO_PARTS = po.group_graph([0, 0, 1, 1])


def test_shares_and_differences_are_the_golden_ones():
    shares = po.solve(objective()).shares()
    assert shares.kept[MATCHING] == pytest.approx(KEPT, abs=1e-9)
    assert shares.removed[ROBUST] == pytest.approx(ROUGHNESS_REMOVED, abs=1e-9)
    assert shares.removed[SMOOTH] == pytest.approx(SMOOTHNESS_REMOVED, abs=1e-9)
    assert shares.differences[ROBUST] == pytest.approx(DIFFERENCE, abs=1e-9)
    before = shares.target_differences[ROBUST]
    assert before == pytest.approx(TARGET_DIFFERENCE, abs=1e-9)
    assert shares.target_rms == pytest.approx(np.sqrt((G**2).mean()), rel=1e-14)


def test_a_loss_without_weight_has_no_share():
    best = po.solve(objective(c=0.0))
    shares = best.shares()
    assert shares.kept[MATCHING] == pytest.approx(ROBUST_ALONE["kept"], abs=1e-9)
    assert shares.removed[ROBUST] == pytest.approx(ROBUST_ALONE["removed"], abs=1e-9)
    assert shares.differences[ROBUST] == pytest.approx(
        ROBUST_ALONE_DIFFERENCE, abs=1e-9
    )
    assert math.isnan(shares.removed[SMOOTH])
    assert f"– of {SMOOTH} removed" in repr(shares)


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_the_ends_of_the_curve_keep_all_and_nothing(factor):
    best = po.solve(objective(0.5 * factor, 0.25 * factor))
    shares = best.shares()
    kept, removed = (1.0, 0.0) if factor < 1.0 else (0.0, 1.0)
    assert shares.kept[MATCHING] == pytest.approx(kept, abs=1e-6)
    assert shares.removed[ROBUST] == pytest.approx(removed, abs=1e-6)
    assert shares.removed[SMOOTH] == pytest.approx(removed, abs=1e-6)


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
OTHERS = {
    "robustness": [po.PairwiseRobustness(POINTS)],
    "two components": [po.PairwiseRobustness(TWO_PARTS)],
    "both": [po.PairwiseRobustness(TWO_PARTS), po.Smoothness(FEATURES)],
    "sparsity": [po.Sparsity()],
    "kernel": [po.KernelRobustness(KERNEL)],
    "kernel, no mean": [po.KernelRobustness(KERNEL, mean="none")],
    "max": [po.MaxDifferenceRobustness(TWO_PARTS)],
    "shared": [po.SharedRobustness(POINTS, PRESENT)],
    "shared, and smooth": [
        po.SharedRobustness(POINTS, PRESENT),
        po.Smoothness(po.group_graph([0, 0, 1])),
    ],
    "shared, and robust": [
        po.SharedRobustness(POINTS, PRESENT),
        po.PairwiseRobustness(TWO_PARTS),
    ],
    "shared, and sparse": [po.SharedRobustness(POINTS, PRESENT), po.Sparsity()],
}


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("faithful", FAITHFUL)
def test_nothing_is_kept_where_the_others_are_zero(faithful, others):
    terms = [FAITHFUL[faithful], *OTHERS[others]]
    whole = po.Objective(tuple((1.0, loss) for loss in terms))
    mine = po.Explanation(attributions=0.3 * G, method="mine")
    shares = mine.shares(whole)
    least = farthest(terms[0], terms[1:])
    if least < 1e-9:  # two points per part, and three features: nothing is lost
        assert shares.kept[terms[0].name] == -math.inf
        return
    expected = 1.0 - terms[0].value(0.3 * G) / least
    assert shares.kept[terms[0].name] == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_largest_differences_are_shared_as_differences():
    best = po.Explanation(attributions=0.5 * G, method="mine")
    for norm in ("l2", "l1", "linf"):
        loss = po.MaxDifferenceRobustness(POINTS, norm=norm)
        shares = best.shares(po.GradientMatching(G) + loss)
        assert shares.removed[loss.name] == pytest.approx(0.5, rel=1e-12)
    squared = best.shares(po.GradientMatching(G) + po.PairwiseRobustness(POINTS))
    assert squared.removed[ROBUST] == pytest.approx(0.75, rel=1e-12)


def test_beside_shared_features_the_far_end_is_the_mean_of_each_run_of_entries():
    loss = po.SharedRobustness(po.chain_graph(4), PRESENT)
    shares = po.Explanation(attributions=G, method="mine").shares(
        po.GradientMatching(G) + loss
    )
    far = G.copy()  # entries of a feature are joined along the chain
    for rows, feature in (([0, 1], 0), ([2, 3], 1), ([0, 1, 2], 2)):
        far[rows, feature] = G[rows, feature].mean()
    other = po.Explanation(attributions=far, method="far").shares(
        po.GradientMatching(G) + loss
    )
    assert shares.kept == {MATCHING: 1.0}
    assert other.kept[MATCHING] == pytest.approx(0.0, abs=1e-12)
    assert other.removed[loss.name] == pytest.approx(1.0, rel=1e-12)
    pairs = [(0, 1, 0), (2, 3, 1), (0, 1, 2), (1, 2, 2)]
    squares = [(G[n, j] - G[m, j]) ** 2 for n, m, j in pairs]
    result = shares.differences[loss.name]
    assert result == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-12)
    assert other.differences[loss.name] == pytest.approx(0.0, abs=1e-12)


def test_sparsity_is_a_share_of_the_sum_beside_the_zeros():
    best = po.solve(po.GradientMatching(G) + 1.0 * po.Sparsity())
    shares = best.shares()
    W = best.attributions
    expected = 1.0 - np.abs(W).sum() / np.abs(G).sum()
    assert shares.removed["sparsity"] == pytest.approx(expected, rel=1e-12)
    assert shares.n_zero == (W == 0.0).sum() > 0
    assert f"{shares.n_zero} of 12 attributions are zero" in repr(shares)


def test_baselines_may_keep_less_than_nothing():
    shares = po.Explanation(attributions=-G, method="mine").shares(objective())
    assert shares.kept[MATCHING] < 0.0
    assert shares.removed[ROBUST] == pytest.approx(0.0, abs=1e-12)


def test_a_constant_target_has_dashes_and_nulls_and_no_warning(tmp_path):
    flat = np.full((4, 3), 0.1)
    problem = po.GradientMatching(flat) + po.PairwiseRobustness(POINTS)
    best = po.solve(problem).shares()
    assert best.kept == {MATCHING: 1.0}
    assert math.isnan(best.removed[ROBUST])
    other = po.Explanation(attributions=G, method="mine").shares(problem)
    assert other.kept == {MATCHING: -math.inf}
    assert "–" in repr(other)
    assert "–" in other._repr_html_()
    other.save(tmp_path / "shares")
    again = Shares.load(tmp_path / "shares.npz")
    assert again.kept == {MATCHING: -math.inf}
    assert repr(again) == repr(other)


def test_zeros_that_are_not_known_leave_the_share_open():
    class Own(po.PropertyLoss):
        name = "own"
        map = FAITHFUL["function"].map
        penalty = po.Sparsity().penalty

    whole = po.GradientMatching(G) + Own()
    shares = po.Explanation(attributions=G, method="mine").shares(whole)
    assert math.isnan(shares.kept[MATCHING])
    assert shares.removed["own"] == pytest.approx(0.0, abs=1e-12)


def test_differences_of_grids_are_those_of_their_stored_graphs():
    W = np.random.default_rng(0).normal(size=(12, 2))
    points = po.graphs.grid(0, 1, per_dimension=12, dimensions=1)
    grid = po.grid_gaussian_graph(points, lengthscale=0.3)
    lattice = po.graphs.LatticeGraph((4, 3))
    for graph in (grid, lattice):
        stored = po.graph_from_matrix(graph.similarities)
        values = [
            po.Explanation(attributions=W, method="mine")
            .shares(po.GradientMatching(W) + po.PairwiseRobustness(g))
            .differences[ROBUST]
            for g in (graph, stored)
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_the_card_says_first_what_is_kept_and_removed():
    lines = str(po.solve(objective(c=0.0)).shares()).splitlines()
    kept, removed = (100 * ROBUST_ALONE[key] for key in ("kept", "removed"))
    both = f"{kept:.1f} % of faithfulness kept, {removed:.1f} % of {ROBUST} removed"
    assert lines[0] == both  # of smoothness no share is defined
    assert lines[3].split()[:3] == [MATCHING, f"{kept:.1f}", "%"]
    assert lines[5].split()[:2] == [SMOOTH, "–"]
    flat = po.GradientMatching(np.ones((4, 3))) + po.PairwiseRobustness(POINTS)
    other = po.Explanation(attributions=G, method="mine").shares(flat)
    assert str(other).startswith("No share is defined\n")


def test_a_graph_without_edges_has_no_neighbours():
    lonely = po.graph_from_matrix(np.zeros((4, 4)))
    shares = po.solve(po.GradientMatching(G) + po.PairwiseRobustness(lonely)).shares()
    assert math.isnan(shares.differences[ROBUST])
    assert shares.kept[MATCHING] == 1.0


def test_limits_count_as_losses_that_are_removed():
    bound = po.PairwiseRobustness(POINTS) <= 1.0
    best = po.solve(1.0 * po.GradientMatching(G), subject_to=[bound])
    shares = best.shares()
    expected = 1.0 - 1.0 / bound.loss.value(G)
    assert shares.removed[ROBUST] == pytest.approx(expected, rel=1e-6)
    assert 0.0 < shares.kept[MATCHING] < 1.0


def ends(**changes):
    known = {"a": 1.0, "b": math.nan}
    fields = {"faithful": ["a"], "roots": ["b"], "sizes": {"a": 2.0}}
    return Ends(**{**fields, "at_target": known, "far": known, **changes})


def test_ends_of_a_header_are_those_that_were_written():
    part = part_of(Ends, Bounds())
    plain = part.packed(ends(faithful=("a",), roots=("b",)), "ends", Members())
    plain = json.loads(json.dumps(plain, allow_nan=False))
    again = part.unpacked(plain, "ends", Members())
    assert same(again, ends(faithful=("a",), roots=("b",)))
    for odd in ({}, [], 1, {**plain, "more": 1}, {**plain, "sizes": {"a": "2"}}):
        with pytest.raises(InvalidInput):
            part.unpacked(odd, "ends", Members())


@pytest.mark.parametrize(
    "changes",
    [
        {"far": {"a": 1.0}},
        {"at_target": {"a": 1.0}},
        {"faithful": ["a", "c"], "sizes": {"a": 1.0, "c": 1.0}},
        {"roots": ["c"]},
        {"sizes": {}},
    ],
)
def test_ends_of_unknown_losses_are_refused(changes):
    with pytest.raises(InvalidInput):
        ends(**changes)
    plain = part_of(Ends, Bounds()).packed(ends(), "ends", Members())
    with pytest.raises(InvalidInput):
        part_of(Ends, Bounds()).unpacked({**plain, **changes}, "ends", Members())


TOTAL = np.array([1.0, 0.5, -0.25, 0.0])


def complete(b=0.5, c=0.25):
    return po.solve(objective(b, c), subject_to=[po.Completeness(TOTAL)])


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_with_sums_of_rows_the_ends_are_complete_too(factor):
    shares = complete(0.5 * factor, 0.25 * factor).shares()
    kept, removed = (1.0, 0.0) if factor < 1.0 else (0.0, 1.0)
    assert shares.kept[MATCHING] == pytest.approx(kept, abs=1e-6)
    assert shares.removed[ROBUST] == pytest.approx(removed, abs=1e-6)
    assert shares.removed[SMOOTH] == pytest.approx(removed, abs=1e-6)
    assert set(shares.kept) | set(shares.removed) == {MATCHING, ROBUST, SMOOTH}


def test_with_sums_of_rows_roughness_that_no_weight_removes_is_told_apart():
    best = complete()
    shares = best.shares()
    irreducible = 2 * TOTAL @ POINTS.laplacian @ TOTAL / 3
    nearest = G + (TOTAL - G.sum(axis=1))[:, None] / 3
    at_target = po.PairwiseRobustness(POINTS).value(nearest)
    loss = best.losses[ROBUST]
    expected = 1.0 - (loss - irreducible) / (at_target - irreducible)
    assert shares.removed[ROBUST] == pytest.approx(expected, rel=1e-9)


def test_with_sums_of_rows_zeros_of_sparsity_are_not_known():
    best = po.solve(
        po.GradientMatching(G) + 0.1 * po.Sparsity(),
        subject_to=[po.Completeness(TOTAL)],
    )
    assert math.isnan(best.shares().kept[MATCHING])


def test_the_target_stands_beside_a_number_and_is_no_factor_of_it():
    G = np.array([[0.0, 1.0], [2.0, 1.0]])
    robust = po.PairwiseRobustness(po.chain_graph(2))
    words = list(po.solve(po.GradientMatching(G) + 0.25 * robust).shares().in_words())
    # neighbours differ by 2 in one of two features, a quarter of that squared is left
    assert words[2] == "neighbours differ by 0.707 (target: 1.41), pairwise_robustness"
    assert words[3] == "rms attribution 1.06 (target: 1.22)"
    assert not any("of the target" in line for line in words)
