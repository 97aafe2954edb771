"""Values at antithetic pairs around some rows, and the slopes and effects in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Attributions
from propopt.sampling.antithetic import AntitheticPairs


Effects: TypeAlias = tuple[int, slice | NDArray[np.intp], Array]
"""A column, some of the rows, and its effects there over each pair (n, S)."""

_NONE = np.zeros(0, dtype=np.intp)


@final
@dataclass(frozen=True, eq=False)
class PairedValues:
    """What was drawn around n rows.

    Parameters
    ----------
    pairs : AntitheticPairs
        S of them.
    odd : array (n, S)
        (f(x + e_s) − f(x − e_s))/2.
    effects : tuple of Effects
        Of what has no slope.
    """

    pairs: AntitheticPairs
    odd: Array
    effects: tuple[Effects, ...]

    def slopes(self, left_out: NDArray[np.intp] = _NONE) -> Attributions:
        """Slopes and effects, (n, D); some of the pairs may be left out."""
        if len(left_out):
            slopes = self.pairs.slopes_without(self.odd, left_out)
        else:
            slopes = self.pairs.slopes(self.odd)
        for column, rows, effects in self.effects:
            slopes[rows, column] = np.delete(effects, left_out, axis=1).mean(axis=1)
        return slopes

    def errors(self) -> Attributions:
        """Standard errors of all of them, (n, D)."""
        errors = self.pairs.errors(self.odd)
        root = math.sqrt(self.pairs.n_pairs)
        for column, rows, effects in self.effects:
            errors[rows, column] = effects.std(axis=1, ddof=1) / root
        return errors
