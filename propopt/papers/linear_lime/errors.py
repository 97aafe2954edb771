"""Where the paper errs: statements that do not hold, each with a number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np

from propopt._typing import Array, Values
from propopt.lime import GaussianLaw, TabularLaw, critical_bandwidths, gains
from propopt.lime.expectations import ExactLimits
from propopt.papers.lime import functions
from propopt.papers.lime.charts import RUNS, THEORY, DrawnLine, Histogram, Lines
from propopt.papers.lime.statements import equals
from propopt.papers.linear_lime.normals import ON, normal_law, normal_row
from propopt.reproduce.figure import PaperFigure
from propopt.reproduce.findings import Claim, Invariant
from propopt.reproduce.studies import Study, draw_charts


_WIDTHS = np.geomspace(0.1, 20.0, 150)
_GAINS = np.array([-1.6948, -0.4329, 0.4329, 1.6948])
_ROWS = np.array([0.1, 0.3, 0.34, 0.432, 0.6, -0.432, 1.0, -2.0])
_CRITICAL = np.array([np.nan, np.nan, 0.0904, 0.5301, 0.8827, 0.5301, np.nan, np.nan])
_SLOPES = np.array([10.0, -10.0, 3.0, 0.0])
_ROW = np.array([0.9607, 0.0892, -0.3, 1.0])
_NARROW = np.array([4.91, -3.99, -0.46, 0.0])
_WIDE = np.array([16.85, -4.32, -1.29, 0.0])
_CLAIMED: Final = 4 * 20**2 * np.exp(-2 * 200 * 0.2**2)
"""Lemma 8.4: 4 d² exp(−2 n t²) with d = 20, n = 200 and t = 0.2."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Distances:
    """Coefficients of a linear function by the kernel width, with two distances.

    Parameters
    ----------
    of_numbers, of_bits : array (K, 4)
        Samples weighted by ‖x − ξ‖, and by ‖1 − z‖ as in the package.
    """

    of_numbers: Array
    of_bits: Array


def false_statements_figure() -> PaperFigure:
    """Four of them."""
    return PaperFigure(
        title="Statements that do not hold",
        about="Gains g_j, by which LIME multiplies slopes, at rows in the middle of "
        "the four bins and beside; coefficients by the kernel width with the paper's "
        "distance and with the package's; deviations of Σ_n from its mean, d = 20, "
        "n = 200, ν = 50, 300 times; and the mean weight of a sample, ν = 10.",
        panels=(
            Study(
                column="signs",
                measure=gains_by_row,
                statements=(wide_gains_are_known, roots_are_known, keep_signs, one_row),
                charts=_gain_charts,
            ),
            Study(
                column="distances",
                measure=distances,
                statements=(ends_are_known, bits_do_not_see_the_width, behave_alike),
                charts=_distance_charts,
            ),
            Study(
                column="Lemma 8.4",
                measure=deviations,
                statements=(measured_is_known, lemma_8_4),
                charts=_deviation_charts,
            ),
            Study(
                column="mean weight",
                measure=mean_weights,
                statements=(weights_are_known, weight_is_one),
                charts=_weight_charts,
            ),
        ),
        draw=partial(draw_charts, size=(4.6, 3.0)),
    )


# signs


def gains_by_row() -> Array:
    """G at 200 rows in (−2, 2), for ν = 0.5, 1 and 1e4, (3, 200)."""
    rows = np.linspace(-2.0, 2.0, 200)[:, None]
    widths = (0.5, 1.0, 1e4)
    return np.stack([gains(normal_law(nu, 1), rows).gain[:, 0] for nu in widths])


def wide_gains_are_known(found: Array) -> Invariant:
    """In the four bins, ν → ∞."""
    del found
    rows = np.array([[-1.0], [-0.3], [0.3], [1.0]])
    wide = gains(normal_law(1e5, 1), rows).gain[:, 0]
    return equals("g for ν → ∞ is ∓1.6948, ∓0.4329", wide, _GAINS, 5e-5)


def roots_are_known(found: Array) -> Invariant:
    """Where there is a critical width, and which: −1 stands for none."""
    del found
    widths = critical_bandwidths(normal_law(1.0, 8), _ROWS[None, :]).widths[0]
    return equals(
        "critical widths at eight rows, −1 for none",
        np.nan_to_num(widths, nan=-1.0),
        np.nan_to_num(_CRITICAL, nan=-1.0),
        1e-4,
    )


def keep_signs(found: Array) -> Claim:
    """Read off "proportional to the partial derivatives"."""
    return Claim(
        statement="coefficients have the signs of slopes: least gain, ν = 1",
        value=float(found[1].min()),
        sense=">=",
        limit=0.0,
        note=f"below zero at {np.mean(found[1] < 0):.0%} of rows in (−2, 2)",
    )


def one_row(found: Array) -> Claim:
    """The row of figure 4 has no critical width at all."""
    del found
    widths = critical_bandwidths(normal_law(1.0), normal_row(ON)[None, :]).widths
    return Claim(
        statement="figures 4 and 7 have one set-up: distance of the critical width of "
        "the row of figure 4 from 0.53",
        value=float(np.nan_to_num(abs(widths[0, 1] - 0.53), nan=np.inf)),
        sense="<=",
        limit=0.01,
        note="β_2 = −4.1 at ν = 1 needs ξ_2 = 0.0892, which has none",
    )


# distances


def distances() -> Distances:
    """The bins of both laws hold a quarter of N(0, 1) each."""
    f = functions.linear_function(_SLOPES)
    numbers = GaussianLaw.of(np.zeros(4), 1.0, 1.0)
    rows = np.random.RandomState(0).normal(size=(2000, 4))
    bits = TabularLaw.from_data(rows, kernel_width=1.0)
    points = np.tile(_ROW, (len(_WIDTHS), 1))
    of_numbers, of_bits = (
        ExactLimits(f, law).of(points, _WIDTHS).coefficients for law in (numbers, bits)
    )
    return Distances(of_numbers=of_numbers, of_bits=of_bits)


def ends_are_known(found: Distances) -> Invariant:
    """At ν = 0.3 and 10."""
    del found
    exact = ExactLimits(
        functions.linear_function(_SLOPES), GaussianLaw.of(np.zeros(4), 1.0, 1.0)
    )
    limits = exact.of(np.tile(_ROW, (2, 1)), np.array([0.3, 10.0])).coefficients
    return equals(
        "coefficients at ν = 0.3 and 10, with the paper's distance, are known",
        limits,
        np.stack([_NARROW, _WIDE]),
        6e-3,
    )


def bits_do_not_see_the_width(found: Distances) -> Invariant:
    """Without ridge."""
    spread = np.ptp(found.of_bits, axis=0)
    return equals("with distances of bits they do not depend on ν", spread, 0.0, 1e-9)


def behave_alike(found: Distances) -> Claim:
    """β_1 at the narrowest width over that at the widest, of both."""
    ratios = [b[0, 0] / b[-1, 0] for b in (found.of_numbers, found.of_bits)]
    return Claim(
        statement="both distances behave alike: β_1 at ν = 0.1 over that at ν = 20, "
        "by how much they differ",
        value=float(abs(ratios[0] - ratios[1])),
        sense="<=",
        limit=0.1,
        note="{:.2f} and {:.2f}".format(*ratios),
    )


# Lemma 8.4


def deviations() -> Values:
    """‖Σ̂ − Σ‖ of 300 times 200 samples, (300,)."""
    law, row = normal_law(50.0, 20), np.full((1, 20), 0.1)
    rng = np.random.default_rng(0)
    draws = law.draw(np.tile(row, (300, 1)), 200, rng)
    Z = np.concatenate([np.ones((300, 200, 1)), draws.bits], axis=2)
    found = np.einsum("rs,rsi,rsj->rij", draws.weights, Z, Z, optimize=True) / 200
    limits = ExactLimits(functions.linear_function(np.zeros(20)), law).of(row)
    a = np.r_[1.0, limits.alpha[0]]
    mean = np.outer(a, a)
    np.fill_diagonal(mean, a)
    mean *= np.exp(limits.log_weight[0])
    return np.asarray(np.linalg.norm(found - mean, ord=2, axis=(1, 2)))


def measured_is_known(found: Values) -> Invariant:
    """0.89 of 300, within five standard errors of both."""
    share = float(np.mean(found >= 0.2))
    return equals("share of deviations of at least 0.2 is 0.89", share, 0.89, 0.13)


def lemma_8_4(found: Values) -> Claim:
    """The probability that it claims."""
    return Claim(
        statement="Lemma 8.4: P(‖Σ_n − Σ‖ ≥ t) ≤ 4 d² exp(−2 n t²): share of 300",
        value=float(np.mean(found >= 0.2)),
        sense="<=",
        limit=float(_CLAIMED),
    )


# the mean weight


def mean_weights() -> Array:
    """d, and the mean weight of a sample at ν = 10 and ξ = μ, (2, K)."""
    dimensions = np.array([10, 30, 100, 300, 1000])
    logs = [
        gains(normal_law(10.0, d), np.zeros((1, d))).log_weight[0] for d in dimensions
    ]
    return np.stack([dimensions, np.exp(logs)])


def weights_are_known(found: Array) -> Invariant:
    """In 10, 100 and 1000 dimensions."""
    known = np.array([0.951, 0.608, 0.0069])
    return equals("C is 0.951, 0.608, 0.0069", found[1, [0, 2, 4]], known, 5e-4)


def weight_is_one(found: Array) -> Claim:
    """For ν much larger than σ."""
    return Claim(
        statement="C_d ≈ 1 for ν ≫ σ in any dimension: at ν = 10 σ, d = 1000",
        value=float(found[1, -1]),
        sense=">=",
        limit=0.9,
    )


# what is drawn


def _gain_charts(found: Array) -> tuple[Lines, ...]:
    rows = np.linspace(-2.0, 2.0, 200)
    colours = {"ν = 0.5": RUNS, "ν = 1": THEORY, "ν → ∞": "0.4"}
    return (
        Lines(
            title="what LIME makes of a slope of 1",
            x_label="ξ_j",
            y_label="gain g_j",
            curves=tuple(
                DrawnLine(label=name, x=rows, y=gain, colour=colour)
                for (name, colour), gain in zip(colours.items(), found, strict=True)
            ),
            marks={"ends of bins": (-0.6745, 0.0, 0.6745)},
        ),
    )


def _distance_charts(found: Distances) -> tuple[Lines, ...]:
    both = {"‖x − ξ‖": (found.of_numbers, THEORY), "‖1 − z‖": (found.of_bits, RUNS)}
    return (
        Lines(
            title="two distances",
            x_label="ν",
            y_label="coefficient",
            curves=tuple(
                DrawnLine(
                    label=f"β_{j + 1}, {name}",
                    x=_WIDTHS,
                    y=curves[:, j],
                    colour=colour,
                    line=line,
                )
                for name, (curves, colour) in both.items()
                for j, line in enumerate(("-", "--"))
            ),
            log=True,
        ),
    )


def _deviation_charts(found: Values) -> tuple[Histogram, ...]:
    return (
        Histogram(
            title=f"claimed beyond 0.2: {_CLAIMED:.1e}",
            x_label="‖Σ_n − Σ‖",
            values=found,
            marks={"t": 0.2},
        ),
    )


def _weight_charts(found: Array) -> tuple[Lines, ...]:
    return (
        Lines(
            title="mean weight of a sample, ν = 10 σ",
            x_label="dimensions",
            y_label="C",
            curves=(DrawnLine(label="C", x=found[0], y=found[1], line="o-"),),
            log=True,
        ),
    )
