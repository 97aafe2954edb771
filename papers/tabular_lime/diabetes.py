"""A forest on diabetes, in place of Boston housing: one run, and a hundred."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim
from papers.engine.studies import Study, draw_charts
from papers.lime import functions
from papers.lime.charts import Bars, BoxPlots
from papers.lime.runs import Runs, RunSettings, run_lime
from papers.lime.statements import mean_is_expected, theory_is_in_the_boxes
from propopt.lime.laws.tabular_law import TabularLaw


_ROW: Final = 10
_STAND_IN: Final = "diabetes instead of Boston housing, which scikit-learn has no more"


def forest_figure() -> PaperFigure:
    """Stand-ins for figures 1 and 4."""
    return PaperFigure(
        title="A forest: one run, and a hundred (stand-in for figures 1 and 4)",
        about="A forest of 20 trees of depth 8 on scikit-learn's diabetes, in place of "
        "Boston housing, at the eleventh row; quartiles with the shares and the merged "
        "bins that the package has (sex has two values), n = 5000, the package's "
        "width, 100 runs. On the left the first run.",
        panels=(
            Study(
                column="diabetes",
                measure=forest_runs,
                statements=(
                    mean_is_expected,
                    partial(theory_is_in_the_boxes, difference=_STAND_IN),
                    signs_differ,
                ),
                charts=_charts,
                numbers=Runs.to_frame,
            ),
        ),
        draw=partial(draw_charts, size=(5.0, 3.0)),
    )


def forest_runs() -> Runs:
    """Of the package's law."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    forest = RandomForestRegressor(20, max_depth=8, random_state=0)
    forest.fit(X.to_numpy(), y)
    exact = functions.products_of(forest, X.to_numpy())
    law = TabularLaw.from_data(X)
    row = X.to_numpy()[_ROW]
    return run_lime(forest.predict, exact, law, row, RunSettings(n_samples=5000))


def signs_differ(runs: Runs) -> Claim:
    """How many columns speak for and against, by the run."""
    slopes = runs.estimates[:, 1:]
    both = (slopes > 0).any(axis=0) & (slopes < 0).any(axis=0)
    return Claim(
        statement="explanations of one row differ between runs: columns with both "
        "signs in 100 runs",
        value=float(both.sum()),
        sense=">=",
        limit=1.0,
        note=", ".join(np.array(runs.labels)[both]),
    )


def _charts(runs: Runs) -> tuple[Bars, BoxPlots]:
    return (
        Bars(title="one run", values=runs.estimates[0, 1:], runs=runs),
        BoxPlots(title="100 runs", runs=runs),
    )
