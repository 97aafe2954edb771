"""Images as rows of pixels, and the graphs of their neighbours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusals

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


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "images"))
def test_other_shapes_and_sizes_are_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)
