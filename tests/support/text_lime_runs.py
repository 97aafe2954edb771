"""Runs of LIME on texts as the package makes them, on bits and without any text."""

from __future__ import annotations

import numpy as np
from normal_samples import least_squares

from propopt.lime.text.text_reading import TextLaw
from propopt.structures.subsets.conjunctions import Conjunctions


def tree(d):
    """z_1 + (1 − z_1) z_2 z_3."""
    return Conjunctions.of([1.0, 1.0], [[0], [1, 2]], [[], [0]], d)


def design(law: TextLaw, d, n, first_row, rng):
    """Bits (n, d) and weights (n,) of one run."""
    bits, weights = law.draw(d, n - first_row, rng)
    if first_row:
        bits = np.concatenate([np.ones((1, d), bool), bits])
        weights = np.concatenate([[1.0], weights])
    return bits, weights


def runs(function, law, n, n_runs, ridge=1.0, first_row=True, kept=None, seed=0):
    """Intercepts and coefficients of runs, (R, 1 + d)."""
    rng, d = np.random.default_rng(seed), function.n_words
    result = []
    for _ in range(n_runs):
        bits, weights = design(law, d, n, first_row, rng)
        values = function.value(bits)
        result.append(least_squares(bits, weights, values, ridge, kept))
    return np.array(result)
