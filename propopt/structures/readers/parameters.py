"""Parameters of fitted models, as numbers of our own."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array


def floats(values: Any) -> Array:
    """A float64 copy, so that refitting the model cannot change the function."""
    return np.array(values, dtype=np.float64)


def dense_floats(values: Any) -> Array:
    """The same of an array that may be sparse."""
    return floats(values.toarray() if sp.issparse(values) else values)
