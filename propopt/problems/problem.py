"""The sweep that a problem file asks for, part by part, and what is picked of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from propopt.base.checkpoints import checkpointed_result
from propopt.base.errors import InvalidInput
from propopt.base.resources import threads_of_run
from propopt.base.suggestions import suggests_arguments
from propopt.explaining.explainers import Baseline
from propopt.explaining.sweeping import sweep
from propopt.explaining.trade_offs import TradeOffs
from propopt.functions import Function
from propopt.losses import Objective, PropertyLoss
from propopt.problems.sections import listed_values, part
from propopt.problems.subject.data import ProblemFile
from propopt.problems.subject.subject import Subject
from propopt.results.explanation import Explanation
from propopt.solvers import solve


@suggests_arguments
class Problem:
    """Objective, weights and baselines of a problem file.

    Nothing is computed before it is asked for.

    Parameters
    ----------
    file : ProblemFile
        A file with an objective.

    Examples
    --------
    >>> import propopt as po
    >>> grid = {"low": -1, "high": 1, "per_dimension": 9, "dimensions": 1}
    >>> sections = {
    ...     "data": {"grid": grid},
    ...     "function": {"name": "power", "degree": 3},
    ...     "objective": {"gradient_matching": 1, "pairwise_robustness": 1},
    ...     "sweep": {"pairwise_robustness": [0.1, 1.0]},
    ... }
    >>> problem = po.problems.read_sections(sections).build()
    >>> found = problem.sweep(problem.baselines())
    >>> len(found.optimized), found.quantity.in_words()
    (2, 'prediction of Power')
    """

    def __init__(self, file: ProblemFile) -> None:
        keys: Any = file.schema
        self.file: ProblemFile = file
        self.keys: Any = keys
        self.name: str = file.name
        self.weights: dict[str, list[float]] = {
            name: listed_values(x) for name, x in keys.sweep.items()
        }
        self.limits: dict[str, list[float]] = {
            name: listed_values(x) for name, x in keys.limits.items()
        }
        self._baselines: list[list[Baseline]] = keys.build_baselines()

    @property
    def subject(self) -> Subject:
        """What is explained."""
        return self.file.subject

    @property
    def points(self) -> Any:
        """X, an array or a DataFrame (N, D)."""
        return self.subject.points

    @property
    def function(self) -> Function:
        """The function to explain."""
        return self.subject.function

    @property
    def tolerance(self) -> float:
        """The certified gap that is wanted."""
        tolerance: float = self.keys.tolerance
        return tolerance

    @cached_property
    def _whole(self) -> Objective:
        """All losses weighted, those with limits among them."""
        with self.file.source.locating_errors():
            whole: Objective = self.keys.objective.build(self.subject)
        return whole

    @property
    def losses(self) -> dict[str, PropertyLoss]:
        """All losses by name, weighted or limited."""
        return {loss.name: loss for loss in self._whole.losses}

    @property
    def objective(self) -> Objective:
        """The weighted losses, without those that have limits."""
        terms = self._whole.terms
        return Objective(tuple(t for t in terms if t[1].name not in self.limits))

    @property
    def axes(self) -> tuple[str, str]:
        """The losses on the axes of the plot, by default the first two."""
        plot = self.keys.plot
        if plot is not None:
            return plot.x, plot.y
        first, second, *_ = (*self.losses, *self.losses)
        return first, second

    @property
    def methods(self) -> list[Baseline]:
        """The baselines, before they explain anything."""
        return [method for group in self._baselines for method in group]

    def baselines(self) -> Iterator[Explanation]:
        """The explanations of the baselines, each made when it is asked for."""
        how: dict[str, Any] = {"rng": self.keys.seed, "progress": False}
        for place, group in enumerate(self._baselines):
            for method in group:
                explain = partial(
                    method.explain, self.subject.sloped, self.points, **how
                )
                with part("baselines", place):
                    explanation = checkpointed_result("baseline", explain, Explanation)
                yield explanation

    def picked(self, trade_offs: TradeOffs) -> Explanation:
        """The optimum of the aim; else at the knee.

        Raises
        ------
        InvalidInput
            If nothing was optimized.
        """
        if self.keys.aim is None:
            return trade_offs.knee(*self.axes)
        if trade_offs.aimed is None:
            raise InvalidInput("aim: it was not solved")
        return trade_offs.aimed

    def sweep(
        self,
        baselines: Iterable[Explanation] = (),
        *,
        solver: str | None = None,
        progress: bool | None = None,
    ) -> TradeOffs:
        """Solve for all weights and limits, beside these baselines.

        In the inductive setting explanations that were made without the new inputs come
        before the baselines.
        """
        keys = self.keys
        how: Any = {
            "solver": solver or keys.solver,
            "tolerance": self.tolerance,
        }
        with threads_of_run(self.subject.n_rows):
            trade_offs = sweep(
                self._whole,
                None if keys.error else self.weights,
                baselines,
                limits=None if keys.error else self.limits,
                error=keys.error,
                n_jobs=self.file.n_jobs,
                progress=progress,
                **how,
            )
            if keys.aim is not None and not trade_offs.interrupted:
                with part("aim"):
                    aim = keys.aim if keys.aim == "knee" else keys.aim.build()
                    best = solve(self._whole, aim=aim, **how)
                is_swept = self.weights or self.limits or keys.error
                others = trade_offs.optimized if is_swept else ()
                trade_offs = replace(trade_offs, optimized=(*others, best))
            if keys.setting == "inductive":
                return keys.inductive.complete(trade_offs, self)
            return trade_offs
