"""Charts of curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import final

from matplotlib.axes import Axes

from propopt.base.arrays import Array


_STYLES = ("-", "--", "-.", ":")
"""Curves on others stay visible."""
_LEAST = 1e-8
"""Shares below are not shown."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Curves:
    """Curves over one quantity, by their labels, in logarithmic axes upwards.

    Parameters
    ----------
    title, x_label, y_label : str
        What they are of.
    curves : mapping
        By their labels, x and y (2, K).
    """

    title: str
    x_label: str
    y_label: str
    curves: Mapping[str, Array]

    def draw(self, axes: Axes) -> None:
        """Curves with a legend."""
        styles = zip(self.curves.items(), cycle(_STYLES), strict=False)
        for (label, (x, y)), style in styles:
            axes.plot(x, y, style, lw=1.6, label=label)
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, _LEAST * high), high)
        axes.set_xlabel(self.x_label, fontsize=9)
        axes.set_ylabel(self.y_label, fontsize=9)
        axes.legend(fontsize=8, frameon=False)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Entries:
    """Entries of a vector in order, and the band that they are said to be in.

    Parameters
    ----------
    title : str
        What they are of.
    entries : array (K,)
        In rising order.
    band : (float, float)
        Where they should be.
    """

    title: str
    entries: Array
    band: tuple[float, float]

    def draw(self, axes: Axes) -> None:
        """Points above their band."""
        axes.axhspan(*self.band, color="#2ca02c", alpha=0.3, lw=0, label="claimed")
        axes.plot(self.entries, ".", ms=3, color="#1f77b4", label="(K⁻¹1)_s")
        axes.set_xlabel("entries, in rising order", fontsize=9)
        axes.legend(fontsize=8, frameon=False)
