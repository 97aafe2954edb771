"""Pictures of LIME: what is drawn is what is known."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from lime_cases import explained, grid, linear, product, tabular
from matplotlib import pyplot as plt
from matplotlib.text import Text
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.lime.expectations import cell_coefficients
from propopt.plots.lime import shortened
from propopt.problems.jobs.lime import write_lime_figure


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def lime():
    X = grid(2)
    law = tabular(X, kernel_width=0.6)
    return explained(product(X), [0.9, 0.1], X, law, n_samples=300)


@pytest.fixture(scope="module")
def named():
    X = pd.DataFrame(
        np.tile(grid(30), (1, 1)),
        columns=[f"a long name of column number {j} in $ per unit" for j in range(30)],
        index=[f"r{n}" for n in range(400)],
    )
    y = X.to_numpy() @ np.linspace(-3.0, 3.0, 30)
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)
    return po.lime.limits(tree, X.iloc[:2], data=X, n_samples=300)


def texts(axes):
    axes.figure.canvas.draw()
    return [label.get_text() for label in axes.get_yticklabels()]


def test_dots_are_coefficients_ticks_means_and_bands_two_deviations(lime):
    axes = po.plots.lime_coefficients(lime)
    ticks, dots = axes.collections[:2]
    order = np.argsort(-np.abs(lime.coefficients[0]))
    assert np.asarray(dots.get_offsets())[:, 0] == pytest.approx(
        lime.coefficients[0, order]
    )
    assert np.asarray(ticks.get_offsets())[:, 0] == pytest.approx(
        lime.expected()[0, order]
    )
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
    noise, mean = lime.noise()[0, order], lime.expected()[0, order]
    assert np.array(ends) == pytest.approx(
        np.stack([mean - 2.0 * noise, mean + 2.0 * noise], axis=1)
    )


def test_the_largest_features_are_named_with_their_bins(named):
    axes = po.plots.lime_coefficients(named, "r1", n_features=5)
    first = np.abs(named.coefficients[1]).argmax()
    assert len(texts(axes)) == 5
    assert f"number {first}"[-2:] in texts(axes)[0] or "…" in texts(axes)[0]
    assert "r1" in axes.get_title(loc="right")


def test_nothing_of_thirty_long_names_overlaps(named):
    axes = po.plots.lime_coefficients(named, n_features=30)
    axes.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    legend = axes.get_legend().get_window_extent()
    inside = axes.figure.bbox
    assert inside.x0 <= legend.x0
    assert legend.x1 <= inside.x1 + 1
    assert not legend.overlaps(axes.xaxis.label.get_window_extent())


def test_estimates_have_whiskers():
    X = grid(2)
    called = explained(lambda Z: Z[:, 0] ** 2, [0.9, 0.1], X, n_samples=200)
    assert len(po.plots.lime_coefficients(called).containers) > 1


def test_a_path_marks_where_the_sign_changes(lime):
    axes = po.plots.lime_path(lime)
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    (root,) = np.concatenate([mark.get_xdata() for mark in marks])
    assert root == pytest.approx(lime.path().sign_changes[0].widths[0])
    assert axes.get_xscale() == "log"


def test_a_path_draws_the_columns_that_are_asked_for(lime):
    axes = po.plots.lime_path(lime, features=["x1"], widths=[0.3, 1.0, 3.0])
    curve = axes.lines[0]
    assert curve.get_label() == "x1"
    expected = lime.path(0, [0.3, 1.0, 3.0]).coefficients[:, 1]
    assert curve.get_ydata() == pytest.approx(expected)


def test_lines_of_a_path_are_named_at_their_ends_in_their_colours(lime):
    axes = po.plots.lime_path(lime)
    axes.figure.canvas.draw()
    names = {text.get_text(): text for text in axes.texts}
    curves = [line for line in axes.lines if line.get_label() in names]
    assert len(curves) == 2
    assert len({line.get_color() for line in curves}) == 2
    for line in curves:
        assert names[line.get_label()].get_color() == line.get_color()
    assert axes.get_legend() is None


def test_close_lines_have_names_that_do_not_overlap(named):
    axes = po.plots.lime_path(named, n_features=9)
    axes.figure.canvas.draw()
    names = {line.get_label() for line in axes.lines}
    boxes = [
        Text.get_window_extent(text)  # without the line that leads there
        for text in axes.texts
        if text.get_text() in names
    ]
    assert len(boxes) == 9
    heights = sorted((box.y0 + box.y1) / 2.0 for box in boxes)
    apart = [above - below for below, above in pairwise(heights)]
    assert min(apart) > 9.0 * axes.figure.dpi / 72.0  # letters are of 9 points


def test_titles_and_axes_say_what_is_explained():
    X = pd.DataFrame(grid(2), columns=["a", "b"])
    y = np.where(X["a"] > 0.5, "malignant", "benign")
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    f = po.wrap(tree, target="malignant", data=X)
    lime = po.lime.limits(f, X.iloc[[36]], data=X)
    for draw in (po.plots.lime_coefficients, po.plots.lime_path, po.plots.lime_profile):
        axes = draw(lime)
        title = axes.get_title() + axes.get_title(loc="right")
        assert title.startswith("probability of malignant, row 36\n")
        words = axes.get_xlabel() + axes.get_ylabel()
        assert "probability of malignant" in words
        assert "units of the output" not in words
    assert po.plots.lime_map(lime, 0, 1).get_title().startswith("probability of mal")


def test_a_figure_has_one_legend(named, tmp_path):
    write_lime_figure(named, [0.5, 1.0, 2.0], "x", str(tmp_path / "x.svg"))
    drawing = (tmp_path / "x.svg").read_text()
    assert drawing.count("mean of runs") == 1
    assert drawing.count("exact limit") == 1


def test_bars_of_a_profile_end_at_the_means_of_bins(lime):
    axes = po.plots.lime_profile(lime, "x0")
    ends = [bar.get_y() + bar.get_height() for bar in axes.patches]
    (means,) = lime.subject.profiles(lime.points)[0]
    assert ends == pytest.approx(means.tolist())
    own = lime.law.columns[0].place(lime.points[:, 0])[0]
    assert axes.patches[own].get_height() == pytest.approx(lime.coefficients[0, 0])


def test_arrows_are_the_coefficients_of_cells(lime):
    axes = po.plots.lime_map(lime, "x0", "x1")
    (arrows,) = axes.collections
    subject = lime.subject
    beta = cell_coefficients(subject.limits, subject.law, lime.points, (0, 1))
    longest = np.hypot(beta[..., 0], beta[..., 1]).max()
    assert pytest.approx(0.8 / longest * beta[..., 0].ravel()) == arrows.U
    assert pytest.approx(0.8 / longest * beta[..., 1].ravel()) == arrows.V


def test_they_draw_on_given_axes(lime):
    _, ax = plt.subplots()
    assert po.plots.lime_coefficients(lime, ax=ax) is ax
    assert po.plots.lime_profile(lime, ax=ax) is ax


def test_unknown_rows_and_columns_are_refused(lime):
    with pytest.raises(InvalidInput, match="no row 7"):
        po.plots.lime_coefficients(lime, 7)
    with pytest.raises(InvalidInput, match="no column 'x9'"):
        po.plots.lime_profile(lime, "x9")
    with pytest.raises(InvalidInput, match="two columns"):
        po.plots.lime_map(lime, 1, "x1")


def test_a_path_of_estimates_is_refused_with_the_reason():
    X = grid(2)
    called = explained(lambda Z: Z[:, 0] ** 2, [0.9, 0.1], X, n_samples=200)
    with pytest.raises(Refused, match="can only be called"):
        po.plots.lime_path(called)


def test_long_names_keep_their_bins():
    name = shortened("a name of very many words that goes on and on > 0.25 and ≤ 1", 30)
    assert len(name) == 30
    assert name.endswith("> 0.25 and ≤ 1")


def test_flat_functions_have_pictures():
    X = grid(2)
    flat = explained(linear([0.0, 0.0], X), [0.3, 0.3], X)
    po.plots.lime_coefficients(flat)
    po.plots.lime_profile(flat)
    po.plots.lime_map(flat, 0, 1)
    po.plots.lime_path(flat)
