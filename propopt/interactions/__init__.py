"""Interactions of features, with distribution-free confidence intervals.

:class:`ILOCO` fits a learner without features, by :class:`Minipatches` or by a
:class:`DataSplit`, and gives :class:`InteractionScores`: how much sets of features
matter jointly.
"""

from propopt.interactions.comparisons.pairs import PairScores
from propopt.interactions.comparisons.partial_dependence import h_statistic
from propopt.interactions.comparisons.shapley import faith_shap, shap_interactions
from propopt.interactions.graph import interaction_graph
from propopt.interactions.iloco import ILOCO
from propopt.interactions.inference.equal_rows import ErrorRange
from propopt.interactions.minipatches.scheme import Minipatches
from propopt.interactions.result import InteractionScores
from propopt.interactions.row_errors import (
    AbsoluteError,
    ProbabilityError,
    SquaredError,
)
from propopt.interactions.screening import Screen
from propopt.interactions.splitting.split import DataSplit
from propopt.interactions.theory import (
    BernoulliColumns,
    FixedColumns,
    Refitted,
    additive_leak,
    detectable_ratio,
    ideal_scores,
    linear_refit_scores,
)


__all__ = [
    "ILOCO",
    "AbsoluteError",
    "BernoulliColumns",
    "DataSplit",
    "ErrorRange",
    "FixedColumns",
    "InteractionScores",
    "Minipatches",
    "PairScores",
    "ProbabilityError",
    "Refitted",
    "Screen",
    "SquaredError",
    "additive_leak",
    "detectable_ratio",
    "faith_shap",
    "h_statistic",
    "ideal_scores",
    "interaction_graph",
    "linear_refit_scores",
    "shap_interactions",
]
