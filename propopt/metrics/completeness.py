"""Completeness: whether the attributions add up to what they should explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import pandas as pd

from propopt._typing import Array, Attributions
from propopt.explainers.background import checked_background, same_columns
from propopt.explainers.request import Request
from propopt.metrics.base import Better, FaithfulnessMetric, quotient
from propopt.metrics.reading import (
    BACKGROUND_OF_TEXTS,
    AbsoluteOrRelative,
    mean_point,
    read_units,
)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class CompletenessGap(FaithfulnessMetric):
    """How far the attributions are from adding up (Sundararajan et al. 2017, axiom).

    |Σ_i w_i − (f(x) − f₀)| with f₀ the mean of f over the background, by default in the
    units of f, or divided by |f(x) − f₀|. A number, where others test for equality. It
    asks for attributions in units of output. In relative units, undefined where
    f(x) = f₀.

    Parameters
    ----------
    background : array or DataFrame (B, D), optional
        The points that stand for "feature unknown": the background or the baseline of
        the method; by default the mean of X.
    units : {"absolute", "relative"}
        Whether to divide by |f(x) − f₀|.

    Examples
    --------
    >>> import propopt as po
    >>> line = po.wrap(lambda X: X @ [1.0, 2.0])
    >>> CompletenessGap(background=[[0.0, 0.0]])([[3.0, 4.0]], line, [[3.0, 2.5]])
    array([1.])
    """

    better: ClassVar[Better] = "lower"

    background: Array | pd.DataFrame | None = None
    units: AbsoluteOrRelative = "absolute"

    def __post_init__(self) -> None:
        read_units(self.units)
        if self.background is not None:
            object.__setattr__(self, "background", checked_background(self.background))

    def _texts_refusal(self) -> str | None:
        return None if self.background is None else BACKGROUND_OF_TEXTS

    def _rows(self, task: Request, attributions: Attributions) -> Array:
        change = task.value(task.points) - task.value(self._background(task)).mean()
        gap: Array = np.abs(attributions.sum(axis=1) - change)
        return gap if self.units == "absolute" else quotient(gap, np.abs(change))

    def _background(self, task: Request) -> Array:
        if self.background is None:
            return mean_point(task)[None]
        return same_columns(self.background, task)
