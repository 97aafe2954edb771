"""Where the paper errs: statements that do not hold, each with a number."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant, Refuted
from papers.engine.studies import Study, draw_charts
from papers.lime import functions
from papers.lime.charts import EXPECTED, RUNS, THEORY
from papers.lime.lines import DrawnLine, Lines
from papers.lime.runs import with_intercept
from papers.lime.statements import equals
from papers.lime.tabular_bounds import paper_stability, stability_factor
from papers.tabular_lime.digits import steps_study
from papers.tabular_lime.products import narrow_study, width_study
from papers.tabular_lime.setups import uniform_data, uniform_law
from propopt.base.arrays import Array, Values
from propopt.lime.exact_limits import ExactLimits


def errors_figure() -> PaperFigure:
    """Six of them."""
    return PaperFigure(
        title="Statements that do not hold",
        about="The default width, from runs of f = x1 (x2 − 0.3) at (0.9, 0.1) with "
        "the package's 0.75 √D; coefficients for ν → 0, of the same f, and what Eq. "
        "5 gives in double precision; θ of Example 11, whose factor is wrong; "
        "Proposition 2, for functions of one column that differ by 1 in the bin of the "
        "row and by −1 elsewhere, ν = 50; and monotonicity, of a tree that increases "
        "in x1.",
        panels=(
            width_study(),
            narrow_study(),
            steps_study(),
            Study(
                column="Proposition 2",
                measure=stability_ratios,
                statements=(stable, stable_as_mended, excess_is_known),
                charts=_ratio_charts,
            ),
            Study(
                column="monotonicity",
                measure=coefficients_by_bin,
                statements=(sum_to_zero, not_monotone, sizes_fall),
                charts=_bin_charts,
            ),
        ),
        draw=partial(draw_charts, columns=3, size=(4.2, 3.0)),
    )


def stability_ratios() -> Array:
    """p, ‖β^f − β^g‖, the paper's bound, and the mended one, (4, K)."""
    rows = [_stability(p) for p in range(2, 31)]
    return np.array(rows).T


def stable(ratios: Array) -> Claim:
    """The bound as it is printed."""
    _, norm, printed, _ = ratios
    return Claim(
        statement="Proposition 2: ‖β^f − β^g‖ over its bound, at most",
        value=float((norm / printed).max()),
        sense="<=",
        limit=1.0,
        note="p = 30",
        if_false=Refuted(
            "one column, p = 11, ν = 50, f − g = 1 in the bin of the row and −1 "
            "elsewhere: the norm is √5 = 2.236, the bound 2.221"
        ),
    )


def stable_as_mended(ratios: Array) -> Invariant:
    """√((1 + 2 Σ α)² + 4 D) instead."""
    _, norm, _, mended = ratios
    return Invariant(
        statement="√((1 + 2 Σ α)² + 4 D) ‖f − g‖ bounds ‖β^f − β^g‖: largest ratio",
        value=float((norm / mended).max()),
        sense="<=",
        limit=1.0,
    )


def excess_is_known(ratios: Array) -> Invariant:
    """At eleven bins."""
    norm, printed = ratios[1:3, ratios[0] == 11][:, 0]
    known = np.array([math.sqrt(5.0), 2.2208])
    result = np.array([norm, printed])
    return equals("p = 11: √5 where the bound is 2.2208", result, known, 5e-5)


def coefficients_by_bin() -> Values:
    """β_1 where the row is in each of the bins of x1, (4,)."""
    random = np.random.RandomState(1)
    X = uniform_data(random, 2)
    y = X[:, 0] + 3.0 * np.sin(X[:, 1]) + random.normal(0.0, 3.0, len(X))
    tree = DecisionTreeRegressor(max_depth=5, random_state=0, monotonic_cst=[1, 0])
    exact = functions.products_of(tree.fit(X, y), X)
    rows = np.array([[x, 0.1] for x in (-7.5, -2.5, 2.5, 7.5)])
    return ExactLimits(exact, uniform_law(X)).of(rows).coefficients[:, 0]


def sum_to_zero(coefficients: Values) -> Invariant:
    """They are differences from the mean of the other bins."""
    largest = np.abs(coefficients).max()
    return equals(
        "β_1 sums to zero over bins", coefficients.sum() / largest, 0.0, 1e-12
    )


def not_monotone(coefficients: Values) -> Claim:
    """It is: (m_(b+1) − m_b) p / (p − 1) ≥ 0 for means m_b of f in bins."""
    return Claim(
        statement="demand monotonicity is not satisfied: smallest step of β_1 from bin "
        "to bin of a tree that increases in x1",
        value=float(np.diff(coefficients).min()),
        sense="<=",
        limit=-1e-9,
        note=", ".join(f"{x:.3f}" for x in coefficients),
        if_false=Refuted(
            "β_j is a difference of weighted means of f over bins of x_j, whose step "
            "(m_(b+1) − m_b) p / (p − 1) is not negative where f does not decrease; "
            "a change of sign is an increase"
        ),
    )


def sizes_fall(coefficients: Values) -> Invariant:
    """Sizes fall where coefficients rise to zero."""
    return Invariant(
        statement="sizes of β_1 do fall: their smallest step from bin to bin",
        value=float(np.diff(np.abs(coefficients)).min()),
        sense="<=",
        limit=-1e-9,
    )


def _stability(p: int) -> tuple[float, float, float, float]:
    even = np.linspace(0.5, 10 * p - 0.5, 10 * p)[:, None]
    law = uniform_law(even, p, 50.0)
    end = law.columns[0].edges[0]
    box = functions.box_function(np.array([-np.inf]), np.array([end]))
    limits = ExactLimits(box.scaled(2.0), law).of(np.array([[0.5]]))
    beta = with_intercept(limits) - [1.0, 0.0]
    bound = paper_stability(1, 50.0, p)
    mended = float(stability_factor(limits)[0])
    return float(p), float(np.linalg.norm(beta)), bound, mended


def _ratio_charts(ratios: Array) -> tuple[Lines, ...]:
    p, norm, printed, mended = ratios
    return (
        Lines(
            title="stability: D = 1, ν = 50",
            x_label="bins p",
            y_label="norm",
            curves=(
                DrawnLine(label="‖β^f − β^g‖", x=p, y=norm, colour=RUNS),
                DrawnLine(label="Proposition 2", x=p, y=printed, colour=THEORY),
                DrawnLine(label="mended", x=p, y=mended, colour=EXPECTED, line="--"),
            ),
            y_limits=(2.0, 3.2),
        ),
    )


def _bin_charts(coefficients: Values) -> tuple[Lines, ...]:
    return (
        Lines(
            title="a tree that increases in x1",
            x_label="bin of x1",
            y_label="β_1",
            curves=(
                DrawnLine(label="", x=np.arange(1.0, 5.0), y=coefficients, line="o-"),
            ),
        ),
    )
