"""Explanations of new inputs: posterior means of Gaussian processes."""

from typing import TYPE_CHECKING

from propopt.base.suggestions import suggesting_getattr as _suggesting_getattr
from propopt.inductive.bases import (
    DenseFeatures,
    FeatureBasis,
    GridFeatures,
    IndependentFeatures,
)
from propopt.inductive.estimator import GaussianProcessExplainer
from propopt.inductive.inputs import (
    Candidates,
    FarthestInputs,
    GivenInputs,
    GreedyVariance,
    InducingRule,
    RandomInputs,
)


__all__ = [
    "Candidates",
    "DenseFeatures",
    "FarthestInputs",
    "FeatureBasis",
    "GaussianProcessExplainer",
    "GivenInputs",
    "GreedyVariance",
    "GridFeatures",
    "IndependentFeatures",
    "InducingRule",
    "RandomInputs",
]

if not TYPE_CHECKING:  # for which every name would be an object
    __getattr__ = _suggesting_getattr("po.inductive", __all__)
