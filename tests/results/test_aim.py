"""What stands beside a gap: the error of the target, or why there is none to say."""

import copy
import math
import pickle

import numpy as np
import pytest

import propopt as po
from propopt.losses.faithfulness import Estimate
from propopt.results.target_error import TargetError, unknown_target


N, D, B = 9, 2, 10
BLOCKS = np.random.default_rng(0).normal(1.0, 0.5, (B, N, D))
DRAWN = Estimate.of_blocks(BLOCKS, source="noise", n_draws=200)
EXACT = Estimate(values=DRAWN.values, source="exact (boxes)", exact=True)
DIFFERENCES = Estimate(values=DRAWN.values, source="central differences")
X = np.random.default_rng(1).normal(size=(N, D))
CHAIN = po.chain_graph(N)
ROBUST = po.PairwiseRobustness(CHAIN)


def solved(target, *others, **named):
    return po.solve(po.GradientMatching(target) + ROBUST + sum(others), **named)


WORDS = {
    "target exact (boxes)": lambda: solved(EXACT),
    "target exact": lambda: solved(po.functions.Power(3).estimate(X)),
    "target by central differences": lambda: solved(DIFFERENCES),
    "target given as numbers, its error is not known": lambda: solved(DRAWN.values),
    "target exact (function values)": lambda: po.solve(
        po.FunctionMatching(X, X.sum(axis=1)) + ROBUST
    ),
    "target exact (function values) and exact (boxes)": lambda: po.solve(
        po.FunctionMatching(X, X.sum(axis=1)) + po.GradientMatching(EXACT)
    ),
    "target of gradient_matching and b: how their errors go together is not known": (
        lambda: solved(DRAWN, po.GradientMatching(DRAWN, name="b"))
    ),
    "target estimated and matched in l1: its error is not known": lambda: po.solve(
        po.GradientMatching(DRAWN, norm="l1") + ROBUST
    ),
    "target estimated and only bounded, by gradient_matching: its error is not known": (
        lambda: po.solve(1.0 * ROBUST, subject_to=[po.GradientMatching(DRAWN) <= 1.0])
    ),
}


@pytest.mark.parametrize("words", WORDS)
def test_what_is_known_of_a_target_is_said(words):
    best = WORDS[words]()
    assert best.target.in_words() == words
    unknown = "known" in words or "differences" in words
    assert math.isnan(best.target_error) if unknown else best.target_error == 0.0
    assert best.standard_errors is None


def test_the_error_of_draws_is_in_shares_of_what_the_gap_is_relative_to():
    best = solved(DRAWN)
    assert best.target.scale == best.certificate.scale
    assert best.target_error == best.target.value / best.certificate.value
    assert (best.target.n_blocks, best.target.relation) == (B, "about")
    low, high = best.target.interval
    assert 0.0 < low < best.target_error < high
    words = best.target.in_words()
    assert words.startswith("target error ")
    assert words.endswith("; noise, 200 draws)")


def test_a_target_without_weight_counts_for_nothing():
    drawn, own = po.GradientMatching(DRAWN), po.GradientMatching(EXACT, name="own")
    best = po.solve(0.0 * drawn + 1.0 * own)
    assert best.target.in_words() == "target exact (boxes)"
    with pytest.warns(po.errors.TrivialObjectiveWarning):
        best = po.solve(0.0 * drawn + 1.0 * ROBUST)
    assert best.target.in_words() == "target not used"


AT_MOST = {
    "sparsity": lambda: solved(DRAWN, 0.1 * po.Sparsity()),
    "a bound": lambda: solved(DRAWN, subject_to=[po.Sparsity() <= 5.0]),
    "a limit of zero": lambda: po.solve(
        1.0 * po.GradientMatching(DRAWN), subject_to=[ROBUST <= 0.0]
    ),
}


@pytest.mark.parametrize("case", AT_MOST)
def test_beside_other_losses_and_bounds_it_is_at_most_so(case):
    best = AT_MOST[case]()
    assert best.target.relation == "at most"
    assert best.target.in_words().startswith("target error at most ")
    assert best.target.interval[0] == 0.0


def test_a_multiplier_counts_as_the_weight_that_it_is():
    free = solved(DRAWN)
    bound = ROBUST <= float(free.losses["pairwise_robustness"])  # noqa: SIM300
    matching = po.GradientMatching(DRAWN)
    bounded = po.solve(1.0 * matching, subject_to=[bound], tolerance=1e-9)
    assert bounded.target.value == pytest.approx(free.target.value, rel=1e-4)


def test_standard_errors_are_those_of_the_optima_for_the_blocks():
    best = solved(DRAWN)
    optima = [solved(block).attributions for block in BLOCKS]
    expected = np.std(optima, axis=0, ddof=1) / np.sqrt(B)
    np.testing.assert_allclose(best.standard_errors, expected, rtol=1e-9)
    assert not best.standard_errors.flags.writeable


def test_they_are_computed_when_they_are_asked_for_and_travel_with_the_result(tmp_path):
    best = solved(DRAWN)
    best.save(tmp_path / "best")
    for same in (
        copy.copy(best),
        pickle.loads(pickle.dumps(best)),
        po.Explanation.load(tmp_path / "best"),
    ):
        assert same.target == best.target
        np.testing.assert_array_equal(same.standard_errors, best.standard_errors)


@pytest.mark.parametrize("solver", ["spectral", "krylov", "factored"])
def test_points_on_a_curve_have_those_of_a_solve(solver):
    weights = {"pairwise_robustness": [0.1, 1.0, 10.0]}
    objective = po.GradientMatching(DRAWN) + ROBUST
    curve = po.sweep(objective, weights, solver=solver)
    for point in curve.optimized:
        best = po.solve(objective.with_weights(point.weights))
        assert point.target_error == pytest.approx(best.target_error, rel=1e-6)
        _ = point.attributions
        assert point.target_error == pytest.approx(best.target_error, rel=1e-6)
        np.testing.assert_allclose(point.standard_errors, best.standard_errors)


def test_a_certificate_for_any_attributions_has_the_error_of_the_target_too():
    objective = po.GradientMatching(DRAWN) + ROBUST
    mine = po.Explanation(attributions=DRAWN.values, method="mine")
    certified = mine.certified(objective)
    assert certified.target.value == po.solve(objective).target.value
    assert certified.target.scale == certified.certificate.scale
    assert mine.target is None
    assert math.isnan(mine.target_error)


def test_a_file_of_what_is_not_known_comes_back(tmp_path):
    best = solved(DIFFERENCES)
    best.save(tmp_path / "best")
    again = po.Explanation.load(tmp_path / "best")
    unknown = unknown_target("by central differences", best.certificate.scale)
    # NaN does not equal itself
    assert repr(again.target) == repr(best.target) == repr(unknown)


def test_draws_that_agree_leave_no_error_and_are_not_called_exact():
    same = np.broadcast_to(BLOCKS[0], BLOCKS.shape).copy()
    best = solved(Estimate.of_blocks(same, source="noise", n_draws=20))
    assert best.target.in_words() == "target error 0 % (0–0 %; noise, 20 draws)"


def test_an_objective_of_zero_makes_any_error_infinite():
    error = TargetError(
        value=1.0, scale=0.0, spread=0.1, source="noise", degrees=9.0, n_blocks=10
    )
    assert error.relative == math.inf
    assert "inf %" in error.in_words()


NONLINEAR = {
    "sparsity": lambda target: solved(target, 0.2 * po.Sparsity()),
    "max differences": lambda target: solved(
        target, 0.2 * po.MaxDifferenceRobustness(CHAIN, norm="l2")
    ),
    "a bound": lambda target: po.solve(
        1.0 * po.GradientMatching(target), subject_to=[ROBUST <= 0.05]
    ),
    "given sums": lambda target: solved(
        target, subject_to=[po.Completeness(np.arange(9.0))]
    ),
}


@pytest.mark.parametrize("case", NONLINEAR)
def test_elsewhere_standard_errors_are_those_of_leaving_out_a_block(case):
    solve = NONLINEAR[case]
    optima = []
    for block in BLOCKS:
        rest = DRAWN.values - (block - DRAWN.values) / (B - 1)
        optima.append(solve(rest).attributions)
    expected = np.sqrt((B - 1) * np.var(optima, axis=0))
    result = solve(DRAWN).standard_errors
    # each optimum is known to within the root of its gap
    np.testing.assert_allclose(result, expected, atol=2e-3 * expected.max())


def test_no_conic_program_is_solved_again_for_them():
    best = solved(DRAWN, 0.2 * po.Sparsity(), solver="CLARABEL")
    assert best.standard_errors is None


def test_points_of_a_sweep_have_those_that_take_no_solving():
    objective = po.GradientMatching(DRAWN) + ROBUST + po.Sparsity()
    curve = po.sweep(objective, {"sparsity": [0.0, 0.2]})
    smooth, sparse = (point.standard_errors for point in curve.optimized)
    assert smooth is not None
    assert sparse is None
