"""Samples around points, and the regressors of a local linear fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Points
from propopt.batches import Budget
from propopt.tables.atoms import Atoms, atoms_of
from propopt.tables.columns import Coded
from propopt.tables.schema import TableSchema


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """S samples around each of n points.

    Parameters
    ----------
    samples : array (n, S, D)
        Where f is evaluated: x + ε, and drawn categories.
    regressors : array (n, S, D)
        ε of numbers; of categories 1[c̃ = c] − p_c; of a number that is missing 1 where
        it still is, and else 0.
    origin : array (n, D)
        What the regressors are counted from: x; zero for categories and what is
        missing.
    contrast : array (n, D)
        What slopes are multiplied by: 1; 1 − p_c for categories.
    units : array (n, D)
        The sizes of the regressors.
    categorical : array (n, D)
        Which are of categories, or of missing numbers.
    """

    samples: Array
    regressors: Array
    origin: Array
    contrast: Array
    units: Array
    categorical: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        points: Points,
        draws: Array,
        units: Array,
        categories: CategoryDraws,
        missing: MissingDraws,
    ) -> Neighbourhood:
        """Around points (n, D), with noise (n, S, D) that is zero for categories."""
        places, absent = categories.positions, np.isnan(points)
        categorical = absent.copy()
        categorical[:, places] = True
        samples = points[:, None] + draws
        origin, contrast = np.array(points), np.ones(points.shape)
        if len(places) > 0:
            shares = categories.shares(points)
            codes = categories.draw(points, draws.shape[1])
            same = codes == points[:, None, places]
            samples[..., places] = codes
            draws[..., places] = same - shares[:, None]
            origin[:, places] = 0.0
            contrast[:, places] = 1 - shares
        if absent.any():
            missing.put_into(samples, contrast)
            same = np.isnan(samples) & (contrast > 0)[:, None]
            draws[:] = np.where(absent[:, None], same, draws)
            origin[absent] = 0.0
        sizes = np.where(absent, 1.0, units)
        return cls(samples, draws, origin, contrast, sizes, categorical)

    def parts(self, budget: Budget) -> Iterator[tuple[slice, Neighbourhood]]:
        """Some points after the other, with regressors that keep to the budget."""
        row_bytes = self.regressors[0].nbytes
        for rows in budget.blocks(len(self.regressors), row_bytes):
            yield (
                rows,
                replace(
                    self,
                    samples=self.samples[rows],
                    regressors=self.regressors[rows],
                    origin=self.origin[rows],
                    contrast=self.contrast[rows],
                    units=self.units[rows],
                    categorical=self.categorical[rows],
                ),
            )

    @property
    def is_constant(self) -> NDArray[np.bool_]:
        """Whether a regressor is zero in all samples, for want of another category."""
        return self.contrast == 0

    def squared_distances(self, scale: float) -> Array:
        """‖ε‖² in units of which ``scale`` is one δ, another category as 1, (n, S)."""
        per_unit = np.where(self.categorical, 0.0, scale / self.units)
        steps = self.regressors * per_unit[:, None]
        squares = np.einsum("nsd,nsd->ns", steps, steps)
        if not self.categorical.any():
            return squares
        # 1[c̃ = c] − p is positive for the same category and not for another
        changed = self.regressors <= 0
        changed &= (self.categorical & ~self.is_constant)[:, None]
        return np.asarray(squares + changed.sum(axis=-1))


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
