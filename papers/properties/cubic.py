"""Figure 1's statements on x³, whose SmoothGrad is 3x² + 3δ² and noise.

The δ² are the same for all points, so that robustness does not see them, and the
faithfulness loss is 9NDδ⁴, up to noise that is known exactly: (x + δε)² has the
variance 4x²δ² + 2δ⁴.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from papers.engine.findings import Claim
from papers.engine.panels import ClaimStatement, Solved
from propopt.base.arrays import Array
from propopt.losses import PropertyLoss
from propopt.results.explanation import Explanation


_LossByScale: TypeAlias = Callable[[float], float]
"""A loss without noise, as the paper has it, by δ."""
_Z = 6.0
"""Standard errors allowed: a false alarm once in 5e8 comparisons, if gaussian."""


def sampled_faithfulness(solved: Solved, *, difference: str = "") -> Claim:
    """The sampled loss is 9NDδ⁴ within six standard errors."""
    size = _points(solved).size
    statement = "x³: the faithfulness loss of SmoothGrad is 9NDδ⁴"
    return _sampled(solved, 0, statement, difference, lambda δ: 9 * size * δ**4)


def sampled_robustness(solved: Solved, *, difference: str = "") -> Claim:
    """The sampled loss is that of the gradient within six standard errors."""
    flat = solved.problem.objective.losses[1].value(_limit(_points(solved), 0.0))
    statement = "x³: the robustness loss of SmoothGrad does not depend on δ"
    return _sampled(solved, 1, statement, difference, lambda _: flat)


SAMPLED: tuple[ClaimStatement, ...] = (sampled_faithfulness, sampled_robustness)


def _sampled(
    solved: Solved,
    place: int,
    statement: str,
    difference: str,
    expected: _LossByScale,
) -> Claim:
    """How far a sampled loss is from what is expected of every δ, and noise."""
    loss = solved.problem.objective.losses[place]
    matrix = loss.map.normal(np.eye(len(_points(solved))))
    scores = [
        abs(_score(solved, loss, matrix, explanation, expected))
        for explanation in solved.of_method("smoothgrad")
    ]
    return Claim(
        statement=f"{statement}, up to noise that is known: standard errors off, at "
        "most",
        value=max(scores),
        sense="<=",
        limit=_Z,
        note=f"{len(scores)} scales",
        difference=difference,
    )


def _score(
    solved: Solved,
    loss: PropertyLoss,
    matrix: Array,
    explanation: Explanation,
    expected: _LossByScale,
) -> float:
    """(measured − expected)/standard deviation for ‖A(B + E) − T‖², E noise.

    With M = AᵀA and independent entries of variance v the mean is that of B, which is
    as stated, and Σ_n M_nn v_nd; the variance is Σ 4(M(B − T))²v
    + 2 Σ M²_nm v_nd v_md for gaussian noise.
    """
    X = _points(solved)
    scale = float(explanation.parameters["scale"] or 0.0)
    samples = int(explanation.parameters["n_samples"] or 0)
    v = 9 * (4 * X**2 * scale**2 + 2 * scale**4) / samples
    limit = _limit(X, scale)
    slope = loss.gradient(limit)  # 2M(B − T)
    mean = expected(scale) + float((np.diag(matrix)[:, None] * v).sum())
    variance = (slope**2 * v).sum() + 2 * np.vdot(v, matrix**2 @ v)
    return float((loss.value(explanation.attributions) - mean) / math.sqrt(variance))


def _limit(X: Array, scale: float) -> Array:
    """SmoothGrad of x³ with infinitely many samples, 3x² + 3δ²."""
    return np.asarray(3 * (X**2 + scale**2))


def _points(solved: Solved) -> Array:
    return np.asarray(solved.problem.points, float)
