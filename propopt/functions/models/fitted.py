"""Fitted models and plain callables as functions under explanation."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from propopt._typing import Attributions, Points, Values
from propopt.errors import InvalidInput
from propopt.functions.base import EXACT, Function
from propopt.functions.differences import describe_step, differences
from propopt.functions.missing import missing_effects, refuse_missing
from propopt.functions.models.called import DifferencedModel
from propopt.functions.models.columns import FittedColumns
from propopt.quantity import Quantity
from propopt.structures.links import Link
from propopt.structures.networks import Network
from propopt.structures.products import NoProducts, SumOfProducts
from propopt.structures.readers.products.networks import network_products
from propopt.tables.atoms import Atoms
from propopt.tables.names import Labels, listed
from propopt.tables.schema import TableSchema


@dataclass(frozen=True, eq=False, repr=False)
class ExactModel(Function):
    """A fitted model whose scores and link are known, so its gradient is exact.

    It keeps the parameters that the model had when it was wrapped.
    """

    quantity: Quantity = field()
    columns: FittedColumns
    network: Network
    link: Link
    table: TableSchema | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.quantity})"

    @property
    def schema(self) -> TableSchema | None:
        """The table that it takes, where one was given."""
        return self.table

    @property
    def features(self) -> tuple[str, ...] | None:
        """The columns that the model was fitted on, where it tells."""
        return self.columns.names

    @cached_property
    def products(self) -> SumOfProducts | NoProducts:
        """Values as a sum of products, where scores and link are one."""
        if self.columns.count is None:
            return NoProducts("the model does not tell how many columns it takes")
        return network_products(self.network, self.link, self.columns.count)

    @property
    def gradient_method(self) -> str:
        """Always ``"exact"``."""
        return EXACT

    def _value(self, points: Points, labels: Labels, /) -> Values:
        self._check_points(points, labels)
        self.calls.add(len(points))
        values = np.empty(len(points))
        for rows in self.network.blocks(points):
            values[rows] = self.link.value(self.network.scores(points[rows]))
        return values

    def _check_points(self, points: Points, labels: Labels) -> None:
        self.columns.check(points, labels)
        absent = self.missing_columns(points, labels)
        if absent:
            raise InvalidInput(
                f"{self.quantity.model}: the model takes no missing values, and X has "
                f"some in {listed(absent)}; a pipeline that imputes them first would "
                "do, or a model that takes them"
            )

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        self._check_points(points, labels)
        self.calls.add(len(points))
        gradients = np.empty(points.shape)
        for rows in self.network.blocks(points):
            scores, pullback = self.network.linearized(points[rows])
            gradients[rows] = pullback(self.link.cotangents(scores))
        return gradients


@dataclass(frozen=True, eq=False, repr=False)
class NumericalModel(DifferencedModel):
    """A model that can only be called, so its gradient is by central differences.

    Parameters
    ----------
    atoms : tuple of Atoms (D,) or None
        The values of each column in a table, which effects of missing numbers are
        measured against; None where no table was given.
    """

    atoms: tuple[Atoms | None, ...] | None = None

    @property
    def observed(self) -> tuple[Atoms | None, ...] | None:
        """Those of the table that was given."""
        return self.atoms

    @property
    def gradient_method(self) -> str:
        """The rule of the differences and its step."""
        return describe_step(self._known_step)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        names = labels.of_columns()
        if self.atoms is None:
            refuse_missing(
                points, self.missing_columns(points, names), self.quantity.model
            )
        self._try_near(points, True, names)
        self._look_for_jumps(points, labels)

        def evaluate(changed: Points) -> Values:
            return self._read(changed, names)

        slopes = differences(evaluate, points, self._known_step)
        self._warn_if_flat(slopes)
        if self.atoms is None or not np.isnan(points).any():
            return slopes
        values = self._value(points, labels)
        return slopes + missing_effects(evaluate, points, values, self.atoms)
