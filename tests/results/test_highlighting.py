"""Texts with highlighted words, of explanations and of limits of LIME."""

import re

import numpy as np
import pytest
from text_models import SCORED, score

import propopt as po
from propopt.tables.frames import Labels


@pytest.fixture(scope="module")
def words():
    return po.lime.text_limits(score, SCORED)


def shaded(html: str) -> list[str]:
    return re.findall(r'<span style="background[^"]*" title="[^"]*">(.*?)</span>', html)


def test_highlighted_are_the_rows_asked_for_on_their_own_scale(words):
    both = words.plot.text(rows=["second", "first"]).html
    assert both.index("document second") < both.index("document first")
    assert "document none" not in both
    one = words.plot.text(rows=["first"]).html
    assert "document second" not in one
    largest = np.abs(words.records[0].coefficients).max()
    assert f"up to {largest:.4g}" in one
    assert "good" in shaded(one)
    assert "food" not in shaded(one)
    assert "document none" in words.plot.text().html


def test_attributions_of_documents_are_highlighted_as_limits_are(words):
    frame = words.loc[["first", "second"]].to_frame()
    aligned = frame.pivot(index="document", columns="word", values="coefficient")
    aligned = aligned.fillna(0.0)
    ours = po.solve(1.0 * po.GradientMatching(aligned)).plot.text(SCORED[:2])
    theirs = words.plot.text(rows=["first", "second"])
    assert shaded(ours.html)[-4:] == shaded(theirs.html)[-4:]
    f = po.wrap(score, data=list(SCORED))
    gradients = po.solve(1.0 * po.GradientMatching(f.gradient(SCORED[:2])))
    result = gradients.plot.text(SCORED[:2], words=f.text_schema.rule, rows=["second"])
    assert {"not", "good"} <= set(shaded(result.html))


def test_words_in_lower_case_are_found_and_others_told_of():
    for first in ("good", "Good"):
        W = np.array([[1.0, 0.5, 0.125 * (first == "Good")], [0.0, -0.25, -1.0]])
        labels = Labels(features=(first, "food", "no"))
        best = po.results.Explanation(attributions=W, method="mine", labels=labels)
        html = best.plot.text(["Good food", "no Food"]).html
        lost = "1 attribution of words that are not in the text, up to 0.125" in html
        assert lost == ("not in the text" in html) == (first == "Good")
        assert html.count("<span style=") > 4 or lost
