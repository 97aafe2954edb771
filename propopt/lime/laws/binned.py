"""A column in bins: what tabular LIME makes of numbers and of categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Positions, Values
from propopt.errors import InvalidInput
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
        What each bin is, to be read on behind the name of the column.
    missing : int
        The piece of missing numbers; −1 if there is none.
    coded : bool
        Whether pieces are codes, in increasing order.
    scale : float
        The width of this column over the kernel width of the law.
    asked : int
        How many bins of numbers were asked for; 0 if that is not known.
    """

    pieces: Pieces
    shares: Array
    edges: Array
    bins: tuple[str, ...]
    missing: int = -1
    coded: bool = False
    scale: float = 1.0
    asked: int = 0

    @property
    def extent(self) -> tuple[float, float]:
        """The lowest and the highest number that is drawn; infinite for categories.

        In a bin of one value its ends count, as the package draws another value there.
        """
        if self.coded:
            return -np.inf, np.inf
        return float(self.pieces.low[0]), float(self.pieces.high[len(self.edges)])

    def place(self, x: Values) -> Positions:
        """The bin of each value, (n,); values beyond the last edges are in end bins.

        Raises
        ------
        InvalidInput
            If a value is missing, or a code, of which there is no bin.
        """
        places = self._place_codes(x) if self.coded else self._place_numbers(x)
        if (places < 0).any():
            value = x[places < 0][0]
            word = "a value is missing" if np.isnan(value) else f"there is {value:g}"
            raise InvalidInput(
                f"X: {word}, and no bin is of such values; the data that the law was "
                "made of had none"
            )
        return places

    def _place_numbers(self, x: Values) -> Positions:
        places = np.searchsorted(self.edges, x, side="left")
        return np.where(np.isnan(x), self.missing, places)

    def _place_codes(self, x: Values) -> Positions:
        codes = self.pieces.mean
        places = np.minimum(np.searchsorted(codes, x), len(codes) - 1)
        same = (codes[places] == x) | (np.isnan(codes[places]) & np.isnan(x))
        return np.where(same, places, -1)

    def tilt(self, x: Values, widths: Values) -> Tilt:
        """The weighted law: bins keep their shares but for the factor ε.

        In a bin with the share 0 nothing is drawn, so no bit of a row there is ever 1.
        """
        own = self.place(x)
        rows = np.arange(len(x))
        w = self.shares[own]
        inside = np.zeros((len(self.shares), len(x)))
        inside[own, rows] = w > 0.0
        outside = np.repeat(self.shares[:, None], len(x), axis=1)
        outside[own, rows] = 0.0
        rest = outside.sum(axis=0)
        np.divide(outside, rest, out=outside, where=rest > 0.0)
        with np.errstate(divide="ignore"):
            log_in, log_out = np.log(w), np.log(rest) - 0.5 / (self.scale * widths) ** 2
        log_weight = np.logaddexp(log_in, log_out)
        return Tilt(
            self.pieces,
            inside,
            outside,
            np.exp(log_in - log_weight),
            np.exp(log_out - log_weight),
            log_weight,
        )

    def log_kernel(self, x: Array, values: Array, bits: Array, width: Array) -> Array:
        """−(1 − z) / (2 ν_j²)."""
        del x, values
        return np.asarray((bits - 1.0) / (2.0 * (self.scale * width) ** 2))
