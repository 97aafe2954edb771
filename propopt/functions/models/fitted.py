"""Fitted models and plain callables as functions under explanation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from propopt._typing import Attributions, Points, Values
from propopt.functions.base import EXACT, Function
from propopt.functions.differences import describe_step, differences
from propopt.functions.models.called import DifferencedModel
from propopt.functions.models.columns import FittedColumns
from propopt.structures.links import Link
from propopt.structures.networks import Network
from propopt.tables.names import Labels
from propopt.tables.schema import TableSchema


@dataclass(frozen=True, eq=False, repr=False)
class ExactModel(Function):
    """A fitted model whose scores and link are known, so its gradient is exact.

    It keeps the parameters that the model had when it was wrapped.
    """

    name: str
    columns: FittedColumns
    network: Network
    link: Link
    table: TableSchema | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    @property
    def schema(self) -> TableSchema | None:
        """The table that it takes, where one was given."""
        return self.table

    @property
    def features(self) -> tuple[str, ...] | None:
        """The columns that the model was fitted on, where it tells."""
        return self.columns.names

    @property
    def gradient_method(self) -> str:
        """Always ``"exact"``."""
        return EXACT

    def _value(self, points: Points, labels: Labels, /) -> Values:
        self.columns.check(points, labels)
        self.calls.add(len(points))
        values = np.empty(len(points))
        for rows in self.network.blocks(points):
            values[rows] = self.link.value(self.network.scores(points[rows]))
        return values

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        self.columns.check(points, labels)
        self.calls.add(len(points))
        gradients = np.empty(points.shape)
        for rows in self.network.blocks(points):
            scores, pullback = self.network.linearized(points[rows])
            gradients[rows] = pullback(self.link.cotangents(scores))
        return gradients


class NumericalModel(DifferencedModel):
    """A model that can only be called, so its gradient is by central differences."""

    @property
    def gradient_method(self) -> str:
        """The rule of the differences and its step."""
        return describe_step(self._known_step)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        names = labels.of_columns()
        self._try_near(points, True, names)
        self._look_for_jumps(points, labels)
        slopes = differences(
            lambda shifted: self._read(shifted, names), points, self._known_step
        )
        self._warn_if_flat(slopes)
        return slopes
