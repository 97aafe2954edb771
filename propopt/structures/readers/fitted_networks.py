"""Fitted estimators of scikit-learn as networks and links, by their class names.

None stands for a kernel without derivatives: the absolute exponential (Matérn with
ν = 1/2, laplacian) has a kink at every center, and a user's kernel is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np
import scipy.sparse as sp

from propopt.base.arrays import Array
from propopt.structures import kernels
from propopt.structures.kinds import class_name_of, fitted_value, is_a
from propopt.structures.networks import (
    Activation,
    Affine,
    Chain,
    Monomials,
    Scaling,
    ScoreLink,
    class_link,
)
from propopt.structures.readers.pipelines import ModelOutput, floats
from propopt.structures.scores import Link, Network


LinkRule: TypeAlias = Callable[[Any, ModelOutput, int], Link | None]
"""Gives the link from the K scores of a model to an output; None if there is none."""


def one_score(_model: Any, output: ModelOutput, _n_scores: int) -> Link:
    """The link of regressors: the score itself is the prediction."""
    return ScoreLink("identity", output.column)


def of_logits(_model: Any, output: ModelOutput, n_scores: int) -> Link:
    """The link of a classifier with logits as scores, for any output."""
    return class_link(output.name, output.column, n_scores)


def margin_alone(model: Any, output: ModelOutput, n_scores: int) -> Link | None:
    """The link of a classifier with a margin but without an exact probability."""
    return of_logits(model, output, n_scores) if output.name == "margin" else None


Reader: TypeAlias = tuple[Callable[[Any], Network | None], LinkRule]
"""The scores of a fitted model, None if its settings give them a kink, and the link
from the scores to an output."""


def dense_floats(values: Any) -> Array:
    """A float64 copy of an array that may be sparse."""
    return floats(values.toarray() if sp.issparse(values) else values)


# ---- Linear models of scikit-learn


LINEAR_REGRESSORS: Final = tuple(
    f"sklearn.{name}"
    for name in (
        "ARDRegression",
        "BayesianRidge",
        "ElasticNet",
        "ElasticNetCV",
        "HuberRegressor",
        "Lars",
        "LarsCV",
        "Lasso",
        "LassoCV",
        "LassoLars",
        "LassoLarsCV",
        "LassoLarsIC",
        "LinearRegression",
        "LinearSVR",
        "MultiTaskElasticNet",
        "MultiTaskElasticNetCV",
        "MultiTaskLasso",
        "MultiTaskLassoCV",
        "OrthogonalMatchingPursuit",
        "OrthogonalMatchingPursuitCV",
        "QuantileRegressor",
        "Ridge",
        "RidgeCV",
        "SGDRegressor",
        "TheilSenRegressor",
    )
)


def linear_scores(model: Any) -> Network:
    """Scores A x + b of a linear model; ``sparsify()`` makes A sparse."""
    coefficients = np.atleast_2d(dense_floats(model.coef_))
    return Affine(coefficients, np.atleast_1d(floats(model.intercept_)))


def _exponential_if(is_so: Callable[[Any], bool]) -> LinkRule:
    """The link of a regressor: the score, or its exponential for a log link."""
    return lambda model, output, _: ScoreLink(
        "exp" if output.name == "value" and is_so(model) else "identity", output.column
    )


def _has_log_link(tweedie: Any) -> bool:
    return bool(tweedie.link == "log" or (tweedie.link == "auto" and tweedie.power > 0))


def _logistic(model: Any, output: ModelOutput, n_scores: int) -> Link | None:
    # before scikit-learn 1.8 probabilities may also be normalised one-vs-rest sigmoids,
    # or for two classes the sigmoid of twice the score
    multi_class = fitted_value(model, "multi_class", "auto")
    if n_scores == 1:
        has_logits = multi_class != "multinomial"
    else:
        has_logits = multi_class != "ovr" and model.solver != "liblinear"
    return (of_logits if has_logits else margin_alone)(model, output, n_scores)


def _descended(model: Any, output: ModelOutput, n_scores: int) -> Link | None:
    """The link of SGDClassifier: a sigmoid only for two classes and log loss."""
    has_logit = model.loss == "log_loss" and n_scores == 1
    return (of_logits if has_logit else margin_alone)(model, output, n_scores)


# ---- Discriminant analysis and naive Bayes of scikit-learn


def _naive_bayes(model: Any) -> Network | None:
    """Log p(k) + log p(x | k), without terms common to all classes."""
    if len(model.classes_) < 2:
        return None
    offsets = np.log(model.class_prior_) - 0.5 * np.log(model.var_).sum(axis=1)
    whitenings = tuple(1.0 / np.sqrt(model.var_))
    return kernels.GaussianClasses(floats(model.theta_), whitenings, offsets)


def _counting(model: Any) -> Network:
    """Log p(k) + Σ_v x_v log p(v | k); the complement's Σ_v x_v w_vk has no priors."""
    logs = floats(model.feature_log_prob_)
    priors = floats(model.class_log_prior_)
    return Affine(logs, 0.0 * priors if is_a(model, _COMPLEMENT) else priors)


_COMPLEMENT: Final = "sklearn.ComplementNB"


def _quadratic(model: Any) -> Network:
    """Log p(k) + log p(x | k) with covariances R S Rᵀ."""
    whitenings = tuple(
        rotation / np.sqrt(scaling)
        for rotation, scaling in zip(model.rotations_, model.scalings_, strict=True)
    )
    determinants = [np.log(scaling).sum() for scaling in model.scalings_]
    offsets = np.log(model.priors_) - 0.5 * np.array(determinants)
    return kernels.GaussianClasses(floats(model.means_), whitenings, offsets)


def _of_densities(model: Any, output: ModelOutput, n_scores: int) -> Link:
    """The link of density models: for two classes the margin is the log-odds."""
    if n_scores == 2 and output.name == "margin":
        return class_link("log_odds", output.column, 2)
    return of_logits(model, output, n_scores)


# ---- Multi-layer perceptrons of scikit-learn


def _layers(model: Any) -> Network:
    """a_(l+1) = φ(a_l A_l + b_l), the last linear."""
    maps: list[Network] = []
    for A, b in zip(model.coefs_, model.intercepts_, strict=True):
        if maps and model.activation != "identity":
            maps.append(Activation(model.activation, len(A)))
        maps.append(Affine(floats(A).T, floats(b)))
    return reduce(Chain, maps)


# ---- Kernel machines of scikit-learn


MATERN: Final = {1.5: "Matérn 3/2", 2.5: "Matérn 5/2", np.inf: "gaussian"}
"""Matérn kernels by ν; for other ν they have no closed form, or a kink."""


def _support_vector_machine(model: Any) -> Network | None:
    """The decision function; None for three or more classes, which vote by pairs."""
    # nothing else holds the width that gamma="scale" computed from the data
    gamma = model._gamma  # noqa: SLF001
    weights = dense_floats(model.dual_coef_)
    if len(weights) > 1:
        return None
    intercepts = floats(model.intercept_)
    return _machine(model, gamma, model.support_vectors_, weights, intercepts)


def _kernel_ridge(model: Any) -> Network | None:
    weights = np.atleast_2d(dense_floats(model.dual_coef_).T)
    zeros = np.zeros(len(weights))
    return _machine(model, model.gamma, model.X_fit_, weights, zeros)


def _gaussian_process(model: Any) -> Network | None:
    """The posterior mean of GaussianProcessRegressor."""
    kernel = _process_kernel(model.kernel_)
    if kernel is None:
        return None
    weights = np.atleast_2d(floats(model.alpha_).T)
    features = kernels.KernelFeatures(kernel, floats(model.X_train_))
    # nothing else holds the mean and scale that normalize_y computed
    mean = np.broadcast_to(model._y_train_mean, (len(weights),))  # noqa: SLF001
    std = np.broadcast_to(model._y_train_std, (len(weights),))  # noqa: SLF001
    return Chain(features, Affine(std[:, None] * weights, floats(mean)))


def _machine(
    model: Any,
    gamma: float | None,
    points: Any,  # (M, D): may be sparse for linear kernels
    weights: Array,
    intercepts: Array,
) -> Network | None:
    if model.kernel == "linear":  # Σ_m a_m xᵀz_m is one vector of coefficients
        return Affine(dense_floats(weights @ points), intercepts)
    centers = dense_floats(points)
    rate = 1.0 / centers.shape[1] if gamma is None else float(gamma)
    kernel = _named_kernel(model, rate)
    if kernel is None:
        return None
    return Chain(kernels.KernelFeatures(kernel, centers), Affine(weights, intercepts))


def _named_kernel(model: Any, rate: float) -> kernels.Kernel | None:
    """A kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels` or of libsvm."""
    match model.kernel:
        case "rbf" if rate > 0.0:
            return kernels.Radial("gaussian", 1.0 / np.sqrt(2.0 * rate))  # exp(−γ r²)
        case "poly" | "polynomial" if model.degree >= 1:
            constants = rate, model.coef0, model.degree
            return kernels.InnerProduct("polynomial", constants)
        case _:
            return None


def _process_kernel(kernel: Any) -> kernels.Kernel | None:
    """A kernel of :mod:`sklearn.gaussian_process.kernels`; never a subclass."""
    match class_name_of(kernel):
        case "sklearn.Sum" | "sklearn.Product" as kind:
            first = _process_kernel(kernel.k1)
            second = _process_kernel(kernel.k2)
            if first is None or second is None:
                return None
            return kernels.KernelPair(first, second, kind == "sklearn.Product")
        case "sklearn.ConstantKernel":
            return kernels.InnerProduct("constant", (kernel.constant_value,))
        case "sklearn.WhiteKernel":  # between the data and other points it is zero
            return kernels.InnerProduct("constant", (0.0,))
        case "sklearn.DotProduct":
            return kernels.InnerProduct("polynomial", (1.0, kernel.sigma_0**2, 1))
        case "sklearn.RBF":
            return kernels.Radial("gaussian", floats(kernel.length_scale))
        case "sklearn.Matern" if kernel.nu in MATERN:
            return kernels.Radial(MATERN[kernel.nu], floats(kernel.length_scale))
        case _:
            return None


# ---- Steps before a model: scalers, principal components


SCALERS: Final = tuple(
    f"sklearn.{name}Scaler" for name in ("MaxAbs", "MinMax", "Robust", "Standard")
)


def scaling_of(scaler: Any) -> Scaling:
    """The affine map of a scaler that does not clip."""
    zeros = np.zeros(scaler.n_features_in_)
    scale = scaler.scale_
    if is_a(scaler, "sklearn.MinMaxScaler"):
        return Scaling(zeros, floats(scale), floats(scaler.min_))
    # None stands for "not used"; the mean is stored even if unused
    center = fitted_value(scaler, "center_")
    if fitted_value(scaler, "with_mean"):
        center = scaler.mean_
    factor = zeros + 1.0 if scale is None else 1.0 / floats(scale)
    return Scaling(zeros if center is None else floats(center), factor, zeros)


def _scaled(scaler: Any) -> Network | None:
    # MaxAbsScaler can clip since scikit-learn 1.8
    return None if fitted_value(scaler, "clip") else scaling_of(scaler)


def _components(pca: Any) -> Network:
    """(x − mean) Vᵀ, over the standard deviations of the components if whitened."""
    components = floats(pca.components_)
    mean = floats(pca.mean_)
    if pca.whiten:
        variance = np.maximum(pca.explained_variance_, np.finfo(np.float64).eps ** 2)
        components /= np.sqrt(variance)[:, None]
    return Affine(components, -components @ mean)


def _frequencies(weights: Any) -> Network | None:
    """The inverse document frequencies of a TfidfTransformer without a norm."""
    if weights.norm is not None or weights.sublinear_tf:
        return None
    zeros = np.zeros(weights.n_features_in_)
    return Scaling(zeros, weights.idf_ if weights.use_idf else zeros + 1.0, zeros)


# ---- All of them


NETWORKS: Final[Mapping[str, Reader]] = {
    **dict.fromkeys(LINEAR_REGRESSORS, (linear_scores, one_score)),
    **dict.fromkeys(
        ("sklearn.GammaRegressor", "sklearn.PoissonRegressor"),
        (linear_scores, _exponential_if(lambda _: True)),
    ),
    **dict.fromkeys(
        (
            "sklearn.LinearSVC",
            "sklearn.Perceptron",
            "sklearn.RidgeClassifier",
            "sklearn.RidgeClassifierCV",
        ),
        (linear_scores, margin_alone),
    ),
    **dict.fromkeys(
        ("sklearn.LogisticRegression", "sklearn.LogisticRegressionCV"),
        (linear_scores, _logistic),
    ),
    "sklearn.SGDClassifier": (linear_scores, _descended),
    "sklearn.TweedieRegressor": (linear_scores, _exponential_if(_has_log_link)),
    _COMPLEMENT: (_counting, of_logits),
    "sklearn.GaussianNB": (_naive_bayes, of_logits),
    "sklearn.LinearDiscriminantAnalysis": (linear_scores, of_logits),
    "sklearn.MultinomialNB": (_counting, of_logits),
    "sklearn.QuadraticDiscriminantAnalysis": (_quadratic, _of_densities),
    "sklearn.MLPClassifier": (_layers, of_logits),
    "sklearn.MLPRegressor": (
        _layers,
        _exponential_if(lambda model: model.out_activation_ == "exp"),
    ),
    "sklearn.GaussianProcessRegressor": (_gaussian_process, one_score),
    "sklearn.KernelRidge": (_kernel_ridge, one_score),
    **dict.fromkeys(
        ("sklearn.NuSVR", "sklearn.SVR"), (_support_vector_machine, one_score)
    ),
    **dict.fromkeys(
        ("sklearn.NuSVC", "sklearn.SVC"), (_support_vector_machine, margin_alone)
    ),
    "sklearn.OneClassSVM": (
        _support_vector_machine,
        lambda _, output, _n: (
            ScoreLink("identity") if output.name == "margin" else None
        ),
    ),
}
"""The reader of each class of models; never used for subclasses."""

STEP_MAPS: Final[Mapping[str, Callable[[Any], Network | None]]] = {
    **dict.fromkeys(SCALERS, _scaled),
    **dict.fromkeys(("sklearn.IncrementalPCA", "sklearn.PCA"), _components),
    "sklearn.PolynomialFeatures": lambda features: Monomials(features.powers_),
    "sklearn.TfidfTransformer": _frequencies,
    "sklearn.TruncatedSVD": lambda svd: Affine(
        floats(svd.components_), np.zeros(len(svd.components_))
    ),
}
"""The map of each class of steps before a model; never used for subclasses."""


def step_map(step: Any) -> Network | None:
    """Map of a fitted transformer; None if it is not differentiable by a known rule."""
    rule = STEP_MAPS.get(class_name_of(step))
    return None if rule is None else rule(step)
