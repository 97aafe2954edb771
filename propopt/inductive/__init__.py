"""Explanations of inputs that come later: posterior means of Gaussian processes."""

from propopt.inductive.bases import (
    DenseFeatures,
    FeatureBasis,
    GridFeatures,
    IndependentFeatures,
    KroneckerFeatures,
)
from propopt.inductive.estimator import GaussianProcessExplainer
from propopt.inductive.inputs import (
    Candidates,
    FarthestInputs,
    GivenInputs,
    GreedyVariance,
    InducingRule,
    KMeansInputs,
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
    "KMeansInputs",
    "KroneckerFeatures",
    "RandomInputs",
]
