"""Images as points: every image is a row, and every explanation of a row an image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Points
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.losses.graphs.points import SimilarityGraph, pixel_graph
from propopt.losses.operators import LatticeLaplacian


def read_sizes(input_shape: Sequence[int] | ImageShape) -> tuple[int, ...]:
    """The checked shape of one input of a model."""
    if isinstance(input_shape, ImageShape):
        return input_shape.sizes
    return tuple(read_count(size, "input_shape") for size in input_shape)


def check_width(points: Points, shape: tuple[int, ...]) -> None:
    """Refuse points (n, D) that do not have as many numbers as an input."""
    if points.shape[1] != prod(shape):
        raise InvalidInput(
            f"X: input_shape {shape} takes {prod(shape)} columns, got {points.shape[1]}"
        )


def call_with_inputs(
    call: Callable[[Array], object], shape: tuple[int, ...], table: Any
) -> object:
    """Call a callable for n inputs of a shape with a table (n, D) of their numbers."""
    points = np.array(table, dtype=np.float64)
    check_width(points, shape)
    return call(points.reshape(-1, *shape))


@final
@suggests_arguments
@dataclass(frozen=True)
class ImageShape:
    """The shape (C, H, W) of images that are explained as rows of D = C·H·W features.

    Features are in row-major order: channel, then row, then column.

    Parameters
    ----------
    channels, height, width : int
        C, H and W, each at least one.

    Raises
    ------
    InvalidInput
        If a size is not an integer of at least one.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.functions import ImageShape
    >>> shape = ImageShape(channels=3, height=4, width=5)
    >>> images = np.random.default_rng(0).random((2, 3, 4, 5))
    >>> rows = shape.rows(images)
    >>> rows.shape
    (2, 60)
    >>> bool((shape.images(rows) == images).all())
    True
    >>> shape.pixel_graph()
    <pixel graph: 60 nodes, 93 edges, channels=3, height=4, width=5>
    """

    channels: int
    height: int
    width: int

    def __post_init__(self) -> None:
        read_count(self.channels, "channels")
        read_count(self.height, "height")
        read_count(self.width, "width")

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The shape (C, H, W) of one image."""
        return self.channels, self.height, self.width

    @property
    def n_features(self) -> int:
        """The number of features, D = C·H·W."""
        return prod(self.sizes)

    def rows(self, images: ArrayLike) -> Points:
        """Convert images (N, C, H, W) to points (N, D).

        Raises
        ------
        InvalidInput
            If the images have another shape.
        """
        array = np.asarray(images, dtype=np.float64)
        if array.ndim != 4 or array.shape[1:] != self.sizes:
            raise InvalidInput(
                f"images: expected shape (N, {self.channels}, {self.height}, "
                f"{self.width}), got {array.shape}"
            )
        return array.reshape(len(array), self.n_features)

    def images(self, rows: ArrayLike) -> Array:
        """Convert points or attributions (N, D) to images (N, C, H, W).

        Raises
        ------
        InvalidInput
            If the rows have another length.
        """
        array = np.asarray(rows, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != self.n_features:
            raise InvalidInput(
                f"rows: expected shape (N, {self.n_features}), got {array.shape}"
            )
        return array.reshape(len(array), *self.sizes)

    def pixel_graph(self) -> SimilarityGraph:
        """The graph that links each pixel to its neighbours in the same channel.

        Channels are not joined: the similarities are I_C ⊗ S, with S of the
        ``pixel_graph`` of one channel.
        """
        one = pixel_graph(self.height, self.width).similarities
        all_channels = sp.csr_array(sp.kron(sp.eye_array(self.channels), one))
        names = "channels", "height", "width"
        parameters = dict(zip(names, self.sizes, strict=True))
        graph = SimilarityGraph(all_channels, "pixel", parameters)
        graph.lattice = LatticeLaplacian(self.sizes, (0.0, 1.0, 1.0))
        return graph
