"""The point that stands for "feature unknown" where none is given."""

from __future__ import annotations

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.explainers.base import Task


def mean_point(task: Task) -> Array:
    """The mean of X, (D,); refused for categories, which have none."""
    if task.categorical.any():
        raise InvalidInput(
            "baseline: categories have no mean; give a baseline, or a background"
        )
    mean: Array = task.points.mean(axis=0)
    return mean
