"""Bars of seconds by method and size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from papers.lime.charts import legend_on_white


@final
@dataclass(frozen=True, eq=False)
class TimeBars:
    """Seconds by method, one bar for each size, logarithmic.

    Parameters
    ----------
    table : DataFrame
        With ``method``, ``N``, ``M`` and ``seconds``.
    """

    table: pd.DataFrame
    title: str = "processor time, extrapolated"

    def draw(self, axes: Axes) -> None:
        """What could not be computed has no bar."""
        sizes = list(dict.fromkeys(zip(self.table["N"], self.table["M"], strict=True)))
        methods = list(dict.fromkeys(self.table["method"]))
        width = 0.8 / len(sizes)
        for k, (n_rows, n_features) in enumerate(sizes):
            own = self.table[self.table["N"] == n_rows].set_index("method")["seconds"]
            positions = np.arange(len(methods)) + (k - (len(sizes) - 1) / 2) * width
            axes.bar(
                positions, own.reindex(methods).to_numpy(), width,
                color=("#1f4e79", "#7f9fc0", "#dd8452")[k % 3],
                label=f"N = {n_rows}, M = {n_features}",
            )  # fmt: skip
        axes.set_yscale("log")
        axes.set_ylabel("seconds", fontsize=9)
        axes.set_xticks(np.arange(len(methods)), methods, fontsize=7)
        legend_on_white(axes)
