"""Charts of lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Final, final

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from papers.lime.charts import RUNS, THEORY, legend_on_white
from propopt.base.arrays import Values


_MARKS: Final = (("0.4", ":"), (THEORY, "-"), (THEORY, "--"))
"""Colours and styles of vertical lines, by their place."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class DrawnLine:
    """A line of a chart of lines.

    Parameters
    ----------
    label : str
        In the legend; empty for none.
    x, y : array (K,)
        Its points.
    colour : str
        Of the line.
    line : str
        Its style.
    band : (array, array), optional
        Lower and upper ends (K,) of a band around it.
    """

    label: str
    x: Values
    y: Values
    colour: str = RUNS
    line: str = "-"
    band: tuple[Values, Values] | None = None


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Lines:
    """Lines, with vertical marks.

    Parameters
    ----------
    title, x_label, y_label : str
        What they are of.
    curves : sequence of DrawnLine
        In the order of the legend.
    marks : mapping
        Vertical lines at x, by what they are.
    log : bool
        Whether the horizontal axis is logarithmic.
    y_limits : (float, float), optional
        The ends of the vertical axis.
    legend : bool
        Whether there is one.
    """

    title: str
    x_label: str
    y_label: str
    curves: Sequence[DrawnLine]
    marks: Mapping[str, Sequence[float]] = field(default_factory=dict)
    log: bool = False
    y_limits: tuple[float, float] | None = None
    legend: bool = True

    def draw(self, axes: Axes) -> None:
        """Lines above their bands."""
        axes.axhline(0.0, color="0.8", lw=0.8)
        for curve in self.curves:
            if curve.band is not None:
                axes.fill_between(
                    curve.x, *curve.band, color=curve.colour, alpha=0.2, lw=0
                )
            axes.plot(
                curve.x, curve.y, curve.line, color=curve.colour, lw=1.4,
                label=curve.label or None,
            )  # fmt: skip
        styles = cycle(_MARKS)
        for (name, positions), (colour, style) in zip(
            self.marks.items(), styles, strict=False
        ):
            for k, place in enumerate(positions):
                axes.axvline(
                    place, color=colour, ls=style, lw=1, label=None if k else name
                )
        if self.log:
            axes.set_xscale("log")
        if self.y_limits is not None:
            axes.set_ylim(*self.y_limits)
        axes.set_xlabel(self.x_label, fontsize=9)
        axes.set_ylabel(self.y_label, fontsize=9)
        if not self.log and all((curve.x % 1 == 0).all() for curve in self.curves):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if self.legend:
            legend_on_white(axes)
