"""How likely it is that a set of words of one size keeps these and not those."""

from __future__ import annotations

import math

import numpy as np

from propopt._typing import Array, Positions


def share_keeping(m: Array, d: int, present: int, absent: int) -> Array:
    """C(d − p − a, m − p) / C(d, m), of the sets of m of d words; 0 where p + a > d.

    It is Π_{i<p} (m − i)/(d − i) · Π_{i<a} (d − m − i)/(d − p − i), without factorials.

    Parameters
    ----------
    m : array
        Sizes, of any shape.
    d : int
        The number of words.
    present, absent : int
        p and a: how many words are kept, and how many others are not.
    """
    if present + absent > d:
        return np.zeros(m.shape)
    found = np.ones(m.shape)
    for i in range(present):
        found *= np.maximum(m - i, 0.0) / (d - i)
    for i in range(absent):
        found *= np.maximum(d - m - i, 0.0) / (d - present - i)
    return found


def shares_drawn(d: int, b: int) -> Array:
    """P(i of b words are kept | m of all d are), (b + 1, d + 1)."""
    m = np.arange(d + 1.0)
    if b == 1:  # most blocks: asked for at each word of a text
        found = np.empty((2, d + 1))
        np.divide(d - m, d, out=found[0])
        np.divide(m, d, out=found[1])
        return found
    return np.array(
        [math.comb(b, i) * share_keeping(m, d, i, b - i) for i in range(b + 1)]
    )


def shares_keeping(n_words: int, p: int, absent: Positions) -> Array:
    """The same for m = 0, ..., d, and for several numbers a, (A, d + 1).

    Parameters
    ----------
    n_words, p : int
        d, and how many words are kept.
    absent : array (A,)
        How many are deleted.
    """
    m, last = np.arange(n_words + 1.0), int(absent.max(initial=0))
    share = share_keeping(m, n_words, p, 0)
    found = np.zeros((len(absent), n_words + 1))
    for a in range(min(last, n_words - p) + 1):
        found[absent == a] = share
        share = share * np.maximum(n_words - m - a, 0.0) / max(n_words - p - a, 1)
    return found
