"""How inputs are read, and where they lie for the kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from propopt._typing import Array, Attributions, Points
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.functions import Function
from propopt.functions.base import read_function
from propopt.tables.alignment import aligned
from propopt.tables.frames import is_frame
from propopt.tables.names import Labels, differ, read_table
from propopt.tables.schema import Scale, TableSchema, array_scales


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
        What columns are divided by; None leaves them, and makes no copy.
    """

    count: int
    names: tuple[str, ...] | None
    sizes: Array | None

    @property
    def n_features(self) -> int:
        return self.count

    def read(self, X: Any, what: str) -> tuple[Points, Labels]:
        points, labels = read_table(X, what)
        if points.shape[1] != self.n_features:
            raise InvalidInput(
                f"{what}: expected {self.n_features} features as in fit, got "
                f"{points.shape[1]}"
            )
        if differ(labels.features, self.names):
            raise InvalidInput(
                f"{what}: its columns are not those of fit, in that order"
            )
        places = points if self.sizes is None else points / self.sizes
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
    scale: Scale

    @property
    def n_features(self) -> int:
        return len(self.schema.names)

    def read(self, X: Any, what: str) -> tuple[Points, Labels]:
        _, labels = self.schema.encode(X, what)
        return self.schema.coordinates(X, self.scale), labels


def read_inputs(
    X: Any, function: object, scale: Scale
) -> tuple[Inputs, Points, Labels]:
    """The columns of X, as the function takes them if one is given; and X, read."""
    if isinstance(function, Function) and function.schema is not None:
        inputs = TableInputs(function.schema, scale)
        return inputs, *inputs.read(X, "X")
    points, labels = read_table(X, "X")
    sizes = None if scale is None else array_scales(points, scale)
    numeric = NumericInputs(points.shape[1], labels.features, sizes)
    return numeric, points if sizes is None else points / sizes, labels


def one_of(gradients: object, function: object) -> object:
    """The one of the two that was given."""
    if (gradients is None) == (function is None):
        raise InvalidInput("fit: give either gradients or function=, one of the two")
    return gradients if function is None else read_function(function)


def read_gradients(
    source: object, X: Any, labels: Labels, shape: tuple[int, ...]
) -> Attributions:
    """Gradients at X, given or from a function; names are put in the order of X."""
    given = source
    if isinstance(source, Function):
        given = source.gradient(X if is_frame(X, "X") else np.asarray(X))
    gradients = aligned(given, labels, "gradients", "X")
    if gradients.shape != shape:
        raise InvalidInput(
            f"gradients: expected shape {shape} as X, got {gradients.shape}"
        )
    return gradients


def read_restarts(n_restarts: object) -> int:
    """At least zero."""
    if n_restarts == 0:
        return 0
    try:
        return read_count(n_restarts, "n_restarts")
    except InvalidInput:
        raise InvalidInput(
            f"n_restarts: expected an integer >= 0, got {n_restarts!r}"
        ) from None
