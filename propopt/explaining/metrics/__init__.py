"""Metrics of explanations under the names that the literature gives them.

:class:`Sparseness` asks about the attributions, :class:`Infidelity`,
:class:`FaithfulnessCorrelation` and :class:`CompletenessGap` about the function too,
and :class:`MaxSensitivity` about a method, at new points. All give one number per
point. The losses of :mod:`propopt.losses` can be optimized; these cannot.
"""

from typing import TYPE_CHECKING

from propopt.base.suggestions import suggesting_getattr as _suggesting_getattr
from propopt.explaining.metrics.evaluation import evaluate, evaluate_rows
from propopt.explaining.metrics.literature import (
    CompletenessGap,
    FaithfulnessCorrelation,
    Infidelity,
    MaxSensitivity,
    Sparseness,
)
from propopt.explaining.metrics.metric import (
    BaselineMethod,
    Metric,
    UndefinedRowsWarning,
)


__all__ = [
    "BaselineMethod",
    "CompletenessGap",
    "FaithfulnessCorrelation",
    "Infidelity",
    "MaxSensitivity",
    "Metric",
    "Sparseness",
    "UndefinedRowsWarning",
    "evaluate",
    "evaluate_rows",
]

if not TYPE_CHECKING:  # for which every name would be an object
    __getattr__ = _suggesting_getattr("po.metrics", __all__)
