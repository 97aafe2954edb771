"""Trade-offs: optimal explanations for many weights, beside those of baselines."""

from __future__ import annotations

import itertools
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from joblib.parallel import get_active_backend
from matplotlib.axes import Axes
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from propopt.checks import read_positive
from propopt.errors import (
    InterruptedWarning,
    InvalidInput,
    SolverFailure,
    UnsolvedWarning,
)
from propopt.explanation import Explanation
from propopt.files import written_whole
from propopt.losses import Bound, Objective, PropertyLoss
from propopt.plots import plot_trade_offs
from propopt.solvers import Solution, Solver, Task


def sweep(
    objective: Objective | PropertyLoss,
    weights: Mapping[str, float | Sequence[float]],
    baselines: Iterable[Explanation] = (),
    *,
    solver: str | Solver = "auto",
    subject_to: Sequence[Bound] = (),
    tolerance: float = 1e-6,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> TradeOffs:
    """Solve an objective for many weights, prepared once and started warm.

    Parameters
    ----------
    objective : Objective
        A weighted sum of losses; weights that are not swept stay as they are.
    weights : mapping
        By loss name the weights to try, all combinations of them; the last name varies
        fastest.
    baselines : iterable of Explanation
        Explanations made otherwise, measured on the same losses. They are asked for one
        by one after all arguments were checked.
    solver, subject_to, tolerance
        As for :func:`propopt.solve`.
    n_jobs : int, optional
        Parallel workers, each with a block of weights and a program of its own. None
        means one, unless ``joblib.parallel_config`` says otherwise.
    progress : bool, optional
        Show a progress bar on standard error; by default where that is a terminal.

    Returns
    -------
    TradeOffs
        One explanation per combination of weights, then the baselines. After Ctrl-C, or
        where a solver fails, those that were finished, with a warning.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.linspace(-1, 1, 9)[:, None]
    >>> objective = po.GradientMatching(3 * X**2) + po.PairwiseRobustness(
    ...     po.chain_graph(9)
    ... )
    >>> curve = po.sweep(objective, {"pairwise_robustness": np.geomspace(0.01, 100, 5)})
    >>> curve.to_frame()["on_front"].all()
    np.True_
    """
    whole = Objective.of(objective)
    points = _combinations(whole, weights)
    workers = _read_workers(n_jobs, len(points))
    chosen = Task(whole, tuple(subject_to), solver, all_losses=True).chosen
    limit = read_positive(tolerance, "tolerance")
    job = _Job(whole, tuple(subject_to), chosen, limit)
    measured: list[Explanation] = []
    found: list[Explanation] = []
    failures: list[SolverFailure] = []
    interrupted = False
    try:
        measured.extend(baseline.measured(whole) for baseline in baselines)
        with _bar(len(points), progress) as bar:
            for result in _results(job, points, workers):
                if isinstance(result, Explanation):
                    found.append(result)
                else:
                    failures.append(result)
                bar.advance(bar.task_ids[0])
    except KeyboardInterrupt:
        interrupted = True
        if not (found or measured):
            raise
    if failures and not found and not interrupted:
        raise failures[0]
    trade_offs = TradeOffs(
        optimized=tuple(found),
        baselines=tuple(measured),
        losses=tuple(whole.weights),
        failures=tuple(map(str, failures)),
        interrupted=interrupted,
    )
    _warn_of_missing(trade_offs, len(points))
    return trade_offs


@dataclass(frozen=True, eq=False, kw_only=True)
class TradeOffs:
    """Explanations and their losses: the result of a sweep.

    Parameters
    ----------
    optimized : tuple of Explanation
        One for each combination of weights.
    baselines : tuple of Explanation
        The others, measured on the same losses.
    losses : tuple of str
        Names of the losses.
    failures : tuple of str
        What a solver said where it gave no answer.
    interrupted : bool
        True if the sweep was stopped before its end.
    """

    optimized: tuple[Explanation, ...]
    baselines: tuple[Explanation, ...]
    losses: tuple[str, ...]
    failures: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """All explanations, in the order of the rows of the table."""
        return self.optimized + self.baselines

    @property
    def values(self) -> NDArray[np.float64]:
        """The losses, one row per explanation and one column per loss."""
        return np.array(
            [[e.losses[name] for name in self.losses] for e in self.explanations]
        ).reshape(len(self.explanations), len(self.losses))

    @property
    def on_front(self) -> NDArray[np.bool_]:
        """True where no other is at least as good in every loss and better in one."""
        values = self.values
        no_worse = (values[:, None, :] <= values[None, :, :]).all(axis=2)
        better = (values[:, None, :] < values[None, :, :]).any(axis=2)
        beaten: NDArray[np.bool_] = np.any(no_worse & better, axis=0)
        return ~beaten

    def certified(self, tolerance: float) -> bool:
        """True if each optimum is certified to a relative gap of ``tolerance``."""
        certificates = [e.certificate for e in self.optimized]
        return all(c is not None and c.holds(tolerance) for c in certificates)

    def front(self) -> TradeOffs:
        """Only the explanations on the Pareto front."""
        kept = self.on_front
        n_optimized = len(self.optimized)
        return replace(
            self,
            optimized=_pick(self.optimized, kept[:n_optimized]),
            baselines=_pick(self.baselines, kept[n_optimized:]),
        )

    def distances(self) -> pd.DataFrame:
        """How far each baseline lies above the front.

        ``excess`` is the least relative excess of the baseline's objective over the
        optimum, min_c (F_c(baseline) − F_c*)/F_c* over the weights c of the sweep: even
        for the weights that suit it best, that much was left on the table.
        ``weight.<loss>`` are those weights.
        """
        return _with_counts(pd.DataFrame([self._distance(b) for b in self.baselines]))

    def to_frame(self) -> pd.DataFrame:
        """One row per explanation, with the columns of the CSV files.

        ``method``, ``weight.<loss>``, ``parameter.<name>``, ``loss.<loss>``,
        ``objective``, ``gap`` (certified and relative), ``on_front``, ``seconds``.
        """
        rows = [
            self._row(explanation, bool(kept))
            for explanation, kept in zip(self.explanations, self.on_front, strict=True)
        ]
        return _with_counts(pd.DataFrame(rows, columns=self._columns()))

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame` to a file; floats read back to the same value."""
        with written_whole(path) as draft:
            self.to_frame().to_csv(draft, index=False)

    def plot(
        self, x: str | None = None, y: str | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw loss ``y`` against loss ``x``: by default the first two losses."""
        first, second, *_ = (*self.losses, *self.losses)
        return plot_trade_offs(self.to_frame(), x or first, y or second, ax=ax)

    def __repr__(self) -> str:
        state = ", interrupted" if self.interrupted else ""
        return (
            f"<TradeOffs of {', '.join(self.losses)}: {len(self.optimized)} optimized, "
            f"{len(self.baselines)} baselines{state}>"
        )

    def _columns(self) -> list[str]:
        parameters = dict.fromkeys(
            name for e in self.baselines for name in e.parameters
        )
        return [
            "method",
            *(f"weight.{name}" for name in self.losses),
            *(f"parameter.{name}" for name in parameters),
            *(f"loss.{name}" for name in self.losses),
            "objective",
            "gap",
            "on_front",
            "seconds",
        ]

    def _row(self, explanation: Explanation, on_front: bool) -> dict[str, Any]:
        return {
            "method": explanation.method,
            **_prefixed("weight", explanation.weights),
            **_prefixed("parameter", explanation.parameters),
            **_prefixed("loss", explanation.losses),
            "objective": explanation.objective,
            "gap": explanation.gap,
            "on_front": on_front,
            "seconds": explanation.seconds,
        }

    def _distance(self, baseline: Explanation) -> dict[str, Any]:
        found: dict[str, Any] = {"method": baseline.method}
        found |= _prefixed("parameter", baseline.parameters)
        found |= _prefixed(
            "loss", {name: baseline.losses[name] for name in self.losses}
        )
        excesses = [(_excess(baseline, best), best) for best in self.optimized]
        if excesses:
            excess, best = min(excesses, key=lambda pair: pair[0])
            found |= {"excess": excess, **_prefixed("weight", best.weights)}
        return found


@dataclass(frozen=True, eq=False)
class _Job:
    """What every worker of a sweep needs to know."""

    objective: Objective
    bounds: tuple[Bound, ...]
    solver: Solver
    tolerance: float

    def run(
        self, points: Sequence[dict[str, float]]
    ) -> Iterator[Explanation | SolverFailure]:
        """One result for each combination of weights, each started from the last."""
        task = Task(self.objective, self.bounds, self.solver, all_losses=True)
        start: Solution | None = None
        for point in points:
            began = time.perf_counter()
            objective = self.objective.with_weights(point)
            try:
                start = task.solve(objective, self.tolerance, start)
            except SolverFailure as failure:
                yield SolverFailure(f"{objective!r}: {failure}")
                continue
            yield task.explain(start, objective, self.tolerance, began)

    def run_all(
        self, points: Sequence[dict[str, float]]
    ) -> list[Explanation | SolverFailure]:
        """The same, all at once: for a worker in another process."""
        return list(self.run(points))


def _results(
    job: _Job, points: list[dict[str, float]], workers: int
) -> Iterator[Explanation | SolverFailure]:
    if workers == 1:
        yield from job.run(points)
        return
    blocks = np.array_split(np.arange(len(points)), workers)
    backend, _ = get_active_backend()
    # a generator hands over finished blocks early; not every backend has one
    kind = "generator" if backend.supports_return_generator else "list"
    parallel = joblib.Parallel(n_jobs=workers, return_as=kind)
    calls = (
        joblib.delayed(job.run_all)([points[i] for i in block]) for block in blocks
    )
    for results in parallel(calls):
        yield from results


def _read_workers(n_jobs: int | None, n_points: int) -> int:
    if n_jobs == 0:
        raise InvalidInput(
            "n_jobs: expected a number of workers, -1 for all processors, or None, "
            "got 0"
        )
    return min(int(joblib.effective_n_jobs(n_jobs)), n_points)


def _combinations(
    objective: Objective, weights: Mapping[str, float | Sequence[float]]
) -> list[dict[str, float]]:
    """All combinations of weights, each checked before any is solved."""
    axes = {name: np.atleast_1d(values).tolist() for name, values in weights.items()}
    for name, values in axes.items():
        if not values:
            raise InvalidInput(f"weights: {name} has no values to sweep over")
    points = [
        dict(zip(axes, combination, strict=True))
        for combination in itertools.product(*axes.values())
    ]
    for point in points:
        if not any(objective.with_weights(point).weights.values()):
            raise InvalidInput(f"weights: all are zero at {point}")
    return points


def _bar(total: int, wanted: bool | None) -> Progress:
    shown = sys.stderr.isatty() if wanted is None else wanted
    columns = (TextColumn("sweep"), BarColumn(), MofNCompleteColumn())
    bar = Progress(
        *columns,
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not shown,
    )
    bar.add_task("sweep", total=total)
    return bar


def _warn_of_missing(trade_offs: TradeOffs, total: int) -> None:
    if trade_offs.failures:
        warnings.warn(
            f"{len(trade_offs.failures)} of {total} weights were not solved; "
            f"the first: {trade_offs.failures[0]}",
            UnsolvedWarning,
            stacklevel=3,
        )
    if trade_offs.interrupted:
        warnings.warn(
            f"interrupted: {len(trade_offs.optimized)} of {total} weights are done",
            InterruptedWarning,
            stacklevel=3,
        )


def _excess(baseline: Explanation, best: Explanation) -> float:
    """(F(baseline) − F*)/F* for the weights of ``best``."""
    value = sum(c * baseline.losses[name] for name, c in best.weights.items())
    optimum = best.objective or 0.0
    return value / optimum - 1.0 if optimum > 0 else float(np.inf if value else 0.0)


def _with_counts(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with parameters that stay whole numbers, or flags, beside blanks."""
    names = [column for column in frame if str(column).startswith("parameter.")]
    return frame.assign(**{str(name): frame[name].convert_dtypes() for name in names})


def _prefixed(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{name}": value for name, value in values.items()}


def _pick(
    explanations: Iterable[Explanation], kept: NDArray[np.bool_]
) -> tuple[Explanation, ...]:
    return tuple(e for e, keep in zip(explanations, kept, strict=True) if keep)
