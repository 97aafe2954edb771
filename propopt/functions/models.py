"""Models as functions: called, fitted, of tables, with gradients of their own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Attributions, Points, Values
from propopt.base.errors import FlatFunctionWarning, InvalidInput
from propopt.base.resources import row_blocks
from propopt.base.text import Reason
from propopt.functions.cost import WORTH_TIMING, cost_of, in_time
from propopt.functions.differences import (
    DEFAULT_STEP,
    FLAT,
    MISSING_EFFECT,
    alternatives_at,
    differences,
    refuse_missing,
    replacement_effects,
    step_for,
    warn_flat,
    warn_jumps,
)
from propopt.functions.function import EXACT, WrappedModel, describe_step
from propopt.functions.jumps import (
    FEWEST,
    MOST,
    TRIAL_ROWS,
    as_numbers,
)
from propopt.functions.outputs import (
    FittedColumns,
    Readout,
)
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.links import LinkedScores, score
from propopt.structures.model_structure import ModelStructure
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.scores import Link, Network
from propopt.tables.columns import ObservedValues
from propopt.tables.frames import Labels, listed


Said = TypeVar("Said")


CATEGORY_EFFECT = "of a category f(x) − Σ_c p_c f(x with c)"

MISFITS = (AttributeError, LookupError, TypeError, ValueError)
"""What a model raises that cannot use the table that it is given."""

OBSERVED_ALONE: Final = (
    'slopes with law="data" ask for observed values alone, and so do contributions '
    "against rows of data"
)
"""What models that enforce dtypes take."""

LIBRARIES = frozenset({"_catboost", "catboost", "lightgbm"})
"""Whose errors are of classes of their own."""


@dataclass(frozen=True, eq=False, repr=False)
class CalledModel(WrappedModel):
    """A model that is called, in batches that are counted."""

    readout: Readout  # f of points (n, D), with their labels

    @property
    def features(self) -> tuple[str, ...] | None:
        return self.readout.features

    def _value(self, points: Points, labels: Labels, /) -> Values:
        values = self._read(points, labels)
        if not self.trial.done:
            self._ask_twice(points, labels)
        return values

    def _read(self, points: Points, labels: Labels) -> Values:
        """Values from calls of bounded size, which are counted."""
        parts = []
        for rows in row_blocks(*points.shape, most=self.batch_rows):
            table, names = points[rows], labels.of_positions(rows)
            self.calls.add(len(table))
            ask = partial(self._asked, self.readout, table, names)
            parts.append(self.calls.checkpointed(ask, table))
        self.trial.answered |= not self.calls.is_trial
        return np.concatenate(parts)

    def _asked(
        self, ask: Callable[[Points, Labels], Said], points: Points, labels: Labels
    ) -> Said:
        """What the model says; if it fails for cells that data has not, which."""
        try:
            return ask(points, labels)
        except (InvalidInput, MemoryError):
            raise
        except Exception as error:
            self._refuse_cells(error, points)
            absent = self.missing_columns(points, labels)
            library = type(error).__module__.partition(".")[0]
            of_table = isinstance(error, MISFITS) or library in LIBRARIES
            if not absent and of_table and not self.trial.answered:
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

    def _refuse_cells(self, error: Exception, points: Points) -> None:
        """Say where a model fails that it was given cells that data has not."""
        if self.table is None:
            return
        said = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        others, wide = (
            self.table.describe_new_categories(points),
            self.table.widened(points),
        )
        if others is not None:
            raise InvalidInput(
                f"{self.quantity.model}: at categories that data has not, {others}, "
                f"the model raises {said}; give rows of the categories of data, or a "
                'model that takes others, as OneHotEncoder(handle_unknown="ignore") '
                "does"
            ) from error
        if wide is not None:
            raise InvalidInput(
                f"{self.quantity.model}: at numbers that the dtypes of data do not "
                f"hold, in {wide}, the model raises {said}; {OBSERVED_ALONE}"
            ) from error

    def _ask_twice(self, points: Points, labels: Labels) -> float:
        """ε of answers for the first rows, refused unless they are the same twice."""
        few = slice(0, min(TRIAL_ROWS, self.batch_rows))
        few_points, names = points[few], labels.of_positions(few)
        ask = partial(
            self._asked, self.readout.values_with_precision, few_points, names
        )
        return self.trial.ask_twice(ask, len(few_points), self.calls, repr(self))


@dataclass(frozen=True, eq=False, repr=False)
class NumericalModel(CalledModel):
    """A model that can only be called, so its gradient is by central differences.

    One of a table with a schema is always given the DataFrames that this describes. Of
    a categorical column the gradient is the effect of its category, in units of the
    output,

    f(x) − Σ_c p_c f(x with c),

    with p_c the frequencies in the table that the schema was made of. For a model that
    is linear in indicators this is Σ_c β_c (1[x = c] − p_c), whichever of them is left
    out as reference. Of a number that is missing it is the effect of that, likewise
    f(x) − Σ_v p_v f(x with v), with p_v the shares of the values that are not missing.
    """

    step: float | None = None  # the relative step of the differences
    piecewise_constant: bool = False  # whether the model is known to be, as trees are
    # the sum of trees that the model may be
    structure: ModelStructure | None = field(default=None, kw_only=True)
    # (D,): the values of each column in a table without a schema
    observed_values: tuple[ObservedValues | None, ...] | None = field(
        default=None, kw_only=True
    )

    def with_categories_of(self, X: object) -> NumericalModel:
        table = None if self.table is None else self.table.with_categories_of(X)
        if table is None or table is self.table:
            return self
        structure = None
        if self.structure is not None:
            structure = replace(self.structure, schema=table)
        readout = replace(self.readout, table=table.decode)
        wide = replace(self, table=table, structure=structure, readout=readout)
        # of the same model, which is not tried again
        vars(wide).update(calls=self.calls, trial=self.trial)
        return wide

    @property
    def observed(self) -> tuple[ObservedValues | None, ...] | None:
        return self.observed_values if self.table is None else self.table.observed

    @property
    def gradient_method(self) -> str:
        """The rule for numeric columns, its step, and the rule for categories."""
        if self.table is None:
            return describe_step(self._known_step)
        rules = []
        if not self.table.categorical.all():
            rules.append(describe_step(self._known_step))
        if self.table.categorical.any():
            rules.append(CATEGORY_EFFECT)
        if any(column.has_missing for column in self.table.columns):
            rules.append(MISSING_EFFECT)
        return "; ".join(rules)

    @property
    def boxes(self) -> Boxes | None:
        return None if self.structure is None else self.structure.boxes

    @property
    def products(self) -> SumOfProducts | Reason:
        if self.structure is None:
            return Reason(f"{self.quantity.model} can only be called")
        return self.structure.products

    @property
    def margin_boxes(self) -> Boxes | None:
        return None if self.structure is None else self.structure.margin_boxes

    @property
    def links(self) -> tuple[LinkedScores, ...]:
        return () if self.structure is None else self.structure.links

    @property
    def _may_jump(self) -> bool:
        """A step says what is wanted."""
        return not self.piecewise_constant and self.step is None

    def _announced_test(
        self, points: Points, names: Labels
    ) -> AbstractContextManager[None]:
        """Say what the jump test costs, and what if f is not smooth."""
        if not self.trial.done:
            self._ask_twice(points, names)
        if MOST * self.trial.seconds < WORTH_TIMING:
            return nullcontext()
        cost = cost_of(self, points, names, FEWEST, calls=2)
        curved = replace(cost, evaluations=MOST, calls=cost.calls + 2)
        longer = f"if so, about {in_time(curved.seconds)}"
        label = f"whether {self.quantity.model} jumps ({longer})"
        return cost.announced(label, self.calls)

    @property
    def _known_step(self) -> float:
        """The step, which is that of double precision until the model was tried."""
        if self.step is not None:
            return self.step
        if self.piecewise_constant or self.trial.epsilon is None:
            return DEFAULT_STEP
        return step_for(self.trial.epsilon, self.quantity.model)

    def _try_near(
        self, points: Points, moved: NDArray[np.bool_], labels: Labels
    ) -> None:
        """Learn the precision of values where columns that are ``moved`` are moved."""
        # of points that are whole numbers the values often are, of any precision
        if self.trial.epsilon is not None:
            return
        few = points[:TRIAL_ROWS]
        near = few + moved * DEFAULT_STEP * np.maximum(1.0, np.abs(few))
        self.trial.epsilon = self._ask_twice(near, labels.of_columns())

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

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        names, observed = labels.of_columns(), self.observed
        if observed is None:
            refuse_missing(
                points, self.missing_columns(points, names), self.quantity.model
            )
        moved = self.numeric_columns(points)

        def read(changed: Points) -> Values:
            return self._read(changed, names)

        if (moved & ~np.isnan(points)).any():
            self._try_near(points, moved, names)
            self._look_for_jumps(points, labels)
            slopes = differences(read, points, self._known_step, moved)
            self._warn_if_flat(slopes)
        else:
            slopes = np.zeros(points.shape)
        if moved.all() and not np.isnan(points).any():
            return slopes
        values = self._value(points, labels)
        alternatives = alternatives_at(points, self.table, observed)
        return slopes + replacement_effects(read, points, values, alternatives)


@dataclass(frozen=True, eq=False, repr=False)
class ExactModel(WrappedModel):
    """A fitted model whose scores and link are known, so its gradient is exact.

    It keeps the parameters that the model had when it was wrapped.
    """

    columns: FittedColumns
    network: Network
    link: Link

    @property
    def features(self) -> tuple[str, ...] | None:
        return self.columns.names

    @cached_property
    def products(self) -> SumOfProducts | Reason:
        if self.columns.count is None:
            return Reason("the model does not tell how many columns it takes")
        from propopt.structures.readers.model_products import network_products

        return network_products(self.network, self.link, self.columns.count)

    @cached_property
    def links(self) -> tuple[LinkedScores, ...]:
        if self.columns.count is None or isinstance(self.products, SumOfProducts):
            return ()
        from propopt.structures.networks import ScoreLink
        from propopt.structures.readers.model_products import network_products

        places, count = range(self.network.n_scores), self.columns.count
        links = [ScoreLink("identity", k) for k in places]
        read = [score(network_products(self.network, k, count)) for k in links]
        scores = tuple(own for own in read if own is not None)
        known = len(scores) == len(read)
        return (LinkedScores(scores, self.link),) if known else ()

    @property
    def gradient_method(self) -> str:
        """Always ``"exact"``."""
        return EXACT

    def _value(self, points: Points, labels: Labels, /) -> Values:
        self._check_points(points, labels)
        self.calls.add(len(points))
        return self.calls.checkpointed(partial(self._values, points), points)

    def _values(self, points: Points) -> Values:
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
class GivenGradient(CalledModel):
    """A model, and a callable for its gradient."""

    slopes: Callable[[Any], object]  # the gradient: a table (n, D) to numbers (n, D)

    @property
    def gradient_method(self) -> str:
        """Always ``"given"``."""
        return "given"

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        parts = []
        for rows in row_blocks(*points.shape, most=self.batch_rows):
            self.calls.add(len(points[rows]))
            answer = self.slopes(
                self.readout.table(points[rows], labels.of_positions(rows))
            )
            part = as_numbers(answer, "gradient: expected numbers; the callable")
            if part.shape != points[rows].shape:
                raise InvalidInput(
                    f"{self!r}: expected a gradient of shape {points[rows].shape}, got "
                    f"{part.shape}"
                )
            parts.append(part)
        return np.concatenate(parts)
