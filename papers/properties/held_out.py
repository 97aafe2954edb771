"""Statements on inductive maps of images that were held out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from papers.engine.findings import Claim
from papers.engine.panels import Solved
from papers.engine.statements import rises_with_weight
from papers.properties import induction
from propopt.results.explanation import Explanation


_DIFFERENCE = (
    "digits and a small network instead of ImageNet and ResNet-50; inducing inputs are "
    "other images, not perturbations of the one explained"
)


def beats_smoothgrad(solved: Solved) -> Claim:
    """F(inductive)/F(best other), under the weights of each inductive explanation."""
    ratios = [
        (
            float(explanation.objective or np.nan) / _best_other(solved, explanation),
            explanation.weights,
        )
        for explanation in solved.of_method(induction.INDUCTIVE)
    ]
    worst, weights = max(ratios, key=lambda pair: pair[0])
    better = sum(ratio <= 1.0 for ratio, _ in ratios)
    return Claim(
        statement="inductive maps have less total loss than the gradient and "
        "SmoothGrad, whatever δ, under every pair of weights: largest ratio",
        value=worst,
        sense="<=",
        limit=1.0,
        note=f"{_weights_in_words(weights)}; less under {better} of {len(ratios)}",
        difference=_DIFFERENCE,
    )


def is_smooth(solved: Solved) -> Claim:
    """Smoothness loss over that of the gradient, largest over all weights."""
    (gradient,) = solved.of_method("gradient")
    ratios = [
        explanation.losses["smoothness"] / gradient.losses["smoothness"]
        for explanation in solved.of_method(induction.INDUCTIVE)
    ]
    return Claim(
        statement="inductive maps are smoother than the gradient: largest ratio of "
        "smoothness losses",
        value=max(ratios),
        sense="<=",
        limit=1.0,
        note=f"smallest {min(ratios):.2g}",
        difference=_DIFFERENCE,
    )


def inductive_loss_falls(solved: Solved, *, loss: str) -> Claim:
    """A loss of inductive explanations of new images falls with its own weight."""
    rises = rises_with_weight(solved.of_method(induction.INDUCTIVE), loss)
    return Claim(
        statement=f"{loss.replace('_', ' ')} loss of inductive maps falls as its "
        "weight grows: largest relative rise",
        value=max(rises),
        sense="<=",
        limit=0.0,
        note=f"{len(rises)} steps",
        difference=_DIFFERENCE,
    )


def _best_other(solved: Solved, explanation: Explanation) -> float:
    return min(
        sum(c * b.losses[name] for name, c in explanation.weights.items())
        for b in solved.trade_offs.baselines
        if b.method != induction.INDUCTIVE
    )


def _weights_in_words(weights: Mapping[str, float]) -> str:
    robust, smooth = weights["kernel_robustness"], weights["smoothness"]
    return f"λ_r = {robust:g}, λ_s = {smooth:g}"
