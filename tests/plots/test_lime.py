"""Plots of LIME, of columns and of words: what is drawn is what is known."""

import numpy as np
import pandas as pd
import pytest
from drawn import ax, lengths_of, lines_of, rows_of, texts
from lime_cases import explained, grid, linear, product, tabular
from refusals import refusals
from text_models import SCORED, score

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.base.text import matplotlib_text


@pytest.fixture(scope="module")
def lime():
    X = grid(2)
    law = tabular(X, kernel_width=0.6)
    return explained(product(X), [0.9, 0.1], X, law, n_samples=300)


@pytest.fixture(scope="module")
def called():
    """Can only be called: its coefficients are estimated."""
    X = grid(2)
    return explained(lambda Z: Z[:, 0] ** 2, [0.9, 0.1], X, n_samples=200)


def test_bars_are_the_largest_coefficients_and_lines_the_range_of_runs(lime):
    axes = ax()
    assert lime.plot(ax=axes) is axes
    order = np.argsort(-np.abs(lime.coefficients[0]))
    assert lengths_of(axes) == pytest.approx(lime.coefficients[0, order])
    assert np.array(lines_of(axes)) == pytest.approx(lime.intervals()[0, order])


def test_a_path_marks_where_the_sign_changes_and_names_its_lines(lime):
    axes = lime.plot.path()
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    (root,) = np.concatenate([mark.get_xdata() for mark in marks])
    assert root == pytest.approx(lime.path().sign_changes[0][0])
    assert axes.get_xscale() == "log"
    assert {*texts(axes.get_legend().get_texts())} == {"x0", "x1"}
    assert "width of the law 0.6" in texts(axes.texts)


def test_profiles_are_differences_of_means_of_bins(lime):
    axes = lime.plot.profile("x0", ax=ax())
    (means,) = lime.subject.profiles(lime.points)[0]
    row_bin = int(lime.law.columns[0].bin_index(lime.points[:, 0])[0])
    lengths = np.array(lengths_of(axes))
    beta = lime.coefficients[0, 0]
    assert lengths == pytest.approx(means - means[row_bin] + beta)
    assert lengths[row_bin] == pytest.approx(beta)
    assert rows_of(axes)[row_bin].endswith("(the row)")


def test_flat_functions_are_drawn():
    X = grid(2)
    flat = explained(linear([0.0, 0.0], X), [0.3, 0.3], X)
    for draw in (flat.plot, flat.plot.profile, flat.plot.path):
        draw()


@pytest.fixture(scope="module")
def words():
    return po.lime.text_limits(score, SCORED)


def test_words_have_bars(words):
    axes = words.plot()
    record = words.records[0]
    order = np.argsort(-np.abs(record.coefficients), kind="stable")
    assert rows_of(axes) == [matplotlib_text(record.names[j]) for j in order]
    second = words.records[1]
    (line,) = lines_of(words.plot("second", n_features=1))
    largest = int(np.argmax(np.abs(second.coefficients)))
    assert line == pytest.approx(words.intervals()[1][largest])


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "lime"))
def test_what_cannot_be_drawn_is_refused(lime, called, words, line, message):
    table = pd.DataFrame(np.ones((2, 1)), ["first", "second"], ["good"])
    aligned = po.solve(1.0 * po.GradientMatching(table))
    with pytest.raises((InvalidInput, Refused), match=message):
        eval(line, globals() | locals())


def test_estimated_paths_have_bands_of_errors():
    text = " ".join(f"w{j}" for j in range(20))
    lime = po.lime.text_limits(
        lambda ts: [len(t) ** 0.5 for t in ts], [text], n_samples=200
    )
    path = lime.plot.path(n_features=2, widths=[0.2, 0.3])
    assert len(path.collections) == 2
