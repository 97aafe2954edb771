"""Means of any function under the data law, by draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import pandas as pd
from numpy.typing import ArrayLike

from propopt._typing import Attributions, Points, Values
from propopt.errors import InvalidInput
from propopt.estimates import Estimate
from propopt.functions.base import Function
from propopt.functions.calls import Calls
from propopt.functions.smoothing.growing import (
    GrowingEstimate,
    affordable_draws,
    require_affordable,
    require_draws,
)
from propopt.quantity import Quantity
from propopt.sampling.drawn import Control, Design, Sample
from propopt.sampling.drawn.uniforms import N_BLOCKS
from propopt.sampling.laws import BoxMeans, DataLaw
from propopt.structures.boxes import Boxes
from propopt.tables.names import Labels
from propopt.tables.schema import TableSchema


@final
@dataclass(frozen=True, eq=False, repr=False)
class SampledMean(Function):
    """The mean of any function under the data law, E f(V), by draws of V.

    Its "gradient" is that of :class:`ExactMean`, estimated: of numbers by least squares
    slopes, cross-fitted between 10 blocks of draws so that each block is unbiased; of
    columns of two values, of categories and of missing numbers by pairs of draws that
    differ in nothing else, so that columns that f does not use have exactly 0. Draws
    are the same for all rows and in all calls. Make it by :func:`smoothed`.

    Parameters
    ----------
    function : Function
        f.
    law : DataLaw
        The law of the columns.
    n_samples : int
        Draws around each row, a multiple of 10.
    seed : int
        That of the draws.
    paired : bool
        Whether numbers are taken by pairs too: exact zeros of unused columns, for 1 + D
        evaluations per draw.
    control : Boxes or None
        A score that f is nearly a multiple of, such as the margin of a probability: its
        exact means and slopes take chance off those of f.
    """

    function: Function
    law: DataLaw
    n_samples: int
    seed: int
    paired: bool = False
    control: Boxes | None = None

    def __repr__(self) -> str:
        draws = f"n_samples={self.n_samples}"
        return f"{type(self).__name__}({self.function!r}, {self.law!r}, {draws})"

    @cached_property
    def quantity(self) -> Quantity:
        """That of the function, whose mean it is."""
        return self.function.quantity

    @property
    def gradient_method(self) -> str:
        """The number of draws, what is made of them, and the rows of the law."""
        return f"{self.n_samples} draws, {self._source}"

    @property
    def schema(self) -> TableSchema | None:
        """That of the function."""
        return self.function.schema

    @property
    def features(self) -> tuple[str, ...] | None:
        """Those of the function."""
        return self.function.features

    @cached_property
    def calls(self) -> Calls:
        """Those of the function."""
        return self.function.calls

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        return self._growing_at(points, labels, self.n_samples, None).estimate

    def growing(
        self,
        X: ArrayLike | pd.DataFrame,
        n_draws: int | None = None,
        max_evaluations: int | None = None,
    ) -> GrowingEstimate:
        """The estimate at some rows, which can be drawn on.

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The rows.
        n_draws : int, optional
            To begin with; ``n_samples`` by default.
        max_evaluations : int, optional
            Begin with fewer draws where those would take more, but no fewer than slopes
            need.

        Raises
        ------
        InvalidInput
            If these draws are too few for slopes, or evaluations too few for draws.
        """
        first = self.n_samples if n_draws is None else n_draws
        return self._growing_at(*self.read(X), first, max_evaluations)

    def _growing_at(
        self, points: Points, labels: Labels, first: int, max_evaluations: int | None
    ) -> GrowingEstimate:
        design = self._design(points)
        if max_evaluations is not None:
            require_affordable(design.per_draw, design.fewest, max_evaluations)
            first = min(first, affordable_draws(design.per_draw, max_evaluations))
        sample = self._sample(design, labels, first)
        notes = self.law.notes(points)
        return GrowingEstimate(sample, self._source, labels, notes)

    def estimates(
        self, X: ArrayLike | pd.DataFrame, max_evaluations: int
    ) -> Iterator[Estimate]:
        """Estimates from more and more draws, each twice as many, while there are some.

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The rows.
        max_evaluations : int
            The most rows that the model is given for the last of them.

        Yields
        ------
        Estimate
            From the draws of the last one and as many more.
        """
        growing = self.growing(X, max_evaluations=max_evaluations)
        most = affordable_draws(growing.sample.design.per_draw, max_evaluations)
        yield growing.estimate
        while growing.n_draws < most:
            growing = growing.extended(min(2 * growing.n_draws, most))
            yield growing.estimate

    def evaluations(
        self, X: ArrayLike | pd.DataFrame, n_draws: int | None = None
    ) -> int:
        """How many rows the model will be given for an estimate, exactly."""
        points, _ = self.read(X)
        first = self.n_samples if n_draws is None else n_draws
        return first * self._uncontrolled(points).per_draw

    def _value(self, points: Points, labels: Labels, /) -> Values:
        design = self._design(points)
        sample = self._sample(design, labels, self.n_samples)
        return sample.blocks().means.mean(axis=0)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        design = self._design(points)
        sample = self._sample(design, labels, self.n_samples)
        return sample.blocks().slopes.mean(axis=0)

    def _sample(self, design: Design, labels: Labels, n_draws: int) -> Sample:
        names = labels.of_columns()
        require_draws(len(design.points), n_draws)

        def evaluate(points: Points) -> Values:
            try:
                return self.function.value_at(points, names)
            except InvalidInput as error:
                raise InvalidInput(f"at drawn points: {error}") from error

        return Sample.of(design, evaluate, n_draws)

    def _design(self, points: Points) -> Design:
        design = self._uncontrolled(points)
        if self.control is None:
            return design
        means, attributions = BoxMeans(self.control, self.law).of(points)
        control = Control(self.control.value, means, attributions)
        return replace(design, control=control)

    def _uncontrolled(self, points: Points) -> Design:
        return Design(self.law, points, self.seed, self.paired)

    @property
    def _source(self) -> str:
        rule = "pairs" if self.paired else "least squares between blocks"
        known = "" if self.control is None else " and the exact margin as control"
        of_rows = self.law.reference.in_words()
        return f"{N_BLOCKS} blocks, {rule}{known}, data law of {of_rows}"
