"""What pictures of interactions share: which sets and features they show, and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes

from propopt._typing import Positions, Values
from propopt.interactions.comparisons.pairs import PairScores
from propopt.interactions.reading.clear import ClearScores
from propopt.interactions.result import InteractionScores
from propopt.output.text import drawn
from propopt.plots.lime.words import LONGEST, shortened


def places_of_strongest(
    result: InteractionScores | PairScores, sizes: Values, most: int
) -> Positions:
    """The features with the largest scores of pairs, largest first.

    Parameters
    ----------
    result : InteractionScores or PairScores
        Of pairs.
    sizes : array (Q,)
        How strong each pair is.
    most : int
        How many features there is room for.
    """
    best = np.full(len(result.names), -1.0)
    np.maximum.at(best, result.sets, sizes[:, None])
    order = np.argsort(-best, kind="stable")
    return order[best[order] >= 0.0][:most]


def some(clear: ClearScores, places: Positions) -> ClearScores:
    """Those of some of the sets."""
    return replace(
        clear,
        names=tuple(clear.names[q] for q in places),
        estimates=clear.estimates[places],
        low=clear.low[places],
        high=clear.high[places],
        leak=clear.leak[places],
        used=clear.used[places],
    )


def say_intervals(
    axes: Axes,
    result: InteractionScores | PairScores,
    clear: ClearScores,
    shown: int,
    number: int,
    noun: str,
) -> None:
    """Say above the picture what is explained, what intervals are, what is left out.

    Parameters
    ----------
    axes : matplotlib Axes
        The picture.
    result : InteractionScores or PairScores
        Of whose error scores are.
    clear : ClearScores
        What is drawn.
    shown, number : int
        How many of how many there are.
    noun : str
        Of what, in the plural.
    """
    lines = [drawn(clear.in_words)]
    if isinstance(result, InteractionScores):
        lines.insert(0, drawn(capitalised(result.explained)))
    if shown < number:
        lines.append(f"the {shown} strongest of {number:,} {noun}")
    axes.set_title("\n".join(lines), loc="left", fontsize="medium")


def capitalised(text: str) -> str:
    """With a large first letter; other letters are left."""
    return text[:1].upper() + text[1:]


def name_of_set(own: Sequence[str]) -> str:
    """The features of a set in one line, each shortened to its part of the room."""
    room = LONGEST // len(own)
    return " × ".join(drawn(shortened(name, room)) for name in own)


def score_in(result: InteractionScores) -> str:
    """What an axis of scores says."""
    name = "LOCO" if result.order == 1 else "iLOCO"
    return drawn(f"{name}, in {result.units}")


def signs_in_words(result: InteractionScores) -> tuple[str, str]:
    """What scores above zero mean, and those below."""
    match result.order:
        case 1:
            return "worse without it", "no worse without it"
        case 2:
            return "joint contribution", "stand in for each other"
        case _:
            return "joint contribution", "had from fewer of them"
