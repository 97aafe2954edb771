"""The sweep of a problem file: its parts, its solution, and the selected optimum."""

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
    """Objective, weights and baselines of a problem file, computed on demand.

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
    >>> trade_offs = problem.sweep(problem.baselines())
    >>> len(trade_offs.optimized), trade_offs.quantity.in_words()
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
        """The data and the function that the problem explains."""
        return self.file.subject

    @property
    def points(self) -> Any:
        """The explained points X, an array or a DataFrame (N, D)."""
        return self.subject.points

    @property
    def function(self) -> Function:
        """The function that is explained."""
        return self.subject.function

    @property
    def tolerance(self) -> float:
        """The requested certified relative gap."""
        tolerance: float = self.keys.tolerance
        return tolerance

    @cached_property
    def _whole(self) -> Objective:
        """The weighted sum of all losses, including those with limits."""
        with self.file.source.locating_errors():
            whole: Objective = self.keys.objective.build(self.subject)
        return whole

    @property
    def losses(self) -> dict[str, PropertyLoss]:
        """All losses by name, with weights or limits."""
        return {loss.name: loss for loss in self._whole.losses}

    @property
    def objective(self) -> Objective:
        """The weighted sum of the losses without limits."""
        terms = [t for t in self._whole.terms if t[1].name not in self.limits]
        return Objective.trusted(tuple(terms))

    @property
    def axes(self) -> tuple[str, str]:
        """Names of the losses on the axes of the plot, by default the first two."""
        plot = self.keys.plot
        if plot is not None:
            return plot.x, plot.y
        first, second = (list(self.losses) * 2)[:2]
        return first, second

    @property
    def methods(self) -> list[Baseline]:
        """The baselines, before they are computed."""
        return [method for group in self._baselines for method in group]

    def baselines(self) -> Iterator[Explanation]:
        """Explanations of the baselines, each computed on demand."""
        for index, group in enumerate(self._baselines):
            for method in group:
                explain = partial(
                    method.explain,
                    self.subject.function_with_slopes,
                    self.points,
                    rng=self.keys.seed,
                    progress=False,
                )
                with part("baselines", index):
                    explanation = checkpointed_result("baseline", explain, Explanation)
                yield explanation

    def picked(self, trade_offs: TradeOffs) -> Explanation:
        """The optimum that summaries show: by the aim, else the knee of the curve.

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
        """Solve for all weights and limits of the problem, and compare with baselines.

        In the inductive setting, explanations from other inputs precede the baselines.

        Parameters
        ----------
        baselines : iterable of Explanation
            Explanations (N, D) by other methods, measured on the same losses.
        solver : str, optional
            The name of a solver; by default that of the file.
        progress : bool, optional
            Whether to show a progress bar; None shows it on a terminal.

        Returns
        -------
        TradeOffs
            Optimized explanations, and that of the aim as the last of these. Baselines
            follow.

        Raises
        ------
        InvalidInput
            If an explanation or the name of the solver is invalid.
        Refused
            If the solver does not support the objective, with the reason.
        Infeasible
            If no attributions satisfy all bounds, with attainable ones.
        SolverFailure
            If the backend stopped without a solution.
        """
        keys = self.keys
        options: Any = {
            "solver": solver or keys.solver,
            "tolerance": self.tolerance,
        }
        # an error takes neither, and is refused next to one
        weights = self.weights or None if keys.error else self.weights
        limits = self.limits or None if keys.error else self.limits
        with threads_of_run(self.subject.n_rows):
            trade_offs = sweep(
                self._whole,
                weights,
                baselines,
                limits=limits,
                error=keys.error,
                n_jobs=self.file.n_jobs,
                progress=progress,
                **options,
            )
            if keys.aim is not None and not trade_offs.interrupted:
                with part("aim"):
                    aim = keys.aim if keys.aim == "knee" else keys.aim.build()
                    best = solve(self._whole, aim=aim, **options)
                is_swept = self.weights or self.limits or keys.error
                others = trade_offs.optimized if is_swept else ()
                trade_offs = replace(trade_offs, optimized=(*others, best))
            if keys.setting == "inductive":
                return keys.inductive.complete(trade_offs, self)
            return trade_offs
