"""Shapley values by the definition: every coalition, by calling the function."""

from itertools import permutations, product
from math import comb

import numpy as np
import pandas as pd


def worths(f, rows, background, weights=None, players=None):
    """v (N, 2^P) of f for rows and a background, both arrays or tables, with dtypes.

    The mean of f over the background, with the columns of a set of players from a row.
    """
    parts = [pd.DataFrame(part) for part in (background, rows)]
    both = pd.concat(parts, ignore_index=True).astype(parts[1].dtypes)
    (n_background, n_columns), n_rows = parts[0].shape, len(rows)
    players = np.arange(n_columns) if players is None else players
    n_players = int(players.max()) + 1
    sets = np.arange(2**n_players)
    # which row of the stacked table each cell comes from: (N, 2^P, B, D)
    present = (sets[:, None] >> np.arange(n_players)) % 2 == 1
    row = n_background + np.arange(n_rows)[:, None, None, None]
    other = np.arange(n_background)[None, None, :, None]
    source = np.where(present[None, :, None, players], row, other)
    mixed = pd.DataFrame(
        {
            name: both[name].take(part).reset_index(drop=True)
            for name, part in zip(both, source.reshape(-1, n_columns).T, strict=True)
        }
    )
    worth = f(mixed if isinstance(rows, pd.DataFrame) else mixed.to_numpy())
    worth = np.asarray(worth, float).reshape(n_rows, len(sets), n_background)
    return np.average(worth, axis=2, weights=weights)


def interactions_of(worth, order):
    """Shapley values φ (N, P), or interaction values I (N, P, P), from v (N, 2^P).

    I_T = Σ_{S without T} |S|! (P − |S| − k)!/(P − k + 1)! Δ_T v(S) for sets T of size
    k, with φ_j for k = 1 (Grabisch and Roubens 1999).
    """
    n_players = int(np.log2(worth.shape[1]))
    sets, rest = np.arange(worth.shape[1]), n_players - order
    terms = np.zeros((len(worth), *(n_players,) * order))
    for T in permutations(range(n_players), order):
        bits = [1 << j for j in T]
        without = sets[sets & sum(bits) == 0]
        change = 0.0
        for inside in product((0, 1), repeat=order):
            added = sum(bit for bit, is_in in zip(bits, inside, strict=True) if is_in)
            change = change + (-1) ** (order - sum(inside)) * worth[:, without | added]
        weights = [1 / ((rest + 1) * comb(rest, int(S).bit_count())) for S in without]
        terms[(slice(None), *T)] = change @ weights
    return terms


def shapley_by_definition(f, rows, background, weights=None, players=None):
    """φ (N, P) of f for rows and a background."""
    return interactions_of(worths(f, rows, background, weights, players), 1)


def all_orders(function, points, background):
    """The same for a wrapped function, by its encoded columns."""
    X, B = (function.read(part)[0] for part in (points, background))
    return shapley_by_definition(function.value_at, X, B)
