"""Rows that are explained together: what they aim at, and who is alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

from propopt.estimates import Estimate
from propopt.explaining.contributions import (
    ContributionRule,
    ContributionsLike,
    FeatureMetric,
)
from propopt.explaining.defaults import optimum
from propopt.explaining.output_units import complete_explanation
from propopt.explaining.precision import Effort
from propopt.explaining.target import TargetRule
from propopt.graphs.base import Graph
from propopt.losses import GradientMatching, PairwiseRobustness
from propopt.results.explanation import Explanation, Parameter


MOST_STABLE = 1_000
"""Rows whose stability is computed at once: it takes two more eigenbases."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Together:
    """Rows, and how they are compared.

    Parameters
    ----------
    X : array or DataFrame (N, D)
        The rows.
    graph : Graph
        Who is similar.
    robustness : float or None
        The weight, if not at the knee of the curve.
    progress : bool or None
        Whether to show bars.
    """

    X: Any
    graph: Graph
    robustness: float | None
    progress: bool | None

    def slopes(self, rule: TargetRule, effort: Effort) -> Explanation:
        """Robust slopes per scale."""
        return effort.spent(rule, self.X, self._nearest)

    def contributions(
        self, rule: ContributionRule, of: ContributionsLike, metric: FeatureMetric
    ) -> Explanation:
        """Robust contributions that add up to the prediction less the base."""
        known = rule.of(self.X, of)
        best = complete_explanation(
            known,
            self.graph,
            robustness=self.robustness,
            metric=metric,
            progress=self.progress,
        )
        return replace(
            best,
            parameters={
                "contributions": known.estimate.source,
                "contributions miss": known.missed,
                "metric": metric,
                **notes_of(known.estimate),
            },
        )

    def _nearest(self, aim: Estimate) -> Explanation:
        """The optimum for slopes, with the slopes beside it."""
        matching, robust = 1.0 * GradientMatching(aim), PairwiseRobustness(self.graph)
        best = optimum(matching, robust, self.robustness, self.progress)
        return replace(
            best,
            labels=aim.labels,
            units=aim.units,
            evaluations=aim.evaluations,
            details={**best.details, "gradient": aim.values},
            parameters={"gradient": aim.source, **notes_of(aim)},
        )


def notes_of(aim: Estimate) -> dict[str, Parameter]:
    """What a reader has to know of a target, as a setting; nothing where it is that."""
    return {"notes": "; ".join(aim.notes)} if aim.notes else {}


def stability_in_words(best: Explanation) -> str:
    """Whether conclusions survive other weights, neighbours and draws."""
    if best.shape[0] > MOST_STABLE:
        return f"not computed for more than {MOST_STABLE:,} rows: see stability()"
    if best.program is None:
        return "not computed: attributions were optimized in the metric of effects"
    weighed = sum(weight > 0.0 for weight in best.weights.values())
    drawn = best.target is not None and best.target.n_blocks > 0
    if weighed < 2 and not drawn:
        return "nothing varies: robustness has no weight, and nothing is drawn"
    return "; ".join(best.stability().in_words())
