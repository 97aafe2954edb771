"""What an explanation aims at, how precisely, the optimum, and stated defaults."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Indices, Mask, Points, Values
from propopt.base.checks import read_nonnegative, read_only
from propopt.base.errors import (
    InvalidInput,
    MissingPatternsWarning,
    NoTradeOff,
    UncertifiedWarning,
)
from propopt.explaining.sweeping import sweep
from propopt.functions import Function, smoothed
from propopt.functions.function import EXACT
from propopt.functions.means import ExactMean
from propopt.laws.data_law import Reference, constant_in_words
from propopt.losses import (
    Completeness,
    GradientMatching,
    Objective,
    PairwiseRobustness,
    PropertyLoss,
    SharedRobustness,
)
from propopt.losses.completeness import Constraint
from propopt.losses.faithfulness import Estimate
from propopt.losses.graphs.points import Graph, read_graph, share_across_patterns
from propopt.proofs.target_error import TargetError
from propopt.results.explanation import Explanation, Parameter
from propopt.solvers import solve
from propopt.structures.boxes.boxes import Boxes
from propopt.tables.frames import Labels
from propopt.tables.schema import ColumnScale, array_scales, per_scale


# ---- What an explanation of a model aims at: its slopes, or those of its local mean


LawChoice: TypeAlias = Literal["auto", "data", "gaussian", "none"]

GAUSSIAN_SCALE = 0.5
"""Noise of the gaussian law, in the scale of each feature."""


@final
@dataclass(frozen=True, eq=False)
class TargetRule:
    """How the target of any row is made: once chosen, the same for all."""

    # that whose gradient is the target: the model, or its mean under a law
    function: Function
    # (D,): the scale of each feature, such as its standard deviation; 0 if constant
    sizes: Array
    notes: tuple[str, ...] = ()  # the columns that are constant, a sentence each

    def at(self, points: Points, labels: Labels) -> Estimate:
        """Slopes per scale at rows that are read, with what is known of their error."""
        return self.scaled(self.function.estimate_at(points, labels))

    def settled(self, rows: Points, seed: int) -> TargetRule:
        """The same: a seed was given where its function was made."""
        del rows, seed
        return self

    def of_row(self, points: Points, labels: Labels, base: float | None) -> Targets:
        """Those of one row (1, D), the same whoever else is asked."""
        del base
        return Targets(estimate=self.at(points, labels))

    @property
    def is_row_independent(self) -> bool:
        """Whether rows have the same digits in any company: means of trees do."""
        own = self.function
        return isinstance(own, ExactMean) and isinstance(own.structure, Boxes)

    of_rows = of_row

    def scaled(self, estimate: Estimate) -> Estimate:
        """Slopes of the function per scale."""
        notes = tuple(dict.fromkeys((*estimate.notes, *self.notes)))
        slopes, quantity = estimate.scaled(self.sizes), self.function.quantity
        return replace(slopes, notes=notes, quantity=quantity)


def target_rule(
    function: Function,
    reference: Reference,
    sizes: Array,  # shape (D,)
    *,
    law: LawChoice = "auto",
    rng: int | np.random.Generator | None = None,
) -> TargetRule:
    """The slopes of a function, or of its mean near each row where it jumps."""
    match law:
        case "none":
            aim = function
        case "gaussian":
            aim = smoothed(function, GAUSSIAN_SCALE * sizes, rng=rng)
        case "data":
            aim = smoothed(function, law="data", data=reference, rng=rng)
        case "auto":
            if not jumps(function, reference):
                aim = function
            else:
                aim = smoothed(function, law="data", data=reference, rng=rng)
        case _:
            raise InvalidInput(
                f"law: expected one of {', '.join(get_args(LawChoice))}, got {law!r}"
            )
    known = ~np.isnan(reference.points).all(axis=0)
    columns = zip(reference.names, (sizes == 0.0) & known, strict=True)
    notes = (constant_in_words(name) for name, constant in columns if constant)
    return TargetRule(aim, sizes, tuple(notes))


def jumps(function: Function, reference: Reference) -> bool:
    """Whether slopes of a function say nothing of much of its change."""
    if function.gradient_method == EXACT:
        return False
    if function.piecewise_constant or function.boxes is not None:
        return True
    verdict = function.jumps_at(reference.points, reference.labels)
    return verdict is not None and verdict.kind == "jumps"


# ---- How much a move of each column counts in contributions


MetricChoice: TypeAlias = Literal["auto", "joint", "uniform", "effects"]

_FLOOR: Final = 1e-6
"""Of the largest mean square of a column: less counts as this much among effects."""

_ROUNDING: Final = 1e-14
"""Of the size of a column's contributions: a joint part up to this is rounding."""


@final
@dataclass(frozen=True, eq=False)
class ColumnMetric:
    """How much a move of each column counts: ‖w‖² = Σ_d w_d²/ω_d.

    What a column contributes splits into what it contributes by its value alone, G, and
    what it does jointly with others, Φ − G. Contributions that are made consistent
    between similar rows move the second part alone, and each column in proportion to

        ω_d = mean over the reference rows of (Φ_d − G_d)²,

    the size of what it does jointly: Σ (w − Φ)²/ω is small where columns move that have
    something to move. A column with ω_d = 0, additive or not used, keeps its Φ. The
    program is solved in z = (w − Φ)/√ω, whose numbers are of the order of one for any
    ω.
    """

    name: str
    weights: Array  # ω (D,)
    moves: Mask  # (D,): columns that move; others keep their Φ

    @classmethod
    def uniform(cls, phi: Attributions) -> ColumnMetric:
        """All columns that contribute anywhere count alike."""
        return cls("uniform", np.ones(phi.shape[1]), np.asarray(phi.any(axis=0)))

    @classmethod
    def effects(cls, phi: Attributions) -> ColumnMetric:
        """In proportion to the mean of Φ_d², at least 1e-6 of the largest."""
        squares = (phi**2).mean(axis=0)
        floor = _FLOOR * (squares.max() or 1.0)
        moves = np.asarray(phi.any(axis=0))
        return cls("effects", np.maximum(squares, floor), moves)

    @classmethod
    def joint(cls, parts: Iterable[tuple[Attributions, Attributions]]) -> ColumnMetric:
        """In proportion to the mean of (Φ_d − G_d)², over all classes that Φ, G are of.

        One ω for all classes: else what classes say of a row would not add up to zero.
        """
        squares, count = np.zeros(1), 0
        for phi, G in parts:
            apart = phi - G
            # what rounding leaves of an additive column is no joint part
            size = _ROUNDING * np.sqrt((phi**2).mean(axis=0))
            apart = np.where(np.abs(apart).max(axis=0) > size, apart, 0.0)
            squares, count = squares + (apart**2).mean(axis=0), count + 1
        omega = squares / max(count, 1)
        return cls("joint", omega, omega > 0.0)

    @property
    def is_uniform(self) -> bool:
        """Whether all columns count alike."""
        return self.name == "uniform"

    @cached_property
    def roots(self) -> Array:
        """√ω (D,); 1 where a column does not move."""
        return np.sqrt(np.where(self.weights > 0.0, self.weights, 1.0))

    @cached_property
    def axis(self) -> Array:
        """Of z: what each column adds to the sum of a row, (D,)."""
        return np.where(self.moves, self.roots, 0.0)

    def scaled(self, apart: Attributions) -> Attributions:
        """Differences (..., D) over √ω; 0 in columns that do not move."""
        return np.where(self.moves, apart / self.roots, 0.0)


# ---- Targets of rows, whatever their unit, and the optimum nearest to them


_ROUNDING_OF_TOTALS = 1e-9
"""Of predictions and base, for functions that no feature changes."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Targets:
    """What rows aim at: slopes; or contributions, which have totals to add up to."""

    estimate: Estimate  # G (N, D), or Φ in units of the output
    base: Array | None = None  # (N,): what f is without x, of contributions
    prediction: Values | None = None  # (N,): f(x), of contributions
    # of exact contributions how far, relatively, the model's own sum may be from theirs
    tolerance: float = 0.0

    @classmethod
    def joined(cls, parts: Sequence[Targets]) -> Targets:
        """Those of all rows, of no names; exact ones have the same blocks each."""
        if len(parts) == 1:
            return parts[0]
        aims = [part.estimate for part in parts]
        first = next((aim for aim in aims if not aim.exact), aims[0])
        n_blocks = max((len(x.blocks) for x in aims if x.blocks is not None), default=0)
        blocks = [
            np.broadcast_to(x.values, (n_blocks, *x.values.shape))
            if x.blocks is None and x.exact
            else x.blocks
            for x in aims
        ]
        known = [x for x in blocks if x is not None] if n_blocks else []
        estimate = replace(
            first,
            values=np.concatenate([x.values for x in aims]),
            exact=all(x.exact for x in aims),
            blocks=np.concatenate(known, axis=1) if len(known) == len(aims) else None,
            evaluations=sum(x.evaluations for x in aims),
            labels=first.labels.of_columns(),
            notes=tuple(dict.fromkeys(note for x in aims for note in x.notes)),
        )
        return cls(estimate=estimate, **cls.ends(parts))

    def taken(self, order: Indices) -> Targets:
        """The same rows in another order."""
        aim, ends = self.estimate, (self.base, self.prediction)
        base, prediction = (None if x is None else x[order] for x in ends)
        blocks = None if aim.blocks is None else aim.blocks[:, order]
        estimate = replace(aim, values=aim.values[order], blocks=blocks)
        return replace(self, estimate=estimate, base=base, prediction=prediction)

    @staticmethod
    def ends(parts: Sequence[Targets]) -> dict[str, Any]:
        """Base and prediction of all their rows; nothing of slopes."""
        told = {
            name: [x for part in parts if (x := getattr(part, name)) is not None]
            for name in ("base", "prediction")
        }
        ends: dict[str, Any] = {k: np.concatenate(x) for k, x in told.items() if x}
        return {**ends, "tolerance": max(part.tolerance for part in parts)}

    @property
    def total(self) -> Array:
        """The totals t = f(x) − base, shape (N,)."""
        base, prediction = self._both
        return prediction - base

    @property
    def rounding(self) -> Array:
        """Totals up to this, of predictions and bases, are none, shape (N,)."""
        base, prediction = self._both
        largest = np.maximum(np.abs(prediction), np.abs(base))
        return np.asarray(_ROUNDING_OF_TOTALS * largest)

    @property
    def slack(self) -> Array:
        """What totals may miss where no column moves to make up for it, shape (N,).

        A library that adds up in single precision has no total of ours, to rounding.
        """
        base, _ = self._both
        largest = np.abs(base) + np.abs(self.estimate.values).sum(axis=1)
        return np.maximum(self.rounding, self.tolerance * largest)

    @property
    def _both(self) -> tuple[Array, Values]:
        assert self.base is not None, "slopes have no totals"
        assert self.prediction is not None, "slopes have no totals"
        return self.base, self.prediction

    @property
    def used(self) -> NDArray[np.bool_]:
        """Columns that contribute to some row, shape (D,)."""
        return np.asarray(self.estimate.values.any(axis=0))

    @property
    def missed(self) -> float:
        """rms(Φ1 − t)/rms(t): what contributions leave out; zero for Shapley values."""
        gap = np.linalg.norm(self.estimate.values.sum(axis=1) - self.total)
        size = np.linalg.norm(self.total)
        return float(gap / size) if size > 0.0 else float(gap > 0.0)

    @property
    def fields(self) -> dict[str, Any]:
        """What an explanation knows of what it aims at."""
        values = self.estimate.values
        if self.base is None:
            return {"gradient": values}
        ends = {"base_value": self.base, "prediction": self.prediction}
        return {"contributions": values, **ends}

    def parameters(self, **more: Parameter) -> dict[str, Parameter]:
        """What an explanation says of it, and its notes last."""
        aim = self.estimate
        told: dict[str, Parameter] = {"gradient": aim.source}
        if self.base is not None:
            told = {"contributions": aim.source, "contributions miss": self.missed}
        notes = {"notes": "; ".join(aim.notes)} if aim.notes else {}
        return {**told, **more, **notes}


def nearest_explanation(
    known: Targets,
    robust: PairwiseRobustness | SharedRobustness,
    *,
    robustness: float | str | None = None,
    metric: ColumnMetric | None = None,
    progress: bool | None = None,
) -> Explanation:
    """The attributions nearest to targets that are robust, and add up where these do.

    minimise    Σ_n Σ_d (w_nd − Φ_nd)²/ω_d + c Σ_{n,n'} S_nn' Σ_d (r_nd − r_n'd)²/ω_d
    subject to  Σ_d w_nd = f(x_n) − base   for every n, of contributions

    with r = w − G without main effects, and r = w else. A column in which Φ is zero in all
    rows then stays exactly zero, and does not count. ω is one without a metric.
    """
    aim = known.estimate
    told: dict[str, Parameter] = {}
    if known.base is not None and isinstance(robust, PairwiseRobustness):
        told = {"metric": "uniform" if metric is None else metric.name}
    if metric is None or metric.is_uniform:
        sums = [] if known.base is None else _sums(known, robust)
        matching = GradientMatching(aim)
        best = optimum([(1.0, matching)], robust, robustness, progress, sums)
    else:
        assert isinstance(robust, PairwiseRobustness), "of words ω is one"
        best = _in_metric(known, robust, robustness, metric, progress)
    if known.base is not None:
        best = replace(best, target=error_of_parts(aim))
    return replace(
        best,
        labels=aim.labels,
        units=aim.units if known.base is None else "output",
        evaluations=aim.evaluations,
        parameters=known.parameters(**told),
        **known.fields,
    )


_TOLERANCE = 1e-6
"""Of gaps and of sums, as solvers have it."""


def _in_metric(
    known: Targets,
    robust: PairwiseRobustness,
    robustness: float | str | None,
    metric: ColumnMetric,
    progress: bool | None,
) -> Explanation:
    """The optimum by z = (w − Φ)/√ω, whose target is zero."""
    aim, phi = known.estimate, known.estimate.values
    G = 0.0 if robust.offset is None else robust.offset
    blocks = None if aim.blocks is None else metric.scaled(aim.blocks - phi)
    shifted = replace(aim, values=np.zeros(phi.shape), blocks=blocks)
    offset = PairwiseRobustness(
        robust.graph, offset=metric.scaled(G - phi), name=robust.name
    )
    missed = known.total - phi.sum(axis=1)
    missed = np.where(np.abs(missed) <= known.rounding, 0.0, missed)
    sums: list[Constraint] = []
    if metric.moves.any():
        sums = [Completeness(missed, metric.axis)]
    elif (np.abs(missed) > known.slack).any():
        raise InvalidInput(
            "contributions: no column moves, and they miss the predictions by up to "
            f"{np.abs(missed).max():.3g}: nothing can add up"
        )
    matching = GradientMatching(shifted)
    with warnings.catch_warnings():  # of sums of z, which may be rounding alone
        warnings.simplefilter("ignore", UncertifiedWarning)
        best = optimum([(1.0, matching)], offset, robustness, progress, sums)
        Z = best.attributions
    W = phi + Z * metric.axis
    errors, proof = best.standard_errors, best.certificate
    if proof is not None:
        apart = np.abs(W.sum(axis=1) - known.total).max()
        size = max(float(np.abs(W).sum(axis=1).max()), sys.float_info.min)
        proof = replace(proof, violation=float(apart) / size if sums else 0.0)
        if not proof.holds(_TOLERANCE):
            warnings.warn(
                f"contributions reached a certified gap of {proof.gap:.1e}, and miss "
                f"their sums by {proof.violation:.1e} of their size, where "
                f"{_TOLERANCE:.1e} was wanted",
                UncertifiedWarning,
                stacklevel=4,
            )
    return replace(
        best,
        certificate=proof,
        attributions=read_only(W),
        standard_errors=None if errors is None else errors * metric.axis,
        program=None,
        scaled_program=best.program,  # it is that of z
        metric=read_only(metric.axis**2),
    )


def error_of_parts(aim: Estimate) -> TargetError:
    """The squared error of contributions, as a share of their squared size."""
    scale, excess = float((aim.values**2).sum()), None
    if aim.blocks is not None and not aim.exact:
        apart = (aim.blocks - aim.blocks.mean(axis=0)).reshape(len(aim.blocks), -1)
        excess = TargetError.of_gram(apart @ apart.T)
    return TargetError.of(aim, scale, excess)


def _sums(
    known: Targets, robust: PairwiseRobustness | SharedRobustness
) -> list[Constraint]:
    """What rows add up to: over columns that are used, or the words that each has."""
    total = known.total
    if isinstance(robust, SharedRobustness):
        empty = ~robust.present.any(axis=1)
        if (np.abs(total) > known.rounding)[empty].any():
            raise InvalidInput(
                f"document {int(np.flatnonzero(empty)[0])} has no word, and the model "
                "gives the same text two values"
            )
        total = np.where(empty, 0.0, total)
        words = robust.present.astype(float)
        return [] if empty.all() else [Completeness(total, words)]
    if known.estimate.values.any():
        return [Completeness(total)]
    if np.abs(total).max() > known.rounding.max():
        raise InvalidInput(
            "contributions: all are zero, and predictions differ from the base by "
            f"up to {np.abs(total).max():.3g}: nothing can add up"
        )
    return []


# ---- What one line from a model to an explanation takes for granted, each by itself


MOST_ACROSS = 0.05
"""The share of edges between rows of other gaps that goes without saying."""

_DECADES, _N_WEIGHTS = 3, 61
"""The default curve: weights 10^∓DECADES times one over twice the mean degree."""


def reference_of(function: Function, table: Any, label: str = "data") -> Reference:
    """The rows that scales and laws are made of; large tables are thinned by seed 0."""
    points, labels = function.read(table, label)
    return Reference.of_points(points, labels, function.schema)


def sizes_of(function: Function, reference: Reference, scale: ColumnScale) -> Array:
    """S (D,): what one step of each feature is, in its own units; 0 if constant."""
    if function.schema is not None:
        return function.schema.scales(scale)
    return array_scales(reference.points, scale)


_TAIL = 0.005
"""Of the values of a column: those beyond count as the last within."""


def winsorised(function: Function, reference: Reference, sizes: Array) -> Array:
    """Deviations (D,) of numbers whose tails are cut: one wrong value moves no other.

    A column that is constant but for its tails keeps its deviation.
    """
    robust = np.array(sizes, float)
    coded = np.zeros(len(sizes), bool)
    if function.schema is not None:
        coded = np.asarray(function.schema.categorical, bool)
    for j in np.flatnonzero((sizes > 0.0) & ~coded):
        values = reference.points[:, j]
        values = values[np.isfinite(values)]
        if not len(values):
            continue
        low, high = np.quantile(values, [_TAIL, 1.0 - _TAIL], method="nearest")
        deviation = float(np.clip(values, low, high).std())
        if deviation > 0.0:
            robust[j] = deviation
    return robust


def refuse_no_scale(sizes: Array, reference: Reference) -> None:
    """Refuse sizes of zero alone: then no two rows differ."""
    if len(reference.points) == 1 and not sizes.any():
        raise InvalidInput(
            "data: got a table of one row, over which no column varies, so that there "
            "is no standard deviation to measure similarity in; give the table that "
            "the model was fitted on. Contributions against that one row are "
            "po.explainers.ExactShap(data=row) or Shap(data=row)"
        )
    if not sizes.any():
        raise InvalidInput(
            f"scale: no column varies over {reference.in_words()}, so that there is no "
            "standard deviation; give the table that the model was fitted on as data, "
            "or numbers as scale"
        )


def coordinates_of(function: Function, points: Points, sizes: Array) -> Array:
    """Where rows that are read lie, (N, M), so that distances mean something."""
    if function.schema is not None:
        return function.schema.coordinates_of(points, sizes)
    return per_scale(points, sizes)


def graph_of_rows(graph: Graph, n_rows: int) -> Graph:
    """The graph, refused if it is of others than the rows that are explained."""
    if read_graph(graph).n_nodes != n_rows:
        raise InvalidInput(
            f"graph: expected one of the {n_rows} rows of X, got one of "
            f"{graph.n_nodes} nodes; make it of X, as by po.graphs.knn_graph(X, 8)"
        )
    return graph


def warn_of_patterns(graph: Graph, coordinates: Array) -> None:
    """Say so where many neighbours miss other columns: slopes are tied to effects."""
    if graph.n_nodes != len(coordinates) or not np.isnan(coordinates).any():
        return
    share = share_across_patterns(graph, coordinates)
    if share > MOST_ACROSS:
        warnings.warn(
            f"{share:.0%} of the edges join rows in which other columns are missing, "
            "where slopes are compared with effects of being missing; "
            "graph=po.graphs.Nearest(same_pattern=True) leaves these edges out",
            MissingPatternsWarning,
            stacklevel=3,
        )


def optimum(
    # all but robustness with their weights, faithfulness first
    rest: Sequence[tuple[float, PropertyLoss]],
    robust: PairwiseRobustness | SharedRobustness,
    weight: float | str | None,
    progress: bool | None,
    subject_to: Sequence[Constraint] = (),
) -> Explanation:
    """The best for a weight of robustness, or a share; of that at the knee if None."""
    if isinstance(weight, str):
        whole = Objective.weighed((*rest, (1.0, robust)))
        try:
            aimed = solve(whole, aim={robust.name: weight}, subject_to=subject_to)
            weight = aimed.multipliers[robust.name]
        except NoTradeOff:  # nothing can be removed: the target is the best
            weight = 0.0
        if not math.isfinite(weight):
            raise InvalidInput(
                "robustness: expected less than '-100%', which takes an infinite "
                "weight, such as '-99%'"
            )
    given = 1.0 if weight is None else read_nonnegative(weight, "robustness")
    objective = Objective.weighed((*rest, (given, robust)))
    if weight is not None:
        return solve(objective, subject_to=subject_to)
    if isinstance(robust, PairwiseRobustness):
        degree = float(robust.graph.similarities.sum()) / robust.n_points
    else:  # of the words that are shared
        degrees = robust.entry_graph.similarities.sum(axis=1)
        degree = float(degrees[degrees > 0.0].mean())
    weights = np.logspace(-_DECADES, _DECADES, _N_WEIGHTS) / (2.0 * degree)
    curve = sweep(
        objective,
        {robust.name: weights},
        subject_to=subject_to,
        progress=progress,
    )
    return curve.knee(objective.losses[0].name, robust.name)


def in_words(scale: Any) -> str:
    """A scale as ``parameters`` have it."""
    if isinstance(scale, str):
        return scale
    if scale is None:
        return "none"
    if isinstance(scale, Mapping):
        return ", ".join(f"{name}: {size:.6g}" for name, size in scale.items())
    return ", ".join(f"{size:.6g}" for size in np.asarray(scale, float))
