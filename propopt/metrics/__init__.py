"""Metrics of explanations under the names that the literature gives them.

Three kinds, by what they need to know: :class:`ComplexityMetric` the attributions,
:class:`FaithfulnessMetric` the function and the points too, and
:class:`RobustnessMetric` a method that can be asked about any points (an
:class:`OutputRobustnessMetric` the function besides). All give one number per point.
The losses of :mod:`propopt.losses` can be optimized; these cannot.
"""

from propopt.metrics.base import (
    ComplexityMetric,
    FaithfulnessMetric,
    Metric,
    OutputRobustnessMetric,
    RobustnessMetric,
    UndefinedRowsWarning,
)
from propopt.metrics.completeness import CompletenessGap
from propopt.metrics.complexity import Complexity, EffectiveComplexity, Sparseness
from propopt.metrics.correlation import FaithfulnessCorrelation
from propopt.metrics.evaluation import evaluate, evaluate_rows
from propopt.metrics.gaps import PGI, PGU
from propopt.metrics.infidelity import Infidelity, InfidelityParts
from propopt.metrics.methods import BaselineMethod
from propopt.metrics.sensitivity import AvgSensitivity, LocalLipschitz, MaxSensitivity
from propopt.metrics.stability import RelativeInputStability, RelativeOutputStability


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
    "InfidelityParts",
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
