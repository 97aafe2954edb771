"""The weighted law of one column around rows, by the bit of the column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Values
from propopt.structures.products import Pieces


@final
@dataclass(frozen=True, eq=False)
class Tilt:
    """The law Q_j of V_j in n situations: a row and a kernel width each.

    Under Q_j, the law of the samples times the kernel's factor of this column, V_j is
    a mixture of pieces, and its bit is 1 in some of them.

    Parameters
    ----------
    pieces : Pieces
        B of them, the same for all situations, or other ones for each.
    inside, outside : array (B, n)
        Their probabilities where the bit is 1, and where it is 0; each sums to 1, or is
        zero where the bit is never so.
    alpha, complement : array (n,)
        The probability that the bit is 1, and 1 − α with digits of its own.
    log_weight : array (n,)
        log c_j, the mean of the kernel's factor under the law of the samples.
    """

    pieces: Pieces
    inside: Array
    outside: Array
    alpha: Values
    complement: Values
    log_weight: Values

    def given(self, means: Array) -> tuple[Array, Array]:
        """E[g | bit 1] and E[g | bit 0], (U, n), of the means in each piece.

        Parameters
        ----------
        means : array (U, B) or (U, B, n)
            :meth:`~propopt.structures.products.pieces.Pieces.expect` of factors.
        """
        some = np.asarray((self.inside + self.outside).any(axis=1))
        if not some.all():  # a model may refuse a category that is never drawn
            own = some if means.ndim == 2 else some[:, None]
            means = np.where(own, means, 0.0)
        if means.ndim == 2:
            return means @ self.inside, means @ self.outside
        return (
            np.einsum("ubn,bn->un", means, self.inside),
            np.einsum("ubn,bn->un", means, self.outside),
        )

    @property
    def has_contrast(self) -> Array:
        """1 where both bits occur, else 0: one bin alone has no coefficient, (n,)."""
        return (self.inside.any(axis=0) & self.outside.any(axis=0)).astype(float)
