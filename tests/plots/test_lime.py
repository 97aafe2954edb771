"""Pictures of LIME, of columns and of words: what is drawn is what is known."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from lime_cases import explained, grid, linear, product, tabular
from matplotlib import pyplot as plt
from refusals import refusals
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.base.text import matplotlib_text
from propopt.plots.lime import shortened
from propopt.problems.jobs.lime import write_lime_figure
from propopt.tables.frames import Labels


@pytest.fixture(scope="module")
def lime():
    X = grid(2)
    law = tabular(X, kernel_width=0.6)
    return explained(product(X), [0.9, 0.1], X, law, n_samples=300)


@pytest.fixture(scope="module")
def named():
    X = pd.DataFrame(
        grid(30),
        columns=[f"a long name of column number {j} in $ per unit" for j in range(30)],
        index=[f"r{n}" for n in range(400)],
    )
    y = X.to_numpy() @ np.linspace(-3.0, 3.0, 30)
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)
    return po.lime.limits(tree, X.iloc[:2], data=X, n_samples=300)


@pytest.fixture(scope="module")
def called():
    """Can only be called: its coefficients are estimated."""
    X = grid(2)
    return explained(lambda Z: Z[:, 0] ** 2, [0.9, 0.1], X, n_samples=200)


def names_below(axes):
    axes.figure.canvas.draw()
    return [label.get_text() for label in axes.get_yticklabels()]


def test_bars_are_the_largest_coefficients_and_lines_the_range_of_runs(lime):
    _, ax = plt.subplots()
    axes = po.plots.lime_coefficients(lime, ax=ax)
    assert axes is ax
    order = np.argsort(-np.abs(lime.coefficients[0]))
    drawn = sorted((p for p in axes.patches if p.get_width()), key=lambda p: p.get_y())
    widths = [bar.get_width() for bar in drawn]
    assert widths == pytest.approx(lime.coefficients[0, order])
    lines = [line.get_xdata() for line in axes.lines if np.ptp(line.get_xdata()) > 0]
    assert np.array(lines) == pytest.approx(lime.intervals()[0, order])


def test_the_largest_features_are_named_with_their_bins_and_none_overlaps(
    named, tmp_path
):
    axes = po.plots.lime_coefficients(named, "r1", n_features=5)
    first = np.abs(named.coefficients[1]).argmax()
    below = names_below(axes)
    assert len(below) == 5
    assert f"number {first}"[-2:] in below[0] or "…" in below[0]
    axes = po.plots.lime_coefficients(named, n_features=15)
    axes.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    legend = axes.get_legend().get_window_extent()
    inside = axes.figure.bbox
    assert inside.x0 <= legend.x0
    assert legend.x1 <= inside.x1 + 1
    assert not legend.overlaps(axes.xaxis.label.get_window_extent())
    name = shortened("a name of very many words that goes on and on > 0.25 and ≤ 1", 30)
    assert len(name) == 30
    assert name.endswith("> 0.25 and ≤ 1")
    # a figure of several pictures has one legend
    write_lime_figure(named, [0.5, 1.0, 2.0], "x", str(tmp_path / "x.svg"))
    drawing = (tmp_path / "x.svg").read_text()
    assert drawing.count("<!-- raises -->") == drawing.count("<!-- lowers -->") == 1


def test_a_path_marks_where_the_sign_changes_and_names_its_lines(lime):
    axes = po.plots.lime_path(lime)
    axes.figure.canvas.draw()
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    (root,) = np.concatenate([mark.get_xdata() for mark in marks])
    assert root == pytest.approx(lime.path().sign_changes[0][0])
    assert axes.get_xscale() == "log"
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    curves = [line for line in axes.lines if line.get_label() in names]
    assert len({line.get_color() for line in curves}) == len(names) == 2
    axes = po.plots.lime_path(lime, features=["x1"], widths=[0.3, 1.0, 3.0])
    assert axes.lines[0].get_label() == "x1"
    expected = lime.path(0, [0.3, 1.0, 3.0]).coefficients[:, 1]
    assert axes.lines[0].get_ydata() == pytest.approx(expected)


def test_profiles_are_means_of_bins(lime):
    _, ax = plt.subplots()
    axes = po.plots.lime_profile(lime, "x0", ax=ax)
    assert axes is ax
    ends = [bar.get_y() + bar.get_height() for bar in axes.patches]
    (means,) = lime.subject.profiles(lime.points)[0]
    assert ends == pytest.approx(means.tolist())
    row_bin = lime.law.columns[0].bin_index(lime.points[:, 0])[0]
    assert axes.patches[row_bin].get_height() == pytest.approx(lime.coefficients[0, 0])


def test_flat_functions_are_drawn():
    X = grid(2)
    flat = explained(linear([0.0, 0.0], X), [0.3, 0.3], X)
    for name in ("lime_coefficients", "lime_profile", "lime_path"):
        getattr(po.plots, name)(flat)


TEXTS = pd.Series(
    ["good $x$ food but cold", "not good", ""], index=["first", "second", "none"]
)


def score(texts):
    return [
        1.0 * ("good" in t) * (1.0 - 1.5 * ("not" in t)) - 0.4 * ("cold" in t)
        for t in texts
    ]


@pytest.fixture(scope="module")
def words():
    return po.lime.text_limits(score, TEXTS)


def test_words_have_bars(words):
    axes = po.plots.lime_coefficients(words)
    record = words.records[0]
    order = np.argsort(-np.abs(record.coefficients), kind="stable")
    assert names_below(axes) == [matplotlib_text(record.names[j]) for j in order]
    second = words.records[1]
    (line, _) = po.plots.lime_coefficients(words, "second", n_features=1).lines
    largest = int(np.argmax(np.abs(second.coefficients)))
    assert line.get_xdata() == pytest.approx(words.intervals()[1][largest])


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "lime"))
def test_what_cannot_be_drawn_is_refused(lime, called, words, line, message):
    names = {name: getattr(po.plots, name) for name in dir(po.plots)}
    with pytest.raises((InvalidInput, Refused), match=message):
        eval(line, globals() | names | locals())


def test_estimated_paths_have_bands_of_errors():
    text = " ".join(f"w{j}" for j in range(20))
    lime = po.lime.text_limits(
        lambda ts: [len(t) ** 0.5 for t in ts], [text], n_samples=200
    )
    path = po.plots.lime_path(lime, n_features=2, widths=[0.2, 0.3])
    assert len(path.collections) == 2


def test_a_path_has_the_words_asked_for_and_their_changes_of_sign():
    text = " ".join(f"w{j}" for j in range(14))

    def f(texts):
        # β of w0 changes its sign at ν = 0.19 with 20 words
        return [1.0 * ("w0 " in t and "w1 " in t) - 0.7 * ("w0 " in t) for t in texts]

    lime = po.lime.text_limits(f, [text])
    axes = po.plots.lime_path(lime, features=["w0", "w2"], widths=[0.1, 0.2, 0.5])
    lines = [line for line in axes.lines if line.get_linestyle() != "None"]
    path = lime.path(0, [0.1, 0.2, 0.5])
    np.testing.assert_array_equal(lines[0].get_ydata(), path.coefficients[:, 0])
    np.testing.assert_array_equal(lines[1].get_ydata(), path.coefficients[:, 2])
    circles = [line for line in axes.lines if line.get_marker() == "o"]
    root = circles[0].get_xdata()[0]
    assert root == pytest.approx(path.sign_changes[0][0])
    assert lime.path(0, [root]).coefficients[0, 0] == pytest.approx(0.0, abs=1e-9)


def shaded(html: str) -> list[str]:
    return re.findall(r'<span style="background[^"]*" title="[^"]*">(.*?)</span>', html)


def test_highlighted_are_the_rows_asked_for_on_their_own_scale(words):
    both = po.plots.highlight(words, rows=["second", "first"]).html
    assert both.index("document second") < both.index("document first")
    assert "document none" not in both
    one = po.plots.highlight(words, rows="first").html
    assert "document second" not in one
    largest = np.abs(words.records[0].coefficients).max()
    assert f"up to {largest:.4g}" in one
    assert "good" in shaded(one)
    assert "food" not in shaded(one)
    assert "document none" in po.plots.highlight(words).html
    assert "document none" not in po.plots.highlight(words, max_rows=2).html


def test_attributions_of_documents_are_highlighted_as_limits_are(words):
    frame = words.loc[["first", "second"]].to_frame()
    aligned = frame.pivot(index="document", columns="word", values="coefficient")
    aligned = aligned.fillna(0.0)
    ours = po.plots.highlight(aligned, TEXTS[:2])
    theirs = po.plots.highlight(words, rows=["first", "second"])
    assert shaded(ours.html)[-4:] == shaded(theirs.html)[-4:]
    f = po.wrap(score, data=list(TEXTS))
    gradients = f.gradient(TEXTS[:2])
    result = po.plots.highlight(gradients, TEXTS[:2], words=f, rows="second")
    assert {"not", "good"} <= set(shaded(result.html))


def test_words_in_lower_case_are_found_and_others_told_of():
    for first in ("good", "Good"):
        W = np.array([[1.0, 0.5, 0.125 * (first == "Good")], [0.0, -0.25, -1.0]])
        labels = Labels(features=(first, "food", "no"))
        best = po.results.Explanation(attributions=W, method="mine", labels=labels)
        html = po.plots.highlight(best, ["Good food", "no Food"]).html
        lost = "1 attribution of words that are not in the text, up to 0.125" in html
        assert lost == ("1 word without an attribution" in html) == (first == "Good")
        assert ("not in the text" in html) == lost
        assert html.count("<span style=") > 4 or lost
