"""Transductive or inductive: what stands beside the optima of a problem file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from propopt.inductive import GaussianProcessExplainer
from propopt.losses import GradientMatching, Objective, PropertyLoss, Smoothness
from propopt.problems.plans import Observations, Pair, plans
from propopt.problems.schema import ProblemSchema, WeightRange
from propopt.problems.source import Source
from propopt.problems.tables import Subject
from propopt.results.explanation import Explanation
from propopt.tradeoffs.table import TradeOffs


ROBUSTNESS = ("kernel_robustness", "pairwise_robustness")
_PROPERTIES = ("gradient_matching", *ROBUSTNESS, "smoothness")


class Setting(ABC):
    """When the inputs are known."""

    @abstractmethod
    def complete(self, trade_offs: TradeOffs) -> TradeOffs:
        """The trade-offs with what the setting adds to them."""

    @abstractmethod
    def describe(self) -> str | None:
        """A few words on what is added, if anything is."""


@final
@dataclass(frozen=True)
class Transductive(Setting):
    """All inputs are known at once: there is nothing beside the optima."""

    def complete(self, trade_offs: TradeOffs) -> TradeOffs:
        return trade_offs

    def describe(self) -> str | None:
        return None


@final
@dataclass(frozen=True, eq=False)
class Inductive(Setting):
    """Inputs come later: each is explained from gradients at the observations.

    Parameters
    ----------
    schema, source
        The file.
    explained : Subject
        New inputs, observations and the function.
    losses : mapping
        The losses of the file at the new inputs, by name.
    """

    schema: ProblemSchema
    source: Source
    explained: Subject
    losses: Mapping[str, PropertyLoss]

    def complete(self, trade_offs: TradeOffs) -> TradeOffs:
        """Add inductive explanations under the weights of every optimum.

        The certificate of each is the lower bound on what any explanation of these
        inputs costs, which the optimum brings. After Ctrl-C those that were finished.
        """
        if trade_offs.interrupted or not trade_offs.optimized:
            return trade_offs
        made: list[Explanation] = []
        interrupted = False
        try:
            made.extend(self._explanations(trade_offs.optimized))
        except KeyboardInterrupt:
            interrupted = True
        baselines = (*made, *trade_offs.baselines)
        return replace(trade_offs, baselines=baselines, interrupted=interrupted)

    def describe(self) -> str:
        return f"gradients known at {len(self.explained.others)} inputs"

    def _explanations(self, optima: tuple[Explanation, ...]) -> Iterator[Explanation]:
        pairs = [self._pair(best) for best in optima]
        known = self._known()
        for plan in plans(self.schema.inductive.inducing, known):
            with self.source.blaming(*plan.place):
                found = plan.explain(self._explainer(pairs), known, pairs)
            for explanation, best in zip(found, optima, strict=True):
                yield self._certified(explanation, best)

    def _known(self) -> Observations:
        points, others = self.explained.points, self.explained.others
        faithfulness = self.losses["gradient_matching"]
        assert isinstance(faithfulness, GradientMatching)
        own = faithfulness.G
        if self.schema.data.explain is None:
            return Observations(points, points, own, own, n_shared=len(points))
        gradients = self.explained.function.gradient(others)
        return Observations(points, others, np.asarray(gradients), own, n_shared=0)

    def _pair(self, best: Explanation) -> Pair:
        """Weights of robustness and of smoothness beside one of gradient matching."""
        weights = best.weights
        (robustness,) = (weights[name] for name in ROBUSTNESS if name in weights)
        unit = weights["gradient_matching"]
        return robustness / unit, weights.get("smoothness", 0.0) / unit

    def _explainer(self, pairs: list[Pair]) -> GaussianProcessExplainer:
        """Not fitted; with the weights that need most inducing inputs."""
        spec, kernel = self.schema.inductive, self.schema.objective.kernel_robustness
        scale, mean = (
            (None, None) if kernel is None else (kernel.lengthscale, kernel.mean)
        )
        smoothness = self.losses.get("smoothness")
        graph = smoothness.graph if isinstance(smoothness, Smoothness) else None
        return GaussianProcessExplainer(
            min(robust for robust, _ in pairs),
            max(smooth for _, smooth in pairs),
            features=graph,
            kernel=spec.kernel,
            lengthscale=spec.lengthscale or scale,
            mean=spec.mean or mean or "per_feature",
            jitter=spec.jitter,
            rng=self.schema.seed,
        )

    def _certified(self, found: Explanation, best: Explanation) -> Explanation:
        """Measured at the new inputs, beside the lower bound of their optimum."""
        objective = Objective(
            tuple((best.weights[name], loss) for name, loss in self.losses.items())
        )
        measured = replace(found.measured(objective), weights=best.weights)
        bound = best.certificate
        if bound is None:
            return measured
        value = float(measured.objective or 0.0)
        certificate = replace(
            bound, value=value, scale=max(value, bound.scale), distance=None
        )
        return replace(measured, certificate=certificate)


def check_setting(schema: ProblemSchema, source: Source) -> None:
    """Refuse what has no meaning in the setting of a file.

    Raises
    ------
    ProblemFileError
        For ``inductive`` in the transductive setting, and in the inductive one for
        losses, limits, weights and columns that it does not know.
    """
    if schema.setting == "transductive":
        if "inductive" in schema.model_fields_set:
            raise source.error(
                ("inductive",), "has no effect without setting: inductive"
            )
        return
    _check_losses(schema, source)
    _check_weights(schema, source)
    if schema.limits:
        raise source.error(
            ("limits",), "the inductive setting knows weights alone; give sweep instead"
        )
    for name in ("categorical", "groups"):
        if getattr(schema.data, name):
            raise source.error(
                ("data", name), "the inductive setting needs columns that are numbers"
            )


def _check_losses(schema: ProblemSchema, source: Source) -> None:
    """Gradient matching, one robustness, and perhaps smoothness."""
    given = schema.objective.given
    for name in given:
        if name not in _PROPERTIES:
            raise source.error(
                ("objective", name),
                f"the inductive setting knows {', '.join(_PROPERTIES)} alone",
            )
    faithfulness = schema.objective.gradient_matching
    if faithfulness is None or sum(name in given for name in ROBUSTNESS) != 1:
        raise source.error(
            ("objective",),
            "the inductive setting needs gradient_matching, and either "
            "kernel_robustness or pairwise_robustness",
        )
    if faithfulness.norm != "l2":
        raise source.error(
            ("objective", "gradient_matching", "norm"),
            f"the inductive setting needs 'l2', got {faithfulness.norm!r}",
        )


def _check_weights(schema: ProblemSchema, source: Source) -> None:
    """No weight of zero for what carries from one input to another."""
    for name, loss in schema.objective.given.items():
        if name == "smoothness":
            continue
        swept = schema.sweep.get(name, [loss.weight])
        values = swept.values if isinstance(swept, WeightRange) else swept
        if min(values) == 0.0:
            place = "sweep" if name in schema.sweep else "objective"
            raise source.error(
                (place, name),
                "the inductive setting needs a weight > 0; with none, gradients at "
                "some inputs say nothing of another",
            )
