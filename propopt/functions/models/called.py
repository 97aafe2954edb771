"""Functions whose values come from calls of a model, which a first few rows try."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Attributions, Points, Values
from propopt.batches import call_blocks
from propopt.errors import FlatFunctionWarning, InvalidInput
from propopt.functions.answers import Answers, refuse_other_answers
from propopt.functions.base import Function
from propopt.functions.cost import WORTH_TIMING, cost_of, in_time
from propopt.functions.differences import (
    DEFAULT_STEP,
    FLAT,
    step_for,
    warn_flat,
    warn_jumps,
)
from propopt.functions.jump_test import numeric_columns
from propopt.functions.jumps import FEWEST, MOST, Jumps, Segments, jumps_along
from propopt.functions.models.read_trees import ReadTrees
from propopt.functions.models.readout import Readout
from propopt.quantity import Quantity
from propopt.structures.boxes import Boxes
from propopt.structures.products import NoProducts, SumOfProducts
from propopt.tables.names import Labels, listed


Said = TypeVar("Said")


def _is_misfit(error: Exception) -> bool:
    """Whether an error is of the table that a model was given, not of its machine."""
    library = type(error).__module__.partition(".")[0]
    return isinstance(error, MISFITS) or library in LIBRARIES


JUMP_SEED = 0
"""Of the rows between which a model is tested."""

SHORTEST = 1e-9
"""Seconds, where the clock stood still."""

MISFITS = (AttributeError, LookupError, TypeError, ValueError)
"""What a model raises that cannot use the table that it is given."""

LIBRARIES = frozenset({"_catboost", "catboost", "lightgbm"})
"""Whose errors are of classes of their own."""

TRIAL_ROWS = 3
"""Rows that a model is asked twice for, the first time that it is asked at all."""


@final
@dataclass
class Trial:
    """What a few rows told of a model.

    Parameters
    ----------
    done : bool
        Whether it has answered some rows twice, and alike.
    answered : bool
        Whether it has answered all rows of some call: it takes such tables.
    epsilon : float
        The relative rounding of its answers at points that are no whole numbers.
    jumps : Jumps
        Whether it jumps between rows.
    told : bool
        Whether a warning has said so.
    seconds : float
        What one row takes, where the model is given a few.
    """

    done: bool = False
    answered: bool = False
    epsilon: float | None = None
    jumps: Jumps | None = None
    told: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, eq=False, repr=False)
class CalledModel(Function):
    """A model that is called, in batches that are counted.

    Parameters
    ----------
    quantity : Quantity
        What f is.
    readout : Readout
        f of points (n, D), with their labels.
    batch_rows : int
        The most rows of one call.
    """

    quantity: Quantity = field()
    readout: Readout
    batch_rows: int = field(default=sys.maxsize, kw_only=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.quantity})"

    @property
    def features(self) -> tuple[str, ...] | None:
        """The columns that the model was fitted on, where it tells."""
        return self.readout.features

    @cached_property
    def trial(self) -> Trial:
        """What is known of the model so far."""
        return Trial()

    def _value(self, points: Points, labels: Labels, /) -> Values:
        values = self._read(points, labels)
        if not self.trial.done:
            self._ask_twice(points, labels)
        return values

    def _read(self, points: Points, labels: Labels) -> Values:
        """Values from calls of bounded size, which are counted."""
        parts = []
        for rows in call_blocks(points.shape, self.batch_rows):
            self.calls.add(len(points[rows]))
            parts.append(self._asked(self.readout, points[rows], labels.of_rows(rows)))
        self.trial.answered |= not self.calls.is_trial
        return np.concatenate(parts)

    def _asked(
        self, ask: Callable[[Points, Labels], Said], points: Points, labels: Labels
    ) -> Said:
        """What the model says; if it fails for missing values, that they are why."""
        try:
            return ask(points, labels)
        except InvalidInput:
            raise
        except Exception as error:
            absent = self.missing_columns(points, labels)
            if not absent and _is_misfit(error) and not self.trial.answered:
                said = self.readout.misfit(error, points, labels)
                raise InvalidInput(f"{self.quantity.model}: {said}") from error
            if not absent:
                raise
            said = str(error).partition("\n")[0]
            raise InvalidInput(
                f"{self.quantity.model}: the model fails, and X has missing values in "
                f"{listed(absent)}; it says: {said} A model that takes them would do, "
                "or a pipeline that imputes them first"
            ) from error

    def _ask_twice(self, points: Points, labels: Labels) -> Answers:
        """Answers for the first rows, refused unless they are the same twice."""
        few = slice(0, min(TRIAL_ROWS, self.batch_rows))
        few_points, names = points[few], labels.of_rows(few)
        self.calls.try_out(2 * len(few_points))
        answers = self.readout.answers
        first = self._asked(answers, few_points, names)
        start = time.perf_counter()
        again = self._asked(answers, few_points, names)
        seconds = time.perf_counter() - start
        self.trial.seconds = max(seconds, SHORTEST) / len(few_points)
        refuse_other_answers(first, again, repr(self))
        self.trial.done = True
        return first


@dataclass(frozen=True, eq=False, repr=False)
class DifferencedModel(CalledModel):
    """A model that is differentiated by central differences.

    Parameters
    ----------
    step : float or None
        The relative step of the differences; None is the best for the precision in
        which the model computes.
    piecewise_constant : bool
        Whether the model is known to be, as trees are.
    trees : ReadTrees or None
        The sum of trees that the model may be.
    """

    step: float | None = None
    piecewise_constant: bool = False
    trees: ReadTrees | None = field(default=None, kw_only=True)

    @property
    def boxes(self) -> Boxes | None:
        """Values as a sum of boxes; None if the model is no sum of trees."""
        return None if self.trees is None else self.trees.boxes

    @property
    def products(self) -> SumOfProducts | NoProducts:
        """Values as a sum of products; the reason where they are none."""
        if self.trees is None:
            return NoProducts(f"{self.quantity.model} can only be called")
        return self.trees.products

    @property
    def margin_boxes(self) -> Boxes | None:
        """The score that values are made of as a sum of boxes; None if it is none."""
        return None if self.trees is None else self.trees.margin_boxes

    @property
    def jumps(self) -> Jumps | None:
        """What the jump test found, before the first gradient."""
        return self.trial.jumps

    def jumps_at(self, points: Points, labels: Labels | None = None) -> Jumps | None:
        """Models are tested that are not known to jump; a step says what is wanted."""
        known = self.piecewise_constant or self.step is not None
        if self.trial.jumps is None and not known:
            rng = np.random.default_rng(JUMP_SEED)
            segments = Segments.between(points, numeric_columns(self, points), rng)
            if segments is not None:
                names = Labels() if labels is None else labels.of_columns()
                self.trial.jumps = self._tested(segments, names)
        return self.trial.jumps

    def _tested(self, segments: Segments, names: Labels) -> Jumps:
        """The verdict; what it costs is said before, where that is much."""
        if not self.trial.done:
            self._ask_twice(segments.starts, names)
        with self.calls.trying_out(), self._announced_test(segments.starts, names):
            return jumps_along(
                lambda between: self._value(between, names), segments, repr(self)
            )

    def _announced_test(
        self, points: Points, names: Labels
    ) -> AbstractContextManager[None]:
        """Say what the jump test costs, and what if f is not smooth."""
        if MOST * self.trial.seconds < WORTH_TIMING:
            return nullcontext()
        cost = cost_of(self, points, names, FEWEST, calls=2)
        curved = replace(cost, evaluations=MOST, calls=cost.calls + 2)
        longer = f"if so, about {in_time(curved.seconds)}"
        what = f"whether {self.quantity.model} jumps ({longer})"
        return cost.announced(what, self.calls)

    @property
    def _known_step(self) -> float:
        """The step, which is that of double precision until the model was tried."""
        if self.step is not None:
            return self.step
        if self.piecewise_constant or self.trial.epsilon is None:
            return DEFAULT_STEP
        return step_for(self.trial.epsilon, self.quantity.model)

    def _try_near(
        self, points: Points, moved: bool | NDArray[np.bool_], labels: Labels
    ) -> None:
        """Learn the precision of values where columns that are ``moved`` are moved.

        Of points that are whole numbers the values often are, of any precision.
        """
        if self.trial.epsilon is not None:
            return
        few = points[:TRIAL_ROWS]
        near = few + moved * DEFAULT_STEP * np.maximum(1.0, np.abs(few))
        self.trial.epsilon = self._ask_twice(near, labels.of_columns()).epsilon

    def _look_for_jumps(self, points: Points, labels: Labels) -> None:
        """Test the model before its first gradient, and say once if it jumps."""
        verdict = self.jumps_at(points, labels)
        if verdict is not None and verdict.kind == "jumps" and not self.trial.told:
            self.trial.told = True
            warn_jumps(self.quantity.model, verdict)

    def _warn_if_flat(self, slopes: Attributions) -> None:
        if self.piecewise_constant and self.step in (None, DEFAULT_STEP):
            warn_flat(self.quantity.model)
        elif self.jumps is not None and self.jumps.kind == "jumps":
            return  # which has been said
        elif not slopes.any():
            warnings.warn(FLAT, FlatFunctionWarning, stacklevel=2)
