"""Functions of sets of words by brute force over all 2^d sets."""

from __future__ import annotations

from math import comb

import numpy as np


def all_sets(n_words: int) -> np.ndarray:
    """All bits (2^d, d)."""
    return (np.arange(2**n_words)[:, None] >> np.arange(n_words)) % 2 == 1


def by_size(function) -> tuple[np.ndarray, np.ndarray]:
    """E_m f (d + 1,) and E_m[z_j f] (d + 1, d), from all values."""
    d = function.n_words
    bits = all_sets(d)
    sizes = bits.sum(axis=1)
    shares = function.value(bits) / [comb(d, m) for m in sizes]
    of_size = (np.arange(d + 1)[:, None] == sizes).astype(float)
    return of_size @ shares, of_size @ (shares[:, None] * bits)
