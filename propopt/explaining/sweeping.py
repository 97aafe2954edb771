"""Many optimal explanations, over weights and limits."""

from __future__ import annotations

import itertools
import math
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from propopt.base.arrays import Array
from propopt.base.checkpoints import checkpoint_path
from propopt.base.checks import read_each_nonnegative, read_positive
from propopt.base.declared import Declared, field, lazily
from propopt.base.errors import (
    ImpreciseWarning,
    InterruptedWarning,
    InvalidInput,
    SolverFailure,
    UnsolvedWarning,
)
from propopt.base.files import writable_folder
from propopt.base.resources import in_workers, read_workers
from propopt.base.suggestions import suggests_arguments
from propopt.base.terminal import progress_bar
from propopt.explaining.front_bounds import FrontBounds, Sandwich
from propopt.explaining.trade_offs import TradeOffs
from propopt.losses import Bound, Objective, Program, PropertyLoss
from propopt.losses.completeness import Constraint, bounds_of
from propopt.losses.faithfulness import units_of_target
from propopt.proofs.ideal_nadir import IdealNadir
from propopt.results.explanation import Explanation, explanations_of
from propopt.solvers import Krylov, Solution, Solver, Task
from propopt.solvers.complete import CompletenessReduction
from propopt.solvers.curves import OneBound, Spectral
from propopt.solvers.factored import Factored
from propopt.solvers.reductions import ShiftReduction, TransposeReduction
from propopt.tables.imported import AttributionsLike


Swept: TypeAlias = float | Sequence[float] | Array
ByLoss: TypeAlias = (
    Mapping[str, Swept]
    | Mapping[PropertyLoss, Swept]
    | Mapping[str | PropertyLoss, Swept]
)
"""Values to try; a key is the name of a loss of the objective, or a loss itself."""
_Read: TypeAlias = dict[PropertyLoss, Array]


SweepPoint: TypeAlias = tuple[Array, tuple[Bound, ...]]
"""Weights (k,) in the order of the losses, and a bound for each loss with limits."""


def _planned(
    objective: Objective, weights: ByLoss, limits: ByLoss
) -> tuple[tuple[PropertyLoss, ...], tuple[SweepPoint, ...]]:
    """The losses with a weight and all combinations, each checked before any is solved.

    The last weight varies fastest, and limits faster than weights.
    """
    weighed = _read(objective, weights, "weights", "{}")
    limited = _read(objective, limits, "limits", "bound on {}")
    for loss in limited:
        if loss in weighed:
            raise InvalidInput(
                f"limits: {loss.name} has weights too; give one or the other"
            )
    # the objective without losses that have limits, and with those that are new
    kept = tuple(term for term in objective.terms if term[1] not in limited)
    new = tuple((1.0, loss) for loss in weighed if loss not in objective.losses)
    if not (kept or new):
        raise InvalidInput(
            "limits: all losses of the objective have limits, so nothing is left to "
            "minimise"
        )
    whole = Objective.weighed(kept + new)
    rows = _combined(whole, weighed)
    bounds = [[Bound(loss, c) for c in limited[loss].tolist()] for loss in limited]
    return whole.losses, tuple(itertools.product(rows, itertools.product(*bounds)))


def _read(objective: Objective, swept: ByLoss, what: str, label: str) -> _Read:
    """The values to try of each loss."""
    read: _Read = {}
    user_weights: object = swept
    if not isinstance(user_weights, Mapping):
        name = objective.losses[-1].name
        raise InvalidInput(
            f"{what}: expected values by loss, such as {{{name!r}: [0.1, 1.0]}}, got "
            f"{type(user_weights).__name__}"
        )
    for key, values in swept.items():
        loss = objective.loss(key, what)
        if loss in read:
            raise InvalidInput(f"{what}: {loss.name} is named twice")
        read[loss] = read_each_nonnegative(values, label.format(loss.name))
        if not read[loss].size:
            raise InvalidInput(f"{what}: {loss.name} has no values to sweep over")
    return read


def _combined(objective: Objective, weighed: _Read) -> Array:
    """All combinations of weights (P, k), in the order of the losses."""
    indices = [objective.losses.index(loss) for loss in weighed]
    tried = np.array([*itertools.product(*weighed.values())], dtype=np.float64)
    rows = np.tile(objective.coefficients, (len(tried), 1))
    rows[:, indices] = tried.reshape(len(tried), len(indices))
    zero = ~rows.any(axis=1)
    if zero.any():
        row = tried[np.argmax(zero)].tolist()
        named = zip(weighed, row, strict=True)
        listed = ", ".join(f"{loss.name!r}: {weight:g}" for loss, weight in named)
        raise InvalidInput(f"weights: all are zero at {{{listed}}}")
    return rows


@suggests_arguments
def sweep(
    objective: Objective | PropertyLoss,
    weights: ByLoss | None = None,
    baselines: Iterable[AttributionsLike] | Mapping[str, AttributionsLike] = (),
    *,
    limits: ByLoss | None = None,
    error: float | None = None,
    solver: str | Solver = "auto",
    subject_to: Sequence[Constraint] = (),
    tolerance: float = 1e-6,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> TradeOffs:
    """Solve an objective for many weights or limits, to draw its trade-off curve.

    Parameters
    ----------
    objective : Objective
        A weighted sum of losses; weights that are not swept do not change.
    weights : mapping
        The weights to try for each loss, in all combinations; the last loss varies
        fastest. A key is the name of a loss of the objective, or a loss, which may be
        new.
    limits : mapping
        The upper limits to try for each loss, with the same keys. Evenly spaced limits
        give an evenly spaced front. A loss with limits is bounded, not minimised, and
        its weight in the table is the multiplier of the bound.
    baselines : iterable, or mapping from names
        Explanations by other methods, measured on the same losses: Explanations,
        ``shap.Explanation``, DataFrames or arrays (N, D) in the units of the target.
        They are evaluated one by one after all arguments are checked.
    error : float, optional
        Instead of weights and limits: approximate the whole front of 2 to 4 losses to
        within this share of the range of each loss, such as 0.05. Each new weight is
        where the certified gap is largest. Weights of the objective have no effect.
    solver, subject_to, tolerance
        As for :func:`propopt.solve`.
    n_jobs : int, optional
        The number of parallel workers; None means one, unless
        ``joblib.parallel_config`` sets another. About √P of the P weights form a block
        with warm starts. Blocks do not depend on the workers, so results are identical
        for any number of them if BLAS has one thread.
    progress : bool, optional
        Whether to show a progress bar on standard error; by default only on a terminal.

    Returns
    -------
    TradeOffs
        One explanation for each combination of weights and limits, and the baselines.
        After Ctrl-C or a failure of the solver: the finished ones, with a warning. For
        squared losses, losses come from exact curves and attributions are computed on
        first use, so hundreds of weights cost little more than one.

    See Also
    --------
    solve : Solve for one set of weights.
    propopt.plots.plot_trade_offs : Draw the result, as ``TradeOffs.plot`` does.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.linspace(-1, 1, 9)[:, None]
    >>> objective = po.GradientMatching(3 * X**2) + po.PairwiseRobustness(
    ...     po.graphs.chain_graph(9)
    ... )
    >>> curve = po.sweep(objective, {"pairwise_robustness": np.geomspace(0.01, 100, 5)})
    >>> curve.to_frame()["on_front"].all()
    np.True_

    The same front, evenly spaced:

    >>> curve = po.sweep(objective, limits={"pairwise_robustness": [0.2, 0.4, 0.6]})
    >>> curve.to_frame()["loss.pairwise_robustness"].round(6).tolist()
    [0.2, 0.4, 0.6]

    To within a twentieth of each loss's range, with as few weights as that takes:

    >>> curve = po.sweep(objective, error=0.05)
    >>> len(curve.optimized), curve.error < 0.05
    (5, True)
    """
    if error is not None and not (weights is None and limits is None):
        raise InvalidInput(
            "error: it chooses the weights; leave weights and limits out"
        )
    losses, points = _planned(
        Objective.of(objective),
        {} if weights is None else weights,
        {} if limits is None else limits,
    )
    blocks = _blocks(points)
    workers = min(read_workers(n_jobs), len(blocks))
    goal = read_positive(tolerance, "tolerance")
    # all losses: those with limits have no weight
    terms = [*zip(points[0][0].tolist(), losses, strict=True)]
    terms += [(0.0, bound.loss) for bound in points[0][1]]
    traded = Objective.weighed(tuple(terms))
    known = traded.losses
    bounds = bounds_of(subject_to, known)
    job = _Job(losses, bounds, solver, goal).ready(points)
    front = None if error is None else job.front(points, error)
    fixed = [(1.0, bound.loss) for bound in bounds if bound.loss not in known]
    measured = Objective.trusted((*traded.terms, *fixed))
    optimized: list[Explanation] = []
    others: list[Explanation] = []
    failures: list[SolverFailure] = []
    interrupted = False
    units = units_of_target(known)
    try:
        read = explanations_of(baselines, "baseline", units)
        others.extend(baseline.measured(measured) for baseline in read)
        results = _results(job, blocks, workers) if front is None else job.along(front)
        total = len(points) if front is None else None
        with progress_bar("sweep", total, progress) as bar:
            for result in results:
                if isinstance(result, SolverFailure):
                    failures.append(result)
                else:
                    optimized.append(result)
                bar.advance(bar.task_ids[0])
    except KeyboardInterrupt:
        if not (optimized or others):
            raise
        interrupted = True
    if failures and not (optimized or interrupted):
        raise failures[0]
    if front is not None:  # along the front
        optimized.sort(key=lambda best: [best.losses[name] for name in traded.weights])
    trade_offs = TradeOffs(
        optimized=tuple(optimized),
        baselines=tuple(others),
        losses=tuple(traded.weights),
        failures=tuple(map(str, failures)),
        interrupted=interrupted,
        ends=lazily(partial(job.ends, points)),
        units=units,
        bounds={bound.loss.name: bound.limit for bound in bounds},
        error=None if front is None else front.reached,
    )
    n_points = len(points) if front is None else None
    for words, kind in _missing(trade_offs, n_points, error):
        warnings.warn(words, kind, stacklevel=2)
    return trade_offs


def _missing(
    found: TradeOffs, n_points: int | None, error: float | None
) -> Iterator[tuple[str, type[Warning]]]:
    """What was asked for and is not there, in words, and the kind of warning."""
    done, every = len(found.optimized), "the" if n_points is None else n_points
    if error is not None and found.error is not None and found.error > error:
        yield (
            f"error: {error:.3g} of each loss's range was wanted, and {done} weights "
            f"prove {found.error:.3g}",
            ImpreciseWarning,
        )
    if failures := found.failures:
        yield (
            f"{len(failures)} of {every} weights were not solved; the first: "
            f"{failures[0]}",
            UnsolvedWarning,
        )
    if found.interrupted:
        words = f"interrupted: {done} of {every} weights are done"
        yield words, InterruptedWarning


_MOST_WEIGHTS = 300
"""Of a front with an error: four losses to a hundredth take about as many."""

_Block: TypeAlias = list[SweepPoint]
_Finished: TypeAlias = tuple[list[Explanation | SolverFailure], list[Warning | str]]
"""The results of a worker, and the warnings that it could not give itself."""


@dataclass(frozen=True, eq=False)
class _Job:
    """What every worker of a sweep needs to know."""

    losses: tuple[PropertyLoss, ...]
    bounds: tuple[Bound, ...]
    solver: str | Solver
    tolerance: float
    chosen: Solver | None = None

    def ready(self, points: Sequence[SweepPoint]) -> _Job:
        """The same job with its solver chosen, which raises if none takes it.

        Where one limit varies and the curve of its loss is known, that curve serves for
        all limits above zero. Each limit of zero makes a program of its own.
        """
        every = [bounds for _, bounds in points]
        bounds = next((own for own in every if not _has_zero(own)), every[0])
        task = self.task(bounds)
        chosen = task.chosen
        if isinstance(chosen, OneBound):
            chosen = OneBound(curve=chosen.curve_of(task.program))
        return self if self._is_alone(bounds) else replace(self, chosen=chosen)

    def ends(self, points: Sequence[SweepPoint]) -> IdealNadir:
        """Where losses trade off that ever have a weight, or a limit."""
        program = Program(self.losses, self.bounds + points[0][1])
        ever = np.any([weights > 0.0 for weights, _ in points], axis=0)
        weighted = {loss.name for loss, c in zip(self.losses, ever, strict=True) if c}
        return IdealNadir.of(program, weighted | {x.loss.name for x in program.bounds})

    def task(self, bounds: tuple[Bound, ...]) -> Task:
        """The program with the bounds of a point, for all weights."""
        program = Program(self.losses, self.bounds + bounds)
        if self.chosen is None or self._is_alone(bounds):
            return Task(program, self.solver)
        return Task.taken(program, self.chosen)

    def _is_alone(self, bounds: tuple[Bound, ...]) -> bool:
        """True if what its limits leave differs from limit to limit."""
        return _has_zero(bounds) or (_has_zero(self.bounds) and bool(bounds))

    def run(self, blocks: Sequence[_Block]) -> Iterator[Explanation | SolverFailure]:
        """One result for each point, each started from the last of its block."""
        task: Task | None = None
        for block in blocks:
            start: Solution | None = None
            for weights, bounds in block:
                if task is None or bounds:
                    task = self.task(bounds)
                result, start = self.solved(task, weights, start)
                yield result

    def solved(
        self, task: Task, weights: Array, start: Solution | None
    ) -> tuple[Explanation | SolverFailure, Solution | None]:
        """The result, and where the next point starts."""
        began = time.perf_counter()
        try:
            if task.has_curve(weights):
                return task.on_curve(weights, self.tolerance, began), start
            solution = task.solve(weights, self.tolerance, start)
        except SolverFailure as failure:
            objective = task.program.weighed(weights)
            return SolverFailure(f"{objective!r}: {failure}"), start
        return task.explain(solution, weights, self.tolerance, began), solution

    def run_block(self, block: _Block, home: int) -> _Finished:
        """All at once, for process ``home``, or without the program for another."""
        if os.getpid() == home:
            return list(self.run([block])), []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")  # the filters are those of process home
            results = [_without_program(result) for result in self.run([block])]
        return results, [warning.message for warning in caught]

    def at_home(
        self, block: _Block, results: Sequence[Explanation | SolverFailure]
    ) -> Iterator[Explanation | SolverFailure]:
        """What a worker found, with what was left here: program, standard errors."""
        task: Task | None = None
        for (weights, bounds), result in zip(block, results, strict=True):
            if isinstance(result, SolverFailure):
                yield result
                continue
            if task is None or bounds:
                task = self.task(bounds)
            yield task.with_program(result, weights)

    def front(self, points: Sequence[SweepPoint], error: object) -> Sandwich:
        """The front of all losses, of which nothing is solved yet."""
        wanted = read_positive(error, "error")
        if wanted >= 1.0:
            raise InvalidInput(f"error: expected a share below 1, got {wanted:g}")
        return Sandwich.of(self.task(()).program, self.ends(points), wanted)

    def along(self, front: Sandwich) -> Iterator[Explanation | SolverFailure]:
        """Optima, the next where the gap is largest; a failure is the last of them."""
        task, names = self.task(()), [loss.name for loss in self.losses]
        asked, optima = front.seeds, list[Explanation]()
        start: Solution | None = None
        while asked and not front.is_reached and len(optima) < _MOST_WEIGHTS:
            result, start = self.solved(task, asked.pop(), start)
            yield result
            if isinstance(result, SolverFailure):
                return
            optima.append(result)
            if not asked:
                front.reached, weights = front.widest(FrontBounds.of(optima, names))
                asked = [weights]


def _has_zero(bounds: Sequence[Bound]) -> bool:
    """True if one of the limits is zero."""
    return any(bound.limit == 0.0 for bound in bounds)


def _results(
    job: _Job, blocks: list[_Block], workers: int
) -> Iterator[Explanation | SolverFailure]:
    if _is_shared(job.chosen):
        # a curve is shared, and a point on it costs less than a worker
        yield from job.run(blocks)
        return
    paths = [checkpoint_path("block") for _ in blocks]
    known = [_Solved.of(path) for path in paths]
    missing = [block for block, own in zip(blocks, known, strict=True) if own is None]
    calls = (partial(job.run_block, block, os.getpid()) for block in missing)
    alone = workers == 1
    here = job.run(missing)  # one program for all
    new = in_workers(calls, workers) if missing and not alone else iter(())
    try:
        for block, path, own in zip(blocks, paths, known, strict=True):
            if own is not None:
                yield from job.at_home(block, own.explanations)
            elif alone:
                one_by_one = []
                for result in itertools.islice(here, len(block)):
                    one_by_one.append(result)
                    yield result
                _Solved.keep(path, one_by_one)
            else:
                results, caught = next(new)
                for warning in caught:
                    warnings.warn(warning, stacklevel=3)
                _Solved.keep(path, results)
                yield from job.at_home(block, results)
    except SolverFailure as failure:  # what other workers found stays
        yield failure


class _Solved(Declared, kind="propopt block", noun="a block of a sweep that was kept"):
    """Neighbours of a sweep that were solved one from the other."""

    explanations: tuple[Explanation, ...] = field()

    @classmethod
    def of(cls, path: Path | None) -> _Solved | None:
        """Those that are there, and whole."""
        try:
            return None if path is None else cls.load(path)
        except (InvalidInput, OSError):
            return None

    @classmethod
    def keep(
        cls, path: Path | None, results: Sequence[Explanation | SolverFailure]
    ) -> None:
        """Write them, if none failed."""
        kept = map(_without_program, results)
        solved = [result for result in kept if isinstance(result, Explanation)]
        if path is not None and len(solved) == len(results):
            writable_folder(path.parent)
            cls(explanations=tuple(solved)).save(path)


def _without_program(
    result: Explanation | SolverFailure,
) -> Explanation | SolverFailure:
    """What a process can give to another, or to a file."""
    if isinstance(result, SolverFailure):
        return result
    return replace(result, program=None, standard_errors=None)


def _is_shared(solver: Solver | None) -> bool:
    """True for solvers that know the curve for all weights."""
    inner = solver
    while isinstance(
        inner, TransposeReduction | CompletenessReduction | ShiftReduction
    ):
        inner = inner.solver
    return isinstance(inner, Spectral | Krylov | Factored | OneBound)


def _blocks(points: Sequence[SweepPoint]) -> list[_Block]:
    """About √P neighbours each: the first is solved from nothing, in whatever process.

    Then a share of 1/√P starts cold, and √P workers can be busy.
    """
    number = max(1, math.isqrt(len(points) - 1))
    parts = np.array_split(np.arange(len(points)), number)
    return [[points[i] for i in part] for part in parts]
