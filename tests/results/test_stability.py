"""What survives other settings, what is kept and removed: golden values, outsiders."""

import math

import cvxpy as cp
import numpy as np
import pandas as pd
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
from scipy.stats import kendalltau

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.losses.faithfulness import Estimate
from propopt.proofs.nearby_optima import FACTORS
from propopt.results import stability as rows_agree
from propopt.results.shares import Shares
from propopt.results.stability import Agreement


X = np.random.default_rng(11).normal(size=(30, 4))
TARGET = np.sin(2.0 * X) + 0.3 * X


def linked(k=6, **settings):
    return po.PairwiseRobustness(po.graphs.knn_graph(X, k, **settings))


def one(stability, varied):
    return next(a for a in stability.agreements if a.varied.startswith(varied))


GOLDEN = po.solve(objective())


def test_one_of_twelve_signs_flips_with_the_golden_weight():
    stability = GOLDEN.stability(k=2)
    robust = one(stability, "weight of pairwise_robustness")
    assert robust.signs == pytest.approx(11 / 12, abs=1e-15)
    W = np.abs(GOLDEN.attributions)
    assert robust.weighted_signs == pytest.approx(1 - W[0, 2] / W.sum(), abs=1e-12)
    assert robust.worst["signs"] == "weight × 2"
    assert stability.signs == min(a.signs for a in stability.agreements)
    assert not any("neighbours" in a.varied for a in stability.agreements)
    np.testing.assert_allclose(FACTORS, 2.0 ** np.linspace(-1, 1, 9), rtol=1e-15)
    # the card says first what survives and where it breaks
    head, _, names, robust, smooth, *breaks, _ = str(stability).splitlines()
    least = 100 * one(stability, "weight of smoothness").signs
    assert head == f"{least:.0f} % of signs survive, whichever setting varies"
    assert names.split()[-3:] == ["top", "2", "ranks"]
    assert robust.split()[3:5] == ["92", "%"]  # 11 of 12
    assert smooth.split()[3:5] == [f"{least:.0f}", "%"]
    assert "most signs turn at weight × 2" in " ".join(breaks)
    even = po.GradientMatching(np.ones((3, 2)))
    calm = po.solve(even + po.PairwiseRobustness(po.graphs.chain_graph(3))).stability()
    lines = str(calm).splitlines()
    assert lines[0] == "All signs survive, whichever setting varies"
    assert not any("break" in line for line in lines)


def drawn(B, spread):
    noise = spread * np.random.default_rng(2).normal(size=(B, *G.shape))
    return Estimate.of_blocks(G + noise, source="draws", n_draws=10 * B)


OF_CHAIN = 0.2 * po.Smoothness(po.graphs.chain_graph(4))
TOTALS = [po.losses.Completeness([1.0, 0.5, -0.25, 0.0])]
OF_POINTS = po.PairwiseRobustness(POINTS)
CLOSED = {
    "uniform": (po.GradientMatching(TARGET) + 0.05 * linked() + OF_CHAIN, []),
    "gaussian": (
        po.GradientMatching(TARGET) + 0.05 * linked(weights="gaussian") + OF_CHAIN,
        [],
    ),
    "rows that add up": (objective(), TOTALS),
    "draws": (po.GradientMatching(drawn(4, 0.4)) + 0.3 * OF_POINTS, []),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_agree_with_solving_again(name):
    problem, totals = CLOSED[name]
    best = po.solve(problem, subject_to=totals)

    def again(problem, subject_to=()):
        assert len(subject_to) == len(totals)
        return po.solve(problem, subject_to=subject_to)

    closed, solved = best.stability(), best.stability(solve=again)
    pd.testing.assert_frame_equal(closed.to_frame(), solved.to_frame())
    varied = [a.varied for a in closed.agreements]
    linked = "neighbours in pairwise_robustness"
    assert (linked in varied) == (name in ("uniform", "gaussian"))


def test_numbers_are_those_of_their_definitions():
    best = po.solve(po.GradientMatching(TARGET) + 0.1 * linked())
    W = best.attributions
    robust = one(best.stability(k=2), "weight")
    weighed = [po.GradientMatching(TARGET) + 0.1 * f * linked() for f in FACTORS]
    others = [po.solve(objective).attributions for objective in weighed]
    same = np.all([np.sign(V) == np.sign(W) for V in others], axis=0)
    assert robust.signs == pytest.approx(same.mean(), rel=1e-12)
    expected = np.abs(W)[same].sum() / np.abs(W).sum()
    assert robust.weighted_signs == pytest.approx(expected, rel=1e-12)
    overlaps, ranks = [], []
    for n in range(len(W)):
        ours = set(np.argsort(-np.abs(W[n]))[:2])
        tops = [set(np.argsort(-np.abs(V[n]))[:2]) for V in others]
        overlaps.append(min(len(ours & top) / len(ours | top) for top in tops))
        ranks.append(min(kendalltau(abs(W[n]), abs(V[n])).statistic for V in others))
    assert robust.top == pytest.approx(np.mean(overlaps), rel=1e-12)
    assert robust.ranks == pytest.approx(np.mean(ranks), rel=1e-12)
    assert 0.0 < robust.ranks < 1.0


def test_half_and_twice_the_neighbours_at_equal_weight_times_degree():
    best = po.solve(po.GradientMatching(TARGET) + 0.1 * linked())
    agreement = one(best.stability(), "neighbours")
    degree = po.graphs.knn_graph(X, 6).total
    same = []
    for k in (3, 12):
        weight = 0.1 * degree / po.graphs.knn_graph(X, k).total
        V = po.solve(po.GradientMatching(TARGET) + weight * linked(k)).attributions
        same.append(np.sign(V) == np.sign(best.attributions))
    assert agreement.signs == pytest.approx(np.all(same, axis=0).mean(), rel=1e-12)
    worst = {"3 neighbours": same[0].mean(), "12 neighbours": same[1].mean()}
    assert worst[agreement.worst["signs"]] == min(worst.values())


def test_few_points_have_no_more_neighbours_than_there_are():
    signed = np.array([[1.0, -9.0], [2.0, 1.0], [-5.0, 0.5]])
    robust = po.PairwiseRobustness(po.graphs.knn_graph(X[:3], 2))
    best = po.solve(po.GradientMatching(signed) + 0.5 * robust)
    worst = one(best.stability(), "neighbours").worst
    assert set(worst.values()) - {"none"} == {"1 neighbour"}  # of four there are none
    only = po.PairwiseRobustness(
        po.graphs.knn_graph(X[:2], 1)
    )  # neither fewer nor more
    pair = po.solve(po.GradientMatching(TARGET[:2]) + only).stability()
    assert [a.varied for a in pair.agreements] == ["weight of pairwise_robustness"]


def test_other_seeds_are_as_far_apart_as_two_estimates():
    # blocks of variance 1, B = 8: two means differ by a variance of 2/8
    target = drawn(8, 1.0)
    moved = target.values + math.sqrt(2 / 7) * (target.blocks - target.values)
    same = (np.sign(moved) == np.sign(target.values)).all(axis=0)
    outcome = one(po.solve(1.0 * po.GradientMatching(target)).stability(), "draws")
    assert outcome.signs == pytest.approx(same.mean(), rel=1e-12)
    assert outcome.signs < 1.0
    variance = np.mean((moved - target.values) ** 2)
    # 96 squares with 7 degrees for each entry: 0.25 to within 5 · 0.25 √(2/84)
    assert abs(variance - 0.25) < 5 * 0.25 * math.sqrt(2 / 84)


def test_losses_without_closed_form_take_a_solver(tmp_path):
    best = po.solve(objective() + 0.3 * po.Sparsity())
    with pytest.raises(Refused, match=r"stability\(solve=po.solve\)"):
        best.stability()
    stability = best.stability(solve=po.solve)
    assert one(stability, "weight of sparsity").signs < 1.0
    smooth = po.GradientMatching(G) + 0.2 * po.Smoothness(FEATURES)
    bounded = po.solve(smooth, subject_to=[OF_POINTS <= 1.0])
    with pytest.raises(Refused, match="pairwise_robustness has a limit"):
        bounded.stability()
    assert bounded.stability(solve=po.solve).signs <= 1.0
    with pytest.raises(InvalidInput, match="nothing varies"):
        po.solve(1.0 * po.GradientMatching(G)).stability()
    GOLDEN.save(tmp_path / "best")
    loaded = po.results.Explanation.load(tmp_path / "best.npz")
    with pytest.raises(InvalidInput, match=r"stability\(objective=...\)"):
        loaded.stability()
    assert loaded.stability(objective=objective()) == GOLDEN.stability()


def agreement(W, *others, k=2):
    named = {f"setting {i}": np.array(V) for i, V in enumerate(others)}
    return Agreement.of("anything", np.array(W), named, k)


def test_dust_and_rows_of_zeros_count_as_zero():
    W = [[1.0, 1e-13, 0.5]]
    assert agreement(W, [[1.0, -1e-13, 0.5]]).signs == 1.0
    assert agreement(W, [[1.0, 1e-3, 0.5]]).signs == pytest.approx(2 / 3)
    large = agreement([[1e6, 1e-7, 5e5]], [[1e6, -1e-7, 5e5]])  # is relative
    assert large.signs == 1.0
    dust = [[1.0, 2e-14, 1e-14]]  # two that are zero have no order
    assert agreement(dust, [[1.0, 0.0, 0.0]]).ranks == 1.0
    zero, other = [[0.0, 0.0, 0.0]], [[1.0, 2.0, 3.0]]
    same = agreement(zero, zero)
    assert (same.signs, same.weighted_signs, same.top, same.ranks) == (1, 1, 1, 1)
    assert set(same.worst.values()) == {"none"}
    apart = agreement(zero, other)
    assert (apart.signs, apart.top, apart.ranks) == (0, 0, 0)
    assert agreement(other, [[3.0, 2.0, 1.0]]).ranks == 0.0  # reversed ones are none
    W = [[1.0, -2.0]]
    result = agreement(W, [[1.0, -2.0]], [[-1.0, 2.0]], [[1.0, 2.0]])
    assert result.worst["signs"] == "setting 1"


def tau_by_all_pairs(w, v):
    """Kendall's τ_b as it is defined: over all pairs of columns that are there."""
    there = ~np.isnan(w)
    w, v = np.abs(w[there]), np.abs(v[there])
    ours = np.sign(w[:, None] - w[None])
    other = np.sign(v[:, None] - v[None])
    ordered = (ours**2).sum() * (other**2).sum()
    if ordered == 0.0:
        return float(not ours.any() and not other.any())
    return float((ours * other).sum() / np.sqrt(ordered))


def tied_rows(rng, n_columns):
    """Rows with ties in one, in both and in all, with gaps, and without order."""
    W = rng.integers(0, 9, (7, n_columns)).astype(float)
    V = np.where(rng.random(W.shape) < 0.7, W, -rng.integers(0, 9, W.shape))
    W[1], V[1] = rng.normal(size=(2, n_columns))
    V[2] = -W[2]
    W[3], W[4], V[4] = 2.0, 1.0, -3.0
    absent = rng.random(W.shape) < 0.3
    absent[:4] = False
    absent[6], absent[6, 0] = True, False
    W[absent] = V[absent] = np.nan
    return W, V


def test_rank_correlations_are_those_of_all_pairs(rng):
    for n_columns in (2, 99, 100, 101, 250):
        W, V = tied_rows(rng, n_columns)
        result = rows_agree._correlations(W, V)  # noqa: SLF001
        expected = [tau_by_all_pairs(w, v) for w, v in zip(W, V, strict=True)]
        np.testing.assert_array_equal(result, expected)
        assert n_columns == 2 or result[2:5].tolist() == [1.0, 0.0, 1.0]
    # many cost what sorting does: their pairs would need 80 GB
    rows_agree._correlations(*rng.normal(size=(2, 1, 100_000)))  # noqa: SLF001


MATCHING, ROBUST, SMOOTH = "gradient_matching", "pairwise_robustness", "smoothness"
TWO_PARTS = po.graphs.group_graph([0, 0, 1, 1])
TOTAL = np.array([1.0, 0.5, -0.25, 0.0])
SUMS = [po.losses.Completeness(TOTAL)]


def mine(attributions):
    return po.results.Explanation(attributions=attributions, method="mine")


def close(number):
    return pytest.approx(number, abs=1e-9)


def test_shares_and_differences_are_the_golden_ones():
    shares = po.solve(objective()).shares()
    assert shares.retained[MATCHING] == close(KEPT)
    removed = {ROBUST: ROUGHNESS_REMOVED, SMOOTH: SMOOTHNESS_REMOVED}
    assert shares.removed == close(removed)
    assert shares.differences[ROBUST] == close(DIFFERENCE)
    assert shares.target_differences[ROBUST] == close(TARGET_DIFFERENCE)
    assert shares.target_rms == pytest.approx(np.sqrt((G**2).mean()), rel=1e-14)
    best = po.solve(objective(c=0.0))  # a loss without weight has no share
    shares = best.shares()
    assert shares.retained[MATCHING] == close(ROBUST_ALONE["kept"])
    assert shares.removed[ROBUST] == close(ROBUST_ALONE["removed"])
    assert shares.differences[ROBUST] == close(ROBUST_ALONE_DIFFERENCE)
    assert math.isnan(shares.removed[SMOOTH])
    # the card says first what is kept and removed
    lines = str(shares).splitlines()
    remains, removed = (100 * ROBUST_ALONE[key] for key in ("kept", "removed"))
    both = (
        f"{remains:.1f} % of faithfulness retained, {removed:.1f} % of {ROBUST} removed"
    )
    assert lines[0] == both  # of smoothness no share is defined
    assert lines[3].split()[:3] == [MATCHING, f"{remains:.1f}", "%"]
    assert lines[5].split()[:2] == [SMOOTH, "–"]


@pytest.mark.parametrize("sums", [[], SUMS], ids=["free", "complete"])
def test_the_ends_of_the_curve_keep_all_and_nothing(sums):
    for factor, least in ((1e-9, 0.0), (1e9, 1.0)):
        best = po.solve(objective(0.5 * factor, 0.25 * factor), subject_to=sums)
        remains, removed = best.shares().retained, best.shares().removed
        assert remains == pytest.approx({MATCHING: 1.0 - least}, abs=1e-6)
        assert removed == pytest.approx({ROBUST: least, SMOOTH: least}, abs=1e-6)


def farthest(faithful, others):
    """min faithful(W) where the others cost nothing, by Clarabel."""
    W = cp.Variable(G.shape)
    zero = [loss.map(W) == 0 for loss in others]
    question = cp.Problem(cp.Minimize(faithful.expression(W)), zero)
    return question.solve(solver="CLARABEL")


AT = np.random.default_rng(5).normal(size=(4, 3))
NOISE = np.random.default_rng(6).normal(size=(4, 6, 3))
FAITHFUL = {
    "gradients": po.GradientMatching(G),
    "gradients, l1": po.GradientMatching(G, norm="l1"),
    "function": po.losses.FunctionMatching(AT, np.exp(AT[:, 0])),
    "function, local": po.losses.FunctionMatching(
        AT, np.sin(NOISE).sum(axis=2), perturbations=NOISE
    ),
}
KERNEL = np.exp(-0.5 * (AT[:, None] - AT[None]).__pow__(2).sum(axis=2))
PRESENT = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 1], [1, 1, 0]])
FLAT, SMOOTHING = po.PairwiseRobustness(TWO_PARTS), po.Smoothness(FEATURES)
SHARED = po.losses.SharedRobustness(POINTS, PRESENT)
OTHERS = {
    "robustness": [po.PairwiseRobustness(POINTS)],
    "two components": [FLAT],
    "both": [FLAT, SMOOTHING],
    "sparsity": [po.Sparsity()],
    "kernel": [po.losses.KernelRobustness(KERNEL)],
    "kernel, no mean": [po.losses.KernelRobustness(KERNEL, mean="none")],
    "max": [po.losses.MaxDifferenceRobustness(TWO_PARTS)],
    "shared": [SHARED],
    "shared, and smooth": [SHARED, po.Smoothness(po.graphs.group_graph([0, 0, 1]))],
    "shared, and robust": [SHARED, FLAT],
    "shared, and sparse": [SHARED, po.Sparsity()],
}


@pytest.mark.sampled(15)
@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("faithful", FAITHFUL)
def test_nothing_is_retained_where_the_others_are_zero(faithful, others):
    loss = FAITHFUL[faithful]
    whole = sum(OTHERS[others], start=1.0 * loss)
    remains = mine(0.3 * G).shares(whole).retained[loss.name]
    least = farthest(loss, OTHERS[others])
    if least < 1e-9:  # two points per part, and three features: nothing is lost
        assert remains == -math.inf
    else:
        expected = 1.0 - loss.value(0.3 * G) / least
        assert remains == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_largest_differences_are_shared_as_differences():
    for norm in ("l2", "l1", "linf"):
        loss = po.losses.MaxDifferenceRobustness(POINTS, norm=norm)
        shares = mine(0.5 * G).shares(po.GradientMatching(G) + loss)
        assert shares.removed[loss.name] == pytest.approx(0.5, rel=1e-12)
    squared = po.GradientMatching(G) + po.PairwiseRobustness(POINTS)
    removed = mine(0.5 * G).shares(squared).removed[ROBUST]
    assert removed == pytest.approx(0.75, rel=1e-12)
    turned = mine(-G).shares(objective())  # baselines may keep less than nothing
    assert turned.retained[MATCHING] < 0.0
    assert turned.removed[ROBUST] == pytest.approx(0.0, abs=1e-12)


def test_sparsity_is_a_share_of_the_sum():
    sparse = po.GradientMatching(G) + 1.0 * po.Sparsity()
    best = po.solve(sparse)
    shares, W = best.shares(), best.attributions
    expected = 1.0 - np.abs(W).sum() / np.abs(G).sum()
    assert shares.removed["sparsity"] == pytest.approx(expected, rel=1e-12)
    assert shares.n_zero == (W == 0.0).sum() > 0
    assert f"{shares.n_zero} of 12 attributions are zero" in repr(shares)
    # with sums of rows they are not known
    assert math.isnan(po.solve(sparse, subject_to=SUMS).shares().retained[MATCHING])

    class Mine(po.losses.PropertyLoss):
        name = "own"
        map = FAITHFUL["function"].map
        penalty = po.Sparsity().penalty

    shares = mine(G).shares(po.GradientMatching(G) + Mine())
    assert math.isnan(shares.retained[MATCHING])
    assert shares.removed["own"] == pytest.approx(0.0, abs=1e-12)


def test_a_constant_target_has_dashes_and_nulls_and_no_warning(tmp_path):
    flat = po.GradientMatching(np.full((4, 3), 0.1)) + po.PairwiseRobustness(POINTS)
    best, other = po.solve(flat).shares(), mine(G).shares(flat)
    assert best.retained == {MATCHING: 1.0}
    assert math.isnan(best.removed[ROBUST])
    assert other.retained == {MATCHING: -math.inf}
    assert str(other).startswith("No share is defined\n")
    assert "nan" not in repr(other)
    assert "–" in other._repr_html_()
    other.save(tmp_path / "shares")
    again = Shares.load(tmp_path / "shares.npz")
    assert again.retained == {MATCHING: -math.inf}
    assert repr(again) == repr(other)
    lonely = po.PairwiseRobustness(po.graphs.graph_from_matrix(np.zeros((4, 4))))
    shares = po.solve(po.GradientMatching(G) + lonely).shares()
    assert math.isnan(shares.differences[ROBUST])  # there are no neighbours
    assert shares.retained[MATCHING] == 1.0


def test_differences_of_grids_are_those_of_their_stored_graphs():
    W = np.random.default_rng(0).normal(size=(12, 2))
    points = po.graphs.grid(0, 1, per_dimension=12, dimensions=1)
    grid = po.graphs.grid_gaussian_graph(points, lengthscale=0.3)
    for graph in (grid, po.graphs.LatticeGraph((4, 3))):
        one, other = (
            mine(W).shares(po.GradientMatching(W) + po.PairwiseRobustness(g))
            for g in (graph, po.graphs.graph_from_matrix(graph.similarities))
        )
        assert one.differences == pytest.approx(other.differences, rel=1e-12)


def test_limits_count_as_losses_that_are_removed():
    bound = po.PairwiseRobustness(POINTS) <= 1.0
    shares = po.solve(1.0 * po.GradientMatching(G), subject_to=[bound]).shares()
    expected = 1.0 - 1.0 / bound.loss.value(G)
    assert shares.removed[ROBUST] == pytest.approx(expected, rel=1e-6)
    assert 0.0 < shares.retained[MATCHING] < 1.0
    # with sums of rows roughness that no weight removes is told apart
    best = po.solve(objective(), subject_to=SUMS)
    irreducible = 2 * TOTAL @ POINTS.laplacian @ TOTAL / 3
    nearest = G + (TOTAL - G.sum(axis=1))[:, None] / 3
    at_target = po.PairwiseRobustness(POINTS).value(nearest)
    left = (best.losses[ROBUST] - irreducible) / (at_target - irreducible)
    assert best.shares().removed[ROBUST] == pytest.approx(1.0 - left, rel=1e-9)
