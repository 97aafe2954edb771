"""Bounds of the paper: the norm of Σ⁻¹, Theorem 2 and Proposition 12."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Final

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant, Misprint
from papers.engine.studies import Study, draw_charts
from papers.lime.charts import OTHER, RUNS, THEORY, Histogram
from papers.lime.lines import DrawnLine, Lines
from papers.lime.runs import Runs, RunSettings
from papers.lime.statements import equals
from papers.lime.text_constants import TextConstants, inverse_norm
from papers.text_lime.corpus import review_of
from papers.text_lime.runs import run_words
from papers.text_lime.trees import tree
from propopt.base.arrays import Array, Values
from propopt.lime.text.word_limits import TextLaw


_SIZES: Final = (5, 10, 20, 50, 100, 200, 500)
_EPSILON, _ETA = 0.1, 0.05
_HEIGHT: Final = 1e6
"""M: f is this or 0."""


def bounds_figure() -> PaperFigure:
    """What is proved."""
    return PaperFigure(
        title="Bounds, and how far off they are",
        about="The norm of Σ⁻¹ by the number of words; distances of runs from the "
        "limit, of the small tree of figure 6, 100 runs of n = 5000 without ridge; "
        "and deviations of Γ from its mean, of 1{w_1} and five words, 300 times "
        "n = 1000.",
        panels=(norm_study(), theorem_study(), moments_study()),
        draw=partial(draw_charts, columns=3, size=(4.4, 3.0)),
    )


def norm_study() -> Study[Array]:
    """‖Σ⁻¹‖ by the number of words."""
    return Study(
        column="norm of Σ⁻¹",
        measure=inverse_norms,
        statements=(norms_are_known, norm_is_bounded),
        charts=_norm_charts,
    )


def theorem_study() -> Study[Runs]:
    """Theorem 2 asks for samples that nobody has."""
    return Study(
        column="Theorem 2",
        measure=unpenalised_runs,
        statements=(samples_are_known, few_are_far_off),
        charts=_distance_charts,
        numbers=Runs.to_frame,
    )


def moments_study() -> Study[Values]:
    """Proposition 12 with a function that is large."""
    return Study(
        column="Proposition 12",
        measure=deviations_of_gamma,
        statements=(gamma_concentrates_as_printed, gamma_concentrates_as_mended),
        charts=_gamma_charts,
    )


def inverse_norms() -> Array:
    """d, and ‖Σ⁻¹‖ at ν = 0.25 and at ν = 10, (3, K)."""
    norms = [[inverse_norm(TextLaw(nu), d) for d in _SIZES] for nu in (0.25, 10.0)]
    return np.array([_SIZES, *norms])


def norms_are_known(norms: Array) -> Invariant:
    """They are bounded in d."""
    known = np.array([26.1, 6.0])
    return equals(
        "‖Σ⁻¹‖ of 500 words is 26.1 at ν = 0.25, 6.0 at ν = 10",
        norms[1:, -1],
        known,
        0.051,
    )


def norm_is_bounded(norms: Array) -> Claim:
    """It grows with d, and the norm does not."""
    d, *result = norms
    bounds = (70.0 * d**1.5 * math.exp(5.0 / (2.0 * nu**2)) for nu in (0.25, 10.0))
    ratios = np.array([own / bound for own, bound in zip(result, bounds, strict=True)])
    return Claim(
        statement="‖Σ⁻¹‖ ≤ 70 d^(3/2) exp(5 / (2 ν²)): largest share of its bound",
        value=float(ratios.max()),
        sense="<=",
        limit=1.0,
        note=f"at ν = 0.25 at most {ratios[0].max():.1e}",
    )


@cache
def unpenalised_runs() -> Runs:
    """As analysed: no ridge, and the text itself is no sample."""
    words = review_of(29).words
    settings = RunSettings(n_samples=5000, ridge=0.0, first_row=False)
    return run_words(tree("small", words), words, TextLaw(0.25), settings)


def theorem_samples(d: int, nu: float, bound: float, epsilon: float, eta: float) -> int:
    """Max(2⁹ 70⁴ M² d⁹ e^(10/ν²), 2⁹ 70² M d⁵ e^(5/ν²)) log(8 d / η) / ε²."""
    first = 70**4 * bound**2 * d**9 * math.exp(10.0 / nu**2)
    second = 70**2 * bound * d**5 * math.exp(5.0 / nu**2)
    factor = 2**9 * math.log(8.0 * d / eta) / epsilon**2
    return math.ceil(max(first, second) * factor)


def samples_are_known(runs: Runs) -> Invariant:
    """For all but one in twenty to be within a tenth."""
    del runs
    digits = math.log10(theorem_samples(29, 0.25, 1.0, _EPSILON, _ETA))
    known = math.log10(4.6e95)
    return equals(
        "Theorem 2 asks for 4.6e95 samples: decimal digits", digits, known, 0.005
    )


def few_are_far_off(runs: Runs) -> Claim:
    """True of 5000 samples already."""
    share = float(np.mean(_distances(runs) >= _EPSILON))
    asked = theorem_samples(29, 0.25, 1.0, _EPSILON, _ETA)
    return Claim(
        statement="Theorem 2: P(‖β̂ − β‖ ≥ 0.1) ≤ 0.05: share of 100 runs of 5000",
        value=share,
        sense="<=",
        limit=_ETA,
        note=f"it asks for {asked:.1e} samples",
        difference="5000 samples, where theorem 2 asks for 4.6e95",
    )


@cache
def deviations_of_gamma() -> Values:
    """‖Γ̂ − Γ‖ over M of 300 times 1000 samples of five words, (300,)."""
    law, d, n = TextLaw(0.25), 5, 1000
    bits, weights = law.draw(d, 300 * n, np.random.default_rng(0))
    design = np.column_stack([np.ones(300 * n), bits])
    terms = (weights * bits[:, 0])[:, None] * design
    result = terms.reshape(300, n, d + 1).mean(axis=1)
    _, one, two = TextConstants(law, d).alphas(2)
    known = np.r_[one, one, np.full(d - 1, two)]
    return np.asarray(np.linalg.norm(result - known, axis=1))


def gamma_concentrates_as_printed(result: Values) -> Claim:
    """With M; scaling f by a constant shows that it has to be M²."""
    t = float(np.quantile(result, 0.1)) * _HEIGHT
    return Claim(
        statement="Proposition 12: P(‖Γ̂ − Γ‖ ≥ t) ≤ 4 d exp(−n t² / (32 M d²)), for "
        "M = 1e6: share of 300",
        value=float(np.mean(result * _HEIGHT >= t)),
        sense="<=",
        limit=_gamma_bound(t, _HEIGHT),
        if_false=Misprint("M² in the place of M, as f times a constant shows"),
    )


def gamma_concentrates_as_mended(result: Values) -> Invariant:
    """With M², at deviations where the bound says something."""
    t = math.sqrt(32.0 * 25 * math.log(4 * 5 / 0.5) / 1000) * _HEIGHT
    return Invariant(
        statement="Proposition 12 with M²: share of 300 where the bound is 0.5",
        value=float(np.mean(result * _HEIGHT >= t)),
        sense="<=",
        limit=_gamma_bound(t, _HEIGHT**2),
    )


def _gamma_bound(t: float, scale: float) -> float:
    """4 d exp(−n t² / (32 scale d²)) for d = 5 and n = 1000."""
    return 20.0 * math.exp(-1000.0 * t**2 / (32.0 * scale * 25.0))


def _distances(runs: Runs) -> Values:
    return np.asarray(np.linalg.norm(runs.estimates - runs.limit, axis=1))


def _norm_charts(norms: Array) -> tuple[Lines, ...]:
    d, narrow, wide = norms
    bound = np.log10(70.0 * d**1.5) + 5.0 / 2.0 / np.log(10.0) / 10.0**2
    return (
        Lines(
            title="norm of Σ⁻¹, decimal digits",
            x_label="d",
            y_label="log10",
            curves=(
                DrawnLine(label="ν = 0.25", x=d, y=np.log10(narrow), colour=RUNS),
                DrawnLine(label="ν = 10", x=d, y=np.log10(wide), colour=OTHER),
                DrawnLine(
                    label="bound, ν = 10", x=d, y=bound, colour=THEORY, line="--"
                ),
            ),
            log=True,
        ),
    )


def _distance_charts(runs: Runs) -> tuple[Histogram, ...]:
    return (
        Histogram(
            title="100 runs of 5000, without ridge",
            x_label="‖β̂ − β‖",
            values=_distances(runs),
            marks={"ε": _EPSILON},
        ),
    )


def _gamma_charts(result: Values) -> tuple[Histogram, ...]:
    t = float(np.quantile(result, 0.1))
    return (
        Histogram(
            title=f"90% beyond t, claimed {_gamma_bound(t * _HEIGHT, _HEIGHT):.0e}",
            x_label="‖Γ̂ − Γ‖ / M",
            values=result,
            marks={"t / M": t},
        ),
    )
