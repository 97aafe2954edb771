"""Which rows and features each minipatch has."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt.interactions.minipatches.drawing.strata import Strata


ColumnSampling: TypeAlias = Literal["fixed", "bernoulli"]

BLOCK = 2**16
"""Random numbers for rows that are drawn at once."""


@final
@dataclass(frozen=True, eq=False)
class Patches:
    """B minipatches, drawn once.

    Parameters
    ----------
    rows : array of int (B, n)
        The rows I_b of each, ascending.
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

    def part(self, some: slice) -> Patches:
        """Some of the patches, of the same table."""
        return replace(
            self,
            rows=self.rows[some],
            features=self.features[some],
            seeds=self.seeds[some],
        )

    def seen_by_none(self, n_table: int) -> Patches:
        """The same patches beside a table of new rows: each row is out of each patch.

        Parameters
        ----------
        n_table : int
            Rows of that table.
        """
        return replace(self, rows=self.rows[:, :0], n_table=n_table)


def draw_patches(
    n_patches: int,
    n_table: int,
    n_rows: int,
    n_features: int,
    n_kept: float,
    sampling: ColumnSampling,
    seed: int,
    labels: NDArray[Any] | None = None,
) -> Patches:
    """Rows and features of each patch, uniformly without replacement.

    Patch b is the same however many are drawn: blocks of patches, whose size depends on
    the table alone, have a stream each.

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
        Of all streams.
    labels : array (N,), optional
        Rows are drawn from those of each label, as many as its share.
    """
    strata = Strata.of(n_table, n_rows, labels)
    parts = [
        _block(rng, size, strata, n_features, n_kept, sampling)
        for rng, size in _streams(seed, n_patches, n_table)
    ]
    rows, features, seeds = map(np.concatenate, zip(*parts, strict=True))
    kept = slice(n_patches)
    return Patches(rows[kept], features[kept], seeds[kept], n_table)


def _streams(
    seed: int, n_patches: int, n_table: int
) -> Iterator[tuple[np.random.Generator, int]]:
    """A generator and a size for each block; the last block is drawn whole, too."""
    size = max(1, BLOCK // n_table)
    for number in range(math.ceil(n_patches / size)):
        stream = np.random.SeedSequence(seed, spawn_key=(number,))
        yield np.random.default_rng(stream), size


def _block(
    rng: np.random.Generator,
    size: int,
    strata: Strata,
    n_features: int,
    n_kept: float,
    sampling: ColumnSampling,
) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.int64]]:
    rows = strata.draw(rng, size)
    keys = rng.random((size, n_features))
    if sampling == "bernoulli":
        features = keys < n_kept / n_features
    else:
        n_exact = round(n_kept)
        chosen = np.argpartition(keys, n_exact - 1, axis=1)[:, :n_exact]
        features = np.zeros(keys.shape, dtype=bool)
        np.put_along_axis(features, chosen, True, axis=1)
    return rows, features, rng.integers(2**31, size=size)
