"""Regression trees: Corollary 7, and coefficients from where the row is not."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from papers.engine.figure import PaperFigure
from papers.engine.findings import Invariant
from papers.engine.studies import draw_charts
from papers.lime import functions
from papers.lime.runs import Runs, RunSettings, run_lime
from papers.lime.statements import formula_as_printed
from papers.lime.studies import study_of_runs
from papers.tabular_lime import formulas
from papers.tabular_lime.setups import uniform_data, uniform_law
from propopt.base.arrays import Array, Values


Learned: TypeAlias = Literal["Σ x_j", "Σ x_j²"]
_COROLLARY = partial(
    formula_as_printed, name="Corollary 7, leaf by leaf,", tolerance=1e-6
)


def trees_figure() -> PaperFigure:
    """Two trees in ten dimensions, and one in twenty."""
    cases: tuple[tuple[Learned, int], ...] = (
        ("Σ x_j", 10),
        ("Σ x_j²", 10),
        ("Σ x_j", 20),
    )
    return PaperFigure(
        title="Regression trees (figures 12 and 18)",
        about="Trees of depth 3 that learned Σ x_j or Σ x_j² from 1000 rows that are "
        "uniform over [−10, 10]^D, at a random row; n = 5000, ν = 10, 100 runs.",
        panels=tuple(
            study_of_runs(
                partial(tree_runs, kind, d),
                f"{kind}, D = {d}",
                (_COROLLARY, partial(unsplit_are_zero, kind=kind, n_columns=d)),
            )
            for kind, d in cases
        ),
        draw=partial(draw_charts, columns=3, size=(4.4, 2.8)),
    )


def tree_runs(kind: Learned, n_columns: int) -> Runs:
    """At a random row."""
    tree, X, row = _learned(kind, n_columns)
    law = uniform_law(X, 4, 10.0)
    exact = functions.products_of(tree, X)
    runs = run_lime(tree.predict, exact, law, row, RunSettings(n_samples=5000))
    return replace(runs, printed=formulas.printed_tree(tree, law, row))


def unsplit_are_zero(runs: Runs, *, kind: Learned, n_columns: int) -> Invariant:
    """Columns that no split is on."""
    tree, _, _ = _learned(kind, n_columns)
    ignored = np.setdiff1d(np.arange(n_columns), tree.tree_.feature)
    return Invariant(
        statement="columns without a split have limits of exactly zero: largest",
        value=float(np.abs(runs.limit[1 + ignored]).max()),
        sense="<=",
        limit=0.0,
        note=f"{len(ignored)} columns",
    )


def _learned(
    kind: Learned, n_columns: int
) -> tuple[DecisionTreeRegressor, Array, Values]:
    random = np.random.RandomState(1)
    X = uniform_data(random, n_columns)
    y = (X if kind == "Σ x_j" else X**2).sum(axis=1)
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    return tree, X, random.uniform(-10.0, 10.0, n_columns)
