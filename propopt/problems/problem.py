"""A problem: what is explained, what is minimised and swept, and what it is beside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from propopt.errors import InvalidInput
from propopt.explainers import Baseline
from propopt.functions import Function
from propopt.losses import Objective, PropertyLoss
from propopt.problems.parts import part
from propopt.problems.pick import Pick, check_pick, picked
from propopt.problems.setting import Setting, Transductive
from propopt.problems.subject.subject import Subject
from propopt.results.explanation import Explanation
from propopt.solvers import Solver
from propopt.threads import threads_of_run
from propopt.tradeoffs.plan import Swept
from propopt.tradeoffs.sweep import sweep
from propopt.tradeoffs.table import TradeOffs


class Problem:
    """A function at some points, what to minimise and sweep, what to compare with.

    What a problem file describes, and what can as well be made of objects. Nothing is
    computed before it is asked for.

    Parameters
    ----------
    subject : Subject, or a callable that gives it, optional
        What is explained; or ``points`` and ``function``.
    points : array or DataFrame (N, D), optional
        X.
    function : Function, optional
        See :func:`propopt.wrap`.
    objective : Objective, or a callable that gives it
        All losses weighed, those with limits among them; a callable is asked when it is
        first needed.
    weights : mapping, optional
        The weights to try, by the name of a loss.
    limits : mapping, optional
        The upper limits to try, by the name of a loss: it leaves the weighted sum and
        is bounded instead.
    baselines : sequence, optional
        Baselines, or lists of them, each explaining the points by ``seed``.
    setting : Setting
        :class:`Transductive`, or :class:`Inductive` for inputs that come later.
    solver, tolerance
        As for :func:`propopt.solve`.
    seed : int
        Of baselines and the setting.
    name : str
        What the files written are called.
    axes : pair of str, optional
        The losses to draw; by default the first two.
    scale : {"linear", "log"}
        Of the axes.
    pick : "knee" or mapping
        The optimum whose attributions are written as a table: that at the knee, or
        nearest to a weight or limit for each loss that is swept.
    attributions : {"auto", "all", "none"}
        Which of them a run writes; see :func:`run_problem`.
    files : sequence of paths
        What the problem was read from: not to be written over.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from propopt.functions import Power
    >>> X, cube = np.linspace(-1, 1, 9)[:, None], Power(3)
    >>> robust = po.PairwiseRobustness(po.chain_graph(9))
    >>> problem = po.problems.Problem(
    ...     points=X,
    ...     function=cube,
    ...     objective=po.GradientMatching(cube.gradient(X)) + robust,
    ...     weights={"pairwise_robustness": [0.1, 1.0]},
    ...     baselines=[po.explainers.Gradient()],
    ... )
    >>> found = problem.sweep(problem.baselines())
    >>> len(found.optimized), found.quantity.in_words()
    (2, 'prediction of Power')
    """

    def __init__(
        self,
        *,
        objective: Objective | PropertyLoss | Callable[[], Objective],
        subject: Subject | Callable[[], Subject] | None = None,
        points: Any = None,
        function: Function | None = None,
        weights: Mapping[str, Swept] | None = None,
        limits: Mapping[str, Swept] | None = None,
        baselines: Sequence[Baseline | Sequence[Baseline]] = (),
        setting: Setting | None = None,
        solver: str | Solver = "auto",
        tolerance: float = 1e-6,
        seed: int = 0,
        name: str = "problem",
        axes: tuple[str, str] | None = None,
        scale: Literal["linear", "log"] = "linear",
        pick: Pick = "knee",
        attributions: Literal["auto", "all", "none"] = "auto",
        files: Sequence[Path] = (),
    ) -> None:
        self._subject = _one_subject(subject, points, function)
        self._objective = objective
        self.weights = _listed(weights)
        self.limits = _listed(limits)
        self._baselines = tuple(_group(entry) for entry in baselines)
        self.setting = setting or Transductive()
        self.solver = solver
        self.tolerance = tolerance
        self.seed = seed
        self.name = name
        self._axes = axes
        self.scale = scale
        check_pick(pick, {**self.weights, **self.limits})
        self.pick = pick
        self.attributions = attributions
        self.files = tuple(files)

    @cached_property
    def subject(self) -> Subject:
        """What is explained."""
        subject = self._subject
        return subject if isinstance(subject, Subject) else subject()

    @property
    def points(self) -> Any:
        """X, an array or a DataFrame (N, D)."""
        return self.subject.points

    @property
    def function(self) -> Function:
        """The function to explain."""
        return self.subject.function

    @cached_property
    def losses(self) -> dict[str, PropertyLoss]:
        """All losses by name, weighed or limited."""
        return {loss.name: loss for loss in self._whole.losses}

    @property
    def objective(self) -> Objective:
        """The weighted losses, without those that have limits."""
        terms = self._whole.terms
        return Objective(tuple(t for t in terms if t[1].name not in self.limits))

    @property
    def swept(self) -> list[str]:
        """The losses whose weight, or limit and so multiplier, varies."""
        return [*self.weights, *self.limits]

    @property
    def axes(self) -> tuple[str, str]:
        """The losses on the axes of the plot."""
        if self._axes is not None:
            return self._axes
        first, second, *_ = (*self.losses, *self.losses)
        return first, second

    @property
    def methods(self) -> list[Baseline]:
        """The baselines, before they explain anything."""
        return [method for group in self._baselines for method in group]

    def baselines(self) -> Iterator[Explanation]:
        """The explanations of the baselines, each made when it is asked for."""
        for place, group in enumerate(self._baselines):
            for method in group:
                with part("baselines", place):
                    explanation = method.explain(
                        self.subject.sloped,
                        self.points,
                        rng=self.seed,
                        progress=False,
                    )
                yield explanation

    def picked(self, trade_offs: TradeOffs) -> Explanation:
        """The optimum at the knee, or nearest to the pick.

        Raises
        ------
        InvalidInput
            If nothing was optimized, or not all that it is picked from.
        """
        return picked(trade_offs, self.pick, self.weights, self.limits, self.axes)

    def sweep(
        self,
        baselines: Iterable[Explanation] = (),
        *,
        solver: str | None = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> TradeOffs:
        """Solve for all weights and limits, beside these baselines.

        In the inductive setting explanations that were made without the new inputs come
        before the baselines.
        """
        with threads_of_run(self.subject.n_rows):
            trade_offs = sweep(
                self._whole,
                self.weights,
                baselines,
                limits=self.limits,
                solver=solver or self.solver,
                tolerance=self.tolerance,
                n_jobs=n_jobs,
                progress=progress,
            )
            return self.setting.complete(trade_offs, self)

    @cached_property
    def _whole(self) -> Objective:
        if isinstance(self._objective, Objective | PropertyLoss):
            return Objective.of(self._objective)
        return self._objective()


def _one_subject(
    subject: Subject | Callable[[], Subject] | None,
    points: Any,
    function: Function | None,
) -> Subject | Callable[[], Subject]:
    if subject is not None and points is None and function is None:
        return subject
    if subject is None and points is not None and function is not None:
        return Subject.of(points, function)
    raise InvalidInput("expected a subject, or points and a function")


def _listed(swept: Mapping[str, Swept] | None) -> dict[str, list[float]]:
    return {
        name: np.atleast_1d(values).tolist() for name, values in (swept or {}).items()
    }


def _group(entry: Baseline | Sequence[Baseline]) -> tuple[Baseline, ...]:
    return (entry,) if isinstance(entry, Baseline) else tuple(entry)
