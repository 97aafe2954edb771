"""Seeds and generators of metrics."""

from __future__ import annotations

import numpy as np

from propopt.errors import InvalidInput


STREAM = 0x6D657472
"""Sets the draws of metrics apart from those of explainers with the same seed.

Were they the same, a sampled explanation would be judged on the very samples that it
was fitted to, and look better than it is.
"""


def read_rng(rng: object) -> np.random.Generator:
    """A generator from a seed, None (seed 0) or a generator, which is then advanced."""
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng([read_seed(rng), STREAM])


def read_seed(rng: object) -> int:
    """The seed that ``rng`` is, 0 for None; drawn from it if it is a generator."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    seed = 0 if rng is None else rng
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidInput(
            f"rng: expected an integer >= 0 or a numpy.random.Generator, got {rng!r}"
        )
    return int(seed)
