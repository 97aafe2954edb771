"""Values of a function at samples, in calls of bounded size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from propopt._typing import Array, Points, Values
from propopt.batches import row_blocks


def evaluated(evaluate: Callable[[Points], Values], samples: Array) -> Array:
    """Values (...) at samples (..., D)."""
    flat = samples.reshape(-1, samples.shape[-1])
    parts = [evaluate(flat[some]) for some in row_blocks(*flat.shape)]
    return np.concatenate(parts).reshape(samples.shape[:-1])
