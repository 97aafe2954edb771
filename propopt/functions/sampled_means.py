"""Means of any function under the data law, drawn until they are precise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

import pandas as pd
from numpy.typing import ArrayLike

from propopt.base.arrays import Attributions, Points, Values
from propopt.base.checks import read_count, read_positive
from propopt.base.errors import InvalidInput
from propopt.base.resources import require_memory
from propopt.functions.function import Function, OfFunction
from propopt.laws.data_law import DataLaw, Means
from propopt.laws.draws import N_BLOCKS, Control, Design, Sample
from propopt.losses.faithfulness import Estimate
from propopt.structures.boxes.boxes import Boxes
from propopt.tables.frames import Labels


# ---- Means of any function under the data law, by draws


_MARGIN: Final = 1.2
"""Errors are estimates: so much more is drawn than they ask for."""

_LEAST_GROWTH, _MOST_GROWTH = 1.5, 4.0
"""Factors on the number of draws, from one look at the error to the next."""


@final
@dataclass(frozen=True, eq=False)
class GrowingEstimate:
    """An estimate from draws, to which more can be added; none of them are wasted."""

    sample: Sample  # the draws, and the values there
    source: str  # how the estimate is made, without the number of draws
    labels: Labels  # names of points and features
    notes: tuple[str, ...]  # what a reader has to know

    @property
    def n_draws(self) -> int:
        """Draws around each row."""
        return self.sample.n_draws

    @property
    def evaluations(self) -> int:
        """Rows that the model was given, from the first draw on."""
        return self.sample.evaluations

    @cached_property
    def estimate(self) -> Estimate:
        """What the draws say, with blocks that tell its error."""
        blocks = self.sample.blocks().slopes
        design = self.sample.design
        return Estimate(
            values=blocks.mean(axis=0),
            source=f"{self.n_draws} draws, {self.source}",
            blocks=blocks,
            n_draws=self.n_draws,
            evaluations=self.evaluations,
            labels=self.labels,
            effects=design.law.has_effects(design.points),
            notes=self.notes,
        )

    def extended(self, n_draws: int) -> GrowingEstimate:
        """The same with more draws: equal, bit for bit, to so many drawn at once."""
        require_draws(len(self.sample.values), n_draws)
        grown = self.sample.extended(n_draws)
        return GrowingEstimate(grown, self.source, self.labels, self.notes)

    def until(
        self,
        error: Callable[[Estimate], float],  # of an estimate
        precision: float,  # where to stop: the first time that the error is not larger
        # the most rows that the model is given, all draws together
        max_evaluations: int | None = None,
    ) -> GrowingEstimate:
        """Draw on until an error is small enough, or evaluations would be too many.

        The error is taken to fall as 1/draws, as that of an objective does; it is
        looked at again whenever the draws have grown by a factor of 1.5 to 4.
        """
        goal = read_positive(precision, "precision")
        growing, size, affordable = self, error(self.estimate), float("inf")
        if max_evaluations is not None:
            per_draw = self.sample.design.per_draw
            affordable = affordable_draws(per_draw, max_evaluations)
        while size > goal and growing.n_draws < affordable:
            factor = min(max(_MARGIN * size / goal, _LEAST_GROWTH), _MOST_GROWTH)
            wanted = N_BLOCKS * -int(-growing.n_draws * factor // N_BLOCKS)
            growing = growing.extended(int(min(wanted, affordable)))
            size = error(growing.estimate)
        return growing


def affordable_draws(per_draw: int, max_evaluations: int) -> int:
    """The largest multiple of 10 of draws that take no more evaluations."""
    most = read_count(max_evaluations, "max_evaluations")
    return most // per_draw // N_BLOCKS * N_BLOCKS


def require_draws(n_rows: int, n_draws: int) -> None:
    """Refuse more draws than fit into memory."""
    require_memory(
        16.0 * n_rows * n_draws,
        f"keeping {n_draws:,} draws of {n_rows:,} rows",
        "explain fewer rows at a time, or draw less",
    )


@final
@dataclass(frozen=True, eq=False, repr=False)
class SampledMean(OfFunction):
    """The mean of any function under the data law, E f(V), by draws of V.

    Its "gradient" is that of :class:`ExactMean`, estimated: of numbers by least squares
    slopes, cross-fitted between 10 blocks of draws so that each block is unbiased; of
    columns of two values, of categories and of missing numbers by pairs of draws that
    differ in nothing else, so that columns that f does not use have exactly 0. Draws
    are the same for all rows and in all calls. Make it by :func:`smoothed`.
    """

    function: Function  # f
    law: DataLaw
    n_samples: int  # draws around each row, a multiple of 10
    seed: int  # that of the draws
    paired: bool = False  # whether numbers are taken by pairs too
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
    ) -> GrowingEstimate:
        """The estimate at some rows, which can be drawn on."""
        return self.growing_at(*self.read(X), n_draws, max_evaluations)

    def growing_at(
        self,
        points: Points,  # shape (N, D)
        labels: Labels,
        n_draws: int | None = None,
        max_evaluations: int | None = None,
    ) -> GrowingEstimate:
        """:meth:`growing` at points that are read."""
        first = self.n_samples if n_draws is None else n_draws
        design = self._design(points)
        if max_evaluations is not None:
            affordable = affordable_draws(design.per_draw, max_evaluations)
            if affordable < design.fewest:
                raise InvalidInput(
                    f"max_evaluations: {design.fewest} draws take "
                    f"{design.fewest * design.per_draw:,} evaluations, and "
                    f"{max_evaluations:,} are allowed; give more, or explain fewer rows"
                )
            first = min(first, affordable)
        sample = self._sample(design, labels, first)
        notes = self.law.notes(points)
        return GrowingEstimate(sample, self._source, labels, notes)

    def per_draw_at(self, points: Points) -> int:
        """Rows that the model is given for one draw around each of points (N, D)."""
        return self._uncontrolled(points).per_draw

    def _value(self, points: Points, labels: Labels, /) -> Values:
        sample = self._sample(self._design(points), labels, self.n_samples)
        return sample.blocks().means.mean(axis=0)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        sample = self._sample(self._design(points), labels, self.n_samples)
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
        means, attributions = Means(self.control, self.law).of(points)
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
