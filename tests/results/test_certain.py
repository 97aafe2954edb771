"""Signs and orders that hold in every near-optimal explanation; of documents."""

import dataclasses

import cvxpy as cp
import numpy as np
import pytest
from golden_chains import (
    FEATURES,
    INVERSE_DIAGONAL,
    OPTIMUM,
    POINTS,
    SIGN_PRICES,
    G,
    objective,
)

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.losses.faithfulness import Estimate
from propopt.losses.maps import OverFeatures


def largest(problem, level, form, total=None, bounds=()) -> float:
    """max ⟨ℓ, V⟩ over all V with an objective of at most ``level``, by Clarabel."""
    V = cp.Variable(form.shape)
    limits = [problem.expression(V) <= level]
    limits += [bound.loss.expression(V) <= bound.limit for bound in bounds]
    if total is not None:
        limits.append(V @ np.ones(form.shape[1]) == total)
    question = cp.Problem(cp.Maximize(cp.sum(cp.multiply(form, V))), limits)
    return float(question.solve(solver="CLARABEL"))


def unit(shape, *entries):
    form = np.zeros(shape)
    for position, value in entries:
        form[position] = value
    return form


BEST = po.solve(objective())


def with_target(target):
    others = objective().terms[1:]
    return po.losses.Objective(((1.0, po.GradientMatching(target)), *others))


def test_prices_and_half_widths_are_the_golden_ones():
    certain = BEST.certain()
    assert certain.optimum == pytest.approx(OPTIMUM, rel=1e-12)
    np.testing.assert_allclose(certain.in_shares, SIGN_PRICES, rtol=0, atol=1e-9)
    distances = np.sqrt(OPTIMUM * SIGN_PRICES)  # the weight of faithfulness is 1
    np.testing.assert_allclose(certain.distances, distances, rtol=0, atol=1e-8)
    curve = po.sweep(objective(), {"pairwise_robustness": [0.5, 1.0]})
    again = curve.optimized[0].certain()  # is read before it is judged
    np.testing.assert_allclose(again.in_shares, SIGN_PRICES, rtol=0, atol=1e-9)
    widths = BEST.certain(small_change=0.3).half_widths
    expected = 0.3 * np.sqrt(INVERSE_DIAGONAL)
    np.testing.assert_allclose(widths, expected, rtol=0, atol=1e-9)


def price_by_clarabel(form):
    """The least rise at which ⟨ℓ, V⟩ > 0 falls to zero, from its least at one level.

    Where it is −m at F* + β, it is zero at F* + β (⟨ℓ, W⟩ / (⟨ℓ, W⟩ + m))².
    """
    beta, now = 0.2 * BEST.objective, float((form * BEST.attributions).sum())
    fall = now + largest(objective(), BEST.objective + beta, -form)
    return beta * (now / fall) ** 2


@pytest.mark.parametrize("row", [0, 2])
def test_prices_of_orders_are_those_of_clarabel(row):
    W = BEST.attributions[row]
    prices, order = BEST.certain(order="value").order_prices[row], np.argsort(-W)
    for first, second, price in zip(order, order[1:], prices, strict=False):
        form = unit(G.shape, ((row, first), 1.0), ((row, second), -1.0))
        assert price == pytest.approx(price_by_clarabel(form), rel=1e-5)
    # of sizes it is the least of two forms
    sizes, order = BEST.certain().order_prices[row], np.argsort(-np.abs(W))
    # all ranks are certain up to the least price, and not beyond
    for least, by in ((prices.min(), "value"), (sizes.min(), "size")):
        for factor, all_certain in ((1.0 - 1e-6, True), (1.0 + 1e-6, False)):
            ranks = BEST.certain(factor * np.sqrt(least), order=by)
            fixed = ranks.best_ranks[row] == ranks.worst_ranks[row]
            assert fixed.all() == all_certain
    for d, e, price in zip(order, order[1:], sizes, strict=False):
        one, two = ((row, d), np.sign(W[d])), np.sign(W[e])
        forms = [unit(G.shape, one, ((row, e), sign * two)) for sign in (1.0, -1.0)]
        assert price == pytest.approx(min(map(price_by_clarabel, forms)), rel=1e-5)


LARGEST = po.losses.MaxDifferenceRobustness(POINTS)


@pytest.mark.parametrize("extra", [0.4 * po.Sparsity(), 0.5 * LARGEST])
def test_further_convex_losses_make_the_set_no_wider(extra):
    problem = objective() + extra
    best = po.solve(problem, tolerance=1e-9)
    certain, narrower = best.certain(small_change=1.0), []
    beta = 1.0
    for position in [(0, 0), (2, 1), (3, 2)]:
        reach = max(
            largest(problem, best.objective + beta, unit(G.shape, (position, sign)))
            - sign * best.attributions[position]
            for sign in (1.0, -1.0)
        )
        half = certain.half_widths[position]
        assert reach <= half + 1e-6
        narrower.append(reach < 0.999 * half)
        assert half <= np.sqrt(beta) + 1e-4  # the ball of gradient matching alone
    assert any(narrower)


def test_bounds_leave_no_near_optimal_explanation_outside():
    bound = po.PairwiseRobustness(POINTS) <= 1.5
    problem = po.GradientMatching(G) + 0.25 * po.Smoothness(FEATURES)
    best = po.solve(problem, subject_to=[bound], tolerance=1e-8)
    certain = best.certain(small_change=1.0)
    level = best.objective + 1.0
    for position in [(0, 0), (1, 2), (2, 1)]:
        for sign in (1.0, -1.0):
            form = unit(G.shape, (position, sign))
            reach = largest(problem, level, form, bounds=[bound])
            reach -= sign * best.attributions[position]
            assert reach <= certain.half_widths[position] + 1e-6
    without = po.solve(problem).certain(small_change=1.0)  # the multiplier counts
    assert certain.half_widths.max() < without.half_widths.max()


T_7, SPARSE = 2.3646242515927844, 0.2 * po.Sparsity()  # at 0.975


def test_the_target_error_widens_by_what_solving_for_each_block_says():
    noise = 0.3 * np.random.default_rng(7).normal(size=(8, *G.shape))
    target = Estimate.of_blocks(G + noise - noise.mean(0), source="blocks", n_draws=8)
    plain, certain = BEST.certain(), po.solve(with_target(target)).certain()
    moved = [po.solve(with_target(block)).attributions for block in target.blocks]
    errors = np.std(moved, axis=0, ddof=1) / np.sqrt(8)
    wider = certain.half_widths - plain.half_widths
    np.testing.assert_allclose(wider, T_7 * errors, rtol=1e-9)
    assert (certain.signs != 0).sum() < (plain.signs != 0).sum()
    # with kinks: those of leaving out blocks
    best = po.solve(with_target(target) + SPARSE)
    plain, certain = po.solve(objective() + SPARSE).certain(), best.certain()
    wider = certain.half_widths - plain.half_widths
    np.testing.assert_allclose(wider, T_7 * best.standard_errors, atol=1e-4)
    assert certain.sampling_error == best.target.share > 0.0
    # nothing for an exact target, and nothing for one with unknown errors
    assert np.isnan(BEST.certain().sampling_error)
    exact = Estimate(values=G.copy(), source="exact", exact=True)
    assert po.solve(with_target(exact)).certain().sampling_error == 0.0
    reference = dataclasses.replace(
        BEST, standard_errors=np.full(G.shape, 0.01)
    ).certain()
    wider = reference.half_widths - BEST.certain().half_widths
    np.testing.assert_allclose(wider, 1.959963984540054e-2, rtol=1e-6)


def test_the_errors_of_a_difference_are_those_of_its_blocks():
    # both features have the same noise: their difference has none
    noise = np.random.default_rng(3).normal(size=(10, 4, 1))
    noise -= noise.mean(axis=0)
    common = np.concatenate([noise, noise, 0.0 * noise], axis=2)
    target = Estimate.of_blocks(G + 2.0 * common, source="blocks", n_draws=10)
    problem = po.GradientMatching(target) + 0.5 * po.PairwiseRobustness(POINTS)
    certain = po.solve(problem).certain(small_change=0.0, order="value")
    W = certain.attributions
    for n in range(4):  # features 0 and 1 are ordered for sure, none has a sign
        first = 0 if W[n, 0] > W[n, 1] else 1
        assert certain.worst_ranks[n, first] <= 2
    assert (certain.signs[:, :2] != 0).sum() < certain.signs[:, :2].size


def test_rows_of_large_tables_are_solved_one_by_one(monkeypatch):
    exact = BEST.certain()
    monkeypatch.setattr("propopt.proofs.hessian.MAX_SPECTRAL_SIZE", 2)
    ball, named = (po.solve(objective()).certain(rows=r) for r in (None, [2]))
    np.testing.assert_allclose(ball.half_widths, ball.small_change, rtol=1e-12)
    assert ball.are_bounds
    assert not exact.are_bounds
    fact = ball.document().facts["certain signs"]
    assert (fact.value, fact.basis) == (ball.certain_signs, None)
    assert fact.note == f"at least, small change {ball.small_change:.3g}"
    np.testing.assert_allclose(named.half_widths[2], exact.half_widths[2], rtol=1e-9)
    np.testing.assert_allclose(named.half_widths[0], ball.half_widths[0], rtol=1e-12)
    np.testing.assert_array_equal(named.best_ranks[2], exact.best_ranks[2])
    for ranks in (ball, named):  # by bounds alone, ranks are at most as narrow
        assert (ranks.best_ranks <= exact.best_ranks).all()
        assert (ranks.worst_ranks >= exact.worst_ranks).all()
    assert (named.signs[0] == 0).sum() >= (exact.signs[0] == 0).sum()


def test_tables_agree_with_what_is_certain():
    values = np.array([[5.0, -4.9, 0.1, 0.0], [3.0, 1.0, -2.0, 0.5]])
    certain = po.solve(1.0 * po.GradientMatching(values)).certain()
    assert (certain.best_ranks <= certain.worst_ranks).all()
    # an optimum of zero has a budget as well: 5 and -4.9 are too near each other
    fixed = certain.best_ranks == certain.worst_ranks
    assert fixed.tolist() == [[False] * 4, [True] * 4]
    robust = po.PairwiseRobustness(po.graphs.chain_graph(2))
    table = (
        po.solve(po.GradientMatching(values) + robust)
        .certain(small_change=0.3)
        .of_row(0)
    )
    assert table["attribution"].abs().is_monotonic_decreasing
    assert np.isnan(table["distance_of_order"].iloc[-1])
    certain = BEST.certain()
    table = certain.to_frame()
    both = table["certainly_positive"] + table["certainly_negative"]
    np.testing.assert_allclose(table["certain_rows"], both, rtol=1e-15)
    np.testing.assert_allclose(table["certain_rows"].mean(), certain.certain_signs)


def test_what_has_no_objective_is_given_one(tmp_path):
    BEST.save(tmp_path / "best")
    loaded = po.results.Explanation.load(tmp_path / "best.npz")
    with pytest.raises(InvalidInput, match=r"certain\(objective=...\)"):
        loaded.certain()
    again = loaded.certain(objective=objective())
    np.testing.assert_array_equal(again.prices, BEST.certain().prices)
    assert (
        BEST.certain(objective=with_target(G + 1.0)).certain_signs
        < BEST.certain().certain_signs
    )
    mine = po.results.Explanation(attributions=G, method="mine")
    with pytest.raises(InvalidInput, match="give the objective"):
        mine.certain()
    # any attributions can be certified: what is far from the optimum is not certain
    assert mine.certain(objective=objective()).certain_signs < 1.0


def test_what_has_no_near_optimal_set_is_refused():
    robust = po.PairwiseRobustness(POINTS)
    with pytest.raises(Refused, match="no squared gradient-matching"):
        po.solve(po.GradientMatching(G, norm="l1") + robust).certain()
    constant = po.solve(po.GradientMatching(np.ones((4, 3))) + robust).certain()
    assert constant.certain_signs == 1.0
    assert np.isinf(constant.in_shares).all()  # an optimum of zero, without a warning
    assert "<table" in constant._repr_html_()


TOTAL = np.array([1.0, 0.5, -0.25, 0.0])


@pytest.mark.parametrize("features", ["graph", "kernel"])
def test_with_sums_of_rows_half_widths_are_those_of_clarabel(features):
    problem = objective()
    if features == "kernel":  # what costs features does not leave constants free
        problem = problem + 0.3 * _PullOfFeatures()
        problem = po.losses.Objective(tuple(t for t in problem.terms if t[0] != 0.25))
    best = po.solve(problem, subject_to=[po.losses.Completeness(TOTAL)])
    certain = best.certain(small_change=0.2, order="value")
    level = best.objective + 0.2**2
    for position in [(0, 0), (1, 2), (3, 1)]:
        extreme = largest(problem, level, unit(G.shape, (position, 1.0)), TOTAL)
        reach = extreme - best.attributions[position]
        assert certain.half_widths[position] == pytest.approx(reach, rel=1e-6)
    free = po.solve(problem).certain(small_change=0.2)
    assert (certain.half_widths < free.half_widths).all()
    # an order, at a level where it is overturned
    n, (d, e) = 0, np.argsort(-best.attributions[0])[:2]
    form = unit(G.shape, ((n, e), 1.0), ((n, d), -1.0))
    price = certain.order_prices[n, 0]
    beta, now = best.objective, best.attributions[n, d] - best.attributions[n, e]
    fall = now + largest(problem, best.objective + beta, form, TOTAL)
    assert price == pytest.approx(beta * (now / fall) ** 2, rel=1e-5)


class _PullOfFeatures(po.losses.PropertyLoss):
    """A squared loss over features that sees constants."""

    name = "pull"
    penalty = po.Smoothness(FEATURES).penalty
    map = OverFeatures(np.array([[1.0, 0.2, 0.0], [0.0, 1.0, 0.5]]))
    n_features = 3


N, D = 6, 5
RNG = np.random.default_rng(3)
WORDS_OF = [[0, 1, 4], [0, 1, 2], [1, 2, 4], [0, 2, 4], [], [1]]
PRESENT = np.array([np.isin(np.arange(D), words) for words in WORDS_OF])
PHI = RNG.standard_normal((N, D)) * PRESENT
TOTALS = np.where(PRESENT.any(axis=1), PHI.sum(axis=1) + 0.3, 0.0)
GRAPH = po.graphs.gaussian_graph(RNG.standard_normal((N, 2)), lengthscale=2.0)
OBJECTIVE = po.GradientMatching(PHI) + 0.2 * po.losses.SharedRobustness(GRAPH, PRESENT)
SUMS = [po.losses.Completeness(TOTALS, PRESENT.astype(float))]
each_way = pytest.mark.parametrize("sums", [[], SUMS], ids=["free", "complete"])


def solved(sums=()):
    return po.solve(OBJECTIVE, subject_to=sums, tolerance=1e-12)


def solve(goal, *limits):
    return float(cp.Problem(goal, list(limits)).solve(solver="CLARABEL"))


def largest_entry(level, position, sums):
    """The largest entry of V of these words with an objective up to a level."""
    V = cp.Variable((N, D))
    limits = [OBJECTIVE.expression(V) <= level, cp.multiply(V, ~PRESENT) == 0]
    if sums:
        limits.append(cp.sum(cp.multiply(V, PRESENT), axis=1) == TOTALS)
    return solve(cp.Maximize(V[position]), *limits)


@each_way
def test_half_widths_are_those_of_a_conic_solver_over_words_that_are_there(sums):
    best = solved(sums)
    certain = best.certain(small_change=0.5)
    level = best.objective + 0.5**2
    for position in ((0, 1), (1, 2), (3, 4), (5, 1)):
        reach = largest_entry(level, position, sums) - best.attributions[position]
        assert certain.half_widths[position] == pytest.approx(reach, rel=1e-4, abs=1e-6)
    # nothing is said of absent words
    assert certain.count == PRESENT.sum()
    for values in (certain.signs, certain.half_widths, certain.prices):
        assert not values[~PRESENT].any()
    share = np.count_nonzero(certain.signs) / PRESENT.sum()
    assert certain.certain_signs == pytest.approx(share)
    order = np.argsort(-np.abs(certain.attributions[2]))[:3]
    assert list(certain.of_row(2).index) == [f"x{d}" for d in order]
    assert certain.of_row(4).empty
    assert "x3" not in certain._repr_html_()
    # shares of a word are of documents that have it
    table, has = certain.to_frame(), PRESENT[:, 1]
    reference = (certain.signs[has, 1] != 0).mean()
    assert table["certain_rows"]["x1"] == pytest.approx(reference)
    median = np.median(certain.half_widths[has, 1])
    assert table["median_half_width"]["x1"] == pytest.approx(median)
    assert table.loc["x3"].isna().all()  # in no document


@each_way
def test_ranks_are_among_the_words_of_a_document(sums):
    certain, by_value = (solved(sums).certain(1e-9, order=o) for o in ("size", "value"))
    W = certain.attributions
    for n in range(N):
        here = np.flatnonzero(PRESENT[n])
        order = here[np.argsort(-np.abs(W[n, here]))]
        assert list(certain.best_ranks[n, order]) == list(range(1, len(here) + 1))
        assert list(certain.worst_ranks[n, order]) == list(range(1, len(here) + 1))
        assert (certain.best_ranks[n, ~PRESENT[n]] == len(here) + 1).all()
        order = here[np.argsort(-W[n, here])]
        assert list(by_value.of_row(n).index) == [f"x{d}" for d in order]


def test_shares_are_measured_between_the_target_and_means_over_shared_words():
    best = solved()
    shares = best.shares()
    V = cp.Variable((N, D))
    robust = OBJECTIVE.losses[1]
    same = robust.map.flat((N, D)) @ V.flatten(order="C") == 0
    far = solve(cp.Minimize(cp.sum_squares(V - PHI)), same)
    remains = 1.0 - best.losses["gradient_matching"] / far
    assert shares.faithfulness_kept["gradient_matching"] == pytest.approx(
        remains, rel=1e-5
    )
    removed = 1.0 - best.losses["shared_robustness"] / robust.value_at(PHI)
    assert shares.removed["shared_robustness"] == pytest.approx(removed)


def test_shares_of_complete_documents_end_where_nothing_more_can_be_removed():
    for weight, least in ((1e7, 1.0), (1e-9, 0.0)):
        robust = weight * po.losses.SharedRobustness(GRAPH, PRESENT)
        shares = po.solve(po.GradientMatching(PHI) + robust, subject_to=SUMS).shares()
        assert shares.removed["shared_robustness"] == pytest.approx(least, abs=1e-5)
        assert shares.faithfulness_kept["gradient_matching"] == pytest.approx(
            1 - least, abs=1e-4
        )
    assert 0.0 < solved(SUMS).shares().faithfulness_kept["gradient_matching"] < 1.0
    baseline = po.results.Explanation(attributions=PHI + 0.1 * PRESENT, method="mine")
    shares = baseline.shares(OBJECTIVE)  # is measured over its words
    assert 0.0 < shares.faithfulness_kept["gradient_matching"] < 1.0
