"""The law of tabular LIME with weights by distance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from propopt._typing import Array, Points
from propopt.checks import did_you_mean, read_positive
from propopt.errors import InvalidInput
from propopt.lime.laws.binned import BinnedColumn
from propopt.lime.laws.notes import notes_of_bins
from propopt.lime.laws.of_columns import LawOfColumns
from propopt.lime.laws.smooth.column import SmoothColumn
from propopt.lime.laws.smooth.polyline import Polyline
from propopt.lime.laws.tabular import TabularLaw
from propopt.tables.names import listed


Tau: TypeAlias = Polyline | Callable[[Array], Array]


@final
@dataclass(frozen=True, eq=False, repr=False)
class SmoothLaw(LawOfColumns):
    """Bins drawn as by a :class:`TabularLaw`, weights by distance between numbers.

    π = exp(−Σ_j (τ_j(ξ_j) − τ_j(x̃_j))² / (2 ν²))  (Garreau and von Luxburg 2020,
    Appendix A). Bits are those of bins still, and categories are weighted by them. With
    widths of columns, each is divided by its own. Coefficients depend on where the row
    is within its bins, and for linear functions on ν.

    Parameters
    ----------
    columns : tuple of SmoothColumn or BinnedColumn (D,)
        Numbers, and categories.
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

    columns: tuple[SmoothColumn | BinnedColumn, ...]

    @classmethod
    def of(
        cls,
        law: TabularLaw,
        tau: Tau | Sequence[Tau] | Mapping[str, Tau] | None = None,
        kernel_width: float | None = None,
    ) -> SmoothLaw:
        """The bins of a law, with other weights.

        Parameters
        ----------
        law : TabularLaw
            The bins; and ratios of the widths of columns.
        tau : callable, Polyline, sequence or mapping, optional
            τ of all columns, of each of D, or by names of columns; x itself for others.
            A callable is taken at 129 numbers between the ends of the data, and is
            straight between them.
        kernel_width : float, optional
            ν > 0, in units of τ; that of the law if None.

        Raises
        ------
        InvalidInput
            If a name is unknown, there are not D functions, or one is not finite.
        """
        if not isinstance(law, TabularLaw):
            raise InvalidInput(
                "law: expected the bins of a TabularLaw, such as TabularLaw.from_data"
                f"(X), got {type(law).__name__}"
            )
        names = law.labels.feature_names(len(law.columns))
        columns = tuple(
            column if column.coded else SmoothColumn(column, _line(own, column))
            for column, own in zip(law.columns, _each(tau, names), strict=True)
        )
        width = law.kernel_width if kernel_width is None else kernel_width
        return cls(columns, read_positive(width, "kernel_width"), law.labels)

    def notes(self, points: Points) -> tuple[str, ...]:
        """Those of the bins."""
        columns = [
            column.binned if isinstance(column, SmoothColumn) else column
            for column in self.columns
        ]
        return notes_of_bins(self.names, columns, points)


def _each(tau: Any, names: Sequence[str]) -> list[Tau]:
    """τ of each column."""
    if isinstance(tau, Mapping):
        unknown = [name for name in tau if name not in names]
        if unknown:
            raise InvalidInput(
                f"tau: no column {listed(unknown)}{did_you_mean(unknown[0], names)}"
            )
        return [tau.get(name, Polyline.identity()) for name in names]
    if tau is None:
        return [Polyline.identity()] * len(names)
    if not isinstance(tau, Sequence):
        return [tau] * len(names)
    if len(tau) != len(names):
        raise InvalidInput(
            f"tau: expected one for each of {len(names)} columns, got {len(tau)}"
        )
    return list(tau)


def _line(tau: Tau, column: BinnedColumn) -> Polyline:
    if isinstance(tau, Polyline):
        return tau
    if not callable(tau):
        raise InvalidInput(f"tau: expected a function of numbers, got {tau!r}")
    low, high = column.extent
    if low == high:
        return Polyline(np.array([low, low + 1.0]), np.repeat(tau(np.array([low])), 2))
    return Polyline.of(tau, low, high)
