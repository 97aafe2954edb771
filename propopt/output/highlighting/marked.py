"""A text, the words in it, and a number for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Truths


@final
@dataclass(frozen=True, eq=False)
class MarkedText:
    """A text, the words in it, and a number for each.

    Parameters
    ----------
    name : str
        What the document is called.
    facts : tuple of str
        What is said of it, a line each.
    text : str
        As it is.
    spans : sequence of (int, int, int)
        Where words stand, from the first, and which of the words each is.
    words : tuple of str (d,)
        The distinct words.
    weights : array (d,)
        Their numbers; NaN where there is none.
    errors : array (d,) or None
        Standard errors; a word whose number is within two of them of zero is plain.
    """

    name: str
    facts: tuple[str, ...]
    text: str
    spans: Sequence[tuple[int, int, int]]
    words: tuple[str, ...]
    weights: Array
    errors: Array | None = None

    @property
    def certain(self) -> Truths:
        """Whether the sign of a number is known, (d,)."""
        if self.errors is None:
            return np.isfinite(self.weights)
        return np.asarray(np.abs(self.weights) > 2.0 * self.errors)

    @property
    def reach(self) -> float:
        """The largest size of a number; 0 where there is none."""
        return float(np.abs(self.weights[np.isfinite(self.weights)]).max(initial=0.0))
