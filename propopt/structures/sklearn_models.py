"""Which fitted scikit-learn models are differentiated exactly, and how.

Only the classes themselves, never subclasses: those may predict by another rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
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
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM

from propopt.structures.densities import GaussianClasses, IndependentGaussians
from propopt.structures.links import Column, Exponentiated, Link, class_link
from propopt.structures.networks import Affine, Layers, Network
from propopt.structures.pipelines import is_passthrough, last_step
from propopt.structures.sklearn_kernels import (
    dense,
    floats,
    gaussian_process,
    kernel_ridge,
    support_vector_machine,
)
from propopt.structures.sklearn_transforms import chained, exact_transform


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
GENERALIZED_LINEAR = frozenset({GammaRegressor, PoissonRegressor, TweedieRegressor})
LINEAR = (
    LINEAR_REGRESSORS
    | LOGISTIC_CLASSIFIERS
    | MARGIN_CLASSIFIERS
    | GENERALIZED_LINEAR
    | {LinearDiscriminantAnalysis}
)
KERNEL_REGRESSORS = frozenset({GaussianProcessRegressor, KernelRidge, NuSVR, SVR})
PERCEPTRONS = frozenset({MLPClassifier, MLPRegressor})
GENERATIVE = frozenset(
    {GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis}
)


def exact_network(model: Any) -> Network | None:
    """The scores of a fitted model; None if it is none that we differentiate."""
    kind = type(model)
    if kind is Pipeline:
        steps = [step for _, step in model.steps if not is_passthrough(step)]
        maps = [exact_transform(step) for step in steps[:-1]]
        return chained([*maps, exact_network(steps[-1])])
    read = NETWORKS.get(kind)
    return None if read is None else read(model)


def exact_link(model: Any, output: str, index: int, n_scores: int) -> Link | None:
    """What reads ``output`` from the scores; None if no exact rule is known."""
    final = last_step(model)
    kind = type(final)
    if kind in LINEAR_REGRESSORS or kind in KERNEL_REGRESSORS:
        return Column(index)
    if kind in GENERALIZED_LINEAR or kind is MLPRegressor:
        return Exponentiated(index) if _is_exponential(final) else Column(index)
    if kind is OneClassSVM:
        return Column(0) if output == "margin" else None
    if kind is QuadraticDiscriminantAnalysis and n_scores == 2:
        return class_link("log_odds" if output == "margin" else output, index, 2)
    if kind is MLPClassifier or kind in GENERATIVE:
        return class_link(output, index, n_scores)
    if output == "margin":  # the score itself
        return class_link(output, index, n_scores)
    if kind in LOGISTIC_CLASSIFIERS and _has_logits(final, n_scores):
        return class_link(output, index, n_scores)
    return None


def _is_exponential(model: Any) -> bool:
    """Whether a regressor's output is the exponential of its score."""
    match model:
        case MLPRegressor():
            return bool(model.out_activation_ == "exp")
        case TweedieRegressor():
            automatic = "log" if model.power > 0 else "identity"
            return (automatic if model.link == "auto" else model.link) == "log"
        case _:
            return True


def _has_logits(model: Any, n_scores: int) -> bool:
    """Whether probabilities are the sigmoid or the softmax of the scores.

    Before scikit-learn 1.8 they may also be normalised one-vs-rest sigmoids, or for two
    classes the sigmoid of twice the score.
    """
    multi_class = model.get_params().get("multi_class", "auto")
    if n_scores == 1:
        return bool(multi_class != "multinomial")
    return bool(multi_class != "ovr" and model.solver != "liblinear")


def _linear(model: Any) -> Network:
    """A x + b; ``sparsify()`` leaves A sparse."""
    coefficients = np.atleast_2d(dense(model.coef_))
    return Affine(coefficients, np.atleast_1d(floats(model.intercept_)))


def _perceptron(model: Any) -> Network:
    weights = tuple(floats(layer) for layer in model.coefs_)
    biases = tuple(floats(layer) for layer in model.intercepts_)
    return Layers(weights, biases, model.activation)


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


NETWORKS: Final[Mapping[type, Callable[[Any], Network | None]]] = {
    **dict.fromkeys(LINEAR, _linear),
    **dict.fromkeys(PERCEPTRONS, _perceptron),
    **dict.fromkeys((NuSVC, NuSVR, OneClassSVM, SVC, SVR), support_vector_machine),
    GaussianNB: _naive_bayes,
    GaussianProcessRegressor: gaussian_process,
    KernelRidge: kernel_ridge,
    QuadraticDiscriminantAnalysis: _quadratic,
}
