"""Metrics of explanations under the names that the literature gives them.

Three kinds, by what they need to know: :class:`ComplexityMetric` the attributions,
:class:`FaithfulnessMetric` the function and the points too, and
:class:`RobustnessMetric` a method that can be asked about any points (an
:class:`OutputRobustnessMetric` the function besides). All give one number per point.
The losses of :mod:`propopt.losses` can be optimized; these cannot.
"""

from typing import TYPE_CHECKING

from propopt.base.words_of_others import other_words as _other_words
from propopt.explaining.metrics.evaluation import PGI, PGU, evaluate, evaluate_rows
from propopt.explaining.metrics.faithful import (
    CompletenessGap,
    Complexity,
    EffectiveComplexity,
    FaithfulnessCorrelation,
    Infidelity,
    Sparseness,
)
from propopt.explaining.metrics.metric import (
    BaselineMethod,
    ComplexityMetric,
    FaithfulnessMetric,
    Metric,
    OutputRobustnessMetric,
    RobustnessMetric,
    UndefinedRowsWarning,
)
from propopt.explaining.metrics.sensitivity import (
    AvgSensitivity,
    LocalLipschitz,
    MaxSensitivity,
    RelativeInputStability,
    RelativeOutputStability,
)


__all__ = [
    "PGI",
    "PGU",
    "AvgSensitivity",
    "BaselineMethod",
    "CompletenessGap",
    "Complexity",
    "ComplexityMetric",
    "EffectiveComplexity",
    "FaithfulnessCorrelation",
    "FaithfulnessMetric",
    "Infidelity",
    "LocalLipschitz",
    "MaxSensitivity",
    "Metric",
    "OutputRobustnessMetric",
    "RelativeInputStability",
    "RelativeOutputStability",
    "RobustnessMetric",
    "Sparseness",
    "UndefinedRowsWarning",
    "evaluate",
    "evaluate_rows",
]

if not TYPE_CHECKING:  # for which every name would be an object
    __getattr__ = _other_words("po.metrics", __all__)
