"""Theory that no figure shows: additive functions, wide kernels, and samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final, final

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim
from papers.engine.studies import Study, draw_charts
from papers.lime import functions
from papers.lime.charts import RUNS, THEORY, Histogram
from papers.lime.lines import DrawnLine, Lines
from papers.lime.runs import Runs, RunSettings, run_lime, with_intercept
from papers.lime.statements import FORMULA, formula_as_printed
from papers.lime.studies import study_of_runs
from papers.lime.tabular_bounds import tabular_theorem_samples
from papers.tabular_lime import formulas
from papers.tabular_lime.setups import uniform_data, uniform_law
from propopt.base.arrays import Array, Values
from propopt.lime.exact_limits import ExactLimits
from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.structures.products.families import Bumps
from propopt.structures.products.sums import SumOfProducts


_WIDTHS = np.geomspace(0.2, 1e6, 60)
_ROW = np.array([6.0, -2.0, 8.0])
_HEIGHTS, _CENTERS, _SCALE = np.array([2.0, -1.0, 3.0]), np.array([4.0, 0.0, -7.0]), 3.0
_ERROR, _FAILURE, _RUNS = 0.5, 0.05, 1000
_BINS: Final = 3


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class WidthPaths:
    """Coefficients by the kernel width.

    Parameters
    ----------
    product : array (K, 3)
        Intercept and coefficients of x1 (x2 + 5).
    wide : array (3,)
        What eqs. 9 and 10 give for it.
    linear : array (K, 2)
        Coefficients of 2 x1 − x2.
    """

    product: Array
    wide: Values
    linear: Array


def theory_figure() -> PaperFigure:
    """Proposition 3, eqs. 9 and 10, the linear case and theorem 1."""
    return PaperFigure(
        title="Additive functions, wide kernels, and how many samples",
        about="A sum of a bump in each of three columns at a row, n = 5000, ν = 1, "
        "100 runs; coefficients of x1 (x2 + 5) and 2 x1 − x2 by the kernel width; and "
        f"{_RUNS} runs with as many samples as theorem 1 asks for, of the indicator of "
        f"a bin of one column in {_BINS} bins, at ν = 1. Training rows are uniform "
        "over [−10, 10]^D.",
        panels=(
            study_of_runs(
                additive_runs,
                "additive",
                (partial(formula_as_printed, name="Proposition 3"),),
            ),
            Study(
                column="by the width",
                measure=width_paths,
                statements=(wide_as_printed, linear_does_not_change),
                charts=_path_charts,
            ),
            Study(
                column="theorem 1",
                measure=errors_of_many,
                statements=(theorem_1,),
                charts=_error_charts,
            ),
        ),
        draw=partial(draw_charts, columns=3, size=(4.4, 3.0)),
    )


def additive_runs() -> Runs:
    """A bump in each column; means in bins are integrals."""
    law = uniform_law(uniform_data(np.random.RandomState(1), 3), 4, 1.0)
    bumps = Bumps(np.arange(3), _CENTERS, np.full(3, _SCALE))
    f = SumOfProducts.additive(0.0, _HEIGHTS, bumps, 3)
    runs = run_lime(f.value, f, law, _ROW, RunSettings(n_samples=5000))
    means = np.stack([_integrals(law.columns[j], j) for j in range(3)])
    return replace(runs, printed=formulas.printed_additive(means, law, _ROW))


def width_paths() -> WidthPaths:
    """Both functions at all widths, and the limit of the first as printed."""
    law = uniform_law(uniform_data(np.random.RandomState(1), 2))
    row, rows = _ROW[:2], np.tile(_ROW[:2], (len(_WIDTHS), 1))
    f = functions.bilinear_function(0, 1, offset=5.0, n_columns=2)
    limits = ExactLimits(f, law).of(rows, _WIDTHS)
    g = functions.linear_function(np.array([2.0, -1.0]))
    first, second = (formulas.truncated(c).mean() for c in law.columns)
    i, j = formulas.places_of(law, row)
    with_bits = [
        first[i] / 4 * (second + 5.0).mean(),
        first.mean() * (second[j] + 5.0) / 4,
    ]
    mean = float(first.mean() * (second + 5.0).mean())
    return WidthPaths(
        product=np.column_stack([limits.intercept, limits.coefficients]),
        wide=formulas.printed_wide(mean, np.array(with_bits), 4),
        linear=ExactLimits(g, law).of(rows, _WIDTHS).coefficients,
    )


def errors_of_many() -> Values:
    """‖β̂_n − β‖ of runs with the n of theorem 1, from counts of bins, (R,)."""
    n = tabular_theorem_samples(_ERROR, _FAILURE, 1.0, 1, 1.0, _BINS)
    law = uniform_law(uniform_data(np.random.RandomState(1), 1), _BINS, 1.0)
    end = float(law.columns[0].edges[0])
    f = functions.box_function(np.array([-np.inf]), np.array([end]))
    row = np.array([9.0])
    beta = with_intercept(ExactLimits(f, law).of(row[None, :]))
    counts = np.random.default_rng(0).multinomial(
        int(n), np.full(_BINS, 1 / _BINS), _RUNS
    )
    # f is 1 in the first bin and 0 in the others; the row is in the last
    outside = counts[:, 0] / counts[:, :-1].sum(axis=1)
    runs = np.column_stack([outside, -outside])
    return np.asarray(np.linalg.norm(runs - beta, axis=1))


def wide_as_printed(paths: WidthPaths) -> Claim:
    """The limits for ν → ∞, at a width of a million."""
    off = np.abs(paths.product[-1] - paths.wide).max()
    return Claim(
        statement="Eqs. 9 and 10 as printed give coefficients at ν = 10⁶: largest "
        "difference, of the largest",
        value=float(off / np.abs(paths.wide).max()),
        sense="<=",
        limit=FORMULA,
    )


def linear_does_not_change(paths: WidthPaths) -> Claim:
    """So that they do not go to zero, either."""
    return Claim(
        statement="coefficients of a linear function do not depend on ν: largest "
        "relative change from ν = 0.2 to 10⁶",
        value=float((np.ptp(paths.linear, axis=0) / np.abs(paths.linear[-1])).max()),
        sense="<=",
        limit=FORMULA,
        note=f"β_1 is {paths.linear[0, 0]:.4f} at ν = 0.2",
    )


def theorem_1(errors: Values) -> Claim:
    """The share of runs that are off by ε or more."""
    n = tabular_theorem_samples(_ERROR, _FAILURE, 1.0, 1, 1.0, _BINS)
    return Claim(
        statement=f"theorem 1: with its n, ‖β̂_n − β‖ ≥ {_ERROR} has a probability of "
        f"at most {_FAILURE}: share of {_RUNS} runs",
        value=float(np.mean(errors >= _ERROR)),
        sense="<=",
        limit=_FAILURE,
        note=f"n = {n:.2g}; the largest error is {errors.max():.1g}",
    )


def _integrals(column: BinnedColumn, j: int) -> Values:
    """E[f_j | bin b] by quadrature, (p,)."""
    pieces = column.pieces
    densities = zip(pieces.mean, pieces.sd, pieces.low, pieces.high, strict=True)
    means = []
    for location, scale, low, high in densities:
        law = norm(location, scale)
        mass = law.cdf(high) - law.cdf(low)
        whole, _ = quad(_weighted_bump, low, high, args=(law, j), epsabs=1e-13)
        means.append(whole / mass)
    return np.array(means)


def _weighted_bump(x: float, law: norm, j: int) -> float:
    bump = _HEIGHTS[j] * np.exp(-0.5 * ((x - _CENTERS[j]) / _SCALE) ** 2)
    return float(bump * law.pdf(x))


def _path_charts(paths: WidthPaths) -> tuple[Lines, ...]:
    curves = {
        "x1 (x2 + 5), β_1": (paths.product[:, 1], THEORY),
        "2 x1 − x2, β_1": (paths.linear[:, 0], RUNS),
    }
    return (
        Lines(
            title="by the width",
            x_label="ν",
            y_label="coefficient",
            curves=tuple(
                DrawnLine(label=name, x=_WIDTHS, y=y, colour=colour)
                for name, (y, colour) in curves.items()
            ),
            log=True,
        ),
    )


def _error_charts(errors: Values) -> tuple[Histogram, ...]:
    return (
        Histogram(
            title="with the samples of theorem 1",
            x_label="‖β̂ − β‖",
            values=errors,
            marks={},
        ),
    )
