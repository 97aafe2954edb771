"""Charts: the numbers and names of a figure, which :mod:`propopt.plots` draws.

Results make these blocks, which hold nothing of matplotlib.
:func:`propopt.plots.draw` draws them on any axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, final

import numpy as np

from propopt.base.arrays import Array, Mask, Values
from propopt.base.suggestions import suggests_arguments


@dataclass(frozen=True, kw_only=True, eq=False)
class Chart:
    """The parts of all charts: a title, and the meaning and unit of the numbers."""

    title: str = ""
    caption: str = ""


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class Swarm(Chart):
    """Attributions of many rows, with a line for each feature: a beeswarm plot.

    A dot is one row. Its colour is the value of the feature: from low to high by ranks,
    or one colour for each category. Missing values are hollow.

    Parameters
    ----------
    names : sequence of str (D,)
        The features, from top to bottom.
    attributions : array (N, D)
        The horizontal position of each dot.
    values : array (N, D) or None
        Values of the features, or codes of categories; NaN is missing. Without values
        dots have one colour.
    categories : mapping
        The categories of each code, for categorical features.
    title, caption : str
        The title, and what the attributions measure.
    """

    names: Sequence[str]
    attributions: Array
    values: Array | None = None
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class Steps(Chart):
    """Bars, one below another: steps from a start to an end, or bars from zero.

    Parameters
    ----------
    names : sequence of str (K,)
        The bars, from top to bottom.
    parts : array (K,)
        Their signed lengths.
    start : float or None
        Where the lowest bar starts; each other bar starts where the one below ends, as
        in a waterfall plot. None: all bars start at zero.
    intervals : array (K, 2) or None
        The ends of a line across each bar, on the scale of the parts; NaN for no line.
    hatched : sequence of bool (K,)
        The bars that are hatched; none by default.
    hatching : str
        The meaning of hatched bars.
    marks : mapping
        Numbers on the axis with a vertical line, by name.
    sign : {"+", "-"}
        Format of the sign of numbers; distances have no plus.
    title, caption : str
        The title, and what the bars measure.
    """

    names: Sequence[str]
    parts: Values
    start: float | None = None
    intervals: Array | None = None
    hatched: Sequence[bool] | Mask = ()
    hatching: str = "sign not clear"
    marks: Mapping[str, float] = field(default_factory=dict)
    sign: Literal["+", "-"] = "+"

    @property
    def starts(self) -> Values:
        """Where each bar starts, (K,)."""
        if self.start is None:
            return np.zeros(len(self.parts))
        above = np.cumsum(self.parts[::-1])[::-1]  # of each bar and those below it
        return self.start + above - self.parts


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class Scatter(Chart):
    """Attributions of one feature against its values, perhaps coloured by another.

    Parameters
    ----------
    name : str
        The feature.
    values, attributions : array (N,)
        Its values, or codes of categories; NaN is missing. Their attributions.
    categories : sequence of str
        The categories of the codes; empty for numbers.
    color_name : str
        The feature that colours the dots; empty for one colour.
    color_values : array (N,) or None
        Its values or codes.
    color_categories : sequence of str
        Its categories; empty for numbers.
    title, caption : str
        The title, and what the attributions measure.
    """

    name: str
    values: Values
    attributions: Values
    categories: Sequence[str] = ()
    color_name: str = ""
    color_values: Values | None = None
    color_categories: Sequence[str] = ()


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class Grid(Chart):
    """A matrix in colours that are white at zero: a heat map, or pictures in a grid.

    Parameters
    ----------
    rows, columns : sequence of str
        Names of the rows and of the columns; none if there are too many.
    values : array (R, C)
        The cells; NaN cells are empty.
    tile : pair of int
        The shape of a picture, if each named cell is a picture of pixels.
    title, caption : str
        The title, and what the cells measure.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: Array
    tile: tuple[int, int] = (1, 1)


Scale: TypeAlias = Literal["linear", "log", "percent"]


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class Lines(Chart):
    """Lines and points, such as a trade-off, or coefficients over kernel widths.

    Parameters
    ----------
    lines : mapping
        Horizontal and vertical positions (M,) of each curve, by name.
    bands : mapping
        The lower and the upper end (M,) of a band around some of the curves.
    points : sequence of (str, float, float)
        Points with names; those without a name are small circles.
    others : mapping
        Positions (M,) of series to compare with, drawn as markers, by name.
    marks : mapping
        Numbers on the horizontal axis with a dotted line, by name.
    name : str
        The label of the horizontal axis.
    scales : pair of {"linear", "log", "percent"}
        The scales of both axes.
    title, caption : str
        The title, and the label of the vertical axis.
    """

    lines: Mapping[str, tuple[Values, Values]]
    bands: Mapping[str, tuple[Values, Values]] = field(default_factory=dict)
    points: Sequence[tuple[str, float, float]] = ()
    others: Mapping[str, tuple[Values, Values]] = field(default_factory=dict)
    marks: Mapping[str, float] = field(default_factory=dict)
    name: str = ""
    scales: tuple[Scale, Scale] = ("linear", "linear")
