"""Which rows and features each minipatch has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray


ColumnSampling: TypeAlias = Literal["fixed", "bernoulli"]


@final
@dataclass(frozen=True, eq=False)
class Patches:
    """B minipatches, drawn once.

    Parameters
    ----------
    rows : array of int (B, n)
        The rows I_b of each.
    features : array of bool (B, M)
        Whether a feature is in F_b.
    seeds : array of int (B,)
        For the learners.
    n_table : int
        N, rows of the table.
    """

    rows: NDArray[np.intp]
    features: NDArray[np.bool_]
    seeds: NDArray[np.int64]
    n_table: int

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def out(self) -> NDArray[np.bool_]:
        """Whether a row is not in a patch, (B, N)."""
        out = np.ones((len(self), self.n_table), dtype=bool)
        np.put_along_axis(out, self.rows, False, axis=1)
        return out


def draw_patches(
    n_patches: int,
    n_table: int,
    n_rows: int,
    n_features: int,
    n_kept: float,
    sampling: ColumnSampling,
    seed: int,
) -> Patches:
    """Rows and features of each patch, from a stream of its own.

    Parameters
    ----------
    n_patches, n_table, n_rows : int
        B, N and n.
    n_features : int
        M.
    n_kept : float
        m: of ``"fixed"`` exactly so many, of ``"bernoulli"`` each with m/M.
    sampling : {"fixed", "bernoulli"}
        Of features.
    seed : int
        Patch b has the stream (seed, b), whatever else is drawn.
    """
    rows = np.empty((n_patches, n_rows), dtype=np.intp)
    features = np.zeros((n_patches, n_features), dtype=bool)
    seeds = np.empty(n_patches, dtype=np.int64)
    for b in range(n_patches):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(b,)))
        rows[b] = np.sort(rng.choice(n_table, n_rows, replace=False))
        if sampling == "bernoulli":
            features[b] = rng.random(n_features) < n_kept / n_features
        else:
            features[b, rng.choice(n_features, math.ceil(n_kept), replace=False)] = True
        seeds[b] = rng.integers(2**31)
    return Patches(rows, features, seeds, n_table)
