"""Fitted estimators of scikit-learn as networks and links.

None stands for a kernel that we do not differentiate: the absolute exponential (Matérn
with ν = 1/2, laplacian), which has a kink at every center, and those of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM

from propopt.base.arrays import Array
from propopt.structures import kernels
from propopt.structures.networks import (
    Affine,
    Chain,
    Cosines,
    Exponentiated,
    Layers,
    Monomials,
    Scaling,
    Score,
    class_link,
)
from propopt.structures.readers.pipelines import ModelOutput, floats
from propopt.structures.scores import Link, Network


LinkRule: TypeAlias = Callable[[Any, ModelOutput, int], Link | None]
"""What reads an output from the K scores of a fitted model; None if none is known."""


def one_score(_model: Any, output: ModelOutput, _n_scores: int) -> Link:
    """The score itself, as regressors predict it."""
    return Score(output.column)


def of_logits(_model: Any, output: ModelOutput, n_scores: int) -> Link:
    """Any output of a classifier whose scores are logits."""
    return class_link(output.name, output.column, n_scores)


def margin_alone(model: Any, output: ModelOutput, n_scores: int) -> Link | None:
    """The score of a class, from which no probability is known."""
    return of_logits(model, output, n_scores) if output.name == "margin" else None


@final
@dataclass(frozen=True)
class Reader:
    """How fitted models of one class are read."""

    # from a fitted model to its scores; None if its settings give them a kink
    network: Callable[[Any], Network | None]
    link: LinkRule = one_score  # what is read from the scores


def dense_floats(values: Any) -> Array:
    """The same of an array that may be sparse."""
    return floats(values.toarray() if sp.issparse(values) else values)


# ---- Linear models of scikit-learn, read from fitted models


LINEAR_REGRESSORS: Final[frozenset[type[Any]]] = frozenset(
    {
        linear_model.ARDRegression,
        linear_model.BayesianRidge,
        linear_model.ElasticNet,
        linear_model.ElasticNetCV,
        linear_model.HuberRegressor,
        linear_model.Lars,
        linear_model.LarsCV,
        linear_model.Lasso,
        linear_model.LassoCV,
        linear_model.LassoLars,
        linear_model.LassoLarsCV,
        linear_model.LassoLarsIC,
        linear_model.LinearRegression,
        LinearSVR,
        linear_model.MultiTaskElasticNet,
        linear_model.MultiTaskElasticNetCV,
        linear_model.MultiTaskLasso,
        linear_model.MultiTaskLassoCV,
        linear_model.OrthogonalMatchingPursuit,
        linear_model.OrthogonalMatchingPursuitCV,
        linear_model.QuantileRegressor,
        linear_model.Ridge,
        linear_model.RidgeCV,
        linear_model.SGDRegressor,
        linear_model.TheilSenRegressor,
    }
)
_MARGIN_CLASSIFIERS = frozenset(
    {
        LinearSVC,
        linear_model.Perceptron,
        linear_model.RidgeClassifier,
        linear_model.RidgeClassifierCV,
    }
)


def linear_scores(model: Any) -> Network:
    """A x + b; ``sparsify()`` leaves A sparse."""
    coefficients = np.atleast_2d(dense_floats(model.coef_))
    return Affine(coefficients, np.atleast_1d(floats(model.intercept_)))


def _tweedie(model: Any, output: ModelOutput, _n_scores: int) -> Link:
    automatic = "log" if model.power > 0 else "identity"
    name = automatic if model.link == "auto" else model.link
    link = Exponentiated if name == "log" else Score
    return link(output.column)


def _logistic(model: Any, output: ModelOutput, n_scores: int) -> Link | None:
    # before scikit-learn 1.8 probabilities may also be normalised one-vs-rest sigmoids,
    # or for two classes the sigmoid of twice the score
    multi_class = model.get_params().get("multi_class", "auto")
    if n_scores == 1:
        has_logits = multi_class != "multinomial"
    else:
        has_logits = multi_class != "ovr" and model.solver != "liblinear"
    return (of_logits if has_logits else margin_alone)(model, output, n_scores)


def _descended(model: Any, output: ModelOutput, n_scores: int) -> Link | None:
    """Two classes by logistic loss have the sigmoid of the score; others do not."""
    has_logit = model.loss == "log_loss" and n_scores == 1
    return (of_logits if has_logit else margin_alone)(model, output, n_scores)


LINEAR_MODELS: Final[Mapping[type, Reader]] = {
    **dict.fromkeys(LINEAR_REGRESSORS, Reader(linear_scores)),
    **dict.fromkeys(_MARGIN_CLASSIFIERS, Reader(linear_scores, margin_alone)),
    **dict.fromkeys(
        (linear_model.GammaRegressor, linear_model.PoissonRegressor),
        Reader(linear_scores, lambda _, output, _n: Exponentiated(output.column)),
    ),
    linear_model.LogisticRegression: Reader(linear_scores, _logistic),
    linear_model.LogisticRegressionCV: Reader(linear_scores, _logistic),
    linear_model.SGDClassifier: Reader(linear_scores, _descended),
    linear_model.TweedieRegressor: Reader(linear_scores, _tweedie),
}


# ---- Discriminant analysis and naive Bayes of scikit-learn, read from fitted models


def _naive_bayes(model: Any) -> Network | None:
    """Log p(k) + log p(x | k), less what all classes share."""
    if len(model.classes_) < 2:
        return None
    offsets = np.log(model.class_prior_) - 0.5 * np.log(model.var_).sum(axis=1)
    return kernels.IndependentGaussians(floats(model.theta_), 1.0 / model.var_, offsets)


def _quadratic(model: Any) -> Network:
    """The same with covariances R S Rᵀ."""
    whitenings = tuple(
        rotation / np.sqrt(scaling)
        for rotation, scaling in zip(model.rotations_, model.scalings_, strict=True)
    )
    determinants = [np.log(scaling).sum() for scaling in model.scalings_]
    offsets = np.log(model.priors_) - 0.5 * np.array(determinants)
    return kernels.GaussianClasses(floats(model.means_), whitenings, offsets)


def _of_densities(model: Any, output: ModelOutput, n_scores: int) -> Link:
    """Of two classes the margin is the log-odds, though each has a score."""
    if n_scores == 2 and output.name == "margin":
        return class_link("log_odds", output.column, 2)
    return of_logits(model, output, n_scores)


GENERATIVE_MODELS: Final[Mapping[type, Reader]] = {
    GaussianNB: Reader(_naive_bayes, of_logits),
    LinearDiscriminantAnalysis: Reader(linear_scores, of_logits),
    QuadraticDiscriminantAnalysis: Reader(_quadratic, _of_densities),
}


# ---- Multi-layer perceptrons of scikit-learn, read from fitted models


def _layers(model: Any) -> Network:
    weights = tuple(floats(layer) for layer in model.coefs_)
    biases = tuple(floats(layer) for layer in model.intercepts_)
    return Layers(weights, biases, model.activation)


def _value(model: Any, output: ModelOutput, _n_scores: int) -> Link:
    """Regressors of counts give the exponential of their score."""
    link = Exponentiated if model.out_activation_ == "exp" else Score
    return link(output.column)


PERCEPTRONS: Final[Mapping[type, Reader]] = {
    MLPClassifier: Reader(_layers, of_logits),
    MLPRegressor: Reader(_layers, _value),
}


# ---- Kernel machines of scikit-learn, read from fitted models


MATERN: Final = {1.5: "Matérn 3/2", 2.5: "Matérn 5/2", np.inf: "gaussian"}
"""Matérn kernels by ν; those of other ν have no closed form, or a kink."""


def _support_vector_machine(model: Any) -> Network | None:
    """None of three classes or more: votes between pairs are no smooth scores."""
    # the width that gamma="scale" took from the data is kept nowhere else
    gamma = model._gamma  # noqa: SLF001
    settings = {"gamma": gamma, "coef0": model.coef0, "degree": model.degree}
    weights = dense_floats(model.dual_coef_)
    if len(weights) > 1:
        return None
    centers, intercepts = dense_floats(model.support_vectors_), floats(model.intercept_)
    return _machine(model.kernel, settings, centers, weights, intercepts)


def _kernel_ridge(model: Any) -> Network | None:
    settings = {"gamma": model.gamma, "coef0": model.coef0, "degree": model.degree}
    weights = np.atleast_2d(dense_floats(model.dual_coef_).T)
    centers = dense_floats(model.X_fit_)
    return _machine(model.kernel, settings, centers, weights, np.zeros(len(weights)))


def nystroem(transformer: Any) -> Network | None:
    """Features of Nystroem, k(x, landmarks) Σ^(−1/2)."""
    if transformer.kernel_params is not None:
        return None
    settings = {
        "gamma": transformer.gamma,
        "coef0": 1.0 if transformer.coef0 is None else transformer.coef0,
        "degree": 3 if transformer.degree is None else transformer.degree,
    }
    weights = floats(transformer.normalization_)
    centers = dense_floats(transformer.components_)
    zeros = np.zeros(len(weights))
    return _machine(transformer.kernel, settings, centers, weights, zeros)


def _gaussian_process(model: Any) -> Network | None:
    """The posterior mean of GaussianProcessRegressor."""
    kernel = _process_kernel(model.kernel_)
    if kernel is None:
        return None
    weights = np.atleast_2d(floats(model.alpha_).T)
    centers = floats(model.X_train_)
    machine = kernels.KernelMachine(kernel, centers, weights, np.zeros(len(weights)))
    # what normalize_y took from the data is kept nowhere else
    mean, std = model._y_train_mean, model._y_train_std  # noqa: SLF001
    factor, offset = (np.broadcast_to(v, (len(weights),)) for v in (std, mean))
    zeros = np.zeros(len(weights))
    return Chain(machine, Scaling(zeros, floats(factor), floats(offset)))


def _machine(
    name: object,
    settings: Mapping[str, Any],
    centers: Array,
    weights: Array,
    intercepts: Array,
) -> Network | None:
    if name == "linear":  # Σ_m a_m xᵀz_m is one vector of coefficients
        return Affine(weights @ centers, intercepts)
    kernel = _named_kernel(name, settings, centers.shape[1])
    if kernel is None:
        return None
    return kernels.KernelMachine(kernel, centers, weights, intercepts)


def _named_kernel(
    name: object, settings: Mapping[str, Any], n_features: int
) -> kernels.Kernel | None:
    """A kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels` or of libsvm."""
    gamma = settings["gamma"]
    rate = 1.0 / n_features if gamma is None else float(gamma)
    match name:
        case "rbf" if rate > 0.0:
            return kernels.Radial("gaussian", 1.0 / np.sqrt(2.0 * rate))  # exp(−γ r²)
        case "poly" | "polynomial" if settings["degree"] >= 1:
            constants = rate, settings["coef0"], settings["degree"]
            return kernels.InnerProduct("polynomial", constants)
        case "sigmoid":
            return kernels.InnerProduct("sigmoid", (rate, settings["coef0"]))
        case _:
            return None


def _process_kernel(kernel: Any) -> kernels.Kernel | None:
    """A kernel of :mod:`sklearn.gaussian_process.kernels`; never a subclass."""
    kind = type(kernel)
    if kind in (gp.Sum, gp.Product):
        first, second = _process_kernel(kernel.k1), _process_kernel(kernel.k2)
        if first is None or second is None:
            return None
        return kernels.KernelPair(first, second, kind is gp.Product)
    if kind is gp.Exponentiation:
        base = _process_kernel(kernel.kernel)
        return None if base is None else kernels.KernelPower(base, kernel.exponent)
    if kind is gp.ConstantKernel:
        return kernels.Constant(kernel.constant_value)
    if kind is gp.WhiteKernel:  # between the data and other points it is zero
        return kernels.Constant(0.0)
    if kind is gp.DotProduct:
        return kernels.InnerProduct("polynomial", (1.0, kernel.sigma_0**2, 1))
    if kind is gp.RBF:
        return kernels.Radial("gaussian", floats(kernel.length_scale))
    if kind is gp.Matern and kernel.nu in MATERN:
        return kernels.Radial(MATERN[kernel.nu], floats(kernel.length_scale))
    if kind is gp.RationalQuadratic:
        return kernels.Radial(
            "rational quadratic", kernel.length_scale, (kernel.alpha,)
        )
    if kind is gp.ExpSineSquared:
        constants = kernel.length_scale, kernel.periodicity
        return kernels.Radial("periodic", 1.0, constants)
    return None


KERNEL_MODELS: Final[Mapping[type, Reader]] = {
    GaussianProcessRegressor: Reader(_gaussian_process),
    KernelRidge: Reader(_kernel_ridge),
    **dict.fromkeys((NuSVR, SVR), Reader(_support_vector_machine)),
    **dict.fromkeys((NuSVC, SVC), Reader(_support_vector_machine, margin_alone)),
    OneClassSVM: Reader(
        _support_vector_machine,
        lambda _, output, _n: Score(0) if output.name == "margin" else None,
    ),
}


# ---- Which fitted scikit-learn transformers are differentiated exactly, and how


def scaling_of(scaler: Any) -> Scaling:
    """(x − center) factor + offset, of a scaler that clips nothing."""
    zeros, used = np.zeros(scaler.n_features_in_), True
    center: Any = None
    match scaler:
        case MinMaxScaler():
            return Scaling(zeros, floats(scaler.scale_), floats(scaler.min_))
        case StandardScaler():
            center, used = scaler.mean_ if scaler.with_mean else None, scaler.with_std
        case RobustScaler():
            used = scaler.with_scaling
            center = scaler.center_ if scaler.with_centering else None
    factor = 1.0 / floats(scaler.scale_) if used else zeros + 1.0
    return Scaling(zeros if center is None else floats(center), factor, zeros)


def _scaled(scaler: Any) -> Network | None:
    # of the scaler by maxima, clipping is new in scikit-learn 1.8
    return None if scaler.get_params().get("clip", False) else scaling_of(scaler)


SCALERS: Final[tuple[type[Any], ...]] = (
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)


def _components(pca: Any) -> Network:
    """(x − mean) Vᵀ, over the standard deviations of the components if whitened."""
    components, mean = floats(pca.components_), floats(pca.mean_)
    if pca.whiten:
        variance = np.maximum(pca.explained_variance_, np.finfo(np.float64).eps ** 2)
        components /= np.sqrt(variance)[:, None]
    return Affine(components, -components @ mean)


def _fourier(sampler: Any) -> Network:
    frequencies = floats(sampler.random_weights_)
    amplitude = float(np.sqrt(2.0 / frequencies.shape[1]))
    return Cosines(frequencies, floats(sampler.random_offset_), amplitude)


SKLEARN_TRANSFORMS: Final[Mapping[type, Callable[[Any], Network | None]]] = {
    IncrementalPCA: _components,
    Nystroem: nystroem,
    PCA: _components,
    PolynomialFeatures: lambda features: Monomials.of(features.powers_),
    RBFSampler: _fourier,
    TruncatedSVD: lambda svd: Affine(
        floats(svd.components_), np.zeros(len(svd.components_))
    ),
    **dict.fromkeys(SCALERS, _scaled),
}
