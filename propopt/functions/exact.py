"""Which fitted scikit-learn models are differentiated exactly, and how.

Only the classes themselves, never subclasses: those may predict by another rule.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import (
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
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskElasticNet,
    MultiTaskElasticNetCV,
    MultiTaskLasso,
    MultiTaskLassoCV,
    OrthogonalMatchingPursuit,
    OrthogonalMatchingPursuitCV,
    Perceptron,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
    TheilSenRegressor,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC, LinearSVR

from propopt._typing import Array
from propopt.functions.columns import is_passthrough, last_step
from propopt.functions.links import Column, Exponentiated, Link, class_link
from propopt.functions.networks import Affine, Layers, Network, Rescaled


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
LOGISTIC_CLASSIFIERS = frozenset({LogisticRegression, LogisticRegressionCV})
MARGIN_CLASSIFIERS = frozenset(
    {LinearSVC, Perceptron, RidgeClassifier, RidgeClassifierCV, SGDClassifier}
)
LINEAR = LINEAR_REGRESSORS | LOGISTIC_CLASSIFIERS | MARGIN_CLASSIFIERS
PERCEPTRONS = frozenset({MLPClassifier, MLPRegressor})
SCALERS = frozenset({MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler})


def exact_network(model: Any) -> Network | None:
    """The scores of a fitted model; None if it is none that we differentiate."""
    kind = type(model)
    if kind is Pipeline:
        return _scaled_network(model)
    if kind in LINEAR:
        return Affine(_coefficients(model), np.atleast_1d(_floats(model.intercept_)))
    if kind in PERCEPTRONS:
        weights = tuple(_floats(layer) for layer in model.coefs_)
        biases = tuple(_floats(layer) for layer in model.intercepts_)
        return Layers(weights, biases, model.activation)
    return None


def exact_link(model: Any, output: str, index: int, n_scores: int) -> Link | None:
    """What reads ``output`` from the scores; None if no exact rule is known."""
    final = last_step(model)
    kind = type(final)
    if kind in LINEAR_REGRESSORS:
        return Column(index)
    if kind is MLPRegressor:
        return Exponentiated(index) if final.out_activation_ == "exp" else Column(index)
    if kind is MLPClassifier or output == "margin":  # a margin is the score itself
        return class_link(output, index, n_scores)
    if kind in LOGISTIC_CLASSIFIERS and _has_logits(final, n_scores):
        return class_link(output, index, n_scores)
    return None


def _has_logits(model: Any, n_scores: int) -> bool:
    """Whether probabilities are the sigmoid or the softmax of the scores.

    Before scikit-learn 1.8 they may also be normalised one-vs-rest sigmoids, or for two
    classes the sigmoid of twice the score.
    """
    multi_class = model.get_params().get("multi_class", "auto")
    if n_scores == 1:
        return bool(multi_class != "multinomial")
    return bool(multi_class != "ovr" and model.solver != "liblinear")


def _scaled_network(pipeline: Any) -> Network | None:
    steps = [step for _, step in pipeline.steps[:-1] if not is_passthrough(step)]
    if not all(_is_affine(step) for step in steps):
        return None
    network = exact_network(pipeline.steps[-1][1])
    if network is None:
        return None
    return reduce(_behind, reversed(steps), network)


def _is_affine(step: Any) -> bool:
    return type(step) in SCALERS and not step.get_params().get("clip", False)


def _behind(network: Network, scaler: Any) -> Network:
    """The network with its inputs scaled, (x − center) ∘ factor + offset."""
    n_features = scaler.n_features_in_
    zeros, ones = np.zeros(n_features), np.ones(n_features)
    match scaler:
        case StandardScaler():
            center = _floats(scaler.mean_) if scaler.with_mean else zeros
            factor = 1.0 / scaler.scale_ if scaler.with_std else ones
            return Rescaled(network, center, factor, zeros)
        case RobustScaler():
            center = _floats(scaler.center_) if scaler.with_centering else zeros
            factor = 1.0 / scaler.scale_ if scaler.with_scaling else ones
            return Rescaled(network, center, factor, zeros)
        case MinMaxScaler():
            return Rescaled(
                network, zeros, _floats(scaler.scale_), _floats(scaler.min_)
            )
        case _:
            return Rescaled(network, zeros, 1.0 / scaler.scale_, zeros)


def _coefficients(model: Any) -> Array:
    """The matrix (K, D); ``sparsify()`` leaves it sparse."""
    sparse = sp.issparse(model.coef_)
    return np.atleast_2d(_floats(model.coef_.toarray() if sparse else model.coef_))


def _floats(values: Any) -> Array:
    """A float64 copy, so that refitting the model cannot change the function."""
    return np.array(values, dtype=np.float64)
