"""Gradients of losses: those of squared ones, and a refusal of the others."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LOSSES, SHAPE, G

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.losses.maps import Squared


SMOOTH = {n: loss for n, loss in LOSSES.items() if isinstance(loss.penalty, Squared)}
KINKED = {n: loss for n, loss in LOSSES.items() if n not in SMOOTH}
each_smooth = pytest.mark.parametrize("loss", SMOOTH.values(), ids=SMOOTH)
each_kinked = pytest.mark.parametrize("loss", KINKED.values(), ids=KINKED)


def differences(loss, W):
    """Central differences: exact for a quadratic, but for rounding."""
    step = 0.5
    slopes = np.empty(SHAPE)
    for place in np.ndindex(*SHAPE):
        move = np.zeros(SHAPE)
        move[place] = step
        slopes[place] = (loss.value(W + move) - loss.value(W - move)) / (2 * step)
    return slopes


@each_smooth
def test_a_gradient_is_that_of_differences(loss, rng):
    W = rng.normal(size=SHAPE)
    result, expected = loss.gradient(W), differences(loss, W)
    rounding = 1e-14 * loss.value(W) + 1e-15
    largest = np.abs(expected).max()
    np.testing.assert_allclose(result, expected, atol=1e-8 * largest + rounding)


@each_kinked
def test_a_loss_with_kinks_has_no_gradient_and_says_what_it_has(loss):
    with pytest.raises(Refused, match=rf"^{loss.name} has no gradient.*penalty\.prox"):
        loss.gradient(G)


def test_both_kinds_are_in_the_catalogue():
    assert len(SMOOTH) > 10
    assert {type(loss.penalty).__name__ for loss in KINKED.values()} == {
        "Absolute",
        "GroupMax",
    }


@each_kinked
def test_the_operator_that_it_names_is_there(loss):
    """prox(V) = argmin step·φ(R) + ½‖R − V‖² costs less than V and than zero."""
    V = loss.residual(G + 0.1)
    R = loss.penalty.prox(V, 0.3)

    def cost(R):
        return 0.3 * loss.penalty.value(R) + 0.5 * float(np.vdot(R - V, R - V))

    assert cost(R) <= min(cost(V), cost(0.0 * V), cost(0.99 * R), cost(1.01 * R))


@pytest.mark.parametrize("W", [np.zeros((3, 4)), np.full(SHAPE, np.nan)])
def test_attributions_are_checked(W):
    with pytest.raises(InvalidInput, match="gradient_matching"):
        po.GradientMatching(G).gradient(W)
