"""Powers of one column: the factors of linear functions and of polynomials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Positions, Truths
from propopt.structures.products.normals import Normals


@final
@dataclass(frozen=True, eq=False)
class Powers:
    """g(x) = x^degree.

    Parameters
    ----------
    column : array (U,)
        The position of the column that each is of.
    degree : array (U,)
        At least 1.
    """

    column: Positions
    degree: NDArray[np.intp]

    @classmethod
    def first(cls, columns: Positions) -> Powers:
        """The columns themselves."""
        return cls(columns, np.ones(len(columns), np.intp))

    def __len__(self) -> int:
        return len(self.column)

    def take(self, chosen: Positions | Truths) -> Powers:
        """Those that are chosen."""
        return Powers(self.column[chosen], self.degree[chosen])

    def at(self, values: Array) -> Array:
        """Values, (U, S)."""
        degree = self.degree.reshape(-1, *(1,) * values.ndim)
        return np.asarray(values**degree)

    def under(self, normals: Normals) -> Array:
        """Means, (U, S)."""
        if (self.degree > 1).any():
            raise NotImplementedError
        return np.broadcast_to(normals.means, (len(self), *normals.shape))
