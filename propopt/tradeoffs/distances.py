"""How far a baseline lies above the optima, where the two can be compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from propopt.estimates import Units
from propopt.results.explanation import Explanation


_ROUNDING = 1e-6
"""Of all attributions: what rows may miss and still add up."""

_IN_WORDS = {
    "gradient": "slopes",
    "scaled": "slopes times a scale",
    "output": "parts of the output",
}


def why_not_compared(baseline: Explanation, units: Units | None) -> str | None:
    """Why losses of a baseline mean nothing beside a target; None if they do."""
    if units is None or baseline.units == units:
        return None
    return f"it is {_IN_WORDS[baseline.units]}, and the target {_IN_WORDS[units]}"


def distance_of(
    baseline: Explanation,
    optimized: Sequence[Explanation],
    losses: Sequence[str],
    units: Units | None,
) -> dict[str, Any]:
    """The row of a baseline: its settings, its losses, and its least excess.

    Parameters
    ----------
    baseline : Explanation
        With the losses measured.
    optimized : sequence of Explanation
        The optima.
    losses : sequence of str
        Names of the losses.
    units : {"gradient", "output", "scaled"} or None
        Those of the target.
    """
    row: dict[str, Any] = {"method": baseline.method}
    row |= {f"parameter.{name}": value for name, value in baseline.parameters.items()}
    row |= {f"loss.{name}": baseline.losses[name] for name in losses}
    reason = why_not_compared(baseline, units) or why_not_complete(
        baseline, optimized, losses
    )
    if reason is not None:
        return {**row, "excess": math.nan, "not_compared": reason}
    excesses = [(_excess(baseline, best, losses), best) for best in optimized]
    if not excesses:
        return row
    excess, best = min(excesses, key=lambda pair: pair[0])
    rates = _rates(best, losses)
    weights = {f"weight.{name}": rate for name, rate in rates.items()}
    return {**row, "excess": excess, **weights}


def why_not_complete(
    baseline: Explanation, optimized: Sequence[Explanation], losses: Sequence[str]
) -> str | None:
    """Why a baseline is none of those that optima were sought among; None if it is.

    Beside the losses that are traded it was measured on what rows have to add up to.
    """
    held = {name for best in optimized for name in best.losses} - {*losses}
    for name in sorted(held & baseline.losses.keys()):
        size = float((baseline.attributions**2).sum())
        if baseline.losses[name] > _ROUNDING**2 * size:
            missed = math.sqrt(baseline.losses[name])
            return (
                f"its rows miss what they have to add up to, by {missed:.2g} ({name})"
            )
    return None


def _rates(best: Explanation, losses: Sequence[str]) -> dict[str, float]:
    """Weights of the traded losses; what rows add up to has none."""
    return {name: best.rates[name] for name in losses if name in best.rates}


def _excess(baseline: Explanation, best: Explanation, losses: Sequence[str]) -> float:
    """(F(baseline) − F*)/F* for the weights of ``best``; infinite where one of them is.

    The multiplier of a limit of zero is no weight.
    """
    rates = _rates(best, losses)
    if not all(map(math.isfinite, rates.values())):
        return math.inf
    value = sum(c * baseline.losses[name] for name, c in rates.items())
    optimum = sum(c * best.losses[name] for name, c in rates.items())
    if optimum > 0:
        return value / optimum - 1.0
    return math.inf if value else 0.0
