"""A tree that is flat at a row, and has large coefficients there all the same."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant
from papers.engine.studies import draw_charts
from papers.lime import functions
from papers.lime.cells import split_by_cells
from papers.lime.runs import Runs, RunSettings, run_lime
from papers.lime.statements import equals, formula_as_printed
from papers.lime.studies import study_of_runs
from papers.tabular_lime import formulas
from papers.tabular_lime.setups import uniform_data, uniform_law
from propopt.base.arrays import Array
from propopt.lime.exact_limits import ExactLimits, share_outside
from propopt.lime.laws.tabular_law import TabularLaw


_ROWS: Final = {
    "ξ = (−3, 2.3)": (np.array([-3.0, 2.3]), (0.0919, 0.0864), 0.413),
    "ξ = (−3, −2.3)": (np.array([-3.0, -2.3]), (0.0573, -0.0319), 0.00058),
    "ξ = (−3, −7.5)": (np.array([-3.0, -7.5]), (0.0573, -0.0319), 0.00058),
}
"""Rows, with what is known of (β_1, β_2) and of f there."""
_FLAT: Final = "ξ = (−3, −2.3)"
_COROLLARY = partial(
    formula_as_printed, name="Corollary 7, leaf by leaf,", tolerance=1e-6
)
_SPLIT: Final = (0.0003, 0.0576, -0.0006)


def locality_figure() -> PaperFigure:
    """On the bump, and twice where the tree is flat."""
    return PaperFigure(
        title="Coefficients that come from elsewhere",
        about="A tree of depth 4 that learned exp(−‖x − (−3, 3)‖² / 2) from 1000 rows "
        "that are uniform over [−10, 10]²; p = 4, ν = 1, n = 1000, 100 runs. At the "
        "second and the third row the tree is flat, and β_1 stays high, since the bump "
        "shares a bin with them.",
        panels=tuple(
            study_of_runs(
                partial(tree_runs_at, name),
                name,
                (
                    _COROLLARY,
                    partial(is_known_at, name=name),
                    *((stays_high, comes_from_elsewhere) if name == _FLAT else ()),
                ),
            )
            for name in _ROWS
        ),
        draw=partial(draw_charts, columns=3, size=(3.4, 2.8)),
    )


def tree_runs_at(name: str) -> Runs:
    """At a row by its name."""
    tree, law, X = _learned()
    exact = functions.products_of(tree, X)
    row = _ROWS[name][0]
    runs = run_lime(tree.predict, exact, law, row, RunSettings(n_samples=1000))
    return replace(runs, printed=formulas.printed_tree(tree, law, row))


def is_known_at(runs: Runs, *, name: str) -> Invariant:
    """Coefficients and value, to the digits that are known."""
    row, coefficients, value = _ROWS[name]
    tree, _, _ = _learned()
    result = np.r_[runs.limit[1:], tree.predict(row[None, :])]
    half_digits = [5e-5, 5e-5, 5e-4 if value > 0.1 else 5e-6]
    off = (result - [*coefficients, value]) / half_digits
    told = equals(
        f"(β_1, β_2) is {coefficients} and f {value}, in units of their last digit's "
        "half",
        off,
        0.0,
        1.0,
    )
    return replace(told, note=", ".join(f"{x:.6f}" for x in result))


def stays_high(runs: Runs) -> Claim:
    """Over the value of f, to which a local coefficient is to be compared."""
    tree, _, _ = _learned()
    value = float(tree.predict(_ROWS[_FLAT][0][None, :])[0])
    return Claim(
        statement="β_1 stays high where the tree is flat: over f there",
        value=float(runs.limit[1] / value),
        sense=">=",
        limit=10.0,
        note=f"{runs.limit[1]:.4f} against {value:.5f}",
    )


def comes_from_elsewhere(runs: Runs) -> Invariant:
    """The parts of β_1 by the number of columns in which a cell is apart."""
    tree, law, X = _learned()
    exact = ExactLimits(functions.products_of(tree, X), law)
    split = split_by_cells(exact, _ROWS[_FLAT][0][None, :])
    parts = split[0, :, 0]
    result = equals(
        f"β_1 by bins apart, D = 0, 1, 2: {_SPLIT}; and their sum is β_1",
        np.r_[parts, parts.sum()],
        np.r_[_SPLIT, runs.limit[1]],
        5e-5,
    )
    elsewhere = f"{share_outside(split)[0, 0]:.1%} of the sizes from other cells"
    return replace(result, note=f"{result.note}; {elsewhere}")


def _learned() -> tuple[DecisionTreeRegressor, TabularLaw, Array]:
    X = uniform_data(np.random.RandomState(3), 2)
    y = np.exp(-0.5 * ((X - [-3.0, 3.0]) ** 2).sum(axis=1))
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)
    return tree, uniform_law(X, 4, 1.0), X
