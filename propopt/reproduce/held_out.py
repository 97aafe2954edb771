"""Statements on inductive maps of images that were held out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from propopt.explanation import Explanation
from propopt.reproduce import induction
from propopt.reproduce.findings import Finding
from propopt.reproduce.laws import rises_with_weight
from propopt.reproduce.panels import Solved


LEARNT = 0.1
"""From this weight of robustness on, other images say more than noise does."""


def beats_smoothgrad(solved: Solved) -> Finding:
    """F(inductive)/F(best other), under the weights of each inductive explanation."""
    ratios = [
        (float(found.objective or np.nan) / _best_other(solved, found), found.weights)
        for found in induction.inductive(solved)
        if found.weights["kernel_robustness"] >= LEARNT
    ]
    worst, weights = max(ratios, key=lambda pair: pair[0])
    return Finding(
        statement=f"with a weight of robustness from {LEARNT:g} on, inductive maps "
        "have less total loss than the gradient and SmoothGrad, whatever δ: largest "
        "ratio",
        value=worst,
        sense="<=",
        limit=1.0,
        note=_weights_in_words(weights),
    )


def nears_optimum(solved: Solved) -> Finding:
    """F/F* − 1 where both weights are largest."""
    found = max(induction.inductive(solved), key=lambda e: tuple(e.weights.values()))
    return Finding(
        statement="inductive maps near the optimum under large weights: F/F* − 1 under "
        "the largest",
        value=induction.excess(solved, found),
        sense="<=",
        limit=0.1,
        note=_weights_in_words(found.weights),
    )


def is_smooth(solved: Solved) -> Finding:
    """Smoothness loss over that of the gradient, largest over all weights."""
    (gradient,) = (b for b in solved.trade_offs.baselines if b.method == "gradient")
    ratios = [
        found.losses["smoothness"] / gradient.losses["smoothness"]
        for found in induction.inductive(solved)
    ]
    return Finding(
        statement="inductive maps are smoother than the gradient: largest ratio of "
        "smoothness losses",
        value=max(ratios),
        sense="<=",
        limit=1.0,
        note=f"smallest {min(ratios):.2g}",
    )


def falls_with_its_weight(solved: Solved, *, loss: str) -> Finding:
    """A loss of inductive explanations of new images falls with its own weight."""
    rises = rises_with_weight(induction.inductive(solved), loss)
    return Finding(
        statement=f"{loss.replace('_', ' ')} loss of inductive maps falls as its "
        "weight grows: largest relative rise",
        value=max(rises),
        sense="<=",
        limit=1e-6,
        note=f"{len(rises)} steps",
    )


def _best_other(solved: Solved, found: Explanation) -> float:
    return min(
        sum(c * b.losses[name] for name, c in found.weights.items())
        for b in solved.trade_offs.baselines
        if b.method != induction.INDUCTIVE
    )


def _weights_in_words(weights: Mapping[str, float]) -> str:
    robust, smooth = weights["kernel_robustness"], weights["smoothness"]
    return f"λ_r = {robust:g}, λ_s = {smooth:g}"
