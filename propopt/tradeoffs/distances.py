"""How far a baseline lies above the optima, where the two can be compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from propopt.estimates import Units
from propopt.results.conclusions.ends import Ends
from propopt.results.explanation import Explanation


_ROUNDING = 1e-6
"""What a baseline may miss: of all attributions where a loss is to be zero, of a limit
else. Optima keep limits to a tolerance, by default the same."""

_NOTHING = 1e-11
"""Of the scale of a gap, which is at least 1e-9 of F for W = 0: an optimum that costs
no more is zero to rounding, ‖δ‖² for δ = 1e-10 ‖G‖."""

_EXACT = 1e-12
"""Of ‖G‖²: less is no loss of faithfulness, as in shares; a copy in single precision
loses 4e-15."""

_IN_WORDS = {
    "gradient": "slopes",
    "scaled": "slopes times a scale",
    "output": "parts of the output",
}

UNITS_UNKNOWN = "units unknown"
"""What tables say of baselines beside a target that does not say its units."""


def why_not_compared(
    baseline: Explanation, units: Units | None, bounds: Mapping[str, float]
) -> str | None:
    """Why a baseline is not measured against the optima; None if it is.

    Parameters
    ----------
    baseline : Explanation
        With the losses measured, those of the bounds too.
    units : {"gradient", "output", "scaled"} or None
        Those of the target; None where they are not known.
    bounds : mapping
        By loss the limit that all optima keep: a baseline beyond one is none of those
        that optima were sought among, and may lie below them.
    """
    if units is not None and baseline.units != units:
        return f"it is {_IN_WORDS[baseline.units]}, and the target {_IN_WORDS[units]}"
    for name, limit in bounds.items():
        loss = baseline.losses[name]
        size = float((baseline.attributions**2).sum())
        if limit == 0.0 and loss > _ROUNDING**2 * size:
            return f"it misses {name}, which all optima keep, by {math.sqrt(loss):.2g}"
        if 0.0 < limit * (1.0 + _ROUNDING) < loss:
            return f"it has {name} = {loss:.4g}, and all optima at most {limit:.4g}"
    return None


def distance_of(
    baseline: Explanation,
    optimized: Sequence[Explanation],
    losses: Sequence[str],
    units: Units | None,
    bounds: Mapping[str, float],
    ends: Ends | None,
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
    units, bounds
        As for :func:`why_not_compared`.
    ends : Ends or None
        The front where the weights that vary are zero, if it is known.
    """
    row: dict[str, Any] = {"method": baseline.method}
    row |= {f"parameter.{name}": value for name, value in baseline.parameters.items()}
    row["units"] = UNITS_UNKNOWN if units is None else baseline.units
    row |= {f"loss.{name}": baseline.losses[name] for name in losses}
    reason = why_not_compared(baseline, units, bounds)
    if reason is not None:
        return {**row, "excess": math.nan, "distance": math.nan, "not_compared": reason}
    found = [_above(baseline, best, losses) for best in optimized]
    if ends is not None:
        found += _above_the_end(baseline, optimized, losses, ends)
    if not found:
        return row
    excess, distance, rates = min(found, key=lambda one: one[0])
    weights = {f"weight.{name}": rate for name, rate in rates.items()}
    return {**row, "excess": excess, "distance": distance, **weights}


def _rates(best: Explanation, losses: Sequence[str]) -> dict[str, float]:
    """Weights of the traded losses; what rows add up to has none."""
    return {name: best.rates[name] for name in losses if name in best.rates}


def _above(
    baseline: Explanation, best: Explanation, losses: Sequence[str]
) -> tuple[float, float, dict[str, float]]:
    """(F(b) − F*)/F* and F(b) − F* for the weights of ``best``, and these.

    Infinite for the multiplier of a limit of zero, which is no weight, and where F* is
    zero, up to rounding, and F(b) is not: such a distance is absolute.
    """
    rates = _rates(best, losses)
    if not all(map(math.isfinite, rates.values())):
        return math.inf, math.inf, rates
    value = sum(c * baseline.losses[name] for name, c in rates.items())
    optimum = sum(c * best.losses[name] for name, c in rates.items())
    nothing = _NOTHING * best.certificate.scale if best.certificate else 0.0
    if optimum > nothing:
        return value / optimum - 1.0, value - optimum, rates
    if value > nothing:
        return math.inf, value, rates
    return 0.0, 0.0, rates


def _above_the_end(
    baseline: Explanation,
    optimized: Sequence[Explanation],
    losses: Sequence[str],
    ends: Ends,
) -> list[tuple[float, float, dict[str, float]]]:
    """The same in the limit where all weights but that of faithfulness are zero.

    There F* is the least faithfulness loss A*, which the end of the front has. Where
    A* = 0 the limit of (A + Σ c_i B_i)/F* − 1 is finite for the target alone, A = 0,
    and at least min_i B_i/B_i(G) − 1. Nothing is known of it if a weight besides that
    of faithfulness never varies, as the limit is then none of this sweep.
    """
    rates = [_rates(best, losses) for best in optimized]
    faithful = [name for name in losses if name in ends.faithful]
    others = [name for name in losses if any(one.get(name, 0.0) for one in rates)]
    others = [name for name in others if name not in faithful]
    swept = [name for name in others if len({one.get(name) for one in rates}) > 1]
    if len(faithful) != 1 or not others or swept != others:
        return []
    (name,) = faithful
    at_end = {name: 1.0, **dict.fromkeys(others, 0.0)}
    least, own = ends.at_target[name], baseline.losses[name]
    nothing = _EXACT * ends.sizes[name]
    if least > nothing:
        return [(own / least - 1.0, own - least, at_end)]
    limits = [(baseline.losses[k], ends.at_target[k]) for k in others]
    if own > nothing or any(math.isnan(limit) for _, limit in limits):
        return []
    shares = [loss / limit - 1.0 if limit else 0.0 for loss, limit in limits]
    return [(max(min(shares), 0.0), own, at_end)]
