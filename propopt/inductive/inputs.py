"""How inputs are read, and where they lie for the kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from propopt._typing import Array, Points
from propopt.errors import InvalidInput
from propopt.functions import Function
from propopt.tables.names import Labels, differ, read_points
from propopt.tables.schema import ColumnScale, TableSchema, array_scales, per_scale


class Inputs(ABC):
    """What a fit remembers of its table: columns, and units of distances."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """How many attributions an input gets."""

    @abstractmethod
    def read(self, X: Any, what: str) -> tuple[Points, Labels]:
        """Where the rows lie, and the names of rows and features.

        Raises
        ------
        InvalidInput
            If X is not a table like that of the fit.
        """


@final
@dataclass(frozen=True, eq=False)
class NumericInputs(Inputs):
    """Tables of numbers.

    Parameters
    ----------
    count : int
        D.
    names : tuple of str or None
        Of the columns.
    sizes : array (D,) or None
        What columns are divided by, 0 for those that have no part in distances; None
        leaves them, and makes no copy.
    """

    count: int
    names: tuple[str, ...] | None
    sizes: Array | None

    @property
    def n_features(self) -> int:
        return self.count

    def read(self, X: Any, what: str) -> tuple[Points, Labels]:
        points, labels = read_points(X, what)
        if points.shape[1] != self.n_features:
            raise InvalidInput(
                f"{what}: expected {self.n_features} features as in fit, got "
                f"{points.shape[1]}"
            )
        if differ(labels.features, self.names):
            raise InvalidInput(
                f"{what}: its columns are not those of fit, in that order"
            )
        _refuse_missing(points, what)
        places = points if self.sizes is None else per_scale(points, self.sizes)
        return places, Labels(labels.points, labels.features or self.names)


@final
@dataclass(frozen=True, eq=False)
class TableInputs(Inputs):
    """DataFrames of a schema: categories are one-hot over √2.

    Parameters
    ----------
    schema : TableSchema
        That of the function.
    scale : "std", None, mapping or array
        What numeric columns are divided by.
    """

    schema: TableSchema
    scale: ColumnScale

    @property
    def n_features(self) -> int:
        return len(self.schema.names)

    def read(self, X: Any, what: str) -> tuple[Points, Labels]:
        points, labels = self.schema.encode(X, what)
        _refuse_missing(points, what)
        return self.schema.coordinates(X, self.scale), labels


def _refuse_missing(points: Points, what: str) -> None:
    """Refuse what has no place for a kernel.

    Distances with missing numbers are no distances of points, and a kernel of them is
    not positive definite.
    """
    absent = np.isnan(points)
    if absent.any():
        raise InvalidInput(
            f"{what}: numbers are missing (NaN) in {int(absent.any(axis=1).sum())} of "
            f"{len(points)} rows, and no kernel is positive definite between such "
            "rows; impute them (sklearn.impute.SimpleImputer(add_indicator=True)), or "
            "take po.Explainer, which takes them as they are"
        )


def read_inputs(
    X: Any, function: object, scale: ColumnScale
) -> tuple[Inputs, Points, Labels]:
    """The columns of X, as the function takes them if one is given; and X, read."""
    if isinstance(function, Function) and function.schema is not None:
        inputs = TableInputs(function.schema, scale)
        return inputs, *inputs.read(X, "X")
    points, labels = read_points(X, "X")
    _refuse_missing(points, "X")
    sizes = None if scale is None else array_scales(points, scale)
    numeric = NumericInputs(points.shape[1], labels.features, sizes)
    return numeric, points if sizes is None else per_scale(points, sizes), labels
