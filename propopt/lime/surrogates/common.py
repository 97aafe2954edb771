"""Samples of a law without weights, which all rows share: f is called on them once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt._typing import Array, Points, Positions, Truths, Values
from propopt.lime.laws import LimeLaw
from propopt.lime.laws.binned import BinnedColumn
from propopt.lime.laws.draws import draws_at
from propopt.lime.laws.in_bins import binned_columns
from propopt.lime.surrogates.evaluated import evaluated
from propopt.lime.surrogates.stratified import stratified_uniforms


N_COMMON: Final = 8192
"""Draws that rows share."""

_STRATA: Final = 32
"""Of each column, of some 256 draws each."""


@final
@dataclass(frozen=True, eq=False)
class CommonDraws:
    """Samples in bins, and weights that make them those around any row.

    π depends on the bits of a sample alone, so the mean of h under the weighted law Q
    of a row is Σ π h / Σ π over the same samples for all rows. It is a good one where
    most of the samples count.

    Parameters
    ----------
    columns : tuple of BinnedColumn (D,)
        The law.
    samples : array (S, D)
        Of the law without weights.
    values : array (S,)
        f there.
    """

    columns: tuple[BinnedColumn, ...]
    samples: Points
    values: Values

    @classmethod
    def of(
        cls,
        law: LimeLaw,
        evaluate: Callable[[Points], Values],
        n_draws: int = N_COMMON,
    ) -> CommonDraws | None:
        """Draws that depend on the law alone, not on rows; None if it has no bins."""
        own = binned_columns(law)
        columns = tuple(column for column in own if column is not None)
        if len(columns) < len(own):
            return None
        rng = np.random.default_rng(0)
        uniforms = stratified_uniforms(1, n_draws, len(columns), rng)
        anywhere, wide = np.zeros((1, len(columns))), np.full(1, np.inf)
        samples = draws_at(columns, anywhere, wide, uniforms).samples[0]
        return cls(columns, samples, evaluated(evaluate, samples))

    def weights(self, points: Points, widths: Values) -> Array:
        """π over its sum, around rows (n, D): (S, n)."""
        # log π = Σ_j (z_j − 1) / (2 ν_j²), and the largest is 0 at most
        scales = np.array([column.scale for column in self.columns])
        rates = 1.0 / (2.0 * scales**2)
        agreed = np.zeros((len(self.samples), len(points)))
        own = self._bins_of(points)
        for bins, others, rate in zip(self.bins, own, rates, strict=True):
            agreed += rate * (bins[:, None] == others)
        logs = (agreed - rates.sum()) / widths**2
        weights = np.exp(logs - logs.max(axis=0))
        return np.asarray(weights / weights.sum(axis=0))

    def enough(self, points: Points, widths: Values) -> Truths:
        """Whether half of the samples count around rows, (n,)."""
        weights = self.weights(points, widths)
        return np.asarray((weights**2).sum(axis=0) * len(weights) <= 2.0)

    def bits(self, points: Points) -> Array:
        """The bits of the samples around rows, (n, S, D)."""
        found = np.empty((len(points), *self.samples.shape))
        for j, (bins, own) in enumerate(
            zip(self.bins, self._bins_of(points), strict=True)
        ):
            found[:, :, j] = bins == own[:, None]
        return found

    def variances(self, points: Points, widths: Values) -> Values:
        """Var_Q f around rows, (n,)."""
        weights = self.weights(points, widths)
        mean = self.values @ weights
        apart = (self.values[:, None] - mean) ** 2
        return np.asarray((weights * apart).sum(axis=0))

    def additive_variances(self, points: Points, widths: Values) -> Values:
        """Σ_j Var_Q E_Q[f | V_j] around rows, (n,), without bias but for strata.

        Each column has 32 strata with as many samples: the scatter of their means,
        less what samples inside them add to it, a part of S Σ w² / K of their scatter.
        """
        weights = self.weights(points, widths)
        total, n = np.zeros(len(points)), len(self.samples)
        centred = self.values[:, None] - self.values @ weights
        for x in self.samples.T:
            rank = np.empty(n, np.intp)
            rank[np.argsort(x, kind="stable")] = np.arange(n)
            ties = np.unique(x, return_inverse=True)[1].ravel()
            first = np.full(ties.max() + 1, n)
            np.minimum.at(first, ties, rank)
            stratum = first[ties] * _STRATA // n  # equal values stand together
            inside = np.eye(_STRATA)[stratum]
            mass = inside.T @ weights
            some = mass > 0.0
            level = np.zeros(mass.shape)
            np.divide(inside.T @ (weights * centred), mass, out=level, where=some)
            left = (weights**2 * (centred - level[stratum]) ** 2).T @ inside
            added = np.zeros(mass.shape)
            np.divide(left.T, mass, out=added, where=some)
            total += (mass * level**2).sum(axis=0) - added.sum(axis=0)
        return np.maximum(total, 0.0)

    def errors(self, points: Points, widths: Values) -> tuple[Array, ...]:
        """Standard errors of :meth:`means`, of what the fit leaves over, (n, B_j)."""
        weights, found = self.weights(points, widths), []
        for bins, own in zip(self.bins, self._additive, strict=True):
            inside = (bins[:, None] == np.arange(len(own))) * 1.0
            mass = weights.T @ inside
            extra = np.zeros(mass.shape)
            left = weights.T @ (self._left[:, None] * inside)
            np.divide(left, mass, out=extra, where=mass > 0.0)
            apart = self._left[:, None] - extra[:, bins].T
            square = (weights**2 * apart**2).T @ inside
            error = np.full(mass.shape, np.nan)
            np.divide(np.sqrt(square), mass, out=error, where=mass > 0.0)
            found.append(error)
        return tuple(found)

    def means(self, points: Points, widths: Values) -> tuple[Array, ...]:
        """E_Q[f | b_j = b] of all columns, D arrays (n, B_j); NaN in bins of no sample.

        What the least squares fit of f by a number for each bin says is known without
        samples, as columns are independent; only what it leaves over is estimated.
        """
        weights, n = self.weights(points, widths), len(points)
        tilts = [
            column.tilt(x, widths)
            for column, x in zip(self.columns, points.T, strict=True)
        ]
        shares = [t.alpha * t.inside + t.complement * t.outside for t in tilts]
        levels = [p.T @ own for p, own in zip(shares, self._additive, strict=True)]
        total = self._constant + np.sum(levels, axis=0)
        found = []
        for bins, own, level in zip(self.bins, self._additive, levels, strict=True):
            inside = bins[:, None] == np.arange(len(own))
            mass = weights.T @ inside
            left = weights.T @ (self._left[:, None] * inside)
            extra = np.full((n, len(own)), np.nan)
            np.divide(left, mass, out=extra, where=mass > 0.0)
            found.append((total - level)[:, None] + own + extra)
        return tuple(found)

    @cached_property
    def bins(self) -> tuple[Positions, ...]:
        """The bins of the samples, D arrays (S,)."""
        return self._bins_of(self.samples)

    def _bins_of(self, points: Points) -> tuple[Positions, ...]:
        columns = zip(self.columns, points.T, strict=True)
        return tuple(column.place(x) for column, x in columns)

    @cached_property
    def _fit(self) -> tuple[float, tuple[Array, ...], Values]:
        """A constant, a number for each bin of each column, and what they leave."""
        sizes = [len(column.shares) for column in self.columns]
        design = np.concatenate(
            [
                (bins[:, None] == np.arange(size)) * 1.0
                for bins, size in zip(self.bins, sizes, strict=True)
            ],
            axis=1,
        )
        constant = float(self.values.mean())
        numbers = np.linalg.lstsq(design, self.values - constant, rcond=1e-10)[0]
        left = self.values - constant - design @ numbers
        return constant, tuple(np.split(numbers, np.cumsum(sizes)[:-1])), left

    @property
    def _constant(self) -> float:
        return self._fit[0]

    @property
    def _additive(self) -> tuple[Array, ...]:
        return self._fit[1]

    @property
    def _left(self) -> Values:
        return self._fit[2]
