"""Laws with bins of data or given bins: weights by bits, or by distance."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from propopt.base.arrays import Points
from propopt.base.checks import read_positive
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.lime.laws.binned_columns import (
    BinnedColumn,
    BinsOfColumns,
    BinWeights,
    columns_of,
    read_data,
)
from propopt.lime.laws.given_bins import given_columns
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

    @classmethod
    def of_bins(
        cls,
        edges: Any = None,
        *,
        means: Any = None,
        deviations: Any = None,
        probabilities: Any = None,
        ranges: Any = None,
        categories: Any = None,
        data: Any = None,
        kernel_width: float | None = None,
    ) -> TabularLaw:
        """Sampling with given bins; frequencies, means and spreads come from the data.

        A sample of a column is in bin b with probability w_b, and then a normal number
        N(μ_b, σ_b²) truncated to its bin, low < V ≤ high: the inner edges, and the ends
        of the range outside. μ_b and σ_b are the location and scale before truncation:
        with l = (low − μ_b) / σ_b, r = (high − μ_b) / σ_b samples have the mean
        μ_b + σ_b (φ(l) − φ(r)) / (Φ(r) − Φ(l)). A bin with σ_b = 0 is the value μ_b.
        With bits z for the columns that are in the bin of the row, a sample has the
        weight exp(−Σ_j (1 − z_j)² / (2 ν²)).

        Each argument is a mapping by name or position of columns, a DataFrame with
        these column names, or has one entry for each of the D columns, None for missing
        ones; an array (D, B) works too. All numbers except probabilities are in units
        of their column.

        Parameters
        ----------
        edges : mapping, DataFrame, array (D, B − 1) or sequence
            The inner edges of bins, finite and increasing; an edge belongs to the bin
            below it. No edges give one bin, and no coefficient. By default quartiles of
            the data.
        means, deviations : mapping, DataFrame, array (D, B) or sequence, optional
            μ and σ ≥ 0; by default those of the data in each bin. They are required
            without data, or for a bin without data.
        probabilities : mapping, DataFrame, array (D, B) or sequence, optional
            w ≥ 0 with the sum 1; by default the frequencies in the data, and 1/B
            without data. One additional number, the last, is that of missing values.
        ranges : mapping, DataFrame, array (D, 2) or sequence, optional
            The lowest and the highest number of samples, with the edges in between;
            they may be infinite. Rows of data beyond do not count. By default the range
            of the data, and infinite without data.
        categories : mapping, or sequence of columns, optional
            The values of columns of categories, in the order of their probabilities; by
            default those of the data. Other categories are not sampled. Text needs data
            with such columns.
        data : DataFrame or array (m, D), optional
            A table, usually the training data of the model, with the names of columns.
            Without it columns are in the order of the edges and categories.
        kernel_width : float, optional
            ν > 0; as for :meth:`from_data`.

        Returns
        -------
        TabularLaw
            The law with weights by bits.

        Raises
        ------
        InvalidInput
            If an argument is out of its range, missing, given twice, has another length
            than there are bins, or has an unknown column.

        Examples
        --------
        >>> law = TabularLaw.of_bins(
        ...     {"age": [30, 45, 60], "bmi": [25]},
        ...     means={"age": [25, 38, 52, 70], "bmi": [22, 30]},
        ...     deviations={"age": [4, 4, 4, 8], "bmi": [2, 4]},
        ...     probabilities={"age": [0.2, 0.3, 0.3, 0.2]},
        ...     ranges={"age": [18, 100]},
        ... )
        >>> law
        TabularLaw(2 columns, 6 bins, kernel_width=1.061)
        >>> law.columns[0].bins
        ('≤ 30', '> 30 and ≤ 45', '> 45 and ≤ 60', '> 60')
        >>> law.columns[1].shares
        array([0.5, 0.5])
        """
        parts = (edges, means, deviations, probabilities, ranges)
        columns, labels = given_columns(parts, categories, data)
        return cls.of(columns, kernel_width, labels)

    def cells(self, points: Points) -> Points:
        """The bins (n, D) of each row, which determine its coefficients."""
        indices = [
            column.bin_index(x)
            for column, x in zip(self.columns, points.T, strict=True)
        ]
        return np.stack(indices, axis=1).astype(np.float64)


@final
@suggests_arguments
@dataclass(frozen=True, eq=False, repr=False)
class SmoothLaw(LimeLaw):
    """The samples of a :class:`TabularLaw` with weights by distance between numbers.

    π = exp(−Σ_j (ξ_j − x̃_j)² / (2 ν²))  (Garreau and von Luxburg 2020, Appendix A).
    Bits are still those of bins, and weight categories. Coefficients depend on the
    position of the row within its bins, and for linear functions on ν.

    Parameters
    ----------
    columns : tuple of BinnedColumn (D,)
        Numbers, weighted by distance, and categories.
    kernel_width : float
        ν.
    labels : Labels
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> bins = TabularLaw.from_data(np.random.default_rng(0).normal(size=(200, 2)))
    >>> law = SmoothLaw.of(bins, kernel_width=0.5)
    >>> law
    SmoothLaw(2 columns, 8 bins, kernel_width=0.5)
    >>> law.columns[0].tilt(np.array([0.1]), np.array([0.5])).alpha.round(2)
    array([0.56])
    """

    columns: tuple[BinnedColumn, ...]

    @classmethod
    def of(cls, law: TabularLaw, kernel_width: float | None = None) -> SmoothLaw:
        """Sampling in the bins of another law, with weights by distance.

        Parameters
        ----------
        law : TabularLaw
            The bins.
        kernel_width : float, optional
            ν > 0, in the unit of the columns, which has to be the same for all; by
            default the width of the law.

        Returns
        -------
        SmoothLaw
            The law with weights by distance.

        Raises
        ------
        InvalidInput
            If the law is not a TabularLaw, or the width is not positive.
        """
        if not isinstance(law, TabularLaw):
            raise InvalidInput(
                "law: expected the bins of a TabularLaw, such as TabularLaw.from_data"
                f"(X), got {type(law).__name__}"
            )
        columns = [replace(x, by_distance=not x.coded) for x in law.columns]
        width = law.kernel_width if kernel_width is None else kernel_width
        return cls(tuple(columns), read_positive(width, "kernel_width"), law.labels)
