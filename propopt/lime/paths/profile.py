"""Means of a function by the bin of one column, and coefficients along its bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Points, Positions, Values
from propopt.errors import InvalidInput
from propopt.lime.expectations import ExactLimits
from propopt.lime.laws.binned import BinnedColumn
from propopt.lime.laws.in_bins import binned_columns


@final
@dataclass(frozen=True, eq=False)
class BinProfile:
    """h_j(b) = E_Q[f | V_j in bin b] of n rows, for all bins of one column.

    It does not depend on the bin of the row in column j, so it tells what β_j is in
    every cell of bins along axis j (:meth:`along`).

    Parameters
    ----------
    column : int
        j.
    means : array (n, B)
        h_j(b).
    shares : array (B,)
        w_b, how often samples fall into each bin.
    own : array (n,)
        The bin of each row.
    """

    column: int
    means: Array
    shares: Array
    own: Positions

    @property
    def coefficients(self) -> Values:
        """β_j, (n,)."""
        return np.asarray(self.along[np.arange(len(self.own)), self.own])

    @property
    def along(self) -> Array:
        """β_j if only the bin of the row in column j were another, (n, B).

        h_j(b) − Σ_{b'≠b} w_b' h_j(b') / (1 − w_b): with equal shares they sum to 0.
        Zero where there is no other bin.
        """
        rest = self.shares.sum() - self.shares
        total = (self.means @ self.shares)[:, None]
        others = total - self.means * self.shares
        means = np.divide(others, rest, out=self.means.copy(), where=rest > 0.0)
        drawn = self.shares > 0.0
        return np.where(drawn, self.means - means, 0.0)

    @property
    def extent(self) -> Values:
        """The largest less the smallest mean of bins that are drawn from, (n,)."""
        drawn = self.means[:, self.shares > 0.0]
        return np.asarray(np.ptp(drawn, axis=1))


def bin_profiles(
    exact: ExactLimits, points: Points, widths: Values | None = None
) -> tuple[BinProfile, ...]:
    """Profiles of all columns, for all rows.

    Parameters
    ----------
    exact : ExactLimits
        A sum of products and a law that weights samples by bits.
    points : array (n, D)
        Encoded rows.
    widths : array (n,), optional
        Kernel widths, one for each row; by default the law's.

    Returns
    -------
    tuple of BinProfile (D,)

    Raises
    ------
    InvalidInput
        If the law weights samples by their distance from the row: then the means of
        bins depend on where in its bin the row is.
    """
    columns = binned_or_refused(exact)
    own_widths = exact.law.widths(points, widths)
    parts = [
        _means(exact, columns, points[some], own_widths[some])
        for some in exact.blocks(len(points))
    ]
    return tuple(
        BinProfile(
            j,
            np.concatenate([part[j] for part in parts]),
            column.shares,
            column.place(points[:, j]),
        )
        for j, column in enumerate(columns)
    )


def binned_or_refused(exact: ExactLimits) -> tuple[BinnedColumn, ...]:
    """All columns in bins.

    Raises
    ------
    InvalidInput
        If one is not.
    """
    columns = binned_columns(exact.law)
    binned = tuple(column for column in columns if column is not None)
    if len(binned) < len(columns):
        raise InvalidInput(
            f"law: {exact.law!r} weights samples by their distance from the row, so a "
            "bin has no mean of its own; a TabularLaw weights them by bins"
        )
    return binned


def _means(
    exact: ExactLimits,
    columns: tuple[BinnedColumn, ...],
    points: Points,
    widths: Values,
) -> list[Array]:
    """h_j(b) = E_Q f + Σ_u (∂ E_Q f / ∂ E g_u) (E[g_u | b] − E_Q g_u), (n, B_j)."""
    means = exact.factor_means(points, widths)
    total, slopes = exact.function.products.slopes(means.mean)
    profiles = [np.repeat(total[:, None], len(c.shares), axis=1) for c in columns]
    for j in exact.function.columns.tolist():
        numbers, in_pieces = exact.piece_means(j, means.tilts[j])
        own = slopes[numbers]
        profiles[j] += own.T @ in_pieces
        profiles[j] -= np.einsum("un,un->n", own, means.mean[numbers])[:, None]
    return profiles
