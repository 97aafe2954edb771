"""Kernel ridge on wine: equal cells, and columns that are not used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final, final

import numpy as np
import pandas as pd
from sklearn.kernel_ridge import KernelRidge

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant
from papers.engine.studies import draw_charts
from papers.lime import functions
from papers.lime.runs import Runs, RunSettings, run_lime
from papers.lime.statements import equals, unused_are_zero
from papers.lime.studies import study_of_runs
from papers.tabular_lime.setups import standard_wine, uniform_law
from propopt.base.arrays import Array, Indices, Values
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.structures.products.sums import SumOfProducts


_SETTINGS = RunSettings(n_samples=1000)
_USED: Final = 7
_KERNEL_WIDTH: Final = 5.0


@final
@dataclass(frozen=True, eq=False)
class WineMachine:
    """Kernel ridge on standardised wine.

    Parameters
    ----------
    fitted : KernelRidge
        On the first columns of the table.
    n_used : int
        How many.
    exact : SumOfProducts
        The same, in all columns.
    table : DataFrame (178, 13)
        Wine.
    """

    fitted: KernelRidge
    n_used: int
    exact: SumOfProducts
    table: pd.DataFrame

    @classmethod
    def learned(
        cls, scale: float, n_used: int, rows: Indices | None = None
    ) -> WineMachine:
        """With gaussian kernels of a scale, on some rows or all."""
        table, classes = standard_wine()
        chosen = np.arange(len(table)) if rows is None else rows
        X = table.to_numpy()[chosen, :n_used]
        fitted = KernelRidge(alpha=1.0, kernel="rbf", gamma=0.5 / scale**2)
        fitted.fit(X, classes[chosen])
        exact = functions.gaussian_sum(X, fitted.dual_coef_, scale, n_columns=13)
        return cls(fitted, n_used, exact, table)

    def __call__(self, points: Array) -> Values:
        """What it predicts at points (N, 13)."""
        return np.asarray(self.fitted.predict(points[:, : self.n_used]))


def cell_figure() -> PaperFigure:
    """Two rows in one cell."""
    extra = {"first wine": (), "another row of its cell": (same_limit, other_value)}
    return PaperFigure(
        title="Rows of one cell have one explanation",
        about="Kernel ridge (gaussian kernel of scale 10, α = 1) on the classes of "
        "scikit-learn's standardised wine; the first wine, and a row that is uniform "
        "in its cell; ν = 5, n = 1000, 100 runs.",
        panels=tuple(
            study_of_runs(partial(cell_runs, name), name, statements)
            for name, statements in extra.items()
        ),
        draw=partial(draw_charts, size=(5.6, 4.0)),
    )


def unused_figure() -> PaperFigure:
    """Seven of thirteen columns."""
    return PaperFigure(
        title="Columns that are not used",
        about="Kernel ridge (gaussian kernel of scale 5, α = 1) on the first seven "
        "columns of scikit-learn's standardised wine, at the first wine; ν = 5, "
        "n = 1000, 100 runs.",
        panels=(
            study_of_runs(
                unused_runs,
                "seven of thirteen columns",
                (partial(unused_are_zero, used=_USED), unused_are_noise),
            ),
        ),
        draw=partial(draw_charts, size=(7.0, 4.0)),
    )


@cache
def cell_runs(name: str) -> Runs:
    """At the first wine, or elsewhere in its cell."""
    machine, law, rows = cell_of_first_wine()
    other = int(name != "first wine")
    settings = replace(_SETTINGS, seed=other)
    return run_lime(machine, machine.exact, law, rows[other], settings)


def unused_runs() -> Runs:
    """At the first wine."""
    machine = WineMachine.learned(5.0, _USED)
    law = uniform_law(machine.table, 4, _KERNEL_WIDTH)
    row = machine.table.to_numpy()[0]
    return run_lime(machine, machine.exact, law, row, _SETTINGS)


def same_limit(runs: Runs) -> Invariant:
    """To the last digit."""
    first = cell_runs("first wine").limit
    return equals("limits are those of the first wine", runs.limit - first, 0.0, 0.0)


def other_value(runs: Runs) -> Invariant:
    """The surrogate says the same of both rows, and f does not."""
    del runs
    machine, _, rows = cell_of_first_wine()
    here, there = machine(rows)
    return Invariant(
        statement="f is another: its difference",
        value=float(abs(here - there)),
        sense=">=",
        limit=0.01,
        note=f"{here:.3f} and {there:.3f}",
    )


def unused_are_noise(runs: Runs) -> Claim:
    """Runs of unused columns are about zero."""
    unused = runs.estimates[:, 1 + _USED :]
    scores = unused.mean(axis=0) / (unused.std(axis=0, ddof=1) / np.sqrt(len(unused)))
    return Claim(
        statement="coefficients of the last six columns are zero up to noise: largest "
        "|z| of their means over runs",
        value=float(np.abs(scores).max()),
        sense="<=",
        limit=5.0,
    )


def cell_of_first_wine() -> tuple[WineMachine, TabularLaw, Array]:
    """The machine, the law, and two rows of a cell (2, 13)."""
    machine = WineMachine.learned(10.0, 13)
    law = uniform_law(machine.table, 4, _KERNEL_WIDTH)
    first = machine.table.to_numpy()[0]
    ends = [
        (column.pieces.low[b], column.pieces.high[b])
        for column, x in zip(law.columns, first, strict=True)
        for b in column.bin_index(np.array([x]))
    ]
    other = np.random.RandomState(1).uniform(*np.transpose(ends))
    return machine, law, np.stack([first, other])
