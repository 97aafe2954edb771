"""One coordinate, and the bins of two."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np
from matplotlib.axes import Axes
from scipy.integrate import quad
from scipy.stats import norm

from papers.engine.figure import PaperFigure
from papers.engine.findings import Invariant
from papers.engine.studies import Study, draw_charts
from papers.lime import functions
from papers.lime.charts import EXPECTED, RUNS, THEORY, legend_on_white
from papers.lime.runs import with_intercept
from papers.lime.statements import BAND, equals
from papers.linear_lime.normals import normal_law
from propopt.base.arrays import Array, Values
from propopt.lime.exact_limits import ExactLimits
from propopt.structures.products.sums import SumOfProducts


_ROW: Final = 1.2
_WIDTH: Final = 0.8
_EDGES = norm.ppf(np.arange(5) / 4)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Coordinate:
    """A function of one number, samples of it, and its surrogate.

    Parameters
    ----------
    coefficients : array (2,)
        β_0 and β_1.
    samples, weights : array (S,)
        Drawn by LIME.
    """

    coefficients: Values
    samples: Values
    weights: Values


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class CoordinateChart:
    """The function, its samples by their weights, bins, tangent and surrogate.

    Parameters
    ----------
    title : str
        Above the chart.
    coordinate : Coordinate
        What is drawn.
    """

    title: str
    coordinate: Coordinate

    def draw(self, axes: Axes) -> None:
        """Samples are larger with their weights."""
        one, f = self.coordinate, _bumps().value
        t = np.linspace(-3.0, 3.0, 301)
        here = f(np.array([[_ROW - 1e-5], [_ROW], [_ROW + 1e-5]]))
        slope = (here[2] - here[0]) / 2e-5
        near = np.array([_ROW - 0.8, _ROW + 0.8])
        axes.plot(t, f(t[:, None]), color="0.3", label="f")
        tangent = here[1] + slope * (near - _ROW)
        axes.plot(near, tangent, color=EXPECTED, label="tangent")
        axes.scatter(
            one.samples,
            f(one.samples[:, None]),
            s=30.0 * one.weights,
            color=RUNS,
            alpha=0.4,
            label="samples by weight",
        )
        low, high = one.coefficients[0], one.coefficients.sum()
        inside = (t >= _EDGES[3]).astype(float)
        axes.plot(t, low + (high - low) * inside, color=THEORY, label="surrogate")
        for edge in _EDGES[1:-1]:
            axes.axvline(edge, color="0.4", ls=":", lw=1)
        axes.plot(_ROW, here[1], "o", color="black", markersize=5, label="ξ")
        axes.set_xlabel("x", fontsize=9)
        axes.set_ylabel("f, and its surrogate", fontsize=9)
        legend_on_white(axes)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Quartiles:
    """500 rows of two columns, and their quartiles.

    Parameters
    ----------
    rows : array (500, 2)
        Of N(0, 1).
    """

    rows: Array

    @property
    def empirical(self) -> Array:
        """Quartiles of each column, (2, 3)."""
        return np.asarray(np.quantile(self.rows, [0.25, 0.5, 0.75], axis=0).T)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class QuartileChart:
    """Rows, with lines at quartiles of the rows and of the law.

    Parameters
    ----------
    title : str
        Above the chart.
    quartiles : Quartiles
        What is drawn.
    """

    title: str
    quartiles: Quartiles

    def draw(self, axes: Axes) -> None:
        """Lines of the law are red."""
        x, y = self.quartiles.rows.T
        axes.scatter(x, y, s=5, color="0.6")
        first, second = self.quartiles.empirical
        for k, edge in enumerate(_EDGES[1:-1]):
            axes.axvline(edge, color=THEORY, label=None if k else "of N(0, 1)")
            axes.axhline(edge, color=THEORY)
            told = None if k else "of the rows"
            axes.axvline(first[k], color=RUNS, ls="--", label=told)
            axes.axhline(second[k], color=RUNS, ls="--")
        axes.set_aspect("equal")
        axes.set_xlabel("x1", fontsize=9)
        axes.set_ylabel("x2", fontsize=9)
        legend_on_white(axes)


def coordinate_figure() -> PaperFigure:
    """Figure 2."""
    return PaperFigure(
        title="One coordinate",
        about="A sum of two bumps of one number, at ξ = 1.2; N(0, 1), p = 4, ν = 0.8. "
        "The surrogate is one number in the bin of ξ, and another outside.",
        panels=(
            Study(
                column="one coordinate",
                measure=coordinate,
                statements=(is_difference_of_means, levels_are_those_of_samples),
                charts=_coordinate_charts,
            ),
        ),
        draw=partial(draw_charts, size=(6.0, 3.6)),
    )


def quartiles_figure() -> PaperFigure:
    """Figure 3."""
    return PaperFigure(
        title="Quartiles of rows, and of the law",
        about="500 rows of two columns that are N(0, 1).",
        panels=(
            Study(
                column="quartiles",
                measure=quartiles,
                statements=(rows_have_those_of_the_law, bins_end_there),
                charts=_quartile_charts,
            ),
        ),
        draw=partial(draw_charts, size=(4.6, 4.6)),
    )


def coordinate() -> Coordinate:
    """With 400 samples to draw."""
    law, row = normal_law(_WIDTH, 1), np.array([[_ROW]])
    draws = law.draw(row, 400, np.random.default_rng(0))
    limits = ExactLimits(_bumps(), law).of(row)
    return Coordinate(
        coefficients=with_intercept(limits),
        samples=draws.samples[0, :, 0],
        weights=draws.weights[0],
    )


def quartiles() -> Quartiles:
    """Of one seed."""
    return Quartiles(rows=np.random.RandomState(0).normal(size=(500, 2)))


def is_difference_of_means(one: Coordinate) -> Invariant:
    """By quadrature of f under N(ξ / (ν² + 1), ν² / (ν² + 1)), in the bin and out."""
    inside = _mean_between(_EDGES[3], 12.0)
    outside = _mean_between(-12.0, _EDGES[3])
    return equals(
        "(β_0, β_1) are the mean outside the bin of ξ, and how much more it is inside, "
        "by quadrature",
        one.coefficients,
        np.array([outside, inside - outside]),
        1e-9,
    )


def levels_are_those_of_samples(one: Coordinate) -> Invariant:
    """Weighted means of 200,000 samples, with sandwich errors."""
    row = np.array([[_ROW]])
    draws = normal_law(_WIDTH, 1).draw(row, 200_000, np.random.default_rng(1))
    values, weights = _bumps().value(draws.samples[0]), draws.weights[0]
    levels = (0.0, one.coefficients[0]), (1.0, one.coefficients.sum())
    scores = []
    for bit, level in levels:
        w = weights * (draws.bits[0, :, 0] == bit)
        error = np.sqrt(((w * (values - level)) ** 2).sum()) / w.sum()
        scores.append((w @ values / w.sum() - level) / error)
    return Invariant(
        statement="weighted means of 200,000 samples are the two levels: largest |z|",
        value=float(np.abs(scores).max()),
        sense="<=",
        limit=BAND,
    )


def rows_have_those_of_the_law(result: Quartiles) -> Invariant:
    """The error of a quantile is √(k (1 − k) / m) / φ."""
    shares = np.array([0.25, 0.5, 0.75])
    errors = np.sqrt(shares * (1 - shares) / len(result.rows)) / norm.pdf(_EDGES[1:-1])
    scores = (result.empirical - _EDGES[1:-1]) / errors
    return Invariant(
        statement="quartiles of 500 rows are those of the law: largest |z|",
        value=float(np.abs(scores).max()),
        sense="<=",
        limit=BAND,
    )


def bins_end_there(result: Quartiles) -> Invariant:
    """A row at the edge is in the upper bin, one just below it in the lower."""
    del result
    column = normal_law(1.0, 1).columns[0]
    edges = _EDGES[1:-1]
    at, below = column.bin_index(edges), column.bin_index(np.nextafter(edges, -10.0))
    wrong = (at != [1, 2, 3]).sum() + (below != [0, 1, 2]).sum()
    return equals("bins that end elsewhere", float(wrong), 0.0, 0.0)


def _bumps() -> SumOfProducts:
    centers, heights = np.array([[1.6], [-0.8]]), np.array([2.0, -1.0])
    return functions.gaussian_sum(centers, heights, 0.7)


def _mean_between(low: float, high: float) -> float:
    total = _WIDTH**2 + 1.0
    law = norm(_ROW / total, _WIDTH / np.sqrt(total))

    def part(x: float) -> float:
        return float(_bumps().value(np.array([[x]]))[0] * law.pdf(x))

    mass = float(law.cdf(high) - law.cdf(low))
    middle = float(law.mean())
    return float(quad(part, low, high, points=[middle], epsabs=1e-12)[0]) / mass


def _coordinate_charts(one: Coordinate) -> tuple[CoordinateChart, ...]:
    return (CoordinateChart(title="one coordinate", coordinate=one),)


def _quartile_charts(result: Quartiles) -> tuple[QuartileChart, ...]:
    return (QuartileChart(title="500 rows", quartiles=result),)
