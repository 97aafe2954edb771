"""Transductive or inductive: what stands beside the optima of a problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, final

import numpy as np

from propopt.inductive import GaussianProcessExplainer
from propopt.losses import GradientMatching, Objective, PropertyLoss, Smoothness
from propopt.problems.parts import part
from propopt.problems.plans import Observations, Pair, Plan
from propopt.results.explanation import Explanation
from propopt.tradeoffs.table import TradeOffs


if TYPE_CHECKING:
    from propopt.problems.problem import Problem

ROBUSTNESS = ("kernel_robustness", "pairwise_robustness")


class Setting(ABC):
    """When the inputs are known."""

    @abstractmethod
    def complete(self, trade_offs: TradeOffs, problem: Problem) -> TradeOffs:
        """The trade-offs with what the setting adds to them."""

    @abstractmethod
    def describe(self, problem: Problem) -> str | None:
        """A few words on what is added, if anything is."""


@final
@dataclass(frozen=True)
class Transductive(Setting):
    """All inputs are known at once: there is nothing beside the optima."""

    def complete(self, trade_offs: TradeOffs, problem: Problem) -> TradeOffs:
        del problem
        return trade_offs

    def describe(self, problem: Problem) -> str | None:
        del problem
        return None


@final
@dataclass(frozen=True, kw_only=True)
class Inductive(Setting):
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

    def describe(self, problem: Problem) -> str:
        return f"gradients known at {len(problem.subject.others)} inputs"

    def _explanations(
        self, optima: tuple[Explanation, ...], problem: Problem
    ) -> Iterator[Explanation]:
        losses = problem.losses
        pairs = [_pair(best) for best in optima]
        observations = _observations(problem, losses)
        for plan in self.plans:
            with part(*plan.place):
                explainer = self._explainer(pairs, losses, problem.seed)
                explanations = plan.explain(explainer, observations, pairs)
            for explanation, best in zip(explanations, optima, strict=True):
                yield _certified(explanation, best, losses)

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


def _observations(problem: Problem, losses: dict[str, PropertyLoss]) -> Observations:
    points, others = problem.subject.points, problem.subject.others
    faithfulness = losses["gradient_matching"]
    assert isinstance(faithfulness, GradientMatching)
    own = faithfulness.G
    if np.array_equal(np.asarray(points), np.asarray(others)):
        return Observations(points, points, own, own, n_shared=len(points))
    gradients = problem.subject.gradient(others)
    return Observations(points, others, np.asarray(gradients), own, n_shared=0)


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
