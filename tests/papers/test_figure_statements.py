"""Statements on figures: inductive explanations, δ, and where the paper errs."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from reproduction import (
    INDUCTIVE,
    read,
    solved,
    with_losses,
)

from papers.properties import errors, induction, limits, trends
from papers.properties.paper import PROPERTIES


PROBLEMS = Path(errors.__file__).with_name("problems")


# ---- inductive explanations


def later():
    return solved(INDUCTIVE)


def with_excesses(rule, excesses):
    """The same with these excesses over the optimum, by the count."""
    table = induction.excesses(later()).set_index(["rule", "count"])["excess"]
    return with_losses(
        later(), rule, lambda count: (1 + excesses[count]) / (1 + table[rule, count])
    )


COUNTS = (3, 10, 20, 40, 60)


@cache
def drawn(*gaps):
    """The last excess in each of several draws, the first being the file's own."""
    first, *others = (
        with_excesses("subset", {3: 1.0, 10: 0.5, 20: 0.1, 40: 0.05, 60: gap})
        for gap in gaps
    )
    return replace(first, redrawn=tuple(others))


def test_statements_are_decided_by_medians_and_invariants_by_every_draw():
    result = induction.falls(drawn(0.5, 0.002, 0.004))
    assert result.value == pytest.approx(0.5)
    assert result.holds
    assert result.note.startswith("0.5 to 10 over 3 draws")
    assert induction.approaches(drawn(0.004, 0.6)).value == pytest.approx(0.004)
    assert not induction.approaches(drawn(0.6, 0.002)).holds
    below = with_excesses("subset", dict.fromkeys(COUNTS, -0.001))
    assert not induction.never_below(replace(later(), redrawn=(below,))).holds
    # curves are drawn with the range of all draws
    curves = PROPERTIES.figures["fig5"]().panels[0].pictures(drawn(0.5, 0.002, 0.004))
    counts, gaps, least, most = curves["subset"]
    assert counts.tolist() == list(COUNTS)
    assert (gaps[-1], least[-1], most[-1]) == pytest.approx((0.5, 0.002, 0.5))


# ---- what δ controls, and where the paper errs


NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(60)


@pytest.mark.parametrize("function", sorted(limits.LIMITS))
@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0])
def test_limits_are_means_of_the_gradient(function, scale):
    """By quadrature of E ∇f(x + δε), where ε is standard gaussian."""
    file = f"fig1_{function}_d1.yaml"
    problem = read((PROBLEMS / file).read_text(encoding="utf-8"))
    X = np.asarray(problem.points)[::9]
    gradients = [problem.function.gradient(X + scale * node) for node in NODES]
    means = np.tensordot(NODE_WEIGHTS, gradients, 1) / NODE_WEIGHTS.sum()
    assert limits.LIMITS[function](X, scale) == pytest.approx(means, rel=1e-9, abs=1e-9)


def test_what_delta_controls_depends_on_the_function():
    """The limits of sin and exp are exp(∓δ²/2) times the gradient, and x³ has 3δ²."""
    kinds = trends.robustness_is_not_controlled, trends.smoothness_is_not_optimized
    for kind in kinds:
        assert kind(trends.Trends("sine")).value == pytest.approx(np.exp(-9))
        assert kind(trends.Trends("exponential")).value == pytest.approx(np.exp(9))
        assert kind(trends.Trends("cubic")).value == pytest.approx(1)
        assert not kind(trends.Trends("sine")).holds
        assert kind(trends.Trends("cubic")).holds
    result = trends.changes_with_formalization(trends.every_trend())
    assert result.note == "sin x, x + sin 3x, x²/10 + sin 3x"


def test_three_points_refute_a_step_of_the_proof_of_proposition_1():
    """Exactly: K(1, 0, 1) = 1, and neither 0 nor 1 is within 1/2 and 2/3."""
    own = errors.three_points()
    assert (own.K @ [1.0, 0.0, 1.0] == 1.0).all()
    assert own.K.sum(axis=1).tolist() == [1.5, 2.0, 1.5]
    assert np.linalg.det(own.K) == pytest.approx(0.5)
    result = errors.bounds_hold(own)
    assert result.value == 1.0
    assert str(result.verdict) == "refuted"
    assert errors.bounds_hold(errors.RowSums(np.eye(3))).holds
    assert errors.limit_holds(own).holds


def test_proposition_1_is_off_by_two():
    ratio = errors.energies()
    assert str(errors.factor_is_one(ratio).verdict) == "misprint"
    assert errors.factor_is_two(ratio).holds
    assert not errors.factor_is_two(1.001 * ratio).holds
