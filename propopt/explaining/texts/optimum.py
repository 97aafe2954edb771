"""The attributions of words that are robust between documents that share them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt._typing import Truths
from propopt.checks import read_nonnegative
from propopt.errors import InvalidInput
from propopt.estimates import Estimate
from propopt.explaining.contributions import Contributions
from propopt.explaining.defaults import optimum
from propopt.graphs.base import Graph
from propopt.losses import (
    Completeness,
    Constraint,
    GradientMatching,
    SharedRobustness,
)
from propopt.results.explanation import Explanation
from propopt.solvers import solve


_ROUNDING: Final = 1e-9
"""Of predictions and bases, in documents without words."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SharedOptimum:
    """Documents, how they are compared, and how much that counts.

    Parameters
    ----------
    present : array (N, V)
        Which words a document has.
    graph : Graph
        Which documents are similar.
    robustness : float or None
        The weight, if not at the knee of the curve.
    progress : bool or None
        Whether to show a bar.
    """

    present: Truths
    graph: Graph
    robustness: float | None
    progress: bool | None

    def nearest(self, aim: Estimate, *constraints: Constraint) -> Explanation:
        """The best for a target, with the target beside it."""
        matching, robust = 1.0 * GradientMatching(aim), self._robust
        if robust.entry_graph.n_edges == 0:
            weight = 0.0 if self.robustness is None else self.robustness
            given = read_nonnegative(weight, "robustness")
            best = solve(matching + given * robust, subject_to=constraints)
        else:
            best = optimum(
                matching, robust, self.robustness, self.progress, constraints
            )
        return replace(
            best,
            labels=aim.labels,
            units="output",
            evaluations=aim.evaluations,
            details={**best.details, "gradient": aim.values},
            parameters={
                "gradient": aim.source,
                **({"notes": "; ".join(aim.notes)} if aim.notes else {}),
            },
        )

    def complete(self, known: Contributions) -> Explanation:
        """The best that add up to f(x) less f of no word, over the words of x.

        Raises
        ------
        InvalidInput
            If f of a document without words is not what it is of no word.
        """
        total = known.total.copy()
        empty = ~self.present.any(axis=1)
        size = np.maximum(np.abs(known.prediction), np.abs(known.base))
        if (np.abs(total) > _ROUNDING * size)[empty].any():
            raise InvalidInput(
                f"document {int(np.flatnonzero(empty)[0])} has no word, and the model "
                "gives the same text two values"
            )
        total[empty] = 0.0
        constraints = []
        if not empty.all():
            constraints = [Completeness(total, self.present.astype(float))]
        best = self.nearest(known.estimate, *constraints)
        details = {k: v for k, v in best.details.items() if k != "gradient"}
        parameters = {
            "contributions" if k == "gradient" else k: v
            for k, v in best.parameters.items()
        }
        return replace(
            best,
            details={
                **details,
                "contributions": known.estimate.values,
                "base_value": known.base,
                "prediction": known.prediction,
                "completeness_gap": best.attributions.sum(axis=1) - known.total,
            },
            parameters={**parameters, "contributions miss": known.missed},
        )

    @property
    def weight_rule(self) -> str:
        """Where the weight comes from, in words."""
        if self.robustness is not None:
            return "given"
        if self._robust.entry_graph.n_edges == 0:
            return "none: no similar documents share a word"
        return "knee of the curve"

    @cached_property
    def _robust(self) -> SharedRobustness:
        return SharedRobustness(self.graph, self.present)
