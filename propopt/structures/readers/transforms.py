"""Which fitted scikit-learn transformers are differentiated exactly, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from propopt._typing import Array
from propopt.structures.feature_maps import Cosines, Monomials
from propopt.structures.networks import Affine, Network, Scaling
from propopt.structures.readers.kernels import nystroem
from propopt.structures.readers.parameters import floats


def _standard(scaler: Any) -> Network:
    zeros = np.zeros(scaler.n_features_in_)
    center = floats(scaler.mean_) if scaler.with_mean else zeros
    return Scaling(center, _inverse(scaler, used=scaler.with_std), zeros)


def _robust(scaler: Any) -> Network:
    zeros = np.zeros(scaler.n_features_in_)
    center = floats(scaler.center_) if scaler.with_centering else zeros
    return Scaling(center, _inverse(scaler, used=scaler.with_scaling), zeros)


def _min_max(scaler: Any) -> Network | None:
    if scaler.clip:
        return None
    zeros = np.zeros(scaler.n_features_in_)
    return Scaling(zeros, floats(scaler.scale_), floats(scaler.min_))


def _max_abs(scaler: Any) -> Network | None:
    if scaler.get_params().get("clip", False):  # new in scikit-learn 1.8
        return None
    zeros = np.zeros(scaler.n_features_in_)
    return Scaling(zeros, _inverse(scaler, used=True), zeros)


def _inverse(scaler: Any, *, used: bool) -> Array:
    return 1.0 / floats(scaler.scale_) if used else np.ones(scaler.n_features_in_)


def _components(pca: Any) -> Network:
    """(x − mean) Vᵀ, over the standard deviations of the components if whitened."""
    components, mean = floats(pca.components_), floats(pca.mean_)
    if pca.whiten:
        variance = np.maximum(pca.explained_variance_, np.finfo(np.float64).eps ** 2)
        components /= np.sqrt(variance)[:, None]
    return Affine(components, -components @ mean)


def _singular_vectors(svd: Any) -> Network:
    components = floats(svd.components_)
    return Affine(components, np.zeros(len(components)))


def _polynomial(features: Any) -> Network:
    return Monomials.of(features.powers_)


def _fourier(sampler: Any) -> Network:
    frequencies = floats(sampler.random_weights_)
    amplitude = float(np.sqrt(2.0 / frequencies.shape[1]))
    return Cosines(frequencies, floats(sampler.random_offset_), amplitude)


SKLEARN_TRANSFORMS: Final[Mapping[type, Callable[[Any], Network | None]]] = {
    IncrementalPCA: _components,
    MaxAbsScaler: _max_abs,
    MinMaxScaler: _min_max,
    Nystroem: nystroem,
    PCA: _components,
    PolynomialFeatures: _polynomial,
    RBFSampler: _fourier,
    RobustScaler: _robust,
    StandardScaler: _standard,
    TruncatedSVD: _singular_vectors,
}
