"""What a fit leaves, and the answers that it gives: each row by itself."""

from __future__ import annotations

import hashlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, TypeVar, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Points, Positions, Truths
from propopt.base.checks import as_array, read_count, read_seed, sealed
from propopt.base.declared import lazily
from propopt.base.errors import InvalidInput
from propopt.base.resources import AT_ONCE
from propopt.base.terminal import progress_bar
from propopt.explaining.conditional import TOLD, ConditionalRows
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
from propopt.losses.graphs.points import Distances
from propopt.losses.maps import OverPoints
from propopt.results.certificate import Certificate
from propopt.results.explanation import Explanation
from propopt.results.target_error import TargetError
from propopt.tables.frames import Labels, is_frame
from propopt.tables.schema import TableSchema


_UNSCALED = 1e-9
"""Of what zero costs: an optimum of less than that has no scale of its own."""

_SOON = 1.0
"""Seconds: a bar that is not asked for is shown of work that takes longer."""

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
class RowsBeside:
    """Rows, what they aim at, and their optima beside the reference rows near them."""

    known: Targets
    near: list[Near]  # (m,): the reference rows that each is compared with
    own: Attributions  # (m, D): own values g, 0 without
    moves: Truths  # (m, D): columns that move
    told: Mapping[str, Array]  # of each row, w and what ConditionalRows tells
    # (m, B, D): how optima move with the blocks of what they aim at, where it is drawn
    moved: Array | None = None

    @classmethod
    def joined(cls, parts: Sequence[RowsBeside], order: Positions) -> RowsBeside:
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

    def near(self, places: Points, points: Points) -> list[Near]:
        """The reference rows that rows (m, D) are compared with, nearest first.

        One that equals a reference row is compared with what that is joined with, so
        that it has its joint optimum.
        """
        plan = self.plan
        if self.metric is None:
            apart, k = self._distances.of(places), plan.n_neighbors
            nearest = np.argsort(apart, axis=1, kind="stable")[:, :k]
            return [Near(own, np.ones(k)) for own in nearest]
        same = [self._place_of.get(row) for row in _keys(points)]
        new = [n for n, place in enumerate(same) if place is None]
        found = iter(plan.neighbours.of(places[new]) if new else ())
        return [
            next(found) if place is None else plan.neighbours.joined(place)
            for place in same
        ]

    @cached_property
    def _distances(self) -> Distances:
        return Distances(self.plan.coordinates)

    @cached_property
    def _place_of(self) -> dict[bytes, int]:
        """The first reference row that has some values."""
        keys = _keys(self.plan.points)
        return {row: n for n, row in reversed(list(enumerate(keys)))}

    def explain(
        self, X: object, progress: bool | None, offset: Any = None
    ) -> Explanation:
        """Each row of X with its own target; of parts, with its own prediction."""
        began = time.perf_counter()
        wide = self._taking(X)
        points, labels = wide.function.read(X, "X")
        rows = self._beside(wide, points, labels, progress)
        plan = self.plan
        named = labels if plan.players is None else plan.players.labels(labels)
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
                self.reference.parameters, note_on_others(wide.function, points)
            ),
            background=self.reference.background,
            certificate=best,
            details={
                "joint_excess": told["joint_excess"],
                "joint_distance": largest * told["joint_distance"],
                "similarity": sealed(told["similarity"]),  # finite as they are
                "reference_rows": sealed(padded(rows.near, plan.n_neighbors)),
            },
            **wide.plan.told(points),
            **self._errors(rows, best.scale),
            **self._programs(rows, named),
            row_size=self.row_size,
        )
        own = self.function, plan.model, points.shape[1]
        return with_offset(explained, offset, X, *own)

    def _beside(
        self, wide: FittedRows, points: Points, labels: Labels, progress: bool | None
    ) -> RowsBeside:
        """Rows of known categories do not depend on the company of others."""
        schema = wide.function.schema
        if wide is self or schema is None:
            return self.answers_at(points, labels, progress)
        is_new = schema.others(points).any(axis=1)
        order = np.argsort(is_new, kind="stable")
        new = np.flatnonzero(is_new)
        wide.function.value_at(points[new], labels.of_positions(new))  # or refused
        parts = [
            owner.answers_at(points[some], labels.of_positions(some), progress)
            for owner, some in ((self, np.flatnonzero(~is_new)), (wide, new))
            if len(some)
        ]
        return RowsBeside.joined(parts, np.argsort(order))

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
    ) -> RowsBeside:
        """What each row aims at, and its optimum beside the reference rows near it."""
        known = Targets.joined(self._aims(points, labels, progress))
        places = coordinates_of(self.function, points, self.plan.sizes)
        phi, near = known.estimate.values, self.near(places, points)
        own = np.zeros(phi.shape)
        moves, total = np.ones(phi.shape, bool), np.zeros(len(phi))
        if self.metric is not None:
            if self.own_rule is not None:
                own = self.own_rule.of_rows(points, labels.of_columns())
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
        parts = list[tuple[Positions, dict[str, Array]]]()
        # rows that add up over no column have nothing in common with others
        counts = [len(one.places) for one in near]
        kind = list(zip(counts, np.any(moves, axis=1).tolist(), strict=True))
        for one in dict.fromkeys(kind):
            alike = np.array([n for n, own_kind in enumerate(kind) if own_kind == one])
            for some in AT_ONCE.blocks(len(alike), 64 * (one[0] + 1) * phi.shape[1]):
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
        return RowsBeside(
            known=known, near=near, own=own, moves=moves, told=told, moved=moved
        )

    def _asked(
        self,
        rows: Positions,
        phi: Attributions,
        near: Sequence[Near],
        own: Attributions,
        moves: Truths,
        total: Array,
    ) -> ConditionalRows:
        """Some rows that have as many rows near them; of contributions their z."""
        places = np.array([near[n].places for n in rows])
        similarities = np.array([near[n].similarities for n in rows])
        target, fixed, metric = phi[rows], self._left[places], self.metric
        sums: dict[str, Any] = {}
        if metric is not None:
            apart = fixed - (target - own[rows])[:, None]
            fixed = np.where(moves[rows, None], apart / metric.roots, 0.0)
            target = np.zeros(target.shape)
            axis = np.where(moves[rows], metric.roots, 0.0)
            if axis.any():
                sums = {"axis": axis, "fixed_axis": metric.axis, "total": total[rows]}
        return ConditionalRows(
            target=target,
            near=places,
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
        if rule.answers_rows_alike:
            own = None if base is None else float(base[0])
            return [rule.of_rows(points, labels, own)]
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
        return W if self.own_values is None else sealed(W - self.own_values)

    def _refuse_missed(
        self, known: Targets, missed: Array, moves: Truths, labels: Labels
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

    def _moved(self, asked: ConditionalRows, E: Array, moves: Truths) -> Array:
        """How optima move with E (m, B, D); what does not move has the error of Φ."""
        if self.metric is None:
            return asked.moved(E)
        still, roots = ~moves[:, None], self.metric.roots
        step = asked.moved(np.where(still, 0.0, E / roots)) * roots
        return np.where(still, E, step)

    def _errors(self, rows: RowsBeside, scale: float) -> dict[str, Any]:
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

    def _programs(self, rows: RowsBeside, labels: Labels) -> dict[str, Any]:
        """The program of all rows, made when asked for; in a metric of z."""
        program = lazily(cache(partial(self._program, rows, labels)))
        told: dict[str, Any] = {"posed": self._posed(rows)}
        if self.metric is None or self.metric.is_uniform:
            return {"program": program, **told}
        return {"scaled_program": program, "metric": self.metric.axis**2, **told}

    def _program(self, rows: RowsBeside, labels: Labels) -> Program:
        """Of rows that have names, and stay beside the reference as it is."""
        own, pairs = self.reference.weights
        metric, known = self.metric, rows.known
        phi = known.estimate.values
        in_metric = metric is not None and not metric.is_uniform
        # of ordered pairs 2 Σ_n Σ_j s_j ‖w_n − w_j‖², where w_j stays as it is
        counts = [len(near.places) for near in rows.near]
        owner = np.repeat(np.arange(len(counts)), counts)
        places = np.concatenate([near.places for near in rows.near])
        similarities = np.concatenate([near.similarities for near in rows.near])
        roots = np.sqrt(2.0 * similarities)
        at = np.arange(len(owner)), owner
        pulled = OverPoints(sp.csr_array((roots, at), (len(owner), len(counts))))
        squared = GradientMatching(self.reference.attributions, name=pairs)
        fixed, g = self._left[places], rows.own[owner]
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
        anchored = _Recast(squared, pulled, roots[:, None] * (fixed + g))
        losses = GradientMatching(aim, name=own), anchored
        if not axes.any():
            return Program(losses)
        shared = bool((axes == axes[0]).all())
        adding_up = Completeness(total, axes[0] if shared else axes)
        return Program(losses, (adding_up.bound(phi.shape[1]),))

    def _posed(self, rows: RowsBeside) -> dict[str, NDArray[Any]]:
        """What a file says of it, of :mod:`propopt.results.posed`."""
        own, pairs = self.reference.weights
        known, phi = rows.known, rows.known.estimate.values
        count = max(len(near.places) for near in rows.near)
        similarities = np.zeros((len(phi), count))
        for row, near in zip(similarities, rows.near, strict=True):
            row[: len(near.places)] = near.similarities
        posed = {
            f"{own}.target": phi,
            f"{pairs}.near": padded(rows.near, count),
            f"{pairs}.similarities": similarities,
            f"{pairs}.fixed": self._left,
            f"{pairs}.beside": rows.own,
        }
        if known.base is not None:
            posed["completeness.parts"] = rows.moves.astype(np.float64)
            posed["completeness.totals"] = known.total
        return {name: sealed(array) for name, array in posed.items()}


def _keys(points: Points) -> list[bytes]:
    """The values of each row as bytes; NaN and zero are one each."""
    plain = np.where(np.isnan(points), np.nan, points + 0.0)
    return [row.tobytes() for row in plain]


def padded(near: Sequence[Near], count: int) -> NDArray[np.intp]:
    """Places of the k nearest of each row, (m, k); −1 where there are fewer."""
    places = np.full((len(near), count), -1, np.intp)
    for row, own in zip(places, near, strict=True):
        row[: len(own.places)] = own.places[:count]
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
