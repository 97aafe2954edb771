"""Explanations of inputs that come later: posterior means of Gaussian processes."""

from propopt.inductive.feature_basis import FeatureBasis
from propopt.inductive.features import DenseFeatures, IndependentFeatures
from propopt.inductive.gaussian_process import GaussianProcessExplainer
from propopt.inductive.image_features import GridFeatures, KroneckerFeatures
from propopt.inductive.inducing import (
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
