"""A linear model and kernel ridge on tables, in place of Boston housing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, TypeAlias, final

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes, make_regression
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant
from papers.engine.studies import Study, draw_charts
from papers.lime import functions
from papers.lime.charts import BoxPlots
from papers.lime.runs import Runs, RunSettings, run_lime
from papers.lime.statements import equals, mean_is_expected
from papers.lime.studies import study_of_runs
from papers.linear_lime.formulas import printed_linear_limit
from papers.linear_lime.normals import CLOSED_FORM, normal_law
from propopt.base.arrays import Array, Values


TableName: TypeAlias = Literal["diabetes", "make_regression"]
_SETTINGS: Final = RunSettings(n_samples=1000, n_runs=20, ridge=0.0, first_row=False)
_ROW: Final = 10
_STAND_IN: Final = "tables that are here instead of Boston housing"
_SLOPES = np.array([0.6, 13.0, -28.2, 5.5, 44.5, -26.1, -1.3, -9.5, -40.3, -3.7])
_BY_GRADIENT = np.array([0.8, 11.1, -19.4, 0.2, 0.2, 3.6, 1.4, -8.1, -18.3, 7.5])
_EXACT = np.array([-0.2, 11.8, -25.6, 3.7, 2.0, 6.3, 3.0, -10.2, -23.1, 1.6])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class GradientRule:
    """Runs on a model that is not linear, and the linear formula with its gradient.

    Parameters
    ----------
    runs : Runs
        With the exact limit.
    by_gradient : array (D,)
        The linear formula with the gradient at the row for slopes.
    """

    runs: Runs
    by_gradient: Values


def linear_models_figure() -> PaperFigure:
    """Figure 5."""
    return PaperFigure(
        title="A linear model of a table (stand-in)",
        about="Least squares on scikit-learn's diabetes, standardised, and on 506 rows "
        "of make_regression with 13 columns, at the eleventh row of each; N(0, 1), "
        "ν = 1, n = 1000, 20 runs. Few of the samples have weight, so runs scatter.",
        panels=(
            study_of_runs(
                partial(linear_model_runs, "diabetes"),
                "diabetes",
                (CLOSED_FORM, slopes_are_known),
            ),
            study_of_runs(
                partial(linear_model_runs, "make_regression"),
                "make_regression",
                (CLOSED_FORM,),
            ),
        ),
        draw=partial(draw_charts, size=(5.6, 3.0)),
    )


def kernel_figure() -> PaperFigure:
    """Figure 6."""
    return PaperFigure(
        title="Kernel ridge, and the gradient in the linear formula (stand-in)",
        about="Kernel ridge (gaussian kernel of scale 5, α = 1) on scikit-learn's "
        "standardised diabetes at the eleventh row; N(0, 1), ν = 1, n = 1000, 20 runs. "
        "The paper has the gradient in the formula for linear functions; what LIME "
        "tends to is known exactly.",
        panels=(
            Study(
                column="diabetes",
                measure=kernel_runs,
                statements=(exact_in_mean, both_are_known, gradient_rule),
                charts=_rule_charts,
                numbers=_numbers,
            ),
        ),
        draw=partial(draw_charts, size=(6.0, 3.2)),
    )


def linear_model_runs(name: TableName) -> Runs:
    """At the eleventh row."""
    X, y, labels = _table(name)
    model = LinearRegression().fit(X, y)
    base, slopes = float(model.intercept_), np.asarray(model.coef_)
    f = functions.linear_function(slopes, base)
    law = normal_law(1.0, X.shape[1], labels)
    runs = run_lime(model.predict, f, law, X[_ROW], _SETTINGS)
    return replace(runs, printed=printed_linear_limit(slopes, base, 1.0, X[_ROW]))


def kernel_runs() -> GradientRule:
    """At the eleventh row of diabetes."""
    X, y, labels = _table("diabetes")
    model = KernelRidge(alpha=1.0, kernel="rbf", gamma=1 / 50).fit(X, y)
    f = functions.gaussian_sum(X, model.dual_coef_, 5.0)
    row, law = X[_ROW], normal_law(1.0, X.shape[1], labels)
    away = X - row
    pulls = model.dual_coef_ * np.exp(-(away**2).sum(axis=1) / 50)
    gradient = pulls @ away / 25
    return GradientRule(
        runs=run_lime(model.predict, f, law, row, _SETTINGS),
        by_gradient=printed_linear_limit(gradient, 0.0, 1.0, row)[1:],
    )


def slopes_are_known(runs: Runs) -> Invariant:
    """To a tenth."""
    return equals("theory of the ten columns is known", runs.limit[1:], _SLOPES, 0.051)


def both_are_known(rule: GradientRule) -> Invariant:
    """To a tenth."""
    result = np.r_[rule.runs.limit[1:], rule.by_gradient]
    known = np.r_[_EXACT, _BY_GRADIENT]
    return equals(
        "limits, and what the gradient gives, are known", result, known, 0.051
    )


def exact_in_mean(rule: GradientRule) -> Invariant:
    """Runs have the exact limit for their mean."""
    return mean_is_expected(rule.runs)


def gradient_rule(rule: GradientRule) -> Claim:
    """It is rough."""
    exact = rule.runs.limit[1:]
    off = np.abs(rule.by_gradient - exact)
    worst = int(off.argmax())
    return Claim(
        statement="the linear formula with the gradient gives the limit: largest "
        "difference, of the largest coefficient",
        value=float(off[worst] / np.abs(exact).max()),
        sense="<=",
        limit=0.1,
        note=f"{rule.runs.labels[worst]}: {rule.by_gradient[worst]:.1f} against "
        f"{exact[worst]:.1f}",
        difference=_STAND_IN,
    )


def _table(name: TableName) -> tuple[Array, Values, tuple[str, ...]]:
    """Standardised columns, what is learned, and names."""
    if name == "diabetes":
        table, y = load_diabetes(return_X_y=True, as_frame=True)
        X, labels = table.to_numpy(), tuple(map(str, table.columns))
    else:
        X, y = make_regression(506, 13, noise=10.0, random_state=0)
        labels = tuple(f"x{j + 1}" for j in range(13))
    return (X - X.mean(axis=0)) / X.std(axis=0), np.asarray(y), labels


def _numbers(rule: GradientRule) -> pd.DataFrame:
    by_gradient = np.r_[np.nan, rule.by_gradient]
    return rule.runs.to_frame().assign(**{"by the gradient": by_gradient})


def _rule_charts(rule: GradientRule) -> tuple[BoxPlots, ...]:
    other = {"by the gradient": rule.by_gradient}
    return (BoxPlots(title="kernel ridge on diabetes", runs=rule.runs, other=other),)
