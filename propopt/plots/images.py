"""Attributions of images as maps in one grid, on one colour scale, white at zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import matplotlib_text
from propopt.functions import ImageShape
from propopt.plots.attributions import DIVERGING, OUTLIERS
from propopt.results.explanation import Explanation
from propopt.tables.imported import AttributionsLike, read_attributions


@suggests_arguments
def plot_image_maps(
    maps: Sequence[AttributionsLike],
    shape: ImageShape,
    *,
    titles: Sequence[str] | None = None,
    images: ArrayLike | None = None,
    axes: Any = None,
) -> NDArray[np.object_]:
    """Draw attributions as images: one row for each image, one column for each method.

    All maps share one scale, symmetric about zero: orange raises the output and blue
    lowers it. Colours span 99 % of all pixels; larger attributions have the colour of
    the end. Channels are summed: the colour of a pixel is the first-order effect of one
    more unit in each of its channels.

    Parameters
    ----------
    maps : sequence of Explanation, shap.Explanation, DataFrame or array
        Attributions (N, D) of the same N images; one column for each.
    shape : ImageShape
        The shape of one image, D = C·H·W.
    titles : sequence of str, optional
        Titles of the columns; by default the methods of the explanations.
    images : array (N, D), optional
        The images, drawn in a first column.
    axes : array of matplotlib Axes, optional
        The axes to draw on, of shape (N, columns); a new figure by default.

    Returns
    -------
    array of Axes (N, columns)

    Raises
    ------
    InvalidInput
        If the maps have different shapes, or if the number of titles or axes differs
        from theirs.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> shape = po.functions.ImageShape(channels=1, height=8, width=8)
    >>> W = np.random.default_rng(0).normal(size=(3, 64))
    >>> po.plots.plot_image_maps([W, 0.5 * W], shape, titles=["all", "half"]).shape
    (3, 2)
    """
    # channels are summed: one map (H, W) for each image
    pictures = [
        shape.images(read_attributions(W, "maps").values).sum(axis=1) for W in maps
    ]
    originals = [] if images is None else [shape.images(images)]
    counts = sorted({len(column) for column in (*originals, *pictures)})
    if len(counts) != 1 or counts[0] == 0:
        raise InvalidInput(
            "maps: expected one map of each image from each method, got "
            f"{' and '.join(map(str, counts)) or 'none'}"
        )
    if titles is None:
        titles = [
            matplotlib_text(column.method) if isinstance(column, Explanation) else ""
            for column in maps
        ]
    if len(titles) != len(maps):
        raise InvalidInput(f"titles: expected {len(maps)}, got {len(titles)}")
    first = len(originals)
    size = len(pictures[0]), first + len(pictures)
    if axes is None:
        inches = 0.8 + 1.15 * size[1], 0.3 + 1.05 * size[0]
        figure = plt.figure(figsize=inches, layout="constrained")
        axes = figure.subplots(*size, squeeze=False)
    grid = np.asarray(axes, dtype=object)
    if grid.size != size[0] * size[1]:
        raise InvalidInput(f"axes: expected {size}, got {grid.shape}")
    grid = grid.reshape(size)
    for photographs in originals:
        _draw_images(grid[:, 0].tolist(), photographs)
    sizes = np.abs(pictures)
    reach = float(np.percentile(sizes, 100.0 - OUTLIERS)) or float(sizes.max()) or 1.0
    for column, picture, title in zip(grid[:, first:].T, pictures, titles, strict=True):
        for cell, values in zip(column, picture, strict=True):
            cell.imshow(values, cmap=DIVERGING, vmin=-reach, vmax=reach)
            cell.set_axis_off()
        column[0].set_title(title, fontsize="small")
    bar = grid[0, 0].figure.colorbar(
        grid[0, first].images[0],
        ax=list(grid.flat),
        label="attribution: orange raises the output, blue lowers it",
        aspect=40,
        extend="both" if sizes.max() > reach else "neither",
    )
    bar.outline.set_visible(False)
    return grid


def _draw_images(column: list[Axes], images: Array) -> None:
    """Images in colour, or the mean of their channels, with brightness in [0, 1]."""
    for axes, image in zip(column, images, strict=True):
        pixels = image.transpose(1, 2, 0) if len(image) == 3 else image.mean(axis=0)
        low = min(float(pixels.min()), 0.0)
        high = max(float(pixels.max()), 1.0)
        axes.imshow((pixels - low) / (high - low), cmap="gray", vmin=0.0, vmax=1.0)
        axes.set_axis_off()
    column[0].set_title("image", fontsize="small")
