"""Reference rows with their attributions, and the answers that they give."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from typing import Any, Protocol, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Points, Truths
from propopt.base.checks import read_count, read_rng, read_seed
from propopt.base.declared import lazily
from propopt.base.errors import InvalidInput
from propopt.base.terminal import progress_bar
from propopt.explaining.conditional import (
    AnchoredRobustness,
    ConditionalRow,
    FeatureModes,
    RowTotal,
)
from propopt.explaining.contributions import (
    ROUNDING_OF_TOTALS,
    ContributionChoice,
    ContributionRule,
    Contributions,
    FeatureMetric,
    metric_roots,
)
from propopt.explaining.plan import ExplainSettings, JointPlan, with_note
from propopt.explaining.targets import TargetRule, coordinates_of, in_words
from propopt.functions import Function
from propopt.functions.wrapping import wrapped_and_told
from propopt.laws.data_law import Reference
from propopt.losses import Completeness, GradientMatching, Program, Smoothness
from propopt.losses.faithfulness import Estimate
from propopt.losses.graphs.points import distances_between, gaussian
from propopt.results.certificate import Certificate
from propopt.results.explanation import Explanation, Parameter
from propopt.results.target_error import (
    Aim,
    Excess,
    TargetError,
    exact_target,
    unknown_target,
)
from propopt.tables.frames import Labels, is_frame
from propopt.tables.schema import TableSchema


# ---- How reference rows are explained together, so that others can be beside them


_UNSCALED = 1e-9
"""Of what zero costs: an optimum of less than that has no scale of its own."""


@final
@dataclass(frozen=True, eq=False)
class RowAnswers:
    """Optima of rows that do not know of each other."""

    # (m,): each with the reference rows that it was compared with
    rows: Sequence[ConditionalRow]
    near: NDArray[np.intp]  # (m, k): their places

    @property
    def attributions(self) -> Array:
        """W (m, D)."""
        return np.stack([row.w for row in self.rows])

    @property
    def similarities(self) -> Array:
        """S_nj (m, k)."""
        return np.stack([row.similarities for row in self.rows])

    @property
    def losses(self) -> Array:
        """Sums over the rows of the three losses, (3,)."""
        return np.array([row.losses for row in self.rows]).sum(axis=0)

    @cached_property
    def certificate(self) -> Certificate:
        """Of all rows together, for the program that leaves the reference as it is."""
        value = math.fsum(row.value for row in self.rows)
        excess = math.fsum(row.excess for row in self.rows)
        zero = math.fsum(row.value_of_zero for row in self.rows)
        return Certificate(
            value=value,
            lower_bound=max(value - excess, 0.0),
            scale=max(value, _UNSCALED * zero),
            kind="strong convexity",
            violation=max(row.violation for row in self.rows),
            distance=math.hypot(*(row.distance for row in self.rows)),
        )

    @property
    def details(self) -> dict[str, Array]:
        """What is known of each row by itself."""
        return {
            "joint_excess": np.array([row.joint_excess for row in self.rows]),
            "joint_distance": np.array([row.joint_distance for row in self.rows]),
            "similarity": self.similarities.sum(axis=1),
            "reference_rows": self.near,
        }


# ---- The reference rows that are similar to a new row: one row at a time


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NearestRows:
    """The rule of the reference graph, for rows that are not in it."""

    coordinates: Points  # (n, M): where the reference rows lie
    n_neighbors: int  # how many of them a new row is compared with
    # Λ of the similarities exp(−d²/2Λ²); None for similarities of one
    lengthscale: float | None

    @property
    def settings(self) -> dict[str, str]:
        """What an explanation says of how its rows are compared."""
        content = np.ascontiguousarray(self.coordinates, dtype="<f8").tobytes()
        length = self.lengthscale
        return {
            "graph": f"{self.n_neighbors} nearest of {len(self.coordinates)} "
            "reference rows",
            "similarities": "uniform"
            if length is None
            else f"gaussian, lengthscale {length:.6g}",
            "reference": f"sha256:{hashlib.sha256(content).hexdigest()[:12]}",
        }

    def of(self, point: Array) -> tuple[NDArray[np.intp], Array]:
        """The nearest rows (k,), nearest first, and their similarities (k,)."""
        apart = distances_between(point[None], self.coordinates)[0]
        near = np.argsort(apart, kind="stable")[: self.n_neighbors]
        if self.lengthscale is None:
            return near, np.ones(len(near))
        return near, gaussian(apart[near], self.lengthscale)


# ---- Reference rows with their attributions, and the answers that they give


class FittedAnswers(Protocol):
    """What a fit leaves, of a table or of documents: whoever is asked, an answer."""

    @property
    def function(self) -> Function:
        """The model."""

    @property
    def reference(self) -> Explanation:
        """The joint optimum."""

    @property
    def weights(self) -> Sequence[float]:
        """Of the target, of robustness, and of what else there is."""

    def explain(self, X: Any, progress: bool | None) -> Explanation:
        """Each row of X with its own target."""

    def interpolate(self, X: Any) -> Explanation:
        """Each row of X from the reference alone."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRows:
    """What a fit leaves: everything that an answer depends on, but for the row."""

    function: Function  # the model
    wrapped: bool  # whether the model was given as a Function
    table: Reference  # the rows that scales and laws are made of
    rows: Points  # (n, D): the reference rows, encoded
    rule: TargetRule  # how the target of a row is made
    nearest: NearestRows  # who is similar to a new row
    reference: Explanation  # the joint optimum of the reference rows
    # the three losses: gradient matching, robustness, smoothness
    names: tuple[str, str, str]
    weights: tuple[float, float, float]  # theirs: a, b and c
    smooth: Smoothness | None  # which features are similar
    settings: Mapping[str, Parameter]  # what an explanation says of how it was made

    @cached_property
    def modes(self) -> FeatureModes | None:
        """Of the graph of features, taken apart once."""
        return None if self.smooth is None else FeatureModes.of(self.smooth.graph)

    def explain(self, X: object, progress: bool | None) -> Explanation:
        """Each row of X with its own target."""
        began = time.perf_counter()
        points, labels = self.function.read(X, "X_new")
        # a model may answer many rows in other digits than one asked alone
        aim = estimate_of_rows(
            _of_each_row(points, labels, self.rule.at, progress), labels
        )
        answers = self._answers(points, aim.values, self.reference.attributions)
        bare = self._bare(answers, points, labels, aim, began)
        if not answers.similarities.any():
            return bare
        program, scale = self._program(aim, answers), answers.certificate.scale
        errors, c = Aim(program), np.array(list(bare.weights.values()))
        return replace(
            bare,
            target=lazily(partial(errors.error, c, scale)),
            standard_errors=lazily(partial(errors.standard_errors, c)),
            program=program,
        )

    def interpolate(self, X: object) -> Explanation:
        """Each row of X from the reference rows alone: the model is not asked."""
        began = time.perf_counter()
        if self.weights[1] == 0.0:
            raise InvalidInput(
                "interpolate: the weight of robustness is 0, so that nothing ties a "
                "row without a target to the reference rows"
            )
        points, labels = self.function.read(X, "X_new")
        answers = self._answers(points, None, self.reference.attributions)
        for n, row in enumerate(answers.rows):
            if not row.similarities.any():
                name = n if labels.points is None else labels.points[n]
                raise InvalidInput(
                    f"X_new: row {name!r}: no similar reference row: similarities to "
                    f"the {len(row.similarities)} nearest are 0; explain it by its own "
                    "target, or fit with weights='uniform' or a larger lengthscale"
                )
        return self._bare(answers, points, labels, None, began)

    def _answers(
        self,
        points: Points,
        targets: Array | None,
        fixed: Array,
        totals: Sequence[RowTotal | None] | None = None,
    ) -> RowAnswers:
        """Each row beside the attributions (n, D) of the reference rows near it."""
        coordinates = coordinates_of(self.function, points, self.rule.sizes)
        indices, similarities = zip(*map(self.nearest.of, coordinates), strict=True)
        rows = [
            ConditionalRow(
                target=None if targets is None else targets[n],
                similarities=similarities[n],
                fixed=fixed[near],
                weights=self.weights,
                modes=self.modes,
                adds_up=None if totals is None else totals[n],
            )
            for n, near in enumerate(indices)
        ]
        return RowAnswers(rows, np.stack(indices))

    def _bare(
        self,
        answers: RowAnswers,
        points: Points,
        labels: Labels,
        aim: Estimate | None,
        began: float,
    ) -> Explanation:
        """All but the error of the target."""
        has = aim is not None, True, self.smooth is not None
        used = list(compress(self.names, has))
        return Explanation(
            attributions=answers.attributions,
            method="optimized",
            labels=labels,
            parameters=self.settings,
            weights=dict(zip(used, compress(self.weights, has), strict=True)),
            losses=dict(zip(used, compress(answers.losses.tolist(), has), strict=True)),
            certificate=answers.certificate,
            gradient=None if aim is None else aim.values,
            details=answers.details,
            **self.function.told(points),
            solver="conditional",
            quantity=self.function.quantity,
            units=self.reference.units,
            evaluations=0 if aim is None else aim.evaluations,
            seconds=time.perf_counter() - began,
        )

    def _program(self, aim: Estimate, answers: RowAnswers) -> Program:
        """The conditional program of all rows, as losses."""
        own, pairs, _ = self.names
        anchored = AnchoredRobustness(
            self.reference.attributions, answers.near, answers.similarities, name=pairs
        )
        smooth = () if self.smooth is None else (self.smooth,)
        return Program((GradientMatching(aim, name=own), anchored, *smooth))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedParts(FittedRows):
    """Reference rows in parts of the output, and rows to come that add up as they do.

    In coordinates w_d/√ω_d each new row, with contributions Φ and f(x) − base = t, has
    the optimum of

        ‖w − Φ‖² + 2b Σ_j s_j ‖w − w_j‖²  subject to  Σ_d √ω_d w_d = t.
    """

    parts: ContributionRule  # how Φ is made, settled
    kind: ContributionChoice  # which Φ
    # whether ω_d is one, or the mean of Φ_nd² over the reference rows
    metric: FeatureMetric

    @cached_property
    def base(self) -> float:
        """What f is without x."""
        assert self.reference.base_value is not None, "parts have one"
        return float(self.reference.base_value[0])

    @property
    def phi(self) -> Array:
        """Φ (n, D) of the reference rows."""
        assert self.reference.contributions is not None, "they are parts"
        return self.reference.contributions

    @cached_property
    def used(self) -> Truths:
        """Columns that contribute to some reference row, (D,)."""
        return np.asarray(self.phi.any(axis=0))

    @cached_property
    def roots(self) -> Array:
        """√ω, (D,)."""
        return metric_roots(self.phi, self.metric)

    def explain(self, X: object, progress: bool | None) -> Explanation:
        """Each row of X with its own contributions and prediction."""
        began = time.perf_counter()
        points, labels = self.function.read(X, "X_new")
        parts = _of_each_row(points, labels, self._of_row, progress)
        known = Contributions(
            estimate=estimate_of_rows([one.estimate for one in parts], labels),
            base=np.concatenate([one.base for one in parts]),
            prediction=np.concatenate([one.prediction for one in parts]),
        )
        names = labels.points or range(len(parts))
        totals = [self._total(*pair) for pair in zip(parts, names, strict=True)]
        fixed = self.reference.attributions / self.roots
        targets = known.estimate.values / self.roots
        answers = self._answers(points, targets, fixed, totals)
        return self._in_parts(answers, points, known, began)

    def interpolate(self, X: object) -> Explanation:
        """Refused: only the model knows what a row adds up to."""
        del X
        raise InvalidInput(
            "interpolate: parts of the output add up to a prediction, which only the "
            "model knows; explain(rows) asks it, and units='scaled' needs it not"
        )

    def _of_row(self, point: Points, labels: Labels) -> Contributions:
        """Those of one row asked alone."""
        return self.parts.of_row(point, labels, self.kind, self.base)

    def _total(self, known: Contributions, name: object) -> RowTotal | None:
        """What a row adds up to, over columns that some reference row or it uses."""
        used, total = self.used | known.used, float(known.total[0])
        if used.any():
            axis = np.where(used, self.roots, 0.0)
            fixed_axis = np.where(self.used, self.roots, 0.0)
            return RowTotal(axis=axis, fixed_axis=fixed_axis, total=total)
        size = max(abs(self.base), abs(float(known.prediction[0])))
        if abs(total) > ROUNDING_OF_TOTALS * size:
            raise InvalidInput(
                f"X_new: row {name!r}: no feature contributes, and its prediction "
                f"differs from the base by {total:.3g}: nothing can add up; give fit() "
                "reference rows that differ in what the model reads"
            )
        return None

    def _in_parts(
        self, answers: RowAnswers, points: Points, known: Contributions, began: float
    ) -> Explanation:
        aim = known.estimate
        bare = self._bare(answers, points, aim.labels, aim, began)
        largest = float(self.roots.max())  # from w/√ω back to w
        proof, details = answers.certificate, answers.details
        assert proof.distance is not None, "each row knows its own"
        details["joint_distance"] = largest * details["joint_distance"]
        return replace(
            bare,
            attributions=answers.attributions * self.roots,
            certificate=replace(proof, distance=largest * proof.distance),
            gradient=None,
            details=details,
            target=self._target_error(answers, aim, proof.scale),
            standard_errors=self._standard_errors(answers, aim),
            program=self._complete_program(answers, aim, known.total),
            **known.fields,
        )

    def _target_error(
        self, answers: RowAnswers, aim: Estimate, scale: float
    ) -> TargetError:
        """A² ⟨E, H⁻¹E⟩ of the rows together, from the blocks of their draws."""
        if aim.exact:
            return exact_target(aim.source, scale)
        if aim.blocks is None:
            return unknown_target(f"by {aim.source}", scale)
        gram = np.zeros((len(aim.blocks), len(aim.blocks)))
        for row, E in zip(answers.rows, self._deviations(aim), strict=True):
            gram += row.weights[0] * E @ row.moved(E).T
        excess = Excess.of((gram + gram.T) / 2.0)
        source = f"{aim.source}, {aim.n_draws:,} draws"
        return TargetError(**vars(excess), scale=scale, source=source)

    def _standard_errors(self, answers: RowAnswers, aim: Estimate) -> Array | None:
        """Of each attribution: the scatter of the optima for the blocks over √B."""
        if aim.exact or aim.blocks is None:
            return None
        B = len(aim.blocks)
        moved = [
            row.moved(E) * self.roots
            for row, E in zip(answers.rows, self._deviations(aim), strict=True)
        ]
        squares = np.stack([(of_row**2).sum(axis=0) for of_row in moved])
        return np.asarray(np.sqrt(squares / (B * (B - 1))))

    def _deviations(self, aim: Estimate) -> Array:
        """Of the blocks of each row from their mean, in the metric, (m, B, D)."""
        assert aim.blocks is not None, "it is drawn"
        apart = (aim.blocks - aim.blocks.mean(axis=0)) / self.roots
        return np.asarray(apart.transpose(1, 0, 2))

    def _complete_program(
        self, answers: RowAnswers, aim: Estimate, total: Array
    ) -> Program | None:
        """The conditional program of all rows; none in the metric of effects."""
        if self.metric == "effects" or not answers.similarities.any():
            return None
        axes = [row.adds_up for row in answers.rows]
        masks = np.stack(
            [np.zeros(len(self.used)) if x is None else x.axis for x in axes]
        )
        losses = self._program(aim, answers).losses
        if not masks.any():
            return Program(losses)
        shared = bool((masks == masks[0]).all())
        adding_up = Completeness(total, masks[0] if shared else masks)
        return Program(losses, (adding_up.bound(len(self.used)),))


def estimate_of_rows(parts: Sequence[Estimate], labels: Labels) -> Estimate:
    """Targets of tables as that of the table of all their rows.

    Beside rows that are drawn, those that are exact have the same blocks each.
    """
    first = next((part for part in parts if not part.exact), parts[0])
    n_blocks = max(
        (len(part.blocks) for part in parts if part.blocks is not None), default=0
    )
    sampled = [_blocks(part, n_blocks) for part in parts] if n_blocks else []
    known = [blocks for blocks in sampled if blocks is not None]
    return replace(
        first,
        values=np.concatenate([part.values for part in parts]),
        exact=all(part.exact for part in parts),
        blocks=np.concatenate(known, axis=1) if len(known) == len(parts) else None,
        evaluations=sum(part.evaluations for part in parts),
        labels=labels,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def _blocks(part: Estimate, n_blocks: int) -> Array | None:
    """Its blocks; of what is exact its values, so often; None where not known."""
    if part.blocks is None and part.exact:
        return np.broadcast_to(part.values, (n_blocks, *part.values.shape))
    return part.blocks


_Made = TypeVar("_Made")


def _of_each_row(
    points: Points,
    labels: Labels,
    made: Callable[[Points, Labels], _Made],
    progress: bool | None,
) -> list[_Made]:
    """What is made of each row as a table of one."""
    result = []
    with progress_bar("explain", len(points), progress) as bar:
        for n in range(len(points)):
            result.append(made(points[[n]], labels.of_positions([n])))
            bar.advance(bar.task_ids[0])
    return result


# ---- A fit: reference rows are explained together, and what answers need is kept


def fitted_rows(
    settings: ExplainSettings, model: Any, data: Any, X: Any, progress: bool | None
) -> FittedRows:
    """The reference rows X, or rows of ``data``, explained together."""
    settings.refuse_for_rows()
    seed = read_seed(settings.rng)
    plan = _plan(replace(settings, rng=seed), model, data, X, progress)
    note = plan.note
    if settings.units == "scaled":
        plan.reference.refuse_equal_rows()
    if len(plan.points) < 2:
        raise InvalidInput(
            "fit: expected at least two reference rows, which are compared with each "
            f"other, got {len(plan.points)}"
        )
    (smooth, c), graph = plan.smooth, plan.graph
    kind: type[FittedRows] = FittedRows
    own: dict[str, Any] = {}
    if settings.units == "scaled":
        best, rule = plan.slopes(), plan.rule
    else:
        parts = plan.parts.settled(plan.points, seed)
        best = plan.contributions(parts)
        rule = TargetRule(function=plan.function, sizes=plan.sizes)
        kind = FittedParts
        choice = {"kind": settings.contributions, "metric": settings.metric}
        own = {"parts": parts, **choice}
    _ = best.attributions  # proved now: all answers depend on them
    nearest = NearestRows(
        coordinates=plan.coordinates,
        n_neighbors=int(graph.parameters["n_neighbors"]),
        lengthscale=graph.parameters.get("lengthscale"),
    )
    told = with_note(best.parameters, note)
    notes = {"notes": told.pop("notes")} if "notes" in told else {}
    told |= {
        "function": repr(plan.function),
        "scale": in_words(settings.scale),
        **nearest.settings,
        "weight rule": plan.weight_rule,
        **notes,
    }
    first, *_, pairs = best.weights
    return kind(
        function=plan.function,
        wrapped=isinstance(model, Function),
        table=plan.reference,
        rows=plan.points,
        rule=rule,
        nearest=nearest,
        reference=replace(
            best,
            parameters=told,
            quantity=plan.function.quantity,
            **plan.function.told(plan.points),
        ),
        names=(first, pairs, "smoothness" if smooth is None else smooth.name),
        weights=(best.weights[first], best.weights[pairs], c),
        smooth=smooth,
        settings=told,
        **own,
    )


def _plan(
    settings: ExplainSettings, model: Any, data: Any, X: Any, progress: bool | None
) -> JointPlan:
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
    return JointPlan(
        settings=settings,
        function=function,
        reference=reference,
        points=points,
        labels=labels,
        progress=progress,
    )
