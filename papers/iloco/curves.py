"""Figures 2 and A2 to A5: curves of successes, by task and by design."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from papers.engine.figure import PaperFigure
from papers.engine.studies import draw_charts
from papers.iloco.learners import LearnerName, LearningTask
from papers.iloco.scale import Scale
from papers.iloco.simulations import Design, Simulation, SimulationNumber
from papers.iloco.success import SuccessCurve, study_of_curve


_ABOUT = (
    "The share of replicates in which the pair (1, 2) has the largest score of all 45, "
    "by snr: {design}. iLOCO-Split holds out half of 500 rows; patches of iLOCO-MP "
    "have a fifth of the rows and of the features, as in the paper. Both are shown by "
    "the score and, as |·|, by its size. Comparison methods explain the learner that "
    "is fitted to all rows, by 20 rows against 20 (H) and 6 against 10. The paper does "
    "not name the mean over rows of Faith-Shap: both the mean of sizes and the size of "
    "the mean are shown. Iterative forests are not compared, as no package here has "
    "them. A pair is together in one of 45 patches with a fifth of ten features: of "
    "1000 patches that is less than the 100 that are advised, and warnings of it are "
    "left out. Replicates are independent, also those at another snr. Lines are a "
    "little apart, so that equal ones are seen. Learners have hyper-parameters of "
    "ours, as the paper names none; {told}."
)


def classification_figure(scale: Scale) -> PaperFigure:
    """Figure 2."""
    design = "nonlinear classification"
    return _figure(scale, "Figure 2", design, scale.main, "classification", tanh=True)


def nonlinear_regression_figure(scale: Scale) -> PaperFigure:
    """Figure A2."""
    design = "nonlinear regression"
    return _figure(scale, "Figure A2", design, scale.appendix, "regression", tanh=True)


def linear_classification_figure(scale: Scale) -> PaperFigure:
    """Figure A3."""
    design = "linear classification"
    return _figure(
        scale, "Figure A3", design, scale.appendix, "classification", tanh=False
    )


def linear_regression_figure(scale: Scale) -> PaperFigure:
    """Figure A4."""
    design = "linear regression"
    return _figure(scale, "Figure A4", design, scale.appendix, "regression", tanh=False)


def correlated_figure(scale: Scale) -> PaperFigure:
    """Figure A5."""
    design = (
        "linear regression with an autoregressive design; the paper has Σ⁻¹ with 0.8 "
        "beside a diagonal that it does not print. Shown are Σ_jk = 0.8^|j − k|, and "
        "Σ⁻¹ with 0.8 beside the diagonal of an autoregression, 1 + 0.8². Section 2 of "
        "the paper says that correlated pairs have negative scores"
    )
    return _figure(
        scale, "Figure A5", design, scale.appendix, "regression", tanh=False,
        designs={"Σ_jk = 0.8^|j − k|": "falling", "Σ⁻¹ with 0.8": "as printed"},
    )  # fmt: skip


def _figure(
    scale: Scale,
    title: str,
    design: str,
    panels: tuple[tuple[SimulationNumber, LearnerName], ...],
    task: LearningTask,
    *,
    tanh: bool,
    designs: Mapping[str, Design] = MappingProxyType({"": "independent"}),
) -> PaperFigure:
    learners = [learner for _, learner in panels]
    studies = tuple(
        study_of_curve(
            SuccessCurve(
                simulation=Simulation(
                    number=number, task=task, tanh=tanh, design=features
                ),
                learner=learner,
                scale=scale,
            ),
            ", ".join(filter(None, (f"({number})", name))),
            scale.few_patches(*learners),
        )
        for number, learner in panels
        for name, features in designs.items()
    )
    return PaperFigure(
        title=f"{title}: {design.partition(';')[0]}",
        about=_ABOUT.format(design=design, told=scale.told(*learners)),
        panels=studies,
        draw=partial(draw_charts, columns=3, size=(4.2, 3.2)),
    )
