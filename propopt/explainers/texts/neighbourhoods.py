"""Samples of a text: words are deleted by a law, and f is regressed on the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Points
from propopt.lime.text.law import TextLaw
from propopt.sampling.neighbourhoods import Neighbourhood


@final
@dataclass(frozen=True, eq=False)
class TextNeighbourhoods:
    """Samples of a law of words, with their bits as regressors.

    Parameters
    ----------
    law : TextLaw
        How words are deleted, and the weights.
    n_samples : int
        S.
    first_row : bool
        Whether the text itself is the first of them, with weight one.
    """

    law: TextLaw
    n_samples: int
    first_row: bool

    def around(
        self, points: Points, rng: np.random.Generator
    ) -> Iterator[tuple[slice, Neighbourhood]]:
        """Samples of the same text for each row of ones (n, d)."""
        for n, row in enumerate(points):
            bits, weights = self.law.draw(len(row), self.n_samples, rng)
            if self.first_row:
                bits[0], weights[0] = True, 1.0
            kept = bits.astype(np.float64)[None]
            zeros, ones = np.zeros((1, len(row))), np.ones((1, len(row)))
            near = Neighbourhood(kept, kept, weights[None], zeros, ones, ones)
            yield slice(n, n + 1), near
