"""Interactions of features, with distribution-free confidence intervals.

:class:`ILOCO` fits a learner without features, by :class:`Minipatches` or by a
:class:`DataSplit`, and gives :class:`InteractionScores`: how much sets of features
matter jointly.
"""

from typing import TYPE_CHECKING

from propopt.base.suggestions import suggesting_getattr as _suggesting_getattr
from propopt.interactions.iloco import ILOCO
from propopt.interactions.minipatches import Minipatches
from propopt.interactions.scores import InteractionScores
from propopt.interactions.splitting import DataSplit


__all__ = [
    "ILOCO",
    "DataSplit",
    "InteractionScores",
    "Minipatches",
]

if not TYPE_CHECKING:  # for which every name would be an object
    __getattr__ = _suggesting_getattr("po.interactions", __all__)
