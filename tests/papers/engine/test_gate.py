"""The gate sees each error, tells crashes apart, and leaves everything as it was."""

import dataclasses
import sys
from functools import cache, cached_property

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from reproduction import solved
from rich.console import Console

from papers import PAPERS
from papers.__main__ import main
from papers.engine import Claim, Invariant, Study
from papers.engine.figure import PaperFigure
from papers.engine.gate import Gate, Mistake, clear_caches, panels, try_gate
from papers.engine.perturbed import perturbed
from papers.gates import GATES, figures_in_turn


HERE = sys.modules[__name__]


def number():
    return 2.0


def reciprocal():
    return 1.0 / number()


def unused():
    return 0.0


@cache
def cached_number():
    return number()


class Box:
    """What is a property, and what is kept."""

    @property
    def one(self):
        return 1.0

    @cached_property
    def two(self):
        return 2.0

    @classmethod
    def three(cls):
        return 3.0


def made(*statements, measure=reciprocal):
    study = Study(
        column="panel",
        measure=measure,
        statements=statements,
        charts=lambda _: (),
        numbers=lambda x: pd.DataFrame({"name": ["x"], "number": [x]}),
    )
    settings = {"title": "A", "about": "B", "draw": lambda _: Figure()}
    return PaperFigure(panels=(study, study), **settings)


def is_half(x):
    return Invariant(statement="a half", value=abs(x - 0.5), sense="<=", limit=1e-9)


def is_small(x):
    return Claim(statement="small", value=x, sense="<=", limit=0.75)


def trial(mistake, *statements, values=None, name=None, **settings):
    gate = Gate(mistakes=(mistake,), thinned={"tiny": panels(0)}, **settings)
    figures = {"tiny": lambda: made(*statements)}
    found = list(try_gate("small", gate, figures, values or {}, Console(quiet=True)))
    return next(one for one in found if one.mistake == (name or mistake.name))


def wrong(change, name="number"):
    return Mistake(name="wrong", places=((HERE, name),), change=change)


unseen = wrong(lambda x: x)
VALUES = {("tiny", "panel", "x", "number"): 0.5}


@pytest.mark.parametrize(
    ("statements", "values", "factor", "told"),
    [
        ((is_half,), None, 1.001, "a half: FAIL"),
        ((is_small,), None, 0.5, "small: refuted, 0 of 1"),
        ((is_small,), VALUES, 1.01, "tiny, panel: small: value: 0.49505, on record"),
        ((is_small,), VALUES, 1.0001, "NOT SEEN"),
        ((is_small,), None, 1.01, "NOT SEEN"),
    ],
)
def test_an_error_is_seen_by_a_check_a_statement_or_a_value(
    statements, values, factor, told
):
    result = trial(wrong(lambda x: factor * x), *statements, values=values)
    assert told in result.in_words()
    assert result.passes is ("NOT" not in told)
    assert number() == 2.0


def is_blind(x):
    return Claim(statement="blind", value=0.0 * x + 0.5, sense="<=", limit=0.75)


def test_a_blind_statement_is_found_among_others():
    """By changes of what was measured: the others see the error, and it does not."""
    both = is_half, is_blind
    assert trial(wrong(lambda x: 1.1 * x), *both).passes
    result = trial(wrong(lambda x: 1.1 * x), *both, name="what turns 'blind'")
    assert not result.passes
    assert "NOT SEEN" in result.in_words()
    apart = {("tiny", "blind"): "of nothing"}
    assert trial(unseen, *both, name="what turns 'blind'", apart=apart).passes
    measured = {"a": np.array([1.0, 3.0]), "b": (is_blind(2.0), "words", True)}
    told = dict(perturbed(measured))
    assert told["all: zero"]["b"][0].value == told["all: zero"]["a"].max() == 0.0
    assert told["a: reversed"]["a"].tolist() == [3.0, 1.0]
    assert told["a: reversed"]["b"] is measured["b"]


def test_sweeps_are_changed_in_every_draw():
    """The median of draws decides, which one changed draw need not turn."""
    own = solved()
    both = dataclasses.replace(own, redrawn=(own,))
    told = dict(perturbed(both))
    for place, name in enumerate(("baselines", "optimized")):
        (right, *_) = getattr(own.trade_offs, name)
        for draw in told[f"losses of {name}: × 2"].draws:
            (wrong, *_) = getattr(draw.trade_offs, name)
            assert wrong.losses == {k: 2.0 * x for k, x in right.losses.items()}
            other = ("optimized", "baselines")[place]
            assert getattr(draw.trade_offs, other) is getattr(own.trade_offs, other)


def test_a_crash_is_no_catch_and_what_is_not_called_needs_none():
    result = trial(wrong(lambda _: 0.0), is_half)
    assert "CRASHED: ZeroDivisionError" in result.in_words()
    assert not result.passes
    assert trial(wrong(lambda _: 1.0, name="unused"), is_half).passes
    result = trial(wrong(lambda x: x), is_half, excused={("tiny", "wrong"): "the same"})
    assert result.passes
    assert "without effect: the same" in result.in_words()
    # what fails without any error is no measure of errors
    found = list(
        try_gate(
            "small",
            Gate(
                mistakes=(), thinned={"tiny": panels(0)}, always=(wrong(lambda _: 4.0),)
            ),
            {"tiny": lambda: made(is_half)},
            {},
            Console(quiet=True),
        )
    )
    assert [one.passes for one in found] == [False]


def test_properties_and_class_methods_are_changed_and_restored():
    places = tuple((Box, name) for name in ("one", "two", "three"))
    with Mistake(name="wrong", places=places, change=lambda x: -x).made() as calls:
        box = Box()
        assert (box.one, box.two, Box.three()) == (-1.0, -2.0, -3.0)
    assert calls == ["one", "two", "three"]
    box = Box()
    assert (box.one, box.two, Box.three()) == (1.0, 2.0, 3.0)


def test_what_figures_keep_is_forgotten(monkeypatch):
    module = sys.modules["papers.gates"]
    monkeypatch.setattr(module, "kept", cached_number, raising=False)
    cached_number()
    clear_caches()
    assert cached_number.cache_info().currsize == 0


def test_every_figure_has_its_turn():
    names = list(GATES)
    quarters = [figures_in_turn(names, k, 4) for k in range(4)]
    turns = [(name, f) for part in quarters for name, own in part for f in own]
    whole = [(name, figure) for name in names for figure in GATES[name].thinned]
    assert sorted(turns) == sorted(whole)
    for name, gate in GATES.items():
        every = set(PAPERS[name].figures)
        assert set(gate.thinned) | set(gate.left_out) >= every
        known = {one.name for one in gate.mistakes}
        assert {one for _, one in gate.excused} <= known


def test_the_command_tries_the_figures_of_a_turn(capsys, monkeypatch):
    assert main(["gate", "linear-lime", "--turn", "4/8", "-v"]) == 0
    told = capsys.readouterr().out
    assert "linear-lime fig6: limits × 1.001: seen: " in told
    assert " errors seen, 0 not." in told
    blind = Gate(
        mistakes=(wrong(lambda x: x + 0.0, name="unused"),),
        thinned={"fig3": lambda _: made(lambda _: is_half(0.5 + unused()))},
    )
    monkeypatch.setitem(GATES, "linear-lime", blind)
    assert main(["gate", "linear-lime"]) == 4
    assert "NOT SEEN" in capsys.readouterr().out
    assert main(["gate", "linear-lim"]) == 2
    assert "did you mean 'linear-lime'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["gate", "--turn", "5"])
