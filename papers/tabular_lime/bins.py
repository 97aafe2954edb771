"""Bins of a column, and the laws from which values are drawn in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import truncnorm

from papers.engine.figure import PaperFigure
from papers.engine.findings import Invariant
from papers.engine.studies import Study, draw_charts
from papers.lime.charts import RUNS, THEORY, legend_on_white
from papers.lime.statements import BAND, equals
from papers.tabular_lime.setups import uniform_law, wine_table
from propopt.base.arrays import Array, Values


_COLUMN: Final = "total_phenols"
_DRAWS: Final = 100_000
_BINS: Final = 4


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class BinsOfColumn:
    """Bins of one column, its values, and draws.

    Parameters
    ----------
    values : array (m,)
        Of the table.
    edges : array (p + 1,)
        Ends of bins.
    means, deviations : array (p,)
        Of the values in each bin.
    laws : array (4, p)
        Location, scale and ends of the truncated normals that are drawn from.
    draws : array (S,)
        Of the whole law.
    """

    values: Values
    edges: Values
    means: Values
    deviations: Values
    laws: Array
    draws: Values

    @property
    def truncated(self) -> truncnorm:
        """The law in each bin, of SciPy."""
        location, scale, low, high = self.laws
        ends = (low - location) / scale, (high - location) / scale
        return truncnorm(*ends, loc=location, scale=scale)

    def of_bins(self, values: Values) -> list[Values]:
        """Those in each bin."""
        place = np.searchsorted(self.edges[1:-1], values)
        return [values[place == b] for b in range(len(self.means))]

    def to_frame(self) -> pd.DataFrame:
        """A row for each bin."""
        return pd.DataFrame(
            {
                "from": self.edges[:-1],
                "to": self.edges[1:],
                "values": [len(part) for part in self.of_bins(self.values)],
                "mean": self.means,
                "sd": self.deviations,
                "mean of draws": [part.mean() for part in self.of_bins(self.draws)],
                "mean of the law": self.truncated.mean(),
                "sd of the law": self.truncated.std(),
            }
        )


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class BinChart:
    """Values of a column, ends of bins, and the density of draws.

    Parameters
    ----------
    title : str
        Above the chart.
    bins : BinsOfColumn
        What is drawn.
    """

    title: str
    bins: BinsOfColumn

    def draw(self, axes: Axes) -> None:
        """Each bin has the same mass."""
        bins = self.bins
        axes.hist(
            bins.values, bins=30, density=True, color="0.8", label="178 wines", zorder=1
        )
        for edge in bins.edges:
            axes.axvline(edge, color="0.4", ls=":", lw=1)
        t = np.linspace(bins.edges[0], bins.edges[-1], 801)[:, None]
        density = (bins.truncated.pdf(t) / _BINS).sum(axis=1)
        axes.plot(t[:, 0], density, color=THEORY, label="density of draws")
        axes.errorbar(
            bins.means,
            np.full(_BINS, 0.04),
            xerr=bins.deviations,
            fmt="o",
            color=RUNS,
            markersize=4,
            label="mean ± sd of each bin",
        )
        axes.set_xlabel(_COLUMN.replace("_", " "), fontsize=9)
        axes.set_ylabel("density", fontsize=9)
        legend_on_white(axes)


def bins_figure() -> PaperFigure:
    """Total phenols of wine, and a skewed column."""
    return PaperFigure(
        title="Bins, and what is drawn in them",
        about="Total phenols of scikit-learn's 178 wines in four bins between "
        "quartiles, the mean and the deviation of the wines in each, and the density "
        "of the truncated normals with these as location and scale. These have other "
        "means and deviations than the wines of the bin; more so, in numbers alone, "
        "for 1000 lognormal values with σ = 1.5, whose last bin is skewed.",
        panels=(
            Study(
                column="total phenols",
                measure=bins_of_phenols,
                statements=(edges_are_quartiles, statistics_are_used, draws_follow),
                charts=_charts,
                numbers=BinsOfColumn.to_frame,
            ),
            Study(
                column="lognormal",
                measure=bins_of_skewed,
                statements=(
                    edges_are_quartiles,
                    statistics_are_used,
                    draws_follow,
                    skewed_mean_is_off,
                ),
                charts=_no_charts,
                numbers=BinsOfColumn.to_frame,
            ),
        ),
        draw=draw_charts,
    )


def bins_of_phenols() -> BinsOfColumn:
    """Of wine."""
    table, _ = wine_table()
    return bins_of_values(table[_COLUMN].to_numpy())


def bins_of_skewed() -> BinsOfColumn:
    """Of a thousand lognormal values."""
    return bins_of_values(np.random.RandomState(0).lognormal(0.0, 1.5, 1000))


def bins_of_values(values: Values) -> BinsOfColumn:
    """Of the law with bins that are equally likely."""
    law = uniform_law(values[:, None], _BINS)
    pieces = law.columns[0].pieces
    draws = law.draw(values[:1, None], _DRAWS, np.random.default_rng(0))
    edges = np.quantile(values, np.linspace(0.0, 1.0, _BINS + 1))
    place = np.searchsorted(edges[1:-1], values)
    return BinsOfColumn(
        values=values,
        edges=edges,
        means=np.array([values[place == b].mean() for b in range(_BINS)]),
        deviations=np.array([values[place == b].std() for b in range(_BINS)]),
        laws=np.stack([pieces.mean, pieces.sd, pieces.low, pieces.high]),
        draws=draws.samples[0, :, 0],
    )


def edges_are_quartiles(bins: BinsOfColumn) -> Invariant:
    """As NumPy has them, and SciPy's laws end there."""
    used = np.r_[bins.laws[2], bins.laws[3, -1]]
    return Invariant(
        statement="ends of bins are quartiles: largest difference",
        value=float(np.abs(used - bins.edges).max()),
        sense="<=",
        limit=1e-12,
    )


def statistics_are_used(bins: BinsOfColumn) -> Invariant:
    """Mean and population deviation of the wines in each bin."""
    known = np.stack([bins.means, bins.deviations])
    return Invariant(
        statement="location and scale are mean and deviation of the values of the bin: "
        "largest difference",
        value=float(np.abs(bins.laws[:2] - known).max()),
        sense="<=",
        limit=1e-12,
    )


def draws_follow(bins: BinsOfColumn) -> Invariant:
    """Shares and means of draws in each bin, against 1/4 and SciPy's means."""
    parts = bins.of_bins(bins.draws)
    shares = np.array([len(part) / len(bins.draws) for part in parts])
    off = (shares - 1 / _BINS) / np.sqrt(3 / 16 / len(bins.draws))
    errors = bins.truncated.std() / np.sqrt([len(part) for part in parts])
    means = np.array([part.mean() for part in parts])
    scores = np.r_[off, (means - bins.truncated.mean()) / errors]
    return Invariant(
        statement=f"{_DRAWS:,} draws fall into bins equally often, with the means of "
        "their laws: largest |z|",
        value=float(np.abs(scores).max()),
        sense="<=",
        limit=BAND,
    )


def skewed_mean_is_off(bins: BinsOfColumn) -> Invariant:
    """A normal law about the mean of the bin, cut at its ends, has another mean."""
    ratios = bins.truncated.mean() / bins.means
    result = equals(
        "what is drawn in the last bin has 1.4405 times the mean of its values",
        float(ratios[-1]),
        1.4405,
        5e-5,
    )
    told = f"{bins.truncated.mean()[-1]:.2f} against {bins.means[-1]:.2f}"
    return replace(result, note=told)


def _no_charts(bins: BinsOfColumn) -> tuple[BinChart, ...]:
    del bins
    return ()


def _charts(bins: BinsOfColumn) -> tuple[BinChart, ...]:
    return (BinChart(title="total phenols of wine", bins=bins),)
