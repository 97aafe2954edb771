"""The result of a sweep: optima, baselines on the same losses, distances, the knee."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.cards import N_PRINTED
from propopt.base.charts import Lines, Scale
from propopt.base.checks import evenly_spaced, read_each_nonnegative
from propopt.base.declared import field
from propopt.base.document import (
    Document,
    Fact,
    Facts,
    Table,
    share_text,
    subtitle_of,
    title_of,
)
from propopt.base.errors import InvalidInput, SolverFailure, UnsolvedWarning
from propopt.base.resources import require_memory
from propopt.base.text import (
    Quantity,
    enumerated,
    in_short,
    plural,
    printable,
    shared,
)
from propopt.explaining.front_bounds import FrontBounds, is_above
from propopt.losses.algebra import PropertyLoss, kind_of
from propopt.losses.faithfulness import Units
from propopt.plots.drawing import draw
from propopt.plots.style import Axes
from propopt.proofs.ideal_nadir import IdealNadir, label_of_rest
from propopt.proofs.optimum import sampling_fact
from propopt.results.explanation import Explanation
from propopt.results.explanation_document import made_by
from propopt.results.result import Result


# ---- Comparison of baselines with optima: tolerances and words


_ROUNDING = 1e-6
"""Tolerance of baselines for bounds: relative to the attributions where the limit is
zero, else to the limit. Optima satisfy limits to the same tolerance by default."""

_NOTHING = 1e-11
"""An objective below this share of the scale of its gap is zero to rounding: ‖δ‖² for
δ = 1e-10 ‖G‖, as the scale is at least 1e-9 of F for W = 0."""

_EXACT = 1e-12
"""A loss of faithfulness below this share of ‖G‖² is zero; a copy in single precision
loses 4e-15."""

_IN_WORDS = {
    "gradient": "slopes",
    "scaled": "slopes times a scale",
    "output": "parts of the output",
}

_MOST_RETAINED = 2**29
"""The most bytes of attributions that :meth:`TradeOffs.prove` retains."""

_FEWEST = 3
"""Fewest optima that differ in one weight only; else all are ordered by a loss."""

UNITS_UNKNOWN = "units unknown"
"""The units of baselines in tables if those of the target are unknown."""


class TradeOffs(Result, kind="propopt trade-offs", noun="saved trade-offs", version=5):
    """Optimal explanations for many weights, and baselines measured on the same losses.

    Parameters
    ----------
    optimized : tuple of Explanation
        One for each combination of weights and limits. The attributions of a point on
        a curve are computed when they are first read.
    baselines : tuple of Explanation
        Other explanations, measured on the same losses.
    losses : tuple of str
        Names of the losses.
    failures : tuple of str
        Messages of solvers for weights without a solution.
    interrupted : bool
        True if the sweep was stopped before its end.
    ends : Ends or None
        The losses at both ends of every trade-off, from which shares follow.
    units : {"gradient", "output", "scaled"} or None
        Units of the target of gradient matching; None if unknown.
    bounds : mapping
        By loss the limit that all optima satisfy; zero for completeness.
    error : float or None
        The proved error of the front, in shares of the range of each loss between its
        ends: mixtures of the optima match any explanation to within it in every loss.
        None if no error was requested.
    problem_data : mapping of arrays
        What :meth:`save` writes of the program, as that of an explanation does.
    """

    optimized: tuple[Explanation, ...] = field()
    baselines: tuple[Explanation, ...] = field()
    losses: tuple[str, ...] = field(nonempty=True)
    failures: tuple[str, ...] = field(default=())
    interrupted: bool = field(default=False)
    ends: IdealNadir | None = field(default=None, lazy=True)
    units: Units | None = field(default=None)
    bounds: Mapping[str, float] = field(factory=dict, low=0.0)
    error: float | None = field(default=None)
    problem_data: Mapping[str, NDArray[Any]] = field(factory=dict)

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """All optima, then all baselines: the rows of the table in order."""
        return self.optimized + self.baselines

    @property
    def quantity(self) -> Quantity | None:
        """The quantity that all of them explain; None if they differ or are unknown."""
        return shared(one.quantity for one in self.explanations)

    @property
    def values(self) -> NDArray[np.float64]:
        """The losses as an array (P, k): a row per explanation, a column per loss."""
        return np.array(
            [[e.losses[name] for name in self.losses] for e in self.explanations]
        ).reshape(len(self.explanations), len(self.losses))

    @property
    def on_front(self) -> NDArray[np.bool_]:
        """Which explanations no other one beats in all losses (array of bool).

        A baseline is also off the front if it is provably above the curve between the
        certified optima and the ends: a mixture of these then has less of every loss.
        An optimum for untried weights is on the front. Baselines in units other than
        the target's, or that violate a bound of all optima, are never on it.
        """
        comparable = np.append(np.ones(len(self.optimized), dtype=bool), self.compared)
        values = np.where(comparable[:, None], self.values, np.inf)
        no_worse = (values[:, None, :] <= values[None, :, :]).all(axis=2)
        better = (values[:, None, :] < values[None, :, :]).any(axis=2)
        beaten: NDArray[np.bool_] = np.any(no_worse & better, axis=0)
        front = ~beaten & comparable
        points, margin = self._mixed
        for row in range(len(self.optimized), len(front)):
            if front[row]:
                front[row] = not is_above(self.values[row], points, margin)
        return front

    @property
    def _mixed(self) -> tuple[NDArray[np.float64], float]:
        """Losses (P, k) of certified optima and both ends, and their relative error.

        The losses of points on curves err by at most the root of their certified gap.
        """
        proved = [best for best in self.optimized if best.certificate is not None]
        points = [[best.losses[name] for name in self.losses] for best in proved]
        if proved and self.ends is not None and not self.bounds:
            ends = self.ends.at_target, self.ends.far
            points += [[end.get(k, math.nan) for k in self.losses] for end in ends]
        table = np.array(points).reshape(-1, len(self.losses))
        claims = [best.gap or 0.0 for best in proved if best.is_lazy("attributions")]
        margin = max(_ROUNDING, math.sqrt(max(claims, default=0.0)))
        return table[np.isfinite(table).all(axis=1)], margin

    @property
    def compared(self) -> NDArray[np.bool_]:
        """Which baselines can be compared with the optima (array of bool).

        They have the units of the target and satisfy the bounds of all optima.
        :meth:`distances` gives the reason for each of the others.
        """
        reasons = map(self._why_not_compared, self.baselines)
        return np.array([reason is None for reason in reasons], dtype=bool)

    def certified(self, tolerance: float) -> bool:
        """Whether each optimum is certified to a relative gap of ``tolerance``."""
        certificates = [e.certificate for e in self.optimized]
        return all(c is not None and c.holds(tolerance) for c in certificates)

    def prove(self, count: int = 5) -> None:
        """Certify some optima, evenly spaced along the sweep, from their attributions.

        Points on exact curves have losses and a claimed gap before their attributions
        are computed. This computes those of ``count`` optima, with the first and the
        last, and certifies from them. A warning reports any contradiction of the claim.
        Attributions of together more than 512 MiB are not retained: they are computed
        again when they are read.

        Parameters
        ----------
        count : int
            The number of optima to certify.
        """
        if not self.optimized:
            return
        indices = evenly_spaced(len(self.optimized), count)
        N, D = self.optimized[0].shape
        is_large = 8 * N * D * len(indices) > _MOST_RETAINED
        unread = [best.unread("attributions") for best in self.optimized]
        for index in self._computed(indices):
            if is_large:  # losses and certificate of the attributions stay
                self.optimized[index].store("attributions", unread[index])

    def _computed(self, indices: Iterable[int]) -> Iterator[int]:
        """Compute the attributions of some optima; a warning names those that fail."""
        for index in indices:
            try:
                _ = self.optimized[index].attributions
            except SolverFailure as failure:
                warnings.warn(
                    f"the attributions for weight {index + 1} of {len(self.optimized)} "
                    f"were not computed, so its losses are not certified from them: "
                    f"{failure}",
                    UnsolvedWarning,
                    stacklevel=3,
                )
            else:
                yield index

    def between(self, weights: Mapping[str, float]) -> tuple[float, float]:
        """Bounds on the optimal objective at any weights, also between those solved.

        The lower bound is max Σ t_i F_i over Σ t_i c_i ≤ c, for lower bounds F_i of the
        optima at weights c_i: between two weights their chord, as F_c* is concave in c.
        The upper bound is the least objective of the optima at these weights.

        Parameters
        ----------
        weights : mapping
            One number ≥ 0 for each loss, tried or not.

        Returns
        -------
        low, high : float
            No explanation has an objective below ``low``; one of the optima attains
            ``high``.

        Raises
        ------
        InvalidInput
            If a loss has no weight, or no optimum has weights of all losses.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> objective = po.GradientMatching(np.eye(3)) + po.Sparsity()
        >>> curve = po.sweep(objective, {"sparsity": [0.4, 0.6]})
        >>> low, high = curve.between({"gradient_matching": 1.0, "sparsity": 0.5})
        >>> round(low, 4), round(high, 4)
        (1.305, 1.32)
        >>> best = po.solve(po.GradientMatching(np.eye(3)) + 0.5 * po.Sparsity())
        >>> round(best.objective, 4)
        1.3125
        """
        if weights.keys() != set(self.losses):
            raise InvalidInput(
                f"weights: expected one for each of {', '.join(self.losses)}, got "
                f"{', '.join(map(str, weights)) or 'none'}"
            )
        c = read_each_nonnegative([weights[name] for name in self.losses], "weights")
        return FrontBounds.of(self.optimized, self.losses).bounds(c)

    @property
    def gap_between(self) -> float | None:
        """The largest relative gap of the bounds for weights between those solved.

        It bounds the error of :meth:`between` for every weight between the smallest and
        the largest. None unless exactly one weight varies.
        """
        try:
            return FrontBounds.of(self.optimized, self.losses).gap()
        except InvalidInput:
            return None

    def front(self) -> TradeOffs:
        """The trade-offs restricted to the explanations on the Pareto front."""
        front = self.on_front
        n_optimized = len(self.optimized)
        return replace(
            self,
            optimized=tuple(compress(self.optimized, front)),
            baselines=tuple(compress(self.baselines, front[n_optimized:])),
        )

    def knee(self, x: str | None = None, y: str | None = None) -> Explanation:
        """The optimum at the bend of the curve of loss ``y`` against loss ``x``.

        Both losses are scaled to run from 0 to 1 over the optima; the knee has the
        smallest sum, so it lies farthest below the chord of the curve. Beyond it either
        loss costs more than the other gains, each in shares of its own range. It
        depends on the weights swept: sweep until both ends of the curve are flat.

        Parameters
        ----------
        x, y : str, optional
            Names of losses; by default the first two.

        Returns
        -------
        Explanation
            The optimum at the knee, an item of ``optimized``.

        Raises
        ------
        InvalidInput
            If there is no such loss, or nothing was optimized.
        """
        _, columns = self._pair(x, y)
        if not self.optimized:
            raise InvalidInput("knee: there are no optimized explanations")
        return self.optimized[self._knee(columns)]

    def _pair(self, x: str | None, y: str | None) -> tuple[list[str], list[int]]:
        """Two losses, by default the first, and their columns of ``values``."""
        first, second = (list(self.losses) * 2)[:2]
        names = [x or first, y or second]
        return names, [self._column(name) for name in names]

    def _knee(self, columns: list[int]) -> int:
        """The optimum with the least sum of two losses, each scaled to 0 to 1."""
        values = self.values[: len(self.optimized), columns]
        low = values.min(axis=0)
        high = values.max(axis=0)
        span = np.where(high > low, high - low, 1.0)
        return int(((values - low) / span).sum(axis=1).argmin())

    @property
    def share_labels(self) -> dict[str, str]:
        """For each loss, the label of its share; with its name if several have one."""
        labels = {k: (kind_of(k) or PropertyLoss).share_label for k in self.losses}
        count = Counter(labels.values())
        return {
            name: label
            if count[label] == 1 and label != "removed"
            else f"{name} removed"
            for name, label in labels.items()
        }

    def nearest_at(self, best: Explanation) -> tuple[str, float] | None:
        """The baseline with the lowest objective at the weights of an optimum.

        Returned with its relative excess F(baseline)/F* − 1 over the optimal objective.
        None if no baseline can be compared.
        """
        compared = [
            (max(self._above(baseline, best)[0], 0.0), index)
            for index, baseline in enumerate(self.baselines)
            if self._why_not_compared(baseline) is None
        ]
        compared = [pair for pair in compared if math.isfinite(pair[0])]
        if not compared:
            return None
        excess, index = min(compared)
        return self.distinct_name(self.baselines[index]), excess

    def distinct_name(self, baseline: Explanation) -> str:
        """A unique name of a baseline: its method, and the settings that vary."""
        family = [one for one in self.baselines if one.method == baseline.method]
        settings = [
            f" {name}={in_short(value)}"
            for name, value in baseline.parameters.items()
            if len({one.parameters.get(name) for one in family}) > 1
        ]
        return baseline.method + "".join(settings)

    def _column(self, loss: str) -> int:
        if loss not in self.losses:
            raise InvalidInput(
                f"no loss is called {loss!r}; there are {', '.join(self.losses)}"
            )
        return self.losses.index(loss)

    def distances(self) -> pd.DataFrame:
        """How far each baseline lies above the trade-off curve, as a table.

        ``excess`` is the least relative excess of the baseline's objective over the
        optimum, min_c (F_c(baseline) − F_c*)/F_c*, over the weights c of the sweep and
        their limit at zero: the excess at the weights that suit the baseline best.
        ``weight.<loss>`` are those weights, and ``distance`` is the absolute difference
        F_c(baseline) − F_c*. Where F_c* = 0, excess is 0 if the baseline's objective is
        zero too, such as for the target at a weight of zero, and infinite otherwise.

        ``units`` are those of the baseline, or "units unknown" if those of the target
        are unknown; all units are then taken to be equal. A baseline in other units
        than the target has no excess, and ``not_compared`` gives the reason: convert it
        first, by its ``units`` or :meth:`Explanation.scaled`. Baselines that violate a
        bound of all optima, or :class:`propopt.losses.Completeness`, have none either.

        Returns
        -------
        DataFrame
            A row per baseline.
        """
        return _with_counts(pd.DataFrame(list(map(self._distance, self.baselines))))

    def _distance(self, baseline: Explanation) -> dict[str, Any]:
        """The table row of a baseline: settings, losses and least excess."""
        row: dict[str, Any] = {
            "method": baseline.method,
            **{f"parameter.{name}": x for name, x in baseline.parameters.items()},
            "units": UNITS_UNKNOWN if self.units is None else baseline.units,
            **{f"loss.{name}": baseline.losses[name] for name in self.losses},
        }
        reason = self._why_not_compared(baseline)
        if reason is not None:
            nothing = {"excess": math.nan, "distance": math.nan}
            return {**row, **nothing, "not_compared": reason}
        result = [self._above(baseline, best) for best in self.optimized]
        if self.ends is not None:
            result += self._above_the_end(baseline, self.ends)
        if not result:
            return row
        excess, distance, rates = min(result, key=lambda one: one[0])
        weights = {f"weight.{name}": rate for name, rate in rates.items()}
        return {**row, "excess": excess, "distance": distance, **weights}

    def _why_not_compared(self, baseline: Explanation) -> str | None:
        """The reason why a baseline cannot be compared with the optima, or None."""
        ours = baseline.units
        theirs = self.units
        if theirs is not None and ours != theirs:
            return f"it is {_IN_WORDS[ours]}, and the target is {_IN_WORDS[theirs]}"
        for name, limit in self.bounds.items():
            loss = baseline.losses[name]
            size = float((baseline.attributions**2).sum())
            if limit == 0.0 and loss > _ROUNDING**2 * size:
                missed = f"{math.sqrt(loss):.2g}"
                return f"it violates {name} by {missed}; all optima satisfy it"
            if 0.0 < limit * (1.0 + _ROUNDING) < loss:
                return f"it has {name} = {loss:.4g}, and all optima at most {limit:.4g}"
        return None

    def _rates(self, best: Explanation) -> dict[str, float]:
        """Weights and multipliers of the traded losses; completeness has none."""
        return {name: best.rates[name] for name in self.losses if name in best.rates}

    def _above(
        self, baseline: Explanation, best: Explanation
    ) -> tuple[float, float, dict[str, float]]:
        """(F(b) − F*)/F*, F(b) − F* and the weights, at the weights of ``best``.

        The first is infinite where F* is zero to rounding while F(b) is not.
        """
        rates = self._rates(best)
        value, optimum = (
            sum(c * one.losses[name] for name, c in rates.items())
            for one in (baseline, best)
        )
        nothing = _NOTHING * best.certificate.scale if best.certificate else 0.0
        if optimum > nothing:
            return value / optimum - 1.0, value - optimum, rates
        if value > nothing:
            return math.inf, value, rates
        return 0.0, 0.0, rates

    def _above_the_end(
        self, baseline: Explanation, ends: IdealNadir
    ) -> list[tuple[float, float, dict[str, float]]]:
        """The same in the limit where only faithfulness has a positive weight.

        There F* is the least faithfulness loss A*, known from the end of the front.
        Where A* = 0 the limit of (A + Σ c_i B_i)/F* − 1 is finite only for the target,
        A = 0, and at least min_i B_i/B_i(G) − 1. The limit is not part of this sweep if
        another weight besides that of faithfulness never varies.
        """
        rates = [self._rates(best) for best in self.optimized]
        faithful = [name for name in self.losses if name in ends.faithful]
        others = [name for name in self.losses if any(one.get(name) for one in rates)]
        others = [name for name in others if name not in faithful]
        swept = [name for name in others if len({one.get(name) for one in rates}) > 1]
        if len(faithful) != 1 or not others or swept != others:
            return []
        (name,) = faithful
        at_end = {name: 1.0, **dict.fromkeys(others, 0.0)}
        least = ends.at_target[name]
        value = baseline.losses[name]
        nothing = _EXACT * ends.sizes[name]
        if least > nothing:
            return [(value / least - 1.0, value - least, at_end)]
        limits = [(baseline.losses[k], ends.at_target[k]) for k in others]
        if value > nothing or any(math.isnan(limit) for _, limit in limits):
            return []
        shares = [loss / limit - 1.0 if limit else 0.0 for loss, limit in limits]
        return [(max(min(shares), 0.0), value, at_end)]

    def to_frame(self) -> pd.DataFrame:
        """All explanations as a table: one row each, with the columns of the CSV files.

        ``method``, ``weight.<loss>``, ``parameter.<name>``, ``loss.<loss>``,
        ``objective``, ``gap`` (certified and relative), ``sampling_error`` (of the
        target, as a share of its size), ``sampling_excess`` (of the objective, on the
        scale of the gap), ``on_front``, ``seconds``, ``target`` (its source),
        ``faithfulness_kept`` (``faithfulness_kept.<loss>`` if several losses measure
        it) and ``removed.<loss>`` for every other loss
        (:class:`propopt.results.Shares`). If an error was requested, ``front_error`` is
        the proved one, equal in all rows.

        Returns
        -------
        DataFrame
            One row per explanation: the optima, then the baselines.
        """
        every = self.explanations
        columns: dict[str, Sequence[Any]] = {
            "method": [one.method for one in every],
            **_columns("weight", self.losses, [one.rates for one in every]),
            **self._parameters,
            **_columns("loss", self.losses, [one.losses for one in every]),
            "objective": [one.objective for one in every],
            "gap": [one.gap for one in every],
            "sampling_error": [one.sampling_error for one in every],
            "sampling_excess": [one.sampling_excess for one in every],
            "on_front": self.on_front.tolist(),
            "seconds": [one.seconds for one in every],
            "target": [None if x.target is None else x.target.source for x in every],
            **self._shares,
        }
        if self.error is not None:
            columns["front_error"] = [self.error] * len(every)
        return _with_counts(pd.DataFrame(columns, dtype=None if every else object))

    @property
    def _parameters(self) -> dict[str, list[Any]]:
        """A column for each parameter of a baseline."""
        names = dict.fromkeys(k for one in self.baselines for k in one.parameters)
        return _columns("parameter", names, [x.parameters for x in self.explanations])

    @property
    def _shares(self) -> dict[str, list[float]]:
        """A column for the share of each loss; none without ends."""
        if self.ends is None:
            return {}
        shares = pd.DataFrame([self.ends.shares(x.losses) for x in self.explanations])
        return {to: shares[name].tolist() for name, to in self.share_columns.items()}

    def save(self, path: str | Path) -> None:
        """Write all explanations to one ``.npz`` file, with their attributions.

        This computes the attributions of points on curves; losses and certificates then
        follow from these. A point without a solution is left out with a warning, and is
        among the failures in the file. For a smaller file, save :meth:`front` or a
        single explanation.

        Raises
        ------
        InvalidInput
            If the folder is not there, or a field is not what can be loaded again.
        Refused
            If all attributions together do not fit into memory.

        Examples
        --------
        >>> import tempfile, numpy as np, propopt as po
        >>> objective = po.GradientMatching(np.eye(3)) + po.Sparsity()
        >>> curve = po.sweep(objective, {"sparsity": [0.1, 1.0]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     curve.save(f"{folder}/curve.npz")
        ...     same = po.TradeOffs.load(f"{folder}/curve.npz")
        >>> same.to_frame().equals(curve.to_frame())
        True
        """
        unread = [best.shape for best in self.optimized if best.is_lazy("attributions")]
        require_memory(
            8.0 * sum(N * D for N, D in unread),
            f"the attributions of {len(unread)} explanations",
            "save single explanations, as optimized[0].save(path)",
        )
        _ = [*self._computed(range(len(self.optimized)))]
        missing = [best for best in self.optimized if best.is_lazy("attributions")]
        proved = [best for best in self.optimized if best not in missing]
        unsolved = [f"no attributions were computed for {best!r}" for best in missing]
        failures = (*self.failures, *unsolved)
        whole = replace(
            self,
            optimized=tuple(proved),
            failures=failures,
            problem_data=self.problem_arrays,
        )
        super(TradeOffs, whole).save(path)

    @property
    def problem_arrays(self) -> Mapping[str, NDArray[Any]]:
        """The arrays of targets and graphs of all optima; not those of limits."""
        solved = (best for best in self.optimized if best.program is not None)
        best = next(solved, None)
        if best is None:
            return self.problem_data
        written = best.problem_arrays.items()
        return {key: x for key, x in written if not key.endswith(".limit")}

    def validate(self) -> None:
        """Raise an error if names of losses repeat, or an explanation lacks a loss."""
        if len(set(self.losses)) < len(self.losses):
            raise InvalidInput("losses: expected each name once")
        for kind, explanations, bounds in (
            ("optimized", self.optimized, ()),
            ("baselines", self.baselines, self.bounds),
        ):
            for index, one in enumerate(explanations):
                for name in {*self.losses, *bounds} - one.losses.keys():
                    raise InvalidInput(
                        f"{kind}.{index}: losses: there is no {printable(name)}"
                    )

    def plot(
        self, x: str | None = None, y: str | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw loss ``y`` against loss ``x``, by default the first two losses.

        The axes show shares, if the ends of the trade-off are available: the
        faithfulness lost, and the part of the other loss that is left. They span
        the front, and baselines up to twice as far; the legend counts those beyond. A
        large circle marks the optimum at the knee.

        Parameters
        ----------
        x, y : str, optional
            Names of losses.
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InvalidInput
            If there is no such loss.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> objective = po.GradientMatching(np.eye(3)) + po.Sparsity()
        >>> curve = po.sweep(objective, {"sparsity": [0.2, 0.5, 1.0]})
        >>> curve.plot().get_xlabel()
        'faithfulness lost'
        """
        names, columns = self._pair(x, y)
        losses = self.values[:, columns]
        labels = [f"{name.replace('_', ' ')} loss" for name in names]
        scale: Scale = "linear"
        n_optimized = len(self.optimized)
        if self.ends is not None:
            shares = [self.ends.shares(one.losses) for one in self.explanations]
            left = 1.0 - pd.DataFrame(shares)[names].to_numpy()
            if np.isfinite(left[:n_optimized]).all():
                scale = "percent"
                losses = left
                labels = [label_of_rest(self.share_labels[name]) for name in names]
        front = losses[:n_optimized]
        curve = front[np.lexsort(front.T[::-1])]
        ahead = curve[:, 1] <= np.minimum.accumulate(curve[:, 1])
        points = [("", a, b) for a, b in curve[~ahead].tolist()]
        if n_optimized >= _FEWEST:
            points.append(("knee", *front[self._knee(columns)].tolist()))
        reach = front.max(axis=0, initial=0.0)  # of baselines, those up to twice as far
        within = losses <= np.where(reach > 0.0, 2.0 * reach, np.inf)
        high = 1.05 * np.where(within, losses, 0.0).max(axis=0, initial=0.0)
        high[high == 0.0] = 1.0
        methods = [one.method for one in self.baselines]
        table = pd.DataFrame(losses[n_optimized:], methods)
        others = {}
        for method in dict.fromkeys(methods):
            series = table.loc[[method]].to_numpy()
            count = (~(series <= high).all(axis=1)).sum()
            name = f"{method}, {count} off the chart" if count else method
            others[name] = (series[:, 0], series[:, 1])
        quantity = self.quantity
        axes = draw(
            Lines(
                lines={"optimized": (curve[ahead, 0], curve[ahead, 1])},
                points=points,
                others=others,
                name=labels[0],
                scales=(scale, scale),
                title="" if quantity is None else f"explanations of the {quantity}",
                caption=labels[1],
            ),
            ax,
        )
        right, top = high.tolist()
        axes.set(xlim=(-0.02 * right, right), ylim=(-0.02 * top, top))
        return axes

    def document(self) -> Document:
        """Summarise the chosen optimum, by the aim or at the knee, as blocks to show.

        Only a page computes attributions.
        """
        from propopt.explaining.front_chapters import front_chapters

        best = None
        if self.optimized:
            best = self.aimed or self.knee()
        counts = [plural(len(self.optimized), "optimum").replace("optimums", "optima")]
        if self.baselines:
            counts.append(plural(len(self.baselines), "baseline"))
        return Document(
            title=title_of("Trade-offs", self.quantity),
            subtitle=subtitle_of(self.quantity, ", ".join(counts), self._against),
            dangers=[*self._dangers()],
            blocks=[
                *([] if best is None else [self._chosen(best)]),
                Facts([*self._facts(best)]),
            ],
            settings={
                name: text
                for name, text in (() if best is None else made_by(best))
                if not name.startswith("loss ")  # losses are in the table of the page
            },
            chapters=partial(front_chapters, self),
        )

    @property
    def _against(self) -> str:
        """The losses that are traded off: faithfulness last, main effects apart."""
        faithful = () if self.ends is None else self.ends.faithful
        offset = () if self.ends is None else self.ends.offset
        beyond = dict.fromkeys(offset, " beyond main effects")
        others = [
            f"{name.replace('_', ' ')}{beyond.get(name, '')}"
            for name in self.losses
            if name not in faithful
        ]
        words = enumerated(others, "and")
        return f"faithfulness and {words}" if faithful and words else words

    def _dangers(self) -> Iterator[str]:
        """Weights without a solution, and an interrupted sweep."""
        if self.failures:
            failed = plural(len(self.failures), "combination")
            yield f"Without a solution: {failed} of weights; see failures."
        if self.interrupted:
            yield "The sweep was interrupted before its end."

    def _chosen(self, best: Explanation) -> Table:
        """Five optima along the weight that varies, the one at the knee among them."""
        loss, line = self.line(best)
        position = next(i for i, one in enumerate(line) if one is best)
        rows = evenly_spaced(len(line), N_PRINTED)
        nearest = min(range(len(rows)), key=lambda k: abs(rows[k] - position))
        rows[nearest] = position
        mark = "knee" if self.aimed is None else "aim"
        labels = self.share_labels
        names = self.losses if loss is None else (loss,)
        lines = [
            {
                **{
                    "weight" if loss else f"weight of {name}": one.rates.get(name)
                    for name in names
                },
                **self._cells(one, labels),
                "": mark if one is best else "",
            }
            for one in (line[i] for i in rows)
        ]
        rest = f"{len(line) - len(lines)} more" if len(line) > len(lines) else ""
        return Table(pd.DataFrame(lines).dropna(axis="columns", how="all"), rest=rest)

    def _cells(self, best: Explanation, labels: Mapping[str, str]) -> dict[str, object]:
        """The shares of an optimum by their labels; its losses where there are none."""
        shares = {} if self.ends is None else self.ends.shares(best.losses)
        cells = {labels[k]: shares.get(k, math.nan) for k in self.losses}
        if any(map(math.isfinite, cells.values())):
            return {label: share_text(x) for label, x in cells.items()}
        return {f"loss {name}": best.losses[name] for name in self.losses}

    def line(self, best: Explanation) -> tuple[str | None, list[Explanation]]:
        """The loss with the most optima that differ from this one in its weight only.

        Returned with these, in ascending order of that weight. Where they are fewer
        than three, None and all optima, in ascending order of the first loss.
        """
        lines = {}
        rates = [one.rates for one in self.optimized]
        at_best = best.rates
        for name in filter(best.weights.__contains__, self.losses):
            fixed = {**at_best, name: 0.0}
            numbered = enumerate(rates)
            same = [(x[name], n) for n, x in numbered if {**x, name: 0.0} == fixed]
            lines[name] = [self.optimized[n] for _, n in sorted(same)]
        loss = max(lines, key=lambda name: len(lines[name]), default=None)
        if loss is None or len(lines[loss]) < _FEWEST:
            first = self.losses[0]
            return None, sorted(self.optimized, key=lambda one: one.losses[first])
        return loss, lines[loss]

    def _facts(self, best: Explanation | None) -> Iterator[Fact]:
        """The proofs for the optima and between them, and the nearest baseline."""
        optima = [one for one in self.optimized if one.gap is not None]
        if optima:
            note = f"largest of {len(optima)}" if len(optima) > 1 else ""
            yield Fact("gap to optimum", max(x.gap or 0.0 for x in optima), note=note)
            targets = [x.target for x in optima if x.target is not None]
            yield sampling_fact(
                max(
                    targets,
                    key=lambda x: (math.isnan(x.value), x.share),
                    default=None,
                )
            )
        if self.error is not None:
            yield Fact("front error", self.error, "%")
        elif (gap := self.gap_between) is not None:
            yield Fact("between weights", gap, "%")
        nearest = None if best is None else self.nearest_at(best)
        if nearest is not None:
            name, excess = nearest
            note = f"{share_text(excess)} above the optimum"
            yield Fact("nearest baseline", name, note=note)

    @property
    def aimed(self) -> Explanation | None:
        """The optimum that meets the user's aim; None if no aim was given."""
        optima = (best for best in self.optimized if "aim" in best.parameters)
        return next(optima, None)

    @property
    def share_columns(self) -> dict[str, str]:
        """For each loss, the CSV column with its retained or removed share."""
        if self.ends is None:
            return {}
        faithful = [name for name in self.losses if name in self.ends.faithful]
        several = len(faithful) > 1
        others = [name for name in self.losses if name not in faithful]
        return {
            **{
                name: f"faithfulness_kept.{name}" if several else "faithfulness_kept"
                for name in faithful
            },
            **{name: f"removed.{name}" for name in others},
        }


def _with_counts(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with nullable types, so that whole numbers and flags allow blanks."""
    names = [column for column in frame if str(column).startswith("parameter.")]
    return frame.assign(**{str(name): frame[name].convert_dtypes() for name in names})


def _columns(
    prefix: str, names: Iterable[str], rows: Sequence[Mapping[str, Any]]
) -> dict[str, list[Any]]:
    """A column for each name, blank in rows that lack it."""
    return {f"{prefix}.{k}": [row.get(k, math.nan) for row in rows] for k in names}
