"""The metric of contributions: how much a move of each column counts.

What a column contributes splits into what it contributes by its value alone, G, and
what it does jointly with others, Φ − G. Contributions that are made consistent between
similar rows move the second part alone, and each column in proportion to

    ω_d = mean over the reference rows of (Φ_d − G_d)²,

the size of what it does jointly: Σ (w − Φ)²/ω is small where columns move that have
something to move. A column with ω_d = 0, additive or not used, keeps its Φ. The program
is solved in z = (w − Φ)/√ω, whose numbers are of the order of one for any ω.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Truths


MetricChoice: TypeAlias = Literal["auto", "joint", "uniform", "effects"]

_FLOOR: Final = 1e-6
"""Of the largest mean square of a column: less counts as this much among effects."""

_ROUNDING: Final = 1e-14
"""Of the size of a column's contributions: a joint part up to this is rounding."""


@final
@dataclass(frozen=True, eq=False)
class ColumnMetric:
    """‖w‖² = Σ_d w_d²/ω_d over the columns that move."""

    name: str
    weights: Array  # ω (D,)
    moves: Truths  # (D,): columns that move; others keep their Φ

    @classmethod
    def uniform(cls, phi: Attributions) -> ColumnMetric:
        """All columns that contribute anywhere count alike."""
        return cls("uniform", np.ones(phi.shape[1]), np.asarray(phi.any(axis=0)))

    @classmethod
    def effects(cls, phi: Attributions) -> ColumnMetric:
        """In proportion to the mean of Φ_d², at least 1e-6 of the largest."""
        squares = (phi**2).mean(axis=0)
        floor = _FLOOR * (squares.max() or 1.0)
        moves = np.asarray(phi.any(axis=0))
        return cls("effects", np.maximum(squares, floor), moves)

    @classmethod
    def joint(cls, parts: Iterable[tuple[Attributions, Attributions]]) -> ColumnMetric:
        """In proportion to the mean of (Φ_d − G_d)², over all classes that Φ, G are of.

        One ω for all classes: else what classes say of a row would not add up to zero.
        """
        squares, count = np.zeros(1), 0
        for phi, G in parts:
            apart = phi - G
            # what rounding leaves of an additive column is no joint part
            size = _ROUNDING * np.sqrt((phi**2).mean(axis=0))
            apart = np.where(np.abs(apart).max(axis=0) > size, apart, 0.0)
            squares, count = squares + (apart**2).mean(axis=0), count + 1
        omega = squares / max(count, 1)
        return cls("joint", omega, omega > 0.0)

    @property
    def is_uniform(self) -> bool:
        """Whether all columns count alike."""
        return self.name == "uniform"

    @cached_property
    def roots(self) -> Array:
        """√ω (D,); 1 where a column does not move."""
        return np.sqrt(np.where(self.weights > 0.0, self.weights, 1.0))

    @cached_property
    def axis(self) -> Array:
        """Of z: what each column adds to the sum of a row, (D,)."""
        return np.where(self.moves, self.roots, 0.0)

    def scaled(self, apart: Attributions) -> Attributions:
        """Differences (..., D) over √ω; 0 in columns that do not move."""
        return np.where(self.moves, apart / self.roots, 0.0)
