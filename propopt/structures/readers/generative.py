"""Discriminant analysis and naive Bayes of scikit-learn, read from fitted models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.naive_bayes import GaussianNB

from propopt.structures.densities import GaussianClasses, IndependentGaussians
from propopt.structures.links import Link, class_link
from propopt.structures.networks import Network
from propopt.structures.readers.base import Reader, ScoredOutput, of_logits
from propopt.structures.readers.linear import linear_scores
from propopt.structures.readers.parameters import floats


def _naive_bayes(model: Any) -> Network | None:
    """Log p(k) + log p(x | k), less what all classes share."""
    if len(model.classes_) < 2:
        return None
    offsets = np.log(model.class_prior_) - 0.5 * np.log(model.var_).sum(axis=1)
    return IndependentGaussians(floats(model.theta_), 1.0 / model.var_, offsets)


def _quadratic(model: Any) -> Network:
    """The same with covariances R S Rᵀ."""
    whitenings = tuple(
        rotation / np.sqrt(scaling)
        for rotation, scaling in zip(model.rotations_, model.scalings_, strict=True)
    )
    determinants = [np.log(scaling).sum() for scaling in model.scalings_]
    offsets = np.log(model.priors_) - 0.5 * np.array(determinants)
    return GaussianClasses(floats(model.means_), whitenings, offsets)


def _of_densities(model: Any, quantity: ScoredOutput) -> Link:
    """Of two classes the margin is the log-odds, though each has a score."""
    if quantity.n_scores == 2 and quantity.output == "margin":
        return class_link("log_odds", quantity.index, 2)
    return of_logits(model, quantity)


GENERATIVE_MODELS: Final[Mapping[type, Reader]] = {
    GaussianNB: Reader(_naive_bayes, of_logits),
    LinearDiscriminantAnalysis: Reader(linear_scores, of_logits),
    QuadraticDiscriminantAnalysis: Reader(_quadratic, _of_densities),
}
