"""What is checked of figures holds for true results, not for slightly wrong ones."""

from __future__ import annotations

import dataclasses
import warnings
from functools import partial

import numpy as np
import pytest
from reproduction import (
    FILE,
    permuted,
    read,
    solved,
    swept,
    with_baseline,
    with_baselines,
    with_optima,
)

from propopt.reproduce import cubic, laws
from propopt.reproduce.figures.fig2 import zero_where_theory_says
from propopt.reproduce.figures.fig3 import matches_where_no_worse
from propopt.reproduce.figures.fig4 import (
    shap_has_its_closed_form,
    shap_is_not_robust,
    shap_is_unfaithful,
)
from propopt.reproduce.findings import Claim, Invariant


SPARSE = FILE.replace("sweep:\n  pairwise_robustness: [0.1, 1, 10]", "sweep: WEIGHTS")
SPARSE = SPARSE.replace(
    "  pairwise_robustness: {", "  sparsity: 1\n  pairwise_robustness: {"
)
SHAP = FILE + "  - {method: shap, units: [output, gradient], algorithm: exact}\n"


@pytest.mark.parametrize("law", laws.EVERYWHERE)
def test_invariants_hold_for_a_true_sweep(law):
    found = law(solved())
    assert found.holds
    assert isinstance(found, Invariant)


def test_a_baseline_that_beats_the_optimum_fails():
    losses = {"gradient_matching": 1.0, "pairwise_robustness": 0.0}
    cheat = with_baseline(solved(), losses=losses)
    assert not laws.none_beats(cheat).holds
    assert not laws.dominated(cheat).holds


def test_a_baseline_just_below_the_front_fails():
    best = solved().trade_offs.optimized[1]
    below = {name: 0.999 * value for name, value in best.losses.items()}
    assert not laws.dominated(with_baseline(solved(), losses=below)).holds
    assert not laws.none_beats(with_baseline(solved(), losses=below)).holds


def test_a_baseline_on_the_front_is_dominated_and_gives_nothing_away():
    best = solved().trade_offs.optimized[1]
    on_front = with_baseline(solved(), losses=dict(best.losses))
    found = laws.dominated(on_front)
    assert found.holds
    assert found.value == pytest.approx(0.0, abs=1e-6)
    assert not laws.give_away(on_front).holds


def test_a_baseline_a_little_above_the_front_gives_that_away():
    best = solved().trade_offs.optimized[1]
    losses = dict(best.losses)
    losses["gradient_matching"] *= 1.001
    found = laws.give_away(with_baseline(solved(), losses=losses))
    assert found.holds
    assert found.value == pytest.approx(0.001, rel=0.01)


def test_what_is_given_away_is_a_statement_on_smoothgrad_and_lime_alone():
    best = solved().trade_offs.optimized[1]

    def on_front(one):
        losses = dict(best.losses)
        return dataclasses.replace(one, losses=losses) if one is gradient else one

    (gradient,) = solved().of_method("gradient")
    assert laws.give_away(with_baselines(solved(), on_front)).holds


def test_an_optimum_whose_bound_is_a_thousandth_off_fails():
    def loosened(best):
        loose = dataclasses.replace(
            best.certificate, lower_bound=0.999 * best.certificate.value
        )
        return dataclasses.replace(best, certificate=loose)

    assert not laws.certified(with_optima(solved(), loosened)).holds


def test_a_weight_that_was_not_solved_fails():
    missing = dataclasses.replace(solved().trade_offs, failures=("no answer",))
    broken = dataclasses.replace(solved(), trade_offs=missing)
    assert not laws.certified(broken).holds


def test_a_curve_that_is_not_that_of_its_attributions_fails():
    def claiming(best, factor):
        claim = dataclasses.replace(
            best.certificate,
            value=factor * best.certificate.value,
            lower_bound=factor * best.certificate.lower_bound,
        )
        losses = {name: factor * value for name, value in best.losses.items()}
        return dataclasses.replace(best, losses=losses, certificate=claim)

    for factor, holds in ((1.0, True), (1.0001, False), (0.9999, False)):
        found = swept(read(FILE))  # its points have not been read
        first, *others = found.trade_offs.optimized
        optimized = (claiming(first, factor), *others)
        trade_offs = dataclasses.replace(found.trade_offs, optimized=optimized)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that losses count which are proved
            found = laws.certified(dataclasses.replace(found, trade_offs=trade_offs))
        assert found.holds is holds


def test_what_a_curve_says_of_an_optimum_of_nothing_is_no_contradiction():
    """Where faithfulness alone counts F is zero, up to rounding of either."""
    found = swept(read(FILE.replace("[0.1, 1, 10]", "[0, 1]")))
    first, last = found.trade_offs.optimized
    losses = first.losses | {"gradient_matching": 1e-26}
    rounded = dataclasses.replace(first, losses=losses)
    trade_offs = dataclasses.replace(found.trade_offs, optimized=(rounded, last))
    assert laws.certified(dataclasses.replace(found, trade_offs=trade_offs)).holds


def test_each_draw_has_to_be_certified():
    missing = dataclasses.replace(solved().trade_offs, failures=("no answer",))
    broken = dataclasses.replace(solved(), trade_offs=missing)
    assert not laws.certified(dataclasses.replace(solved(), redrawn=(broken,))).holds


def test_a_baseline_without_loss_is_compared_with_no_optimum():
    """Where faithfulness alone counts the gradient is the optimum."""
    found = swept(read(FILE.replace("[0.1, 1, 10]", "[0, 1]")))
    assert laws.none_beats(found).holds
    assert laws.none_beats(found).value > 1e-3
    loose = with_optima(
        found,
        lambda best: dataclasses.replace(
            best, certificate=dataclasses.replace(best.certificate, lower_bound=1e-6)
        ),
    )
    assert not laws.none_beats(loose).holds


ROBUSTNESS = partial(laws.falls_with_its_weight, loss="pairwise_robustness")


def test_a_loss_that_falls_with_its_weight_passes():
    assert ROBUSTNESS(solved()).holds


def test_a_loss_that_rises_with_its_weight_fails():
    def turned(best):
        weight = 1 / best.weights["pairwise_robustness"]
        return dataclasses.replace(
            best, weights={"gradient_matching": 1.0, "pairwise_robustness": weight}
        )

    assert not ROBUSTNESS(with_optima(solved(), turned)).holds


def test_a_loss_that_rises_by_a_thousandth_fails():
    first, *_ = solved().trade_offs.optimized
    losses = {name: 1.001 * value for name, value in first.losses.items()}

    def raised(best):
        last = best.weights["pairwise_robustness"] == 10
        return dataclasses.replace(best, losses=losses) if last else best

    def kept(best):
        middle = best.weights["pairwise_robustness"] == 1
        return dataclasses.replace(best, losses=first.losses) if middle else best

    flat = with_optima(solved(), kept)
    assert ROBUSTNESS(flat).holds
    assert not ROBUSTNESS(with_optima(flat, raised)).holds


# x³


@pytest.mark.parametrize("law", cubic.SAMPLED)
def test_statements_on_the_cube_hold(law):
    found = law(solved(), difference="few points")
    assert found.holds
    assert isinstance(found, Claim)
    assert found.difference == "few points"


def exact_smoothgrad(δ_factor=1.0, text=FILE):
    """SmoothGrad without noise, of so many samples that there should be none."""
    found = solved(text)
    X = np.asarray(found.problem.points)

    def changed(one):
        if one.method != "smoothgrad":
            return one
        scale = δ_factor * one.parameters["scale"]
        parameters = one.parameters | {"n_samples": 10**9}
        rows = 3 * X**2 + 3 * scale**2
        return dataclasses.replace(one, attributions=rows, parameters=parameters)

    return with_baselines(found, changed)


def test_a_smoothgrad_whose_shift_is_a_thousandth_off_fails():
    assert cubic.sampled_faithfulness(exact_smoothgrad()).holds
    assert not cubic.sampled_faithfulness(exact_smoothgrad(1.001)).holds


def test_a_robustness_that_sees_a_constant_fails():
    """SmoothGrad's δ² are the same at all points, and K⁻¹ itself sees that."""
    kernel = "  kernel_robustness: {lengthscale: 1, jitter: 1e-3MEAN}"
    old = "  pairwise_robustness: {graph: {kind: gaussian, lengthscale: 1}}"
    for mean, holds in ("", True), (", mean: none", False):
        text = FILE.replace(old, kernel.replace("MEAN", mean))
        text = text.replace("pairwise_robustness", "kernel_robustness")
        assert cubic.sampled_robustness(exact_smoothgrad(text=text)).holds is holds


def test_a_smoothgrad_whose_slope_is_a_thousandth_off_fails():
    def steeper(one):
        if one.method != "smoothgrad":
            return one
        return dataclasses.replace(one, attributions=1.001 * one.attributions)

    assert cubic.sampled_robustness(exact_smoothgrad()).holds
    wrong = with_baselines(exact_smoothgrad(), steeper)
    assert not cubic.sampled_robustness(wrong).holds


@pytest.mark.parametrize("law", cubic.SAMPLED)
def test_a_smoothgrad_of_other_points_fails(law):
    assert law(exact_smoothgrad()).holds
    assert not law(permuted(exact_smoothgrad())).holds


# sparsity


def sparse(*weights):
    return solved(SPARSE.replace("WEIGHTS", f"{{sparsity: {list(weights)}}}"))


def test_attributions_vanish_at_twice_the_largest_gradient():
    """max |3x²| over [−5, 5] is 75."""
    found = zero_where_theory_says(sparse(0.01, 149.0, 150.0))
    assert found.holds
    assert found.note == "1 of 3 weights"


def test_attributions_that_are_not_zero_where_they_should_be_fail():
    def larger(best):
        weights = best.weights | {"sparsity": 1.01 * best.weights["sparsity"]}
        return dataclasses.replace(best, weights=weights)

    found = sparse(0.01, 149.0, 150.0)
    assert not zero_where_theory_says(with_optima(found, larger)).holds


def test_weights_that_are_too_small_to_say_anything_fail():
    assert not zero_where_theory_says(sparse(0.01, 149.0)).holds


# where baselines are no worse


def test_a_baseline_below_the_optimum_is_no_match():
    assert matches_where_no_worse(solved()).holds
    best = solved().trade_offs.optimized[1]
    losses = {name: 0.999 * value for name, value in best.losses.items()}
    assert not matches_where_no_worse(with_baseline(solved(), losses=losses)).holds


def test_there_is_nothing_to_match_where_no_baseline_comes_near():
    def far(one):
        return dataclasses.replace(
            one, losses={name: 2 * value + 1e6 for name, value in one.losses.items()}
        )

    found = matches_where_no_worse(with_baselines(solved(), far))
    assert found.difference == "no baseline comes within 10% of the optimum"
    assert str(found.verdict) == "differs"
    best = solved().trade_offs.optimized[1]
    near = with_baseline(solved(), losses=dict(best.losses))
    assert str(matches_where_no_worse(near).verdict) == "confirmed"


# SHAP


def shap_scaled(factor, **changes):
    def changed(one):
        if one.parameters.get("units") != "output":
            return one
        return dataclasses.replace(
            one, attributions=factor * one.attributions, **changes
        )

    return with_baselines(solved(SHAP), changed)


def test_shap_of_a_cube_has_its_closed_form():
    assert shap_has_its_closed_form(solved(SHAP)).holds


def test_shap_that_is_a_thousandth_off_or_permuted_fails():
    assert not shap_has_its_closed_form(shap_scaled(1.001)).holds
    assert not shap_has_its_closed_form(shap_scaled(-1.0)).holds


SHAP_LAWS = pytest.mark.parametrize(
    ("law", "loss"),
    [
        (shap_is_unfaithful, "gradient_matching"),
        (shap_is_not_robust, "pairwise_robustness"),
    ],
)


@SHAP_LAWS
def test_shap_that_is_just_on_the_chart_does_not_lie_off_it(law, loss):
    found = law(solved(SHAP))
    assert found.holds
    (shap,) = (
        b for b in solved(SHAP).of_method("shap") if b.parameters["units"] == "output"
    )
    edge = shap.losses[loss] / found.value
    for factor, holds in ((1.001, True), (0.999, False)):
        moved = shap_scaled(1.0, losses=shap.losses | {loss: factor * edge})
        assert law(moved).holds is holds


@SHAP_LAWS
def test_the_chart_holds_every_optimum(law, loss):
    """However large the weight, or small: the front ends at constants and gradients."""
    text = SHAP.replace("[0.1, 1, 10]", "[1e-6, 1, 1e6]")
    found = swept(read(text))
    alone = with_baselines(
        found,
        lambda b: (
            dataclasses.replace(b, losses=dict.fromkeys(b.losses, 0.0))
            if b.parameters.get("units") != "output"
            else dataclasses.replace(b, losses=dict.fromkeys(b.losses, 1.0))
        ),
    )
    end = 1.0 / law(alone).value
    largest = max(best.losses[loss] for best in found.trade_offs.optimized)
    assert largest == pytest.approx(end, rel=1e-3)
    assert largest <= end * (1 + 1e-9)
