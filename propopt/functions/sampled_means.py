"""Means of any function under the data law, drawn until they are precise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import pandas as pd
from numpy.typing import ArrayLike

from propopt.base.arrays import Attributions, Points, Values
from propopt.base.errors import InvalidInput
from propopt.functions.function import Function, OfFunction
from propopt.laws.data_law import DataLaw, Means
from propopt.laws.draws import (
    N_BLOCKS,
    Control,
    Design,
    Sample,
)
from propopt.losses.faithfulness import Estimate
from propopt.structures.boxes.boxes import Boxes
from propopt.tables.frames import Labels


# ---- Means of any function under the data law, by draws


@final
@dataclass(frozen=True, eq=False, repr=False)
class SampledMean(OfFunction):
    """The mean of any function under the data law, E f(V), by draws of V.

    Its "gradient" is that of :class:`ExactMean`, estimated: of numbers by least squares
    slopes, cross-fitted between 10 blocks of draws so that each block is unbiased; of
    columns of two values, of categories and of missing numbers by pairs of draws that
    differ in nothing else, so that those that f does not use have exactly 0. Draws are
    the same for all rows and in all calls. Make it by :func:`smoothed`.
    """

    function: Function  # f
    law: DataLaw
    n_samples: int  # draws around each row, a multiple of 10
    seed: int  # that of the draws
    control: Boxes | None = None  # a score that f is nearly a multiple of

    def __repr__(self) -> str:
        draws = f"n_samples={self.n_samples}"
        return f"{type(self).__name__}({self.function!r}, {self.law!r}, {draws})"

    @property
    def gradient_method(self) -> str:
        """The number of draws, what is made of them, and the rows of the law."""
        return f"{self.n_samples} draws, {self._source}"

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        return self.growing_at(points, labels).estimate

    def growing(
        self,
        X: ArrayLike | pd.DataFrame,  # shape (N, D)
        n_draws: int | None = None,  # to begin with; n_samples by default
        # begin with fewer draws where those would take more
        max_evaluations: int | None = None,
    ) -> Sample:
        """The draws at some rows, which can be drawn on, with their estimate."""
        return self.growing_at(*self.read(X), n_draws, max_evaluations)

    def growing_at(
        self,
        points: Points,  # shape (N, D)
        labels: Labels,
        n_draws: int | None = None,
        max_evaluations: int | None = None,
    ) -> Sample:
        """:meth:`growing` at points that are read."""
        first = self.n_samples if n_draws is None else n_draws
        design = self._design(points)
        if max_evaluations is not None:
            first = min(first, design.cost.affordable(max_evaluations))
        names = labels.of_columns()

        def evaluate(points: Points) -> Values:
            try:
                return self.function.value_at(points, names)
            except InvalidInput as error:
                raise InvalidInput(f"at drawn points: {error}") from error

        return Sample.of(design, evaluate, first, self._source, labels)

    def per_draw_at(self, points: Points) -> int:
        """Rows that the model is given for one draw around each of points (N, D)."""
        return Design(self.law, points, self.seed).per_draw

    def _value(self, points: Points, labels: Labels, /) -> Values:
        return self.growing_at(points, labels).fit.means.mean(axis=0)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        return self.growing_at(points, labels).estimate.values

    def _design(self, points: Points) -> Design:
        design = Design(self.law, points, self.seed)
        if self.control is None:
            return design
        means, attributions = Means(self.control, self.law).of(points)
        return replace(design, control=Control(self.control.value, means, attributions))

    @property
    def _source(self) -> str:
        known = "" if self.control is None else " and the exact margin as control"
        of_rows = self.law.reference.in_words()
        rule = f"least squares between blocks{known}"
        return f"{N_BLOCKS} blocks, {rule}, data law of {of_rows}"
