"""Figures of the paper on LIME for texts: what it states holds, and can fail."""

from __future__ import annotations

import dataclasses
from functools import cache, partial
from io import BytesIO

import numpy as np
import pytest

from propopt.papers import PAPERS
from propopt.papers.text_lime import trees
from propopt.reproduce.tally import FigureReport


PAPER = PAPERS["text-lime"]
QUICK = ("fig6", "fig13", "fig14")
EVERY = [
    pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow)
    for name in PAPER.figures
]


@pytest.mark.parametrize("name", EVERY)
def test_a_figure_has_the_verdicts_on_record_and_is_drawn(name):
    """Each |z| ≤ 5 is a false alarm once in 400,000 (100 runs), 12,000 (20 runs)."""
    made, record = PAPER.figures[name](), PAPER.record
    results = tuple(one.run() for one in made.panels)
    report = FigureReport(
        name=name, figure=made, results=results, seconds=0.0, record=record
    )
    assert [f for _, f in report.findings if str(f.verdict) == "FAIL"] == []
    known = {key for key in record if key[0] == name}
    assert {(name, c.text, c.difference) for c in report.claims} == known
    assert report.changed == []
    assert [warning for one in results for warning in one.warnings] == []
    picture = BytesIO()
    drawing = made.draw(results)
    drawing.set_layout_engine("none")
    drawing.savefig(picture, format="svg")
    assert picture.tell() > 10_000


# each statement fails where what was measured is slightly wrong


@cache
def measured(make, *arguments):
    return make(*arguments)


def scaled(field, factor=1.001):
    """The same with one part multiplied."""

    def changed(one):
        return dataclasses.replace(one, **{field: factor * getattr(one, field)})

    return changed


def moved(field, change):
    """The same with one part changed."""
    return lambda one: dataclasses.replace(one, **{field: change(getattr(one, field))})


def permuted(beta):
    """Coefficients of one word are those of the next."""
    return np.r_[beta[:1], np.roll(beta[1:], 1)]


SMALL = partial(trees.word_tree_runs, 29, 0.25, 5000)
LARGE = partial(trees.word_tree_runs, 29, 0.25, 5000, name="large")
FEW = partial(trees.word_tree_runs, 29, 0.25, 50)
small_known = partial(
    trees.values_are_known, known=(0.13057, 0.55758, 0.20079, 0.20079, 0.00070)
)
CASES = [
    (small_known, SMALL, scaled("limit")),
    (small_known, SMALL, moved("limit", permuted)),
    (trees.ignored_are_small, SMALL, moved("limit", permuted)),
    (trees.root_weighs_most, SMALL, moved("limit", permuted)),
    (trees.word_of_two_nodes_adds_up, LARGE, scaled("limit")),
    (trees.few_samples_shrink, FEW, scaled("estimates", 1.3)),
]


@pytest.mark.parametrize(("statement", "make", "change"), CASES)
def test_a_statement_fails_where_something_is_slightly_wrong(statement, make, change):
    assert statement(measured(make)).holds
    assert not statement(change(measured(make))).holds
