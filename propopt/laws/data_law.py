"""The data law, Gaussian noise, and exact means of sums of products under them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Mask, Points, Values
from propopt.base.checkpoints import checkpointed_array
from propopt.base.kernels import kernel
from propopt.base.resources import SERIAL_BELOW, for_each_column
from propopt.laws.background import Reference
from propopt.laws.column_laws import (
    CodedLaw,
    ColumnLaw,
    NoisyColumn,
    NumericLaw,
    Observed,
)
from propopt.laws.panels import Cuts, Panels
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.cells import TreeCells
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.sums import ROWS_AT_ONCE, Mixing, SumOfProducts


@final
@dataclass(frozen=True, eq=False, repr=False)
class DataLaw:
    """The law of independent columns V_j ~ q_j around each row, on observed values.

    attribution_j(x) = Σ_v r_j(v) E f(v, V_−j) with a contrast r_j in each column, see
    :class:`~propopt.laws.column_laws.NumericLaw` and
    :class:`~propopt.laws.column_laws.CodedLaw`. For numbers it is
    Cov(V_j, f(V)) / Var(V_j), the least squares slope of f on V_j.
    """

    reference: Reference  # the rows with the observed values

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reference!r})"

    @cached_property
    def columns(self) -> tuple[ColumnLaw, ...]:
        """The law of each column, (D,)."""
        return tuple(
            NumericLaw.of(values, repr(name))
            if n_codes is None
            else CodedLaw.of(values, n_codes)
            for values, name, n_codes in zip(
                self.reference.points.T,
                self.reference.names,
                self.reference.n_codes,
                strict=True,
            )
        )

    def has_slopes(self, points: Points) -> Mask:
        """Whether contrasts are slopes over at least three values, (N, D)."""
        parts = zip(self.columns, points.T, strict=True)
        return np.stack([column.has_slope(x) for column, x in parts], axis=1)

    def has_effects(self, points: Points) -> Mask:
        """Whether contrasts are in units of the output, not slopes, (N, D)."""
        coded = [isinstance(column, CodedLaw) for column in self.columns]
        return np.isnan(points) | np.array(coded)

    def moments(self, points: Points) -> tuple[Array, Array]:
        """Exact means and variances of V_j at each row, (N, D) each."""
        parts = zip(self.columns, points.T, strict=True)
        means, variances = zip(*(column.moments(x) for column, x in parts), strict=True)
        return np.stack(means, axis=1), np.stack(variances, axis=1)

    def draws(self, points: Points, uniforms: Array) -> Array:
        """Draws of V at each row (N, S, D), from uniforms (S, D) common to all rows."""
        samples = np.empty((len(points), *uniforms.shape))
        for j, column in enumerate(self.columns):
            samples[:, :, j] = column.quantiles(points[:, j], uniforms[:, j])
        return samples


@final
@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """The law V ~ N(x, diag(δ²)): means E f(V) and their gradients by x.

    For a factor g of numbers, P = E g(x + δ ε) and R = ∂P/∂x. Missing numbers and
    categories get no noise and have the contrasts of the data law.
    """

    # (D,): δ ≥ 0, 0 for numbers without noise; ignored for categories
    scale: Array
    # (K,) or (D,): the frequencies of categories; None for numbers
    shares: tuple[Array | None, ...]
    # (D,): observed values of numbers, for the contrasts of missing ones
    observed: Observed = None

    @cached_property
    def columns(self) -> tuple[CodedLaw | NoisyColumn, ...]:
        """The law of each column, (D,)."""
        return tuple(
            NoisyColumn(float(self.scale[j]), j, self.observed)
            if shares is None
            else CodedLaw(shares)
            for j, shares in enumerate(self.shares)
        )


_BLOCKS_BY_THREADS: Final = 256
"""Blocks of rows that threads compute before they wait for each other."""


@final
@dataclass(frozen=True, eq=False)
class Means:
    """Exact means and contrasts of a sum of products f under a law.

    These are E f(V) and Σ_v r_j(v) E f(v, V_−j) at each row.


    With P_u = Σ_v q(v) g_u(v) and R_u = Σ_v r(v) g_u(v) of each factor g_u and
    independent columns,

    E f = base + Σ_l v_l Π_u P_u,  contrast_j = Σ_l v_l R_u Π_{w≠u} P_w.
    """

    structure: SumOfProducts  # f
    law: DataLaw | NoiseLaw  # of the columns, and their contrasts

    def of(self, points: Points) -> tuple[Values, Attributions]:
        """Means (N,) and contrasts (N, D) at points; rows of boxes are independent."""
        values = np.empty(len(points))
        attributions = np.empty(points.shape)
        row_bytes = 32 * self._separated.n_factors + self._separated.row_bytes
        size = ROWS_AT_ONCE.rows(row_bytes)
        _ = self.panels  # which threads share
        n_blocks = 1 if len(points) < SERIAL_BELOW else _BLOCKS_BY_THREADS
        for start in range(0, len(points), n_blocks * size):
            rows = slice(start, start + n_blocks * size)
            both = checkpointed_array(
                "means", partial(self._blocks, points[rows], size), points[rows]
            )
            values[rows] = both[:, 0]
            attributions[rows] = both[:, 1:]
        return values, attributions

    def _blocks(self, x: Points, size: int) -> Array:
        """Means and contrasts of blocks of ``size`` rows, (n, 1 + D), by threads."""
        starts = range(0, len(x), size)

        def block(k: int) -> Array:
            measures = self._measures(x[starts[k] : starts[k] + size])
            return np.column_stack(self._separated.contrasts(*measures))

        return np.concatenate(for_each_column(block, len(starts), SERIAL_BELOW))

    def _measures(self, x: Points) -> tuple[Array, Array]:
        """The measures P and R of all factors at a block of rows, (U, n) each."""
        P, R = np.zeros((2, self._separated.n_factors, len(x)))
        done = np.zeros((len(self._mixings), len(x)), dtype=bool)
        done[self.panels.parts] = self.panels.measures(x, P, R)
        for part in np.flatnonzero(~done.all(axis=1)):
            mixing = self._mixings[part]
            j, numbers, _ = self._separated.by_column[part]
            remaining = np.flatnonzero(~done[part])
            if len(remaining) == len(x):
                P[numbers], R[numbers] = mixing(x[:, j])
            else:
                at = np.arange(len(P))[numbers][:, None], remaining
                P[at], R[at] = mixing(x[remaining, j])
        return P, R

    @cached_property
    def panels(self) -> Panels:
        """Tables of the laws of columns of numbers, for factors that are sets."""
        numbers_of_factors = np.arange(self._separated.n_factors)
        return Panels.of(
            Cuts.of(part, j, law, factors, numbers_of_factors[numbers])
            for part, (j, numbers, factors) in enumerate(self._separated.by_column)
            if isinstance(law := self.law.columns[j], NumericLaw)
            and isinstance(factors, Sets)
        )

    @cached_property
    def _separated(self) -> SumOfProducts:
        """The structure of f, with sets reduced to those that the law separates."""
        if not isinstance(self.structure, Boxes):
            return self.structure
        by = [column.split_by for column in self.law.columns]
        trees = self.structure.trees
        if trees is None or len(trees.nodes.units) == 1 or not kernel("tree_contrasts"):
            return self.structure.split_by(by)
        return TreeCells.of(trees, by)  # the sets of deep trees are many

    @cached_property
    def _mixings(self) -> list[Mixing]:
        """The measures of the factors of each column, by families."""
        columns = self.law.columns
        parts = self._separated.by_column
        return [columns[j].mixing(factors) for j, _, factors in parts]
