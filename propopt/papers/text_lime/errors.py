"""Where the paper errs: statements that do not hold, each with a number."""

from __future__ import annotations

from functools import partial

from propopt.papers.text_lime.bounds import moments_study, norm_study, theorem_study
from propopt.papers.text_lime.misprints import empty_study, products_study
from propopt.reproduce.figure import PaperFigure
from propopt.reproduce.studies import draw_charts


def wrong_formulas_figure() -> PaperFigure:
    """What is printed."""
    return PaperFigure(
        title="Formulas that do not hold as printed",
        about="Products of indicators of 29 words, ν = 0.25; coefficients of words "
        "outside a product of two, times d; and how many words are kept.",
        panels=(products_study(), empty_study()),
        draw=partial(draw_charts, size=(4.6, 3.0)),
    )


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
