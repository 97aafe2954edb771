"""Regular grids of points."""

from __future__ import annotations

import numpy as np

from propopt._typing import Points
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.memory import require_memory


def grid(
    low: float,
    high: float,
    per_dimension: int,
    dimensions: int,
    first: int | None = None,
) -> Points:
    """Points of a product grid on [low, high]^D, the last coordinate fastest.

    Parameters
    ----------
    low, high : float
        The end points of every axis; both belong to the grid.
    per_dimension : int
        Points on every axis, at least 2.
    dimensions : int
        The number D of axes.
    first : int, optional
        Keep only so many rows from the start; the others are never built.

    Returns
    -------
    array (``per_dimension`` ** D or ``first``, D)
        The points.

    Raises
    ------
    InvalidInput
        If the interval is empty or not finite, a number is too small, or ``first``
        exceeds the size of the grid.
    Refused
        If the points do not fit into memory.

    Examples
    --------
    >>> from propopt.graphs import grid
    >>> grid(-1, 1, per_dimension=2, dimensions=2)
    array([[-1., -1.],
           [-1.,  1.],
           [ 1., -1.],
           [ 1.,  1.]])
    >>> grid(-5, 5, per_dimension=5, dimensions=3, first=100).shape
    (100, 3)
    """
    _check_ends(low, high)
    count = grid_size(per_dimension, dimensions, first)
    n_bytes = 8.0 * (count * (3 * dimensions + 1) + per_dimension)
    require_memory(n_bytes, f"a grid of {count} points", "give fewer, or `first`")
    places = np.unravel_index(np.arange(count), (per_dimension,) * dimensions)
    return np.linspace(low, high, per_dimension)[np.stack(places, axis=1)]


def grid_size(per_dimension: int, dimensions: int, first: int | None = None) -> int:
    """How many points :func:`grid` would give, found without building any.

    Raises
    ------
    InvalidInput
        If a number is too small, ``first`` exceeds the size of the grid, or the whole
        grid has more points than an index can number.
    """
    if read_count(per_dimension, "per_dimension") < 2:
        raise InvalidInput("per_dimension: both ends need a point; expected at least 2")
    axes, most = read_count(dimensions, "dimensions"), int(np.iinfo(np.intp).max)
    if axes * np.log2(per_dimension) > 64 or per_dimension**axes > most:
        raise InvalidInput(
            f"grid: {per_dimension}^{axes} points are too many; expected at most {most}"
        )
    total: int = per_dimension**axes
    count = total if first is None else read_count(first, "first")
    if count > total:
        raise InvalidInput(f"first: the grid has only {total} points, got {count}")
    return count


def _check_ends(low: float, high: float) -> None:
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidInput(f"grid: expected finite low < high, got {low!r}, {high!r}")
    if not np.isfinite(float(high) - float(low)):
        raise InvalidInput("grid: low and high are too far apart")
