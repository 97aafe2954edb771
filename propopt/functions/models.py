"""Models as functions: called, fitted, of tables, or with a given gradient."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final, TypeVar

import numpy as np

from propopt.base.arrays import Attributions, Points, Values
from propopt.base.errors import FlatFunctionWarning, InvalidInput
from propopt.base.resources import row_blocks
from propopt.base.text import Reason, first_line
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
from propopt.functions.function import EXACT, Function, WrappedModel, describe_step
from propopt.functions.jumps import FEWEST, MOST, TRIAL_ROWS
from propopt.functions.outputs import FittedColumns, Readout, as_numbers
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.links import LinkedScores, exact_score
from propopt.structures.fitted_model import ModelStructure
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.scores import Link, Network
from propopt.tables.columns import Numeric, ObservedValues
from propopt.tables.frames import Labels, listed


_Returned = TypeVar("_Returned")


CATEGORY_EFFECT = "of a category f(x) − Σ_c p_c f(x with c)"

MISFITS = (AttributeError, LookupError, TypeError, ValueError)
"""Errors that a model raises if it cannot use its input table."""

OBSERVED_ALONE: Final = (
    'slopes with law="data" use only observed values, and so do contributions '
    "against rows of data"
)
"""Explanations that work for models that enforce dtypes."""

LIBRARIES = frozenset({"_catboost", "catboost", "lightgbm"})
"""Packages that raise errors of separate classes."""


@dataclass(frozen=True, eq=False, repr=False)
class CalledModel(WrappedModel):
    """A model that is called in batches, which are counted."""

    readout: Readout  # from points (n, D) and their labels to values
    # the output of a fitted model, with the exact structure that it may have
    structure: ModelStructure | None = field(default=None, kw_only=True)

    @property
    def features(self) -> tuple[str, ...] | None:
        return self.readout.features

    def _value(self, points: Points, labels: Labels, /) -> Values:
        values = self._read(points, labels)
        if not self.trial.done:
            self._call_twice(points, labels)
        return values

    def try_at(self, points: Points) -> None:
        """Call the model at rows of its table, which it may refuse."""
        if len(points):
            with self.calls.as_trial():
                self._read(points, Labels())

    def _read(self, points: Points, labels: Labels) -> Values:
        """Values from calls of bounded size, which are counted."""
        parts = []
        for rows in row_blocks(*points.shape, most=self.batch_rows):
            table = points[rows]
            names = labels.of_positions(rows)
            call = partial(self._call_model, self.readout, table, names)
            parts.append(self.calls.counted(call, table))
        self.trial.answered |= not self.calls.is_trial
        return np.concatenate(parts)

    def _call_model(
        self,
        call: Callable[[Points, Labels], _Returned],
        points: Points,
        labels: Labels,
    ) -> _Returned:
        """The model's result; an error names new categories or missing values."""
        try:
            return call(points, labels)
        except (InvalidInput, MemoryError):
            raise
        except Exception as error:
            self._refuse_cells(error, points)
            absent = self.missing_columns(points, labels)
            library = type(error).__module__.partition(".")[0]
            of_table = isinstance(error, MISFITS) or library in LIBRARIES
            if not absent and of_table and not self.trial.answered:
                message = self.readout.misfit(error, points, labels)
                raise InvalidInput(f"{self.quantity.model}: {message}") from error
            if not absent:
                raise
            message = first_line(error)
            raise InvalidInput(
                f"{self.quantity.model}: the model fails, and X has missing values in "
                f"{listed(absent)}; its message: {message} Use a model that takes "
                "missing values, or a pipeline that imputes them first"
            ) from error

    def _refuse_cells(self, error: Exception, points: Points) -> None:
        """Refuse cells outside the categories and dtypes of data if the model fails."""
        if self.schema is None:
            return
        message = f"{type(error).__name__}: {first_line(error)}"
        count, others = self.schema.unseen_categories(points)
        wide = self.schema.widened(points)
        if count > 0:
            raise InvalidInput(
                f"{self.quantity.model}: at categories absent from data, {others}, the "
                f"model raises {message}; give rows with the categories of data, or a "
                'model that takes others, as OneHotEncoder(handle_unknown="ignore")'
            ) from error
        if wide is not None:
            raise InvalidInput(
                f"{self.quantity.model}: the model raises {message} for numbers that "
                f"the dtypes of its table cannot hold, in {wide}; {OBSERVED_ALONE}"
            ) from error

    def _call_twice(self, points: Points, labels: Labels) -> float:
        """Precision ε of values at the first rows, which must agree in two calls."""
        few = slice(0, min(TRIAL_ROWS, self.batch_rows))
        few_points = points[few]
        names = labels.of_positions(few)
        call = partial(
            self._call_model, self.readout.values_with_precision, few_points, names
        )
        return self.trial.call_twice(call, len(few_points), self.calls, self)


@dataclass(frozen=True, eq=False, repr=False)
class NumericalModel(CalledModel):
    """A model that can only be called, with gradients by central differences.

    With a schema the model receives DataFrames of that schema. The gradient of a
    categorical column is the effect of its category, in units of the output,

    f(x) − Σ_c p_c f(x with c),

    with p_c the frequencies in the table of the schema. For a model that is linear in
    indicators this is Σ_c β_c (1[x = c] − p_c), for any choice of the reference
    category. The gradient of a missing number is likewise f(x) − Σ_v p_v f(x with v),
    with p_v the shares of the observed values.
    """

    step: float | None = None  # the relative step of the differences
    piecewise_constant: bool = False  # as trees are
    # (D,): the values of each column in a table without a schema
    observed_values: tuple[ObservedValues | None, ...] | None = field(
        default=None, kw_only=True
    )

    def with_categories_of(self, X: object) -> NumericalModel:
        schema = None if self.schema is None else self.schema.with_categories_of(X)
        if schema is None or schema is self.schema:
            return self
        assert self.structure is not None, "a torch module with a step has no table"
        assert self.structure.schema is not None, "the model takes the table"
        in_order = replace(schema, header=self.structure.schema.header)
        structure = replace(self.structure, schema=in_order)
        readout = replace(self.readout, table=in_order.decode)
        wide = replace(self, schema=schema, structure=structure, readout=readout)
        # the same model, which is not tested again
        vars(wide).update(calls=self.calls, trial=self.trial)
        return wide

    @property
    def observed(self) -> tuple[ObservedValues | None, ...] | None:
        return self.observed_values if self.schema is None else self.schema.observed

    @property
    def gradient_method(self) -> str:
        """The rule for numeric columns, its step, and the rule for categories."""
        if self.schema is None:
            return describe_step(self._relative_step)
        rules = []
        if not self.schema.categorical.all():
            rules.append(describe_step(self._relative_step))
        if self.schema.categorical.any():
            rules.append(CATEGORY_EFFECT)
        numbers = (x for x in self.schema.columns if isinstance(x, Numeric))
        if any(column.has_missing for column in numbers):
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
        """Whether to test for jumps: not if a step was given."""
        return not self.piecewise_constant and self.step is None

    def _announced_test(
        self, points: Points, names: Labels
    ) -> AbstractContextManager[None]:
        """Announce the cost of the jump test, also if f is not smooth."""
        if not self.trial.done:
            self._call_twice(points, names)
        if MOST * self.trial.seconds < WORTH_TIMING:
            return nullcontext()
        cost = cost_of(self, points, names, FEWEST, calls=2)
        curved = replace(cost, evaluations=MOST, calls=cost.calls + 2)
        longer = f"if so, about {in_time(curved.seconds)}"
        label = f"whether {self.quantity.model} jumps ({longer})"
        return cost.announced(label, self.calls)

    @property
    def _relative_step(self) -> float:
        """The step; for double precision until the model was tested."""
        if self.step is not None:
            return self.step
        if self.piecewise_constant or self.trial.epsilon is None:
            return DEFAULT_STEP
        return step_for(self.trial.epsilon, self.quantity.model)

    def _warn_if_flat(self, slopes: Attributions) -> None:
        if self.piecewise_constant and self.step in (None, DEFAULT_STEP):
            warn_flat(self.quantity.model)
        elif self.jumps is not None and self.jumps.kind == "jumps":
            return  # a warning was issued already
        elif not slopes.any():
            warnings.warn(FLAT, FlatFunctionWarning, stacklevel=2)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        names = labels.of_columns()
        observed = self.observed
        if observed is None:
            refuse_missing(
                points, self.missing_columns(points, names), self.quantity.model
            )
        moved = self.numeric_columns(points)

        def evaluate(changed: Points) -> Values:
            return self._read(changed, names)

        if (moved & ~np.isnan(points)).any():
            # at integer points values are often integers, in any precision
            if self.trial.epsilon is None:
                few = points[:TRIAL_ROWS]
                shifted = few + moved * DEFAULT_STEP * np.maximum(1.0, np.abs(few))
                self.trial.epsilon = self._call_twice(shifted, names)
            verdict = self.jumps_at(points, labels)
            if verdict and verdict.kind == "jumps" and not self.trial.warned:
                self.trial.warned = True
                warn_jumps(self.quantity.model, verdict)
            slopes = differences(evaluate, points, self._relative_step, moved)
            self._warn_if_flat(slopes)
        else:
            slopes = np.zeros(points.shape)
        if moved.all() and not np.isnan(points).any():
            return slopes
        values = self._value(points, labels)
        alternatives = alternatives_at(points, self.schema, observed)
        return slopes + replacement_effects(evaluate, points, values, alternatives)


def structure_of(function: Function) -> ModelStructure | None:
    """The output of the fitted model that a function calls; None for others."""
    return function.structure if isinstance(function, NumericalModel) else None


@dataclass(frozen=True, eq=False, repr=False)
class ExactModel(WrappedModel):
    """A fitted model with exact scores and link, so that its gradient is exact.

    It has a copy of the parameters at the time of ``wrap``.
    """

    columns: FittedColumns
    network: Network
    link: Link
    structure: ModelStructure = field(kw_only=True)

    @property
    def features(self) -> tuple[str, ...] | None:
        return self.columns.names

    @cached_property
    def products(self) -> SumOfProducts | Reason:
        products = self._linked(self.link)
        if isinstance(products, SumOfProducts):
            return products
        return self.structure.products  # such as kernels behind other orders of columns

    @cached_property
    def links(self) -> tuple[LinkedScores, ...]:
        from propopt.structures.networks import ScoreLink

        if isinstance(self.products, SumOfProducts):
            return ()
        n_scores = self.network.n_scores
        links = [ScoreLink("identity", k) for k in range(n_scores)]
        structures = [exact_score(self._linked(link)) for link in links]
        scores = tuple(part for part in structures if part is not None)
        all_exact = len(scores) == n_scores
        return (LinkedScores(scores, self.link),) if all_exact else ()

    def _linked(self, link: Link) -> SumOfProducts | Reason:
        """A link of the scores as a sum of products of the model's columns."""
        if self.columns.count is None:
            return Reason("the model does not record its number of columns")
        from propopt.structures.readers.model_products import network_products

        return network_products(self.network, link, self.columns.count)

    @property
    def gradient_method(self) -> str:
        """The method of gradients, always ``"exact"``."""
        return EXACT

    def _value(self, points: Points, labels: Labels, /) -> Values:
        self._check_points(points, labels)
        return self.calls.counted(partial(self._values, points), points)

    def _values(self, points: Points) -> Values:
        values = np.empty(len(points))
        for rows in self.network.blocks(points):
            values[rows] = self.link.value(self.network.scores(points[rows]))
        return values

    def _check_points(self, points: Points, labels: Labels) -> None:
        self.columns.check(points.shape[1], labels.features)
        absent = self.missing_columns(points, labels)
        if absent:
            raise InvalidInput(
                f"{self.quantity.model}: the model takes no missing values, and X has "
                f"some in {listed(absent)}; use a pipeline that imputes them first, or "
                "a model that takes them"
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
    """A model with a callable for its gradient."""

    # the gradient: from a table (n, D) to numbers (n, D)
    slopes: Callable[[Any], object]

    @property
    def gradient_method(self) -> str:
        """The method of gradients, always ``"given"``."""
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
