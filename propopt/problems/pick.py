"""Which of the optima of a sweep is written with its attributions, row by row."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from propopt.checks import did_you_mean
from propopt.errors import InvalidInput
from propopt.problems.parts import part
from propopt.results.explanation import Explanation
from propopt.tradeoffs.table import TradeOffs


Pick: TypeAlias = Literal["knee"] | Mapping[str, float]
"""The knee of the curve, or a weight or limit for each loss that is swept."""


def check_pick(pick: Pick, swept: Mapping[str, Sequence[float]]) -> None:
    """Refuse a pick that is not among what is swept.

    Raises
    ------
    InvalidInput
        For a loss that is not swept, one that is left out, and a value outside the
        range of those that are tried.
    """
    if pick == "knee":
        return
    for name, value in pick.items():
        with part("pick", name):
            _check_value(name, value, swept)
    missing = [name for name in swept if name not in pick]
    if missing:
        with part("pick"):
            raise InvalidInput(
                f"expected a value for each loss swept; {missing[0]} has none"
            )


def _check_value(name: str, value: float, swept: Mapping[str, Sequence[float]]) -> None:
    if name not in swept:
        names = ", ".join(swept) or "nothing"
        raise InvalidInput(
            f"{name!r} is not swept{did_you_mean(name, list(swept))}; swept: {names}"
        )
    low, high = min(swept[name]), max(swept[name])
    if not low <= value <= high:
        raise InvalidInput(
            f"expected a value that is swept, from {low:g} to {high:g}, got {value:g}"
        )


def picked(
    trade_offs: TradeOffs,
    pick: Pick,
    weights: Mapping[str, Sequence[float]],
    limits: Mapping[str, Sequence[float]],
    axes: tuple[str, str],
) -> Explanation:
    """The optimum at the knee, or whose weights and limits are nearest to the pick.

    Raises
    ------
    InvalidInput
        If nothing was optimized, or not what is picked.
    """
    if pick == "knee":
        return trade_offs.knee(*axes)
    swept = {**weights, **limits}
    nearest = {
        name: min(values, key=lambda value: abs(value - pick[name]))
        for name, values in swept.items()
    }
    combinations = list(itertools.product(*swept.values()))
    if len(combinations) == len(trade_offs.optimized):
        return trade_offs.optimized[combinations.index(tuple(nearest.values()))]
    for best in trade_offs.optimized:
        if not limits and all(best.weights[n] == nearest[n] for n in weights):
            return best
    raise InvalidInput("pick: not all of the sweep was solved, so that it is not known")
