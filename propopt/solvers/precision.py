"""How precise an explanation is for a better or a worse estimate of its target."""

from __future__ import annotations

from dataclasses import replace

from propopt.base.errors import InvalidInput
from propopt.losses import GradientMatching, Objective, PropertyLoss
from propopt.losses.faithfulness import Estimate
from propopt.solvers.solving import solve


def target_error_of(objective: Objective | PropertyLoss, estimate: Estimate) -> float:
    """The relative target error of the optimum that aims at another estimate.

    It is what more draws are to bring down: the optimum is solved for, as its objective
    is what the error is relative to.
    """
    weighed = Objective.of(objective)
    own = [loss for loss in weighed.losses if isinstance(loss, GradientMatching)]
    if len(own) != 1:
        raise InvalidInput(
            f"objective: expected one gradient-matching loss, got {len(own)}"
        )
    other = GradientMatching(estimate, own[0].norm, name=own[0].name)
    terms = ((c, other if loss is own[0] else loss) for c, loss in weighed.terms)
    return solve(replace(weighed, terms=tuple(terms))).target_error
