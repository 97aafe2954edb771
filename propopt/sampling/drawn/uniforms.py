"""Uniform numbers in blocks that can be drawn on without changing what was drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Array


N_BLOCKS: Final = 10
"""Blocks of draws: enough to tell their scatter, few enough to leave most to others."""


@final
@dataclass(frozen=True)
class Uniforms:
    """Numbers in [0, 1), D of them in each draw; each block has a stream of its own.

    Parameters
    ----------
    seed : int
        That of all streams.
    n_columns : int
        D.

    Examples
    --------
    >>> uniforms = Uniforms(seed=3, n_columns=2)
    >>> few, more = uniforms.draws(0, 5), uniforms.draws(0, 9)
    >>> few.shape, bool((more[:, :5] == few).all())
    ((10, 5, 2), True)
    """

    seed: int
    n_columns: int

    def draws(self, start: int, stop: int) -> Array:
        """Draws ``start`` to ``stop`` of each block, (B, stop − start, D)."""
        blocks = [self._block(b, stop)[start:] for b in range(N_BLOCKS)]
        return np.stack(blocks)

    def _block(self, block: int, n: int) -> Array:
        rng = np.random.default_rng([self.seed, block])
        return rng.random((n, self.n_columns))
