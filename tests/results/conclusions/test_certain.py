"""Signs and orders that hold in every near-optimal explanation, against outsiders."""

from __future__ import annotations

import dataclasses

import cvxpy as cp
import numpy as np
import pandas as pd
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
from hypothesis import given, settings
from hypothesis import strategies as st

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.losses.faithfulness import Estimate
from propopt.losses.maps import OverFeatures


def largest(problem: po.Objective, level: float, form: np.ndarray, total=None) -> float:
    """max ⟨ℓ, V⟩ over all V with an objective of at most ``level``, by Clarabel."""
    V = cp.Variable(form.shape)
    limits = [problem.expression(V) <= level]
    if total is not None:
        limits.append(V @ np.ones(form.shape[1]) == total)
    question = cp.Problem(cp.Maximize(cp.sum(cp.multiply(form, V))), limits)
    return float(question.solve(solver="CLARABEL"))


def unit(shape, *entries):
    form = np.zeros(shape)
    for place, value in entries:
        form[place] = value
    return form


# golden values


def test_prices_of_signs_are_the_golden_ones():
    certain = po.solve(objective()).certain()
    assert certain.optimum == pytest.approx(OPTIMUM, rel=1e-12)
    np.testing.assert_allclose(certain.in_shares, SIGN_PRICES, rtol=0, atol=1e-9)
    np.testing.assert_allclose(certain.in_mean_rows, 4 * SIGN_PRICES, rtol=0, atol=1e-8)


def test_half_widths_are_roots_of_the_golden_diagonal():
    certain = po.solve(objective()).certain(budget=0.3)
    expected = np.sqrt(0.3 * OPTIMUM / 4 * INVERSE_DIAGONAL)
    np.testing.assert_allclose(certain.half_widths, expected, rtol=0, atol=1e-9)


def test_a_sign_is_certain_just_if_its_price_is_above_the_budget():
    best = po.solve(objective())
    for budget in (0.01, 0.1, 0.4):
        certain = best.certain(budget)
        assert ((certain.signs != 0) == (certain.in_mean_rows > budget)).all()
        known = certain.signs != 0
        assert (certain.signs[known] == np.sign(best.attributions)[known]).all()
    assert 0.0 < best.certain().share < 1.0  # the default tells something


# against Clarabel


@pytest.mark.parametrize("place", [(0, 0), (1, 2), (2, 1), (3, 2)])
def test_half_widths_are_the_extremes_that_clarabel_finds(place):
    best = po.solve(objective())
    certain = best.certain(budget=0.2)
    level = best.objective + 0.2 * best.objective / 4
    for sign in (1.0, -1.0):
        extreme = largest(objective(), level, unit(G.shape, (place, sign)))
        reach = extreme - sign * best.attributions[place]
        assert certain.half_widths[place] == pytest.approx(reach, rel=1e-6)


def price_by_clarabel(best, form):
    """The least rise at which ⟨ℓ, V⟩ > 0 falls to zero, from its least at one level.

    Where it is −m at F* + β, it is zero at F* + β (⟨ℓ, W⟩ / (⟨ℓ, W⟩ + m))².
    """
    beta, now = 0.2 * best.objective, float((form * best.attributions).sum())
    fall = now + largest(objective(), best.objective + beta, -form)
    return beta * (now / fall) ** 2


@pytest.mark.parametrize("row", range(4))
def test_prices_of_orders_of_values_are_those_of_clarabel(row):
    best = po.solve(objective())
    prices = best.certain(order="value").order_prices[row]
    indices = np.argsort(-best.attributions[row])
    for first, second, price in zip(indices, indices[1:], prices, strict=False):
        form = unit(G.shape, ((row, first), 1.0), ((row, second), -1.0))
        assert price == pytest.approx(price_by_clarabel(best, form), rel=1e-5)


@pytest.mark.parametrize("row", range(4))
def test_prices_of_orders_of_sizes_are_the_least_of_two_forms(row):
    best = po.solve(objective())
    s = np.sign(best.attributions[row])
    prices = best.certain().order_prices[row]
    indices = np.argsort(-np.abs(best.attributions[row]))
    for d, e, price in zip(indices, indices[1:], prices, strict=False):
        least = min(
            price_by_clarabel(
                best, unit(G.shape, ((row, d), s[d]), ((row, e), sign * s[e]))
            )
            for sign in (1.0, -1.0)
        )
        assert price == pytest.approx(least, rel=1e-5)


@pytest.mark.parametrize("extra", ["sparsity", "max difference"])
def test_further_convex_losses_make_the_set_no_wider(extra):
    loss = {
        "sparsity": 0.4 * po.Sparsity(),
        "max difference": 0.5 * po.MaxDifferenceRobustness(POINTS),
    }[extra]
    problem = objective() + loss
    best = po.solve(problem, tolerance=1e-9)
    certain = best.certain(budget=1.0)
    beta = best.objective / 4
    narrower = []
    for place in [(0, 0), (1, 1), (2, 1), (3, 0), (3, 2)]:
        extremes = [
            largest(problem, best.objective + beta, unit(G.shape, (place, sign)))
            - sign * best.attributions[place]
            for sign in (1.0, -1.0)
        ]
        half = certain.half_widths[place]
        assert max(extremes) <= half + 1e-6
        narrower.append(max(extremes) < 0.999 * half)
        assert half <= np.sqrt(beta) + 1e-4  # the ball of gradient matching alone
    assert any(narrower)


def test_bounds_leave_no_near_optimal_explanation_outside():
    bound = po.PairwiseRobustness(POINTS) <= 1.5
    problem = po.GradientMatching(G) + 0.25 * po.Smoothness(FEATURES)
    best = po.solve(problem, subject_to=[bound], tolerance=1e-8)
    certain = best.certain(budget=1.0)
    beta = best.objective / 4
    V = cp.Variable(G.shape)
    limits = [
        problem.expression(V) <= best.objective + beta,
        bound.loss.expression(V) <= bound.limit,
    ]
    for place in [(0, 0), (1, 2), (2, 1)]:
        for sense in (cp.Maximize, cp.Minimize):
            extreme = cp.Problem(sense(V[place]), limits).solve(solver="CLARABEL")
            reach = abs(extreme - best.attributions[place])
            assert reach <= certain.half_widths[place] + 1e-6
    without = po.solve(problem).certain(budget=1.0)  # the multiplier counts
    assert (certain.half_widths / np.sqrt(certain.optimum)).max() < (
        without.half_widths / np.sqrt(without.optimum)
    ).max()


# targets with errors


def estimated(B=8, spread=0.3):
    noise = spread * np.random.default_rng(7).normal(size=(B, *G.shape))
    return Estimate.of_blocks(
        G + noise - noise.mean(axis=0), source="blocks", n_draws=B
    )


def with_target(target):
    return (
        po.GradientMatching(target)
        + 0.5 * po.PairwiseRobustness(POINTS)
        + 0.25 * po.Smoothness(FEATURES)
    )


def test_the_target_error_widens_by_what_solving_for_each_block_says():
    target = estimated()
    best = po.solve(with_target(target))
    plain = po.solve(objective()).certain()
    certain = best.certain()
    moved = np.stack(
        [po.solve(with_target(block)).attributions for block in target.blocks]
    )
    errors = moved.std(axis=0, ddof=1) / np.sqrt(8)
    t = 2.3646242515927844  # t_7 at 0.975
    np.testing.assert_allclose(
        certain.half_widths - plain.half_widths, t * errors, rtol=1e-9
    )
    assert (certain.signs != 0).sum() < (plain.signs != 0).sum()
    assert "8 blocks" in repr(certain)


def test_the_errors_of_a_difference_are_those_of_its_blocks():
    # both features have the same noise: their difference has none
    noise = np.random.default_rng(3).normal(size=(10, 4, 1))
    noise -= noise.mean(axis=0)
    common = np.concatenate([noise, noise, 0.0 * noise], axis=2)
    target = Estimate.of_blocks(G + 2.0 * common, source="blocks", n_draws=10)
    problem = po.GradientMatching(target) + 0.5 * po.PairwiseRobustness(POINTS)
    certain = po.solve(problem).certain(budget=0.0, order="value")
    W = certain.attributions
    for n in range(4):  # features 0 and 1 are ordered for sure, none has a sign
        first = 0 if W[n, 0] > W[n, 1] else 1
        assert certain.worst_ranks[n, first] <= 2
    assert (certain.signs[:, :2] != 0).sum() < certain.signs[:, :2].size


def test_of_a_target_without_known_error_nothing_is_included_and_that_is_said():
    assert "not known" in repr(po.solve(objective()).certain())
    exact = Estimate(values=G.copy(), source="exact", exact=True)
    assert "exact" in repr(po.solve(with_target(exact)).certain())


def test_standard_errors_that_are_known_are_added():
    best = po.solve(objective())
    without = best.certain()
    errors = np.full(G.shape, 0.01)
    known = dataclasses.replace(best, standard_errors=errors).certain()
    np.testing.assert_allclose(
        known.half_widths - without.half_widths, 1.959963984540054e-2, rtol=1e-6
    )


def test_errors_of_programs_with_kinks_are_those_of_leaving_out_blocks():
    best = po.solve(with_target(estimated()) + 0.2 * po.Sparsity())
    plain = po.solve(objective() + 0.2 * po.Sparsity()).certain()
    certain = best.certain()
    t = 2.3646242515927844  # t_7 at 0.975
    np.testing.assert_allclose(
        certain.half_widths - plain.half_widths, t * best.standard_errors, atol=1e-4
    )
    assert "standard errors" in certain.notes[0]


# many points, rows


def test_rows_of_large_tables_are_solved_one_by_one(monkeypatch):
    best = po.solve(objective())
    exact = best.certain()
    monkeypatch.setattr("propopt.results.hessian.MOST_DIAGONALIZED", 2)
    ball = po.solve(objective()).certain()
    named = po.solve(objective()).certain(rows=[2])
    np.testing.assert_allclose(ball.half_widths, np.sqrt(0.1 * OPTIMUM / 4), rtol=1e-12)
    assert "ball" in repr(ball)
    np.testing.assert_allclose(named.half_widths[2], exact.half_widths[2], rtol=1e-9)
    np.testing.assert_allclose(named.half_widths[0], ball.half_widths[0], rtol=1e-12)
    np.testing.assert_array_equal(named.best_ranks[2], exact.best_ranks[2])
    assert (named.worst_ranks[0] == 3).all()
    assert (named.signs[0] == 0).sum() >= (exact.signs[0] == 0).sum()


def test_rows_are_named_by_their_labels():
    table = pd.DataFrame(G, columns=["a", "b", "c"], index=["w", "x", "y", "z"])
    best = po.solve(1.0 * po.GradientMatching(table))
    certain = best.certain(rows=["y"])
    assert list(certain.of_row("y").index) == ["b", "c", "a"]
    assert "named" in repr(certain)
    with pytest.raises(InvalidInput, match="there is no row 7"):
        best.certain(rows=[7])


# the result


def test_ranks_agree_with_the_pairs_that_are_certain():
    values = np.array([[5.0, -4.9, 0.1, 0.0], [3.0, 1.0, -2.0, 0.5]])
    certain = po.solve(1.0 * po.GradientMatching(values)).certain(objective=None)
    assert (certain.best_ranks <= certain.worst_ranks).all()
    # an optimum of zero costs nothing: the budget is none, and all orders are certain
    assert certain.top(2).values.tolist() == [["x0", "x1"], ["x0", "x2"]]
    pulled = po.solve(
        po.GradientMatching(values) + po.PairwiseRobustness(po.chain_graph(2))
    )
    table = pulled.certain(budget=0.3).of_row(0)
    assert table["attribution"].abs().is_monotonic_decreasing
    assert np.isnan(table["price_of_order"].iloc[-1])


def test_the_table_counts_rows():
    certain = po.solve(objective()).certain()
    table = certain.to_frame()
    np.testing.assert_allclose(
        table["certain"], table["positive"] + table["negative"], rtol=1e-15
    )
    np.testing.assert_allclose(table["certain"].mean(), certain.share)


def test_the_card_counts_signs_first_and_says_what_is_proved():
    wide = np.arange(1.0, 13.0) * [[1.0], [1.1]]
    best = po.solve(
        po.GradientMatching(wide) + po.PairwiseRobustness(po.chain_graph(2))
    )
    head, unit, names, first, *_, rest, proof = str(best.certain()).splitlines()
    assert head == "100 % of 24 signs are certain, over 2 rows"
    assert "in mean rows" in unit
    assert names.split() == ["feature", "certain", "positive", "negative", "price"]
    assert first.split()[:7] == ["x11", "100", "%", "100", "%", "0", "%"]
    assert rest == "2 others, on average certain in 100 % of rows"
    assert proof.startswith("proved for every explanation whose objective is up to 0.1")
    assert "not known" in proof
    half = str(po.solve(objective()).certain()).splitlines()[0]
    share = (4 * SIGN_PRICES > 0.1).mean()
    assert half == f"{100 * share:.0f} % of 12 signs are certain, over 4 rows"


def test_after_loading_the_objective_has_to_be_given(tmp_path):
    best = po.solve(objective())
    best.save(tmp_path / "best")
    loaded = po.Explanation.load(tmp_path / "best.npz")
    with pytest.raises(InvalidInput, match=r"certain\(objective=...\)"):
        loaded.certain()
    again = loaded.certain(objective=objective())
    np.testing.assert_array_equal(again.prices, best.certain().prices)


def test_another_objective_of_the_same_names_is_certified_anew():
    best = po.solve(objective())
    other = po.Objective(((1.0, po.GradientMatching(G + 1.0)), *objective().terms[1:]))
    assert best.certain(objective=other).share < best.certain().share


def test_baselines_have_no_near_optimal_set():
    mine = po.Explanation(attributions=G, method="mine")
    with pytest.raises(InvalidInput, match="give the objective"):
        mine.certain()
    # any attributions can be certified: what is far from the optimum is not certain
    assert mine.certain(objective=objective()).share < 1.0


def test_a_limit_of_zero_and_losses_without_curvature_are_refused():
    flat = po.solve(
        po.GradientMatching(G), subject_to=[po.PairwiseRobustness(POINTS) <= 0.0]
    )
    with pytest.raises(Refused, match="limit of zero"):
        flat.certain()
    l1 = po.solve(po.GradientMatching(G, norm="l1") + po.PairwiseRobustness(POINTS))
    with pytest.raises(Refused, match="no squared gradient-matching"):
        l1.certain()


def test_a_point_on_a_curve_is_read_before_it_is_judged():
    curve = po.sweep(objective(), {"pairwise_robustness": [0.5, 1.0]})
    certain = curve.optimized[0].certain()
    np.testing.assert_allclose(certain.in_shares, SIGN_PRICES, rtol=0, atol=1e-9)


def test_a_constant_target_has_no_price_and_no_warning():
    flat = po.solve(
        po.GradientMatching(np.ones((4, 3))) + po.PairwiseRobustness(POINTS)
    )
    certain = flat.certain()
    assert certain.share == 1.0
    assert np.isinf(certain.in_mean_rows).all()
    assert "<table" in certain._repr_html_()


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(4)), st.permutations(range(3)), st.integers(0, 999))
def test_permuted_inputs_give_permuted_results(rows, columns, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(4, 3))
    S, T = (np.triu(rng.uniform(size=(n, n)), 1) for n in (4, 3))
    S, T = S + S.T, T + T.T

    def certain(p, q):
        problem = (
            po.GradientMatching(values[np.ix_(p, q)])
            + po.PairwiseRobustness(po.graph_from_matrix(S[np.ix_(p, p)]))
            + po.Smoothness(po.graph_from_matrix(T[np.ix_(q, q)]))
        )
        return po.solve(problem).certain()

    plain, moved = certain(range(4), range(3)), certain(rows, columns)
    cells = np.ix_(rows, columns)
    np.testing.assert_allclose(moved.prices, plain.prices[cells], rtol=1e-7)
    np.testing.assert_array_equal(moved.signs, plain.signs[cells])
    np.testing.assert_array_equal(moved.worst_ranks, plain.worst_ranks[cells])
    np.testing.assert_allclose(
        moved.order_prices, plain.order_prices[list(rows)], rtol=1e-7
    )


# rows that add up


TOTAL = np.array([1.0, 0.5, -0.25, 0.0])


@pytest.mark.parametrize("features", ["graph", "kernel"])
def test_with_sums_of_rows_half_widths_are_those_of_clarabel(features):
    problem = objective()
    if features == "kernel":  # what costs features does not leave constants free
        problem = problem + 0.3 * _PullOfFeatures()
        problem = po.Objective(tuple(t for t in problem.terms if t[0] != 0.25))
    best = po.solve(problem, subject_to=[po.Completeness(TOTAL)])
    certain = best.certain(budget=0.2, order="value")
    level = best.objective * (1 + 0.2 / 4)
    for place in [(0, 0), (1, 2), (3, 1)]:
        extreme = largest(problem, level, unit(G.shape, (place, 1.0)), TOTAL)
        reach = extreme - best.attributions[place]
        assert certain.half_widths[place] == pytest.approx(reach, rel=1e-6)
    free = po.solve(problem).certain(budget=0.2)
    narrower = certain.half_widths / np.sqrt(certain.optimum)
    assert (narrower < free.half_widths / np.sqrt(free.optimum)).all()
    # an order, at a level where it is overturned
    n, (d, e) = 0, np.argsort(-best.attributions[0])[:2]
    form = unit(G.shape, ((n, e), 1.0), ((n, d), -1.0))
    price = certain.order_prices[n, 0]
    beta, now = best.objective, best.attributions[n, d] - best.attributions[n, e]
    fall = now + largest(problem, best.objective + beta, form, TOTAL)
    assert price == pytest.approx(beta * (now / fall) ** 2, rel=1e-5)


class _PullOfFeatures(po.PropertyLoss):
    """A squared loss over features that sees constants."""

    name = "pull"
    penalty = po.Smoothness(FEATURES).penalty
    map = OverFeatures(np.array([[1.0, 0.2, 0.0], [0.0, 1.0, 0.5]]))
    n_features = 3


def test_of_two_features_that_add_up_the_sum_is_certain():
    values = np.array([[2.0, 1.0], [1.5, 0.9]])
    problem = po.GradientMatching(values) + po.PairwiseRobustness(po.chain_graph(2))
    best = po.solve(problem, subject_to=[po.Completeness([3.0, 2.0])])
    table = best.certain(budget=0.5)
    assert np.isfinite(table.order_prices).all()
    assert (table.best_ranks <= table.worst_ranks).all()
