"""New rows explained one by one, given fixed reference rows."""

from __future__ import annotations

import hashlib
import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, Final, NoReturn, TypeVar, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Indices, Mask, Points
from propopt.base.checks import read_only
from propopt.base.declared import lazily
from propopt.base.errors import InvalidInput
from propopt.base.resources import BATCH_BUDGET
from propopt.base.terminal import progress_bar
from propopt.explaining.contributions import AnyRule, ContributionRule
from propopt.explaining.main_effect_rule import MainEffectRule
from propopt.explaining.problem import (
    ALONE,
    CheckedSettings,
    ExplanationProblem,
    RowsProblem,
    joint_setting_of,
    note_on_others,
    with_note,
)
from propopt.explaining.targets import (
    ColumnMetric,
    Targets,
    coordinates_of,
    error_of_parts,
    in_words,
    refuse_no_scale,
    target_rule,
    warn_of_patterns,
)
from propopt.functions import Function
from propopt.laws.data_law import row_keys
from propopt.losses import Completeness, GradientMatching, Program
from propopt.losses.algebra import _RecastLoss
from propopt.losses.faithfulness import Estimate
from propopt.losses.graphs.distances import Distances
from propopt.losses.graphs.neighbours import RowMatches
from propopt.losses.maps import LinearMap, OverPoints
from propopt.proofs.certificate import Certificate
from propopt.proofs.optimum import Parameter
from propopt.proofs.target_error import TargetError
from propopt.results.explanation import Explanation
from propopt.tables.frames import Labels, select_rows


# ---- The optimum of new rows, given fixed rows


MEASURES_OF_ROWS: Final = (
    "losses",
    "value",
    "value_of_zero",
    "excess",
    "violation",
    "distance",
    "joint_excess",
    "joint_distance",
)
"""Attributes of rows that an explanation needs in addition to the optimum."""


_UNSCALED = 1e-9
"""The least scale of a gap, relative to the objective of zero attributions."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class OutOfSampleRows:
    """New rows (...,), or a single one (), and their optima given fixed rows.

    min over w of  a‖w − g‖² + 2b Σ_j s_j Σ_{d in j} (w_d − w_jd)²,

    which are the terms that row w adds to an objective of ordered pairs. A fixed row
    counts in all columns, a document only in its words. With p_jd = 2b s_j where it
    counts and 0 elsewhere,

        h_d = a + Σ_j p_jd,   w_d = (a g_d + Σ_j p_jd w_jd)/h_d.

    With the constraint vᵀw = t, the objective is F + Σ_d h_d (w_d − p_d)² for this
    unconstrained optimum p, so the optimum is the closest complete point,

        w = p + H⁻¹v (t − vᵀp)/(vᵀH⁻¹v),   H = diag(h).

    An answer must be equal to the last bit in every batch of rows. BLAS adds in an
    order that depends on the number of rows, so there are no products of matrices here:
    all sums are along the last axes of arrays with rows in front.
    """

    target: Array  # (..., D): g
    similarities: Array  # (..., k): s_j ≥ 0
    fixed: Array  # (..., k, D): w_j, the attributions of the neighbours
    weights: tuple[float, float]  # a > 0 and b ≥ 0
    shared: Mask | None = None  # (..., k, D): where fixed rows count; all if None
    axis: Array | None = None  # (D,) or (..., D): v of complete rows, not all zero
    fixed_axis: Array | None = None  # (D,): v of the fixed rows
    total: float | Array = 0.0  # (...,): t

    @cached_property
    def stiffness(self) -> Array:
        """Half the curvature h, (..., D); (..., 1) if fixed rows count everywhere."""
        a, b = self.weights
        similarities = self.similarities[..., None]
        counted = similarities if self.shared is None else similarities * self.shared
        return np.asarray(a + 2.0 * b * counted.sum(axis=-2))

    @cached_property
    def w(self) -> Array:
        """The optimal attributions w, shape (..., D)."""
        w = self.target + self._pull(self.fixed, self.target) / self.stiffness
        if self.axis is not None:
            for _ in range(2):  # twice, because of rounding
                missed = (self.axis * w).sum(axis=-1) - self.total
                w = w - self._step * (missed / self._size)[..., None]
        return np.asarray(w)

    @cached_property
    def losses(self) -> Array:
        """Both losses ‖w − g‖² and 2 Σ_j s_j ‖w − w_j‖², shape (..., 2)."""
        losses = np.empty((*self.w.shape[:-1], 2))
        losses[..., 0] = _square(self.w - self.target)
        losses[..., 1] = 2.0 * (self.similarities * self._apart).sum(axis=-1)
        return losses

    @property
    def value(self) -> Array:
        """The objective of each row at w."""
        a, b = self.weights
        return np.asarray(a * self.losses[..., 0] + b * self.losses[..., 1])

    @property
    def value_of_zero(self) -> Array:
        """The objective of each row at w = 0."""
        a, b = self.weights
        pairs = (self.similarities * _square(self.fixed)).sum(axis=-1)
        return np.asarray(a * _square(self.target) + 2.0 * b * pairs)

    @cached_property
    def slope(self) -> Array:
        """Half the gradient r of the objective at w, shape (..., D)."""
        pull = self.weights[0] * (self.w - self.target)
        return np.asarray(pull - self._pull(self.fixed, self.w))

    @property
    def excess(self) -> Array:
        """Upper bound of the objective minus its least value: rᵀH⁻¹r.

        For a complete row, r without its part along v, plus the change of the objective
        along v for the rounding error of its sum.
        """
        excess = (self._tangent**2 / self.stiffness).sum(axis=-1)
        if self.axis is None:
            return np.asarray(excess)
        along = (self._step * self.slope).sum(axis=-1) / self._size
        return np.asarray(excess + np.maximum(2.0 * self._missed * along, 0.0))

    @property
    def violation(self) -> Array:
        """Relative error |vᵀw − t| of the sum of each row; 0 without a constraint."""
        if self.axis is None:
            return np.zeros(self.w.shape[:-1])
        most = (np.abs(self.w) * np.abs(self.axis)).sum(axis=-1)
        scale = np.maximum(np.maximum(most, np.abs(self.total)), sys.float_info.min)
        return np.asarray(np.abs(self._missed) / scale)

    @property
    def distance(self) -> Array:
        """Upper bound ‖H⁻¹r‖ of the distance of w from the optimum, r as for excess."""
        apart = np.sqrt(_square(self._tangent / self.stiffness))
        if self.axis is None:
            return np.asarray(apart)
        short = self._missed / self._size * np.sqrt(_square(self._step))
        return np.asarray(np.hypot(apart, short))

    def moved(self, deviations: Array) -> Array:
        """Changes a H⁻¹E of the optima for changes E (..., B, D) of their targets."""
        stiffness = self.stiffness[..., None, :]
        return np.asarray(self.weights[0] / stiffness * self.off_axis(deviations))

    def off_axis(self, E: Array) -> Array:
        """The part of E that changes no sum: E − v (vᵀH⁻¹E)/(vᵀH⁻¹v)."""
        if self.axis is None:
            return E
        axis = self.axis
        step = self._step
        size = self._size
        if E.ndim > step.ndim:
            axis = axis[..., None, :]
            step = step[..., None, :]
            size = size[..., None]
        along = (E * step).sum(axis=-1) / size
        return np.asarray(E - along[..., None] * axis)

    @property
    def joint_excess(self) -> Array:
        """Bound (4b²/a) Σ_j s_j² ‖w_j − w‖² of the gain of re-solving all rows jointly.

        With the row appended to fixed rows that were optimal without it, the gradient
        of the joint objective is 4b s_j (w_j − w) at its neighbours and zero at all
        others; the curvature at fixed rows is at least 2a. For complete rows the
        gradient is projected on these.
        """
        a, b = self.weights
        return np.asarray(4.0 * b**2 / a * self._touched)

    @property
    def joint_distance(self) -> Array:
        """Bound (2b/a) (Σ_j s_j² ‖w_j − w‖²)^½ of the move of all rows if re-solved."""
        a, b = self.weights
        return np.asarray(2.0 * b / a * np.sqrt(self._touched))

    def _pull(self, fixed: Array, w: Array) -> Array:
        """Sum over j of p_jd times the difference of fixed rows from w (..., D)."""
        return np.asarray((self._pulls * (fixed - w[..., None, :])).sum(axis=-2))

    @cached_property
    def _pulls(self) -> Array:
        pulls = 2.0 * self.weights[1] * self.similarities[..., None]
        return pulls if self.shared is None else pulls * self.shared

    @cached_property
    def _tangent(self) -> Array:
        """Half the gradient, without the part that changes sums."""
        return self.off_axis(self.slope)

    @cached_property
    def _missed(self) -> Array:
        """The error vᵀw − t of the sums."""
        assert self.axis is not None, "it adds up"
        return np.asarray((self.axis * self.w).sum(axis=-1) - self.total)

    @cached_property
    def _step(self) -> Array:
        """The vector H⁻¹v times the least h."""
        assert self.axis is not None, "it adds up"
        least = self.stiffness.min(axis=-1, keepdims=True)
        return np.asarray(self.axis * (least / self.stiffness))

    @cached_property
    def _size(self) -> Array:
        """The number vᵀH⁻¹v times the least h."""
        assert self.axis is not None, "it adds up"
        return np.asarray((self.axis * self._step).sum(axis=-1))

    @cached_property
    def _touched(self) -> Array:
        """The sum Σ_j s_j² ‖w_j − w‖² over the neighbours."""
        apart = self._apart
        if self.fixed_axis is not None:
            v = self.fixed_axis
            free = np.where(v != 0.0, self.fixed - self.w[..., None, :], 0.0)
            along = (free * v).sum(axis=-1) / (float(_square(v)) or 1.0)
            apart = _square(free - along[..., None] * v)
        return np.asarray((self.similarities**2 * apart).sum(axis=-1))

    @cached_property
    def _apart(self) -> Array:
        """Squared distances ‖w_j − w‖² over shared columns, shape (..., k)."""
        squares = (self.fixed - self.w[..., None, :]) ** 2
        if self.shared is not None:
            squares = squares * self.shared
        return np.asarray(squares.sum(axis=-1))


def stacked_measures(rows: Sequence[OutOfSampleRows]) -> Mapping[str, Array]:
    """The measures of single rows with different columns, stacked to (m, ...)."""
    return {
        name: np.array([getattr(row, name) for row in rows])
        for name in MEASURES_OF_ROWS
    }


def _square(w: Array) -> Array:
    return np.asarray((w**2).sum(axis=-1))


def gaps_of(measures: Mapping[str, Array]) -> Array:
    """The certified gap of each row, (m,): its excess relative to its objective.

    An excess above the objective is cut to it, because no objective is negative.
    """
    value = measures["value"]
    zero = measures["value_of_zero"]
    excess = np.clip(measures["excess"], 0.0, value)
    scale = np.maximum(value, _UNSCALED * zero)
    return np.divide(excess, scale, out=np.zeros(excess.shape), where=excess > 0.0)


# ---- Fitted explainers and their answers


_SOON = 1.0
"""Seconds after which a progress bar is shown by default."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedReference(ABC):
    """The joint optimum of reference rows, for explaining others one by one."""

    problem: ExplanationProblem  # the problem of the reference rows
    reference: Explanation  # their joint optimum

    @classmethod
    @abstractmethod
    def problem_of(
        cls,
        settings: CheckedSettings,
        model: Any,
        data: Any,
        X: Any,
        progress: bool | None,
    ) -> ExplanationProblem:
        """The problem of reference rows X, or of some of ``data``, not yet solved."""

    @classmethod
    @abstractmethod
    def of(cls, problem: Any, data: Any, X: Any) -> FittedReference:
        """Explain the reference rows of a problem jointly."""

    @property
    def function(self) -> Function:
        """The model as a function of rows or documents."""
        return self.problem.function

    @property
    def weights(self) -> tuple[float, float]:
        """The weights a of faithfulness and b of robustness."""
        faithfulness, pairs = self.reference.weights.values()
        return faithfulness, pairs

    @cached_property
    def explained(self) -> Explanation:
        """The joint optimum, with parameters that describe all reference rows."""
        parameters = {**self.reference.parameters, **self._reference_parameters()}
        return replace(self.reference, parameters=parameters)

    def _reference_parameters(self) -> dict[str, Parameter]:
        """Parameters that describe reference rows and do not apply to new rows."""
        return {}

    @abstractmethod
    def explain(self, X: Any, progress: bool | None) -> Explanation:
        """Explain each row or document of X, given the reference."""

    @staticmethod
    def with_progress(items: Sequence[_Item], progress: bool | None) -> Iterator[_Item]:
        """Iterate with a progress bar, by default only after a second of work."""
        start = time.perf_counter()
        bar = None
        with ExitStack() as stack:
            for n, item in enumerate(items):
                if bar is not None:
                    bar.advance(bar.task_ids[0])
                elif progress or time.perf_counter() - start > _SOON:
                    shown = progress_bar("explain", len(items), progress)
                    bar = stack.enter_context(shown)
                    bar.advance(bar.task_ids[0], n)
                yield item
            if bar is not None:
                bar.advance(bar.task_ids[0])

    def answer(
        self,
        measures: Mapping[str, Array],
        targets: Targets,
        began: float,
        **fields: Any,
    ) -> Explanation:
        """Combine optima of separate rows in one explanation."""
        names = self.reference.weights
        losses = measures["losses"].sum(axis=0).tolist()
        return Explanation(
            method="optimized",
            weights=dict(names),
            losses=dict(zip(names, losses, strict=True)),
            solver="conditional",
            quantity=self.function.quantity,
            units=self.reference.units,
            evaluations=targets.estimate.evaluations,
            seconds=time.perf_counter() - began,
            **{**targets.fields, **fields},
        )

    def program_of(
        self,
        aim: Estimate,
        pairs: LinearMap,  # from W to its roots of similarities with fixed rows
        fixed: Array,  # what these would be if W equalled the fixed rows
        sums: Completeness | None,
    ) -> Program:
        """The program of new rows: their targets, fixed neighbours and sums."""
        faithfulness, robustness = self.reference.weights
        squared = GradientMatching(self.reference.attributions, name=robustness)
        anchored = _RecastLoss(squared, pairs, fixed)
        losses = GradientMatching(aim, name=faithfulness), anchored
        if sums is None:
            return Program(losses)
        return Program(losses, (sums.bound(aim.values.shape[1]),))


def joint_proof(measures: Mapping[str, Array], largest: float = 1.0) -> Certificate:
    """The certificate of separate rows, for the program with a fixed reference."""
    names = ("value", "excess", "value_of_zero")
    value, excess, zero = (math.fsum(measures[name].tolist()) for name in names)
    return Certificate(
        value=value,
        lower_bound=max(value - excess, 0.0),
        scale=max(value, _UNSCALED * zero),
        kind="strong convexity",
        violation=float(measures["violation"].max()),
        distance=largest * math.hypot(*measures["distance"].tolist()),
    )


def with_base_margins(explained: Explanation, margins: Array | None) -> Explanation:
    """Add the changes o (m,) by base margins to the base and prediction of each row.

    A base margin, such as log exposure, changes the output by a number that depends on
    no column (``ModelStructure.with_base_margins``), so it is part of the base of its
    row: base + o_n + Σ_d w_nd = f(x_n) + o_n.
    """
    if margins is None:
        return explained
    base = explained.base_value
    prediction = explained.prediction
    assert base is not None, "see ExplanationProblem.margins"
    assert prediction is not None, "see ExplanationProblem.margins"
    ends = f"{margins.min():.4g} to {margins.max():.4g}"
    words = f"changes base and prediction of each row by {ends}"
    return replace(
        explained,
        base_value=base + margins,
        prediction=prediction + margins,
        parameters={**explained.parameters, "base margin": words},
    )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RowAnswers:
    """New rows with their targets, neighbours and optima."""

    targets: Targets
    neighbours: list[RowMatches]  # (m,): the reference rows of each
    main_effects: Attributions  # (m, D): g, 0 without
    moves: Mask  # (m, D): columns that may move
    measures: Mapping[str, Array]  # w and other attributes of OutOfSampleRows
    # (m, B, D): changes of the optima for each block of a sampled target
    moved: Array | None = None

    @classmethod
    def joined(cls, parts: Sequence[RowAnswers], order: Indices) -> RowAnswers:
        """Join parts with equal columns, and put their rows in another order."""
        neighbours = [matches for part in parts for matches in part.neighbours]

        def both(arrays: Sequence[NDArray[Any]]) -> Any:
            return np.concatenate(arrays)[order]

        moved = [part.moved for part in parts if part.moved is not None]
        return cls(
            targets=Targets.joined([part.targets for part in parts]).taken(order),
            neighbours=[neighbours[n] for n in order],
            main_effects=both([part.main_effects for part in parts]),
            moves=both([part.moves for part in parts]),
            measures={
                name: both([part.measures[name] for part in parts])
                for name in parts[0].measures
            },
            moved=both(moved) if len(moved) == len(parts) else None,
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRows(FittedReference):
    """Fitted reference rows of a table, and all inputs of the answer for a new row.

    Slopes of a new row are optimal given its nearest reference rows w_j. Contributions
    are optimized in z = (w − Φ)/√ω. With f(x) − base = t, main effects g (or 0) and the
    differences r_j = w_j − g_j of reference rows, they minimise

        ‖z‖² + 2b Σ_j s_j ‖z − (r_j − (Φ − g))/√ω‖²

    subject to Σ_d √ω_d z_d = t − Σ_d Φ_d.
    """

    problem: RowsProblem
    rule: AnyRule  # how the target of a row is computed, with a fixed seed
    wrapped: bool  # whether the model was given as a Function
    metric: ColumnMetric | None = None  # of contributions, from the reference rows
    main_effects: Attributions | None = None  # g_j (n, D)

    @classmethod
    def problem_of(
        cls,
        settings: CheckedSettings,
        model: Any,
        data: Any,
        X: Any,
        progress: bool | None,
    ) -> RowsProblem:
        if X is None:
            settings.refuse_joint_settings()
        return RowsProblem.of(settings, model, data, X, progress)

    @classmethod
    def of(cls, problem: RowsProblem, data: Any, X: Any) -> FittedRows:
        settings = problem.settings
        function = problem.function
        reference = problem.reference
        if data is not None and not settings.parts:
            reference.refuse_equal_rows()
        if len(problem.points) < 2 and settings.given_graph is None:
            _refuse_one_row(settings, data, X)
        graph = problem.graph  # raises before anything is computed
        refuse_no_scale(problem.sizes, reference)
        if X is not None and not settings.parts:  # contributions have one unit
            warn_of_patterns(graph, problem.coordinates)
        rule = problem.rule.settled(problem.points, settings.seed)
        best = problem.best(rule)
        _ = best.attributions  # certified now, as all answers depend on them
        parts: dict[str, Any] = {}
        if isinstance(rule, ContributionRule):
            parts = {"metric": problem.metric, "main_effects": problem.robust.offset}
        parameters = dict(best.parameters)
        notes = {"notes": parameters.pop("notes")} if "notes" in parameters else {}
        verdict = function.jumps
        explained = replace(
            best,
            parameters={
                "function": repr(function),
                **({} if verdict is None else {"jump test": verdict.in_words()}),
                **parameters,
                "scale": in_words(settings.scale),
                **_without_data(problem, data),
                "data": f"{reference.in_words()}, sha256:{reference.digest[:12]}",
                **neighbours_in_words(problem),
                "weight rule": problem.weight[1],
                **problem.background_parameters(),
                **notes,
            },
            quantity=function.quantity,
            background=problem.background_digest,
            **problem.metadata(problem.points),
        )
        return cls(
            problem=problem,
            rule=rule,
            wrapped=isinstance(problem.model, Function),
            reference=explained,
            **parts,
        )

    def _reference_parameters(self) -> dict[str, Parameter]:
        """Notes on unknown categories, and the share that main effects explain."""
        problem = self.problem
        parameters = self.reference.parameters
        note = note_on_others(self.function, problem.points)
        effects = problem.main_effect_parameters(self.reference)
        return {**with_note(parameters, note), **effects}

    @cached_property
    def main_effect_rule(self) -> MainEffectRule | None:
        """The rule for main effects of a new row; None without main effects."""
        return (
            None
            if self.main_effects is None
            else self.problem.main_effect_rule_of(self.rule)
        )

    def neighbours_of(self, coordinates: Points, points: Points) -> list[RowMatches]:
        """The reference rows that each of rows (m, D) is compared with, nearest first.

        A row that equals a reference row has the same neighbours as that row, and thus
        its joint optimum.
        """
        problem = self.problem
        if self.metric is None:
            apart = self._distances.of(coordinates)
            k = problem.n_neighbors
            nearest = np.argsort(apart, axis=1, kind="stable")[:, :k]
            return [RowMatches(indices, np.ones(k)) for indices in nearest]
        matches = [self._index_of.get(row) for row in row_keys(points)]
        new = [n for n, index in enumerate(matches) if index is None]
        nearest_new = iter(problem.neighbours.of(coordinates[new]) if new else ())
        return [
            next(nearest_new) if index is None else problem.neighbours.joined(index)
            for index in matches
        ]

    @cached_property
    def _distances(self) -> Distances:
        return Distances(self.problem.coordinates)

    @cached_property
    def _index_of(self) -> dict[bytes, int]:
        """The first reference row with given values, by their bytes."""
        keys = row_keys(self.problem.points)
        return {row: n for n, row in reversed(list(enumerate(keys)))}

    def explain(self, X: object, progress: bool | None) -> Explanation:
        """Explain each row of X, given the reference rows."""
        self.problem.settings.refuse_joint_settings()
        began = time.perf_counter()
        wide = self._taking(X)
        points, labels = wide.function.read(X, "X")
        rows = self._answers(X, wide, points, labels, progress)
        problem = self.problem
        group_labels = labels
        if problem.players is not None:
            group_labels = problem.players.labels(labels)
        targets = rows.targets
        largest = 1.0
        W = rows.measures["w"]
        if self.metric is not None:
            axes = np.where(rows.moves, self.metric.roots, 0.0)
            largest = float(axes.max(initial=0.0))
            W = targets.estimate.values + W * axes
        measures = rows.measures
        proof = joint_proof(rows.measures, largest)
        return self.answer(
            measures,
            targets,
            began,
            attributions=W,
            labels=group_labels,
            parameters=with_note(
                self.row_parameters, note_on_others(wide.function, points)
            ),
            background=self.reference.background,
            certificate=proof,
            details={
                "gap": read_only(gaps_of(measures)),
                "error": read_only(targets.estimate.row_errors),
                "joint_excess": measures["joint_excess"],
                "joint_distance": largest * measures["joint_distance"],
                "similarity": read_only(measures["similarity"]),
                "reference_rows": read_only(
                    padded(rows.neighbours, problem.n_neighbors)
                ),
            },
            **wide.problem.metadata(points),
            **self._errors(rows, proof.scale),
            **self._programs(rows, group_labels),
            row_size=self.row_size,
        )

    @cached_property
    def row_parameters(self) -> dict[str, Parameter]:
        """Parameters of the reference that also apply to new rows."""
        joint = ("without data", "jump test")
        parameters = self.reference.parameters
        return {name: parameters[name] for name in parameters if name not in joint}

    def new_categories(self, X: object) -> tuple[int, str]:
        """How many rows of X have categories that do not occur in data, and which."""
        function = self._taking(X).function
        points, _ = function.read(X, "X")
        schema = function.schema
        return (0, "") if schema is None else schema.unseen_categories(points)

    def _answers(
        self,
        X: Any,
        wide: FittedRows,
        points: Points,
        labels: Labels,
        progress: bool | None,
    ) -> RowAnswers:
        """Answers for rows; rows with new categories are computed separately.

        Rows with the same new categories are computed together, without the new
        categories of other rows. So an answer does not depend on these.
        """
        schema = wide.function.schema
        if wide is self or schema is None:
            return self.answers_at(points, labels, progress)
        is_new = schema.new_categories(points)
        has_new: Mask = np.any(is_new, axis=1)
        new = np.flatnonzero(has_new)
        wide.function.value_at(points[new], labels.of_positions(new))  # may raise
        members: dict[bytes, list[int]] = {}
        for n, key in enumerate(row_keys(np.where(is_new, points, -1.0))):
            members.setdefault(key, []).append(n)
        groups = [np.array(rows) for rows in members.values()]
        several = sum(bool(has_new[rows[0]]) for rows in groups) > 1
        parts = []
        for rows in groups:
            owner = wide if has_new[rows[0]] else self
            of_rows = points[rows]
            if owner is wide and several:
                table = select_rows(X, rows)
                owner = self._taking(table)
                of_rows, _ = owner.function.read(table, "X")
            parts.append(owner.answers_at(of_rows, labels.of_positions(rows), progress))
        return RowAnswers.joined(parts, np.argsort(np.concatenate(groups)))

    def _taking(self, X: object) -> FittedRows:
        """This fit, extended to categories of X that do not occur in data."""
        function = self.function.with_categories_of(X)
        problem = self.problem
        rule = self.rule
        if function is self.function or function.schema is None:
            return self
        codes = function.schema.n_codes
        reference = replace(problem.reference, n_codes=codes)
        seed = problem.settings.seed
        problem = replace(problem, function=function, reference=reference)
        if isinstance(rule, ContributionRule):
            rule = replace(
                rule,
                function=function,
                reference=reference,
                given_background=rule.background,
            )
        else:
            law = problem.settings.law_of_columns
            if law == "auto":  # the law of the reference rows
                law = "none" if rule.function is self.function else "data"
            rule = target_rule(function, reference, problem.sizes, law=law, rng=seed)
        return replace(self, problem=problem, rule=rule.settled(problem.points, seed))

    def answers_at(
        self, points: Points, labels: Labels, progress: bool | None
    ) -> RowAnswers:
        """The targets, neighbours and optima of some rows."""
        targets = Targets.joined(self._aims(points, labels, progress))
        coordinates = coordinates_of(self.function, points, self.problem.sizes)
        phi = targets.estimate.values
        neighbours = self.neighbours_of(coordinates, points)
        main_effects = np.zeros(phi.shape)
        moves = np.ones(phi.shape, bool)
        total = np.zeros(len(phi))
        if self.metric is not None:
            rule = self.main_effect_rule
            if rule is not None:
                main_effects = rule.of_rows(points, labels.of_columns())
            moves = np.broadcast_to(self.metric.moves, phi.shape)
            if self.metric.is_uniform:  # and columns that only this row uses
                moves = moves | (phi != 0.0)
            total = targets.total - [math.fsum(row) for row in phi.tolist()]
            self._refuse_missed(targets, total, moves, labels)
        aim = targets.estimate
        deviations = None
        if aim.blocks is not None and not aim.exact:
            deviations = (aim.blocks - aim.blocks.mean(axis=0)).transpose(1, 0, 2)
        measures: dict[str, Array] = {}
        parts = list[tuple[Indices, dict[str, Array]]]()
        # blocks of rows with equally many neighbours that all may move, or none
        counts = [len(matches.positions) for matches in neighbours]
        kinds = list(zip(counts, np.any(moves, axis=1).tolist(), strict=True))
        for kind in dict.fromkeys(kinds):
            members = np.array([n for n, other in enumerate(kinds) if other == kind])
            n_bytes = 64 * (kind[0] + 1) * phi.shape[1]
            for part in BATCH_BUDGET.blocks(len(members), n_bytes):
                rows = members[part]
                block = self._block(rows, phi, neighbours, main_effects, moves, total)
                measures = {
                    name: getattr(block, name) for name in ("w", *MEASURES_OF_ROWS)
                }
                measures["similarity"] = block.similarities.sum(axis=-1)
                if deviations is not None:
                    changes = self._moved(block, deviations[rows], moves[rows])
                    measures["moved"] = changes
                parts.append((rows, measures))
        if len(parts) > 1:
            order = np.argsort(np.concatenate([rows for rows, _ in parts]))
            measures = {
                name: np.concatenate([measures[name] for _, measures in parts])[order]
                for name in measures
            }
        moved = measures.pop("moved", None)
        return RowAnswers(
            targets=targets,
            neighbours=neighbours,
            main_effects=main_effects,
            moves=moves,
            measures=measures,
            moved=moved,
        )

    def _block(
        self,
        rows: Indices,
        phi: Attributions,
        neighbours: Sequence[RowMatches],
        main_effects: Attributions,
        moves: Mask,
        total: Array,
    ) -> OutOfSampleRows:
        """Rows with equally many neighbours, in z for contributions."""
        positions = np.array([neighbours[n].positions for n in rows])
        similarities = np.array([neighbours[n].similarities for n in rows])
        target = phi[rows]
        fixed = self._left[positions]
        metric = self.metric
        sums: dict[str, Any] = {}
        if metric is not None:
            apart = fixed - (target - main_effects[rows])[:, None]
            fixed = np.where(moves[rows, None], apart / metric.roots, 0.0)
            target = np.zeros(target.shape)
            axis = np.where(moves[rows], metric.roots, 0.0)
            if axis.any():
                sums = {"axis": axis, "fixed_axis": metric.axis, "total": total[rows]}
        return OutOfSampleRows(
            target=target,
            similarities=similarities,
            fixed=fixed,
            weights=self.weights,
            **sums,
        )

    def _aims(
        self, points: Points, labels: Labels, progress: bool | None
    ) -> list[Targets]:
        """The targets of rows, in one call if the model is row-independent."""
        rule = self.rule
        base = self.reference.base_value
        if rule.is_row_independent:
            base_value = None if base is None else float(base[0])
            return [rule.of_rows(points, labels, base_value)]
        # a model may predict many rows with other digits than one row
        return [
            self.aim(points[[n]], labels.of_positions([n]))
            for n in self.with_progress(range(len(points)), progress)
        ]

    def aim(self, point: Points, labels: Labels) -> Targets:
        """The target of a row (1, D), independent of the other rows of a call."""
        base = self.reference.base_value
        return self.rule.of_row(point, labels, None if base is None else float(base[0]))

    @cached_property
    def _left(self) -> Attributions:
        """The reference attributions without main effects, r_j (n, D)."""
        W = self.reference.attributions
        return W if self.main_effects is None else read_only(W - self.main_effects)

    def _refuse_missed(
        self, targets: Targets, missed: Array, moves: Mask, labels: Labels
    ) -> None:
        """Refuse a row that misses its sum while no column may move."""
        bad = ~moves.any(axis=1)
        if bad.any() and (bad := bad & (np.abs(missed) > targets.slack)).any():
            n = int(bad.argmax())
            raise InvalidInput(
                f"X: row {labels.row(n)!r}: no feature contributes, yet its prediction "
                f"differs from the base by {missed[n]:.3g}; give fit() reference rows "
                "with different values in the features that the model uses"
            )

    def _moved(self, rows: OutOfSampleRows, E: Array, moves: Mask) -> Array:
        """Changes of optima for changes E (m, B, D) of Φ; fixed columns change by E."""
        if self.metric is None:
            return rows.moved(E)
        still = ~moves[:, None]
        roots = self.metric.roots
        step = rows.moved(np.where(still, 0.0, E / roots)) * roots
        return np.where(still, E, step)

    def _errors(self, rows: RowAnswers, scale: float) -> dict[str, Any]:
        """The cost A² ⟨E, H⁻¹E⟩ of errors of the target, and standard errors."""
        target = rows.targets.estimate
        errors = None
        gram = None
        if rows.moved is not None and target.blocks is not None:
            B = len(target.blocks)
            apart = (target.blocks - target.blocks.mean(axis=0)).transpose(1, 0, 2)
            gram = np.zeros((B, B))
            for E, moved in zip(apart, rows.moved, strict=True):
                gram += self.weights[0] * E @ moved.T
            errors = np.sqrt((rows.moved**2).sum(axis=1) / (B * (B - 1)))
        if self.metric is not None:
            return {"target": error_of_parts(target), "standard_errors": errors}
        excess = None if gram is None else TargetError.of_gram((gram + gram.T) / 2.0)
        return {
            "target": TargetError.of(target, scale, excess),
            "standard_errors": errors,
        }

    @cached_property
    def row_size(self) -> float:
        """The root mean square of ‖w_n‖ over the reference rows."""
        squares = (self.reference.attributions**2).sum(axis=1)
        return float(np.sqrt(squares.mean()))

    def _programs(self, rows: RowAnswers, labels: Labels) -> dict[str, Any]:
        """The program of all rows, built on first access; in z if there is a metric."""
        program = lazily(cache(partial(self._program, rows, labels)))
        fields: dict[str, Any] = {"problem_data": self._problem_data(rows)}
        if self.metric is None or self.metric.is_uniform:
            return {"program": program, **fields}
        return {"scaled_program": program, "metric": self.metric.axis**2, **fields}

    def _program(self, rows: RowAnswers, labels: Labels) -> Program:
        """The program of new rows, given the fixed reference."""
        metric = self.metric
        targets = rows.targets
        phi = targets.estimate.values
        in_metric = metric is not None and not metric.is_uniform
        # ordered pairs 2 Σ_n Σ_j s_j ‖w_n − w_j‖² with fixed w_j
        counts = [len(neighbours.positions) for neighbours in rows.neighbours]
        row_of_pair = np.repeat(np.arange(len(counts)), counts)
        positions = np.concatenate([one.positions for one in rows.neighbours])
        similarities = np.concatenate([one.similarities for one in rows.neighbours])
        roots = np.sqrt(2.0 * similarities)
        at = np.arange(len(row_of_pair)), row_of_pair
        pulled = OverPoints(sp.csr_array((roots, at), (len(row_of_pair), len(counts))))
        fixed = self._left[positions]
        g = rows.main_effects[row_of_pair]
        aim = replace(targets.estimate, labels=labels)
        none = np.zeros(phi.shape)
        total = np.zeros(len(counts)) if targets.base is None else targets.total
        axes = none if metric is None else np.where(rows.moves, metric.roots, 0.0)
        if in_metric and metric is not None:
            apart = (fixed - (phi[row_of_pair] - g)) / metric.roots
            fixed = np.where(rows.moves[row_of_pair], apart, 0.0)
            g = none[row_of_pair]
            blocks = aim.blocks
            blocks = None if blocks is None else metric.scaled(blocks - phi)
            aim = replace(aim, values=none, blocks=blocks)
            total = total - [math.fsum(row) for row in phi.tolist()]
        sums = None
        if axes.any():
            shared = bool((axes == axes[0]).all())
            sums = Completeness(total, axes[0] if shared else axes)
        return self.program_of(aim, pulled, roots[:, None] * (fixed + g), sums)

    def _problem_data(self, rows: RowAnswers) -> dict[str, NDArray[Any]]:
        """The arrays of :mod:`propopt.proofs.problem_data` for a file."""
        faithfulness, pairs = self.reference.weights
        targets = rows.targets
        phi = rows.targets.estimate.values
        count = max(len(neighbours.positions) for neighbours in rows.neighbours)
        similarities = np.zeros((len(phi), count))
        for row, neighbours in zip(similarities, rows.neighbours, strict=True):
            row[: len(neighbours.positions)] = neighbours.similarities
        problem_data = {
            f"{faithfulness}.target": phi,
            f"{pairs}.neighbours": padded(rows.neighbours, count),
            f"{pairs}.similarities": similarities,
            f"{pairs}.fixed": self._left,
            f"{pairs}.offset": rows.main_effects,
        }
        if targets.base is not None:
            problem_data["completeness.parts"] = rows.moves.astype(np.float64)
            problem_data["completeness.totals"] = targets.total
        return {name: read_only(array) for name, array in problem_data.items()}


def padded(neighbours: Sequence[RowMatches], count: int) -> NDArray[np.intp]:
    """Places of the k nearest of each row, (m, k); −1 where there are fewer."""
    positions = np.full((len(neighbours), count), -1, np.intp)
    for row, matches in zip(positions, neighbours, strict=True):
        row[: len(matches.positions)] = matches.positions[:count]
    return positions


def neighbours_in_words(problem: RowsProblem) -> dict[str, str]:
    """Parameters of an explanation that describe how its rows are compared."""
    content = np.ascontiguousarray(problem.coordinates, dtype="<f8").tobytes()
    falling = "falling with distance" if problem.settings.parts else "uniform"
    given = problem.settings.given_graph
    if given is not None:
        return {"graph": repr(given)}
    count = len(problem.points)
    return {
        "graph": f"{problem.n_neighbors} nearest of {count} reference rows",
        "similarities": falling,
        "reference": f"sha256:{hashlib.sha256(content).hexdigest()[:12]}",
    }


def _without_data(problem: RowsProblem, data: Any) -> dict[str, Parameter]:
    """A parameter that warns that X is the background, as no data was given."""
    if data is not None or not problem.settings.parts:
        return {}
    count = f"{len(problem.points):,} rows of X"
    return {
        "without data": f"The {count} are also the background, because data= was not "
        "given. With data=X_train, a row does not depend on the others."
    }


def _refuse_one_row(settings: CheckedSettings, data: Any, X: Any) -> NoReturn:
    """Refuse a single row, which has no other to be compared with."""
    joint = joint_setting_of(settings)
    if joint is not None and data is not None:
        raise InvalidInput(f"{joint}: {ALONE}")
    table = "data" if X is None else "X"
    raise InvalidInput(
        f"{table}: got one row, and robustness compares rows; give more rows, or their "
        "table as data; for the gradient alone use propopt.explainers.Gradient"
    )
