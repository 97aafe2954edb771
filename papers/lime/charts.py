"""Charts of coefficients: boxes of runs, curves, arrows in cells, histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from papers.lime.runs import Runs
from propopt.base.arrays import Array, Values
from propopt.base.text import matplotlib_text


THEORY, RUNS, OTHER, EXPECTED = "#c0392b", "#1f4e79", "#dd8452", "#2e7d32"


def legend_on_white(axes: Axes) -> None:
    """On white, so that lines do not strike it through; none for nothing."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7, edgecolor="none", framealpha=0.85, borderpad=0.2)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class BoxPlots:
    """Box plots of coefficients over runs, with the theory in red.

    Parameters
    ----------
    title : str
        Above the chart.
    runs : Runs
        Its intercept is left out.
    other : mapping
        More values (D,) for each coefficient, by what they are.
    expected : bool
        Whether the expected output at n is drawn beside the limit.
    """

    title: str
    runs: Runs
    other: Mapping[str, Values] = field(default_factory=dict)
    expected: bool = False

    def draw(self, axes: Axes) -> None:
        """Boxes at quartiles, whiskers at 1.5 times their distance, dots beyond."""
        runs = self.runs
        places = np.arange(1, len(runs.labels) + 1)
        axes.axhline(0.0, color="0.8", lw=0.8)
        axes.boxplot(
            runs.estimates[:, 1:],
            positions=places,
            widths=0.6,
            flierprops={"marker": ".", "markersize": 3, "markeredgecolor": "0.5"},
            medianprops={"color": RUNS},
            boxprops={"color": RUNS},
            whiskerprops={"color": RUNS},
            capprops={"color": RUNS},
        )
        axes.scatter(
            places, runs.limit[1:], marker="x", s=24, color=THEORY, zorder=4,
            label="theory",
        )  # fmt: skip
        if self.expected:
            axes.scatter(
                places, runs.expected[1:], marker="+", s=44, color=EXPECTED, zorder=5,
                label="expected at n",
            )  # fmt: skip
        for name, values in self.other.items():
            axes.scatter(
                places, values, marker="D", s=16, color=OTHER, zorder=3, label=name
            )
        _name_columns(axes, runs.labels)
        axes.set_ylabel("coefficient", fontsize=9)
        legend_on_white(axes)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Bars:
    """One explanation as bars, orange above zero and blue below; the theory is red.

    Parameters
    ----------
    title : str
        Above the chart.
    values : array (D,)
        Coefficients.
    runs : Runs
        With the theory.
    """

    title: str
    values: Values
    runs: Runs

    def draw(self, axes: Axes) -> None:
        """A bar for each column."""
        labels = self.runs.labels
        places = np.arange(1, len(labels) + 1)
        axes.axhline(0.0, color="0.8", lw=0.8)
        colours = [OTHER if value > 0.0 else RUNS for value in self.values]
        axes.bar(places, self.values, color=colours, alpha=0.6, width=0.6)
        axes.scatter(
            places, self.runs.limit[1:], marker="x", s=24, color=THEORY, zorder=4,
            label="theory",
        )  # fmt: skip
        _name_columns(axes, labels)
        axes.set_ylabel("coefficient", fontsize=9)
        legend_on_white(axes)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Arrows:
    """The coefficients of two columns as an arrow in each cell of the bins.

    Parameters
    ----------
    title : str
        Above the chart.
    edges : array (2, p + 1)
        Ends of bins of both columns.
    coefficients : array (p, p, 2)
        In each cell.
    box : (array, array), optional
        The lower and the upper corner of a rectangle that is marked.
    point : array (2,), optional
        A point that is marked.
    """

    title: str
    edges: Array
    coefficients: Array
    box: tuple[Values, Values] | None = None
    point: Values | None = None

    def draw(self, axes: Axes) -> None:
        """In the middle of its cell; the longest is as long as a cell is wide."""
        first, second = self.edges
        for x in first:
            axes.axvline(x, color="0.85", lw=0.8, zorder=0)
        for y in second:
            axes.axhline(y, color="0.85", lw=0.8, zorder=0)
        self._mark(axes)
        x, y = 0.5 * (self.edges[:, 1:] + self.edges[:, :-1])
        longest = np.linalg.norm(self.coefficients, axis=2).max()
        scale = 0.9 * np.diff(first).mean() / longest
        u, v = np.moveaxis(scale * self.coefficients, 2, 0)
        axes.quiver(
            *np.meshgrid(x, y, indexing="ij"), u, v, angles="xy", scale_units="xy",
            scale=1, color=THEORY, width=0.006, pivot="mid",
        )  # fmt: skip
        axes.set_xlabel("x1", fontsize=9)
        axes.set_ylabel("x2", fontsize=9)
        axes.set_xlim(first[0], first[-1])
        axes.set_ylim(second[0], second[-1])
        axes.set_aspect("equal")

    def _mark(self, axes: Axes) -> None:
        if self.box is not None:
            low, high = self.box
            corner, size = (float(low[0]), float(low[1])), (high - low).tolist()
            axes.add_patch(Rectangle(corner, *size, color=RUNS, alpha=0.3, lw=0))
        if self.point is not None:
            axes.plot(*self.point, "o", color=RUNS, markersize=5)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Histogram:
    """How often values came, with lines at some.

    Parameters
    ----------
    title, x_label : str
        What they are of.
    values : array (R,)
        The values.
    marks : mapping
        Where lines stand, by what they are.
    """

    title: str
    x_label: str
    values: Values
    marks: Mapping[str, float]

    def draw(self, axes: Axes) -> None:
        """Twenty bars."""
        axes.hist(self.values, bins=20, color=RUNS, alpha=0.5)
        colours = (THEORY, EXPECTED, OTHER, "0.3")
        for (name, place), colour in zip(self.marks.items(), colours, strict=False):
            axes.axvline(place, color=colour, lw=1.6, label=f"{name}: {place:.3g}")
        axes.set_xlabel(self.x_label, fontsize=9)
        axes.set_ylabel("runs", fontsize=9)
        legend_on_white(axes)


def _name_columns(axes: Axes, labels: Sequence[str]) -> None:
    """Under the places 1, ..., D; upright where they need more room than there is."""
    names = [fill(matplotlib_text(label).replace("_", " "), 16) for label in labels]
    upright = len("  ".join(names)) > 100
    positions = np.arange(1, len(names) + 1)
    axes.set_xticks(positions, names, rotation=90 if upright else 0)
