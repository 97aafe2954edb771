"""Shapley values by the definition: every coalition, by calling the function."""

from math import comb

import numpy as np
import pandas as pd


def shapley_by_definition(f, rows, background, weights=None, players=None):
    """φ (N, P) of f for rows and a background, both arrays or tables, with dtypes.

    φ_j = Σ_S |S|! (P − |S| − 1)!/P! (v(S ∪ j) − v(S)), for the mean v over the
    background.
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
    worth = np.average(worth, axis=2, weights=weights)
    phi = np.zeros((n_rows, n_players))
    for j in range(n_players):
        for S in sets[~present[:, j]]:
            weight = 1.0 / (n_players * comb(n_players - 1, int(present[S].sum())))
            phi[:, j] += weight * (worth[:, S | (1 << j)] - worth[:, S])
    return phi


def all_orders(function, points, background):
    """The same for a wrapped function, by its encoded columns."""
    X, B = (function.read(part)[0] for part in (points, background))
    return shapley_by_definition(function.value_at, X, B)
