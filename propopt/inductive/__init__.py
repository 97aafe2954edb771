"""Explanations of inputs that come later: posterior means of Gaussian processes."""

from propopt.inductive.bases.base import FeatureBasis
from propopt.inductive.bases.features import DenseFeatures, IndependentFeatures
from propopt.inductive.bases.images import GridFeatures, KroneckerFeatures
from propopt.inductive.gaussian_process import GaussianProcessExplainer
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
