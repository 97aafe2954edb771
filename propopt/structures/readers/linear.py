"""Linear models of scikit-learn, read from fitted models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    ElasticNet,
    ElasticNetCV,
    GammaRegressor,
    HuberRegressor,
    Lars,
    LarsCV,
    Lasso,
    LassoCV,
    LassoLars,
    LassoLarsCV,
    LassoLarsIC,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskElasticNet,
    MultiTaskElasticNetCV,
    MultiTaskLasso,
    MultiTaskLassoCV,
    OrthogonalMatchingPursuit,
    OrthogonalMatchingPursuitCV,
    Perceptron,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
    TheilSenRegressor,
    TweedieRegressor,
)
from sklearn.svm import LinearSVC, LinearSVR

from propopt.structures.links import Exponentiated, Link, Score
from propopt.structures.networks import Affine, Network
from propopt.structures.readers.base import (
    Reader,
    ScoredOutput,
    margin_alone,
    of_logits,
)
from propopt.structures.readers.parameters import dense_floats, floats


LINEAR_REGRESSORS = frozenset(
    {
        ARDRegression,
        BayesianRidge,
        ElasticNet,
        ElasticNetCV,
        HuberRegressor,
        Lars,
        LarsCV,
        Lasso,
        LassoCV,
        LassoLars,
        LassoLarsCV,
        LassoLarsIC,
        LinearRegression,
        LinearSVR,
        MultiTaskElasticNet,
        MultiTaskElasticNetCV,
        MultiTaskLasso,
        MultiTaskLassoCV,
        OrthogonalMatchingPursuit,
        OrthogonalMatchingPursuitCV,
        QuantileRegressor,
        Ridge,
        RidgeCV,
        SGDRegressor,
        TheilSenRegressor,
    }
)
_MARGIN_CLASSIFIERS = frozenset(
    {LinearSVC, Perceptron, RidgeClassifier, RidgeClassifierCV}
)
_WITH_LOGARITHMIC_LINK = frozenset({GammaRegressor, PoissonRegressor})


def linear_scores(model: Any) -> Network:
    """A x + b; ``sparsify()`` leaves A sparse."""
    coefficients = np.atleast_2d(dense_floats(model.coef_))
    return Affine(coefficients, np.atleast_1d(floats(model.intercept_)))


def _exponential(_model: Any, quantity: ScoredOutput) -> Link:
    return Exponentiated(quantity.index)


def _tweedie(model: Any, quantity: ScoredOutput) -> Link:
    automatic = "log" if model.power > 0 else "identity"
    name = automatic if model.link == "auto" else model.link
    link = Exponentiated if name == "log" else Score
    return link(quantity.index)


def _logistic(model: Any, quantity: ScoredOutput) -> Link | None:
    rule = of_logits if _has_logits(model, quantity.n_scores) else margin_alone
    return rule(model, quantity)


def _has_logits(model: Any, n_scores: int) -> bool:
    """Whether probabilities are the sigmoid or the softmax of the scores.

    Before scikit-learn 1.8 they may also be normalised one-vs-rest sigmoids, or for two
    classes the sigmoid of twice the score.
    """
    multi_class = model.get_params().get("multi_class", "auto")
    if n_scores == 1:
        return bool(multi_class != "multinomial")
    return bool(multi_class != "ovr" and model.solver != "liblinear")


def _descended(model: Any, quantity: ScoredOutput) -> Link | None:
    """Two classes by logistic loss have the sigmoid of the score; others do not."""
    has_logit = model.loss == "log_loss" and quantity.n_scores == 1
    return (of_logits if has_logit else margin_alone)(model, quantity)


LINEAR_MODELS: Final[Mapping[type, Reader]] = {
    **dict.fromkeys(LINEAR_REGRESSORS, Reader(linear_scores)),
    **dict.fromkeys(_MARGIN_CLASSIFIERS, Reader(linear_scores, margin_alone)),
    **dict.fromkeys(_WITH_LOGARITHMIC_LINK, Reader(linear_scores, _exponential)),
    LogisticRegression: Reader(linear_scores, _logistic),
    LogisticRegressionCV: Reader(linear_scores, _logistic),
    SGDClassifier: Reader(linear_scores, _descended),
    TweedieRegressor: Reader(linear_scores, _tweedie),
}
