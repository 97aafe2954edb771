"""Linear functions: what ridge does, what bins make of slopes, and five bins."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant
from papers.engine.studies import draw_charts
from papers.lime import functions
from papers.lime.runs import Runs, RunSettings, run_lime
from papers.lime.statements import equals, formula_as_printed
from papers.lime.studies import study_of_runs
from papers.tabular_lime import formulas
from papers.tabular_lime.setups import uniform_data, uniform_law
from propopt.base.arrays import Array, Values
from propopt.lime.laws.tabular_law import TabularLaw


_SETTINGS = RunSettings(n_samples=5000)
_COROLLARY = partial(formula_as_printed, name="Corollary 4")


def ridge_figure() -> PaperFigure:
    """Three strengths of ridge."""
    extra = {0.0: (), 1.0: (), 1000.0: (shrinks_as_predicted, shrinks)}
    return PaperFigure(
        title="Ridge: none, the package's, and a thousand times it",
        about="A linear function of ten standard normal columns, at 0; n = 5000, "
        "ν = 10, 100 runs. The theory has no ridge; what a run gives in its mean with "
        "it is β V / (V + λ) with V = n C α (1 − α), drawn in green.",
        panels=tuple(
            study_of_runs(
                partial(ridge_runs, ridge),
                f"λ = {ridge:g}",
                (_COROLLARY, *statements),
                expected=ridge > 1.0,
            )
            for ridge, statements in extra.items()
        ),
        draw=partial(draw_charts, columns=3, size=(4.0, 2.8)),
    )


def linear_figure() -> PaperFigure:
    """Corollary 4 in ten and in twenty dimensions."""
    return PaperFigure(
        title="A linear function (figures 8 and 17)",
        about="Slopes and the row are standard normal, as are 1000 training rows; "
        "n = 5000, the package's width 0.75 √D, 100 runs.",
        panels=tuple(
            study_of_runs(partial(linear_runs, d), f"D = {d}", (_COROLLARY,))
            for d in (10, 20)
        ),
        draw=partial(draw_charts, size=(5.6, 2.8)),
    )


def odd_bins_figure() -> PaperFigure:
    """Four bins, and five."""
    four, five = (partial(cancelled_runs, p) for p in (4, 5))
    known = partial(is_largest, largest=22.038)
    others = (partial(is_largest, largest=2.698), five_bins_cancel, five_bins_are_noise)
    return PaperFigure(
        title="An odd number of bins sends coefficients near zero",
        about="The same linear function with 1000 training rows that are uniform over "
        "[−10, 10]¹⁰, at 0, which is in the middle of the third of five bins; "
        "n = 5000, the package's width, 100 runs.",
        panels=(
            study_of_runs(four, "p = 4", (_COROLLARY, known)),
            study_of_runs(five, "p = 5", (_COROLLARY, *others)),
        ),
        draw=partial(draw_charts, size=(5.6, 2.8)),
    )


def ridge_runs(ridge: float) -> Runs:
    """At 0, of standard normal columns."""
    random = np.random.RandomState(1)
    slopes = random.uniform(0.0, 10.0, 11)
    law = uniform_law(random.normal(size=(1000, 10)), 4, 10.0)
    return _runs(slopes, law, np.zeros(10), replace(_SETTINGS, ridge=ridge))


def linear_runs(n_columns: int) -> Runs:
    """At a random row, of standard normal columns."""
    random = np.random.RandomState(1)
    slopes = random.normal(size=n_columns + 1)
    X = random.normal(size=(1000, n_columns))
    return _runs(slopes, uniform_law(X), random.normal(size=n_columns), _SETTINGS)


@cache
def cancelled_runs(n_bins: int) -> Runs:
    """At 0, of uniform columns."""
    return _runs(*_cancelled(n_bins), np.zeros(10), _SETTINGS)


def _cancelled(n_bins: int) -> tuple[Array, TabularLaw]:
    random = np.random.RandomState(1)
    slopes = random.uniform(0.0, 10.0, 11)
    return slopes, uniform_law(uniform_data(random, 10), n_bins)


def _runs(slopes: Array, law: TabularLaw, row: Values, settings: RunSettings) -> Runs:
    """The first of the slopes is the intercept."""
    base, rest = float(slopes[0]), slopes[1:]
    f = functions.linear_function(rest, base)
    runs = run_lime(f.value, f, law, row, settings)
    return replace(runs, printed=formulas.printed_linear(rest, base, law, row))


def shrinks_as_predicted(runs: Runs) -> Invariant:
    """V / (V + λ) is the same for all columns, whose α are equal."""
    ratio = _ratio(runs.expected, runs.limit)
    return equals("λ = 1000 leaves V / (V + λ) = 0.4751", ratio, 0.4751, 1e-3)


def shrinks(runs: Runs) -> Claim:
    """The paper's figure: far below the theory."""
    return Claim(
        statement="λ = 1000 shrinks coefficients visibly: mean of runs over theory",
        value=_ratio(runs.mean, runs.limit),
        sense="<=",
        limit=0.6,
    )


def _ratio(result: Values, limit: Values) -> float:
    """That of slopes, by least squares."""
    return float(result[1:] @ limit[1:] / (limit[1:] @ limit[1:]))


def is_largest(runs: Runs, *, largest: float) -> Invariant:
    """The largest coefficient is known, to the digits that are given."""
    result = float(np.abs(runs.limit[1:]).max())
    return equals(f"largest |β_j| is {largest}", result, largest, 5e-4)


def five_bins_cancel(runs: Runs) -> Claim:
    """Beside four bins."""
    slopes, law = _cancelled(4)
    four = formulas.printed_linear(slopes[1:], float(slopes[0]), law, np.zeros(10))
    largest = [float(np.abs(beta[1:]).max()) for beta in (runs.limit, four)]
    return Claim(
        statement="p = 5 sends coefficients near zero: largest |β_j| over that of "
        "p = 4",
        value=largest[0] / largest[1],
        sense="<=",
        limit=0.2,
        note="{:.2f} against {:.2f}".format(*largest),
    )


def five_bins_are_noise(runs: Runs) -> Claim:
    """Two standard deviations of a run are more than any coefficient."""
    return Claim(
        statement="p = 5: every coefficient is at the level of noise: largest |β_j| "
        "over the sd of a run",
        value=float((np.abs(runs.limit) / runs.spread)[1:].max()),
        sense="<=",
        limit=2.0,
    )
