"""Places of rows in their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Positions


def ranks(parts: Iterable[NDArray[Any]]) -> Positions:
    """Places of rows in their lexicographic order, equal for equal rows."""
    places = np.zeros(1, np.intp)
    for part in parts:
        values, ordered = np.unique(part, return_inverse=True)
        both = places * max(len(values), 1) + ordered
        _, places = np.unique(both, return_inverse=True)
    return places
