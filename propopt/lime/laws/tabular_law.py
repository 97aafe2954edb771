"""Laws in bins of data or given ones: weighted by bits, as the package, or distance."""

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
    notes_of_bins,
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
    """Bins drawn by their shares, values by the law of their bin, weights by bits.

    π = exp(−‖1 − z‖² / (2 ν²)) (Garreau and von Luxburg 2020, Eq. 2).

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
        """The law of bins; without a width it is the package's, 0.75 √D.

        Parameters
        ----------
        columns : sequence of BinnedColumn (D,)
            The bins.
        kernel_width : float, optional
            ν > 0; by default the package's, 0.75 √D.
        labels : Labels, optional
            Names of the columns.
        """
        own = 0.75 * math.sqrt(len(columns)) if kernel_width is None else kernel_width
        width = read_positive(own, "kernel_width")
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
        """The law whose bins are those of a table, usually that of the model.

        A bin has the mean and the deviation of its rows as location and scale of a
        truncated normal law; a bin of one value draws that value; categories are bins,
        and so is to be missing, where something is.

        Parameters
        ----------
        X : DataFrame or array (m, D)
            The table.
        schema : TableSchema, optional
            What its columns are, if some are categories.
        n_bins : int, mapping or sequence
            Bins between quantiles of a column of numbers, at least 2; or inner edges. A
            mapping has them by names of columns (4 for others), a sequence one for each
            of D columns. Equal quantiles make fewer.
        kernel_width : float, optional
            ν > 0; by default the package's, 0.75 √D; the paper has √(0.75 D).
        weights : {"frequency", "uniform"}
            Whether a bin is drawn as often as it is in the data, as by the package, or
            all of a column that have data alike, as in the paper.
        categorical : sequence of columns
            Positions or names of columns whose values are categories, where there is
            no schema.

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
        """The law of bins that are given, by columns; what is not given is of data.

        A column of B bins is b with probability w_b, and then a normal number
        N(μ_b, σ_b²) restricted to its bin, low < V ≤ high: the inner edges, and
        outside the ends of the range. So μ_b and σ_b are where the normal law is and
        how wide, before it is cut; with l = (low − μ_b) / σ_b, r = (high − μ_b) / σ_b
        samples have the mean μ_b + σ_b (φ(l) − φ(r)) / (Φ(r) − Φ(l)). A bin with
        σ_b = 0 is the value μ_b. A sample whose bits z say which columns are in the bin
        of the row has the weight exp(−Σ_j (1 − z_j)² / (2 ν²)).

        Each argument is a mapping by name or position of columns, a DataFrame whose
        columns have these names, or has one entry for each of the D columns, None where
        nothing is given, so that an array (D, B) does. All numbers but probabilities
        are in units of their column.

        Parameters
        ----------
        edges : mapping, DataFrame, array (D, B − 1) or sequence
            Where bins end, finite and increasing, without the outer ends; an edge
            belongs to the bin below it. Without any, there is one bin, and no
            coefficient. By default quartiles of the data.
        means, deviations : mapping, DataFrame, array (D, B) or sequence, optional
            μ and σ ≥ 0; by default of the data in each bin, so that they are needed
            where there is no data, or none in a bin.
        probabilities : mapping, DataFrame, array (D, B) or sequence, optional
            w ≥ 0, which sum to 1; by default how often bins are in the data, and
            without data 1/B. One more, the last, is that a number is missing.
        ranges : mapping, DataFrame, array (D, 2) or sequence, optional
            The lowest and the highest number that is drawn, with the edges between;
            they may be infinite. Rows of data beyond do not count. By default the
            ends of the data, and infinite without.
        categories : mapping, or sequence of columns, optional
            The values of columns of categories, in the order of their probabilities;
            those of the data where none are given. Others are not drawn. Values that
            are no numbers need data with such columns.
        data : DataFrame or array (m, D), optional
            A table, usually that of the model; its names are those of the columns.
            Without it columns are in the order of the edges and categories.
        kernel_width : float, optional
            ν > 0; as for :meth:`from_data`.

        Raises
        ------
        InvalidInput
            If something is out of its range, missing, given twice, of another length
            than there are bins, or of an unknown column.

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
        """The bins of each row, which its limits depend on alone."""
        indices = [
            column.bin_index(x)
            for column, x in zip(self.columns, points.T, strict=True)
        ]
        return np.stack(indices, axis=1).astype(np.float64)

    def notes(self, points: Points) -> tuple[str, ...]:
        """Rows in bins never drawn, and beyond all; columns of one bin, or of few.

        Parameters
        ----------
        points : array (n, D)
            The rows that are explained.

        Examples
        --------
        >>> import numpy as np
        >>> law = TabularLaw.from_data(np.arange(8.0)[:, None], n_bins=2)
        >>> law.notes(np.array([[9.5], [1.0]]))
        ("1 row has values beyond all that LIME draws; ...: 'x0'",)
        """
        return notes_of_bins(self.names, self.columns, points)


@final
@suggests_arguments
@dataclass(frozen=True, eq=False, repr=False)
class SmoothLaw(LimeLaw):
    """Bins drawn as by a :class:`TabularLaw`, weights by distance between numbers.

    π = exp(−Σ_j (ξ_j − x̃_j)² / (2 ν²))  (Garreau and von Luxburg 2020, Appendix A).
    Bits are those of bins still, and categories are weighted by them. Coefficients
    depend on where the row is within its bins, and for linear functions on ν.

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
        """The bins of a law, with other weights.

        Parameters
        ----------
        law : TabularLaw
            The bins.
        kernel_width : float, optional
            ν > 0, in the unit of the columns, which is to be one for all; that of
            the law if None.

        Raises
        ------
        InvalidInput
            If it is no such law, or the width is not positive.
        """
        if not isinstance(law, TabularLaw):
            raise InvalidInput(
                "law: expected the bins of a TabularLaw, such as TabularLaw.from_data"
                f"(X), got {type(law).__name__}"
            )
        columns = [replace(own, by_distance=not own.coded) for own in law.columns]
        width = law.kernel_width if kernel_width is None else kernel_width
        return cls(tuple(columns), read_positive(width, "kernel_width"), law.labels)

    def notes(self, points: Points) -> tuple[str, ...]:
        """Those of the bins."""
        return notes_of_bins(self.names, self.columns, points)
