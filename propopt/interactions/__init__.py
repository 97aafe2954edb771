"""InteractionScores of features, with distribution-free confidence intervals.

:class:`ILOCO` fits a learner without features, by :class:`Minipatches` or by a
:class:`DataSplit`, and gives :class:`InteractionScores`: how much sets of features
matter jointly.
"""

from propopt.interactions.graph import interaction_graph
from propopt.interactions.iloco import ILOCO
from propopt.interactions.minipatches.scheme import Minipatches
from propopt.interactions.result import InteractionScores
from propopt.interactions.splitting.split import DataSplit


__all__ = [
    "ILOCO",
    "DataSplit",
    "InteractionScores",
    "Minipatches",
    "interaction_graph",
]
