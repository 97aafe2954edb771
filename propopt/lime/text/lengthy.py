"""How long means of sums behind a norm take, said before they are computed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from propopt.functions.cost import WORTH_SAYING, in_time
from propopt.output.progress import PlainConsole
from propopt.structures.subsets import (
    AddedSets,
    NormalisedSum,
    NoSetFunction,
    SizeMeans,
)


_STEP: Final = 1.2e-8
"""Seconds of a step: some ten multiplications, near the processor."""


def n_steps(function: SizeMeans | NoSetFunction | None) -> float:
    """Steps of the means of a function for one row of weights; 0 where they are quick.

    Parameters
    ----------
    function : SizeMeans, NoSetFunction or None
        Sums behind a norm take Q d² of them; trees, plain sums and sets that were asked
        for nothing that counts beside.
    """
    if isinstance(function, NormalisedSum):
        return function.n_steps
    if isinstance(function, AddedSets):
        return sum(n_steps(part) for _, part in function.parts)
    return 0.0


def announce_norms(
    what: str,
    functions: Iterable[SizeMeans | NoSetFunction | None],
    n_rows: float = 1.0,
    wanted: bool | None = None,
) -> None:
    """Say on standard error how long norms take, where that is long.

    Parameters
    ----------
    what : str
        The work.
    functions : iterable of SizeMeans, NoSetFunction or None
        Of the documents.
    n_rows : float
        Rows of weights that means are made for.
    wanted : bool, optional
        False says nothing.
    """
    seconds = _STEP * n_rows * sum(map(n_steps, functions))
    if wanted is not False and seconds > WORTH_SAYING:
        PlainConsole(stderr=True).print(
            f"{what}: exact means behind the norm of many words, about "
            f"{in_time(seconds)}"
        )
