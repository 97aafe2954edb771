"""Functions of one column, of which products are made."""

from __future__ import annotations

from typing import Protocol, Self

from propopt._typing import Array, Positions, Truths
from propopt.structures.products.normals import Normals


class Factors(Protocol):
    """U functions g_u, each of one column of a table."""

    @property
    def column(self) -> Positions:
        """The position of the column that each is of, (U,)."""

    def __len__(self) -> int: ...

    def take(self, chosen: Positions | Truths, /) -> Self:
        """Those that are chosen, in that order."""

    def at(self, values: Array, /) -> Array:
        """g_u of values of any shape S: numbers, NaN or codes; all of one column.

        Returns
        -------
        array (U, S)
        """

    def under(self, normals: Normals, /) -> Array:
        """E g_u(V) for truncated normals V of shape S; all of one column.

        Returns
        -------
        array (U, S)
        """
