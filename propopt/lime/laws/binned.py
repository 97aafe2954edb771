"""A column in bins: what tabular LIME makes of numbers and of categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Positions, Values
from propopt.lime.laws.tilt import Tilt
from propopt.structures.products import Pieces


@final
@dataclass(frozen=True, eq=False)
class BinnedColumn:
    """Bins of one column, each with a law of its own, and weights by bits alone.

    A sample falls into bin b with probability w_b, and gets the weight 1 if that is the
    bin of the row, else ε = exp(−1 / (2 ν²)).

    Parameters
    ----------
    pieces : Pieces
        The law of V_j in each bin, (B,).
    shares : array (B,)
        w, which sum to 1.
    edges : array (B' − 1,)
        Where bins of numbers end, each belonging to the lower one; the B' first pieces
        are these bins. Empty for categories, whose pieces are their codes.
    bins : tuple of str (B,)
        What each bin is.
    missing : int
        The piece of missing numbers; −1 if there is none.
    """

    pieces: Pieces
    shares: Array
    edges: Array
    bins: tuple[str, ...]
    missing: int = -1
    coded: bool = False

    def place(self, x: Values) -> Positions:
        """The bin of each value, (n,); values beyond the last edges are in end bins."""
        if self.coded:
            return x.astype(np.intp)
        places = np.searchsorted(self.edges, x, side="left")
        return np.where(np.isnan(x), self.missing, places)

    def tilt(self, x: Values, widths: Values) -> Tilt:
        """The weighted law: bins keep their shares but for the factor ε."""
        own = self.place(x)
        rows = np.arange(len(x))
        inside = np.zeros((len(self.shares), len(x)))
        inside[own, rows] = 1.0
        outside = np.repeat(self.shares[:, None], len(x), axis=1)
        outside[own, rows] = 0.0
        rest = outside.sum(axis=0)
        np.divide(outside, rest, out=outside, where=rest > 0.0)
        log_rest = -0.5 / widths**2
        w, eps = self.shares[own], np.exp(log_rest)
        weight = w + rest * eps
        return Tilt(
            self.pieces,
            inside,
            outside,
            w / weight,
            rest * eps / weight,
            np.log(weight),
        )

    def log_kernel(self, x: float, values: Array, bits: Array, width: float) -> Array:
        """−(1 − z) / (2 ν²)."""
        del x, values
        return np.asarray((bits - 1.0) / (2.0 * width**2))
