"""What a law of LIME knows of one column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from propopt._typing import Array, Positions, Values
from propopt.lime.laws.tilt import Tilt


class LimeColumn(Protocol):
    """One column: its bins, and its weighted law around values."""

    @property
    def bins(self) -> Sequence[str]:
        """What each bin is, in words that are read on behind the name of the column."""

    def place(self, x: Values, /) -> Positions:
        """The bin of each value, (n,)."""

    def tilt(self, x: Values, widths: Values, /) -> Tilt:
        """The weighted law around values x (n,), each with its kernel width (n,).

        A width may be infinite: then it is the law of the samples themselves.
        """

    def log_kernel(
        self, x: Array, values: Array, bits: Array, width: Array, /
    ) -> Array:
        """The logarithm of the kernel's factor of this column, for samples (n, S).

        Parameters
        ----------
        x : array (n, 1)
            The values that are explained.
        values, bits : array (n, S)
            Those of the samples.
        width : array (n, 1)
            The kernel widths.
        """
