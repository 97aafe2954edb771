"""SmoothGrad and LIME against their limits, with noise that is known.

SmoothGrad tends to the gradient of the function averaged over ε ~ N(0, δ²), which has a
closed form where the function is a sum of functions of one input. LIME with an
intercept and without a kernel tends to the same (Stein's lemma). Of S draws each entry
keeps a noise of variance v, which the baseline estimates from its draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from papers.engine.findings import Claim, Invariant
from papers.engine.panels import Solved, Statement
from papers.engine.statements import named
from propopt.base.arrays import Array
from propopt.losses import PropertyLoss
from propopt.results.explanation import Explanation


Limit: TypeAlias = Callable[[Array, float], Array]
"""From points and δ to the attributions of infinitely many draws."""
_LossByScale: TypeAlias = Callable[[float], float]
"""A loss without noise, as the paper has it, by δ."""
_Z = 6.0
"""Standard errors allowed: a false alarm once in 5e8 comparisons, if gaussian."""


def cubic(X: Array, scale: float) -> Array:
    """E 3(x + ε)² = 3x² + 3δ²."""
    return 3.0 * X**2 + 3.0 * scale**2


def exponential(X: Array, scale: float) -> Array:
    """E exp(x + ε) = exp(x + δ²/2)."""
    return np.exp(X + scale**2 / 2.0)


def sine(X: Array, scale: float) -> Array:
    """E cos(x + ε) = cos(x) exp(−δ²/2)."""
    return np.cos(X) * math.exp(-(scale**2) / 2.0)


def linear_plus_sine(X: Array, scale: float) -> Array:
    """E 1 + 3 cos(3x + 3ε) = 1 + 3 cos(3x) exp(−9δ²/2)."""
    return 1.0 + 3.0 * sine(3.0 * X, 3.0 * scale)


def quadratic_plus_sine(X: Array, scale: float) -> Array:
    """E (x + ε)/5 + 3 cos(3x + 3ε) = x/5 + 3 cos(3x) exp(−9δ²/2)."""
    return X / 5.0 + 3.0 * sine(3.0 * X, 3.0 * scale)


LIMITS: Mapping[str, Limit] = {
    "cubic": cubic,
    "exponential": exponential,
    "sine": sine,
    "linear_plus_sine": linear_plus_sine,
    "quadratic_plus_sine": quadratic_plus_sine,
}
"""By the names of functions in those of problem files; sin(eˣ) has no closed form."""
_LIGHT_TAILS = {"exponential": 1.0}
"""The largest δ at which draws tell their noise: eˣ has a kurtosis of 110 at δ = 1."""


def sampled_as_known(solved: Solved, *, function: str) -> Invariant:
    """Losses of sampled baselines are those of their limits, and noise."""
    scores = dict(_scores(solved, function))
    worst = max(scores, key=scores.__getitem__)
    return Invariant(
        statement="SmoothGrad and LIME have the losses of their limits, up to noise "
        "that is known: standard errors off, at most",
        value=scores[worst],
        sense="<=",
        limit=_Z,
        note=f"{worst}; {len(scores)} losses",
    )


def _scores(solved: Solved, function: str) -> Iterator[tuple[str, float]]:
    """Which loss of which baseline, and how many standard errors it is off."""
    X, limit = _points(solved), LIMITS[function]
    largest = _LIGHT_TAILS.get(function, math.inf)
    for loss in solved.problem.objective.losses:
        matrix = loss.map.normal(np.eye(len(X)))
        for method in ("smoothgrad", "lime"):
            for one in solved.of_method(method):
                scale = float(one.parameters["scale"] or 0.0)
                if scale <= largest and one.standard_errors is not None:
                    rows = limit(X, scale)
                    noise = np.asarray(one.standard_errors) ** 2
                    score = _score(loss, matrix, one, rows, loss.value(rows), noise)
                    yield f"{named(one)}, {loss.name}", abs(score)


def sampled_faithfulness(solved: Solved) -> Invariant:
    """The sampled loss of x³ is 9NDδ⁴ within six standard errors."""
    size = _points(solved).size
    claim = _cubic(solved, 0, "", lambda δ: 9 * size * δ**4)
    return Invariant(
        statement="x³: the faithfulness loss of SmoothGrad is 9NDδ⁴, up to noise that "
        "is known: standard errors off, at most",
        value=claim.value,
        sense="<=",
        limit=claim.limit,
        note=claim.note,
    )


def sampled_robustness(solved: Solved, *, difference: str = "") -> Claim:
    """The sampled loss of x³ is that of the gradient within six standard errors."""
    flat = solved.problem.objective.losses[1].value(cubic(_points(solved), 0.0))
    claim = _cubic(solved, 1, difference, lambda _: flat)
    return replace(claim, choice="up to the noise of draws, in standard errors")


def drawn_robustness(solved: Solved, *, difference: str = "") -> Claim:
    """The loss of the draws themselves, whose noise counts as a lack of robustness."""
    loss = solved.problem.objective.losses[1]
    losses = [one.losses[loss.name] for one in solved.of_method("smoothgrad")]
    return Claim(
        statement=_CONSTANT,
        value=max(losses) / min(losses) - 1.0,
        sense="<=",
        limit=0.1,
        note=f"{min(losses):.3g} to {max(losses):.3g}",
        difference=difference,
        choice="as drawn, largest over smallest, less 1",
    )


_CONSTANT = (
    "x³: the robustness loss of SmoothGrad does not depend on δ: how far it is off"
)
SAMPLED: tuple[Statement, ...] = (
    sampled_faithfulness,
    sampled_robustness,
    drawn_robustness,
)


def _cubic(
    solved: Solved,
    place: int,
    difference: str,
    expected: _LossByScale,
) -> Claim:
    """How far a sampled loss is from what is expected of every δ, and noise.

    The δ² of 3x² + 3δ² are the same for all points, so that robustness does not see
    them; (x + δε)² has the variance 4x²δ² + 2δ⁴.
    """
    X, loss = _points(solved), solved.problem.objective.losses[place]
    matrix = loss.map.normal(np.eye(len(X)))
    scores = []
    for one in solved.of_method("smoothgrad"):
        scale = float(one.parameters["scale"] or 0.0)
        samples = int(one.parameters["n_samples"] or 0)
        noise = 9 * (4 * X**2 * scale**2 + 2 * scale**4) / samples
        rows = cubic(X, scale)
        scores.append(abs(_score(loss, matrix, one, rows, expected(scale), noise)))
    return Claim(
        statement=_CONSTANT,
        value=max(scores),
        sense="<=",
        limit=_Z,
        note=f"{len(scores)} scales",
        difference=difference,
    )


def _score(
    loss: PropertyLoss,
    matrix: Array,
    explanation: Explanation,
    limit: Array,
    expected: float,
    noise: Array,
) -> float:
    """(measured − expected)/standard deviation for ‖A(B + E) − T‖², E noise.

    With M = AᵀA and independent entries of variance v the mean is that of B, which is
    as expected, and Σ_n M_nn v_nd; the variance is Σ 4(M(B − T))²v
    + 2 Σ M²_nm v_nd v_md for gaussian noise.
    """
    slope = loss.gradient(limit)  # 2M(B − T)
    mean = expected + float((np.diag(matrix)[:, None] * noise).sum())
    variance = (slope**2 * noise).sum() + 2 * np.vdot(noise, matrix**2 @ noise)
    return float((loss.value(explanation.attributions) - mean) / math.sqrt(variance))


def _points(solved: Solved) -> Array:
    return np.asarray(solved.problem.points, float)
