"""Shapley values by the definition: every coalition, by calling the model."""

from collections.abc import Callable
from math import comb

import numpy as np
import pandas as pd


def shapley_by_definition(
    f: Callable, rows: pd.DataFrame, background: pd.DataFrame
) -> np.ndarray:
    """φ (N, D) of f against background rows; columns keep their dtypes."""
    both = pd.concat([background, rows], ignore_index=True).astype(rows.dtypes)
    n_rows, n_columns = rows.shape
    n_background = len(background)
    sets = np.arange(2**n_columns)
    # which row of the stacked table each cell comes from: (N, 2^D, B, D)
    known = (sets[:, None] >> np.arange(n_columns)) % 2 == 1
    own = n_background + np.arange(n_rows)[:, None, None, None]
    other = np.arange(n_background)[None, None, :, None]
    source = np.where(known[None, :, None, :], own, other).reshape(-1, n_columns)
    mixed = pd.DataFrame(
        {
            name: both[name].take(source[:, j]).reset_index(drop=True)
            for j, name in enumerate(rows.columns)
        }
    )
    worth = np.asarray(f(mixed), float).reshape(n_rows, len(sets), n_background)
    worth = worth.mean(axis=2)
    phi = np.zeros((n_rows, n_columns))
    for j in range(n_columns):
        for S in sets[~known[:, j]]:
            size = int(known[S].sum())
            weight = 1.0 / (n_columns * comb(n_columns - 1, size))
            phi[:, j] += weight * (worth[:, S | (1 << j)] - worth[:, S])
    return phi
