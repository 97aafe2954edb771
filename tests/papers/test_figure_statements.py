"""What is checked of figures holds for true results, not for slightly wrong ones."""

from __future__ import annotations

import dataclasses

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

from papers.engine import Claim
from papers.properties import cubic
from papers.properties.fig2 import zero_where_theory_says
from papers.properties.fig3 import matches_where_no_worse
from papers.properties.fig4 import (
    shap_has_its_closed_form,
    shap_is_not_robust,
    shap_is_unfaithful,
)


SPARSE = FILE.replace("sweep:\n  pairwise_robustness: [0.1, 1, 10]", "sweep: WEIGHTS")
SPARSE = SPARSE.replace(
    "  pairwise_robustness: {", "  sparsity: 1\n  pairwise_robustness: {"
)
SHAP = FILE + "  - {method: shap, units: [output, gradient], algorithm: exact}\n"


# x³


@pytest.mark.parametrize("statement", cubic.SAMPLED)
def test_statements_on_the_cube_hold(statement):
    result = statement(solved(), difference="few points")
    assert result.holds
    assert isinstance(result, Claim)
    assert result.difference == "few points"


def exact_smoothgrad(δ_factor=1.0, text=FILE):
    """SmoothGrad without noise, of so many samples that there should be none."""
    result = solved(text)
    X = np.asarray(result.problem.points)

    def changed(one):
        if one.method != "smoothgrad":
            return one
        scale = δ_factor * one.parameters["scale"]
        parameters = one.parameters | {"n_samples": 10**9}
        rows = 3 * X**2 + 3 * scale**2
        return dataclasses.replace(one, attributions=rows, parameters=parameters)

    return with_baselines(result, changed)


def steeper(one):
    if one.method != "smoothgrad":
        return one
    return dataclasses.replace(one, attributions=1.001 * one.attributions)


def test_a_robustness_that_sees_a_constant_fails():
    """SmoothGrad's δ² are the same at all points, and K⁻¹ itself sees that."""
    kernel = "  kernel_robustness: {lengthscale: 1, jitter: 1e-3MEAN}"
    old = "  pairwise_robustness: {graph: {kind: gaussian, lengthscale: 1}}"
    for mean, holds in ("", True), (", mean: none", False):
        text = FILE.replace(old, kernel.replace("MEAN", mean))
        text = text.replace("pairwise_robustness", "kernel_robustness")
        assert cubic.sampled_robustness(exact_smoothgrad(text=text)).holds is holds


# sparsity


def sparse(*weights):
    return solved(SPARSE.replace("WEIGHTS", f"{{sparsity: {list(weights)}}}"))


def test_attributions_vanish_at_twice_the_largest_gradient():
    """max |3x²| over [−5, 5] is 75."""
    result = zero_where_theory_says(sparse(0.01, 149.0, 150.0))
    assert result.holds
    assert result.note == "1 of 3 weights"


# where baselines are no worse


def larger(best):
    weights = best.weights | {"sparsity": 1.01 * best.weights["sparsity"]}
    return dataclasses.replace(best, weights=weights)


def below():
    best = solved().trade_offs.optimized[1]
    losses = {name: 0.999 * value for name, value in best.losses.items()}
    return with_baseline(solved(), losses=losses)


def test_there_is_nothing_to_match_where_no_baseline_comes_near():
    def far(one):
        return dataclasses.replace(
            one, losses={name: 2 * value + 1e6 for name, value in one.losses.items()}
        )

    result = matches_where_no_worse(with_baselines(solved(), far))
    assert result.difference == "no baseline comes within 10% of the optimum"
    assert str(result.verdict) == "differs"
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


FAIL = [
    (cubic.sampled_faithfulness, exact_smoothgrad, lambda: exact_smoothgrad(1.001)),
    (
        cubic.sampled_robustness,
        exact_smoothgrad,
        lambda: with_baselines(exact_smoothgrad(), steeper),
    ),
    *(
        (statement, exact_smoothgrad, lambda: permuted(exact_smoothgrad()))
        for statement in cubic.SAMPLED
    ),
    (
        zero_where_theory_says,
        lambda: sparse(0.01, 149.0, 150.0),
        lambda: with_optima(sparse(0.01, 149.0, 150.0), larger),
    ),
    (
        zero_where_theory_says,
        lambda: sparse(0.01, 149.0, 150.0),
        lambda: sparse(0.01, 149.0),  # too small to say anything
    ),
    (matches_where_no_worse, solved, below),
    (shap_has_its_closed_form, lambda: solved(SHAP), lambda: shap_scaled(1.001)),
    (shap_has_its_closed_form, lambda: solved(SHAP), lambda: shap_scaled(-1.0)),
]


@pytest.mark.parametrize(("statement", "true", "broken"), FAIL)
def test_a_statement_fails_of_what_is_a_thousandth_off_or_permuted(
    statement, true, broken
):
    assert statement(true()).holds
    assert not statement(broken()).holds


SHAP_STATEMENTS = pytest.mark.parametrize(
    ("statement", "loss"),
    [
        (shap_is_unfaithful, "gradient_matching"),
        (shap_is_not_robust, "pairwise_robustness"),
    ],
)


@SHAP_STATEMENTS
def test_shap_that_is_just_on_the_chart_does_not_lie_off_it(statement, loss):
    result = statement(solved(SHAP))
    assert result.holds
    (shap,) = (
        b for b in solved(SHAP).of_method("shap") if b.parameters["units"] == "output"
    )
    edge = shap.losses[loss] / result.value
    for factor, holds in ((1.001, True), (0.999, False)):
        moved = shap_scaled(1.0, losses=shap.losses | {loss: factor * edge})
        assert statement(moved).holds is holds


@SHAP_STATEMENTS
def test_the_chart_holds_every_optimum(statement, loss):
    """However large the weight, or small: the front ends at constants and gradients."""
    text = SHAP.replace("[0.1, 1, 10]", "[1e-6, 1, 1e6]")
    result = swept(read(text))
    alone = with_baselines(
        result,
        lambda b: (
            dataclasses.replace(b, losses=dict.fromkeys(b.losses, 0.0))
            if b.parameters.get("units") != "output"
            else dataclasses.replace(b, losses=dict.fromkeys(b.losses, 1.0))
        ),
    )
    end = 1.0 / statement(alone).value
    largest = max(best.losses[loss] for best in result.trade_offs.optimized)
    assert largest == pytest.approx(end, rel=1e-3)
    assert largest <= end * (1 + 1e-9)
