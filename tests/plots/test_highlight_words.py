"""What words of highlighted texts are, where nothing is said."""

from __future__ import annotations

import numpy as np

import propopt as po
from propopt.tables.frames import Labels


TEXTS = ["Good food", "no Food"]


def test_words_in_lower_case_are_found():
    W = np.array([[1.0, 0.5, 0.0], [0.0, -0.25, -1.0]])
    best = po.Explanation(
        attributions=W, method="mine", labels=Labels(features=("good", "food", "no"))
    )
    html = po.plots.highlight(best, TEXTS).html
    assert html.count("<span style=") > 4
    assert "without an attribution" not in html
    assert "not in the text" not in html


def test_attributions_of_words_that_are_not_there_are_told():
    W = np.array([[1.0, 0.5, 0.125], [0.0, -0.25, -1.0]])
    best = po.Explanation(
        attributions=W, method="mine", labels=Labels(features=("Good", "food", "no"))
    )
    html = po.plots.highlight(best, TEXTS).html
    assert "1 attribution of words that are not in the text, up to 0.125" in html
    assert "1 word without an attribution" in html
