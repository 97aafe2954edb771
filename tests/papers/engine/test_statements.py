"""What is checked of every panel holds for true results, not for wrong ones."""

from __future__ import annotations

import dataclasses
import warnings
from functools import partial

import pytest
from reproduction import (
    FILE,
    read,
    solved,
    swept,
    with_baseline,
    with_baselines,
    with_optima,
)

from papers.engine import Invariant, statements


@pytest.mark.parametrize("statement", statements.EVERYWHERE)
def test_invariants_hold_for_a_true_sweep(statement):
    result = statement(solved())
    assert result.holds
    assert isinstance(result, Invariant)


def with_losses(factor=1.0, place=1, **losses):
    """A baseline with the losses of an optimum, times a factor, or other ones."""
    best = solved().trade_offs.optimized[place].losses
    scaled = {name: factor * value for name, value in best.items()}
    return with_baseline(solved(), losses=scaled | losses)


def loosened(best):
    bound = 0.999 * best.certificate.value
    loose = dataclasses.replace(best.certificate, lower_bound=bound)
    return dataclasses.replace(best, certificate=loose)


def turned(best):
    weight = 1 / best.weights["pairwise_robustness"]
    weights = best.weights | {"pairwise_robustness": weight}
    return dataclasses.replace(best, weights=weights)


def unsolved():
    missing = dataclasses.replace(solved().trade_offs, failures=("no answer",))
    return dataclasses.replace(solved(), trade_offs=missing)


ROBUSTNESS = partial(statements.falls_with_its_weight, loss="pairwise_robustness")
CHEAT = {"gradient_matching": 1.0, "pairwise_robustness": 0.0}
FAIL = [
    (statements.none_beats, lambda: with_losses(**CHEAT)),
    (statements.dominated, lambda: with_losses(**CHEAT)),
    (statements.none_beats, lambda: with_losses(0.999)),
    (statements.dominated, lambda: with_losses(0.999)),
    (statements.certified, lambda: with_optima(solved(), loosened)),
    (statements.certified, unsolved),
    (
        statements.certified,
        lambda: dataclasses.replace(solved(), redrawn=(unsolved(),)),
    ),
    (ROBUSTNESS, lambda: with_optima(solved(), turned)),
]


@pytest.mark.parametrize(("statement", "broken"), FAIL)
def test_a_statement_fails_of_what_is_wrong(statement, broken):
    assert statement(solved()).holds
    assert not statement(broken()).holds


def test_a_baseline_on_the_front_is_dominated_and_gives_nothing_away():
    on_front = with_losses()
    result = statements.dominated(on_front)
    assert result.holds
    assert result.value == pytest.approx(0.0, abs=1e-6)
    assert not statements.give_away(on_front).holds


def test_a_baseline_a_little_above_the_front_gives_that_away():
    best = solved().trade_offs.optimized[1].losses["gradient_matching"]
    result = statements.give_away(with_losses(gradient_matching=1.001 * best))
    assert result.holds
    assert result.value == pytest.approx(0.001, rel=0.01)


def test_what_is_given_away_is_a_statement_on_smoothgrad_and_lime_alone():
    best = solved().trade_offs.optimized[1]

    def on_front(one):
        losses = dict(best.losses)
        return dataclasses.replace(one, losses=losses) if one is gradient else one

    (gradient,) = solved().of_method("gradient")
    assert statements.give_away(with_baselines(solved(), on_front)).holds


def claiming_that(best, **claims):
    """The same point of a curve with other claims; attributions stay to be read."""
    deferred = vars(best)["attributions"]
    return dataclasses.replace(best, attributions=deferred, **claims)


def test_a_curve_that_is_not_that_of_its_attributions_fails():
    def claiming(best, factor):
        claim = dataclasses.replace(
            best.certificate,
            value=factor * best.certificate.value,
            lower_bound=factor * best.certificate.lower_bound,
        )
        losses = {name: factor * value for name, value in best.losses.items()}
        return claiming_that(best, losses=losses, certificate=claim)

    for factor, holds in ((1.0, True), (1.0001, False), (0.9999, False)):
        result = swept(read(FILE))  # its points have not been read
        first, *others = result.trade_offs.optimized
        optimized = (claiming(first, factor), *others)
        trade_offs = dataclasses.replace(result.trade_offs, optimized=optimized)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that losses count which are proved
            result = statements.certified(
                dataclasses.replace(result, trade_offs=trade_offs)
            )
        assert result.holds is holds


def test_what_a_curve_says_of_an_optimum_of_nothing_is_no_contradiction():
    """Where faithfulness alone counts F is zero, up to rounding of either."""
    result = swept(read(FILE.replace("[0.1, 1, 10]", "[0, 1]")))
    first, last = result.trade_offs.optimized
    losses = first.losses | {"gradient_matching": 1e-26}
    rounded = claiming_that(first, losses=losses)
    trade_offs = dataclasses.replace(result.trade_offs, optimized=(rounded, last))
    assert statements.certified(
        dataclasses.replace(result, trade_offs=trade_offs)
    ).holds


def test_a_baseline_without_loss_is_compared_with_no_optimum():
    """Where faithfulness alone counts the gradient is the optimum."""
    result = swept(read(FILE.replace("[0.1, 1, 10]", "[0, 1]")))
    assert statements.none_beats(result).holds
    assert statements.none_beats(result).value > 1e-3
    loose = with_optima(
        result,
        lambda best: dataclasses.replace(
            best, certificate=dataclasses.replace(best.certificate, lower_bound=1e-6)
        ),
    )
    assert not statements.none_beats(loose).holds


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
