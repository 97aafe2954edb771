"""The law with bins of data, or given bins, and weights by bits."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, final

from propopt.base.checks import read_positive
from propopt.base.suggestions import suggests_arguments
from propopt.lime.laws.binned_columns import (
    BinnedColumn,
    BinsOfColumns,
    BinWeights,
    columns_of,
    read_data,
)
from propopt.lime.laws.lime_law import LimeLaw
from propopt.tables.frames import Labels
from propopt.tables.schema import TableSchema


@final
@suggests_arguments
@dataclass(frozen=True, eq=False, repr=False)
class TabularLaw(LimeLaw):
    """The sampling of the package ``lime``: bins by their frequencies in the table.

    A sample has the weight π = exp(−‖1 − z‖² / (2 ν²)) (Garreau and von Luxburg 2020,
    Eq. 2), and values from the law of its bin in each column.

    Parameters
    ----------
    columns : tuple of BinnedColumn (D,)
        The bins.
    kernel_width : float
        ν.
    labels : Labels
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> law = TabularLaw.from_data(X, n_bins=3)
    >>> law
    TabularLaw(3 columns, 9 bins, kernel_width=1.299)
    >>> law.columns[0].bins
    ('≤ -0.4848', '> -0.4848 and ≤ 0.3281', '> 0.3281')
    """

    columns: tuple[BinnedColumn, ...]

    @classmethod
    def of(
        cls,
        columns: Sequence[BinnedColumn],
        kernel_width: float | None = None,
        labels: Labels | None = None,
    ) -> TabularLaw:
        """Sampling with the given bins; by default the kernel width is 0.75 √D.

        Parameters
        ----------
        columns : sequence of BinnedColumn (D,)
            The bins.
        kernel_width : float, optional
            ν > 0; by default the package's, 0.75 √D.
        labels : Labels, optional
            Names of the columns.

        Returns
        -------
        TabularLaw
            The law with weights by bits.
        """
        default = 0.75 * math.sqrt(len(columns))
        width = default if kernel_width is None else kernel_width
        width = read_positive(width, "kernel_width")
        return cls(tuple(columns), width, Labels() if labels is None else labels)

    @classmethod
    def from_data(
        cls,
        X: Any,
        schema: TableSchema | None = None,
        *,
        n_bins: BinsOfColumns = 4,
        kernel_width: float | None = None,
        weights: BinWeights = "frequency",
        categorical: Sequence[Hashable] = (),
    ) -> TabularLaw:
        """Sampling with the bins of a table, usually the training data of the model.

        A bin has a truncated normal law, with the mean and standard deviation of its
        rows as location and scale; a bin with a single value has that value. Categories
        are bins, and missing values are one.

        Parameters
        ----------
        X : DataFrame or array (m, D)
            The table.
        schema : TableSchema, optional
            The types of its columns, if some hold categories.
        n_bins : int, mapping or sequence
            The number of bins between quantiles of a column of numbers, at least 2; or
            inner edges. A mapping has them by names of columns (4 for others), a
            sequence one for each of D columns. Equal quantiles give fewer bins.
        kernel_width : float, optional
            ν > 0; by default the package's, 0.75 √D; the paper has √(0.75 D).
        weights : {"frequency", "uniform"}
            Whether a bin is drawn by its frequency in the data, as in the package, or
            all bins with data are drawn equally often, as in the paper.
        categorical : sequence of columns
            Positions or names of columns of categories, if there is no schema.

        Returns
        -------
        TabularLaw
            The law with weights by bits.

        Raises
        ------
        InvalidInput
            If the table cannot be read, or an argument is outside its range.
        """
        points, labels, schema, coded = read_data(X, schema, categorical)
        names = labels.feature_names(points.shape[1])
        columns = columns_of(points, names, schema, coded, n_bins, weights)
        return cls.of(columns, kernel_width, labels.of_columns())
