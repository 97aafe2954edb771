"""Pictures of words: bars, paths, and highlighted documents."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.base.text import drawn


TEXTS = pd.Series(
    ["good $x$ food but cold", "not good", ""], index=["first", "second", "none"]
)


def score(texts):
    return [
        1.0 * ("good" in t) * (1.0 - 1.5 * ("not" in t)) - 0.4 * ("cold" in t)
        for t in texts
    ]


@pytest.fixture(scope="module")
def lime():
    return po.lime.text_limits(score, TEXTS)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_bars_are_coefficients_and_negative_ones_hatched(lime):
    axes = po.plots.lime_words(lime)
    own = lime.rows[0].coefficients
    order = np.argsort(-np.abs(own), kind="stable")
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [drawn(lime.rows[0].words[j]) for j in order]
    bars = {
        round(bar.get_y() + bar.get_height() / 2): (bar.get_width(), bar.get_hatch())
        for bar in axes.patches
        if bar.get_height() < 0.5
    }
    for place, j in enumerate(order):
        width, hatch = bars[place]
        assert width == pytest.approx(own[j], abs=1e-12)
        assert bool(hatch) == (own[j] < 0.0)


def test_bands_are_those_of_runs(lime):
    axes = po.plots.lime_words(lime, "second", n_words=1)
    place = int(np.argmax(np.abs(lime.rows[1].coefficients)))
    band = next(bar for bar in axes.patches if bar.get_height() > 0.5)
    noise, mean = lime.noise()[1][place], lime.expected()[1][place]
    assert band.get_width() == pytest.approx(4 * noise)
    assert band.get_x() == pytest.approx(mean - 2 * noise)


def test_estimates_have_whiskers():
    text = " ".join(f"w{j}" for j in range(20))
    lime = po.lime.text_limits(
        lambda ts: [len(t) ** 0.5 for t in ts], [text], n_samples=200
    )
    axes = po.plots.lime_words(lime)
    assert len(axes.containers) > 1
    labels = axes.get_legend_handles_labels()[1]
    assert any("estimated, 2 errors" in label for label in labels)
    path = po.plots.lime_word_path(lime, n_words=2, bandwidths=[0.2, 0.3])
    assert len(path.collections) == 2  # bands of errors


def test_of_a_document_that_lime_says_nothing_of_there_is_no_picture(lime):
    with pytest.raises(Refused, match="there is no word in it"):
        po.plots.lime_words(lime, "none")
    with pytest.raises(Refused, match="there is no word in it"):
        po.plots.lime_word_path(lime, "none")


def test_a_path_has_the_words_asked_for_and_their_changes_of_sign():
    text = " ".join(f"w{j}" for j in range(14))

    def f(texts):
        # β of w0 changes its sign at ν = 0.19 with 20 words
        return [1.0 * ("w0 " in t and "w1 " in t) - 0.7 * ("w0 " in t) for t in texts]

    lime = po.lime.text_limits(f, [text])
    axes = po.plots.lime_word_path(lime, words=["w0", "w2"], bandwidths=[0.1, 0.2, 0.5])
    lines = [line for line in axes.lines if line.get_linestyle() != "None"]
    path = lime.path(0, [0.1, 0.2, 0.5])
    np.testing.assert_array_equal(lines[0].get_ydata(), path.coefficients[:, 0])
    np.testing.assert_array_equal(lines[1].get_ydata(), path.coefficients[:, 2])
    circles = [line for line in axes.lines if line.get_marker() == "o"]
    root = circles[0].get_xdata()[0]
    assert root == pytest.approx(path.sign_changes[0].widths[0])
    assert lime.path(0, [root]).coefficients[0, 0] == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(InvalidInput, match="no word 'W2' in the document"):
        po.plots.lime_word_path(lime, words=["W2"])


def shaded(html: str) -> list[str]:
    return re.findall(r'<span style="background[^"]*" title="[^"]*">(.*?)</span>', html)


def test_highlighted_are_the_rows_asked_for_on_their_own_scale(lime):
    both = po.plots.highlight(lime, rows=["second", "first"]).html
    assert both.index("document second") < both.index("document first")
    assert "document none" not in both
    one = po.plots.highlight(lime, rows="first").html
    assert "document second" not in one
    largest = np.abs(lime.rows[0].coefficients).max()
    assert f"up to {largest:.4g}" in one
    assert "good" in shaded(one)
    assert "food" not in shaded(one)
    assert "document none" in po.plots.highlight(lime).html
    assert "document none" not in po.plots.highlight(lime, max_rows=2).html


def as_attributions(lime):
    """Coefficients of two documents in a table of all words."""
    frame = lime.of_rows(["first", "second"]).to_frame()
    table = frame.pivot(index="document", columns="word", values="coefficient")
    return table.fillna(0.0)


def test_attributions_of_documents_are_highlighted_as_limits_are(lime):
    aligned = as_attributions(lime)
    ours = po.plots.highlight(aligned, TEXTS[:2])
    theirs = po.plots.highlight(lime, rows=["first", "second"])
    assert shaded(ours.html)[-4:] == shaded(theirs.html)[-4:]
    f = po.wrap(score, data=list(TEXTS))
    gradients = f.gradient(TEXTS[:2])
    result = po.plots.highlight(gradients, TEXTS[:2], words=f, rows="second")
    assert {"not", "good"} <= set(shaded(result.html))


def test_words_without_an_attribution_are_plain_and_counted():
    table = pd.DataFrame([[1.0]], columns=["good"])
    html = po.plots.highlight(table, ["good food"]).html
    assert "1 word without an attribution" in html
    assert shaded(html)[-1] == "good"


def test_documents_have_to_fit(lime):
    aligned = as_attributions(lime)
    with pytest.raises(InvalidInput, match="attributions do not know the texts"):
        po.plots.highlight(aligned)
    with pytest.raises(InvalidInput, match="documents: expected 2, as many as rows"):
        po.plots.highlight(aligned, TEXTS)
    with pytest.raises(InvalidInput, match="their names are not those of the rows"):
        po.plots.highlight(aligned, TEXTS[1::-1])
    with pytest.raises(InvalidInput, match="there is no row 'third'"):
        po.plots.highlight(lime, rows=["third"])
