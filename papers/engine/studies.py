"""Panels that are no sweeps: something is measured, checked and drawn."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.engine.findings import Finding
from propopt.base.text import matplotlib_text


_Measured = TypeVar("_Measured")


class Chart(Protocol):
    """What is drawn in one pair of axes."""

    @property
    def title(self) -> str:
        """What stands above it."""

    def draw(self, axes: Axes, /) -> None:
        """Draw it."""


def no_numbers(measured: object) -> pd.DataFrame:
    """No table beside the charts."""
    del measured
    return pd.DataFrame()


@final
@dataclass(frozen=True, kw_only=True)
class Study(Generic[_Measured]):
    """What one panel of a figure shows, where that is no trade-off.

    Parameters
    ----------
    column, row : str
        What is measured, and in what set-up.
    measure : callable
        Measures it.
    statements : tuple of callable
        From what was measured to a finding each.
    charts : callable
        From what was measured to what is drawn.
    numbers : callable
        From what was measured to a table for the page of the figure.
    """

    column: str
    row: str = ""
    measure: Callable[[], _Measured]
    statements: tuple[Callable[[_Measured], Finding], ...]
    charts: Callable[[_Measured], Sequence[Chart]]
    numbers: Callable[[_Measured], pd.DataFrame] = no_numbers

    @property
    def title(self) -> str:
        """Column and row."""
        return ", ".join(filter(None, (self.column, self.row)))

    def measured(self) -> _Measured:
        """What statements are about."""
        return self.measure()

    def run(self) -> StudyResult:
        """Measure, and check the statements; warnings are kept."""
        began = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            measured = self.measured()
            findings = tuple(statement(measured) for statement in self.statements)
        return StudyResult(
            panel=self,
            findings=findings,
            charts=tuple(self.charts(measured)),
            numbers=self.numbers(measured),
            warnings=tuple(dict.fromkeys(str(w.message) for w in caught)),
            seconds=time.perf_counter() - began,
        )


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class StudyResult:
    """What a study found, light enough to be sent home."""

    panel: Study[Any]
    findings: tuple[Finding, ...]
    charts: tuple[Chart, ...]
    numbers: pd.DataFrame
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0


def draw_charts(
    results: Sequence[StudyResult],
    *,
    size: tuple[float, float] = (5.2, 2.8),
    columns: int = 2,
) -> Figure:
    """All charts in the order of their studies, so many in a row.

    Parameters
    ----------
    results : sequence of StudyResult
        The studies.
    size : (float, float)
        Width and height of one chart, in inches.
    columns : int
        Charts in a row, at most.
    """
    charts = [chart for result in results for chart in result.charts]
    n_columns = min(columns, len(charts))
    n_rows = math.ceil(len(charts) / n_columns)
    figure = Figure(
        figsize=(size[0] * n_columns, size[1] * n_rows), layout="constrained"
    )
    grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axes, chart in zip(grid, charts, strict=False):
        chart.draw(axes)
        axes.set_title(matplotlib_text(chart.title), fontsize=10)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[len(charts) :]:
        axes.set_visible(False)
    return figure
