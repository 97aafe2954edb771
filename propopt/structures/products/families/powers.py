"""Powers of one column: the factors of linear functions and of polynomials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Positions, Truths
from propopt.structures.products.normals import Normals
from propopt.structures.products.quadrature import LOG_TAIL, normal_nodes


_NODES: Final = 64


@final
@dataclass(frozen=True, eq=False)
class Powers:
    """g(x) = (x − center)^degree.

    Parameters
    ----------
    column : array (U,)
        The position of the column that each is of.
    degree : array (U,)
        At least 1.
    center : array (U,)
        What is taken away before: differences of near numbers keep their digits.
    """

    column: Positions
    degree: NDArray[np.intp]
    center: Array

    @classmethod
    def first(cls, columns: Positions) -> Powers:
        """The columns themselves."""
        ones = np.ones(len(columns), np.intp)
        return cls(columns, ones, np.zeros(len(columns)))

    def __len__(self) -> int:
        return len(self.column)

    def take(self, chosen: Positions | Truths) -> Powers:
        """Those that are chosen."""
        return Powers(self.column[chosen], self.degree[chosen], self.center[chosen])

    def at(self, values: Array) -> Array:
        """Values, (U, S)."""
        shape = (-1, *(1,) * values.ndim)
        return np.asarray(
            (values - self.center.reshape(shape)) ** self.degree.reshape(shape)
        )

    def under(self, normals: Normals) -> Array:
        """Means, (U, S): in closed form of the first power, by quadrature of others.

        Gauss-Legendre nodes have all digits in far tails, where the recursion of the
        moments has none: its terms are of either sign, and large.
        """
        means = np.empty((len(self), *normals.shape))
        first = self.degree == 1
        shape = (-1, *(1,) * len(normals.shape))
        means[first] = normals.means - self.center[first].reshape(shape)
        for u in np.flatnonzero(~first).tolist():
            k = int(self.degree[u])
            # |x|^k φ(x) falls later than φ, and has k more turns to be followed
            x, weights = normal_nodes(normals, _NODES + 2 * k, LOG_TAIL + 2 * k)
            means[u] = np.einsum("...q,...q->...", (x - self.center[u]) ** k, weights)
        return means
