"""The generators of metrics."""

from __future__ import annotations

import numpy as np

from propopt.checks import read_seed


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
