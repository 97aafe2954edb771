"""Sweeps: optimal explanations for many weights and limits, in blocks and workers."""

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
from propopt.losses.completeness import Constraint, bounds_of, is_completeness
from propopt.losses.faithfulness import units_of_target
from propopt.proofs.ideal_nadir import IdealNadir
from propopt.results.explanation import Explanation, explanations_of
from propopt.solvers import Krylov, Solution, Solver, Task
from propopt.solvers.curves import OneBound, Spectral
from propopt.solvers.factored import Factored
from propopt.solvers.solver import innermost
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
    """The losses and all points of a sweep, checked before anything is solved.

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
    terms = tuple(term for term in objective.terms if term[1] not in limited)
    new = tuple((1.0, loss) for loss in weighed if loss not in objective.losses)
    if not (terms or new):
        raise InvalidInput(
            "limits: all losses of the objective have limits; expected at least one "
            "loss to minimise"
        )
    whole = Objective.weighed(terms + new)
    rows = _combined(whole, weighed)
    bounds = [[Bound(loss, c) for c in limited[loss].tolist()] for loss in limited]
    return whole.losses, tuple(itertools.product(rows, itertools.product(*bounds)))


def _read(objective: Objective, swept: ByLoss, argument: str, label: str) -> _Read:
    """The values to try for each loss, checked."""
    read: _Read = {}
    user_weights: object = swept
    if not isinstance(user_weights, Mapping):
        name = objective.losses[-1].name
        raise InvalidInput(
            f"{argument}: expected values by loss, such as {{{name!r}: [0.1, 1.0]}}, "
            f"got {type(user_weights).__name__}"
        )
    for key, values in swept.items():
        loss = objective.loss(key, argument)
        if loss in read:
            raise InvalidInput(f"{argument}: {loss.name} is named twice")
        read[loss] = read_each_nonnegative(values, label.format(loss.name))
        if not read[loss].size:
            raise InvalidInput(f"{argument}: {loss.name} has no values to sweep over")
    return read


def _combined(objective: Objective, weighed: _Read) -> Array:
    """All combinations of weights (P, k), columns in the order of the losses."""
    indices = [objective.losses.index(loss) for loss in weighed]
    tried = np.array([*itertools.product(*weighed.values())], dtype=np.float64)
    rows = np.tile(objective.coefficients, (len(tried), 1))
    rows[:, indices] = tried.reshape(len(tried), len(indices))
    zero = ~rows.any(axis=1)
    if zero.any():
        named = zip(weighed, tried[np.argmax(zero)].tolist(), strict=True)
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
    """Solve an objective for many weights or limits, with one factorization.

    Parameters
    ----------
    objective : Objective
        A weighted sum of losses; weights that are not swept are fixed.
    weights : mapping
        The weights to try for each loss, in all combinations; the last loss varies
        fastest. A key is the name of a loss of the objective, or a loss itself, which
        need not be in the objective.
    limits : mapping
        The upper limits to try for each loss, with keys as for weights. Evenly spaced
        limits give an evenly spaced trade-off curve; weights do not. A loss with limits
        is bounded instead of minimised, and leaves the sum of the objective. Its weight
        in the table is the multiplier: the weight with the same optimum.
    baselines : iterable, or mapping from names
        Explanations by other methods, measured on the same losses: each an Explanation,
        a ``shap.Explanation``, a DataFrame or an array (N, D). The last two are taken
        to be in the units of the target. An iterator is read after all arguments were
        checked.
    error : float, optional
        In place of weights and limits: the whole trade-off curve of 2 to 4 losses, to
        within this share of each loss's range between its ends, such as 0.05. Weights
        are chosen one by one where the proved gap is largest. Weights of the objective
        are then ignored.
    solver, subject_to, tolerance
        As for :func:`propopt.solve`.
    n_jobs : int, optional
        Parallel workers. Blocks of about √P of the P weights are solved with warm
        starts. Blocks do not depend on the number of workers, so results have equal
        digits if BLAS has one thread (beyond 1,500 points it may have more). None means
        one worker, unless ``joblib.parallel_config`` is set.
    progress : bool, optional
        Whether to show a progress bar on standard error; by default only on a terminal.

    Returns
    -------
    TradeOffs
        One explanation per combination of weights and limits, then the baselines. After
        Ctrl-C or failures of a solver it has the finished ones, with a warning. For
        squared losses, losses come from exact curves and attributions are computed on
        first access, so hundreds of weights cost little more than one.

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

    The same curve, evenly spaced:

    >>> curve = po.sweep(objective, limits={"pairwise_robustness": [0.2, 0.4, 0.6]})
    >>> curve.to_frame()["loss.pairwise_robustness"].round(6).tolist()
    [0.2, 0.4, 0.6]

    The curve to within a twentieth of each loss's range, with few weights:

    >>> curve = po.sweep(objective, error=0.05)
    >>> len(curve.optimized), curve.error < 0.05
    (5, True)
    """
    if error is not None and not (weights is None and limits is None):
        raise InvalidInput(
            "error: the sweep chooses weights itself until that error is proved, so "
            "leave out weights and limits"
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
    traded_losses = traded.losses
    bounds = bounds_of(subject_to, traded_losses) if subject_to else ()
    job = _Job(losses, bounds, solver, goal).ready(points)
    front = None if error is None else job.front(points, error)
    fixed = [(1.0, bound.loss) for bound in bounds if bound.loss not in traded_losses]
    measured = Objective.trusted((*traded.terms, *fixed))
    optimized: list[Explanation] = []
    others: list[Explanation] = []
    failures: list[SolverFailure] = []
    interrupted = False
    n_points = len(points) if front is None else None
    units = units_of_target(traded_losses)
    try:
        read = explanations_of(baselines, "baseline", units)
        others.extend(baseline.measured(measured) for baseline in read)
        results = _results(job, blocks, workers) if front is None else job.along(front)
        with progress_bar("sweep", n_points, progress) as advance:
            for result in results:
                if isinstance(result, SolverFailure):
                    failures.append(result)
                else:
                    optimized.append(result)
                advance()
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
    for words, kind in _missing(trade_offs, n_points, error):
        warnings.warn(words, kind, stacklevel=2)
    return trade_offs


def _missing(
    trade_offs: TradeOffs, n_points: int | None, error: float | None
) -> Iterator[tuple[str, type[Warning]]]:
    """A warning, with its class, for each part of the request that is missing."""
    done = len(trade_offs.optimized)
    every = "the" if n_points is None else n_points
    if error is not None and trade_offs.error is not None and trade_offs.error > error:
        yield (
            f"error: expected at most {error:.3g} of each loss's range, and {done} "
            f"weights prove {trade_offs.error:.3g}",
            ImpreciseWarning,
        )
    if failures := trade_offs.failures:
        yield (
            f"{len(failures)} of {every} weights were not solved; the first: "
            f"{failures[0]}",
            UnsolvedWarning,
        )
    if trade_offs.interrupted:
        words = f"interrupted: {done} of {every} weights are done"
        yield words, InterruptedWarning


_MOST_WEIGHTS = 300
"""Most weights for a curve with an error: about as many as 4 losses and 0.01 take."""

_Block: TypeAlias = list[SweepPoint]


@dataclass(frozen=True, eq=False)
class _Job:
    """The losses, bounds and solver of a sweep, shared by its workers."""

    losses: tuple[PropertyLoss, ...]
    bounds: tuple[Bound, ...]
    solver: str | Solver
    tolerance: float
    chosen: Solver | None = None

    def ready(self, points: Sequence[SweepPoint]) -> _Job:
        """The job with its solver chosen; raises if no solver takes the program.

        If one limit varies and the curve of its loss is exact, that curve serves all
        limits.
        """
        _, bounds = points[0]
        task = self.task(bounds)
        chosen = task.chosen
        if isinstance(chosen, OneBound):
            chosen = OneBound(curve=chosen.curve_of(task.program))
        return self if self._is_alone(bounds) else replace(self, chosen=chosen)

    def ends(self, points: Sequence[SweepPoint]) -> IdealNadir:
        """The ends of the trade-off of all losses with a positive weight or a limit."""
        program = Program(self.losses, self.bounds + points[0][1])
        ever = np.any([weights > 0.0 for weights, _ in points], axis=0)
        weighted = {loss.name for loss, c in zip(self.losses, ever, strict=True) if c}
        return IdealNadir.of(program, weighted | {x.loss.name for x in program.bounds})

    def task(self, bounds: tuple[Bound, ...]) -> Task:
        """The task for all weights under the bounds of a point."""
        program = Program(self.losses, self.bounds + bounds)
        if self.chosen is None or self._is_alone(bounds):
            return Task(program, self.solver)
        return Task.taken(program, self.chosen)

    def _is_alone(self, bounds: tuple[Bound, ...]) -> bool:
        """Whether limits are given with row sums, so that no task is shared."""
        return bool(bounds) and any(map(is_completeness, self.bounds))

    def run(self, blocks: Sequence[_Block]) -> Iterator[Explanation | SolverFailure]:
        """One result for each point, started from the previous one of its block."""
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
        """The result at some weights, and the start of the next point."""
        began = time.perf_counter()
        try:
            if task.has_curve(weights):
                return task.on_curve(weights, self.tolerance, began), start
            solution = task.solve(weights, self.tolerance, start)
        except SolverFailure as failure:
            objective = task.program.weighed(weights)
            return SolverFailure(f"{objective!r}: {failure}"), start
        return task.explain(solution, weights, self.tolerance, began), solution

    def run_block(
        self, block: _Block, home: int
    ) -> tuple[list[Explanation | SolverFailure], list[Warning | str]]:
        """The results of a block, and warnings; no programs in a worker process."""
        if os.getpid() == home:
            return list(self.run([block])), []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")  # the filters are those of process home
            results = [_without_program(result) for result in self.run([block])]
        return results, [warning.message for warning in caught]

    def at_home(
        self, block: _Block, results: Sequence[Explanation | SolverFailure]
    ) -> Iterator[Explanation | SolverFailure]:
        """The results of a worker, with the program and standard errors restored."""
        task: Task | None = None
        for (weights, bounds), result in zip(block, results, strict=True):
            if isinstance(result, SolverFailure):
                yield result
                continue
            if task is None or bounds:
                task = self.task(bounds)
            yield task.with_program(result, weights)

    def front(self, points: Sequence[SweepPoint], error: object) -> Sandwich:
        """The trade-off curve of all losses, before any weight is solved."""
        wanted = read_positive(error, "error")
        if wanted >= 1.0:
            raise InvalidInput(
                f"error: expected a share of each loss's range, below 1, got {wanted:g}"
            )
        return Sandwich.of(self.task(()).program, self.ends(points), wanted)

    def along(self, front: Sandwich) -> Iterator[Explanation | SolverFailure]:
        """Optima, each at the weights of the largest gap, to the requested error."""
        task = self.task(())
        names = [loss.name for loss in self.losses]
        waiting = front.seeds
        optima = list[Explanation]()
        start: Solution | None = None
        while waiting and len(optima) < _MOST_WEIGHTS:
            result, start = self.solved(task, waiting.pop(), start)
            yield result
            if isinstance(result, SolverFailure):
                return
            optima.append(result)
            if not waiting:
                front.reached, weights = front.widest(FrontBounds.of(optima, names))
                if front.reached > front.error:
                    waiting = [weights]


def _results(
    job: _Job, blocks: list[_Block], workers: int
) -> Iterator[Explanation | SolverFailure]:
    if isinstance(innermost(job.chosen), Spectral | Krylov | Factored | OneBound):
        # a point on a shared curve costs less than a worker
        yield from job.run(blocks)
        return
    paths = [checkpoint_path("block") for _ in blocks]
    saved = [_Solved.of(path) for path in paths]
    missing = [block for block, done in zip(blocks, saved, strict=True) if done is None]
    calls = (partial(job.run_block, block, os.getpid()) for block in missing)
    alone = workers == 1
    solved = job.run(missing)  # one program for all
    new = in_workers(calls, workers) if missing and not alone else iter(())
    try:
        for block, path, done in zip(blocks, paths, saved, strict=True):
            if done is not None:
                yield from job.at_home(block, done.explanations)
            elif alone:
                results = []
                for result in itertools.islice(solved, len(block)):
                    results.append(result)
                    yield result
                _Solved.save_results(path, results)
            else:
                results, caught = next(new)
                for warning in caught:
                    warnings.warn(warning, stacklevel=3)
                _Solved.save_results(path, results)
                yield from job.at_home(block, results)
    except SolverFailure as failure:  # results of other workers stay
        yield failure


class _Solved(Declared, kind="propopt block", noun="a saved block of a sweep"):
    """The checkpoint of a block of a sweep."""

    explanations: tuple[Explanation, ...] = field()

    @classmethod
    def of(cls, path: Path | None) -> _Solved | None:
        """The block of a file; None if there is no complete file."""
        try:
            return None if path is None else cls.load(path)
        except (InvalidInput, OSError):
            return None

    @classmethod
    def save_results(
        cls, path: Path | None, results: Sequence[Explanation | SolverFailure]
    ) -> None:
        """Write a block, if no point failed."""
        bare = map(_without_program, results)
        solved = [result for result in bare if isinstance(result, Explanation)]
        if path is not None and len(solved) == len(results):
            writable_folder(path.parent)
            cls(explanations=tuple(solved)).save(path)


def _without_program(
    result: Explanation | SolverFailure,
) -> Explanation | SolverFailure:
    """The result without its program and standard errors, for a pipe or a file."""
    if isinstance(result, SolverFailure):
        return result
    return replace(result, program=None, standard_errors=None)


def _blocks(points: Sequence[SweepPoint]) -> list[_Block]:
    """About √P consecutive points each, so √P workers can be busy.

    The first point of each block starts cold, which is a share of 1/√P.
    """
    number = max(1, math.isqrt(len(points) - 1))
    parts = np.array_split(np.arange(len(points)), number)
    return [[points[i] for i in part] for part in parts]
