"""Draws that keep what a point has in a column, or replace it by another value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Points
from propopt.tables.atoms import Atoms, atoms_of
from propopt.tables.columns import Coded
from propopt.tables.schema import TableSchema


KEPT = 0.5
"""How often a draw keeps the category of the point."""


@dataclass(frozen=True, eq=False)
class CategoryDraws:
    """Draws that keep each category of a point or replace it by one of the table.

    A category is kept with probability 1/2 and drawn from the frequencies p otherwise,
    each column by itself: so a category that is rare in the table, or not in it at all,
    is still seen on both sides, as itself and as another.

    Parameters
    ----------
    positions : array (C,)
        The categorical columns.
    frequencies : tuple of arrays (K,)
        p of each.
    rng : numpy.random.Generator
        A stream of its own, in the order point, sample, column: the draws of a point
        depend neither on later points nor on how points are put together.
    """

    positions: NDArray[np.intp]
    frequencies: tuple[Array, ...]
    rng: np.random.Generator

    @classmethod
    def of(cls, schema: TableSchema | None, rng: np.random.Generator) -> CategoryDraws:
        """Those of a schema; ``rng`` is advanced only if there are categories."""
        columns = {} if schema is None else dict(enumerate(schema.columns))
        frequencies = {
            j: column.frequencies
            for j, column in columns.items()
            if isinstance(column, Coded)
        }
        own = np.random.default_rng(rng.integers(2**63)) if frequencies else rng
        positions = np.array(list(frequencies), dtype=np.intp)
        return cls(positions, tuple(frequencies.values()), own)

    def draw(self, points: Points, n_samples: int) -> Array:
        """Codes around points (n, D), shape (n, S, C)."""
        own = points[:, None, self.positions]
        numbers = self.rng.random((len(points), n_samples, len(self.positions)))
        kept = numbers < KEPT
        rest = (numbers - KEPT) / (1 - KEPT)
        draws = np.empty_like(rest)
        for c, shares in enumerate(self.frequencies):
            draws[..., c] = np.searchsorted(_edges(shares), rest[..., c], side="right")
        return np.where(kept, own, draws)

    def shares(self, points: Points) -> Array:
        """The frequency of each point's own categories, shape (n, C)."""
        shares = np.empty((len(points), len(self.positions)))
        for c, (j, of_column) in enumerate(
            zip(self.positions, self.frequencies, strict=True)
        ):
            shares[:, c] = of_column[points[:, j].astype(np.intp)]
        return shares


@dataclass(frozen=True, eq=False)
class MissingDraws:
    """Draws that keep a missing number missing or replace it by an observed value.

    It is kept with probability 1/2, as a category is, and drawn from the values of its
    column otherwise.

    Parameters
    ----------
    observed : tuple of Atoms or None (D,), optional
        The values of each column; None where no table tells.
    rng : numpy.random.Generator
        A stream of its own, in the order point, column, sample.
    """

    observed: tuple[Atoms | None, ...] | None
    rng: np.random.Generator

    @classmethod
    def of(
        cls,
        observed: tuple[Atoms | None, ...] | None,
        points: Points,
        rng: np.random.Generator,
    ) -> MissingDraws:
        """Those around points; ``rng`` is advanced only if a number is missing."""
        absent = np.isnan(points).any()
        own = np.random.default_rng(rng.integers(2**63)) if absent else rng
        return cls(observed, own)

    def put_into(self, samples: Array, contrast: Array) -> None:
        """Replace some missing numbers of samples (n, S, D); contrast 0 if none can be.

        None can be where no value of the column was observed.
        """
        for n, j in np.argwhere(np.isnan(samples[:, 0])).tolist():
            atoms = atoms_of(self.observed, j)
            kept, places = self.rng.random((2, samples.shape[1]))
            if len(atoms.values) == 0:
                contrast[n, j] = 0.0
                continue
            drawn = np.searchsorted(_edges(atoms.shares), places, side="right")
            samples[n, :, j] = np.where(kept < KEPT, np.nan, atoms.values[drawn])


def _edges(shares: Array) -> Array:
    """Where the intervals of [0, 1) end, one of length p_c for each category but one.

    The last category with p > 0 has the rest, whatever the sum was rounded to.
    """
    edges: Array = np.cumsum(shares)
    edges[np.flatnonzero(shares)[-1] :] = 1.0
    return edges
