"""Figure 1's statements on x³, whose SmoothGrad is 3x² + 3δ² and noise.

The δ² are the same for all points, so that robustness does not see them, and the
faithfulness loss is 9NDδ⁴, up to noise that is known exactly: (x + δε)² has the
variance 4x²δ² + 2δ⁴.
"""

from __future__ import annotations

import math

import numpy as np

from propopt._typing import Array
from propopt.explanation import Explanation
from propopt.functions import Power
from propopt.losses import PropertyLoss
from propopt.reproduce.findings import Finding
from propopt.reproduce.panels import Law, Solved


Z = 6.0
"""Standard errors allowed: a false alarm once in 5e8 comparisons, if gaussian."""


def flat(solved: Solved) -> Finding:
    """R(3x² + 3δ²) = R(3x²) for every δ, in the large-sample limit."""
    values = [_smoothed(solved, scale, 1) for scale in _scales(solved)]
    return Finding(
        statement="x³: robustness loss of SmoothGrad does not depend on δ (exact "
        "limit): largest relative difference",
        value=max(values) / min(values) - 1.0,
        sense="<=",
        limit=1e-6,
    )


def grows_with_fourth_power(solved: Solved) -> Finding:
    """The slope of log faithfulness loss over log δ is 4."""
    slope, _ = _line(solved)
    return Finding(
        statement="x³: faithfulness loss of SmoothGrad grows as δ⁴ (exact limit): "
        "|slope in log-log − 4|",
        value=abs(slope - 4.0),
        sense="<=",
        limit=1e-6,
        note=f"slope {slope:.9f}",
    )


def has_factor_9nd(solved: Solved) -> Finding:
    """The factor of δ⁴ is 9ND."""
    slope, intercept = _line(solved)
    del slope
    factor = math.exp(intercept)
    return Finding(
        statement="x³: the factor of δ⁴ is 9ND (exact limit): relative difference",
        value=abs(factor / (9 * _points(solved).size) - 1.0),
        sense="<=",
        limit=1e-6,
        note=f"9ND = {9 * _points(solved).size}",
    )


def sampled_faithfulness(solved: Solved) -> Finding:
    """The sampled loss is 9NDδ⁴ within Z standard errors."""
    return _sampled(solved, 0, "x³: sampled SmoothGrad has the faithfulness 9NDδ⁴")


def sampled_robustness(solved: Solved) -> Finding:
    """The sampled loss is that of the gradient within Z standard errors."""
    return _sampled(solved, 1, "x³: sampled SmoothGrad has the gradient's robustness")


EXACT: tuple[Law, ...] = (flat, grows_with_fourth_power, has_factor_9nd)
SAMPLED: tuple[Law, ...] = (sampled_faithfulness, sampled_robustness)


def _sampled(solved: Solved, place: int, statement: str) -> Finding:
    loss = solved.problem.objective.losses[place]
    matrix = loss.map.normal(np.eye(len(_points(solved))))
    scores = [
        abs(_score(solved, loss, matrix, explanation))
        for explanation in _smoothgrads(solved)
    ]
    return Finding(
        statement=f"{statement} and its noise: largest |z|",
        value=max(scores),
        sense="<=",
        limit=Z,
        note=f"{len(scores)} scales",
    )


def _score(
    solved: Solved, loss: PropertyLoss, matrix: Array, found: Explanation
) -> float:
    """(measured − expected)/standard deviation for ‖A(B + E) − T‖², E noise.

    With M = AᵀA and independent entries of variance v the mean is that of B and
    Σ_n M_nn v_nd; the variance is Σ 4(M(B − T))²v + 2 Σ M²_nm v_nd v_md for gaussian
    noise.
    """
    X = _points(solved)
    scale = float(found.parameters["scale"] or 0.0)
    samples = int(found.parameters["n_samples"] or 0)
    v = 9 * (4 * X**2 * scale**2 + 2 * scale**4) / samples
    limit = _limit(X, scale)
    slope = loss.gradient(limit)  # 2M(B − T)
    mean = loss.value(limit) + float((np.diag(matrix)[:, None] * v).sum())
    variance = (slope**2 * v).sum() + 2 * np.vdot(v, matrix**2 @ v)
    return float((loss.value(found.attributions) - mean) / math.sqrt(variance))


def _line(solved: Solved) -> tuple[float, float]:
    """Slope and intercept of log faithfulness over log δ."""
    scales = _scales(solved)
    values = [_smoothed(solved, scale, 0) for scale in scales]
    slope, intercept = np.polyfit(np.log(scales), np.log(values), 1)
    return float(slope), float(intercept)


def _smoothed(solved: Solved, scale: float, place: int) -> float:
    """A loss of SmoothGrad in its large-sample limit."""
    loss = solved.problem.objective.losses[place]
    return loss.value(_limit(_points(solved), scale))


def _limit(X: Array, scale: float) -> Array:
    """SmoothGrad of x³ with infinitely many samples, 3x² + 3δ²."""
    return np.asarray(Power(3).smoothed_gradient(X, scale))


def _scales(solved: Solved) -> list[float]:
    """The δ at which 3δ² is not lost in the rounding of 3x²."""
    scales = [float(e.parameters["scale"] or 0.0) for e in _smoothgrads(solved)]
    return [scale for scale in scales if scale >= 1e-2]


def _smoothgrads(solved: Solved) -> list[Explanation]:
    return [b for b in solved.trade_offs.baselines if b.method == "smoothgrad"]


def _points(solved: Solved) -> Array:
    return np.asarray(solved.problem.points, float)
