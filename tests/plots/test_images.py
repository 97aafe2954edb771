"""Images as rows, the graph of their pixels, and pictures of their explanations."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import propopt as po
from propopt.base.errors import InvalidInput


sizes = st.integers(1, 5)
shapes = st.builds(po.ImageShape, channels=sizes, height=sizes, width=sizes)


@given(shape=shapes, n_images=sizes)
def test_images_are_rows_and_rows_images(shape, n_images):
    images = np.arange(n_images * shape.n_features).reshape(n_images, *shape.sizes)
    rows = shape.rows(images)
    assert rows.shape == (n_images, shape.n_features)
    np.testing.assert_array_equal(shape.images(rows), images)


@given(shape=shapes)
def test_pixels_are_joined_to_their_neighbours_in_the_same_channel(shape):
    similarities = shape.pixel_graph().similarities.toarray()
    indices = np.array(list(np.ndindex(*shape.sizes)))
    steps = np.abs(indices[:, None] - indices[None])
    neighbours = (steps[..., 0] == 0) & (steps.sum(axis=-1) == 1)
    np.testing.assert_array_equal(similarities, neighbours)


def test_pixel_graph_of_one_channel_is_that_of_its_size():
    ours = po.ImageShape(channels=1, height=3, width=4).pixel_graph()
    one = po.pixel_graph(3, 4)
    np.testing.assert_array_equal(
        ours.similarities.toarray(), one.similarities.toarray()
    )


def test_pixel_graph_of_a_photograph_is_small():
    graph = po.ImageShape(channels=3, height=224, width=224).pixel_graph()
    assert graph.n_nodes == 150_528
    assert graph.n_edges == 3 * 2 * 224 * 223
    assert graph.similarities.data.nbytes < 2**23


@pytest.mark.parametrize("sizes", [(0, 4, 4), (1, -1, 4), (1, 4, 2.0), (True, 4, 4)])
def test_sizes_are_whole_numbers_above_zero(sizes):
    with pytest.raises(InvalidInput, match="expected an integer >= 1"):
        po.ImageShape(*sizes)


def test_arrays_of_another_shape_are_refused():
    shape = po.ImageShape(channels=1, height=2, width=3)
    with pytest.raises(InvalidInput, match=r"expected shape \(N, 1, 2, 3\), got"):
        shape.rows(np.zeros((5, 2, 3)))
    with pytest.raises(InvalidInput, match=r"expected shape \(N, 1, 2, 3\), got"):
        shape.rows(np.zeros((5, 1, 3, 2)))
    with pytest.raises(InvalidInput, match=r"expected shape \(N, 6\), got \(5, 7\)"):
        shape.images(np.zeros((5, 7)))


# pictures


SHAPE = po.ImageShape(channels=1, height=4, width=5)
COLOURED = po.ImageShape(channels=3, height=4, width=5)


@pytest.fixture(autouse=True)
def no_figures_left(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("plt.show was called"))
    yield
    plt.close("all")


def drawn(axes):
    return np.asarray(axes.images[0].get_array())


def test_maps_stand_in_columns_and_images_in_rows(rng):
    first, second = rng.normal(size=(2, 3, 20))
    grid = po.plots.plot_image_maps([first, second], SHAPE, titles=["one", "two"])
    assert grid.shape == (3, 2)
    assert [axes.get_title() for axes in grid[0]] == ["one", "two"]
    np.testing.assert_array_equal(drawn(grid[1, 0]), first[1].reshape(4, 5))
    np.testing.assert_array_equal(drawn(grid[2, 1]), second[2].reshape(4, 5))
    grid[0, 0].figure.savefig(io.BytesIO(), format="svg")


def test_all_maps_share_one_scale_about_zero(rng):
    grid = po.plots.plot_image_maps(
        [rng.random((2, 20)), 0.1 * rng.random((2, 20))], SHAPE
    )
    limits = {axes.images[0].get_clim() for axes in grid.flat}
    ((low, high),) = limits
    assert low == -high
    assert 0.9 < high < 1.0


def test_one_outlier_does_not_drain_the_colours(rng):
    W = rng.uniform(-1, 1, size=(20, 20))
    W[0, 0] = 1e6
    grid = po.plots.plot_image_maps([W], SHAPE)
    assert grid[0, 0].images[0].get_clim()[1] < 1.0


@pytest.mark.parametrize("size", [0.0, 1.0])
def test_maps_with_few_values_can_be_drawn(size):
    W = np.zeros((20, 20))
    W[0, 0] = size
    grid = po.plots.plot_image_maps([W], SHAPE)
    assert grid[0, 0].images[0].get_clim() == (-1.0, 1.0)


def test_channels_are_summed(rng):
    W = rng.normal(size=(2, 60))
    grid = po.plots.plot_image_maps([W], COLOURED)
    expected = W.reshape(2, 3, 4, 5).sum(axis=1)
    np.testing.assert_allclose(drawn(grid[1, 0]), expected[1])


def test_images_are_the_first_column(rng):
    images = rng.random((2, 60))
    grid = po.plots.plot_image_maps([rng.normal(size=(2, 60))], COLOURED, images=images)
    assert grid.shape == (2, 2)
    shown = drawn(grid[0, 0])
    np.testing.assert_allclose(shown, COLOURED.images(images)[0].transpose(1, 2, 0))
    grey = po.plots.plot_image_maps([images[:, :20]], SHAPE, images=16 * images[:, :20])
    assert drawn(grey[0, 0]).max() == 1.0


def test_explanations_are_named_by_their_method():
    function, X = po.wrap(lambda X: (X**2).sum(axis=1)), np.ones((2, 20))
    gradient = po.explainers.Gradient().explain(function, X)
    best = po.solve(
        po.GradientMatching(gradient.attributions)
        + 0.1 * po.Smoothness(SHAPE.pixel_graph())
    )
    grid = po.plots.plot_image_maps([gradient, best], SHAPE)
    assert [axes.get_title() for axes in grid[0]] == ["gradient", "optimized"]


def test_given_axes_are_drawn_on(rng):
    figure = Figure(layout="constrained")
    axes = figure.subplots(2, 1)
    grid = po.plots.plot_image_maps([rng.normal(size=(2, 20))], SHAPE, axes=axes)
    assert grid.tolist() == [[axes[0]], [axes[1]]]
    assert plt.get_fignums() == []
    with pytest.raises(InvalidInput, match=r"axes: expected \(2, 1\), got \(3,\)"):
        po.plots.plot_image_maps(
            [rng.normal(size=(2, 20))], SHAPE, axes=figure.subplots(3, 1)
        )


def test_nothing_that_is_given_is_changed(rng):
    W, images = rng.normal(size=(2, 20)), 16 * rng.random((2, 20))
    before = W.copy(), images.copy()
    po.plots.plot_image_maps([W], SHAPE, images=images)
    np.testing.assert_array_equal(W, before[0])
    np.testing.assert_array_equal(images, before[1])


@pytest.mark.parametrize(
    ("maps", "arguments", "message"),
    [
        ([], {}, "maps: expected one map of each image .* got none"),
        ([np.ones((2, 20)), np.ones((3, 20))], {}, "got 2 and 3"),
        ([np.ones((2, 20))], {"images": np.ones((1, 20))}, "got 1 and 2"),
        ([np.ones((2, 19))], {}, r"expected shape \(N, 20\)"),
        ([np.ones((2, 20))], {"titles": ["a", "b"]}, "titles: expected 1, got 2"),
    ],
)
def test_maps_that_do_not_fit_are_refused(maps, arguments, message):
    with pytest.raises(InvalidInput, match=message):
        po.plots.plot_image_maps(maps, SHAPE, **arguments)
