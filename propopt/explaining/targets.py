"""Targets of explanations, metrics of columns, the optimum, and default settings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, final, get_args

import numpy as np

from propopt.base.arrays import Array, Attributions, Indices, Mask, Points, Values
from propopt.base.checks import largest_entry, read_nonnegative, read_only
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
from propopt.laws.background import Reference
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
from propopt.proofs.optimum import Parameter
from propopt.proofs.sampling_error import TargetError
from propopt.results.explanation import Explanation
from propopt.solvers import solve
from propopt.structures.boxes.boxes import Boxes
from propopt.tables.frames import Labels
from propopt.tables.schema import ColumnScale, array_scales, per_scale


# ---- Targets of slopes: those of the model, or of its local mean


LawChoice: TypeAlias = Literal["auto", "data", "gaussian", "none"]

GAUSSIAN_SCALE = 0.5
"""Standard deviation of the gaussian law, in units of each column's scale."""


@final
@dataclass(frozen=True, eq=False)
class TargetRule:
    """The slopes of a function, or of its local mean, as the target of any row."""

    # the function with the target as its gradient: the model, or its mean under a law
    function: Function
    sizes: Array  # (D,): the scale of each column; 0 if constant

    def at(self, points: Points, labels: Labels) -> Estimate:
        """Slopes per scale at some rows, with their error where it can be estimated."""
        return self.scaled(self.function.estimate_at(points, labels))

    def of_row(self, points: Points, labels: Labels, base: float | None) -> Targets:
        """The target of one row (1, D), independent of the other rows of a call."""
        del base
        return Targets(estimate=self.at(points, labels))

    @property
    def is_row_independent(self) -> bool:
        """Whether rows have the same digits in any batch, as means of trees have."""
        function = self.function
        return isinstance(function, ExactMean) and isinstance(function.structure, Boxes)

    of_rows = of_row

    def scaled(self, estimate: Estimate) -> Estimate:
        """An estimate of slopes, converted to slopes per scale."""
        return replace(estimate.scaled(self.sizes), quantity=self.function.quantity)


def target_rule(
    function: Function,
    reference: Reference,
    sizes: Array,  # shape (D,)
    *,
    law: LawChoice = "auto",
    rng: int | np.random.Generator | None = None,
) -> TargetRule:
    """The rule for slopes of a function, or of its local mean if it jumps."""
    if law == "auto":
        law = "data" if jumps(function, reference) else "none"
    match law:
        case "none":
            aim = function
        case "gaussian":
            aim = smoothed(function, GAUSSIAN_SCALE * sizes, rng=rng)
        case "data":
            aim = smoothed(function, law="data", data=reference, rng=rng)
        case _:
            raise InvalidInput(
                f"law: expected one of {', '.join(get_args(LawChoice))}, got {law!r}"
            )
    return TargetRule(aim, sizes)


def jumps(function: Function, reference: Reference) -> bool:
    """Whether a function changes mostly by jumps, which its slopes do not show."""
    if function.gradient_method == EXACT:
        return False
    if function.piecewise_constant or function.boxes is not None:
        return True
    verdict = function.jumps_at(reference.points, reference.labels)
    return verdict is not None and verdict.kind == "jumps"


# ---- Metrics: the cost of moving each column


MetricChoice: TypeAlias = Literal["auto", "joint", "uniform", "effects"]

_FLOOR: Final = 1e-6
"""The least weight of the metric "effects", relative to the largest weight."""

_ROUNDING: Final = 1e-14
"""A joint part up to this, relative to a column's contributions, is rounding."""


@final
@dataclass(frozen=True, eq=False)
class ColumnMetric:
    """The weights ω of columns in the norm ‖w‖² = Σ_d w_d²/ω_d.

    A contribution Φ splits into the main effect G of its column and an interaction part
    Φ − G. Robust contributions change only the second part, and each column in
    proportion to

        ω_d = mean over the reference rows of (Φ_d − G_d)²,

    the size of its interactions, because Σ (w − Φ)²/ω is then small. A column with
    ω_d = 0, which is additive or not used, retains its Φ. The program is solved in
    z = (w − Φ)/√ω, which is of the order of one for any ω.
    """

    name: str
    weights: Array  # ω (D,)
    moves: Mask  # (D,): columns that may move; others retain their Φ

    @classmethod
    def uniform(cls, phi: Attributions, G: Attributions) -> ColumnMetric:
        """Equal weights for all columns that contribute to some row.

        Beside main effects G, Φ = 0 in all rows does not make w = 0 optimal.
        """
        moves = np.asarray(phi.any(axis=0) | G.any(axis=0))
        return cls("uniform", np.ones(phi.shape[1]), moves)

    @classmethod
    def effects(cls, phi: Attributions, G: Attributions) -> ColumnMetric:
        """Weights in proportion to the mean of Φ_d², at least 1e-6 of the largest."""
        squares = (phi**2).mean(axis=0)
        floor = _FLOOR * (squares.max() or 1.0)
        return cls("effects", np.maximum(squares, floor), cls.uniform(phi, G).moves)

    @classmethod
    def joint(cls, parts: Iterable[tuple[Attributions, Attributions]]) -> ColumnMetric:
        """Weights in proportion to the mean of (Φ_d − G_d)² over pairs Φ, G of classes.

        All classes share one ω, or contributions over classes would not add up to zero.
        """
        squares = np.zeros(1)
        count = 0
        for phi, G in parts:
            apart = phi - G
            # rounding of an additive column is no interaction
            size = _ROUNDING * np.sqrt((phi**2).mean(axis=0))
            apart = np.where(np.abs(apart).max(axis=0) > size, apart, 0.0)
            squares = squares + (apart**2).mean(axis=0)
            count = count + 1
        omega = squares / max(count, 1)
        return cls("joint", omega, omega > 0.0)

    @property
    def is_uniform(self) -> bool:
        """Whether all columns have equal weights."""
        return self.name == "uniform"

    @cached_property
    def roots(self) -> Array:
        """The roots √ω (D,), with 1 for columns that do not move."""
        return np.sqrt(np.where(self.weights > 0.0, self.weights, 1.0))

    @cached_property
    def axis(self) -> Array:
        """The factor (D,) of each column of z in the sum of a row."""
        return np.where(self.moves, self.roots, 0.0)

    def scaled(self, apart: Attributions) -> Attributions:
        """Differences (..., D) divided by √ω, with 0 in columns that do not move."""
        return np.where(self.moves, apart / self.roots, 0.0)


# ---- Targets of rows, and the optimum for them


_ROUNDING_OF_TOTALS = 1e-9
"""Relative rounding of predictions and base, for functions that are constant."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Targets:
    """The values that rows approximate: slopes, or contributions with their totals."""

    estimate: Estimate  # G (N, D), or Φ in units of the output
    base: Array | None = None  # (N,): of contributions, the mean prediction
    prediction: Values | None = None  # (N,): of contributions, f(x)
    # largest relative difference between sums of contributions and of the model
    tolerance: float = 0.0

    @classmethod
    def joined(cls, parts: Sequence[Targets]) -> Targets:
        """The targets of several parts as one, without names of rows."""
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
        block_arrays = [x for x in blocks if x is not None] if n_blocks else []
        estimate = replace(
            first,
            values=np.concatenate([x.values for x in aims]),
            exact=all(x.exact for x in aims),
            blocks=np.concatenate(block_arrays, axis=1)
            if len(block_arrays) == len(aims)
            else None,
            labels=first.labels.of_columns(),
        )
        return cls(estimate=estimate, **cls.ends(parts))

    def taken(self, order: Indices) -> Targets:
        """The targets of the same rows in another order."""
        aim = self.estimate
        ends = (self.base, self.prediction)
        base, prediction = (None if x is None else x[order] for x in ends)
        blocks = None if aim.blocks is None else aim.blocks[:, order]
        estimate = replace(aim, values=aim.values[order], blocks=blocks)
        return replace(self, estimate=estimate, base=base, prediction=prediction)

    @staticmethod
    def ends(parts: Sequence[Targets]) -> dict[str, Any]:
        """Base, prediction and tolerance of several parts, joined."""
        values = {
            name: [x for part in parts if (x := getattr(part, name)) is not None]
            for name in ("base", "prediction")
        }
        ends: dict[str, Any] = {k: np.concatenate(x) for k, x in values.items() if x}
        return {**ends, "tolerance": max(part.tolerance for part in parts)}

    @cached_property
    def total(self) -> Array:
        """The totals t = f(x) − base of contributions, shape (N,)."""
        base, prediction = self._both
        return prediction - base

    @cached_property
    def rounding(self) -> Array:
        """The rounding error of each total, shape (N,)."""
        base, prediction = self._both
        largest = np.maximum(np.abs(prediction), np.abs(base))
        return _ROUNDING_OF_TOTALS * largest

    @property
    def slack(self) -> Array:
        """The error that totals may have if no column can move, shape (N,).

        Libraries that add up in single precision differ from these totals.
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
    def missed(self) -> float:
        """Relative error of the sums, rms(Φ1 − t)/rms(t); zero for Shapley values."""
        gap = np.linalg.norm(self.estimate.values.sum(axis=1) - self.total)
        size = np.linalg.norm(self.total)
        return float(gap / size) if size > 0.0 else float(gap > 0.0)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of an explanation that hold its target."""
        values = self.estimate.values
        if self.base is None:
            return {"gradient": values}
        ends = {"base_value": self.base, "prediction": self.prediction}
        return {"contributions": values, **ends}

    def parameters(self, **more: Parameter) -> dict[str, Parameter]:
        """Parameters of an explanation that describe its target."""
        aim = self.estimate
        source: dict[str, Parameter] = {"gradient": aim.source}
        if self.base is not None:
            source = {"contributions": aim.source, "contributions miss": self.missed}
        return {**source, **more}


def nearest_explanation(
    targets: Targets,
    robust: PairwiseRobustness | SharedRobustness,
    *,
    robustness: float | str | None = None,
    metric: ColumnMetric | None = None,
    progress: bool | None = None,
) -> Explanation:
    """The optimum for some targets: robust, and complete if these are contributions.

    minimise    Σ_n Σ_d (w_nd − Φ_nd)²/ω_d + c Σ_{n,n'} S_nn' Σ_d (r_nd − r_n'd)²/ω_d
    subject to  Σ_d w_nd = f(x_n) − base   for every n, of contributions

    with r = w − G if main effects G are left out, else r = w. A column in which Φ and G
    are zero in all rows stays exactly zero. Without a metric ω is one.
    """
    aim = targets.estimate
    metric_name: dict[str, Parameter] = {}
    if targets.base is not None and isinstance(robust, PairwiseRobustness):
        metric_name = {"metric": "uniform" if metric is None else metric.name}
    if metric is None or metric.is_uniform:
        sums = [] if targets.base is None else _sums(targets, robust)
        matching = GradientMatching(aim)
        best = optimum([(1.0, matching)], robust, robustness, progress, sums)
        changes = dict[str, Any]()
    else:
        assert isinstance(robust, PairwiseRobustness), "of words ω is one"
        best, changes = _in_metric(targets, robust, robustness, metric, progress)
    if targets.base is not None:
        changes["target"] = error_of_parts(aim)
    return replace(
        best,
        labels=aim.labels,
        units=aim.units if targets.base is None else "output",
        evaluations=aim.evaluations,
        parameters={**best.parameters, **targets.parameters(**metric_name)},
        **targets.fields,
        **changes,
    )


_TOLERANCE = 1e-6
"""Tolerance of gaps and sums, the default of solvers."""


def _in_metric(
    targets: Targets,
    robust: PairwiseRobustness,
    robustness: float | str | None,
    metric: ColumnMetric,
    progress: bool | None,
) -> tuple[Explanation, dict[str, Any]]:
    """The optimum in z = (w − Φ)/√ω, with the target zero; its fields in w."""
    aim = targets.estimate
    phi = targets.estimate.values
    G = 0.0 if robust.offset is None else robust.offset
    blocks = None if aim.blocks is None else metric.scaled(aim.blocks - phi)
    shifted = replace(aim, values=np.zeros(phi.shape), blocks=blocks)
    shifted_robust = PairwiseRobustness(
        robust.graph, offset=metric.scaled(G - phi), name=robust.name
    )
    missed = targets.total - phi.sum(axis=1)
    missed = np.where(np.abs(missed) <= targets.rounding, 0.0, missed)
    sums: list[Constraint] = []
    if metric.moves.any():
        sums = [Completeness(missed, metric.axis)]
    elif (np.abs(missed) > targets.slack).any():
        raise InvalidInput(
            "contributions: rows miss the predictions by up to "
            f"{largest_entry(missed):.3g}, and no column can be changed to correct that"
        )
    matching = GradientMatching(shifted)
    with warnings.catch_warnings():  # of sums of z, which may be rounding alone
        warnings.simplefilter("ignore", UncertifiedWarning)
        best = optimum([(1.0, matching)], shifted_robust, robustness, progress, sums)
        Z = best.attributions
    W = phi + Z * metric.axis
    errors = None if blocks is None else best.standard_errors
    proof = best.certificate
    if proof is not None:
        apart = largest_entry(W.sum(axis=1) - targets.total)
        size = max(float(np.abs(W).sum(axis=1).max()), sys.float_info.min)
        proof = replace(proof, violation=float(apart) / size if sums else 0.0)
        if not proof.holds(_TOLERANCE):
            warnings.warn(
                f"contributions have a certified gap of {proof.gap:.1e} and miss their "
                f"sums by {proof.violation:.1e} of their size; expected at most "
                f"{_TOLERANCE:.1e}",
                UncertifiedWarning,
                stacklevel=4,
            )
    return best, {
        "certificate": proof,
        "attributions": read_only(W),
        "standard_errors": None if errors is None else errors * metric.axis,
        "program": None,
        "scaled_program": best.program,  # it is that of z
        "metric": read_only(metric.axis**2),
    }


def error_of_parts(aim: Estimate) -> TargetError:
    """The error of sampled contributions: squared, relative to their squared size."""
    scale = float((aim.values**2).sum())
    excess = None
    if aim.blocks is not None and not aim.exact:
        apart = (aim.blocks - aim.blocks.mean(axis=0)).reshape(len(aim.blocks), -1)
        excess = TargetError.of_gram(apart @ apart.T)
    return TargetError.of(aim, scale, excess)


def _sums(
    targets: Targets, robust: PairwiseRobustness | SharedRobustness
) -> list[Constraint]:
    """Completeness over the columns that are used, or over the words of documents."""
    total = targets.total
    if isinstance(robust, SharedRobustness):
        empty = ~robust.present.any(axis=1)
        if (np.abs(total) > targets.rounding)[empty].any():
            raise InvalidInput(
                f"document {int(np.flatnonzero(empty)[0])} has no word, yet the model "
                "predicts another value for it than for the empty text"
            )
        total = np.where(empty, 0.0, total)
        words = robust.present.astype(float)
        return [] if empty.all() else [Completeness(total, words)]
    if targets.estimate.values.any():
        return [Completeness(total)]
    if largest_entry(total) > targets.rounding.max():
        raise InvalidInput(
            "contributions: all are zero, yet predictions differ from the base by up "
            f"to {largest_entry(total):.3g}"
        )
    return []


# ---- Default settings: scales, graphs, the weight of robustness


MOST_ACROSS = 0.05
"""Share of edges between rows with other missing columns that is not warned of."""

_DECADES = 3
_N_WEIGHTS = 61
"""The default sweep: weights 10^∓DECADES times one over twice the mean degree."""


def reference_of(function: Function, table: Any) -> Reference:
    """The rows of a table that scales and laws use; large tables are sampled."""
    points, labels = function.read(table, "data")
    return Reference.of_points(points, labels, function.schema)


def sizes_of(function: Function, reference: Reference, scale: ColumnScale) -> Array:
    """The scale (D,) of each column, such as its standard deviation; 0 if constant."""
    if function.schema is not None:
        return function.schema.scales(scale)
    return array_scales(reference.points, scale)


_TAIL = 0.005
"""Share of the values of a column on either side that are clipped."""


def winsorised(function: Function, reference: Reference, sizes: Array) -> Array:
    """Standard deviations (D,) of winsorised columns, so that outliers do not matter.

    A column that is constant except for its tails retains its standard deviation.
    """
    robust = np.array(sizes, float)
    numeric = function.numeric_columns(reference.points)
    for j in np.flatnonzero((sizes > 0.0) & numeric):
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
    """Refuse scales that are all zero, because no two rows would differ."""
    if len(reference.points) == 1 and not sizes.any():
        raise InvalidInput(
            "data: got a table of one row, so similarity cannot be measured in "
            "standard deviations; give the table that the model was fitted on. For "
            "contributions against that one row, use "
            "po.explainers.ExactShap(data=row) or Shap(data=row)"
        )
    if not sizes.any():
        raise InvalidInput(
            f"scale: no column varies over {reference.in_words()}, so standard "
            "deviations are zero; give the training table as data=, or one number for "
            "each column as scale="
        )


def coordinates_of(function: Function, points: Points, sizes: Array) -> Array:
    """Coordinates (N, M) of rows in which distances measure similarity."""
    if function.schema is not None:
        return function.schema.coordinates_of(points, sizes)
    return per_scale(points, sizes)


def graph_of_rows(graph: Graph, n_rows: int) -> Graph:
    """The graph, checked to have a node for each explained row."""
    if read_graph(graph).n_nodes != n_rows:
        raise InvalidInput(
            f"graph: expected a node for each of the {n_rows} rows of X, got "
            f"{graph.n_nodes} nodes; make it from X, such as po.graphs.knn_graph(X, 8)"
        )
    return graph


def warn_of_patterns(graph: Graph, coordinates: Array) -> None:
    """Warn if many neighbours have other missing columns: slopes meet effects there."""
    if graph.n_nodes != len(coordinates) or not np.isnan(coordinates).any():
        return
    share = share_across_patterns(graph, coordinates)
    if share > MOST_ACROSS:
        warnings.warn(
            f"{share:.0%} of the edges join rows with different missing columns, so "
            "slopes are compared with effects of being missing; "
            "graph=po.graphs.Nearest(same_pattern=True) leaves out these edges",
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
    """The optimum for a weight of robustness, a share, or (None) at the knee."""
    if isinstance(weight, str):
        whole = Objective.weighed((*rest, (1.0, robust)))
        try:
            aimed = solve(whole, aim={robust.name: weight}, subject_to=subject_to)
            weight = aimed.multipliers[robust.name]
        except NoTradeOff:  # nothing can be removed: the target is the best
            weight = 0.0
    given = 1.0 if weight is None else read_nonnegative(weight, "robustness")
    objective = Objective.weighed((*rest, (given, robust)))
    if weight is not None:
        return solve(objective, subject_to=subject_to)
    if isinstance(robust, PairwiseRobustness):
        degree = robust.graph.total / robust.n_points
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
    """A scale in words, for the parameters of an explanation."""
    if isinstance(scale, str):
        return scale
    if scale is None:
        return "none"
    if isinstance(scale, Mapping):
        return ", ".join(f"{name}: {size:.6g}" for name, size in scale.items())
    return ", ".join(f"{size:.6g}" for size in np.asarray(scale, float))
