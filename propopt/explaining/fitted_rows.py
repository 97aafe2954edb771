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

from propopt.base.arrays import Array, Points
from propopt.base.checks import read_count, read_rng, read_seed
from propopt.base.errors import InvalidInput
from propopt.base.terminal import progress_bar
from propopt.explaining.conditional import ConditionalRow
from propopt.explaining.contributions import AnyRule
from propopt.explaining.plan import ExplainSettings, JointPlan, JointRows, with_note
from propopt.explaining.targets import (
    Targets,
    coordinates_of,
    in_words,
    metric_roots,
    sizes_of,
)
from propopt.functions import Function
from propopt.functions.wrapping import wrapped_and_told
from propopt.laws.data_law import Reference
from propopt.losses import Completeness, GradientMatching, Program
from propopt.losses.algebra import _Recast
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
    def explain(self, X: Any, progress: bool | None) -> Explanation:
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

    In parts of the output, in coordinates w_d/√ω_d each new row, with contributions Φ
    and f(x) − base = t, has the optimum of

        ‖w − Φ‖² + 2b Σ_j s_j ‖w − w_j‖²  subject to  Σ_d √ω_d w_d = t.
    """

    plan: JointRows
    rule: AnyRule  # how the target of a row is made, settled
    wrapped: bool  # whether the model was given as a Function

    def nearest(self, place: Array) -> NDArray[np.intp]:
        """The reference rows that are nearest to a place (M,), nearest first."""
        apart = distances_between(place[None], self.plan.coordinates)[0]
        return np.argsort(apart, kind="stable")[: self.plan.n_neighbors]

    @cached_property
    def roots(self) -> Array:
        """√ω, (D,); ones of slopes."""
        phi = self.reference.contributions
        if phi is None:
            return np.ones(self.plan.points.shape[1])
        return metric_roots(phi, self.plan.settings.metric)

    def explain(self, X: object, progress: bool | None) -> Explanation:
        """Each row of X with its own target; of parts, with its own prediction."""
        began = time.perf_counter()
        points, labels = self.function.read(X, "X_new")
        # a model may answer many rows in other digits than one asked alone
        parts = [
            self.aim(points[[n]], labels.of_positions([n]))
            for n in self.one_by_one(range(len(points)), progress)
        ]
        places = coordinates_of(self.function, points, self.plan.sizes)
        names = labels.points or range(len(points))
        rows = [*map(self._row, parts, places, names)]
        known, largest = Targets.joined(parts, labels), float(self.roots.max())
        proof = joint_proof(rows, largest)
        moved = [row.joint_distance for row in rows]
        return self.answer(
            rows,
            known,
            began,
            attributions=np.stack([row.w for row in rows]) * self.roots,
            labels=labels,
            parameters=self.reference.parameters,
            certificate=proof,
            details={
                "joint_excess": np.array([row.joint_excess for row in rows]),
                "joint_distance": largest * np.array(moved),
                "similarity": np.array([row.similarities.sum() for row in rows]),
                "reference_rows": np.stack([row.near for row in rows]),
            },
            **self.function.told(points),
            **self._errors(rows, known, proof.scale),
            program=self._program(rows, known),
        )

    def aim(self, point: Points, labels: Labels) -> Targets:
        """What a row (1, D) aims at, the same whoever else is asked."""
        base = self.reference.base_value
        return self.rule.of_row(point, labels, None if base is None else float(base[0]))

    @cached_property
    def _fixed(self) -> Array:
        return self.reference.attributions / self.roots

    def _row(self, known: Targets, place: Array, name: Hashable) -> ConditionalRow:
        """A row beside the reference rows near it."""
        near = self.nearest(place)
        return ConditionalRow(
            target=known.estimate.values[0] / self.roots,
            near=near,
            similarities=np.ones(len(near)),
            fixed=self._fixed[near],
            weights=self.weights,
            **self._sum(known, name),
        )

    def _sum(self, known: Targets, name: object) -> dict[str, Any]:
        """What a row adds up to, over columns that some reference row or it uses."""
        phi = self.reference.contributions
        if phi is None:
            return {}
        own, total = phi.any(axis=0), float(known.total[0])
        used = own | known.used
        if used.any():
            axes = {"axis": used, "fixed_axis": own}
            sums = {k: np.where(v, self.roots, 0.0) for k, v in axes.items()}
            return {**sums, "total": total}
        if abs(total) > known.rounding[0]:
            raise InvalidInput(
                f"X_new: row {name!r}: no feature contributes, and its prediction "
                f"differs from the base by {total:.3g}: nothing can add up; give fit() "
                "reference rows that differ in what the model reads"
            )
        return {}

    def _errors(
        self, rows: Sequence[ConditionalRow], known: Targets, scale: float
    ) -> dict[str, Any]:
        """What errors of the target cost, A² ⟨E, H⁻¹E⟩ of all rows, and move."""
        aim, errors = known.estimate, None
        gram = None
        if aim.blocks is not None and not aim.exact:
            B = len(aim.blocks)
            apart = (aim.blocks - aim.blocks.mean(axis=0)) / self.roots
            gram, squares = np.zeros((B, B)), []
            for row, E in zip(rows, apart.transpose(1, 0, 2), strict=True):
                moved = row.moved(E)
                gram += row.weights[0] * E @ moved.T
                squares.append(((moved * self.roots) ** 2).sum(axis=0))
            errors = np.sqrt(np.stack(squares) / (B * (B - 1)))
        excess = None if gram is None else TargetError.of_gram((gram + gram.T) / 2.0)
        target = TargetError.of(aim, scale, excess)
        return {"target": target, "standard_errors": errors}

    def _program(
        self, rows: Sequence[ConditionalRow], known: Targets
    ) -> Program | None:
        """The conditional program of all rows; none in the metric of effects."""
        if self.plan.settings.metric == "effects":
            return None
        own, pairs = self.reference.weights
        near = np.stack([row.near for row in rows])
        # of ordered pairs 2 Σ_n Σ_j ‖w_n − w_j‖², where w_j stays as it is
        each = np.full((near.shape[1], 1), math.sqrt(2.0))
        apart = OverPoints(sp.csr_array(sp.kron(sp.eye_array(len(near)), each)))
        squared = GradientMatching(self.reference.attributions, name=pairs)
        fixed = math.sqrt(2.0) * self.reference.attributions[near.ravel()]
        anchored = _Recast(squared, apart, fixed)
        losses = GradientMatching(known.estimate, name=own), anchored
        none = np.zeros(len(self.roots))
        masks = np.stack([none if x.axis is None else x.axis for x in rows])
        if not masks.any():
            return Program(losses)
        shared = bool((masks == masks[0]).all())
        adding_up = Completeness(known.total, masks[0] if shared else masks)
        return Program(losses, (adding_up.bound(len(none)),))


def fitted_rows(
    settings: ExplainSettings, model: Any, data: Any, X: Any, progress: bool | None
) -> FittedRows:
    """The reference rows X, or rows of ``data``, explained together."""
    settings.refuse_for_rows()
    seed = read_seed(settings.rng)
    plan = joint_rows(replace(settings, rng=seed), model, data, X, progress)
    note = plan.note
    if settings.units == "scaled":
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
    told = with_note(best.parameters, note)
    notes = {"notes": told.pop("notes")} if "notes" in told else {}
    told |= {
        "function": repr(plan.function),
        "scale": in_words(settings.scale),
        **neighbours_in_words(plan),
        "weight rule": plan.weight[1],
        **notes,
    }
    reference = replace(
        best,
        parameters=told,
        quantity=plan.function.quantity,
        **plan.function.told(plan.points),
    )
    wrapped = isinstance(model, Function)
    return FittedRows(plan=plan, rule=rule, wrapped=wrapped, reference=reference)


def neighbours_in_words(plan: JointRows) -> dict[str, str]:
    """What an explanation says of how its rows are compared."""
    content = np.ascontiguousarray(plan.coordinates, dtype="<f8").tobytes()
    return {
        "graph": f"{plan.n_neighbors} nearest of {len(plan.points)} reference rows",
        "similarities": "uniform",
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
    table = table if is_frame(table, "data") else np.asarray(table)
    known = None if isinstance(model, Function) else data if is_schema else table
    asked = settings.target, settings.output, known
    function, told = wrapped_and_told(
        model, table, *asked, settings.batch_rows, settings.outcome
    )
    points, labels = told.read(function, table, "data")
    reference = Reference.of_points(points, labels, function.schema)
    if X is not None and X is not table:
        points, labels = function.read(X)
    elif X is None:
        most, rng = read_count(settings.n_reference, "n_reference"), settings.rng
        if len(points) > most:
            kept = np.sort(read_rng(rng).choice(len(points), most, replace=False))
            points, labels = points[kept], labels.of_positions(kept)
    return JointRows(
        settings=settings,
        function=function,
        reference=reference,
        sizes=sizes_of(function, reference, settings.scale),
        points=points,
        labels=labels,
        progress=progress,
    )
