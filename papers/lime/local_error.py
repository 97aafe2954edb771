"""How far a surrogate is from the function at the row that it explains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Points, Values
from propopt.base.errors import InvalidInput, Refused
from propopt.functions.function import Function, read_function
from propopt.lime.exact_limits import ExactLimits
from propopt.lime.laws.lime_law import LimeLaw
from propopt.structures.products.sums import ROWS_AT_ONCE, SumOfProducts
from propopt.tables.frames import Labels


@final
@dataclass(frozen=True, eq=False)
class LocalError:
    """What LIME's surrogate says at the rows themselves, where all bits are 1.

    Parameters
    ----------
    at_row : array (n,)
        f̂(ξ) = Σ β, the surrogate at the row.
    box_mean : array (n,)
        E_Q[f | all bits 1], the mean of f over the bins of the row.
    values : array (n,)
        f(ξ).
    labels : Labels
        Names of the rows.
    """

    at_row: Values
    box_mean: Values
    values: Values
    labels: Labels = Labels()

    @property
    def error(self) -> Values:
        """f̂(ξ) − f(ξ), (n,): the two parts below together."""
        return np.asarray(self.at_row - self.values)

    @property
    def binning(self) -> Values:
        """E_Q[f | box] − f(ξ), (n,): bits do not know where in its bins the row is."""
        return np.asarray(self.box_mean - self.values)

    @property
    def interactions(self) -> Values:
        """f̂(ξ) − E_Q[f | box], (n,): what main effects of bits miss.

        Zero for additive functions, and only for functions of which no product of two
        or more contrasts is left: of g_1(x_1) g_2(x_2) it is
        −(1 − α_1)(1 − α_2) Δ_1 Δ_2 with Δ = E_Q[g | 1] − E_Q[g | 0].
        """
        return np.asarray(self.at_row - self.box_mean)

    def to_frame(self) -> pd.DataFrame:
        """All of it, a row for each row."""
        return pd.DataFrame(
            {
                "value": self.values,
                "surrogate": self.at_row,
                "error": self.error,
                "binning": self.binning,
                "interactions": self.interactions,
            },
            index=self.labels.points,
        )


def local_error(law: LimeLaw, function: Function, X: Any) -> LocalError:
    """The exact error of LIME's surrogate at the rows, in two parts.

    Of a linear f it is aᵀ(E_Q[x | box] − ξ), which no kernel width makes zero but by
    chance. Any law will do, not only the gaussian one.

    Parameters
    ----------
    law : LimeLaw
        The law.
    function : Function
        A sum of products of functions of one column.
    X : DataFrame or array (n, D)
        The rows.

    Returns
    -------
    LocalError

    Raises
    ------
    InvalidInput
        If the law has not the columns of X, or X is no table of the function.
    Refused
        If the function is not known as a sum of products; the reason is given.
    """
    points, labels = read_function(function).read(X)
    products = function.products_in(points.shape[1])
    if not isinstance(products, SumOfProducts):
        raise Refused(
            f"local_error: {products.reason}; po.lime.limits estimates the surrogate"
        )
    if len(law.columns) != points.shape[1]:
        raise InvalidInput(
            f"law: expected {points.shape[1]} columns, as X has, got {len(law.columns)}"
        )
    exact = ExactLimits(products, law)
    return LocalError(
        exact.of(points).at_row,
        _box_means(exact, points),
        function.value_at(points, labels),
        labels,
    )


def _box_means(exact: ExactLimits, points: Points) -> Values:
    """E_Q[f | all bits 1] at rows (n, D): products of E_Q[g | z_j = 1]."""
    sums, widths = exact.function, exact.law.widths(points)
    row_bytes = 8 * 9 * sums.n_factors + sums.row_bytes
    parts = []
    for rows in ROWS_AT_ONCE.blocks(len(points), row_bytes):
        inside = exact.factor_means(points[rows], widths[rows]).one
        nothing = np.zeros(inside.shape)
        parts.append(sums.contrasts(inside, nothing)[0])
    return np.concatenate(parts)
