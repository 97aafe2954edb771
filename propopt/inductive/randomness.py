"""Randomness is passed in."""

from __future__ import annotations

import numpy as np

from propopt.errors import InvalidInput


def read_rng(rng: object) -> np.random.Generator:
    """A generator, or the one with this seed; None is seed 0."""
    if rng is None:
        return np.random.default_rng(0)
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise InvalidInput(
            f"rng: expected an integer >= 0 or a numpy.random.Generator, got {rng!r}"
        )
    return np.random.default_rng(int(rng))
