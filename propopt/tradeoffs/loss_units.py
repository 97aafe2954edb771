"""What losses are measured in."""

from __future__ import annotations

from collections.abc import Sequence

from propopt.estimates import Units
from propopt.losses import FunctionMatching, GradientMatching, Program, PropertyLoss
from propopt.losses.faithfulness import quantity_of_target
from propopt.penalties import Absolute, GroupMax, Squared
from propopt.results.explanation import Explanation


_WORDS: dict[Units, str] = {
    "gradient": "{} per unit",
    "scaled": "{} per sd",
    "output": "{}",
}


def units_of_losses(optimized: Sequence[Explanation]) -> dict[str, str]:
    """By loss its units in words; nothing where those of the target are not known.

    Squared losses have squares of the units of attributions.
    """
    program = next((best.program for best in optimized if best.program), None)
    units = None if program is None else _units(program)
    if program is None or units is None:
        return {}
    quantity = quantity_of_target(program.losses)
    words = _WORDS[units].format("output" if quantity is None else quantity.noun)
    losses = [x for x in program.all_losses if not isinstance(x, FunctionMatching)]
    return {loss.name: _powered(loss, words) for loss in losses}


def _units(program: Program) -> Units | None:
    """Those of the target, where it is an estimate that knows them."""
    for loss in program.losses:
        if isinstance(loss, GradientMatching) and loss.estimate is not None:
            return loss.estimate.units
    return None


def _powered(loss: PropertyLoss, words: str) -> str:
    match loss.penalty:
        case Squared():
            return f"({words})²"
        case GroupMax(degree=2):
            return f"({words})²"
        case Absolute() | GroupMax():
            return words
        case _:
            return ""
