"""Fitted explainers as files: arrays, names and settings, without the model.

The model is given again when a file is loaded. It has to be the same function: its
values and targets are compared at some of the reference rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from propopt.base.arrays import Array, Mask, Points, Values
from propopt.base.checks import largest_entry
from propopt.base.declared import Declared, field, packed
from propopt.base.errors import InvalidInput
from propopt.base.files import archive_path, digest_of
from propopt.explaining.contributions import ContributionChoice, ContributionRule
from propopt.explaining.out_of_sample import (
    FittedContributions,
    FittedRows,
    neighbours_in_words,
)
from propopt.explaining.problem import CheckedSettings, RowsProblem, Sampling
from propopt.explaining.targets import (
    ColumnMetric,
    LawChoice,
    MetricChoice,
    TargetRule,
)
from propopt.functions import Function
from propopt.functions.jumps import allowed_difference
from propopt.functions.outputs import Output, Target, precision_of
from propopt.functions.wrapping import wrap_with_table
from propopt.laws.background import Background, Reference
from propopt.laws.calibration import N_DRAWN_BLOCKS
from propopt.laws.players import Players
from propopt.losses.graphs.neighbours import Nearest
from propopt.results.explanation import Explanation
from propopt.tables.frames import Labels
from propopt.tables.schema import TableSchema


CHECKED_ROWS = 16
"""Reference rows at which values of a loaded model are compared."""

CHECKED_TARGETS = 3
"""Reference rows at which targets of a loaded model are compared."""

_SAME = 1e-4
"""Relative tolerance of these comparisons; libraries and machines round differently."""

_NONSENSE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,  # such as a recursion that is too deep
    TypeError,
    ValueError,
)
"""Errors that inconsistent fields of a file can cause in any function."""


class SavedExplainer(
    Declared, kind="propopt explainer", noun="a saved explainer", version=7
):
    """All fields of a fitted explainer except for its model."""

    reference: Explanation = field()
    target: Target = field(default=None)  # the explained class or column
    output: Output = field()
    law: LawChoice = field()  # of slopes
    seed: int = field(low=0)  # of sampled targets
    wrapped: bool = field()  # whether the model was given as a Function
    schema: TableSchema | None = field(default=None)
    rows: Points = field("n D", missing=True, nonempty=True)
    table: Points = field("m D", missing=True, nonempty=True)  # of scales and laws
    table_features: tuple[str, ...] | None = field(default=None)
    n_rows: int = field(low=1)
    sizes: Values = field("D", low=0.0)
    values: Values = field("k", nonempty=True)  # of the model at the first rows
    background: Points | None = field("b D", missing=True, nonempty=True, default=None)
    targets: Array | None = field("t P", default=None)  # of the first rows
    n_neighbors: int = field(low=1)
    contributions: ContributionChoice | None = field(default=None)
    metric: MetricChoice | None = field(default=None)
    metric_name: str | None = field(default=None)
    omega: Values | None = field("P", low=0.0, default=None)  # of the metric
    moves: Mask | None = field("P", default=None)  # columns or groups that may move
    main_effects: Array | None = field("n P", default=None)  # of the reference rows
    n_background: int | None = field(low=1, default=None)  # rows of their table
    background_weights: Values | None = field("b", low=0.0, default=None)
    drawn_by_weight: bool = field(default=False)
    # of drawn rows or their ten parts, from which their weights follow
    background_traits: Array | None = field("p z", default=None)
    groups: Mapping[str, tuple[str, ...]] = field(factory=dict)

    @classmethod
    def of(cls, fitted: FittedRows) -> Self:
        """Collect the fields of a fitted explainer."""
        problem = fitted.problem
        settings = problem.settings
        table = problem.reference
        first = problem.points[:CHECKED_ROWS]
        wrapped = isinstance(problem.model, Function)
        groups = settings.groups or {}
        assert not isinstance(groups, str), "see RowsProblem.with_groups"
        parts: dict[str, Any] = {}
        if isinstance(fitted, FittedContributions):
            metric = fitted.metric
            assert isinstance(problem.rule, ContributionRule), "its targets"
            background = problem.rule.background
            traits = background.traits
            weights = background.weights if traits is None else None
            parts = {
                "background": background.points,
                "n_background": background.n_rows,
                "background_weights": weights,
                "drawn_by_weight": background.by_weight,
                "background_traits": traits,
                "targets": _targets(fitted),
                "contributions": settings.contributions,
                "metric": settings.metric,
                "metric_name": metric.name,
                "omega": metric.weights,
                "moves": metric.moves,
                "main_effects": fitted.main_effects,
            }
        return cls(
            reference=fitted.reference,
            target=settings.target,
            output=settings.output,
            law=settings.law_of_columns,
            seed=settings.seed,
            wrapped=wrapped,
            schema=None if wrapped else problem.function.schema,
            rows=problem.points,
            table=table.points,
            table_features=table.labels.features,
            n_rows=table.n_rows,
            sizes=problem.sizes,
            values=problem.function.value_at(first, problem.labels.of_columns()),
            groups={name: tuple(columns) for name, columns in groups.items()},
            n_neighbors=problem.n_neighbors,
            **parts,
        )

    @property
    def digest(self) -> str:
        """SHA-256 of all fields except for the seconds of the fit."""
        timeless = replace(self.reference, seconds=0.0, model_seconds=0.0)
        text, members = packed(replace(self, reference=timeless))
        return digest_of(text, members)

    def validate(self) -> None:
        """Refuse arrays of wrong sizes and incomplete settings of contributions."""
        k = len(self.values)
        n, P = self.reference.shape
        count = self.rows.shape[1]
        if self.groups:
            names = Labels(features=self.table_features)
            count = Players.of(self.groups, names, count).count
        if (len(self.rows), count) != (n, P):
            raise InvalidInput("rows: expected the rows of the reference")
        if k != min(n, CHECKED_ROWS):
            raise InvalidInput(f"values: expected {min(n, CHECKED_ROWS)} numbers")
        for name in ("base_value", "prediction"):
            numbers = getattr(self.reference, name)
            if numbers is not None and np.isnan(numbers).any():
                raise InvalidInput(f"reference: {name}: some saved numbers are missing")
        if len(self.reference.weights) != 2:
            raise InvalidInput("reference: weights: expected two, one for each loss")
        together: list[Any] = [
            self.contributions,
            self.metric,
            self.background,
            self.targets,
            self.metric_name,
            self.omega,
            self.moves,
            self.n_background,
        ]
        if 0 < sum(part is None for part in together) < len(together):
            raise InvalidInput("contributions: some of their fields are missing")
        parts = (self.targets, self.main_effects)
        if any(part is not None and part.shape[1] != P for part in parts):
            raise InvalidInput("targets: expected one for each contribution")
        if self.targets is not None and len(self.targets) != min(n, CHECKED_TARGETS):
            raise InvalidInput("targets: expected those of the first rows")
        traits = self.background_traits
        sizes = N_DRAWN_BLOCKS, 0 if self.background is None else len(self.background)
        if traits is not None and len(traits) not in sizes:
            raise InvalidInput("background_traits: expected those of rows or ten parts")
        weights = self.background_weights
        if weights is not None and not abs(float(weights.sum()) - 1.0) <= 1e-9:
            raise InvalidInput("background_weights: expected shares that add up to 1")

    def fitted(self, model: Any) -> FittedRows:
        """Restore the fitted explainer for the given model."""
        reference = self.reference
        function = self._function(model)
        labels = Labels(features=self.table_features)
        labels.check(self.table.shape, "table")
        table = Reference.of_points(self.table, labels, function.schema)
        table = replace(table, n_rows=self.n_rows)
        parts: dict[str, Any] = {"kind": "slopes"}
        if self.contributions is not None and self.metric is not None:
            contributions = {"contributions": self.contributions, "metric": self.metric}
            parts = {"kind": "contributions", **contributions}
            if self.main_effects is None:
                parts["offset"] = None
            if self.groups:
                parts["groups"] = dict(self.groups)
        settings = CheckedSettings(
            target=self.target,
            output=self.output,
            outcome=None if self.wrapped else function.quantity.outcome,
            law=self.law,
            scale=self.sizes,
            graph=Nearest(self.n_neighbors),
            robustness=[*reference.weights.values()][1],
            sampling=Sampling(rng=self.seed),
            **parts,
        )
        problem = RowsProblem(
            settings=settings,
            function=function,
            reference=table,
            sizes=self.sizes,
            points=self.rows,
            labels=self._names,
            model=model,
        )
        if self.background is None:
            return FittedRows(problem=problem, reference=reference)
        assert self.n_background is not None, "see validate"
        assert self.metric_name is not None, "see validate"
        assert self.omega is not None, "see validate"
        assert self.moves is not None, "see validate"
        background = Background(
            self.background,
            self.n_background,
            self.background_weights,
            self.drawn_by_weight,
        )
        if self.background_traits is not None:
            background = background.calibrated(self.background_traits)
        background.refuse_another(reference.background, "reference")
        return FittedContributions(
            problem=replace(problem, background=background),
            reference=reference,
            metric=ColumnMetric(self.metric_name, self.omega, self.moves),
            main_effects=self.main_effects,
        )

    @property
    def _names(self) -> Labels:
        """The names of the reference rows and their columns."""
        labels = self.reference.labels
        return Labels(labels.points, self.table_features) if self.groups else labels

    def _function(self, model: Any) -> Function:
        if self.wrapped != isinstance(model, Function):
            made = "a Function, by propopt.wrap" if self.wrapped else "the model itself"
            raise InvalidInput(
                f"model: expected {made}, as the explainer was fitted to it"
            )
        if self.wrapped:
            return model
        data: Any = self.table if self.schema is None else self.schema
        function, _ = wrap_with_table(model, None, self.target, self.output, data)
        if self.reference.quantity is None:
            return function
        return replace(function, quantity=self.reference.quantity)  # type: ignore[type-var]


def read_explainer(path: str | Path, model: Any) -> FittedRows:
    """Read the explainer of a file and check it against the given model."""
    saved = SavedExplainer.load(path)
    source = archive_path(path)
    try:
        fitted = saved.fitted(model)
        _refuse_contradictions(fitted)
        _refuse_other_function(fitted, saved)
    except InvalidInput as error:
        raise InvalidInput(f"{source}: {error}") from None
    except _NONSENSE as error:
        reason = f"its fields are inconsistent: {type(error).__name__}: {error}"
        raise InvalidInput(f"{source}: not a saved explainer: {reason}") from None
    return fitted


def _refuse_contradictions(fitted: FittedRows) -> None:
    """Refuse combinations of fields that no fit produces."""
    reference = fitted.reference
    for name, text in neighbours_in_words(fitted.problem).items():
        if reference.parameters.get(name) != text:
            raise InvalidInput(
                f"nearest: {name}: the reference has "
                f"{reference.parameters.get(name)!r}, and its graph has {text!r}"
            )
    if fitted.problem.reference.n_rows < len(fitted.problem.reference.points):
        raise InvalidInput("table: n_rows: fewer than its rows")
    if not fitted.weights[0] > 0.0:
        raise InvalidInput("reference: weights: expected the first above zero")
    arrays = [reference.gradient]
    if fitted.problem.settings.parts:
        base = reference.base_value
        arrays = [reference.contributions, base, reference.prediction]
        if base is not None and np.ptp(base) != 0.0:
            raise InvalidInput(
                "reference: base_value: expected an equal number in all rows"
            )
    if any(array is None for array in arrays):
        raise InvalidInput("reference: it lacks its target")


def _targets(fitted: FittedRows) -> Array:
    """The targets of some reference rows, computed as for new rows."""
    columns = fitted.problem.labels.of_columns()
    rows = fitted.problem.points[:CHECKED_TARGETS]
    rule = fitted.problem.rule
    if isinstance(rule, TargetRule):
        return rule.at(rows, columns).values
    result = [fitted.aim(rows[[n]], columns) for n in range(len(rows))]
    return np.concatenate([one.estimate.values for one in result])


def _refuse_other_function(fitted: FittedRows, saved: SavedExplainer) -> None:
    """Refuse a model with other values or targets than those in the file."""
    D = fitted.reference.shape[1]
    columns = fitted.problem.labels.of_columns()
    values = saved.values
    result = fitted.function.value_at(fitted.problem.points[: len(values)], columns)
    target = fitted.reference.gradient
    before = np.zeros((0, D)) if target is None else target
    if saved.targets is not None:
        before = saved.targets
    targets = _targets(fitted)
    before = before[: len(targets)]
    of_values = allowed_difference(values, _SAME, precision_of(values))
    of_targets = np.full(before.shape, _SAME * largest_entry(before))
    for label, now, then, allowed in (
        ("value", result, values, of_values),
        ("target", targets, before, of_targets),
    ):
        excess = np.abs(now - then) - allowed
        if not excess.max() <= 0.0:
            index = np.unravel_index(int(excess.argmax()), excess.shape)
            raise InvalidInput(
                f"model: it differs from the model of the fit: at reference row "
                f"{index[0]} its {label} is {now[index]:.6g}, and was "
                f"{then[index]:.6g}; fit an explainer to this model"
            )
