"""Images as rows of pixels, and the graphs of their neighbours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import propopt as po
from propopt.base.errors import InvalidInput


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


SHAPE = po.functions.ImageShape(channels=1, height=4, width=5)


@pytest.mark.parametrize("shape", [(5, 4, 5), (5, 1, 5, 4)])
def test_images_of_another_shape_are_refused(shape):
    with pytest.raises(InvalidInput, match=r"expected shape \(N, 1, 4, 5\), got"):
        SHAPE.rows(np.zeros(shape))
    with pytest.raises(InvalidInput, match=r"expected shape \(N, 20\), got \(5, 7\)"):
        SHAPE.images(np.zeros((5, 7)))


@pytest.mark.parametrize("sizes", [(0, 4, 4), (1, -1, 4), (1, 4, 2.0), (True, 4, 4)])
def test_sizes_are_positive_integers(sizes):
    with pytest.raises(InvalidInput, match="expected an integer >= 1"):
        po.functions.ImageShape(*sizes)
