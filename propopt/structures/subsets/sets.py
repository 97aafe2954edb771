"""Sets of words: all, all of one size, or some of given sizes."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from propopt._typing import Positions, Truths


def all_sets(n_words: int) -> Truths:
    """The bits of all sets of words, (2^d, d): word j is in set i where bit j of i is.

    Parameters
    ----------
    n_words : int
        d.
    """
    places = np.arange(2**n_words)[:, None]
    return np.asarray((places >> np.arange(n_words)) & 1, bool)


def sets_of_size(n_words: int, size: int) -> Truths:
    """All sets of one size as bits, (C(d, m), d).

    Parameters
    ----------
    n_words, size : int
        d and m.
    """
    few = min(size, n_words - size)
    inside = np.array(list(combinations(range(n_words), few)), np.intp)
    bits = np.zeros((len(inside), n_words), bool)
    np.put_along_axis(bits, inside.reshape(len(inside), few), True, axis=1)
    return bits if few == size else ~bits


def random_sets(n_words: int, sizes: Positions, rng: np.random.Generator) -> Truths:
    """Sets of given sizes, all sets of one size alike likely, as bits (n, d).

    Parameters
    ----------
    n_words : int
        d.
    sizes : array of int (n,)
        m of each.
    rng : numpy.random.Generator
        Where they come from.
    """
    ranks = rng.random((len(sizes), n_words)).argsort(axis=1).argsort(axis=1)
    return np.asarray(ranks >= (n_words - sizes)[:, None])
