"""Plots of attributions: rows, heat maps, images, and what changed."""

import dataclasses
import io
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from refusals import refusals

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity
from propopt.plots.attributions import OPTIMIZED_COLOUR, RAISES


def ax():
    return Figure().subplots()


@pytest.fixture
def best(rng):
    names = ["age", "height", "weight", "dose"]
    G = pd.DataFrame(rng.normal(size=(9, 4)), columns=names, index=list("abcdefghi"))
    return po.solve(1.0 * po.GradientMatching(G))


def texts(labels):
    return [label.get_text() for label in labels]


def contributions(**fields):
    W = np.array([[3.0, -1.0, 0.5], [1.0, 2.0, -4.0]])
    fields = {"base_value": np.array([2.0, 2.0]), **fields}
    return po.results.Explanation(
        attributions=W, method="mine", units="output", **fields
    )


SLOPES = dataclasses.replace(contributions(), units="gradient", base_value=None)
ERRORS = np.array([[1.0, 0.6, 0.1], [1.0, 1.0, 1.0]])
SIGNS = SimpleNamespace(signs=np.array([[1, 0, 1], [1, 1, 0]]))


def test_a_row_is_drawn_largest_first_and_the_rest_summed(best):
    axes = ax()
    assert po.plots.plot_row(best, "c", n_features=2, ax=axes) is axes
    row = best.to_frame().loc["c"]
    order = row.abs().sort_values(ascending=False).index
    assert texts(axes.get_yticklabels()) == [*order[:2], "2 others"]
    widths = sorted(bar.get_width() for bar in axes.patches)
    expected = sorted([*row[order[:2]], row[order[2:]].sum()])
    np.testing.assert_allclose(widths, expected)
    # values of the inputs stand beside the names
    axes = po.plots.plot_row(best, "b", X=np.arange(36.0).reshape(9, 4), ax=ax())
    assert "age = 4" in texts(axes.get_yticklabels())
    W = pd.DataFrame([[1.0, 2.0]], columns=["city", "age"], index=["anna"])
    only = po.solve(1.0 * po.GradientMatching(W))
    X = pd.DataFrame({"city": ["Rome"], "age": [31]}, index=["anna"])
    axes = po.plots.plot_row(only, X=X, ax=ax())
    assert texts(axes.get_yticklabels()) == ["age = 31", "city = Rome"]


def test_contributions_are_steps_from_the_base_to_the_prediction():
    churn = Quantity(model="SVC", kind="log_odds", label=1, outcome="churn")
    for quantity in (None, churn):
        axes = po.plots.plot_row(contributions(quantity=quantity), 1, ax=ax())
        # the lowest starts at the base, each other where the one below ends
        steps = {bar.get_width(): bar.get_x() for bar in axes.patches}
        assert steps == {-4.0: 5.0, 2.0: 3.0, 1.0: 2.0}
        assert texts(axes.texts) == ["−4", "+2", "+1", "base 2", "prediction 1"]
        assert [set(line.get_xdata()) for line in axes.lines] == [{2.0}, {1.0}]
    slopes = dataclasses.replace(contributions(), units="scaled")
    axes = po.plots.plot_row(slopes, 1, ax=ax())  # are never drawn as steps
    assert {bar.get_x() for bar in axes.patches} == {0.0}
    assert not any("base" in text or "pred" in text for text in texts(axes.texts))


@pytest.mark.parametrize("errors", [None, ERRORS])
def test_numbers_stand_beside_their_bars_and_inside_the_picture(errors):
    axes = po.plots.plot_row(contributions(standard_errors=errors), 0, ax=ax())
    axes.figure.canvas.draw()
    frame = axes.get_window_extent()
    numbers = {text.get_text(): text for text in axes.texts}
    for bar in axes.patches:
        text = numbers[f"{bar.get_width():+.3g}".replace("-", "−")]
        label, extent = text.get_window_extent(), bar.get_window_extent()
        is_left = bar.get_width() < 0
        assert label.x1 <= extent.x0 if is_left else label.x0 >= extent.x1
        assert frame.x0 <= label.x0 <= label.x1 <= frame.x1
        assert extent.y0 <= (label.y0 + label.y1) / 2 <= extent.y1


def test_errors_are_lines_and_uncertain_signs_are_hatched():
    result = contributions(standard_errors=ERRORS, base_value=None)
    axes = po.plots.plot_row(result, 0, ax=ax())
    intervals = [line.get_xdata() for line in axes.lines[:3]]  # two standard errors
    np.testing.assert_allclose(intervals, [[1.0, 5.0], [-2.2, 0.2], [0.3, 0.7]])
    axes = po.plots.plot_row(contributions(), 0, certain=SIGNS, ax=ax())
    hatched = {bar.get_width() for bar in axes.patches if bar.get_hatch()}
    assert hatched == {-1.0}
    assert "sign not certain" in texts(axes.get_legend().get_texts())
    axes = po.plots.plot_row(contributions(), 0, certain=contributions().clear(9.0))
    assert "sign not clear" in texts(axes.get_legend().get_texts())
    axes = po.plots.plot_heatmap(contributions(), certain=SIGNS, ax=ax())
    cells = [p for p in axes.patches if p.get_hatch()]
    names, rows = texts(axes.get_yticklabels()), texts(axes.get_xticklabels())
    corners = [(round(p.get_x() + 0.5), round(p.get_y() + 0.5)) for p in cells]
    assert {(rows[x], names[y]) for x, y in corners} == {("0", "x1"), ("1", "x2")}
    assert axes.images[0].get_interpolation() == "none"  # cells keep their colours


def test_the_heat_map_has_every_row_and_the_features_by_size(best):
    axes = po.plots.plot_heatmap(best, n_features=3, ax=ax())
    assert axes.images[0].get_array().shape == (3, 9)
    sizes = best.to_frame().abs().mean().sort_values(ascending=False)
    assert texts(axes.get_yticklabels()) == list(sizes.index[:3])
    nothing = po.results.Explanation(attributions=np.zeros((3, 2)), method="none")
    po.plots.plot_heatmap(nothing, ax=ax())


def test_the_heat_map_of_a_large_table_has_a_stated_sample_of_its_rows():
    W = np.random.default_rng(3).normal(size=(2_100, 3))
    large = po.results.Explanation(attributions=W, method="mine")
    axes = po.plots.plot_heatmap(large, ax=ax())
    assert axes.get_xlabel().startswith("a sample of 2,000 of 2,100 rows, similar")
    picture = axes.images[0].get_array()
    assert picture.shape == (3, 2_000)
    order = [int(name[1:]) for name in texts(axes.get_yticklabels())]
    for index, name in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True):
        np.testing.assert_array_equal(picture[:, index], W[int(name.get_text()), order])


ONES = np.ones((2, 20))
SHAPE = po.functions.ImageShape(channels=1, height=4, width=5)


def maps(*given, **settings):
    return po.plots.plot_image_maps(list(given), SHAPE, **settings)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "attributions"))
def test_what_cannot_be_drawn_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


sizes = st.integers(1, 5)
shapes = st.builds(po.functions.ImageShape, channels=sizes, height=sizes, width=sizes)


@given(shape=shapes, n_images=sizes)
def test_images_are_rows_and_pixels_are_joined_to_their_neighbours(shape, n_images):
    images = np.arange(n_images * shape.n_features).reshape(n_images, *shape.sizes)
    rows = shape.rows(images)
    assert rows.shape == (n_images, shape.n_features)
    np.testing.assert_array_equal(shape.images(rows), images)
    similarities = shape.pixel_graph().similarities.toarray()
    indices = np.array(list(np.ndindex(*shape.sizes)))
    steps = np.abs(indices[:, None] - indices[None])
    neighbours = (steps[..., 0] == 0) & (steps.sum(axis=-1) == 1)
    np.testing.assert_array_equal(similarities, neighbours)
    if shape.channels == 1:
        one = po.graphs.pixel_graph(shape.height, shape.width).similarities.toarray()
        np.testing.assert_array_equal(similarities, one)


def test_graphs_of_photographs_are_small():
    graph = po.functions.ImageShape(channels=3, height=224, width=224).pixel_graph()
    assert graph.similarities.data.nbytes < 2**23


def drawn(axes):
    return np.asarray(axes.images[0].get_array())


def test_maps_stand_in_columns_and_images_in_rows_on_one_scale(rng):
    first, second = rng.random((3, 20)), 0.1 * rng.random((3, 20))
    before = first.copy()
    grid = maps(first, second, titles=["one", "two"])
    assert grid.shape == (3, 2)
    assert [axes.get_title() for axes in grid[0]] == ["one", "two"]
    np.testing.assert_array_equal(drawn(grid[1, 0]), first[1].reshape(4, 5))
    np.testing.assert_array_equal(drawn(grid[2, 1]), second[2].reshape(4, 5))
    np.testing.assert_array_equal(first, before)
    grid[0, 0].figure.savefig(io.BytesIO(), format="svg")
    ((low, high),) = {axes.images[0].get_clim() for axes in grid.flat}
    assert low == -high
    assert 0.9 < high < 1.0
    axes = Figure(layout="constrained").subplots(2, 1)
    before = plt.get_fignums()
    assert maps(ONES, axes=axes).tolist() == [[axes[0]], [axes[1]]]
    assert plt.get_fignums() == before


def test_one_outlier_does_not_drain_the_colours(rng):
    for size, rest in ((1e6, 1.0), (1.0, 0.0), (0.0, 0.0)):
        W = rest * rng.uniform(-1, 1, size=(20, 20))
        W[0, 0] = size
        low, high = maps(W)[0, 0].images[0].get_clim()
        assert low == -high
        assert 0.9 < high <= 1.0


def test_channels_are_summed_beside_the_images(rng):
    W, images = rng.normal(size=(2, 60)), rng.random((2, 60))
    coloured = po.functions.ImageShape(channels=3, height=4, width=5)
    grid = po.plots.plot_image_maps([W], coloured, images=images)
    assert grid.shape == (2, 2)
    expected = W.reshape(2, 3, 4, 5).sum(axis=1)
    np.testing.assert_allclose(drawn(grid[1, 1]), expected[1])
    shown = drawn(grid[0, 0])
    np.testing.assert_allclose(shown, coloured.images(images)[0].transpose(1, 2, 0))
    grey = maps(images[:, :20], images=16 * images[:, :20])
    assert drawn(grey[0, 0]).max() == 1.0


# ---- what changed: bars, dots of refits, the level


def explained(W):
    return po.results.Explanation(attributions=np.asarray(W, float), method="mine")


def test_bars_beyond_the_level_are_red_and_refits_are_dots():
    zero = np.zeros((2, 3))
    others = [np.multiply(np.ones((2, 1)), [0.1 * k, 0.2 * k, 0.0]) for k in range(5)]
    level = po.null_models.NullModels(
        "bootstrap_refits", [explained(x) for x in others]
    )
    comparison = po.compare(
        explained(zero), explained([[0.5, 3.0, 0.0]] * 2), level=level
    )
    axes = ax()
    assert po.plots.plot_changes(comparison, n_features=2, ax=axes) is axes
    assert texts(axes.get_yticklabels()) == ["x1", "x0"]
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], [3.0, 0.5])
    colours = [to_hex(bar.get_facecolor()) for bar in axes.patches]
    assert colours == [RAISES, OPTIMIZED_COLOUR]
    dots, line = axes.get_lines()
    assert len(dots.get_xdata()) == 2 * 10
    assert line.get_xdata() == [pytest.approx(1.25 * 0.8)] * 2
    bare = po.plots.plot_changes(po.compare(explained(zero), explained(zero + 1.0)))
    assert len(bare.get_lines()) == 0
    with pytest.raises(InvalidInput, match="n_features"):
        po.plots.plot_changes(comparison, n_features=0)
