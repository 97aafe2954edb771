"""A problem made of objects: its setting, its plan, what is picked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

import numpy as np
from sklearn.base import clone

from propopt.base.checks import did_you_mean
from propopt.base.errors import InvalidInput
from propopt.base.resources import kept_result, threads_of_run
from propopt.base.words_of_others import knows_other_words
from propopt.explaining.explainers import Baseline
from propopt.explaining.sweeping import Swept, sweep
from propopt.explaining.trade_offs import TradeOffs
from propopt.functions import Function
from propopt.inductive import GaussianProcessExplainer, InducingRule
from propopt.losses import GradientMatching, Objective, PropertyLoss, Smoothness
from propopt.problems.sections import Location, part, wrong
from propopt.problems.subject.subject import Subject
from propopt.results.explanation import Explanation
from propopt.solvers import Solver, solve
from propopt.solvers.aims import Aim, AimLike


# ---- A problem: what is explained, what is minimised and swept, and what it is beside


Pick: TypeAlias = Literal["knee"] | Mapping[str, float]
"""The knee of the curve, or a weight or limit for each loss that is swept."""


def check_pick(pick: Pick, swept: Mapping[str, Sequence[float]]) -> None:
    """Refuse a pick that is not among what is swept."""
    if pick == "knee":
        return
    for name, value in pick.items():
        if name not in swept:
            hint, names = did_you_mean(name, list(swept)), ", ".join(swept)
            message = f"{name!r} is not swept{hint}; swept: {names or 'nothing'}"
            raise wrong(message, "pick", name)
        low, high = min(swept[name]), max(swept[name])
        if not low <= value <= high:
            message = f"expected a value that is swept, from {low:g} to {high:g}, got "
            raise wrong(f"{message}{value:g}", "pick", name)
    missing = [name for name in swept if name not in pick]
    if missing:
        message = f"expected a value for each loss swept; {missing[0]} has none"
        raise wrong(message, "pick")


# ---- What an inductive explanation is made from: observations, and inducing inputs


METHOD = "inductive"
Pair: TypeAlias = tuple[float, float]


@final
@knows_other_words
@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """One way to explain new inputs.

    Parameters
    ----------
    rule : str
        What it is called, as ``rule`` in the table.
    inducing : InducingRule, optional
        None is all observations.
    n_observations : int, optional
        How many gradients are known, from the first; None is all.
    own_gradients : bool
        Each new input is explained with its own gradient, too.
    place : tuple
        The part of the problem that says so.
    """

    rule: str
    inducing: InducingRule | None = None
    n_observations: int | None = None
    own_gradients: bool = False
    place: Location = ()


# ---- The inductive setting: what stands beside the optima of a problem


ROBUSTNESS = ("kernel_robustness", "pairwise_robustness")


@final
@knows_other_words
@dataclass(frozen=True, kw_only=True)
class Inductive:
    """Inputs come later: each is explained from gradients at the observations.

    The objective must have ``gradient_matching``, one of ``kernel_robustness`` and
    ``pairwise_robustness``, and perhaps ``smoothness``.

    Parameters
    ----------
    plans : tuple of Plan
        The ways to explain the new inputs.
    kernel, lengthscale, mean, jitter
        Of :class:`propopt.inductive.GaussianProcessExplainer`.
    """

    plans: tuple[Plan, ...] = (Plan(rule="all"),)
    kernel: Literal["gaussian", "matern"] = "gaussian"
    lengthscale: float | None = None
    mean: Literal["per_feature", "none", "common"] = "per_feature"
    jitter: float = 0.0

    def complete(self, trade_offs: TradeOffs, problem: Problem) -> TradeOffs:
        """Add inductive explanations under the weights of every optimum.

        The certificate of each is the lower bound on what any explanation of these
        inputs costs, which the optimum brings. After Ctrl-C those that were finished.
        """
        if trade_offs.interrupted or not trade_offs.optimized:
            return trade_offs
        explanations: list[Explanation] = []
        interrupted = False
        try:
            explanations.extend(self._explanations(trade_offs.optimized, problem))
        except KeyboardInterrupt:
            interrupted = True
        baselines = (*explanations, *trade_offs.baselines)
        return replace(trade_offs, baselines=baselines, interrupted=interrupted)

    def _explanations(
        self, optima: tuple[Explanation, ...], problem: Problem
    ) -> Iterator[Explanation]:
        losses = problem.losses
        pairs = [_pair(best) for best in optima]
        points, others = problem.subject.points, problem.subject.others
        faithfulness = losses["gradient_matching"]
        assert isinstance(faithfulness, GradientMatching)
        own = faithfulness.G
        if np.array_equal(np.asarray(points), np.asarray(others)):
            others, gradients, n_shared = points, own, len(points)
        else:
            gradients = np.asarray(problem.subject.gradient(others))
            n_shared = 0  # rows, from the first, that are in both
        for plan in self.plans:
            count = plan.n_observations
            with part(*plan.place):
                explainer = self._explainer(pairs, losses, problem.seed)
                model = clone(explainer).set_params(inducing=plan.inducing)
                model.fit(others[:count], gradients[:count])
                path = model.explain_path(points, pairs)
                if plan.own_gradients:
                    known = len(others[:count][:n_shared])
                    with_own = model.explain_path(points, pairs, gradients=own)
                    rows = [  # the first are observations already
                        [old.attributions[:known], new.attributions[known:]]
                        for new, old in zip(with_own, path, strict=True)
                    ]
                    path = [
                        replace(new, attributions=np.concatenate(parts))
                        for new, parts in zip(with_own, rows, strict=True)
                    ]
            for explanation, best in zip(path, optima, strict=True):
                told = {"rule": plan.rule, "own_gradients": plan.own_gradients}
                named = replace(
                    explanation,
                    method=METHOD,
                    parameters={**told, **explanation.parameters},
                )
                yield _certified(named, best, losses)

    def _explainer(
        self, pairs: list[Pair], losses: dict[str, PropertyLoss], seed: int
    ) -> GaussianProcessExplainer:
        """Not fitted; with the weights that need most inducing inputs."""
        smoothness = losses.get("smoothness")
        graph = smoothness.graph if isinstance(smoothness, Smoothness) else None
        return GaussianProcessExplainer(
            min(robust for robust, _ in pairs),
            max(smooth for _, smooth in pairs),
            features=graph,
            kernel=self.kernel,
            lengthscale=self.lengthscale,
            mean=self.mean,
            jitter=self.jitter,
            random_state=seed,
        )


def _pair(best: Explanation) -> Pair:
    """Weights of robustness and of smoothness beside one of gradient matching."""
    weights = best.weights
    (robustness,) = (weights[name] for name in ROBUSTNESS if name in weights)
    unit = weights["gradient_matching"]
    return robustness / unit, weights.get("smoothness", 0.0) / unit


def _certified(
    explanation: Explanation, best: Explanation, losses: dict[str, PropertyLoss]
) -> Explanation:
    """Measured at the new inputs, beside the lower bound of their optimum."""
    objective = Objective(
        tuple((best.weights[name], loss) for name, loss in losses.items())
    )
    measured = replace(
        explanation.measured(objective), weights=best.weights, quantity=best.quantity
    )
    bound = best.certificate
    if bound is None:
        return measured
    value = float(measured.objective or 0.0)
    certificate = replace(
        bound, value=value, scale=max(value, bound.scale), distance=None
    )
    return replace(measured, certificate=certificate)


@knows_other_words
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
    setting : Inductive, optional
        For inputs that come later; by default all are known at once.
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
    aim : Aim, or what stands for one, optional
        What is picked instead, solved beside the sweep; alone where nothing is swept.
    error : float, optional
        Of :func:`propopt.sweep`, in place of weights and limits.
    attributions : {"auto", "all", "none"}
        Which of them a run writes; see :func:`run_problem`.
    files : sequence of paths
        What the problem was read from: not to be written over.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from propopt.functions import Power
    >>> X, cube = np.linspace(-1, 1, 9)[:, None], Power(3)
    >>> robust = po.PairwiseRobustness(po.graphs.chain_graph(9))
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
        setting: Inductive | None = None,
        solver: str | Solver = "auto",
        tolerance: float = 1e-6,
        seed: int = 0,
        name: str = "problem",
        axes: tuple[str, str] | None = None,
        scale: Literal["linear", "log"] = "linear",
        pick: Pick = "knee",
        aim: AimLike | None = None,
        error: float | None = None,
        attributions: Literal["auto", "all", "none"] = "auto",
        files: Sequence[Path] = (),
    ) -> None:
        given = [x is not None for x in (subject, points, function)]
        if given not in ([True, False, False], [False, True, True]):
            raise InvalidInput("expected a subject, or points and a function")
        self._subject: Any = subject
        if function is not None:
            self._subject = Subject.of(points, function)
        self._objective = objective
        self.weights: dict[str, list[float]] = _listed(weights)
        self.limits: dict[str, list[float]] = _listed(limits)
        self._baselines = [
            (entry,) if isinstance(entry, Baseline) else tuple(entry)
            for entry in baselines
        ]
        self.setting = setting
        self.solver = solver
        self.tolerance = tolerance
        self.seed = seed
        self.name = name
        self._axes = axes
        self.scale = scale
        check_pick(pick, {**self.weights, **self.limits})
        self.pick = pick
        self.aim: Aim | None = None if aim is None else Aim.of(aim)
        self.error = error
        self.attributions = attributions
        self.files: tuple[Path, ...] = tuple(files)

    @cached_property
    def subject(self) -> Subject:
        """What is explained."""
        asked = self._subject
        return asked() if callable(asked) else asked

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
                how: dict[str, Any] = {"rng": self.seed, "progress": False}
                explain = partial(
                    method.explain, self.subject.sloped, self.points, **how
                )
                with part("baselines", place):
                    explanation = kept_result("baseline", explain, Explanation)
                yield explanation

    def picked(self, trade_offs: TradeOffs) -> Explanation:
        """The optimum of the aim; else at the knee, or nearest to the pick.

        Raises
        ------
        InvalidInput
            If nothing was optimized, or not all that it is picked from.
        """
        pick, swept = self.pick, {**self.weights, **self.limits}
        if self.aim is not None:
            if trade_offs.aimed is None:
                raise InvalidInput("aim: it was not solved")
            return trade_offs.aimed
        if pick == "knee":
            return trade_offs.knee(*self.axes)
        nearest = {
            name: min(values, key=lambda value: abs(value - pick[name]))
            for name, values in swept.items()
        }
        combinations = list(itertools.product(*swept.values()))
        if len(combinations) == len(trade_offs.optimized):
            return trade_offs.optimized[combinations.index(tuple(nearest.values()))]
        for best in trade_offs.optimized:
            if not self.limits and all(best.weights[n] == nearest[n] for n in nearest):
                return best
        raise InvalidInput(
            "pick: not all of the sweep was solved, so that it is not known"
        )

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
            how: Any = {"solver": solver or self.solver, "tolerance": self.tolerance}
            trade_offs = sweep(
                self._whole,
                None if self.error else self.weights,
                baselines,
                limits=None if self.error else self.limits,
                error=self.error,
                n_jobs=n_jobs,
                progress=progress,
                **how,
            )
            if self.aim is not None and not trade_offs.interrupted:
                with part("aim"):
                    best = solve(self._whole, aim=self.aim, **how)
                is_swept = self.swept or self.error
                others = trade_offs.optimized if is_swept else ()
                trade_offs = replace(trade_offs, optimized=(*others, best))
            if self.setting is None:
                return trade_offs
            return self.setting.complete(trade_offs, self)

    @cached_property
    def _whole(self) -> Objective:
        if isinstance(self._objective, Objective | PropertyLoss):
            return Objective.of(self._objective)
        return self._objective()


def _listed(swept: Mapping[str, Swept] | None) -> dict[str, list[float]]:
    return {
        name: np.atleast_1d(values).tolist() for name, values in (swept or {}).items()
    }
