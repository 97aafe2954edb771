"""The indicator of a box in five dimensions: in the authors' code only."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.studies import draw_charts
from papers.lime import functions
from papers.lime.runs import Runs, RunSettings, run_lime
from papers.lime.statements import formula_as_printed
from papers.lime.studies import study_of_runs
from papers.tabular_lime import formulas
from papers.tabular_lime.setups import uniform_data, uniform_law


_LOW, _HIGH = np.full(5, 2.5), np.full(5, 7.5)
_ROWS = {"in the box": 5.0 * np.ones(5), "beside it in two": np.array([5, 5, 5, -5, 9])}


def box_figure() -> PaperFigure:
    """In the box, and beside it."""
    return PaperFigure(
        title="The indicator of a box (authors' code only)",
        about="1[2.5 < x_j ≤ 7.5 for all j], 1000 training rows that are uniform over "
        "[−10, 10]⁵, p = 10, ν = 10, n = 10,000, 100 runs. One sample in a thousand is "
        "in the box.",
        panels=tuple(
            study_of_runs(
                partial(box_runs, name),
                name,
                (partial(formula_as_printed, name="Proposition 5 of Eq. 34"),),
            )
            for name in _ROWS
        ),
        draw=partial(draw_charts, size=(4.2, 2.8)),
    )


def box_runs(name: str) -> Runs:
    """At a row by its name."""
    law = uniform_law(uniform_data(np.random.RandomState(1), 5), 10, 10.0)
    f, row = functions.box_function(_LOW, _HIGH), _ROWS[name]
    runs = run_lime(f.value, f, law, row, RunSettings(n_samples=10_000))
    return replace(runs, printed=formulas.printed_leaf(_LOW, _HIGH, law, row))
