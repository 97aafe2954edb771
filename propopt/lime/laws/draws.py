"""Samples around rows, with their bits and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt._typing import Array, Points, Positions, Values
from propopt.batches import Budget
from propopt.lime.laws.column import LimeColumn
from propopt.lime.laws.tilt import Tilt
from propopt.structures.products import Normals
from propopt.structures.products.quantiles import Quantiles


@final
@dataclass(frozen=True, eq=False)
class Draws:
    """S samples around each of n rows.

    Parameters
    ----------
    samples : array (n, S, D)
        Where f is evaluated.
    bits : array (n, S, D)
        z, 0 or 1.
    weights : array (n, S)
        π.
    """

    samples: Array
    bits: Array
    weights: Array

    def with_rows_first(self, points: Points) -> Draws:
        """The same, with each row itself as its first sample, of weight 1."""
        samples, bits, weights = (
            part.copy() for part in (self.samples, self.bits, self.weights)
        )
        samples[:, 0], bits[:, 0], weights[:, 0] = points, 1.0, 1.0
        return Draws(samples, bits, weights)


def draw_samples(
    columns: Sequence[LimeColumn],
    points: Points,
    widths: Values,
    n_samples: int,
    rng: np.random.Generator,
) -> Draws:
    """Samples of the law without weights, which is that of an infinite width."""
    draws = draw_weighted(columns, points, np.full(len(points), np.inf), n_samples, rng)
    logs = np.zeros(draws.weights.shape)
    for j, column in enumerate(columns):
        values, bits = draws.samples[..., j], draws.bits[..., j]
        logs += column.log_kernel(points[:, j, None], values, bits, widths[:, None])
    return Draws(draws.samples, draws.bits, np.exp(logs))


def draw_weighted(
    columns: Sequence[LimeColumn],
    points: Points,
    widths: Values,
    n_samples: int,
    rng: np.random.Generator,
) -> Draws:
    """Samples of the weighted law Q, with weights of one."""
    shape = (len(points), n_samples, len(columns))
    return draws_at(columns, points, widths, rng.random(shape))


def draws_at(
    columns: Sequence[LimeColumn], points: Points, widths: Values, uniforms: Array
) -> Draws:
    """The samples of Q that uniform numbers are, with weights of one.

    Parameters
    ----------
    columns : sequence of LimeColumn (D,)
        The law.
    points, widths : array (n, D) and (n,)
        The rows, and their kernel widths.
    uniforms : array (n, S, D)
        Numbers u in [0, 1), one for each value; the bit is 1 where u < α_j.
    """
    samples, bits = np.empty((2, *uniforms.shape))
    for j, column in enumerate(columns):
        tilt = column.tilt(points[:, j], widths)
        mixture = _Mixtures(tilt)
        for rows in _SAMPLES_AT_ONCE.blocks(len(points), uniforms.shape[1]):
            chosen, where = mixture.chosen(rows, uniforms[rows, :, j])
            bits[rows, :, j] = chosen < len(tilt.pieces)
            samples[rows, :, j] = mixture.values(rows, chosen, where)
    return Draws(samples, bits, np.ones(uniforms.shape[:2]))


_SAMPLES_AT_ONCE: Final = Budget(2**14, 1)
"""So many of a column stay near the processor."""


@final
@dataclass(frozen=True, eq=False)
class _Mixtures:
    """The law of one column around n rows, as what uniform numbers become."""

    tilt: Tilt

    def chosen(self, rows: slice, uniforms: Array) -> tuple[Positions, Array]:
        """A piece where the bit is 1, B + one where it is 0; where in it: (n, S)."""
        chosen = np.empty(uniforms.shape, np.intp)
        where = np.empty(uniforms.shape)
        ends = self._ends[rows]
        for n, (own, u) in enumerate(zip(ends, uniforms, strict=True)):
            k = chosen[n] = np.searchsorted(own[1:], u, side="right")
            lengths = np.diff(own)
            lengths[lengths == 0.0] = 1.0
            where[n] = (u - own[k]) / lengths[k]
        return chosen, where

    @cached_property
    def _ends(self) -> Array:
        """Where pieces end between 0 and 1: a piece of no probability is empty."""
        tilt = self.tilt
        masses = np.vstack([tilt.alpha * tilt.inside, tilt.complement * tilt.outside])
        ends = np.vstack([np.zeros(masses.shape[1]), np.cumsum(masses, axis=0)])
        ends = np.where(ends == ends[-1], 1.0, ends / ends[-1])
        return np.ascontiguousarray(ends.T)

    def values(self, rows: slice, chosen: Positions, where: Array) -> Array:
        """The value of each sample in its piece, (n, S)."""
        pieces = self.tilt.pieces
        piece = chosen % len(pieces)
        at = piece
        if pieces.mean.ndim > 1:
            n_rows = pieces.mean.shape[1]
            at = piece * n_rows + np.arange(n_rows)[rows, None]
        if not pieces.single.any():
            return self._quantiles.at(at, where)
        values = pieces.mean.ravel()[at]
        some = ~pieces.single[piece]
        which = at - self._skipped[piece]
        values[some] = self._quantiles.at(which[some], where[some])
        return values

    @cached_property
    def _quantiles(self) -> Quantiles:
        normals = self.tilt.pieces.normals
        parts = (normals.mean, normals.sd, normals.low, normals.high)
        return Quantiles(Normals(*(part.ravel() for part in parts)))

    @cached_property
    def _skipped(self) -> Positions:
        """How many single values are before each piece, (B,)."""
        pieces = self.tilt.pieces
        n_rows = 1 if pieces.mean.ndim == 1 else pieces.mean.shape[1]
        return np.asarray(np.cumsum(pieces.single) * n_rows)
