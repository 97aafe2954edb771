"""Studies that show runs of LIME as box plots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from papers.engine.findings import Finding
from papers.engine.studies import Study
from papers.lime.charts import BoxPlots
from papers.lime.runs import Runs
from papers.lime.statements import mean_is_expected, theory_is_in_the_boxes


def study_of_runs(
    measure: Callable[[], Runs],
    column: str,
    statements: tuple[Callable[[Runs], Finding], ...] = (),
    *,
    row: str = "",
    difference: str = "",
    expected: bool = False,
) -> Study[Runs]:
    """Runs of LIME: their mean is checked, and where the theory lies.

    Parameters
    ----------
    measure : callable
        Makes the runs.
    column, row : str
        What is run, and in what set-up.
    statements : tuple of callable
        What else is said of the runs.
    difference : str
        In what the set-up differs from the paper's.
    expected : bool
        Whether the expected output at n is drawn beside the limit; then the limit is
        not claimed to lie in the boxes.
    """
    in_boxes = partial(theory_is_in_the_boxes, difference=difference)
    claims = () if expected else (in_boxes,)
    title = ", ".join(filter(None, (column, row)))
    return Study(
        column=column,
        row=row,
        measure=measure,
        statements=(mean_is_expected, *claims, *statements),
        charts=partial(_boxes, title=title, expected=expected),
        numbers=Runs.to_frame,
    )


def _boxes(runs: Runs, *, title: str, expected: bool) -> Sequence[BoxPlots]:
    return (BoxPlots(title=title, runs=runs, expected=expected),)
