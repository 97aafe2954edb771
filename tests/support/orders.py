"""Shapley values by all sets of columns, term by term."""

import itertools
import math

import numpy as np


def all_orders(function, points, background):
    """Σ_S |S|!(D−|S|−1)!/D! (v(S ∪ j) − v(S)), for the mean v over the background."""
    X, B = function.read(points)[0], function.read(background)[0]
    n_columns = X.shape[1]
    sets = list(itertools.product([False, True], repeat=n_columns))
    phi = np.zeros(X.shape)
    for n, x in enumerate(X):
        mixed = np.concatenate([np.where(present, x, B) for present in sets])
        means = function.value_at(mixed).reshape(len(sets), -1).mean(axis=1)
        worth = dict(zip(sets, means, strict=True))
        for j, present in itertools.product(range(n_columns), sets):
            if not present[j]:
                joined = (*present[:j], True, *present[j + 1 :])
                phi[n, j] += _share(sum(present), n_columns) * (
                    worth[joined] - worth[present]
                )
    return phi


def _share(size, n_columns):
    """Of all orders, those in which a column comes after exactly these."""
    before, after = math.factorial(size), math.factorial(n_columns - size - 1)
    return before * after / math.factorial(n_columns)
