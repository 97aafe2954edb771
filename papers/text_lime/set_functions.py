"""Functions of sets of words, from lists of words."""

from __future__ import annotations

import numpy as np

from propopt.base.arrays import Array, Indices
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.sets import Blocks


def conjunctions(
    values: list[float],
    present: list[list[int]],
    absent: list[list[int]],
    n_words: int,
    base: float = 0.0,
) -> Conjunctions:
    """The sum base + Σ values, each where its words are present and absent."""
    rows = [
        [*(2 * j + 1 for j in present_words), *(2 * j for j in absent_words)]
        for present_words, absent_words in zip(present, absent, strict=True)
    ]
    paths = np.full((len(rows), max(map(len, rows), default=0)), -1, np.intp)
    for path, row in zip(paths, rows, strict=True):
        path[: len(row)] = row
    return Conjunctions.of_factors(base, np.asarray(values, float), paths, n_words)


def single_words(values: Array, sizes: Array, words: Indices) -> Blocks:
    """Blocks of one word, with values (G,) and sizes (G,) of the retained words."""
    nothing = np.zeros(len(words))
    return Blocks(
        words[:, None],
        np.column_stack([nothing, values]),
        np.column_stack([nothing, sizes]),
    )
