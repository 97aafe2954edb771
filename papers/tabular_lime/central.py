"""Why a central bin sends a coefficient near zero: the factor v_j of a slope."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np
from matplotlib.axes import Axes

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant
from papers.engine.studies import Study, draw_charts
from papers.lime import functions
from papers.lime.charts import EXPECTED, RUNS, THEORY, legend_on_white
from papers.lime.statements import equals
from papers.tabular_lime.formulas import places_of, truncated
from papers.tabular_lime.setups import uniform_data, uniform_law
from propopt.base.arrays import Values
from propopt.lime.exact_limits import ExactLimits


_ROWS: Final = {"a central bin": 0.0, "an outer bin": 9.0}


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class BinMeans:
    """Means of draws in the bins of one column, seen from the bins of two rows.

    Parameters
    ----------
    edges : array (p + 1,)
        Ends of bins.
    means : array (p,)
        Of the truncated normals.
    own : array (2,)
        Those of the bins of both rows.
    slopes : array (2,)
        The coefficient of f(x) = x at both.
    """

    edges: Values
    means: Values
    own: Values
    slopes: Values

    @property
    def factors(self) -> Values:
        """V_j of both rows, the mean difference from the other bins, (2,)."""
        differences = self.own[:, None] - self.means
        return np.asarray(differences.sum(axis=1) / (len(self.means) - 1))


@final
@dataclass(frozen=True, eq=False)
class DifferencesChart:
    """An arrow from the mean of each bin to that of the bin of a row."""

    title: str
    bins: BinMeans
    place: int

    def draw(self, axes: Axes) -> None:
        """One arrow under the other; the last one is their mean."""
        bins, own = self.bins, self.bins.own[self.place]
        for edge in bins.edges:
            axes.axvline(edge, color="0.8", lw=0.8)
        others = [mean for mean in bins.means if mean != own]
        for k, mean in enumerate(others, 1):
            _arrow(axes, own, mean, -k, EXPECTED)
        factor = bins.factors[self.place]
        _arrow(axes, own, own - factor, -len(others) - 1, RUNS)
        axes.plot(bins.means, np.zeros_like(bins.means), "x", color=THEORY,
                  label="means of bins")  # fmt: skip
        axes.plot([], [], color=EXPECTED, label="differences")
        axes.plot([], [], color=RUNS, label=f"their mean, {factor:.2f}")
        axes.set_ylim(-len(others) - 2, 1)
        axes.set_yticks([])
        axes.set_xlabel("x", fontsize=9)
        legend_on_white(axes)


def central_figure() -> PaperFigure:
    """Figure 9."""
    return PaperFigure(
        title="The factor of a slope in a central and in an outer bin",
        about="v_j, the mean difference between the mean of draws in the bin of the "
        "row and in the other bins, for 1000 training values that are uniform over "
        "[−10, 10] in five bins, at 0 and at 9. The paper names no data.",
        panels=(
            Study(
                column="five bins",
                measure=bin_means,
                statements=(slopes_are_factors, central_is_small),
                charts=_charts,
            ),
        ),
        draw=partial(draw_charts, size=(5.0, 2.8)),
    )


def bin_means() -> BinMeans:
    """Of one uniform column in five bins."""
    law = uniform_law(uniform_data(np.random.RandomState(0), 1), 5)
    means = np.asarray(truncated(law.columns[0]).mean())
    rows = np.array(list(_ROWS.values()))[:, None]
    f = functions.linear_function(np.ones(1))
    return BinMeans(
        edges=np.r_[law.columns[0].pieces.low[0], law.columns[0].pieces.high],
        means=means,
        own=np.array([means[places_of(law, row)[0]] for row in rows]),
        slopes=ExactLimits(f, law).of(rows).coefficients[:, 0],
    )


def slopes_are_factors(bins: BinMeans) -> Invariant:
    """A slope of one has v_j for its coefficient."""
    return equals("v_j is the coefficient of x", bins.slopes, bins.factors, 1e-9)


def central_is_small(bins: BinMeans) -> Claim:
    """The factor in the central bin over that in the outer one."""
    central, outer = bins.factors
    return Claim(
        statement="v_j is small in a central bin and much larger in an outer one: its "
        "size over that in the outer bin",
        value=float(abs(central / outer)),
        sense="<=",
        limit=0.1,
        note=f"{central:.3f} and {outer:.3f}",
    )


def _arrow(axes: Axes, start: float, stop: float, height: float, colour: str) -> None:
    axes.annotate(
        "", xy=(stop, height), xytext=(start, height),
        arrowprops={"arrowstyle": "->", "color": colour},
    )  # fmt: skip


def _charts(bins: BinMeans) -> tuple[DifferencesChart, ...]:
    return tuple(DifferencesChart(name, bins, k) for k, name in enumerate(_ROWS))
