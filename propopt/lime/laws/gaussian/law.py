"""The law of the linear paper: normal samples, weighted by their distance."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike

from propopt._typing import Array, Points
from propopt.checks import as_floats, read_array, read_positive
from propopt.errors import InvalidInput
from propopt.lime.bins.rules import BinsOfColumns, read_rules
from propopt.lime.laws.column import LimeColumn
from propopt.lime.laws.from_data import columns_of, read_data
from propopt.lime.laws.gaussian.column import NormalColumn
from propopt.lime.laws.gaussian.settings import (
    BinEnds,
    DistanceUnits,
    NormalSettings,
    SampleScale,
)
from propopt.lime.laws.of_columns import LawOfColumns
from propopt.tables.names import Labels
from propopt.tables.schema import TableSchema


FEW_BEYOND: Final = 3.0
"""Standard deviations from the mean of the samples, beyond which few are drawn."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class GaussianLaw(LawOfColumns):
    """Normal numbers with a bit for the bin of the row, weighted by distance.

    x̃_j ~ N(μ_j, σ_j²), z_j = 1[q_j⁻ ≤ x̃_j < q_j⁺] with the bin of the row, and
    π = exp(−Σ_j (x̃_j − ξ_j)² / (2 (u_j ν)²))  (Garreau and von Luxburg 2020,
    "Explaining the explainer"). Unlike :class:`TabularLaw`, which weights samples by
    how many bins they share with the row, a narrow kernel moves all samples to the row,
    within the bin and outside it: coefficients shrink with ν, and may change sign
    (:func:`critical_bandwidths`). A category is drawn by its frequency, and has a bit
    for that of the row; another one counts as a distance of 1, and so does a number
    that is missing on one side only.

    Parameters
    ----------
    columns : tuple of LimeColumn (D,)
        Numbers are normal columns; categories and constant columns have bins.
    kernel_width : float
        ν.
    labels : Labels
        Names of the columns.

    Examples
    --------
    >>> law = GaussianLaw.of([0.0, 0.0], scale=1.0, kernel_width=1.0)
    >>> law
    GaussianLaw(2 columns, 8 bins, kernel_width=1)
    >>> law.columns[0].bins[1]
    '≥ -0.6745 and < 0'
    """

    @classmethod
    def of(
        cls,
        mean: ArrayLike,
        scale: ArrayLike,
        kernel_width: float | None = None,
        n_bins: BinsOfColumns = 4,
        labels: Labels | None = None,
        *,
        unit: ArrayLike = 1.0,
    ) -> GaussianLaw:
        """The law of given means and scales, in bins of the same mass.

        Parameters
        ----------
        mean : array (D,)
            μ.
        scale : float or array (D,)
            σ > 0.
        kernel_width : float, optional
            ν > 0, by default 0.75 √(Σ_j (σ_j / u_j)²): what the ``lime`` package has,
            0.75 √D, in units of the scale.
        n_bins : int, str, mapping or sequence
            Bins of the same mass, at least 2, or inner edges; of one column or of all,
            as for :meth:`TabularLaw.from_data`.
        labels : Labels, optional
            Names of the columns.
        unit : float or array (D,)
            u > 0, in which distances are measured.

        Raises
        ------
        InvalidInput
            If a number is out of its range, or if lengths differ.
        """
        means = read_array(mean, "mean", ndim=1)
        scales = _read_each(scale, "scale", len(means))
        units = _read_each(unit, "unit", len(means))
        labels = Labels() if labels is None else labels
        labels.check((0, len(means)), "labels")
        rules = read_rules(n_bins, labels.feature_names(len(means)))
        columns = tuple(
            NormalColumn.of_rule(m, s, rule, u)
            for m, s, rule, u in zip(means.tolist(), scales, rules, units, strict=True)
        )
        return cls._of(columns, kernel_width, labels)

    @classmethod
    def from_data(
        cls,
        X: Any,
        schema: TableSchema | None = None,
        *,
        n_bins: BinsOfColumns = 4,
        kernel_width: float | None = None,
        scale: SampleScale = "per_feature",
        distance: DistanceUnits = "standardised",
        edges: BinEnds = "normal",
        categorical: Sequence[Hashable] = (),
    ) -> GaussianLaw:
        """The law with the means and standard deviations of a table.

        A column of one value keeps it, and has coefficient 0. Categories and missing
        numbers are drawn by their frequencies in X.

        Parameters
        ----------
        X : DataFrame or array (N, D)
            Usually the rows that the model was fitted on.
        schema : TableSchema, optional
            What the columns are, if some are categories.
        n_bins : int, str, mapping or sequence
            Bins of a column of numbers, at least 2, or inner edges; of one column or of
            all, as for :meth:`TabularLaw.from_data`.
        kernel_width : float, optional
            ν > 0; by default as :meth:`of` has it, 0.75 √D with standardised distances.
        scale : "per_feature", "common" or float
            σ: standard deviations of the columns, their root mean square for all, as
            the paper has it, or a number.
        distance : "standardised" or "raw"
            Whether distances are measured in units of σ, so that it does not matter
            what units columns have, or in those of X, as the paper does.
        edges : "normal" or "data"
            Whether bins have the same mass under the normal law, or the same number of
            rows of X. Samples are normal in both.
        categorical : sequence of columns
            Positions or names of columns whose values are categories, where there is
            no schema.

        Raises
        ------
        InvalidInput
            If a setting is out of its range, or the table cannot be read.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 4)) * [1, 10, 100, 0]
        >>> GaussianLaw.from_data(X).kernel_width
        1.5
        """
        settings = NormalSettings(scale=scale, distance=distance, edges=edges)
        points, labels, schema, coded = read_data(X, schema, categorical)
        names = labels.feature_names(points.shape[1])
        rules = read_rules(n_bins, names)
        binned = columns_of(points, names, schema, coded, 2, "frequency", package=False)
        columns = settings.columns(points, binned, coded, rules)
        return cls._of(columns, kernel_width, labels.of_columns())

    @classmethod
    def _of(
        cls, columns: tuple[LimeColumn, ...], width: float | None, labels: Labels
    ) -> GaussianLaw:
        if width is None:
            width = 0.75 * math.sqrt(sum(map(_extent, columns)))
        return cls(columns, read_positive(width, "kernel_width"), labels)

    def notes(self, points: Points) -> tuple[str, ...]:
        """Columns in which rows are far from the mean of the samples."""
        columns = zip(self.names, self.columns, points.T, strict=True)
        return tuple(
            f"{name}: {count} of {len(x)} rows are more than {FEW_BEYOND:g} standard "
            "deviations from the mean of the samples, where hardly any are drawn"
            for name, column, x in columns
            if isinstance(column, NormalColumn)
            and (count := int((column.distance(x) > FEW_BEYOND).sum())) > 0
        )


def _extent(column: LimeColumn) -> float:
    """(σ / u)²; 1 for columns that are not normal."""
    if isinstance(column, NormalColumn):
        return (column.scale / column.unit) ** 2
    return 1.0


def _read_each(value: ArrayLike, what: str, count: int) -> Sequence[float]:
    """One positive number for each column, of one for all or of so many."""
    sizes: Array = as_floats(value, what)
    if sizes.shape not in ((), (count,)):
        raise InvalidInput(
            f"{what}: expected a number or {count} of them, got an array of shape "
            f"{sizes.shape}"
        )
    for size in np.atleast_1d(sizes).tolist():
        read_positive(size, what)
    each: Sequence[float] = np.broadcast_to(sizes, count).tolist()
    return each
