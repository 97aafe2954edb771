"""A product of two columns: the default width, and coefficients for ν → 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Final, final

import numpy as np

from papers.engine.findings import Claim, Invariant, Misprint, Refuted
from papers.engine.studies import Study
from papers.lime import functions
from papers.lime.charts import EXPECTED, THEORY, Histogram
from papers.lime.lines import DrawnLine, Lines
from papers.lime.runs import Runs, RunSettings, run_lime, with_intercept
from papers.lime.statements import BAND, FORMULA, equals, mean_is_expected
from papers.tabular_lime.formulas import printed_limit, truncated
from papers.tabular_lime.setups import uniform_law
from propopt.base.arrays import Values
from propopt.lime.exact_limits import ExactLimits
from propopt.lime.finite_samples import expected
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.lime.paths import path_of_row
from propopt.structures.products.sums import SumOfProducts


_ROW = np.array([0.9, 0.1])
_WIDTHS = np.geomspace(0.05, 20.0, 200)
_NARROW: Final = (0.2, 0.15, 0.12, 0.1)
_ZERO: Final = math.sqrt(-0.5 / math.log(7 / 39))
"""Where the mean of x2 − 0.3 is 0: −0.175 in its bin, and 0.975 ε in the others."""


def width_study() -> Study[Runs]:
    """The package's default, and the paper's."""
    return Study(
        column="default width",
        measure=product_runs,
        statements=(mean_is_expected, default_width),
        charts=_width_charts,
        numbers=Runs.to_frame,
    )


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class NarrowCurves:
    """β_1 at all widths, and eq. 5 at narrow ones.

    Parameters
    ----------
    limit, mean : array (K,)
        Of infinitely many samples, and in the mean of runs of 5000.
    off : mapping
        How far eq. 5 in double precision is off, of the limit, by ν.
    """

    limit: Values
    mean: Values
    off: dict[float, float]


def narrow_study() -> Study[NarrowCurves]:
    """ν → 0."""
    return Study(
        column="ν → 0",
        measure=product_curves,
        statements=(
            limit_is_known,
            zero_is_known,
            ridge_is_known,
            vanishes_when_narrow,
            vanishes_with_ridge,
            keeps_its_digits,
            equation_5,
            equation_5_cancels,
        ),
        charts=_curve_charts,
    )


def product_runs() -> Runs:
    """With the width that the package has, 0.75 √D."""
    f, law = _product()
    return run_lime(f.value, f, law, _ROW, RunSettings(n_samples=100_000, n_runs=40))


def default_width(runs: Runs) -> Claim:
    """Against the limit at the paper's width, where ridge and first row are nothing."""
    paper = _limit(math.sqrt(0.75 * 2))
    errors = runs.spread / np.sqrt(len(runs.estimates))
    return Claim(
        statement="the package's width is √(0.75 D): largest |z| of the mean over runs "
        "against the limit there",
        value=float((np.abs(runs.mean - paper) / errors).max()),
        sense="<=",
        limit=BAND,
        note=f"largest difference {np.abs(runs.mean - paper).max():.2g}",
        if_false=Misprint("the package has 0.75 √D"),
    )


def product_curves() -> NarrowCurves:
    """At all widths."""
    limits = _exact().of(np.tile(_ROW, (len(_WIDTHS), 1)), _WIDTHS)
    value = np.full(len(_WIDTHS), _product()[0].value(_ROW[None, :])[0])
    mean = expected(limits, value, 5000, first_row=False)
    return NarrowCurves(
        limit=limits.coefficients[:, 0],
        mean=mean.coefficients[:, 0],
        off={width: _off_as_printed(width) for width in _NARROW},
    )


def limit_is_known(curves: NarrowCurves) -> Invariant:
    """At both ends."""
    del curves
    result = np.array([_limit(0.2)[1], _limit(1e6)[1]])
    known = np.array([-0.0875, 0.1])
    return equals("β_1 is −0.0875 at ν = 0.2, 0.1 for ν → ∞", result, known, 1e-4)


def zero_is_known(curves: NarrowCurves) -> Invariant:
    """Where the coefficient changes its sign."""
    del curves
    roots = path_of_row(_exact(), _ROW).sign_changes[0]
    root = float(roots[0]) if len(roots) == 1 else math.nan
    return equals(f"β_1 = 0 at ν = {_ZERO:.4f} alone", root, _ZERO, 1e-4)


def ridge_is_known(curves: NarrowCurves) -> Invariant:
    """What is left at ν = 0.2 of 5000 samples."""
    del curves
    limits = _exact().of(_ROW[None, :], np.array([0.2]))
    value = _product()[0].value(_ROW[None, :])
    result = expected(limits, value, 5000).coefficients[0]
    known = np.array([-0.00031, -0.0015])
    return equals(f"ridge leaves {known} at ν = 0.2 and n = 5000", result, known, 5e-5)


def vanishes_when_narrow(curves: NarrowCurves) -> Claim:
    """As analysed, without ridge."""
    limit = curves.limit
    return Claim(
        statement="coefficients vanish as ν → 0, without ridge: |β_1| at ν = 0.05, "
        "over that for ν → ∞",
        value=float(abs(limit[0] / limit[-1])),
        sense="<=",
        limit=0.01,
        note=f"{limit[0]:.4g} and {limit[-1]:.4g}",
        if_false=Refuted(
            "x1 (x2 − 0.3) at (0.9, 0.1): β_1 tends to −0.0875, the difference of "
            "means of x1 times −0.175, the mean of x2 − 0.3 in the bin of the row"
        ),
    )


def vanishes_with_ridge(curves: NarrowCurves) -> Invariant:
    """As the package has it."""
    mean = curves.mean
    return Invariant(
        statement="with ridge 1 and 5000 samples they do: |β_1| at ν = 0.05, over that "
        "for ν → ∞",
        value=float(abs(mean[0] / mean[-1])),
        sense="<=",
        limit=0.01,
    )


def keeps_its_digits(curves: NarrowCurves) -> Invariant:
    """E_Q[f | z_1 = 1] − E_Q[f | z_1 = 0], against the product of means by hand."""
    del curves
    result = np.array([_limit(width)[1] for width in _NARROW])
    off = result / [_by_hand(width) for width in _NARROW] - 1.0
    return equals(
        f"the difference of means keeps its digits at ν = {_NARROW}", off, 0.0, 1e-12
    )


def equation_5(curves: NarrowCurves) -> Claim:
    """Where double precision leaves enough of it."""
    return Claim(
        statement="Eq. 5 as printed gives the limit: difference at ν = 0.2, of the "
        "limit",
        value=curves.off[0.2],
        sense="<=",
        limit=FORMULA,
    )


def equation_5_cancels(curves: NarrowCurves) -> Invariant:
    """Each term is 1 / ε times as large as their sum; ε is 8e-16 here."""
    off = curves.off
    return Invariant(
        statement="Eq. 5 cancels in double precision: difference at ν = 0.12, of the "
        "limit",
        value=off[0.12],
        sense=">=",
        limit=1e-4,
        note=", ".join(f"{x:.1e} at ν = {width}" for width, x in off.items()),
    )


def _off_as_printed(width: float) -> float:
    return abs(_as_printed(width) / _by_hand(width) - 1.0)


def _by_hand(width: float) -> float:
    """β_1: how much more x1 is in its bin, times the weighted mean of x2 − 0.3."""
    eps = math.exp(-0.5 / width**2)
    first, second = _bin_means()
    gap = first[3] - first[:3].mean()
    return float(gap * (second[0] + eps * second[1:].sum()) / (1.0 + 3.0 * eps))


def _as_printed(width: float) -> float:
    _, law = _product()
    cells = np.multiply.outer(*_bin_means())
    return float(printed_limit(cells, law.with_width(width), _ROW)[0])


def _bin_means() -> tuple[Values, Values]:
    """Of x1 and of x2 − 0.3 in their four bins, on SciPy's truncated normals."""
    _, law = _product()
    first, second = (truncated(column).mean() for column in law.columns)
    return first, second - 0.3


@cache
def _product() -> tuple[SumOfProducts, TabularLaw]:
    """x1 (x2 − 0.3), and bins of columns that are even over [0, 1]."""
    even = np.linspace(0.0, 1.0, 100_001)
    f = functions.bilinear_function(0, 1, offset=-0.3, n_columns=2)
    return f, uniform_law(np.repeat(even[:, None], 2, axis=1))


def _exact() -> ExactLimits:
    return ExactLimits(*_product())


def _limit(width: float) -> Values:
    return with_intercept(_exact().of(_ROW[None, :], np.array([width])))


def _width_charts(runs: Runs) -> tuple[Histogram, ...]:
    return (
        Histogram(
            title="40 runs of the package's law",
            x_label="β_1",
            values=runs.estimates[:, 1],
            marks={
                "theory at √(0.75 D)": float(_limit(math.sqrt(1.5))[1]),
                "theory at 0.75 √D": float(runs.limit[1]),
            },
        ),
    )


def _curve_charts(curves: NarrowCurves) -> tuple[Lines, ...]:
    return (
        Lines(
            title="x1 (x2 − 0.3) at (0.9, 0.1)",
            x_label="ν",
            y_label="β_1",
            curves=(
                DrawnLine(label="theory", x=_WIDTHS, y=curves.limit, colour=THEORY),
                DrawnLine(
                    label="with ridge, n = 5000",
                    x=_WIDTHS,
                    y=curves.mean,
                    colour=EXPECTED,
                ),
            ),
            marks={"zero": (_ZERO,)},
            log=True,
        ),
    )
