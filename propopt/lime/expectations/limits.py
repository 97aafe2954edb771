"""What LIME tends to for a sum of products, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt._typing import Array, Attributions, Points, Positions, Values
from propopt.batches import Budget
from propopt.lime.expectations.factor_means import FactorMeans
from propopt.lime.laws.base import LimeLaw
from propopt.lime.laws.tilt import Tilt
from propopt.lime.moments import IndependentBits
from propopt.structures.products import Factors, Pieces, SumOfProducts


SITUATIONS_AT_ONCE: Final = Budget(2**26, 32)


@final
@dataclass(frozen=True, eq=False)
class Limits:
    """Coefficients of infinitely many samples, in n situations.

    Parameters
    ----------
    coefficients : array (n, D)
        β_j; exactly 0.0 where f does not depend on column j.
    mean : array (n,)
        E_Q f.
    alpha : array (n, D)
        Q(z_j = 1).
    log_weight : array (n,)
        log C, C = E π: the mean weight of a sample.
    """

    coefficients: Attributions
    mean: Values
    alpha: Array
    log_weight: Values

    @property
    def bits(self) -> IndependentBits:
        """The moments of bits."""
        return IndependentBits(self.alpha, self.log_weight)

    @property
    def intercept(self) -> Values:
        """β_0 = E_Q f − Σ_j α_j β_j, (n,)."""
        pulls = np.einsum("nd,nd->n", self.alpha, self.coefficients)
        return np.asarray(self.mean - pulls)

    @property
    def at_row(self) -> Values:
        """The surrogate at the row itself, where all bits are 1: Σ β, (n,)."""
        return np.asarray(self.intercept + self.coefficients.sum(axis=1))


@final
@dataclass(frozen=True, eq=False)
class ExactLimits:
    """Limits of a sum of products under a law; tables of fixed bins are made once.

    Parameters
    ----------
    function : SumOfProducts
        f.
    law : LimeLaw
        Of the samples, bits and weights.
    """

    function: SumOfProducts
    law: LimeLaw

    def with_law(self, law: LimeLaw) -> ExactLimits:
        """The limits under another law; tables of columns that stay are shared."""
        other = replace(self, law=law)
        vars(other)["_fixed"] = dict(self._fixed)
        return other

    def of(self, points: Points, widths: Values | None = None) -> Limits:
        """The limits at rows (n, D), each with the law's kernel width or its own (n,).

        Parameters
        ----------
        points : array (n, D)
            Encoded rows.
        widths : array (n,), optional
            Kernel widths, one for each row: a row may come several times.
        """
        widths = self.law.widths(points, widths)
        first, which = self._distinct(points, widths)
        if len(first) == len(points):
            return self._in_blocks(points, widths)
        found = self._in_blocks(points[first], widths[first])
        alpha, log_weight = self._weights(points, widths)
        return Limits(found.coefficients[which], found.mean[which], alpha, log_weight)

    def _distinct(self, points: Points, widths: Values) -> tuple[Positions, Positions]:
        """Situations of which all others repeat one, and which one each repeats.

        Limits of tabular laws depend on bins alone, of the columns that f reads.
        """
        cells = self.law.cells(points)
        if cells is points:
            every = np.arange(len(points))
            return every, every
        keys = np.column_stack([cells[:, self.function.columns], widths])
        _, first, which = np.unique(
            keys, axis=0, return_index=True, return_inverse=True
        )
        return first, which.ravel()

    def _weights(self, points: Points, widths: Values) -> tuple[Array, Values]:
        """α of all columns (n, D), and log C (n,)."""
        alpha, log_weight = np.empty(points.shape), np.zeros(len(points))
        for j, (column, x) in enumerate(zip(self.law.columns, points.T, strict=True)):
            tilt = column.tilt(x, widths)
            alpha[:, j] = tilt.alpha
            log_weight += tilt.log_weight
        return alpha, log_weight

    def _in_blocks(self, points: Points, widths: Values) -> Limits:
        blocks = self.blocks(len(points))
        parts = [self._block(points[rows], widths[rows]) for rows in blocks]
        return Limits(
            np.concatenate([part.coefficients for part in parts]),
            np.concatenate([part.mean for part in parts]),
            np.concatenate([part.alpha for part in parts]),
            np.concatenate([part.log_weight for part in parts]),
        )

    def blocks(self, n: int) -> Iterator[slice]:
        """Situations of which tables are made at once."""
        row_bytes = 8 * 8 * self.function.n_factors + self.function.products.row_bytes
        return SITUATIONS_AT_ONCE.blocks(n, row_bytes)

    def _block(self, points: Points, widths: Values) -> Limits:
        means = self.factor_means(points, widths)
        mean, coefficients = self.function.products.contrasts(means.measures)
        return Limits(coefficients, mean, means.alpha.T, means.log_weight)

    def factor_means(self, points: Points, widths: Values) -> FactorMeans:
        """Means of the factors by the bits of their columns, in n situations.

        Parameters
        ----------
        points : array (n, D)
            Encoded rows.
        widths : array (n,)
            Kernel widths.
        """
        columns = zip(self.law.columns, points.T, strict=True)
        tilts = tuple(column.tilt(x, widths) for column, x in columns)
        one, zero = np.zeros((2, self.function.n_factors, len(points)))
        for j, families in self._factors.items():
            for (numbers, _), means in zip(
                families, self._means(j, tilts[j]), strict=True
            ):
                one[numbers], zero[numbers] = tilts[j].given(means)
        return FactorMeans(tilts, self.function.products.column, one, zero)

    def piece_means(self, j: int, tilt: Tilt) -> tuple[Positions, Array]:
        """The factors of a column by their numbers, and their means in each piece.

        Returns
        -------
        array (U_j,), array (U_j, B) or (U_j, B, n)
        """
        numbers = [own for own, _ in self._factors[j]]
        return np.concatenate(numbers), np.concatenate(self._means(j, tilt))

    @cached_property
    def _factors(self) -> dict[int, list[tuple[Positions, Factors]]]:
        """The factors of each column, by families."""
        columns = self.function.columns.tolist()
        return {j: list(self.function.of_column(j)) for j in columns}

    @cached_property
    def _fixed(self) -> dict[int, tuple[Pieces, list[Array]]]:
        """Means in the pieces of each column, and the pieces they are of."""
        return {}

    def _means(self, j: int, tilt: Tilt) -> list[Array]:
        """Means of the factors of a column in each piece; once where pieces stay."""
        known = self._fixed.get(j)
        if known is not None and known[0] is tilt.pieces:
            return known[1]
        means = [tilt.pieces.expect(factors) for _, factors in self._factors[j]]
        if tilt.pieces.mean.ndim == 1:
            self._fixed[j] = tilt.pieces, means
        return means
