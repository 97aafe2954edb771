"""What is drawn around which rows, and what is taken off what is estimated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, final

import numpy as np

from propopt._typing import Array, Attributions, Points, Truths, Values
from propopt.sampling.drawn.other_values import n_other_values
from propopt.sampling.drawn.uniforms import N_BLOCKS, Uniforms
from propopt.sampling.laws.data_law import DataLaw
from propopt.sampling.laws.numeric import NumericLaw


Evaluator: TypeAlias = Callable[[Points], Values]


@final
@dataclass(frozen=True, eq=False)
class Control:
    """A function near f whose means and attributions are known exactly.

    Parameters
    ----------
    evaluate : callable
        m at points (n, D).
    means : array (N,)
        E m(V) at each row.
    attributions : array (N, D)
        Those of m at each row.
    """

    evaluate: Evaluator
    means: Values
    attributions: Attributions


@final
@dataclass(frozen=True, eq=False)
class Design:
    """What is drawn, and where.

    Parameters
    ----------
    law : DataLaw
        Of the columns, and their contrasts.
    points : array (N, D)
        The rows.
    seed : int
        Of the uniform numbers that all rows have in common.
    paired : bool
        Whether slopes are taken by pairs, as effects are; else by least squares.
    control : Control or None
        What is taken off f.
    """

    law: DataLaw
    points: Points
    seed: int
    paired: bool = False
    control: Control | None = None

    @property
    def per_draw(self) -> int:
        """Evaluations of f in one draw, all rows together."""
        counts = [
            n_other_values(column, x, self.paired).sum()
            for column, x in zip(self.law.columns, self.points.T, strict=True)
        ]
        return len(self.points) + int(sum(counts))

    @property
    def fewest(self) -> int:
        """The fewest draws that slopes can be made of."""
        return fewest_draws(self.law, self.paired, self.control is not None)

    @cached_property
    def moving(self) -> Truths:
        """Which columns are terms of the least squares, in whatever rows, (D,)."""
        return moving_columns(self.law) & (not self.paired)

    @cached_property
    def fitted(self) -> Truths:
        """Where slopes are by least squares, (N, D)."""
        return self.law.has_slopes(self.points) & (not self.paired)

    def uniforms(self, start: int, stop: int) -> tuple[Array, Array]:
        """Those of V and those of alternatives, (B · s, D) each, from each block."""
        width = self.points.shape[1]
        both = Uniforms(self.seed, 2 * width).draws(start, stop).reshape(-1, 2 * width)
        return both[:, :width], both[:, width:]


def fewest_draws(law: DataLaw, paired: bool, controlled: bool) -> int:
    """The fewest draws: fits over nine of ten blocks need two for each term."""
    n_moving = 0 if paired else int(moving_columns(law).sum())
    terms = 1 + n_moving + controlled
    return N_BLOCKS * -(-2 * terms // (N_BLOCKS - 1))


def moving_columns(law: DataLaw) -> Truths:
    """Which columns have draws of several numbers, (D,)."""
    return np.array(
        [
            isinstance(column, NumericLaw) and len(column.values) > 1
            for column in law.columns
        ]
    )
