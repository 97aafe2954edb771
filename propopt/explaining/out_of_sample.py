"""New rows explained one by one, given fixed reference rows."""

from __future__ import annotations

import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, partial
from typing import Any, NoReturn, TypeAlias, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Indices, Mask, Points
from propopt.base.checks import read_only
from propopt.base.declared import lazily
from propopt.base.errors import InvalidInput
from propopt.base.resources import BATCH_BUDGET
from propopt.base.terminal import tracked
from propopt.base.text import plural
from propopt.explaining.contributions import ContributionRule
from propopt.explaining.problem import (
    ALONE,
    CheckedSettings,
    ExplanationProblem,
    RowsProblem,
    joint_setting_of,
)
from propopt.explaining.retrained import RetrainedRows
from propopt.explaining.targets import (
    ColumnMetric,
    LawChoice,
    Targets,
    coordinates_of,
    error_of_parts,
    in_words,
    refuse_no_scale,
    warn_of_patterns,
)
from propopt.functions import Function
from propopt.laws.background import row_keys
from propopt.losses import Completeness, GradientMatching, Program
from propopt.losses.algebra import _RecastLoss
from propopt.losses.faithfulness import Estimate
from propopt.losses.graphs.distances import Distances
from propopt.losses.graphs.neighbours import RowMatches
from propopt.losses.maps import LinearMap, OverPoints
from propopt.proofs.certificate import joint_proof, row_proofs
from propopt.proofs.optimum import Parameter
from propopt.proofs.sampling_error import TargetError
from propopt.results.explanation import Explanation
from propopt.results.record import short_digest
from propopt.tables.frames import Labels, select_rows


# ---- The optimum of new rows, given fixed rows


@dataclass(frozen=True, kw_only=True, eq=False)
class OutOfSampleRows:
    """New rows (...,), or a single one (), and their optima given fixed rows.

    min over w of  a‖w − g‖² + 2b Σ_j s_j Σ_{d in j} (w_d − w_jd)²,

    which are the terms that row w adds to an objective of ordered pairs. A fixed row
    counts in all columns, a document only in its words. With p_jd = 2b s_j where it
    counts and 0 elsewhere,

        h_d = a + Σ_j p_jd,   w_d = (a g_d + Σ_j p_jd w_jd)/h_d.

    An answer must be equal to the last bit in every batch of rows. BLAS adds in an
    order that depends on the number of rows, so there are no products of matrices here:
    all sums are along the last axes of arrays with rows in front.
    """

    target: Array  # (..., D): g
    similarities: Array  # (..., k): s_j ≥ 0
    fixed: Array  # (..., k, D): w_j, the attributions of the neighbours
    weights: tuple[float, float]  # a > 0 and b ≥ 0
    shared: Mask | None = None  # (..., k, D): where fixed rows count; all if None

    @cached_property
    def stiffness(self) -> Array:
        """Half the curvature h, (..., D); (..., 1) if fixed rows count everywhere."""
        a, b = self.weights
        similarities = self.similarities[..., None]
        counted = similarities if self.shared is None else similarities * self.shared
        return a + 2.0 * b * counted.sum(axis=-2)

    @cached_property
    def _pulls(self) -> Array:
        """The weight p_jd of the difference from each fixed row."""
        pulls = 2.0 * self.weights[1] * self.similarities[..., None]
        return pulls if self.shared is None else pulls * self.shared

    def optima(self) -> Array:
        """The optimal attributions w, shape (..., D)."""
        apart = self.fixed - self.target[..., None, :]
        pull = (self._pulls * apart).sum(axis=-2)
        return self.target + pull / self.stiffness

    def measures(self, w: Array) -> dict[str, Array]:
        """Losses of attributions w, and bounds on their distance from the optima.

        =================== ==========================================================
        ``losses``          (..., 2), ‖w − g‖² and 2 Σ_j s_j ‖w − w_j‖²
        ``value``           the objective at w; ``value_of_zero`` at zero
        ``excess``          bound rᵀH⁻¹r of the objective minus its least value, for
                            half the gradient r and H = diag(h)
        ``distance``        bound ‖H⁻¹r‖ of the distance of w from the optimum
        ``violation``       relative error of the sum of a complete row
        ``joint_excess``    bound (4b²/a) Σ_j s_j² ‖w_j − w‖² of the gain of re-solving
                            all rows jointly
        ``joint_distance``  bound (2b/a) (Σ_j s_j² ‖w_j − w‖²)^½ of their move
        =================== ==========================================================

        With the row appended to fixed rows that were optimal without it, the gradient
        of the joint objective is 4b s_j (w_j − w) at its neighbours and zero at all
        others; the curvature at fixed rows is at least 2a.
        """
        a, b = self.weights
        apart = self.fixed - w[..., None, :]
        squares = apart**2 if self.shared is None else apart**2 * self.shared
        distances = squares.sum(axis=-1)
        matching = np.square(w - self.target).sum(axis=-1)
        robustness = 2.0 * (self.similarities * distances).sum(axis=-1)
        pairs = (self.similarities * np.square(self.fixed).sum(axis=-1)).sum(axis=-1)
        slope = a * (w - self.target) - (self._pulls * apart).sum(axis=-2)
        joint = self._joint_distances(apart, distances)
        touched = (self.similarities**2 * joint).sum(axis=-1)
        return {
            "losses": np.stack([matching, robustness], axis=-1),
            "value": a * matching + b * robustness,
            "value_of_zero": a * np.square(self.target).sum(axis=-1) + 2.0 * b * pairs,
            **self._bounds(w, slope),
            "joint_excess": 4.0 * b**2 / a * touched,
            "joint_distance": 2.0 * b / a * np.sqrt(touched),
        }

    def _bounds(self, w: Array, slope: Array) -> dict[str, Array]:
        """The excess, distance and violation, given half the gradient at w."""
        return {
            "excess": (slope**2 / self.stiffness).sum(axis=-1),
            "violation": np.zeros(w.shape[:-1]),
            "distance": np.sqrt(np.square(slope / self.stiffness).sum(axis=-1)),
        }

    def _joint_distances(self, apart: Array, distances: Array) -> Array:
        """‖w_j − w‖² (..., k), of the part that fixed rows can move by."""
        del apart
        return distances

    def complete(
        self, axis: Array, fixed_axis: Array, total: float | Array
    ) -> CompleteRows:
        """These rows, which have to add up to t along v; fixed rows along their v."""
        given = {x.name: getattr(self, x.name) for x in fields(OutOfSampleRows)}
        return CompleteRows(**given, axis=axis, fixed_axis=fixed_axis, total=total)

    def moved(self, deviations: Array) -> Array:
        """Changes a H⁻¹E of the optima for changes E (..., B, D) of their targets."""
        return self.weights[0] / self.stiffness[..., None, :] * deviations


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class CompleteRows(OutOfSampleRows):
    """New rows that have to add up: vᵀw = t.

    The objective is F + Σ_d h_d (w_d − p_d)² for the optimum p without sums, so the
    optimum is the closest complete point,

        w = p + H⁻¹v (t − vᵀp)/(vᵀH⁻¹v),   H = diag(h).

    Bounds are those of r without its part along v, plus the rounding of the sum.
    """

    axis: Array  # (D,) or (..., D): v, not all zero
    fixed_axis: Array  # (D,): v of the fixed rows
    total: float | Array  # (...,): t

    @cached_property
    def _step(self) -> Array:
        """The vector H⁻¹v times the least h."""
        least = self.stiffness.min(axis=-1, keepdims=True)
        return self.axis * (least / self.stiffness)

    @cached_property
    def _size(self) -> Array:
        """The number vᵀH⁻¹v times the least h."""
        return (self.axis * self._step).sum(axis=-1)

    def optima(self) -> Array:
        w = super().optima()
        for _ in range(2):  # twice, because of rounding
            missed = (self.axis * w).sum(axis=-1) - self.total
            w = w - self._step * (missed / self._size)[..., None]
        return w

    def _bounds(self, w: Array, slope: Array) -> dict[str, Array]:
        missed = (self.axis * w).sum(axis=-1) - self.total
        along = (self._step * slope).sum(axis=-1) / self._size
        bounds = super()._bounds(w, slope - along[..., None] * self.axis)
        most = (np.abs(w) * np.abs(self.axis)).sum(axis=-1)
        scale = np.maximum(np.maximum(most, np.abs(self.total)), sys.float_info.min)
        short = missed / self._size * np.sqrt(np.square(self._step).sum(axis=-1))
        return {
            "excess": bounds["excess"] + np.maximum(2.0 * missed * along, 0.0),
            "violation": np.abs(missed) / scale,
            "distance": np.hypot(bounds["distance"], short),
        }

    def _joint_distances(self, apart: Array, distances: Array) -> Array:
        """The same, projected on moves of fixed rows that change no sum."""
        del distances
        v = self.fixed_axis
        free = np.where(v != 0.0, apart, 0.0)
        along = (free * v).sum(axis=-1) / (float(np.square(v).sum(axis=-1)) or 1.0)
        return np.square(free - along[..., None] * v).sum(axis=-1)

    def moved(self, deviations: Array) -> Array:
        """The same, for the part E − v (vᵀH⁻¹E)/(vᵀH⁻¹v) that changes no sum."""
        step = self._step[..., None, :]
        along = (deviations * step).sum(axis=-1) / self._size[..., None]
        axis = self.axis[..., None, :]
        return super().moved(deviations - along[..., None] * axis)


# ---- Fitted explainers and their answers


RowOptima: TypeAlias = tuple[Mapping[str, Array], Targets, dict[str, Any]]
"""The measures and targets of rows, and the other fields of their explanation."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedReference(ABC):
    """The joint optimum of reference rows, for explaining others one by one."""

    problem: ExplanationProblem  # the problem of the reference rows
    reference: Explanation  # their joint optimum

    @property
    def function(self) -> Function:
        """The model as a function of rows or documents."""
        return self.problem.function

    @cached_property
    def weights(self) -> tuple[float, float]:
        """The weights a of faithfulness and b of robustness."""
        faithfulness, pairs = self.reference.weights.values()
        return faithfulness, pairs

    @property
    def explained(self) -> Explanation:
        """The joint optimum, with parameters that describe all reference rows."""
        return self.reference

    def explain(self, X: Any, progress: bool | None) -> Explanation:
        """Explain each row or document of X, given the reference."""
        self.problem.settings.refuse_joint_settings()
        began = time.perf_counter()
        reference = self.reference
        calls = self.function.calls
        before = replace(calls)
        measures, targets, fields = self._optima_of(X, progress)
        names = reference.weights
        losses = measures["losses"].sum(axis=0).tolist()
        return Explanation(
            method="optimized",
            weights=dict(names),
            losses=dict(zip(names, losses, strict=True)),
            solver="conditional",
            quantity=self.function.quantity,
            together=reference.together,
            units=reference.units,
            evaluations=reference.evaluations + calls.rows - before.rows,
            model_seconds=reference.model_seconds + calls.seconds - before.seconds,
            seconds=time.perf_counter() - began,
            **{**targets.fields, **fields},
        )

    @abstractmethod
    def _optima_of(self, X: Any, progress: bool | None) -> RowOptima:
        """The optima of rows or documents, each computed separately."""

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
    return replace(
        explained,
        base_value=base + margins,
        prediction=prediction + margins,
        parameters={**explained.parameters, "base margin": ends},
    )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RowAnswers:
    """New rows with their targets and neighbours, and later their optima."""

    targets: Targets
    neighbours: list[RowMatches]  # (m,): the reference rows of each
    main_effects: Attributions  # (m, D): g, 0 without
    moves: Mask  # (m, D): columns that may move
    missed: Array  # (m,): t − Σ_d Φ_d of contributions, 0 of slopes
    # w, the measures of ``OutOfSampleRows``, the sum of similarities, and for sampled
    # targets "moved" (m, B, D), the changes of w for each block
    measures: Mapping[str, Array] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Sequence[RowAnswers], order: Indices) -> RowAnswers:
        """Join parts with equal columns, and put their rows in another order."""
        neighbours = [matches for part in parts for matches in part.neighbours]
        names = set.intersection(*(set(part.measures) for part in parts))

        def both(arrays: Sequence[NDArray[Any]]) -> Any:
            return np.concatenate(arrays)[order]

        return cls(
            targets=Targets.joined([part.targets for part in parts]).taken(order),
            neighbours=[neighbours[n] for n in order],
            main_effects=both([part.main_effects for part in parts]),
            moves=both([part.moves for part in parts]),
            missed=both([part.missed for part in parts]),
            measures={
                name: both([part.measures[name] for part in parts]) for name in names
            },
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRows(FittedReference):
    """Fitted reference rows of a table, and all inputs of the answer for a new row.

    Slopes of a new row are optimal given its nearest reference rows w_j.
    """

    problem: RowsProblem

    @classmethod
    def of(
        cls, problem: RowsProblem, data: Any, X: Any, rows: Any = None
    ) -> FittedRows:
        """Explain the reference rows of a problem jointly, before ``rows``."""
        settings = problem.settings
        function = problem.function
        before = replace(function.calls)
        reference = problem.reference
        if data is not None and not settings.parts:
            reference.refuse_equal_rows()
        if len(problem.points) < 2 and settings.given_graph is None:
            _refuse_one_row(settings, data, X)
        graph = problem.graph  # raises before anything is computed
        refuse_no_scale(problem.sizes, reference)
        if X is not None and not settings.parts:  # contributions have one unit
            warn_of_patterns(graph, problem.coordinates)
        rule = problem.rule
        if rows is not None and isinstance(rule, ContributionRule) and rule.n_streamed:
            points, _ = function.with_categories_of(rows).read(rows, "X")
            rule.compute_ahead(np.concatenate([problem.points, points]))
        best, metric = problem.best()
        _ = best.attributions  # certified now, as all answers depend on them
        verdict = function.jumps
        alone = data is None and settings.parts  # X is the background, too
        unseen, together = problem.never_seen(best.contributions)
        explained = replace(
            best,
            parameters={
                "function": repr(function),
                **({} if verdict is None else {"jump test": verdict.in_words()}),
                **best.parameters,
                "scale": in_words(settings.scale),
                **({"without data": True} if alone else {}),
                "data": f"{reference.in_words()}, sha256:{reference.digest[:12]}",
                **neighbours_in_words(problem),
                "weight rule": problem.weight[1],
                **problem.background_parameters(),
                **unseen,
            },
            together=together,
            quantity=function.quantity,
            evaluations=function.calls.rows - before.rows,
            model_seconds=function.calls.seconds - before.seconds,
            background=problem.background_digest,
            retrained=(
                RetrainedRows(problem, problem.points) if settings.parts else None
            ),
            **problem.metadata(problem.points),
        )
        if metric is None:
            return FittedRows(problem=problem, reference=explained)
        return FittedContributions(
            problem=problem,
            reference=explained,
            metric=metric,
            main_effects=problem.robust.offset,
        )

    @cached_property
    def explained(self) -> Explanation:
        """With values that data do not have, and the share of main effects."""
        problem = self.problem
        parameters = {
            **self.reference.parameters,
            **self._new_values(self.function, problem.points),
            **problem.main_effect_parameters(self.reference),
        }
        return replace(self.reference, parameters=parameters)

    def _new_values(self, function: Function, points: Points) -> dict[str, Parameter]:
        """Missing values and categories of rows (N, D) that data do not have."""
        schema = function.schema
        missing = np.isnan(points).any(axis=0) & self._never_missing
        columns = [self.problem.reference.names[j] for j in np.flatnonzero(missing)]
        count, new = (0, "") if schema is None else schema.unseen_categories(points)
        new_values = {
            "newly missing": ", ".join(columns),
            "new categories": f"{plural(count, 'row')}: {new}" if count else "",
        }
        return {name: text for name, text in new_values.items() if text}

    @cached_property
    def _never_missing(self) -> Mask:
        missing: Mask = np.any(np.isnan(self.problem.reference.points), axis=0)
        return ~missing

    def _optima_of(self, X: Any, progress: bool | None) -> RowOptima:
        wide = self._taking(X)
        points, labels = wide.function.read(X, "X")
        rows = self._answers(X, wide, points, labels, progress)
        problem = self.problem
        group_labels = labels
        if problem.players is not None:
            group_labels = problem.players.labels(labels)
        measures = rows.measures
        positions = [one.positions for one in rows.neighbours]
        W, largest = self._in_units(rows)
        proof = joint_proof(measures, largest)
        fields = {
            "attributions": W,
            "labels": group_labels,
            "parameters": {
                **self.row_parameters,
                **self._new_values(wide.function, points),
            },
            "background": self.reference.background,
            "certificate": proof,
            "details": {
                **row_proofs(measures, largest),
                "error": read_only(rows.targets.estimate.row_errors),
                "joint_excess": measures["joint_excess"],
                "joint_distance": largest * measures["joint_distance"],
                "similarity": read_only(measures["similarity"]),
                "reference_rows": read_only(padded(positions, problem.n_neighbors, -1)),
            },
            **wide.problem.metadata(points),
            **self._errors(rows),
            **self._programs(lazily(cache(partial(self._program, rows, group_labels)))),
            "problem_data": self._problem_data(rows),
            "row_size": self.row_size,
            "retrained": (
                RetrainedRows(wide.problem, points)
                if wide.problem.settings.parts
                else None
            ),
        }
        return measures, rows.targets, fields

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
        several = sum(has_new[rows[0]] for rows in groups) > 1
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
        if function is self.function or function.schema is None:
            return self
        settings = problem.settings
        background = None
        if isinstance(problem.rule, ContributionRule):
            background = problem.rule.background
        elif settings.law == "auto":  # the law of the reference rows
            law: LawChoice = "data"
            if problem.rule.function is self.function:
                law = "none"
            settings = replace(settings, law=law)
        problem = replace(
            problem,
            settings=settings,
            function=function,
            reference=replace(problem.reference, n_codes=function.schema.n_codes),
            background=background,
        )
        return replace(self, problem=problem)

    def answers_at(
        self, points: Points, labels: Labels, progress: bool | None
    ) -> RowAnswers:
        """The targets, neighbours and optima of some rows."""
        targets = Targets.joined(self._aims(points, labels, progress))
        shape = targets.estimate.values.shape
        inputs = RowAnswers(
            targets=targets,
            neighbours=self.neighbours_of(points),
            main_effects=np.zeros(shape),
            moves=np.ones(shape, bool),
            missed=np.zeros(len(points)),
        )
        return self._solved(inputs)

    def neighbours_of(self, points: Points) -> list[RowMatches]:
        """The reference rows that each of rows (m, D) is compared with, nearest first.

        A row that equals a reference row has the same neighbours as that row, and thus
        its joint optimum.
        """
        k = self.problem.n_neighbors
        apart = self._distances.of(self._coordinates_of(points))
        nearest = np.argsort(apart, axis=1, kind="stable")[:, :k]
        return [RowMatches(indices, np.ones(k)) for indices in nearest]

    @cached_property
    def _distances(self) -> Distances:
        return Distances(self.problem.coordinates)

    def _coordinates_of(self, points: Points) -> Array:
        """Coordinates (m, M) of rows, for distances."""
        return coordinates_of(self.function, points, self.problem.sizes)

    def _solved(self, inputs: RowAnswers) -> RowAnswers:
        """Rows with their optima, computed in blocks of equal shapes."""
        deviations = inputs.targets.estimate.deviations_of_rows
        blocks = rows_of_equal_shapes(inputs.neighbours, inputs.moves)
        parts = []
        for rows in blocks:
            block = self._block(inputs, rows)
            w = block.optima()
            part = {"w": w, **block.measures(w)}
            part["similarity"] = block.similarities.sum(axis=-1)
            if deviations is not None:
                part["moved"] = self._moved(block, deviations[rows], inputs.moves[rows])
            parts.append(part)
        return replace(inputs, measures=_in_order(blocks, parts))

    def _block(self, inputs: RowAnswers, rows: Indices) -> OutOfSampleRows:
        """Rows with equally many neighbours."""
        neighbours = zip(*map(inputs.neighbours.__getitem__, rows), strict=True)
        positions, similarities = map(np.array, neighbours)
        return OutOfSampleRows(
            target=inputs.targets.estimate.values[rows],
            similarities=similarities,
            fixed=self._left[positions],
            weights=self.weights,
        )

    def _aims(
        self, points: Points, labels: Labels, progress: bool | None
    ) -> list[Targets]:
        """The targets of rows, in one call if the model is row-independent."""
        rule = self.problem.rule
        if rule.is_row_independent:
            return [rule.of_rows(points, labels, self._base)]
        # a model may predict many rows with other digits than one row
        return [
            self.aim(points[[n]], labels.of_positions([n]))
            for n in tracked("explain", range(len(points)), progress)
        ]

    def aim(self, point: Points, labels: Labels) -> Targets:
        """The target of a row (1, D), independent of the other rows of a call."""
        return self.problem.rule.of_row(point, labels, self._base)

    @property
    def _base(self) -> float | None:
        """The base of contributions; None for slopes."""
        base = self.reference.base_value
        return None if base is None else float(base[0])

    @property
    def _left(self) -> Attributions:
        """The reference attributions that new rows are compared with, r_j (n, D)."""
        return self.reference.attributions

    @property
    def _roots(self) -> float | Array:
        """The unit of each column of the optima, in units of W."""
        return 1.0

    def _moved(self, rows: OutOfSampleRows, E: Array, moves: Mask) -> Array:
        """Changes of W for changes E (m, B, D) of targets; E where nothing moves."""
        still = ~moves[:, None]
        step = rows.moved(np.where(still, 0.0, E / self._roots)) * self._roots
        return np.where(still, E, step)

    def _in_units(self, rows: RowAnswers) -> tuple[Attributions, float]:
        """The attributions W, and the largest factor from the optima to W."""
        return rows.measures["w"], 1.0

    def _errors(self, rows: RowAnswers) -> dict[str, Any]:
        """The error of the target, and standard errors of the attributions."""
        moved = rows.measures.get("moved")
        errors = None
        if moved is not None:
            B = moved.shape[1]
            errors = np.sqrt((moved**2).sum(axis=1) / (B * (B - 1)))
        return {"target": self._target_error(rows), "standard_errors": errors}

    def _target_error(self, rows: RowAnswers) -> TargetError:
        """The cost A² ⟨E, H⁻¹E⟩ of errors E of the target."""
        target = rows.targets.estimate
        moved = rows.measures.get("moved")
        scale = joint_proof(rows.measures).scale
        deviations = target.deviations_of_rows
        if moved is None or deviations is None:
            return TargetError.of(target, scale, None)
        B = moved.shape[1]
        gram = np.zeros((B, B))
        for E, changes in zip(deviations, moved, strict=True):
            gram += self.weights[0] * E @ changes.T
        return TargetError.of(target, scale, TargetError.of_gram((gram + gram.T) / 2.0))

    @cached_property
    def row_size(self) -> float:
        """The root mean square of ‖w_n‖ over the reference rows."""
        squares = (self.reference.attributions**2).sum(axis=1)
        return float(np.sqrt(squares.mean()))

    def _programs(self, program: Any) -> dict[str, Any]:
        """The field of an explanation that has the program of all rows."""
        return {"program": program}

    def _program(self, rows: RowAnswers, labels: Labels) -> Program:
        """The program of new rows, given the fixed reference."""
        roots, pairs, _, fixed = self._pairs(rows)
        aim = replace(rows.targets.estimate, labels=labels)
        return self.program_of(aim, pairs, roots * fixed, None)

    def _pairs(
        self, rows: RowAnswers
    ) -> tuple[Array, LinearMap, Indices, Attributions]:
        """The ordered pairs 2 Σ_n Σ_j s_j ‖w_n − w_j‖² of new and fixed rows.

        Roots of 2 s_j, their map, the row n and the attributions w_j of each pair.
        """
        counts = [len(neighbours.positions) for neighbours in rows.neighbours]
        row_of_pair = np.repeat(np.arange(len(counts)), counts)
        positions = np.concatenate([one.positions for one in rows.neighbours])
        similarities = np.concatenate([one.similarities for one in rows.neighbours])
        roots = np.sqrt(2.0 * similarities)
        at = np.arange(len(row_of_pair)), row_of_pair
        pairs = OverPoints(sp.csr_array((roots, at), (len(row_of_pair), len(counts))))
        return roots[:, None], pairs, row_of_pair, self._left[positions]

    def _problem_data(self, rows: RowAnswers) -> dict[str, NDArray[Any]]:
        """The arrays of :mod:`propopt.proofs.problem_data` for a file."""
        faithfulness, pairs = self.reference.weights
        targets = rows.targets
        phi = rows.targets.estimate.values
        positions = [one.positions for one in rows.neighbours]
        similarities = [one.similarities for one in rows.neighbours]
        count = max(map(len, positions))
        problem_data = {
            f"{faithfulness}.target": phi,
            f"{pairs}.neighbours": padded(positions, count, -1),
            f"{pairs}.similarities": padded(similarities, count, 0.0),
            f"{pairs}.fixed": self._left,
            f"{pairs}.offset": rows.main_effects,
        }
        if targets.base is not None:
            problem_data["completeness.parts"] = rows.moves.astype(np.float64)
            problem_data["completeness.totals"] = targets.total
        return {name: read_only(array) for name, array in problem_data.items()}


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedContributions(FittedRows):
    """Fitted reference rows, next to which contributions of new rows are optimal.

    They are optimized in z = (w − Φ)/√ω. With f(x) − base = t, main effects g (or 0)
    and the differences r_j = w_j − g_j of reference rows, they minimise

        ‖z‖² + 2b Σ_j s_j ‖z − (r_j − (Φ − g))/√ω‖²

    subject to Σ_d √ω_d z_d = t − Σ_d Φ_d.
    """

    metric: ColumnMetric  # from the reference rows
    main_effects: Attributions | None = None  # g_j (n, D)

    def neighbours_of(self, points: Points) -> list[RowMatches]:
        neighbours = self.problem.neighbours
        matches = [self._index_of.get(row) for row in row_keys(points)]
        new = [n for n, index in enumerate(matches) if index is None]
        old = neighbours.joined([index for index in matches if index is not None])
        of_new = iter(neighbours.of(self._coordinates_of(points)[new]) if new else ())
        of_old = iter(old)
        return [next(of_new if index is None else of_old) for index in matches]

    @cached_property
    def _index_of(self) -> dict[bytes, int]:
        """The first reference row with given values, by their bytes."""
        keys = row_keys(self.problem.points)
        return {row: n for n, row in reversed(list(enumerate(keys)))}

    @cached_property
    def _left(self) -> Attributions:
        """The reference attributions without main effects, r_j (n, D)."""
        W = self.reference.attributions
        return W if self.main_effects is None else read_only(W - self.main_effects)

    def answers_at(
        self, points: Points, labels: Labels, progress: bool | None
    ) -> RowAnswers:
        targets = Targets.joined(self._aims(points, labels, progress))
        neighbours = self.neighbours_of(points)
        phi = targets.estimate.values
        moves: Mask = np.broadcast_to(self.metric.moves, phi.shape)
        G = np.zeros(phi.shape)
        if self.main_effects is not None:
            G = self.problem.main_effect_rule.of_rows(points, labels.of_columns())
        if self.metric.is_uniform:  # and columns that only this row uses
            moves = np.logical_or(moves, np.logical_or(phi, G))
        missed = targets.total - [math.fsum(row) for row in phi.tolist()]
        bad = ~moves.any(axis=1) & (np.abs(missed) > targets.slack)
        if bad.any():
            n = int(bad.argmax())
            raise InvalidInput(
                f"X: row {labels.row(n)!r}: no feature contributes, yet its prediction "
                f"differs from the base by {missed[n]:.3g}; give fit() reference rows "
                "with different values in the features that the model uses"
            )
        inputs = RowAnswers(
            targets=targets,
            neighbours=neighbours,
            main_effects=G,
            moves=moves,
            missed=missed,
        )
        return self._solved(inputs)

    def _block(self, inputs: RowAnswers, rows: Indices) -> OutOfSampleRows:
        """Rows with equally many neighbours, in z; all of them may move, or none."""
        of_w = super()._block(inputs, rows)
        moves = inputs.moves[rows]
        roots = self.metric.roots
        rest = of_w.target - inputs.main_effects[rows]
        apart = (of_w.fixed - rest[:, None]) / roots
        of_z = replace(
            of_w,
            target=np.zeros(rest.shape),
            fixed=np.where(moves[:, None], apart, 0.0),
        )
        axis = np.where(moves, roots, 0.0)
        if not axis.any():
            return of_z
        return of_z.complete(axis, self.metric.axis, inputs.missed[rows])

    @property
    def _roots(self) -> Array:
        return self.metric.roots

    def _in_units(self, rows: RowAnswers) -> tuple[Attributions, float]:
        axes = np.where(rows.moves, self.metric.roots, 0.0)
        W = rows.targets.estimate.values + rows.measures["w"] * axes
        return W, float(axes.max(initial=0.0))

    def _target_error(self, rows: RowAnswers) -> TargetError:
        """The error of contributions, relative to their size."""
        return error_of_parts(rows.targets.estimate)

    def _programs(self, program: Any) -> dict[str, Any]:
        if self.metric.is_uniform:
            return {"program": program}
        return {"scaled_program": program, "metric": self.metric.axis**2}

    def _program(self, rows: RowAnswers, labels: Labels) -> Program:
        """The program of new rows, in z unless all columns have equal weights."""
        metric = self.metric
        roots, pairs, row_of_pair, fixed = self._pairs(rows)
        phi = rows.targets.estimate.values
        G = rows.main_effects[row_of_pair]
        aim = replace(rows.targets.estimate, labels=labels)
        total = rows.targets.total
        if metric.is_uniform:
            fixed = fixed + G
        else:
            apart = (fixed - (phi[row_of_pair] - G)) / metric.roots
            fixed = np.where(rows.moves[row_of_pair], apart, 0.0)
            blocks = None if aim.blocks is None else metric.scaled(aim.blocks - phi)
            aim = replace(aim, values=np.zeros(phi.shape), blocks=blocks)
            total = rows.missed
        axes = np.where(rows.moves, metric.roots, 0.0)
        sums = None
        if axes.any():
            shared = (axes == axes[0]).all()
            sums = Completeness(total, axes[0] if shared else axes)
        return self.program_of(aim, pairs, roots * fixed, sums)


def rows_of_equal_shapes(
    neighbours: Sequence[RowMatches], moves: Mask
) -> list[Indices]:
    """Blocks of rows with arrays of one shape, so that one call computes them.

    Rows of a block have equally many neighbours, and either all may move or none. The
    answer for a row does not depend on its block; blocks only bound the memory.
    """
    members: dict[tuple[int, bool], list[int]] = {}
    may_move: list[bool] = np.any(moves, axis=1).tolist()
    for n, matches in enumerate(neighbours):
        members.setdefault((len(matches.positions), may_move[n]), []).append(n)
    blocks = []
    for (count, _), rows in members.items():
        n_bytes = 64 * (count + 1) * moves.shape[1]  # eight arrays (k + 1, D)
        size = BATCH_BUDGET.rows(n_bytes)
        blocks += np.split(np.array(rows), range(size, len(rows), size))
    return blocks


def _in_order(
    blocks: Sequence[Indices], parts: Sequence[Mapping[str, Array]]
) -> dict[str, Array]:
    """Arrays of blocks of rows as arrays of all rows, in the order of the rows."""
    order = np.argsort(np.concatenate(blocks))
    return {
        name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]
    }


def padded(rows: Sequence[NDArray[Any]], count: int, absent: float) -> NDArray[Any]:
    """The first entries of each row, (m, k); a number where there are fewer."""
    table = np.full((len(rows), count), absent)
    for line, entries in zip(table, rows, strict=True):
        line[: len(entries)] = entries[:count]
    return table


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
        "reference": short_digest(content),
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
