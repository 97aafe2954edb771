"""Where draws come from, and how often a search starts anew."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from propopt.checks import read_count, read_rng
from propopt.errors import InvalidInput


RandomSource: TypeAlias = int | np.random.Generator | np.random.RandomState | None
"""What ``random_state`` may be."""


def read_random_state(random_state: object) -> np.random.Generator:
    """The generator of a seed, None (seed 0), a ``RandomState`` or a ``Generator``."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    try:
        return read_rng(random_state)
    except InvalidInput:
        raise InvalidInput(
            "random_state: expected an integer >= 0, a numpy.random.Generator or a "
            f"RandomState, got {random_state!r}"
        ) from None


def read_restarts(n_restarts: object) -> int:
    """At least zero."""
    if n_restarts == 0:
        return 0
    try:
        return read_count(n_restarts, "n_restarts")
    except InvalidInput:
        raise InvalidInput(
            f"n_restarts: expected an integer >= 0, got {n_restarts!r}"
        ) from None
