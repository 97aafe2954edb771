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
from propopt.interactions.minipatches.scheme import Minipatches
from propopt.interactions.result import InteractionScores
from propopt.interactions.screening import Screen
from propopt.interactions.splitting.split import DataSplit


__all__ = [
    "ILOCO",
    "DataSplit",
    "InteractionScores",
    "Minipatches",
    "PairScores",
    "Screen",
    "faith_shap",
    "h_statistic",
    "interaction_graph",
    "shap_interactions",
]
