"""Models that are read as sums of trees."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

from propopt._typing import Points
from propopt.errors import InexactBoxesWarning
from propopt.functions.models.columns import FittedColumns
from propopt.functions.models.outputs import name_of
from propopt.structures.boxes import Boxes
from propopt.structures.pipelines import UNREADABLE
from propopt.structures.products import NoProducts, SumOfProducts
from propopt.structures.readers.trees.pipelines.views import View
from propopt.structures.registry import exact_boxes, exact_products
from propopt.tables.names import Labels
from propopt.tables.schema import TableSchema


@final
@dataclass(frozen=True, eq=False)
class ReadTrees:
    """An output of a model, as the sum of trees that it may be; read when asked for.

    Parameters
    ----------
    model : estimator or callable
        Any model.
    output : str
        Such as ``"probability"``.
    index : int or None
        The class, or the column of the output.
    schema : TableSchema or None
        The table that the model is given; None for a table of numbers.
    """

    model: Any
    output: str
    index: int | None
    schema: TableSchema | None = None

    @cached_property
    def boxes(self) -> Boxes | None:
        """The output itself; None where it is no sum of trees."""
        return self._read(self.output)

    @cached_property
    def margin_boxes(self) -> Boxes | None:
        """The score that the output is made of, which may be the output itself."""
        return self.boxes if self.boxes is not None else self._read("margin")

    @cached_property
    def products(self) -> SumOfProducts | NoProducts:
        """The output as a sum of products; the reason where it is none."""
        if self.boxes is not None:
            return self.boxes.as_products()
        view = self._view()
        if view is None:
            return NoProducts(f"{name_of(self.model)} can only be called")
        try:
            return exact_products(self.model, self.output, self.index, view)
        except UNREADABLE as error:
            return NoProducts(
                f"{name_of(self.model)} cannot be read: {type(error).__name__}: {error}"
            )

    def _read(self, output: str) -> Boxes | None:
        view = self._view()
        if view is None:
            return None
        try:
            return exact_boxes(self.model, output, self.index, view)
        except UNREADABLE as error:
            _warn_unread(name_of(self.model), error)
            return None

    def _view(self) -> View | None:
        if self.schema is not None:
            return View.of_schema(self.schema)
        columns = FittedColumns.of(self.model)
        if columns.count is None:
            return None

        def table(points: Points) -> Any:
            return columns.table(points, Labels())

        return View.of_numbers(columns.count, table)


def _warn_unread(name: str, error: Exception) -> None:
    """Libraries may keep trees in another way in versions to come."""
    warnings.warn(
        f"{name}: its trees cannot be read, so means and slopes are sampled; the "
        f"reason is {type(error).__name__}: {error}",
        InexactBoxesWarning,
        stacklevel=2,
    )
