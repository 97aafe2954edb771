"""Linear functions under normal samples: gains, a switch, and the error at the row."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Final

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant
from papers.engine.studies import Study, draw_charts
from papers.lime import functions
from papers.lime.charts import Histogram
from papers.lime.gaussian_theory import critical_bandwidths
from papers.lime.runs import Runs, RunSettings, run_lime
from papers.lime.statements import BAND, equals, formula_as_printed
from papers.lime.studies import study_of_runs
from papers.linear_lime.formulas import printed_linear_limit
from propopt.base.arrays import Values
from propopt.lime import GaussianLaw
from propopt.tables.frames import Labels


SLOPES = np.r_[10.0, -10.0, np.zeros(8)]
SETTINGS: Final = RunSettings(n_samples=10_000, ridge=0.0, first_row=False)
ON: Final = 0.0892
"""ξ_2 of figures 4 and 8."""
OFF: Final = 0.43198
"""That which is switched off at ν = 0.53."""
_CLOSED = partial(formula_as_printed, name="the closed form")


def recovered_figure() -> PaperFigure:
    """Figure 4."""
    return PaperFigure(
        title="Coefficients of a linear function",
        about="f = 10 x1 − 10 x2 in ten dimensions, samples N(0, 1), p = 4, ν = 1, "
        "n = 10,000, 100 runs (20 in the paper). The row is not in the paper; with "
        "ξ_1 = 0.9607 and ξ_2 = 0.0892 the theory is what is printed, 11.4 and −4.1.",
        panels=(
            study_of_runs(
                partial(normal_runs, ON, 1.0),
                "ν = 1",
                (_CLOSED, are_printed, flat_are_zero),
            ),
        ),
        draw=partial(draw_charts, size=(6.0, 3.0)),
    )


def switched_off_figure() -> PaperFigure:
    """Figure 7."""
    return PaperFigure(
        title="A kernel width that switches a feature off",
        about="As figure 4 with ν = 0.53 and 20 runs; ξ_2 = 0.43198, since with that "
        "of figure 4 there is no such width: the two figures cannot have one set-up, "
        "as the paper says. Few samples have weight, so runs scatter.",
        panels=(
            study_of_runs(
                partial(normal_runs, OFF, 0.53, 20),
                "ν = 0.53",
                (_CLOSED, is_switched_off, other_is_not, width_is_critical),
            ),
        ),
        draw=partial(draw_charts, size=(6.0, 3.0)),
    )


def local_error_figure() -> PaperFigure:
    """Figure 8."""
    return PaperFigure(
        title="The surrogate is off at the row",
        about="As figure 4: how far the surrogate of each of 100 runs is from f at the "
        "row; the theory is the mean of f over the bins of the row, less f.",
        panels=(
            Study(
                column="100 runs",
                measure=partial(normal_runs, ON, 1.0),
                statements=(error_is_known, errors_are_about_it, is_not_zero),
                charts=_histogram,
                numbers=Runs.to_frame,
            ),
        ),
        draw=partial(draw_charts, size=(6.0, 3.0)),
    )


@cache
def normal_runs(second: float, width: float, n_runs: int = 100) -> Runs:
    """At a row whose second number is given."""
    f, row = functions.linear_function(SLOPES), normal_row(second)
    law = normal_law(width)
    runs = run_lime(f.value, f, law, row, replace(SETTINGS, n_runs=n_runs))
    return replace(runs, printed=printed_linear_limit(SLOPES, 0.0, width, row))


def normal_law(
    width: float, n_columns: int = 10, labels: tuple[str, ...] | None = None
) -> GaussianLaw:
    """N(0, 1) in all columns, by default x1, x2, ..."""
    names = labels or tuple(f"x{j + 1}" for j in range(n_columns))
    return GaussianLaw.of(
        np.zeros(n_columns), 1.0, width, labels=Labels(features=names)
    )


def normal_row(second: float) -> Values:
    """(0.9607, ξ_2), and others that are small."""
    others = np.random.RandomState(0).normal(0.0, 0.5, 8)
    return np.r_[0.9607, second, others]


def are_printed(runs: Runs) -> Invariant:
    """The numbers of the figure."""
    result = runs.limit[1:3]
    return equals(
        "theory is (11.400, −4.1002)", result, np.array([11.4, -4.1002]), 5e-4
    )


def flat_are_zero(runs: Runs) -> Invariant:
    """Eight columns."""
    return equals("columns without a slope have exactly zero", runs.limit[3:], 0.0, 0.0)


def is_switched_off(runs: Runs) -> Claim:
    """Of a slope of −10."""
    return Claim(
        statement="feature 2 is switched off: |β_2| over its slope",
        value=float(abs(runs.limit[2] / SLOPES[1])),
        sense="<=",
        limit=1e-3,
    )


def other_is_not(runs: Runs) -> Invariant:
    """β_0 and β_1."""
    known = np.array([-0.1025, 7.4994])
    return equals("(β_0, β_1) is (−0.1025, 7.4994)", runs.limit[:2], known, 5e-4)


def width_is_critical(runs: Runs) -> Invariant:
    """In closed form."""
    del runs
    result = critical_bandwidths(normal_law(0.53), normal_row(OFF)[None, :])
    return equals("critical width of feature 2 is 0.53", result[0, 1], 0.53, 1e-4)


def error_is_known(runs: Runs) -> Invariant:
    """At the row all bits are one."""
    return equals("theory is −0.136", _error(runs.limit), -0.136, 5e-4)


def errors_are_about_it(runs: Runs) -> Invariant:
    """The mean over runs."""
    errors = _errors(runs)
    error_of_mean = errors.std(ddof=1) / np.sqrt(len(errors))
    z = (errors.mean() - _error(runs.limit)) / error_of_mean
    return Invariant(
        statement="mean error over runs is the theory's: |z|",
        value=float(abs(z)),
        sense="<=",
        limit=BAND,
        note=f"{errors.mean():.3f}, sd {errors.std(ddof=1):.2f}",
    )


def is_not_zero(runs: Runs) -> Claim:
    """The paper: bounded away from zero."""
    return Claim(
        statement="the surrogate of infinitely many samples is off at the row: its "
        "error over f, in size",
        value=abs(_error(runs.limit) / float(SLOPES @ normal_row(ON))),
        sense=">=",
        limit=0.01,
    )


def _errors(runs: Runs) -> Values:
    """f̂(ξ) − f(ξ) of each run, (R,)."""
    return np.asarray(runs.estimates.sum(axis=1) - SLOPES @ normal_row(ON))


def _error(coefficients: Values) -> float:
    return float(coefficients.sum() - SLOPES @ normal_row(ON))


def _histogram(runs: Runs) -> tuple[Histogram, ...]:
    errors = _errors(runs)
    return (
        Histogram(
            title="error of the surrogate at the row",
            x_label="surrogate less f, at the row",
            values=errors,
            marks={"theory": _error(runs.limit), "mean of runs": float(errors.mean())},
        ),
    )
