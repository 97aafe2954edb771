"""Hyper-parameters that account best for gradients, against dense densities."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from inductive_cases import (
    MEANS,
    Case,
    dense_posterior,
    prior_precision,
    similar_features,
)
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import propopt as po
from propopt.inductive import GaussianProcessExplainer
from propopt.inductive.bases import read_features
from propopt.inductive.inputs import read_kernel
from propopt.inductive.means import read_mean
from propopt.inductive.model import (
    Criterion,
    log_evidence,
    log_leave_one_out,
    smoothing,
)
from propopt.inductive.posterior import ExactPosterior


def evidence_case(rng: np.random.Generator, mean: str, features: str) -> Case:
    similar, P = similar_features(features, 3, rng)
    explainer = GaussianProcessExplainer(
        0.3,
        0.2 if P.any() else 0.0,
        features=similar,
        lengthscale=1.0,
        mean=mean,
        jitter=1e-4,
    )
    X, G = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    return Case(X, G, X[:1], explainer, P)


def measured(
    explainer: GaussianProcessExplainer,
    X: np.ndarray,
    G: np.ndarray,
    criterion: Criterion,
) -> float:
    """The criterion at the parameters of an explainer, optimizing nothing."""
    basis = read_features(explainer.features, X.shape[1])
    kernel = read_kernel(explainer.kernel, explainer.lengthscale, X, explainer.jitter)
    return criterion(
        ExactPosterior.of(kernel, X, basis.rotate(G)),
        smoothing(basis, explainer.smoothness),
        2.0 * explainer.robustness,
        read_mean(explainer.mean, basis),
    )


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("features", ["none", "kernel", "chain"])
def test_evidence_is_that_of_dense_contrasts(mean, features, rng):
    case = evidence_case(rng, mean, features)
    R = prior_precision(case.kernel_matrix(case.X), case.smoothing, case.explainer)
    values, vectors = np.linalg.eigh(R)
    proper = values > 1e-9 * values[-1]  # an improper direction carries no density
    root = vectors[:, proper]
    covariance = (root / values[proper]) @ root.T + root @ root.T
    pseudo = np.linalg.pinv(covariance, rcond=1e-12, hermitian=True)
    g = case.G.ravel()
    inside = np.linalg.eigvalsh(covariance)
    log_det = np.log(inside[inside > 1e-9]).sum()
    # contrasts are orthonormal here; a flat prior of density one counts 1ᵀ1 besides
    n_flat = int((~proper).sum())
    lengths = {"none": 0.0, "per_feature": np.log(6.0), "common": np.log(18.0)}[mean]
    dense = g @ pseudo @ g + log_det + proper.sum() * np.log(2 * np.pi)
    dense += n_flat * lengths
    np.testing.assert_allclose(
        measured(case.explainer, case.X, case.G, log_evidence), -0.5 * dense, rtol=1e-7
    )


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("features", ["none", "kernel", "chain"])
def test_leaving_one_out_is_explaining_each_point_from_the_others(mean, features, rng):
    case = evidence_case(rng, mean, features)
    total = 0.0
    for n in range(len(case.X)):
        rest = dataclasses.replace(
            case, X=np.delete(case.X, n, 0), G=np.delete(case.G, n, 0)
        )
        row, covariance = dense_posterior(rest, case.X[n])
        law = multivariate_normal(row, covariance + np.eye(3))
        total += law.logpdf(case.G[n])
    np.testing.assert_allclose(
        measured(case.explainer, case.X, case.G, log_leave_one_out), total, rtol=1e-7
    )


@pytest.mark.parametrize("optimize", ["marginal_likelihood", "leave_one_out"])
def test_optimized_parameters_beat_a_grid(optimize, rng):
    X = rng.uniform(-3, 3, size=(40, 2))
    G = 3 * np.sin(X) + rng.normal(size=X.shape)
    explainer = GaussianProcessExplainer(optimize=optimize, mean="none").fit(X, G)
    criterion = {
        "marginal_likelihood": log_evidence,
        "leave_one_out": log_leave_one_out,
    }[optimize]
    for lengthscale in [0.3, 1.0, 1.5, 3.0, 10.0]:
        for robustness in [0.001, 0.01, 0.1, 1.0]:
            other = GaussianProcessExplainer(
                robustness, lengthscale=lengthscale, mean="none"
            )
            value = measured(other, X, G, criterion)
            assert explainer.criterion_ >= value - 1e-6


def test_optimum_is_that_of_scikit_learn(rng):
    X = rng.uniform(-3, 3, size=(40, 2))
    G = 3 * np.sin(X) + rng.normal(size=X.shape)
    explainer = GaussianProcessExplainer(
        optimize="marginal_likelihood", mean="none", n_restarts=2
    ).fit(X, G)
    peer = GaussianProcessRegressor(
        ConstantKernel(1.0) * RBF(1.0),
        alpha=1.0,
        n_restarts_optimizer=2,
        random_state=0,
    ).fit(X, G)
    np.testing.assert_allclose(
        explainer.criterion_, peer.log_marginal_likelihood_value_, rtol=1e-6
    )
    np.testing.assert_allclose(
        explainer.kernel_.length_scale, peer.kernel_.k2.length_scale, rtol=1e-2
    )


def test_smoothness_is_found_where_features_are_alike(rng):
    X = rng.uniform(-3, 3, size=(50, 4))
    G = 3 * np.sin(X[:, :1]) + rng.normal(size=X.shape)  # all features the same
    explainer = GaussianProcessExplainer(
        0.1,
        0.01,
        features=po.chain_graph(4),
        optimize="marginal_likelihood",
        mean="none",
    ).fit(X, G)
    assert explainer.smoothness_ > 1.0
    assert explainer.smoothness == 0.01
