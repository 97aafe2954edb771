"""What is checked of inductive explanations, and how each of it can fail."""

from __future__ import annotations

import dataclasses
from functools import cache, partial

import numpy as np
import pytest
from reproduction import INDUCTIVE, read, solved, swept, with_baselines, with_losses

from papers.engine import statements
from papers.engine.findings import Claim, Invariant
from papers.engine.panels import Panel
from papers.properties import held_out, induction
from papers.properties.paper import PROPERTIES


HOLD = [
    induction.never_below,
    induction.own_gradients_are_faithful,
    induction.reaches_optimum,
    partial(induction.never_rises, rule="random"),
    partial(induction.never_rises, rule="greedy"),
    partial(induction.falls, rule="greedy"),
    partial(induction.falls_exponentially, rule="greedy"),
]


def later():
    return solved(INDUCTIVE)


def with_excesses(rule, excesses):
    """The same with these excesses over the optimum, by the count."""
    table = induction.excesses(later()).set_index(["rule", "count"])["excess"]
    return with_losses(
        later(), rule, lambda count: (1 + excesses[count]) / (1 + table[rule, count])
    )


@pytest.mark.parametrize("statement", HOLD)
def test_statements_on_inductive_explanations_hold(statement):
    assert statement(later()).holds


def test_excesses_are_those_of_the_objective():
    table = induction.excesses(later())
    assert len(table) == 20
    (best,) = later().trade_offs.optimized
    made = later().of_method("inductive")
    for result, given in zip(made, table["excess"], strict=True):
        assert given == pytest.approx(result.objective / best.objective - 1)


def test_an_optimum_that_is_missed_by_a_thousandth_fails():
    cheat = with_losses(later(), "random", lambda _: 1.001)
    result = induction.reaches_optimum(cheat)
    assert result.value == pytest.approx(0.001, rel=0.01)
    assert not result.holds


COUNTS = (3, 10, 20, 40, 60)
EXPONENTIAL = [5 * np.exp(-0.1 * count) for count in COUNTS]
POWER = [5 * count**-2.0 for count in COUNTS]
EXCESSES = [  # by the count
    (induction.never_below, "greedy", [1.0, 0.5, 0.1, -0.001, 0.0], False),
    *(
        (statement, "greedy", [1.0, 0.5, 0.1, gap, 0.0], False)
        for gap in (0.1001, 5.0)
        for statement in (
            partial(induction.never_rises, rule="greedy"),
            partial(induction.falls, rule="greedy"),
        )
    ),
    (induction.falls, "subset", POWER, True),
    (induction.falls_exponentially, "subset", POWER, False),
    (induction.falls_exponentially, "subset", EXPONENTIAL, True),
    (induction.falls, "subset", EXPONENTIAL[::-1], False),
    (induction.vanishes, "subset", [1.0, 0.5, 0.1, 0.05, 0.00999], True),
    (induction.vanishes, "subset", [1.0, 0.5, 0.1, 0.05, 0.01001], False),
]


@pytest.mark.parametrize(("statement", "rule", "gaps", "holds"), EXCESSES)
def test_excesses_decide_what_holds(statement, rule, gaps, holds):
    result = with_excesses(rule, dict(zip(COUNTS, gaps, strict=True)))
    assert statement(result).holds is holds


def test_own_gradients_that_are_less_faithful_fail():
    """What is without own gradients is given the losses of what is with them."""
    swapped = {}
    for one in later().of_method("inductive"):
        if one.parameters["rule"] == "subset":
            own = one.parameters["own_gradients"]
            swapped[not own, one.parameters["n_inducing"]] = one.losses

    def changed(one):
        if one.parameters.get("rule") != "subset":
            return one
        key = one.parameters["own_gradients"], one.parameters["n_inducing"]
        return dataclasses.replace(one, losses=swapped[key])

    wrong = with_baselines(later(), changed)
    assert not induction.own_gradients_are_faithful(wrong).holds


# several draws


@cache
def drawn(*gaps):
    """The last excess in each of several draws, the first being the file's own."""
    first, *others = (
        with_excesses("subset", {3: 1.0, 10: 0.5, 20: 0.1, 40: 0.05, 60: gap})
        for gap in gaps
    )
    return dataclasses.replace(first, redrawn=tuple(others))


def test_a_statement_is_decided_by_the_median_of_its_draws():
    result = induction.vanishes(drawn(0.5, 0.002, 0.004))
    assert result.value == pytest.approx(0.004)
    assert result.holds
    assert result.note == "0.002 to 0.5 over 3 draws"
    assert not induction.vanishes(drawn(0.5, 0.002, 0.4)).holds


def test_an_invariant_has_to_hold_in_every_draw():
    below = with_excesses("subset", dict.fromkeys(COUNTS, -0.001))
    result = dataclasses.replace(later(), redrawn=(below,))
    assert not induction.never_below(result).holds
    assert induction.never_below(later()).holds


def test_a_panel_is_drawn_anew_for_each_seed(tmp_path):
    file = tmp_path / "later.yaml"
    file.write_text(INDUCTIVE, encoding="utf-8")
    observed = []

    def statement(result):
        observed.extend(np.asarray(one.problem.points) for one in result.draws)
        return induction.falls(result)

    plain = Panel(column="x³", row="", problem=file, statements=(statement,))
    result = dataclasses.replace(plain, seeds=(1, 0, 2)).run().findings[0]
    assert result.note.endswith("over 4 draws")
    first, other, same, another = observed
    np.testing.assert_array_equal(first, same)
    assert not np.isclose(first, other).any()
    assert not np.isclose(other, another).any()


def test_curves_are_drawn_with_the_range_of_all_draws():
    curves = PROPERTIES.figures["fig5"]().panels[0].pictures(drawn(0.5, 0.002, 0.004))
    counts, gaps, least, most = curves["subset"]
    assert counts.tolist() == list(COUNTS)
    assert (gaps[-1], least[-1], most[-1]) == pytest.approx((0.5, 0.002, 0.5))


# the statements of the paper, apart from what theory promises


@pytest.mark.parametrize(
    ("row", "n_seeds", "is_papers"),
    [("at other points", 4, True), ("among the points", 0, False)],
)
def test_figure_5_at_other_points_is_the_papers_own_protocol(row, n_seeds, is_papers):
    one = next(
        panel for panel in PROPERTIES.figures["fig5"]().panels if panel.row == row
    )
    checked = [s for s in one.statements if "farthest" not in str(s)]
    result = [statement(later()) for statement in checked]
    claims = [finding for finding in result if isinstance(finding, Claim)]
    assert len(one.seeds) == n_seeds
    assert all((finding.difference == "") is is_papers for finding in claims)
    assert {type(finding) for finding in result} == {Claim, Invariant}


# held-out images


@cache
def held_out_digits():
    return swept(
        read(PROPERTIES.figures["fig6"]().panels[1].problem.read_text(encoding="utf-8"))
    )


MAPS = (
    held_out.is_smooth,
    partial(held_out.inductive_loss_falls, loss="smoothness"),
    partial(held_out.inductive_loss_falls, loss="kernel_robustness"),
)


@pytest.mark.parametrize("statement", MAPS)
def test_statements_on_held_out_maps_hold_in_another_set_up(statement):
    result = statement(held_out_digits())
    assert result.holds
    assert "digits" in result.difference


def test_inductive_maps_do_not_beat_smoothgrad_where_little_robustness_is_asked():
    result = held_out.beats_smoothgrad(held_out_digits())
    assert not result.holds
    assert result.note == "λ_r = 0.01, λ_s = 0; less under 21 of 25"
    cheap = with_losses(held_out_digits(), "all", lambda _: 0.3)
    assert held_out.beats_smoothgrad(cheap).holds
    assert not statements.none_beats(cheap).holds


def test_maps_that_are_rougher_than_the_gradient_by_a_thousandth_fail():
    result = held_out.is_smooth(held_out_digits())
    edge = 1 / result.value
    for factor, holds in ((0.999, True), (1.001, False)):
        rough = with_losses(held_out_digits(), "all", lambda _, f=factor: f * edge)
        assert held_out.is_smooth(rough).holds is holds


@pytest.mark.parametrize("statement", MAPS[1:])
def test_losses_of_maps_under_other_weights_fail(statement):
    """Each explanation is given the losses of the next."""
    made = held_out_digits().of_method("inductive")
    names = [
        (one.weights["kernel_robustness"], one.weights["smoothness"]) for one in made
    ]
    losses = dict(zip(names, [one.losses for one in reversed(made)], strict=True))

    def changed(one):
        if one.method != "inductive":
            return one
        key = one.weights["kernel_robustness"], one.weights["smoothness"]
        return dataclasses.replace(one, losses=losses[key])

    assert not statement(with_baselines(held_out_digits(), changed)).holds
