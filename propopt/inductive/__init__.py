"""Explanations of inputs that come later: posterior means of Gaussian processes."""

from propopt.inductive.features import (
    DenseFeatures,
    FeatureBasis,
    IndependentFeatures,
)
from propopt.inductive.gaussian_process import GaussianProcessExplainer
from propopt.inductive.inducing import (
    FarthestInputs,
    GivenInputs,
    GreedyVariance,
    InducingRule,
    KMeansInputs,
    RandomInputs,
)


__all__ = [
    "DenseFeatures",
    "FarthestInputs",
    "FeatureBasis",
    "GaussianProcessExplainer",
    "GivenInputs",
    "GreedyVariance",
    "IndependentFeatures",
    "InducingRule",
    "KMeansInputs",
    "RandomInputs",
]
