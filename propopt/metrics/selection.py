"""How many features to choose, and which are the most important."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Attributions
from propopt.errors import InvalidInput


def read_size(k: int | None, n_features: int) -> int:
    """k, by default a quarter of the features; refused if there are fewer."""
    if k is None:
        return max(1, n_features // 4)
    if k > n_features:
        raise InvalidInput(
            f"k: expected at most the {n_features} features of X, got {k}"
        )
    return k


def most_important(attributions: Attributions, k: int) -> NDArray[np.bool_]:
    """True for the k largest |w| of each row; of equal ones, those that come first."""
    order = np.argsort(-np.abs(attributions), axis=1, kind="stable")
    chosen = np.zeros(attributions.shape, dtype=bool)
    np.put_along_axis(chosen, order[:, :k], values=True, axis=1)
    return chosen
