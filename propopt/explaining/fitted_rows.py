"""What a fit leaves, and the answers that it gives: each row by itself."""

from __future__ import annotations

import hashlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Points
from propopt.base.checks import as_array, read_count, read_seed
from propopt.base.errors import InvalidInput
from propopt.base.terminal import progress_bar
from propopt.explaining.conditional import ConditionalRow
from propopt.explaining.contributions import AnyRule, ContributionRule
from propopt.explaining.joint_parts import ColumnMetric
from propopt.explaining.offsets import with_offset
from propopt.explaining.own_rule import OwnValueRule
from propopt.explaining.plan import (
    MOST_REFERENCE_ROWS,
    ExplainSettings,
    JointPlan,
    JointRows,
    note_on_others,
    with_note,
)
from propopt.explaining.targets import (
    Targets,
    coordinates_of,
    error_of_parts,
    in_words,
    target_rule,
)
from propopt.functions import Function
from propopt.functions.wrapping import wrapped_and_told
from propopt.laws.background import Background
from propopt.laws.data_law import Reference
from propopt.losses import Completeness, GradientMatching, Program
from propopt.losses.algebra import _Recast
from propopt.losses.graphs.neighbours import Near
from propopt.losses.graphs.points import distances_between
from propopt.losses.maps import OverPoints
from propopt.results.certificate import Certificate
from propopt.results.explanation import Explanation
from propopt.results.target_error import TargetError
from propopt.tables.frames import Labels, is_frame
from propopt.tables.schema import TableSchema


_UNSCALED = 1e-9
"""Of what zero costs: an optimum of less than that has no scale of its own."""

_Asked = TypeVar("_Asked")


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedReference(ABC):
    """A joint optimum, beside which others are explained one by one."""

    plan: JointPlan  # what was explained together
    reference: Explanation  # the joint optimum

    @property
    def function(self) -> Function:
        """The model."""
        return self.plan.function

    @property
    def weights(self) -> tuple[float, float]:
        """Those of the target, and of robustness: a and b."""
        own, pairs = self.reference.weights.values()
        return own, pairs

    @abstractmethod
    def explain(self, X: Any, progress: bool | None, offset: Any = None) -> Explanation:
        """Each row, or document, of X with its own target."""

    @staticmethod
    def one_by_one(asked: Sequence[_Asked], progress: bool | None) -> Iterator[_Asked]:
        """Each by itself, beside a bar."""
        with progress_bar("explain", len(asked), progress) as bar:
            for one in asked:
                yield one
                bar.advance(bar.task_ids[0])

    def answer(
        self,
        rows: Sequence[ConditionalRow],
        known: Targets,
        began: float,
        **own: Any,
    ) -> Explanation:
        """Optima that do not know of each other, as one explanation."""
        names, losses = self.reference.weights, np.array([row.losses for row in rows])
        return Explanation(
            method="optimized",
            weights=dict(names),
            losses=dict(zip(names, losses.sum(axis=0).tolist(), strict=True)),
            solver="conditional",
            quantity=self.function.quantity,
            units=self.reference.units,
            evaluations=known.estimate.evaluations,
            seconds=time.perf_counter() - began,
            **{**known.fields, **own},
        )


def joint_proof(rows: Sequence[ConditionalRow], largest: float = 1.0) -> Certificate:
    """Of all rows, for the program that leaves the reference as it is."""
    value = math.fsum(row.value for row in rows)
    excess = math.fsum(row.excess for row in rows)
    zero = math.fsum(row.value_of_zero for row in rows)
    return Certificate(
        value=value,
        lower_bound=max(value - excess, 0.0),
        scale=max(value, _UNSCALED * zero),
        kind="strong convexity",
        violation=max(row.violation for row in rows),
        distance=largest * math.hypot(*(row.distance for row in rows)),
    )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRows(FittedReference):
    """Rows of a table, and all that an answer depends on, but for the row.

    Of slopes a new row has the optimum beside its nearest reference rows w_j. Of
    contributions it is found in z = (w − Φ)/√ω: with f(x) − base = t, own values g (0
    without) and what reference rows do beside theirs, r_j = w_j − g_j, it minimises

        ‖z‖² + 2b Σ_j s_j ‖z − (r_j − (Φ − g))/√ω‖²

    subject to Σ_d √ω_d z_d = t − Σ_d Φ_d.
    """

    plan: JointRows
    rule: AnyRule  # how the target of a row is made, settled
    wrapped: bool  # whether the model was given as a Function
    metric: ColumnMetric | None = None  # of contributions; fixed by the reference rows
    own_values: Attributions | None = None  # g_j (n, D), beside own values

    @cached_property
    def own_rule(self) -> OwnValueRule | None:
        """How own values of a new row are made."""
        return None if self.own_values is None else self.plan.own_rule_of(self.rule)

    def near(self, place: Array, point: Array) -> Near:
        """The reference rows that a row (D,) is compared with, nearest first.

        One that equals a reference row is compared with what that is joined with, so
        that it has its joint optimum.
        """
        plan = self.plan
        if self.metric is None:
            apart = distances_between(place[None], plan.coordinates)[0]
            nearest = np.argsort(apart, kind="stable")[: plan.n_neighbors]
            return Near(nearest, np.ones(len(nearest)))
        same = (plan.points == point) | (np.isnan(plan.points) & np.isnan(point))
        known = np.flatnonzero(same.all(axis=1))
        if len(known):
            return plan.neighbours.joined(int(known[0]))
        return plan.neighbours.of(place)

    def explain(
        self, X: object, progress: bool | None, offset: Any = None
    ) -> Explanation:
        """Each row of X with its own target; of parts, with its own prediction."""
        began = time.perf_counter()
        wide = self._taking(X)
        points, labels = wide.function.read(X, "X")
        schema, every = wide.function.schema, np.arange(len(points))
        new = every[:0]
        if wide is not self and schema is not None:
            new = np.flatnonzero(schema.others(points).any(axis=1))
            wide.function.value_at(points[new], labels.of_positions(new))  # or refused
        # rows of known categories do not depend on the company of others
        found: list[Any] = [None] * len(points)
        for owner, some in ((self, np.setdiff1d(every, new)), (wide, new)):
            said = owner.answers_at(points[some], labels.of_positions(some), progress)
            for n, answer in zip(some.tolist(), said, strict=True):
                found[n] = answer
        parts = [part for part, _ in found]
        beside = [row for _, row in found]
        rows = [row for row, _, _ in beside]
        axes = np.stack([axis for _, _, axis in beside])
        named = (
            labels if self.plan.players is None else self.plan.players.labels(labels)
        )
        known, largest = Targets.joined(parts, named), float(axes.max(initial=0.0))
        proof = joint_proof(rows, largest)
        moved = [row.joint_distance for row in rows]
        W = np.stack([row.w for row in rows])
        if self.metric is not None:
            W = known.estimate.values + W * axes
        best = self.answer(
            rows,
            known,
            began,
            attributions=W,
            labels=known.estimate.labels,
            parameters=with_note(
                self.reference.parameters, note_on_others(wide.function, points)
            ),
            background=self.reference.background,
            certificate=proof,
            details={
                "joint_excess": np.array([row.joint_excess for row in rows]),
                "joint_distance": largest * np.array(moved),
                "similarity": np.array([row.similarities.sum() for row in rows]),
                "reference_rows": padded(
                    [row.near for row in rows], self.plan.n_neighbors
                ),
            },
            **wide.plan.told(points),
            **self._errors(rows, axes, known, proof.scale),
            **self._programs(rows, known, beside),
            row_size=self.row_size,
        )
        own = self.function, self.plan.model, points.shape[1]
        return with_offset(best, offset, X, *own)

    def _taking(self, X: object) -> FittedRows:
        """The same, which also takes categories of X that data has not."""
        function, plan, rule = self.function.taking(X), self.plan, self.rule
        if function is self.function or function.schema is None:
            return self
        codes = function.schema.n_codes
        reference = replace(plan.reference, n_codes=codes)
        seed = read_seed(plan.settings.rng)
        plan = replace(plan, function=function, reference=reference)
        if isinstance(rule, ContributionRule):
            rule = replace(
                rule,
                function=function,
                reference=reference,
                given_background=rule.background,
            )
        else:
            law = plan.settings.law_of_columns
            if law == "auto":  # as it was found for the reference rows
                law = "none" if rule.function is self.function else "data"
            rule = target_rule(function, reference, plan.sizes, law=law, rng=seed)
        return replace(self, plan=plan, rule=rule.settled(plan.points, seed))

    def answers_at(
        self, points: Points, labels: Labels, progress: bool | None
    ) -> list[tuple[Targets, tuple[ConditionalRow, Array, Array]]]:
        """What each row aims at, and its optimum beside the reference rows near it."""
        if len(points) == 0:
            return []
        parts = self._aims(points, labels, progress)
        places = coordinates_of(self.function, points, self.plan.sizes)
        names = labels.points or range(len(points))
        asked = zip(parts, places, points, names, strict=True)
        return [(one[0], self._row(*one)) for one in asked]

    def _aims(
        self, points: Points, labels: Labels, progress: bool | None
    ) -> list[Targets]:
        """What rows aim at; in one call where a model answers each row by itself."""
        rule = self.rule
        if isinstance(rule, ContributionRule) and rule.answers_rows_alike:
            base = self.reference.base_value
            assert base is not None, "contributions have one"
            return rule.of_rows(points, labels, float(base[0]))
        # a model may answer many rows in other digits than one asked alone
        return [
            self.aim(points[[n]], labels.of_positions([n]))
            for n in self.one_by_one(range(len(points)), progress)
        ]

    def aim(self, point: Points, labels: Labels) -> Targets:
        """What a row (1, D) aims at, the same whoever else is asked."""
        base = self.reference.base_value
        return self.rule.of_row(point, labels, None if base is None else float(base[0]))

    @cached_property
    def _left(self) -> Attributions:
        """What reference rows do beside their own values, r_j (n, D)."""
        W = self.reference.attributions
        return W if self.own_values is None else W - self.own_values

    def _row(
        self, known: Targets, place: Array, point: Array, name: Hashable
    ) -> tuple[ConditionalRow, Array, Array]:
        """A row beside the reference rows near it; g (D,); and √ω of what moves."""
        near = self.near(place, point)
        target, metric = known.estimate.values[0], self.metric
        if metric is not None and metric.is_uniform:  # and what it alone uses
            metric = replace(metric, moves=metric.moves | (target != 0.0))
        own = np.zeros(len(target))
        sums: dict[str, Any] = {}
        fixed = self._left[near.places]
        if metric is not None:
            if self.own_rule is not None:
                own = self.own_rule.at(point[None], self.plan.labels)[0]
            fixed = metric.scaled(fixed - (target - own))
            sums = self._sum(known, target, metric, name)
            target = np.zeros(len(target))
        row = ConditionalRow(
            target=target,
            near=near.places,
            similarities=near.similarities,
            fixed=fixed,
            weights=self.weights,
            **sums,
        )
        return row, own, np.ones(len(own)) if metric is None else metric.axis

    def _sum(
        self, known: Targets, phi: Array, metric: ColumnMetric, name: object
    ) -> dict[str, Any]:
        """What a row adds up to, over columns that move, and those it alone uses."""
        assert self.metric is not None, "it is that of the row"
        missed = float(known.total[0]) - math.fsum(phi)
        if metric.moves.any():
            axes = {"axis": metric.moves, "fixed_axis": self.metric.moves}
            sums = {k: np.where(v, metric.roots, 0.0) for k, v in axes.items()}
            return {**sums, "total": missed}
        if abs(missed) > known.slack[0]:
            raise InvalidInput(
                f"X: row {name!r}: no feature contributes, and its prediction "
                f"differs from the base by {missed:.3g}: nothing can add up; give "
                "fit() reference rows that differ in what the model reads"
            )
        return {}

    def _errors(
        self,
        rows: Sequence[ConditionalRow],
        axes: Array,  # (m, D): √ω of what moves
        known: Targets,
        scale: float,
    ) -> dict[str, Any]:
        """What errors of the target cost, A² ⟨E, H⁻¹E⟩ of all rows, and move."""
        aim, errors = known.estimate, None
        gram = None
        if aim.blocks is not None and not aim.exact:
            B = len(aim.blocks)
            apart = aim.blocks - aim.blocks.mean(axis=0)
            gram, squares = np.zeros((B, B)), []
            each = zip(rows, axes, apart.transpose(1, 0, 2), strict=True)
            for row, axis, E in each:  # what does not move has the error of Φ
                moves = axis > 0.0
                unit = np.where(moves, axis, 1.0)
                step = row.moved(np.where(moves, E / unit, 0.0)) * axis
                moved = np.where(moves, step, E)
                gram += row.weights[0] * E @ moved.T
                squares.append((moved**2).sum(axis=0))
            errors = np.sqrt(np.stack(squares) / (B * (B - 1)))
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

    def _programs(
        self,
        rows: Sequence[ConditionalRow],
        known: Targets,
        beside: Sequence[tuple[ConditionalRow, Array, Array]],
    ) -> dict[str, Any]:
        """The conditional program of all rows; in a metric that of z."""
        own, pairs = self.reference.weights
        metric = self.metric
        in_metric = metric is not None and not metric.is_uniform
        # of ordered pairs 2 Σ_n Σ_j s_j ‖w_n − w_j‖², where w_j stays as it is
        each = [np.sqrt(2.0 * row.similarities)[:, None] for row in rows]
        owner = np.repeat(np.arange(len(rows)), [len(root) for root in each])
        places = np.arange(len(owner)), owner
        shape = len(owner), len(rows)
        apart = OverPoints(sp.csr_array((np.concatenate(each)[:, 0], places), shape))
        squared = GradientMatching(self.reference.attributions, name=pairs)
        fixed = np.concatenate(
            [
                root * (row.fixed if in_metric else self._left[row.near] + g)
                for root, (row, g, _) in zip(each, beside, strict=True)
            ]
        )
        anchored, aim = _Recast(squared, apart, fixed), known.estimate
        total = np.zeros(len(rows)) if known.base is None else known.total
        if in_metric and metric is not None:
            phi, blocks = aim.values, aim.blocks
            blocks = None if blocks is None else metric.scaled(blocks - phi)
            aim = replace(aim, values=np.zeros(phi.shape), blocks=blocks)
            total = np.array([row.total for row in rows])
        losses = GradientMatching(aim, name=own), anchored
        none = np.zeros(known.estimate.values.shape[1])
        masks = np.stack([none if x.axis is None else x.axis for x in rows])
        program = Program(losses)
        if masks.any():
            shared = bool((masks == masks[0]).all())
            adding_up = Completeness(total, masks[0] if shared else masks)
            program = Program(losses, (adding_up.bound(len(none)),))
        told: dict[str, Any] = {"posed": self._posed(rows, known, beside)}
        if not in_metric or metric is None:
            return {"program": program, **told}
        return {"scaled_program": program, "metric": metric.axis**2, **told}

    def _posed(
        self,
        rows: Sequence[ConditionalRow],
        known: Targets,
        beside: Sequence[tuple[ConditionalRow, Array, Array]],
    ) -> dict[str, NDArray[Any]]:
        """What a file says of it, of :mod:`propopt.results.posed`."""
        own, pairs = self.reference.weights
        phi = known.estimate.values
        count = max(len(row.near) for row in rows)
        similarities = np.zeros((len(rows), count))
        for n, row in enumerate(rows):
            similarities[n, : len(row.near)] = row.similarities
        posed = {
            f"{own}.target": phi,
            f"{pairs}.near": padded([row.near for row in rows], count),
            f"{pairs}.similarities": similarities,
            f"{pairs}.fixed": self._left,
            f"{pairs}.beside": np.stack([g for _, g, _ in beside]),
        }
        if known.base is not None:
            moves = np.stack([axis > 0.0 for _, _, axis in beside])
            posed["completeness.parts"] = np.ones(phi.shape) * moves
            posed["completeness.totals"] = known.total
        return posed


def padded(near: Sequence[NDArray[np.intp]], count: int) -> NDArray[np.intp]:
    """Places of the k nearest of each row, (m, k); −1 where there are fewer."""
    places = np.full((len(near), count), -1, np.intp)
    for row, own in zip(places, near, strict=True):
        row[: len(own)] = own[:count]
    return places


def fitted_rows(
    settings: ExplainSettings, model: Any, data: Any, X: Any, progress: bool | None
) -> FittedRows:
    """The reference rows X, or rows of ``data``, explained together."""
    settings.refuse_for_rows()
    seed = read_seed(settings.rng)
    plan = joint_rows(replace(settings, rng=seed), model, data, X, progress)
    note = plan.note
    if not settings.parts:
        plan.reference.refuse_equal_rows()
    if len(plan.points) < 2:
        raise InvalidInput(
            "fit: expected at least two reference rows, which are compared with each "
            f"other, got {len(plan.points)}"
        )
    _ = plan.graph  # refused before anything is made
    rule = plan.rule.settled(plan.points, seed)
    best = plan.best(rule)
    _ = best.attributions  # proved now: all answers depend on them
    parts: dict[str, Any] = {}
    if isinstance(rule, ContributionRule):
        parts = {"metric": plan.metric, "own_values": plan.robust.beside}
    told = with_note(best.parameters, note)
    notes = {"notes": told.pop("notes")} if "notes" in told else {}
    told |= {
        "function": repr(plan.function),
        "scale": in_words(settings.scale),
        **neighbours_in_words(plan),
        "weight rule": plan.weight[1],
        **plan.told_of_background(),
        **notes,
    }
    reference = replace(
        best,
        parameters=told,
        quantity=plan.function.quantity,
        background=plan.background_digest,
        **plan.told(plan.points),
    )
    wrapped = isinstance(model, Function)
    return FittedRows(
        plan=plan, rule=rule, wrapped=wrapped, reference=reference, **parts
    )


def neighbours_in_words(plan: JointRows) -> dict[str, str]:
    """What an explanation says of how its rows are compared."""
    content = np.ascontiguousarray(plan.coordinates, dtype="<f8").tobytes()
    falling = "falling with distance" if plan.settings.parts else "uniform"
    return {
        "graph": f"{plan.n_neighbors} nearest of {len(plan.points)} reference rows",
        "similarities": falling,
        "reference": f"sha256:{hashlib.sha256(content).hexdigest()[:12]}",
    }


def joint_rows(
    settings: ExplainSettings, model: Any, data: Any, X: Any, progress: bool | None
) -> JointRows:
    """The reference rows, read with the function and the table of the model."""
    is_schema = isinstance(data, TableSchema)
    table = X if data is None or is_schema else data
    if table is None:
        raise InvalidInput(
            "fit: expected reference rows, X, or a table of them, Explainer(model, "
            "data=X_train)"
        )
    table = table if is_frame(table, "data") else as_array(table, "data")
    known = None if isinstance(model, Function) else data if is_schema else table
    asked = settings.target, settings.output, known
    function, told = wrapped_and_told(
        model, table, *asked, settings.batch_rows, settings.outcome
    )
    if X is not None and X is not table:
        function = function.taking(X)
    points, labels = told.read(function, table, "data")
    reference = Reference.of_points(points, labels, function.schema)
    weighted = Background.weighed(settings.sample_weight, table, points)
    if X is not None and X is not table:
        points, labels = function.read(X)
    elif X is None:
        most = read_count(settings.n_reference, "n_reference")
        if settings.n_reference == MOST_REFERENCE_ROWS:
            most = settings.most_reference_rows(function, reference)
        if len(points) > most:  # whatever the seed of draws: it follows from data
            chosen = np.random.default_rng(0).choice(len(points), most, replace=False)
            points = points[np.sort(chosen)]
            labels = labels.of_positions(np.sort(chosen))
    return JointRows(
        settings=settings,
        function=function,
        reference=reference,
        sizes=settings.sizes_of(function, reference),
        points=points,
        labels=labels,
        progress=progress,
        model=model,
        weighted=weighted,
    )
