"""Gaussian bumps: explanations add up, and Proposition 8."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.findings import Invariant
from papers.engine.studies import draw_charts
from papers.lime import functions
from papers.lime.runs import Runs, RunSettings, run_lime
from papers.lime.statements import equals, formula_as_printed
from papers.lime.studies import study_of_runs
from papers.tabular_lime import formulas
from papers.tabular_lime.setups import uniform_data, uniform_law
from propopt.base.arrays import Array, Values
from propopt.lime.laws.tabular_law import TabularLaw


_WIDTH = 10.0
_PROPOSITION = partial(formula_as_printed, name="Proposition 8")
_CENTERS = {"f": (0.0,), "g": (1.0,), "f + g": (0.0, 1.0)}


def sum_figure() -> PaperFigure:
    """Two bumps, and their sum."""
    statements = {"f": (), "g": (), "f + g": (limits_add_up, runs_add_up)}
    return PaperFigure(
        title="The explanation of a sum is the sum of explanations",
        about="f and g are exp(−‖x − ζ‖² / 200) with ζ = 0 and ζ = (1, ..., 1); 1000 "
        "training rows that are uniform over [−10, 10]¹⁰, a random row, p = 4, 100 "
        "runs. ν = 10 and n = 1000 are those of the authors' code, not the caption's.",
        panels=tuple(
            study_of_runs(partial(sum_runs, name), name, (_PROPOSITION, *own))
            for name, own in statements.items()
        ),
        draw=partial(draw_charts, columns=3, size=(4.0, 2.8)),
    )


def bump_runs_figure() -> PaperFigure:
    """Ten and twenty dimensions."""
    return PaperFigure(
        title="A gaussian bump (figures 14 and 19)",
        about="exp(−‖x‖² / 200), 1000 training rows that are uniform over [−10, 10]^D, "
        "a random row; n = 5000, the package's width 0.75 √D, 100 runs.",
        panels=tuple(
            study_of_runs(partial(bump_runs, d), f"D = {d}", (_PROPOSITION,))
            for d in (10, 20)
        ),
        draw=partial(draw_charts, size=(5.6, 2.8)),
    )


@cache
def sum_runs(name: str) -> Runs:
    """All three on the same samples."""
    centers = np.repeat(np.array(_CENTERS[name])[:, None], 10, axis=1)
    law, row = _setup(10, kernel_width=10.0)
    return _runs(centers, law, row, RunSettings(n_samples=1000))


def bump_runs(n_columns: int) -> Runs:
    """At a random row."""
    law, row = _setup(n_columns, kernel_width=None)
    return _runs(np.zeros((1, n_columns)), law, row, RunSettings(n_samples=5000))


def limits_add_up(runs: Runs) -> Invariant:
    """β^{f+g} = β^f + β^g."""
    parts = [sum_runs(name).limit for name in ("f", "g")]
    off = (runs.limit - sum(parts)) / np.abs(runs.limit).max()
    return equals("limits of f and g add up to that of f + g", off, 0.0, 1e-12)


def runs_add_up(runs: Runs) -> Invariant:
    """So do runs with the same samples."""
    parts = [sum_runs(name).estimates for name in ("f", "g")]
    off = (runs.estimates - sum(parts)) / np.abs(runs.limit).max()
    return equals("so do runs with the same samples, each", off, 0.0, 1e-9)


def _setup(n_columns: int, kernel_width: float | None) -> tuple[TabularLaw, Values]:
    random = np.random.RandomState(1)
    X = uniform_data(random, n_columns)
    row = random.uniform(-10.0, 10.0, n_columns)
    return uniform_law(X, 4, kernel_width), row


def _runs(centers: Array, law: TabularLaw, row: Values, settings: RunSettings) -> Runs:
    f = functions.gaussian_sum(centers, np.ones(len(centers)), _WIDTH)
    printed = [formulas.printed_gaussian(z, _WIDTH, law, row) for z in centers]
    runs = run_lime(f.value, f, law, row, settings)
    return replace(runs, printed=np.sum(printed, axis=0))
