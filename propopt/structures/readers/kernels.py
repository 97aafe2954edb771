"""Kernel machines of scikit-learn, read from fitted models.

None stands for a kernel that we do not differentiate: the absolute exponential (Matérn
with ν = 1/2, laplacian), which has a kink at every center, and those of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from propopt._typing import Array
from propopt.structures.kernels import (
    Constant,
    Gaussian,
    Kernel,
    KernelMachine,
    KernelPower,
    KernelProduct,
    KernelSum,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Tanh,
)
from propopt.structures.links import Link, Score
from propopt.structures.networks import Affine, Chain, Network, Scaling
from propopt.structures.readers.base import Reader, ScoredOutput, margin_alone
from propopt.structures.readers.parameters import dense_floats, floats


MATERN: Final[Mapping[float, Callable[[Array], Kernel]]] = {
    1.5: Matern32,
    2.5: Matern52,
    np.inf: Gaussian,
}
"""Matérn kernels by ν; those of other ν have no closed form, or a kink."""


def _support_vector_machine(model: Any) -> Network | None:
    """Scores of SVR, SVC (two classes), OneClassSVM and their ν forms.

    More classes are decided by votes between pairs, which are no smooth scores.
    """
    # the width that gamma="scale" took from the data is kept nowhere else
    gamma = model._gamma  # noqa: SLF001
    settings = {"gamma": gamma, "coef0": model.coef0, "degree": model.degree}
    weights = dense_floats(model.dual_coef_)
    if len(weights) > 1:
        return None
    centers, intercepts = dense_floats(model.support_vectors_), floats(model.intercept_)
    return _machine(model.kernel, settings, centers, weights, intercepts)


def _kernel_ridge(model: Any) -> Network | None:
    """Scores of KernelRidge."""
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
    machine = KernelMachine(kernel, centers, weights, np.zeros(len(weights)))
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
    return KernelMachine(kernel, centers, weights, intercepts)


def _named_kernel(
    name: object, settings: Mapping[str, Any], n_features: int
) -> Kernel | None:
    """A kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels` or of libsvm."""
    gamma = settings["gamma"]
    rate = 1.0 / n_features if gamma is None else float(gamma)
    match name:
        case "rbf" if rate > 0.0:
            return Gaussian(1.0 / np.sqrt(2.0 * rate))  # exp(−γ r²)
        case "poly" | "polynomial" if settings["degree"] >= 1:
            return Polynomial(rate, settings["coef0"], settings["degree"])
        case "sigmoid":
            return Tanh(rate, settings["coef0"])
        case _:
            return None


def _process_kernel(kernel: Any) -> Kernel | None:
    """A kernel of :mod:`sklearn.gaussian_process.kernels`; never a subclass."""
    kind = type(kernel)
    if kind in (gp.Sum, gp.Product):
        return _pair(kernel, KernelSum if kind is gp.Sum else KernelProduct)
    if kind is gp.Exponentiation:
        base = _process_kernel(kernel.kernel)
        return None if base is None else KernelPower(base, kernel.exponent)
    if kind is gp.ConstantKernel:
        return Constant(kernel.constant_value)
    if kind is gp.WhiteKernel:  # between the data and other points it is zero
        return Constant(0.0)
    if kind is gp.DotProduct:
        return Linear(kernel.sigma_0**2)
    return _stationary_kernel(kernel)


def _pair(kernel: Any, kind: type[KernelSum | KernelProduct]) -> Kernel | None:
    first, second = _process_kernel(kernel.k1), _process_kernel(kernel.k2)
    return None if first is None or second is None else kind(first, second)


def _stationary_kernel(kernel: Any) -> Kernel | None:
    kind = type(kernel)
    if kind is gp.RBF:
        return Gaussian(floats(kernel.length_scale))
    if kind is gp.Matern and kernel.nu in MATERN:
        return MATERN[kernel.nu](floats(kernel.length_scale))
    if kind is gp.RationalQuadratic:
        return RationalQuadratic(kernel.length_scale, kernel.alpha)
    if kind is gp.ExpSineSquared:
        return Periodic(kernel.length_scale, kernel.periodicity)
    return None


def _novelty(_model: Any, quantity: ScoredOutput) -> Link | None:
    return Score(0) if quantity.output == "margin" else None


KERNEL_MODELS: Final[Mapping[type, Reader]] = {
    GaussianProcessRegressor: Reader(_gaussian_process),
    KernelRidge: Reader(_kernel_ridge),
    **dict.fromkeys((NuSVR, SVR), Reader(_support_vector_machine)),
    **dict.fromkeys((NuSVC, SVC), Reader(_support_vector_machine, margin_alone)),
    OneClassSVM: Reader(_support_vector_machine, _novelty),
}
