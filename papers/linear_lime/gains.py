"""Signs of coefficients, and the two distances: where the paper errs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.stats import norm

from papers.engine.findings import Claim, Invariant, Misprint, Refuted
from papers.engine.studies import Study
from papers.lime import functions
from papers.lime.charts import RUNS, THEORY
from papers.lime.gaussian_theory import critical_bandwidths, gains
from papers.lime.lines import DrawnLine, Lines
from papers.lime.statements import equals
from papers.linear_lime.normals import ON, normal_law, normal_row
from propopt.base.arrays import Array
from propopt.lime import GaussianLaw, TabularLaw
from propopt.lime.exact_limits import ExactLimits


_WIDTHS = np.geomspace(0.1, 20.0, 150)
_GAINS = np.array([-1.6948, -0.4329, 0.4329, 1.6948])
_ROWS = np.array([0.1, 0.3, 0.34, 0.432, 0.6, -0.432, 1.0, -2.0])
_CRITICAL = np.array([np.nan, np.nan, 0.0904, 0.5301, 0.8827, 0.5301, np.nan, np.nan])
_SLOPES = np.array([10.0, -10.0, 3.0, 0.0])
_ROW = np.array([0.9607, 0.0892, -0.3, 1.0])
_NARROW = np.array([4.91, -3.99, -0.46, 0.0])
_WIDE = np.array([16.85, -4.32, -1.29, 0.0])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TwoDistances:
    """Coefficients of a linear function by the kernel width, with two distances.

    Parameters
    ----------
    of_numbers, of_bits : array (K, 4)
        Samples weighted by ‖x − ξ‖, and by ‖1 − z‖ as in the package.
    default : float
        The width of the package for four columns.
    """

    of_numbers: Array
    of_bits: Array
    default: float


def signs_study() -> Study[Array]:
    """Gains by the row."""
    return Study(
        column="signs",
        measure=gains_by_row,
        statements=(
            wide_gains_are_known,
            roots_are_known,
            no_scale_has_both,
            proportional_by_column,
            keep_signs,
            one_row,
        ),
        charts=_gain_charts,
    )


def distances_study() -> Study[TwoDistances]:
    """Coefficients by the width."""
    return Study(
        column="distances",
        measure=distances,
        statements=(
            ends_are_known,
            bits_do_not_see_the_width,
            behave_alike,
            default_as_printed,
        ),
        charts=_distance_charts,
    )


def gains_by_row() -> Array:
    """G at 200 rows in (−2, 2), for ν = 0.5, 1 and 1e4, (3, 200)."""
    rows = np.linspace(-2.0, 2.0, 200)[:, None]
    widths = (0.5, 1.0, 1e4)
    return np.stack([gains(normal_law(nu, 1), rows).gain[:, 0] for nu in widths])


def wide_gains_are_known(result: Array) -> Invariant:
    """In the four bins, ν → ∞."""
    del result
    rows = np.array([[-1.0], [-0.3], [0.3], [1.0]])
    wide = gains(normal_law(1e5, 1), rows).gain[:, 0]
    return equals("g for ν → ∞ is ∓1.6948, ∓0.4329", wide, _GAINS, 5e-5)


def roots_are_known(result: Array) -> Invariant:
    """Where there is a critical width, and which: −1 stands for none."""
    del result
    widths = critical_bandwidths(normal_law(1.0, 8), _ROWS[None, :])[0]
    return equals(
        "critical widths at eight rows, −1 for none",
        np.nan_to_num(widths, nan=-1.0),
        np.nan_to_num(_CRITICAL, nan=-1.0),
        1e-4,
    )


def no_scale_has_both(result: Array) -> Invariant:
    """By the standard deviation σ: the gain at ν = 1 where ν = 0.53 is critical.

    ν² = σ² (2 ξ − q₋ − q₊) / (q₋ + q₊), in the two middle bins alone.
    """
    del result
    scales = np.linspace(0.54, 5.0, 100)
    end = float(norm.ppf(0.75))
    rows = 0.5 * end * ((0.53 / scales) ** 2 + 1.0)  # in units of σ
    pairs = zip(scales, rows, strict=True)
    found = [gains(normal_law(1.0 / s, 1), [[u]]).gain[0, 0] * s for s, u in pairs]
    return equals(
        "whatever σ up to 5, the gain at ν = 1 of rows switched off at 0.53 is "
        "at most 0.186, below 0.41",
        float(np.max(found)),
        0.186,
        1e-3,
    )


def proportional_by_column(result: Array) -> Claim:
    """β_j / a_j is the same for all slopes."""
    del result
    exact, rows = GaussianLaw.of(np.zeros(4), 1.0, 1.0), _ROW[None, :]
    gain = gains(exact, rows).gain[0, :3]
    limits = ExactLimits(functions.linear_function(_SLOPES), exact).of(rows)
    off = np.abs(limits.coefficients[0, :3] / _SLOPES[:3] - gain).max()
    return _proportional(-float(off), -1e-9, "by a factor for each column, of any sign")


def keep_signs(result: Array) -> Claim:
    """Least gain at ν = 1."""
    told = f"below zero at {np.mean(result[1] < 0):.0%} of rows in (−2, 2)"
    least = float(result[1].min())
    return _proportional(least, 0.0, "by a factor that is positive", told)


def _proportional(value: float, limit: float, choice: str, note: str = "") -> Claim:
    return Claim(
        statement="coefficients are proportional to partial derivatives: least factor, "
        "or how far there is none, below zero",
        value=value,
        sense=">=",
        limit=limit,
        note=note,
        choice=choice,
    )


def one_row(result: Array) -> Claim:
    """The row of figure 4 has no critical width at all."""
    del result
    widths = critical_bandwidths(normal_law(1.0), normal_row(ON)[None, :])
    return Claim(
        statement="figures 4 and 7 have one set-up: distance of the critical width of "
        "the row of figure 4 from 0.53",
        value=float(np.nan_to_num(abs(widths[0, 1] - 0.53), nan=np.inf)),
        sense="<=",
        limit=0.01,
        note="β_2 = −4.1 at ν = 1 needs ξ_2 = 0.0892, which has none",
        if_false=Refuted(
            "with σ = 1, β_2 = −4.1 at ν = 1 needs ξ_2 = 0.0892, where no width makes "
            "it zero, and ν = 0.53 needs ξ_2 = ±0.432; σ is not printed, but no σ up "
            "to 5 has both: gains at rows with this critical width are at most 0.19, "
            "and −4.1 needs 0.41"
        ),
    )


def distances() -> TwoDistances:
    """The bins of both laws hold a quarter of N(0, 1) each."""
    f = functions.linear_function(_SLOPES)
    numbers = GaussianLaw.of(np.zeros(4), 1.0, 1.0)
    rows = np.random.RandomState(0).normal(size=(2000, 4))
    bits = TabularLaw.from_data(rows, kernel_width=1.0)
    points = np.tile(_ROW, (len(_WIDTHS), 1))
    of_numbers, of_bits = (
        ExactLimits(f, law).of(points, _WIDTHS).coefficients for law in (numbers, bits)
    )
    default = TabularLaw.from_data(rows).kernel_width
    return TwoDistances(of_numbers=of_numbers, of_bits=of_bits, default=default)


def ends_are_known(result: TwoDistances) -> Invariant:
    """At ν = 0.3 and 10."""
    del result
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


def bits_do_not_see_the_width(result: TwoDistances) -> Invariant:
    """Without ridge."""
    spread = np.ptp(result.of_bits, axis=0)
    return equals("with distances of bits they do not depend on ν", spread, 0.0, 1e-9)


def behave_alike(result: TwoDistances) -> Claim:
    """β_1 at the narrowest width over that at the widest, of both."""
    ratios = [b[0, 0] / b[-1, 0] for b in (result.of_numbers, result.of_bits)]
    return Claim(
        statement="both distances behave alike: β_1 at ν = 0.1 over that at ν = 20, "
        "by how much they differ",
        value=float(abs(ratios[0] - ratios[1])),
        sense="<=",
        limit=0.1,
        note="{:.2f} and {:.2f}".format(*ratios),
        if_false=Refuted(
            "f linear: with distances of bits β does not depend on ν, as weights "
            "factor; with those of numbers β_1 falls to 0.18 of its size"
        ),
    )


def default_as_printed(result: TwoDistances) -> Claim:
    """It grows with the root of d."""
    return Claim(
        statement="the package's width is 0.75 d: relative difference for d = 4",
        value=float(abs(0.75 * 4 / result.default - 1.0)),
        sense="<=",
        limit=1e-9,
        note=f"3 where it is {result.default:g}",
        if_false=Misprint("the package has 0.75 √d"),
    )


def _gain_charts(result: Array) -> tuple[Lines, ...]:
    rows = np.linspace(-2.0, 2.0, 200)
    colours = {"ν = 0.5": RUNS, "ν = 1": THEORY, "ν → ∞": "0.4"}
    return (
        Lines(
            title="what LIME makes of a slope of 1",
            x_label="ξ_j",
            y_label="gain g_j",
            curves=tuple(
                DrawnLine(label=name, x=rows, y=gain, colour=colour)
                for (name, colour), gain in zip(colours.items(), result, strict=True)
            ),
            marks={"ends of bins": (-0.6745, 0.0, 0.6745)},
        ),
    )


def _distance_charts(result: TwoDistances) -> tuple[Lines, ...]:
    both = {"‖x − ξ‖": (result.of_numbers, THEORY), "‖1 − z‖": (result.of_bits, RUNS)}
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
