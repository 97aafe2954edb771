"""What scores are in the population, and for patches, in closed form."""

from propopt.interactions.theory.detectability import detectable_ratio
from propopt.interactions.theory.leak import additive_leak
from propopt.interactions.theory.linear import linear_refit_scores
from propopt.interactions.theory.shares import (
    BernoulliColumns,
    FixedColumns,
    KeptShares,
    Refitted,
)
from propopt.interactions.theory.targets import ideal_scores


__all__ = [
    "BernoulliColumns",
    "FixedColumns",
    "KeptShares",
    "Refitted",
    "additive_leak",
    "detectable_ratio",
    "ideal_scores",
    "linear_refit_scores",
]
