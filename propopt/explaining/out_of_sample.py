"""Rows explained one by one, beside reference rows that stay as they are."""

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
    stability_in_words,
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
from propopt.losses import Completeness, GradientMatching, Program
from propopt.losses.algebra import _RecastLoss
from propopt.losses.graphs.neighbours import RowMatches
from propopt.losses.graphs.points import Distances
from propopt.losses.maps import OverPoints
from propopt.proofs.certificate import Certificate
from propopt.proofs.target_error import TargetError
from propopt.results.explanation import Explanation, Parameter
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.kinds import has_method
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import Labels, numbers_of_rows


# ---- The optimum of more rows, each beside rows that stay as they are


TOLD: Final = (
    "losses",
    "value",
    "value_of_zero",
    "excess",
    "violation",
    "distance",
    "joint_excess",
    "joint_distance",
)
"""What an explanation tells of each row beside its optimum."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class OutOfSampleRows:
    """Rows (...,), or a single one (), and their optima beside fixed rows.

    min over w of  a‖w − g‖² + 2b Σ_j s_j Σ_{d in j} (w_d − w_jd)²,

    which are the terms that row w adds to an objective of ordered pairs. A fixed row
    counts in all columns, or a document in the words that it has. With p_jd = 2b s_j
    where it counts and 0 elsewhere,

        h_d = a + Σ_j p_jd,   w_d = (a g_d + Σ_j p_jd w_jd)/h_d.

    Where the row has to add up, vᵀw = t, all terms together are
    F + Σ_d h_d (w_d − p_d)² for this p, so that the optimum is the nearest complete
    point to it,

        w = p + H⁻¹v (t − vᵀp)/(vᵀH⁻¹v),   H = diag(h).

    Nothing here is a product of matrices: BLAS adds in another order for other numbers
    of rows, and an answer has to be the same to the last bit whoever else is asked. So
    all sums are along the last axes, in memory, of arrays that have the rows in front.
    """

    target: Array  # (..., D): g
    near: NDArray[np.intp]  # (..., k): places of the fixed rows that are near each
    similarities: Array  # (..., k): s_j ≥ 0
    fixed: Array  # (..., k, D): w_j
    weights: tuple[float, float]  # a > 0 and b ≥ 0
    shared: Mask | None = None  # (..., k, D): where fixed rows count; all if None
    # (D,) or (..., D): v, not all zero, of rows that add up; zero there, so are all
    axis: Array | None = None
    fixed_axis: Array | None = None  # (D,): v of the fixed rows
    total: float | Array = 0.0  # (...,): t

    @cached_property
    def stiffness(self) -> Array:
        """Half the curvature h, (..., D); (..., 1) where fixed rows count all over."""
        a, b = self.weights
        own = self.similarities[..., None]
        counted = own if self.shared is None else own * self.shared
        return np.asarray(a + 2.0 * b * counted.sum(axis=-2))

    @cached_property
    def w(self) -> Array:
        """The optimum (..., D)."""
        w = self.target + self._drawn(self.fixed, self.target) / self.stiffness
        if self.axis is not None:
            for _ in range(2):  # what rounding left of the sum, once more
                missed = (self.axis * w).sum(axis=-1) - self.total
                w = w - self._step * (missed / self._size)[..., None]
        return np.asarray(w)

    @cached_property
    def losses(self) -> Array:
        """‖w − g‖², and the ordered pairs 2 Σ_j s_j ‖w − w_j‖², (..., 2)."""
        losses = np.empty((*self.w.shape[:-1], 2))
        losses[..., 0] = _square(self.w - self.target)
        losses[..., 1] = 2.0 * (self.similarities * self._apart).sum(axis=-1)
        return losses

    @property
    def value(self) -> Array:
        """The objective of each row."""
        a, b = self.weights
        return np.asarray(a * self.losses[..., 0] + b * self.losses[..., 1])

    @property
    def value_of_zero(self) -> Array:
        """The objective of w = 0."""
        a, b = self.weights
        pairs = (self.similarities * _square(self.fixed)).sum(axis=-1)
        return np.asarray(a * _square(self.target) + 2.0 * b * pairs)

    @cached_property
    def slope(self) -> Array:
        """Half the slope of the objective at w, r (..., D)."""
        own = self.weights[0] * (self.w - self.target)
        return np.asarray(own - self._drawn(self.fixed, self.w))

    @property
    def excess(self) -> Array:
        """It is at most so much above the least objective: rᵀH⁻¹r.

        Of a row that adds up that of r without its part along v, and for the rounding δ
        of its sum what the objective falls along v in the meantime.
        """
        excess = (self._tangent**2 / self.stiffness).sum(axis=-1)
        if self.axis is None:
            return np.asarray(excess)
        along = (self._step * self.slope).sum(axis=-1) / self._size
        return np.asarray(excess + np.maximum(2.0 * self._missed * along, 0.0))

    @property
    def violation(self) -> Array:
        """|vᵀw − t| over the largest sum that the entries could have; 0 without one."""
        if self.axis is None:
            return np.zeros(self.w.shape[:-1])
        most = (np.abs(self.w) * np.abs(self.axis)).sum(axis=-1)
        scale = np.maximum(np.maximum(most, np.abs(self.total)), sys.float_info.min)
        return np.asarray(np.abs(self._missed) / scale)

    @property
    def distance(self) -> Array:
        """The optimum is no farther than this from w: ‖H⁻¹r‖, r along complete rows."""
        apart = np.sqrt(_square(self._tangent / self.stiffness))
        if self.axis is None:
            return np.asarray(apart)
        short = self._missed / self._size * np.sqrt(_square(self._step))
        return np.asarray(np.hypot(apart, short))

    def moved(self, deviations: Array) -> Array:
        """How optima move as their targets do, a H⁻¹E of each row of E (..., B, D)."""
        stiffness = self.stiffness[..., None, :]
        return np.asarray(self.weights[0] / stiffness * self.off_axis(deviations))

    def off_axis(self, E: Array) -> Array:
        """E − v (vᵀH⁻¹E)/(vᵀH⁻¹v) of E (..., D) or (..., B, D): what moves no sum."""
        if self.axis is None:
            return E
        axis, step, size = self.axis, self._step, self._size
        if E.ndim > step.ndim:
            axis, step, size = axis[..., None, :], step[..., None, :], size[..., None]
        along = (E * step).sum(axis=-1) / size
        return np.asarray(E - along[..., None] * axis)

    @property
    def joint_excess(self) -> Array:
        """(4b²/a) Σ_j s_j² ‖w_j − w‖²: what re-solving all rows together could gain.

        With the row appended to fixed rows that were the optimum without it, the slope
        of the joint objective is 4b s_j (w_j − w) at the rows that it touches, zero at
        all others, and its curvature at fixed rows is 2a or more. Where rows add up it
        is what that slope is along complete rows.
        """
        a, b = self.weights
        return np.asarray(4.0 * b**2 / a * self._touched)

    @property
    def joint_distance(self) -> Array:
        """(2b/a) (Σ_j s_j² ‖w_j − w‖²)^½: how far all rows together could move."""
        a, b = self.weights
        return np.asarray(2.0 * b / a * np.sqrt(self._touched))

    def _drawn(self, fixed: Array, w: Array) -> Array:
        """Σ_j p_jd of the differences of fixed rows (..., k, D) from w (..., D)."""
        return np.asarray((self._pulls * (fixed - w[..., None, :])).sum(axis=-2))

    @cached_property
    def _pulls(self) -> Array:
        pulls = 2.0 * self.weights[1] * self.similarities[..., None]
        return pulls if self.shared is None else pulls * self.shared

    @cached_property
    def _tangent(self) -> Array:
        """Half the slope, r, without what moves sums."""
        return self.off_axis(self.slope)

    @cached_property
    def _missed(self) -> Array:
        """Vᵀw − t."""
        assert self.axis is not None, "it adds up"
        return np.asarray((self.axis * self.w).sum(axis=-1) - self.total)

    @cached_property
    def _step(self) -> Array:
        """H⁻¹v, times the least h."""
        assert self.axis is not None, "it adds up"
        least = self.stiffness.min(axis=-1, keepdims=True)
        return np.asarray(self.axis * (least / self.stiffness))

    @cached_property
    def _size(self) -> Array:
        """VᵀH⁻¹v, times the least h."""
        assert self.axis is not None, "it adds up"
        return np.asarray((self.axis * self._step).sum(axis=-1))

    @cached_property
    def _touched(self) -> Array:
        """Σ_j s_j² ‖w_j − w‖², of what can move the fixed rows."""
        apart = self._apart
        if self.fixed_axis is not None:
            v = self.fixed_axis
            free = np.where(v != 0.0, self.fixed - self.w[..., None, :], 0.0)
            along = (free * v).sum(axis=-1) / (float(_square(v)) or 1.0)
            apart = _square(free - along[..., None] * v)
        return np.asarray((self.similarities**2 * apart).sum(axis=-1))

    @cached_property
    def _apart(self) -> Array:
        """‖w_j − w‖², of what both have, shape (..., k)."""
        squares = (self.fixed - self.w[..., None, :]) ** 2
        if self.shared is not None:
            squares = squares * self.shared
        return np.asarray(squares.sum(axis=-1))


def told_of(rows: Sequence[OutOfSampleRows]) -> Mapping[str, Array]:
    """What is told of single rows that have columns of their own, (m, ...) each."""
    return {name: np.array([getattr(row, name) for row in rows]) for name in TOLD}


def _square(w: Array) -> Array:
    return np.asarray((w**2).sum(axis=-1))


# ---- What a fit leaves, and its answers


_UNSCALED = 1e-9
"""Of what zero costs: an optimum of less than that has no scale of its own."""

_SOON = 1.0
"""Seconds: a bar that is not asked for is shown of work that takes longer."""

_Asked = TypeVar("_Asked")


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedReference(ABC):
    """A joint optimum, beside which others are explained one by one."""

    problem: ExplanationProblem  # what was explained together
    reference: Explanation  # the joint optimum

    @property
    def function(self) -> Function:
        """The model."""
        return self.problem.function

    @property
    def weights(self) -> tuple[float, float]:
        """Those of the target, and of robustness: a and b."""
        own, pairs = self.reference.weights.values()
        return own, pairs

    @cached_property
    def explained(self) -> Explanation:
        """The joint optimum, with what is said of the rows together."""
        return replace(
            self.reference,
            parameters={
                **self.reference.parameters,
                **self._said_of_all(),
                "stability": self._stability(),
            },
        )

    def _said_of_all(self) -> dict[str, Parameter]:
        """What is said of reference rows, and not of others beside them."""
        return {}

    def _stability(self) -> str:
        """Whether conclusions survive other weights, neighbours and draws."""
        return stability_in_words(self.reference)

    @abstractmethod
    def explain(
        self, X: Any, progress: bool | None, base_margin: Any = None
    ) -> Explanation:
        """Each row, or document, of X with its own target."""

    @abstractmethod
    def with_base_margin(
        self, explained: Explanation, base_margin: Any, X: Any
    ) -> Explanation:
        """The same with the offsets of its rows in base and prediction."""

    @staticmethod
    def with_progress(
        asked: Sequence[_Asked], progress: bool | None
    ) -> Iterator[_Asked]:
        """Each by itself, beside a bar; unasked only where work takes a second."""
        began, bar = time.perf_counter(), None
        with ExitStack() as stack:
            for n, one in enumerate(asked):
                if bar is not None:
                    bar.advance(bar.task_ids[0])
                elif progress or time.perf_counter() - began > _SOON:
                    shown = progress_bar("explain", len(asked), progress)
                    bar = stack.enter_context(shown)
                    bar.advance(bar.task_ids[0], n)
                yield one
            if bar is not None:
                bar.advance(bar.task_ids[0])

    def answer(
        self, told: Mapping[str, Array], known: Targets, began: float, **own: Any
    ) -> Explanation:
        """Optima that do not know of each other, as one explanation."""
        names, losses = self.reference.weights, told["losses"].sum(axis=0).tolist()
        return Explanation(
            method="optimized",
            weights=dict(names),
            losses=dict(zip(names, losses, strict=True)),
            solver="conditional",
            quantity=self.function.quantity,
            units=self.reference.units,
            evaluations=known.estimate.evaluations,
            seconds=time.perf_counter() - began,
            **{**known.fields, **own},
        )


def joint_proof(told: Mapping[str, Array], largest: float = 1.0) -> Certificate:
    """Of all rows, for the program that leaves the reference as it is."""
    value, excess, zero = (
        math.fsum(told[name].tolist()) for name in ("value", "excess", "value_of_zero")
    )
    return Certificate(
        value=value,
        lower_bound=max(value - excess, 0.0),
        scale=max(value, _UNSCALED * zero),
        kind="strong convexity",
        violation=float(told["violation"].max()),
        distance=largest * math.hypot(*told["distance"].tolist()),
    )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RowAnswers:
    """Rows, what they aim at, and their optima beside the reference rows near them."""

    known: Targets
    near: list[RowMatches]  # (m,): the reference rows that each is compared with
    own: Attributions  # (m, D): main effects g, 0 without
    moves: Mask  # (m, D): columns that move
    told: Mapping[str, Array]  # of each row, w and what OutOfSampleRows tells
    # (m, B, D): how optima move with the blocks of what they aim at, where it is drawn
    moved: Array | None = None

    @classmethod
    def joined(cls, parts: Sequence[RowAnswers], order: Indices) -> RowAnswers:
        """All rows of parts that are as wide, in another order."""
        every = [near for part in parts for near in part.near]

        def both(arrays: Sequence[NDArray[Any]]) -> Any:
            return np.concatenate(arrays)[order]

        drawn = [part.moved for part in parts if part.moved is not None]
        return cls(
            known=Targets.joined([part.known for part in parts]).taken(order),
            near=[every[n] for n in order],
            own=both([part.own for part in parts]),
            moves=both([part.moves for part in parts]),
            told={k: both([part.told[k] for part in parts]) for k in parts[0].told},
            moved=both(drawn) if len(drawn) == len(parts) else None,
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRows(FittedReference):
    """Rows of a table, and all that an answer depends on, but for the row.

    Of slopes a new row has the optimum beside its nearest reference rows w_j. Of
    contributions it is found in z = (w − Φ)/√ω: with f(x) − base = t, main effects g (0
    without) and what reference rows do beside theirs, r_j = w_j − g_j, it minimises

        ‖z‖² + 2b Σ_j s_j ‖z − (r_j − (Φ − g))/√ω‖²

    subject to Σ_d √ω_d z_d = t − Σ_d Φ_d.
    """

    problem: RowsProblem
    rule: AnyRule  # how the target of a row is made, settled
    wrapped: bool  # whether the model was given as a Function
    metric: ColumnMetric | None = None  # of contributions; fixed by the reference rows
    main_effects: Attributions | None = None  # g_j (n, D), without main effects

    @classmethod
    def of(
        cls,
        settings: CheckedSettings,
        model: Any,
        data: Any,
        X: Any,
        progress: bool | None,
    ) -> FittedRows:
        """The reference rows X, or rows of ``data``, explained together."""
        _ = settings.law_of_columns  # refused if it deletes words
        settings.refuse_what_kinds_lack()
        if X is None:
            settings.refuse_what_is_joint()
        problem = RowsProblem.of(settings, model, data, X, progress)
        function, reference = problem.function, problem.reference
        if data is not None and not settings.parts:
            reference.refuse_equal_rows()
        if len(problem.points) < 2 and settings.given_graph is None:
            _refuse_one_row(settings, data, X)
        similar = problem.graph  # refused before anything is made
        refuse_no_scale(problem.sizes, reference)
        if X is not None and not settings.parts:  # parts are of one unit
            warn_of_patterns(similar, problem.coordinates)
        rule = problem.rule.settled(problem.points, settings.seed)
        best = problem.best(rule)
        _ = best.attributions  # proved now: all answers depend on them
        parts: dict[str, Any] = {}
        if isinstance(rule, ContributionRule):
            parts = {"metric": problem.metric, "main_effects": problem.robust.offset}
        told = dict(best.parameters)
        notes = {"notes": told.pop("notes")} if "notes" in told else {}
        verdict = function.jumps
        explained = replace(
            best,
            parameters={
                "function": repr(function),
                **({} if verdict is None else {"jump test": verdict.in_words()}),
                **told,
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
            wrapped=isinstance(model, Function),
            reference=explained,
            **parts,
        )

    def _said_of_all(self) -> dict[str, Parameter]:
        """Categories that data has not, and what follows from main effects."""
        problem, known = self.problem, self.reference.parameters
        told = with_note(known, note_on_others(self.function, problem.points))
        return {**told, **problem.main_effect_parameters(self.reference)}

    @cached_property
    def main_effect_rule(self) -> MainEffectRule | None:
        """How main effects of a new row are made."""
        return (
            None
            if self.main_effects is None
            else self.problem.main_effect_rule_of(self.rule)
        )

    def near(self, positions: Points, points: Points) -> list[RowMatches]:
        """The reference rows that rows (m, D) are compared with, nearest first.

        One that equals a reference row is compared with what that is joined with, so
        that it has its joint optimum.
        """
        problem = self.problem
        if self.metric is None:
            apart, k = self._distances.of(positions), problem.n_neighbors
            nearest = np.argsort(apart, axis=1, kind="stable")[:, :k]
            return [RowMatches(own, np.ones(k)) for own in nearest]
        same = [self._place_of.get(row) for row in _keys(points)]
        new = [n for n, place in enumerate(same) if place is None]
        found = iter(problem.neighbours.of(positions[new]) if new else ())
        return [
            next(found) if place is None else problem.neighbours.joined(place)
            for place in same
        ]

    @cached_property
    def _distances(self) -> Distances:
        return Distances(self.problem.coordinates)

    @cached_property
    def _place_of(self) -> dict[bytes, int]:
        """The first reference row that has some values."""
        keys = _keys(self.problem.points)
        return {row: n for n, row in reversed(list(enumerate(keys)))}

    def explain(
        self, X: object, progress: bool | None, base_margin: Any = None
    ) -> Explanation:
        """Each row of X with its own target; of parts, with its own prediction."""
        self.problem.settings.refuse_what_is_joint()
        began = time.perf_counter()
        wide = self._taking(X)
        points, labels = wide.function.read(X, "X")
        rows = self._beside(wide, points, labels, progress)
        problem = self.problem
        named = labels if problem.players is None else problem.players.labels(labels)
        known, largest, W = rows.known, 1.0, rows.told["w"]
        if self.metric is not None:
            axes = np.where(rows.moves, self.metric.roots, 0.0)
            largest = float(axes.max(initial=0.0))
            W = known.estimate.values + W * axes
        told, best = rows.told, joint_proof(rows.told, largest)
        explained = self.answer(
            told,
            known,
            began,
            attributions=W,
            labels=named,
            parameters=with_note(
                self._said_of_rows, note_on_others(wide.function, points)
            ),
            background=self.reference.background,
            certificate=best,
            details={
                "joint_excess": told["joint_excess"],
                "joint_distance": largest * told["joint_distance"],
                "similarity": read_only(told["similarity"]),  # finite as they are
                "reference_rows": read_only(padded(rows.near, problem.n_neighbors)),
            },
            **wide.problem.metadata(points),
            **self._errors(rows, best.scale),
            **self._programs(rows, named),
            row_size=self.row_size,
        )
        return self.with_base_margin(explained, base_margin, X)

    def with_base_margin(
        self, explained: Explanation, base_margin: Any, X: Any
    ) -> Explanation:
        """The same with the offsets of its rows in base and prediction.

        An offset is added to a margin outside the model, such as log exposure. XGBoost
        calls it ``base_margin``, LightGBM ``init_score`` and CatBoost ``baseline``. It
        is no function of the columns, so that it is part of the base of its row:
        base + o_n + Σ_d w_nd = f(x_n) + o_n.
        """
        if base_margin is None:
            return explained
        base, prediction = explained.base_value, explained.prediction
        if base is None or prediction is None:
            raise InvalidInput(
                "base_margin: it is part of the base of contributions, and slopes have "
                "none; leave it out"
            )
        refuse_no_margin(
            self.function, self.problem.model, self.problem.points.shape[1]
        )
        own = numbers_of_rows(base_margin, X, explained.shape[0], "base_margin", "X")
        told = f"in base and prediction of each row, {own.min():.4g} to {own.max():.4g}"
        return replace(
            explained,
            base_value=base + own,
            prediction=prediction + own,
            parameters={**explained.parameters, "base_margin": told},
        )

    @cached_property
    def _said_of_rows(self) -> dict[str, Parameter]:
        """What answers say of themselves as the reference does."""
        joint = ("without data", "jump test")
        told = self.reference.parameters
        return {name: told[name] for name in told if name not in joint}

    def _beside(
        self, wide: FittedRows, points: Points, labels: Labels, progress: bool | None
    ) -> RowAnswers:
        """Rows of known categories do not depend on the company of others."""
        schema = wide.function.schema
        if wide is self or schema is None:
            return self.answers_at(points, labels, progress)
        is_new = schema.new_categories(points).any(axis=1)
        order = np.argsort(is_new, kind="stable")
        new = np.flatnonzero(is_new)
        wide.function.value_at(points[new], labels.of_positions(new))  # or refused
        parts = [
            owner.answers_at(points[some], labels.of_positions(some), progress)
            for owner, some in ((self, np.flatnonzero(~is_new)), (wide, new))
            if len(some)
        ]
        return RowAnswers.joined(parts, np.argsort(order))

    def _taking(self, X: object) -> FittedRows:
        """The same, which also takes categories of X that data has not."""
        function, problem, rule = (
            self.function.with_categories_of(X),
            self.problem,
            self.rule,
        )
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
            if law == "auto":  # as it was found for the reference rows
                law = "none" if rule.function is self.function else "data"
            rule = target_rule(function, reference, problem.sizes, law=law, rng=seed)
        return replace(self, problem=problem, rule=rule.settled(problem.points, seed))

    def answers_at(
        self, points: Points, labels: Labels, progress: bool | None
    ) -> RowAnswers:
        """What each row aims at, and its optimum beside the reference rows near it."""
        known = Targets.joined(self._aims(points, labels, progress))
        positions = coordinates_of(self.function, points, self.problem.sizes)
        phi, near = known.estimate.values, self.near(positions, points)
        own = np.zeros(phi.shape)
        moves, total = np.ones(phi.shape, bool), np.zeros(len(phi))
        if self.metric is not None:
            if self.main_effect_rule is not None:
                own = self.main_effect_rule.of_rows(points, labels.of_columns())
            moves = np.broadcast_to(self.metric.moves, phi.shape)
            if self.metric.is_uniform:  # and what a row alone uses
                moves = moves | (phi != 0.0)
            total = known.total - [math.fsum(row) for row in phi.tolist()]
            self._refuse_missed(known, total, moves, labels)
        aim = known.estimate
        drawn = None
        if aim.blocks is not None and not aim.exact:
            drawn = (aim.blocks - aim.blocks.mean(axis=0)).transpose(1, 0, 2)
        told: dict[str, Array] = {}
        parts = list[tuple[Indices, dict[str, Array]]]()
        # rows that add up over no column have nothing in common with others
        counts = [len(one.positions) for one in near]
        kind = list(zip(counts, np.any(moves, axis=1).tolist(), strict=True))
        for one in dict.fromkeys(kind):
            alike = np.array([n for n, own_kind in enumerate(kind) if own_kind == one])
            for some in BATCH_BUDGET.blocks(
                len(alike), 64 * (one[0] + 1) * phi.shape[1]
            ):
                rows = alike[some]
                asked = self._asked(rows, phi, near, own, moves, total)
                told = {name: getattr(asked, name) for name in ("w", *TOLD)}
                told["similarity"] = asked.similarities.sum(axis=-1)
                if drawn is not None:
                    told["moved"] = self._moved(asked, drawn[rows], moves[rows])
                parts.append((rows, told))
        if len(parts) > 1:
            order = np.argsort(np.concatenate([rows for rows, _ in parts]))
            told = {
                name: np.concatenate([told[name] for _, told in parts])[order]
                for name in told
            }
        moved = told.pop("moved", None)
        return RowAnswers(
            known=known, near=near, own=own, moves=moves, told=told, moved=moved
        )

    def _asked(
        self,
        rows: Indices,
        phi: Attributions,
        near: Sequence[RowMatches],
        own: Attributions,
        moves: Mask,
        total: Array,
    ) -> OutOfSampleRows:
        """Some rows that have as many rows near them; of contributions their z."""
        positions = np.array([near[n].positions for n in rows])
        similarities = np.array([near[n].similarities for n in rows])
        target, fixed, metric = phi[rows], self._left[positions], self.metric
        sums: dict[str, Any] = {}
        if metric is not None:
            apart = fixed - (target - own[rows])[:, None]
            fixed = np.where(moves[rows, None], apart / metric.roots, 0.0)
            target = np.zeros(target.shape)
            axis = np.where(moves[rows], metric.roots, 0.0)
            if axis.any():
                sums = {"axis": axis, "fixed_axis": metric.axis, "total": total[rows]}
        return OutOfSampleRows(
            target=target,
            near=positions,
            similarities=similarities,
            fixed=fixed,
            weights=self.weights,
            **sums,
        )

    def _aims(
        self, points: Points, labels: Labels, progress: bool | None
    ) -> list[Targets]:
        """What rows aim at; in one call where a model answers each row by itself."""
        rule, base = self.rule, self.reference.base_value
        if rule.is_row_independent:
            own = None if base is None else float(base[0])
            return [rule.of_rows(points, labels, own)]
        # a model may answer many rows in other digits than one asked alone
        return [
            self.aim(points[[n]], labels.of_positions([n]))
            for n in self.with_progress(range(len(points)), progress)
        ]

    def aim(self, point: Points, labels: Labels) -> Targets:
        """What a row (1, D) aims at, the same whoever else is asked."""
        base = self.reference.base_value
        return self.rule.of_row(point, labels, None if base is None else float(base[0]))

    @cached_property
    def _left(self) -> Attributions:
        """What reference rows do beside their main effects, r_j (n, D)."""
        W = self.reference.attributions
        return W if self.main_effects is None else read_only(W - self.main_effects)

    def _refuse_missed(
        self, known: Targets, missed: Array, moves: Mask, labels: Labels
    ) -> None:
        """Refuse a row that has a sum to make up, and no column to move for it."""
        bad = ~moves.any(axis=1)
        if bad.any() and (bad := bad & (np.abs(missed) > known.slack)).any():
            n = int(bad.argmax())
            raise InvalidInput(
                f"X: row {labels.row(n)!r}: no feature contributes, and its "
                f"prediction differs from the base by {missed[n]:.3g}: nothing can add "
                "up; give fit() reference rows that differ in what the model reads"
            )

    def _moved(self, asked: OutOfSampleRows, E: Array, moves: Mask) -> Array:
        """How optima move with E (m, B, D); what does not move has the error of Φ."""
        if self.metric is None:
            return asked.moved(E)
        still, roots = ~moves[:, None], self.metric.roots
        step = asked.moved(np.where(still, 0.0, E / roots)) * roots
        return np.where(still, E, step)

    def _errors(self, rows: RowAnswers, scale: float) -> dict[str, Any]:
        """What errors of the target cost, A² ⟨E, H⁻¹E⟩ of all rows, and move."""
        aim, errors, gram = rows.known.estimate, None, None
        if rows.moved is not None and aim.blocks is not None:
            B = len(aim.blocks)
            apart = (aim.blocks - aim.blocks.mean(axis=0)).transpose(1, 0, 2)
            gram = np.zeros((B, B))
            for E, moved in zip(apart, rows.moved, strict=True):
                gram += self.weights[0] * E @ moved.T
            errors = np.sqrt((rows.moved**2).sum(axis=1) / (B * (B - 1)))
        if self.metric is not None:
            return {"target": error_of_parts(aim), "standard_errors": errors}
        excess = None if gram is None else TargetError.of_gram((gram + gram.T) / 2.0)
        target = TargetError.of(aim, scale, excess)
        return {"target": target, "standard_errors": errors}

    @cached_property
    def row_size(self) -> float:
        """The root mean square of ‖w_n‖ over the reference rows."""
        squares = (self.reference.attributions**2).sum(axis=1)
        return float(np.sqrt(squares.mean()))

    def _programs(self, rows: RowAnswers, labels: Labels) -> dict[str, Any]:
        """The program of all rows, made when asked for; in a metric of z."""
        program = lazily(cache(partial(self._program, rows, labels)))
        told: dict[str, Any] = {"problem_data": self._problem_data(rows)}
        if self.metric is None or self.metric.is_uniform:
            return {"program": program, **told}
        return {"scaled_program": program, "metric": self.metric.axis**2, **told}

    def _program(self, rows: RowAnswers, labels: Labels) -> Program:
        """Of rows that have names, and stay beside the reference as it is."""
        own, pairs = self.reference.weights
        metric, known = self.metric, rows.known
        phi = known.estimate.values
        in_metric = metric is not None and not metric.is_uniform
        # of ordered pairs 2 Σ_n Σ_j s_j ‖w_n − w_j‖², where w_j stays as it is
        counts = [len(near.positions) for near in rows.near]
        owner = np.repeat(np.arange(len(counts)), counts)
        positions = np.concatenate([near.positions for near in rows.near])
        similarities = np.concatenate([near.similarities for near in rows.near])
        roots = np.sqrt(2.0 * similarities)
        at = np.arange(len(owner)), owner
        pulled = OverPoints(sp.csr_array((roots, at), (len(owner), len(counts))))
        squared = GradientMatching(self.reference.attributions, name=pairs)
        fixed, g = self._left[positions], rows.own[owner]
        aim, none = replace(known.estimate, labels=labels), np.zeros(phi.shape)
        total = np.zeros(len(counts)) if known.base is None else known.total
        axes = none if metric is None else np.where(rows.moves, metric.roots, 0.0)
        if in_metric and metric is not None:
            apart = (fixed - (phi[owner] - g)) / metric.roots
            fixed, g = np.where(rows.moves[owner], apart, 0.0), none[owner]
            blocks = aim.blocks
            blocks = None if blocks is None else metric.scaled(blocks - phi)
            aim = replace(aim, values=none, blocks=blocks)
            total = total - [math.fsum(row) for row in phi.tolist()]
        anchored = _RecastLoss(squared, pulled, roots[:, None] * (fixed + g))
        losses = GradientMatching(aim, name=own), anchored
        if not axes.any():
            return Program(losses)
        shared = bool((axes == axes[0]).all())
        adding_up = Completeness(total, axes[0] if shared else axes)
        return Program(losses, (adding_up.bound(phi.shape[1]),))

    def _problem_data(self, rows: RowAnswers) -> dict[str, NDArray[Any]]:
        """What a file says of it, of :mod:`propopt.proofs.problem_data`."""
        own, pairs = self.reference.weights
        known, phi = rows.known, rows.known.estimate.values
        count = max(len(near.positions) for near in rows.near)
        similarities = np.zeros((len(phi), count))
        for row, near in zip(similarities, rows.near, strict=True):
            row[: len(near.positions)] = near.similarities
        problem_data = {
            f"{own}.target": phi,
            f"{pairs}.near": padded(rows.near, count),
            f"{pairs}.similarities": similarities,
            f"{pairs}.fixed": self._left,
            f"{pairs}.offset": rows.own,
        }
        if known.base is not None:
            problem_data["completeness.parts"] = rows.moves.astype(np.float64)
            problem_data["completeness.totals"] = known.total
        return {name: read_only(array) for name, array in problem_data.items()}


def _keys(points: Points) -> list[bytes]:
    """The values of each row as bytes; NaN and zero are one each."""
    plain = np.where(np.isnan(points), np.nan, points + 0.0)
    return [row.tobytes() for row in plain]


def padded(near: Sequence[RowMatches], count: int) -> NDArray[np.intp]:
    """Places of the k nearest of each row, (m, k); −1 where there are fewer."""
    positions = np.full((len(near), count), -1, np.intp)
    for row, own in zip(positions, near, strict=True):
        row[: len(own.positions)] = own.positions[:count]
    return positions


def neighbours_in_words(problem: RowsProblem) -> dict[str, str]:
    """What an explanation says of how its rows are compared."""
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
    """What contributions are compared with where no table was given."""
    if data is not None or not problem.settings.parts:
        return {}
    count = f"{len(problem.points):,} rows of X"
    return {
        "without data": f"The {count} are also the background, because data= was not "
        "given. With data=X_train, a row does not depend on the others."
    }


def _refuse_one_row(settings: CheckedSettings, data: Any, X: Any) -> NoReturn:
    """Refuse a row that there is no other to compare with."""
    joint = joint_setting_of(settings)
    if joint is not None and data is not None:
        raise InvalidInput(f"{joint}: {ALONE}")
    table = "data" if X is None else "X"
    raise InvalidInput(
        f"{table}: robustness compares rows, and there is one; give more, or the table "
        "that it comes from as data, or take the gradient alone by "
        "propopt.explainers.Gradient"
    )


# ---- Offsets of rows


def refuse_no_margin(function: Function, model: Any, n_columns: int) -> None:
    """Refuse offsets of what is known to be no margin, or not known to be one."""
    kind = function.quantity.kind
    if kind == "probability":
        raise InvalidInput(
            "base_margin: it is added to margins, and the output explained is a "
            "probability; give output='log_odds'"
        )
    is_estimator = has_method(model, "predict") and not isinstance(model, Function)
    if kind != "value" or not is_estimator:
        return
    read = function.products_in(n_columns)
    is_sum = isinstance(read, SumOfProducts) and read.lengths.max(initial=0) <= 1
    if not (isinstance(read, Boxes) or is_sum):  # a product may be exp of a sum
        raise InvalidInput(
            f"base_margin: it is added to margins, and {type(model).__name__} is explained "
            "in its predictions, which may have a link such as exp; give a function "
            "that returns the margin, such as lambda X: "
            "model.predict(X, output_margin=True)"
        )
