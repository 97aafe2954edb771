"""Targets that are drawn on until their error costs little."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from propopt.checks import read_positive
from propopt.errors import ImpreciseWarning
from propopt.estimates import Estimate
from propopt.explaining.target import TargetRule
from propopt.functions.cost import cost_of
from propopt.functions.smoothing.sampled import SampledMean
from propopt.results.explanation import Explanation


@final
@dataclass(frozen=True, kw_only=True)
class Effort:
    """How precise a target has to be, and what that may cost.

    Parameters
    ----------
    precision : float or None
        The relative target error that is wanted; None takes what the first draws give.
    max_evaluations : int or None
        The most rows that the model is given for draws.
    progress : bool or None
        Whether to say before what they cost; by default where they take long.
    """

    precision: float | None = None
    max_evaluations: int | None = None
    progress: bool | None = None

    def spent(
        self, rule: TargetRule, X: Any, explain: Callable[[Estimate], Explanation]
    ) -> Explanation:
        """The explanation of a target that is precise, or of the best one affordable.

        Parameters
        ----------
        rule : TargetRule
            How the target is made.
        X : array or DataFrame (N, D)
            The rows.
        explain : callable
            From a target to the explanation that is optimal for it.

        Warns
        -----
        ImpreciseWarning
            If the target error is larger than wanted, or not known.
        """
        if isinstance(rule.function, SampledMean):
            best = explain(self._drawn(rule, rule.function, X, explain))
        else:
            best = explain(rule.of(X))
        if self.precision is not None and not best.target_error <= self.precision:
            warnings.warn(self._complaint(best), ImpreciseWarning, stacklevel=4)
        return best

    def _drawn(
        self,
        rule: TargetRule,
        mean: SampledMean,
        X: Any,
        explain: Callable[[Estimate], Explanation],
    ) -> Estimate:
        points, labels = mean.read(X)
        cost = cost_of(mean.function, points, labels, mean.evaluations(X))
        with cost.announced("explain: the first draws", mean.calls, self.progress):
            growing = mean.growing(X, max_evaluations=self.max_evaluations)
        if self.precision is not None:
            growing = growing.until(
                lambda estimate: explain(rule.scaled(estimate)).target_error,
                read_positive(self.precision, "precision"),
                self.max_evaluations,
            )
        return rule.scaled(growing.estimate)

    def _complaint(self, best: Explanation) -> str:
        error = "is not known" if best.target is None else best.target.in_words()
        return (
            f"precision: a target error of {self.precision:.2g} was wanted: {error}; "
            "more max_evaluations would do where it is drawn"
        )
