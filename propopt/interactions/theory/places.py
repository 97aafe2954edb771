"""Sets of features by their places are checked once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from propopt.errors import InvalidInput
from propopt.interactions.features import Places


def read_set_places(sets: ArrayLike, n_features: int | None = None) -> Places:
    """Sets of one size as an array of places, (Q, r).

    Parameters
    ----------
    sets : array of int (Q, r)
        Places of features.
    n_features : int, optional
        Places are less than this.

    Raises
    ------
    InvalidInput
        If it is no table of whole numbers, a place is out of range, or twice in a set.
    """
    places = np.asarray(sets)
    if places.ndim != 2 or places.dtype.kind not in "iu" or places.shape[1] < 1:
        raise InvalidInput(
            "sets: expected whole numbers of shape (Q, r), one row for each set, got "
            f"{places.dtype} of shape {places.shape}"
        )
    places = places.astype(np.intp)
    end = np.inf if n_features is None else n_features
    wrong = ((places < 0) | (places >= end)).any(axis=1)
    ordered = np.sort(places, axis=1)
    wrong |= (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if wrong.any():
        up_to = "" if n_features is None else f" less than {n_features}"
        raise InvalidInput(
            f"sets: {places[wrong][0].tolist()} is no set of different places{up_to}"
        )
    return places
