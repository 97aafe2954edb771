"""Where the paper errs: statements that do not hold, each with a number."""

from __future__ import annotations

from functools import cache, partial
from typing import Final

import numpy as np
import pandas as pd

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant, Refuted
from papers.engine.studies import Study, draw_charts
from papers.lime import functions
from papers.lime.charts import Histogram
from papers.lime.gaussian_theory import gains
from papers.lime.lines import DrawnLine, Lines
from papers.lime.statements import equals
from papers.linear_lime.gains import distances_study, signs_study
from papers.linear_lime.normals import normal_law
from propopt.base.arrays import Array, Values
from propopt.lime.exact_limits import ExactLimits


_CLAIMED: Final = 4 * 20**2 * np.exp(-2 * 200 * 0.2**2)
"""Lemma 8.4: 4 d² exp(−2 n t²) with d = 20, n = 200 and t = 0.2."""


def false_statements_figure() -> PaperFigure:
    """Four of them."""
    return PaperFigure(
        title="Statements that do not hold",
        about="Gains g_j, by which LIME multiplies slopes, at rows in the middle of "
        "the four bins and beside; coefficients by the kernel width with the paper's "
        "distance and with the package's; deviations of Σ_n from its mean, d = 20, "
        "n = 200, ν = 50, 300 times; and the mean weight of a sample, ν = 10.",
        panels=(
            signs_study(),
            distances_study(),
            Study(
                column="Lemma 8.4",
                measure=deviations,
                statements=(measured_is_known, lemma_8_4),
                charts=_deviation_charts,
                numbers=_deviation_numbers,
            ),
            Study(
                column="mean weight",
                measure=mean_weights,
                statements=(weights_are_known, weight_is_one, weight_tends_to_one),
                charts=_weight_charts,
            ),
        ),
        draw=partial(draw_charts, size=(4.6, 3.0)),
    )


@cache
def deviations() -> Values:
    """‖Σ̂ − Σ‖ of 300 times 200 samples, (300,)."""
    law, row = normal_law(50.0, 20), np.full((1, 20), 0.1)
    rng = np.random.default_rng(0)
    draws = law.draw(np.tile(row, (300, 1)), 200, rng)
    Z = np.concatenate([np.ones((300, 200, 1)), draws.bits], axis=2)
    result = np.einsum("rs,rsi,rsj->rij", draws.weights, Z, Z, optimize=True) / 200
    limits = ExactLimits(functions.linear_function(np.zeros(20)), law).of(row)
    a = np.r_[1.0, limits.alpha[0]]
    mean = np.outer(a, a)
    np.fill_diagonal(mean, a)
    mean *= np.exp(limits.log_weight[0])
    return np.asarray(np.linalg.norm(result - mean, ord=2, axis=(1, 2)))


def measured_is_known(result: Values) -> Invariant:
    """0.89 of 300, within five standard errors of both."""
    share = float(np.mean(result >= 0.2))
    return equals("share of deviations of at least 0.2 is 0.89", share, 0.89, 0.13)


def lemma_8_4(result: Values) -> Claim:
    """The probability that it claims."""
    return Claim(
        statement="Lemma 8.4: P(‖Σ_n − Σ‖ ≥ t) ≤ 4 d² exp(−2 n t²): share of 300",
        value=float(np.mean(result >= 0.2)),
        sense="<=",
        limit=float(_CLAIMED),
        if_false=Refuted(
            "d = 20, n = 200, t = 0.2, ν = 50: 90% of 300 draws, where it allows "
            "0.02%; a bound for one entry is taken for one of the norm"
        ),
    )


def _deviation_numbers(result: Values) -> pd.DataFrame:
    shares = (0.1, 0.5, 0.9)
    return pd.DataFrame(
        {
            "draws below": [f"{share:.0%}" for share in shares],
            "‖Σ_n − Σ‖": np.quantile(result, shares),
        }
    )


def mean_weights() -> Array:
    """d, and the mean weight of a sample at ν = 10 and ξ = μ, (2, K)."""
    dimensions = np.array([10, 30, 100, 300, 1000])
    logs = [
        gains(normal_law(10.0, d), np.zeros((1, d))).log_weight[0] for d in dimensions
    ]
    return np.stack([dimensions, np.exp(logs)])


def weights_are_known(result: Array) -> Invariant:
    """In 10, 100 and 1000 dimensions."""
    known = np.array([0.951, 0.608, 0.0069])
    return equals("C is 0.951, 0.608, 0.0069", result[1, [0, 2, 4]], known, 5e-4)


def weight_is_one(result: Array) -> Claim:
    """At a width that is large in each column by itself."""
    return _is_one(result[1, -1], "one ν for every d, 10 σ")


def weight_tends_to_one(result: Array) -> Claim:
    """At widths with ν² ≫ d σ²."""
    del result
    law = normal_law(1000.0, 1000)
    log_weight = gains(law, np.zeros((1, 1000))).log_weight[0]
    return _is_one(np.exp(log_weight), "ν that grows with d, 1000 σ")


def _is_one(weight: float, choice: str) -> Claim:
    return Claim(
        statement="C_d ≈ 1 for ν ≫ σ in any dimension: at d = 1000",
        value=float(weight),
        sense=">=",
        limit=0.9,
        choice=choice,
    )


def _deviation_charts(result: Values) -> tuple[Histogram, ...]:
    return (
        Histogram(
            title=f"{np.mean(result >= 0.2):.0%} beyond t, claimed {_CLAIMED:.1e}",
            x_label="‖Σ_n − Σ‖",
            values=result,
            marks={"t": 0.2},
        ),
    )


def _weight_charts(result: Array) -> tuple[Lines, ...]:
    return (
        Lines(
            title="mean weight of a sample, ν = 10 σ",
            x_label="dimensions",
            y_label="C",
            curves=(DrawnLine(label="", x=result[0], y=result[1], line="o-"),),
            log=True,
        ),
    )
