"""Subsets of sets of features, each once."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from propopt._typing import Positions
from propopt.interactions.features import Places


def subsets_of(sets: Places, size: int) -> tuple[Places, Positions]:
    """Subsets of one size, and which of them each set has.

    Parameters
    ----------
    sets : array of int (q, r)
        Sets of features, each row ascending.
    size : int
        s, at most r.

    Returns
    -------
    subsets : array of int (n, s)
        Each once, in the order of words.
    places : array of int (C(r, s), q)
        For each choice of s of r places in the sets, where those subsets are.

    Examples
    --------
    >>> subsets, places = subsets_of(np.array([[0, 1], [0, 3]]), 1)
    >>> subsets.tolist(), places.tolist()
    ([[0], [1], [3]], [[0, 0], [1, 2]])
    """
    n_sets, order = sets.shape
    chosen = np.array(list(combinations(range(order), size)), dtype=np.intp)
    every = sets[:, chosen].swapaxes(0, 1).reshape(len(chosen) * n_sets, size)
    subsets, places = np.unique(every, axis=0, return_inverse=True)
    return subsets, places.reshape(-1, n_sets)
