"""RowAnswers to new rows, one after the other, as one explanation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.certificate import Certificate
from propopt.explaining.conditional import ConditionalRow


_UNSCALED = 1e-9
"""Of what zero costs: an optimum of less than that has no scale of its own."""


@final
@dataclass(frozen=True, eq=False)
class RowAnswers:
    """Optima of rows that do not know of each other.

    Parameters
    ----------
    rows : sequence of ConditionalRow (m,)
        Each with the reference rows that it was compared with.
    near : array (m, k)
        Their places.
    """

    rows: Sequence[ConditionalRow]
    near: NDArray[np.intp]

    @property
    def attributions(self) -> Array:
        """W (m, D)."""
        return np.stack([row.w for row in self.rows])

    @property
    def similarities(self) -> Array:
        """S_nj (m, k)."""
        return np.stack([row.similarities for row in self.rows])

    @property
    def losses(self) -> Array:
        """Sums over the rows of the three losses, (3,)."""
        return np.array([row.losses for row in self.rows]).sum(axis=0)

    @property
    def certificate(self) -> Certificate:
        """Of all rows together, for the program that leaves the reference as it is."""
        value = math.fsum(row.value for row in self.rows)
        excess = math.fsum(row.excess for row in self.rows)
        zero = math.fsum(row.value_of_zero for row in self.rows)
        return Certificate(
            value=value,
            lower_bound=max(value - excess, 0.0),
            scale=max(value, _UNSCALED * zero),
            kind="strong convexity",
            violation=max(row.violation for row in self.rows),
            distance=math.hypot(*(row.distance for row in self.rows)),
        )

    @property
    def details(self) -> dict[str, Array]:
        """What is known of each row by itself."""
        return {
            "joint_excess": np.array([row.joint_excess for row in self.rows]),
            "joint_distance": np.array([row.joint_distance for row in self.rows]),
            "similarity": self.similarities.sum(axis=1),
            "reference_rows": self.near,
        }
