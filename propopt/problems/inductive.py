"""The inductive setting of a problem file: a Gaussian process from gradients.

A new rule for inducing inputs is a section here and an entry of ``RULES``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
from pydantic import Field

from propopt import inductive
from propopt.explaining.trade_offs import TradeOffs
from propopt.losses import Objective
from propopt.problems.problem import Problem
from propopt.problems.sections import (
    Count,
    Finite,
    Nonnegative,
    OneOf,
    Positive,
    Section,
    part,
    section_of,
    wrong,
)
from propopt.results.explanation import Explanation


METHOD: Final = "inductive"
ROBUSTNESS: Final = ("kernel_robustness", "pairwise_robustness")


class InducingSection(Section):
    """A rule for inducing inputs, with one explanation of new inputs for each count.

    All rules except ``subset`` use the gradients of all observations.
    """

    rule: str
    with_gradients: Annotated[
        bool,
        Field(
            description="explain each new input with its own gradient as one more "
            "observation, unless it is one of the observations already",
        ),
    ] = False


class AllInputs(InducingSection):
    """All observations are inducing inputs."""

    rule: Literal["all"]


NumbersOfInputs: TypeAlias = Annotated[list[Count], Field(min_length=1)]
"""Numbers of inputs, with one explanation for each."""


class SubsetInputs(InducingSection):
    """Only the first observations are used, without the other gradients."""

    rule: Literal["subset"]
    counts: NumbersOfInputs


def _rule(rule: str, made: Any, **overrides: Any) -> type[InducingSection]:
    """The section of a rule for a number of inputs, with the settings of its class."""
    return section_of(
        made,
        InducingSection,
        f"{made.__name__}Rule",
        without=("count", "max_count"),
        rule=Literal[rule],
        counts=(NumbersOfInputs, None),
        **overrides,
    )


RULES: Final[tuple[type[InducingSection], ...]] = (
    AllInputs,
    SubsetInputs,
    _rule("random", inductive.RandomInputs),
    _rule("farthest", inductive.FarthestInputs),
    _rule(
        "greedy",
        inductive.GreedyVariance,
        tolerance="stop before the count if at most this share is unexplained",
    ),
    section_of(
        inductive.GivenInputs,
        InducingSection,
        "GivenRule",
        "Inducing inputs that the file lists.",
        rule=Literal["given"],
        inputs=(Annotated[list[list[Finite]], Field(min_length=1)], None),
    ),
)
AnyInducing: TypeAlias = Annotated[InducingSection, OneOf("rule", RULES)]

_BY_DEFAULT: Final = "by default that of kernel_robustness in the objective, or"


@partial(
    section_of,
    inductive.GaussianProcessExplainer,
    without=(
        "robustness",
        "smoothness",
        "features",
        "scale",
        "optimize",
        "random_state",
    ),
    inducing=(
        Annotated[list[AnyInducing], Field(min_length=1)],
        "rules, each of which explains the new inputs",
        [AllInputs(rule="all")],
    ),
    kernel=(Literal["gaussian", "matern"], None),
    lengthscale=(
        Positive | None,
        f"{_BY_DEFAULT} the median distance of the observations",
    ),
    mean=(
        Literal["per_feature", "none", "common"] | None,
        f"{_BY_DEFAULT} per_feature",
        None,
    ),
    jitter=(Nonnegative, None),
)
class InductiveSection(Section):
    """A Gaussian process that explains inputs from gradients at other inputs.

    Its weights are those of the objective, divided by the weight of gradient matching;
    its feature graph is that of smoothness in the objective.
    """

    def check_size(self, n_observed: int) -> None:
        """Refuse a number of inputs above that of the observations."""
        for index, rule in enumerate(self.settings()["inducing"]):
            for number, count in enumerate(getattr(rule, "counts", ())):
                if count > n_observed:
                    raise wrong(
                        f"expected at most {n_observed}, the number of observations, "
                        f"got {count}",
                        "inductive",
                        "inducing",
                        index,
                        "counts",
                        number,
                    )

    def complete(self, trade_offs: TradeOffs, problem: Problem) -> TradeOffs:
        """Add inductive explanations for the weights of every optimum.

        Their certificates have the lower bound of the optimum, which holds for all
        explanations of these inputs. After Ctrl-C the finished ones are added.
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
        losses: Any = problem.losses
        pairs = [_pair(best) for best in optima]
        points = problem.points
        inputs = problem.subject.others
        gradients_of_points = losses["gradient_matching"].G
        if np.array_equal(np.asarray(points), np.asarray(inputs)):
            inputs = points
            gradients = gradients_of_points
            n_shared = len(points)
        else:
            gradients = np.asarray(problem.subject.gradient(inputs))
            n_shared = 0  # the first rows, which are in both
        for rule, inducing, count, index in self._rules():
            with part("inductive", "inducing", index):
                model = self._explainer(pairs, problem).set_params(inducing=inducing)
                model.fit(inputs[:count], gradients[:count])
                path = model.explain_path(points, pairs)
                if rule.with_gradients:
                    n_shared_here = len(inputs[:count][:n_shared])
                    with_gradients = model.explain_path(
                        points, pairs, gradients=gradients_of_points
                    )
                    path = [  # the first rows already are observations
                        replace(
                            new,
                            attributions=np.concatenate(
                                [
                                    old.attributions[:n_shared_here],
                                    new.attributions[n_shared_here:],
                                ]
                            ),
                        )
                        for new, old in zip(with_gradients, path, strict=True)
                    ]
            settings = {"rule": rule.rule, "with_gradients": rule.with_gradients}
            for explanation, best in zip(path, optima, strict=True):
                parameters = {**settings, **explanation.parameters}
                named = replace(explanation, method=METHOD, parameters=parameters)
                yield _certified(named, best, losses)

    def _rules(self) -> Iterator[tuple[Any, Any, int | None, int]]:
        """Each rule with its inducing inputs, number of observations, and index."""
        rules: Any = self.settings()["inducing"]
        for index, rule in enumerate(rules):
            for count in getattr(rule, "counts", [None]):
                if rule.makes is None:
                    yield rule, None, count, index
                else:
                    yield rule, rule.make(count=count, max_count=count), None, index

    def _explainer(
        self, pairs: list[tuple[float, float]], problem: Problem
    ) -> inductive.GaussianProcessExplainer:
        """The unfitted explainer, for the weights that need most inducing inputs.

        Defaults of the prior come from kernel_robustness in the objective.
        """
        settings = self.settings("inducing")
        defaults = {"mean": "per_feature"}
        kernel = problem.keys.losses.get("kernel_robustness")
        if kernel is not None:
            defaults |= {x: kernel.settings()[x] for x in ("lengthscale", "mean")}
        settings |= {
            name: settings[name] or defaults.get(name)
            for name in ("lengthscale", "mean")
        }
        smoothness: Any = problem.losses.get("smoothness")
        return inductive.GaussianProcessExplainer(
            min(robust for robust, _ in pairs),
            max(smooth for _, smooth in pairs),
            features=None if smoothness is None else smoothness.graph,
            random_state=problem.keys.seed,
            **settings,
        )


def _pair(best: Explanation) -> tuple[float, float]:
    """Weights of robustness and smoothness, relative to gradient matching."""
    weights = best.weights
    (robustness,) = (weights[name] for name in ROBUSTNESS if name in weights)
    unit = weights["gradient_matching"]
    return robustness / unit, weights.get("smoothness", 0.0) / unit


def _certified(explanation: Explanation, best: Explanation, losses: Any) -> Explanation:
    """The explanation with its losses, and the lower bound of the optimum."""
    terms = tuple((best.weights[name], loss) for name, loss in losses.items())
    measured = replace(
        explanation.measured(Objective(terms)),
        weights=best.weights,
        quantity=best.quantity,
    )
    bound = best.certificate
    if bound is None:
        return measured
    value = float(measured.objective or 0.0)
    scale = max(value, bound.scale)
    certificate = replace(bound, value=value, scale=scale, distance=None)
    return replace(measured, certificate=certificate)
