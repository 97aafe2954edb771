"""Inductive explanations of images, against dense eigenbases and small algebra."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.linalg as la
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.inductive import (
    DenseFeatures,
    FeatureBasis,
    GaussianProcessExplainer,
    GridFeatures,
    KroneckerFeatures,
    posterior,
)
from propopt.inductive.bases import KernelEigenbasis
from propopt.inductive.inputs import cross_distances


MEANS = ["none", "per_feature", "common"]
SHAPE = po.ImageShape(channels=2, height=5, width=7)


def positive(size: int, rng: np.random.Generator) -> np.ndarray:
    root = rng.normal(size=(size, size))
    return root @ root.T + 0.3 * np.eye(size)


def pairs_of_bases(
    rng: np.random.Generator,
) -> dict[str, tuple[FeatureBasis, DenseFeatures]]:
    """Bases that form no V, and the stored bases of the same smoothness."""
    rows, columns = positive(5, rng), positive(7, rng)
    kernel = np.kron(np.eye(2), np.kron(rows, columns))
    return {
        "grid": (GridFeatures(SHAPE), DenseFeatures.of_graph(SHAPE.pixel_graph())),
        "kronecker": (
            KroneckerFeatures.of_kernels(rows, columns, channels=2),
            DenseFeatures.of_kernel(kernel),
        ),
    }


BASES = ["grid", "kronecker"]


def smoothness_matrix(basis: FeatureBasis) -> np.ndarray:
    """P = V diag(ς) Vᵀ, by the three actions of the basis."""
    return basis.unrotate(basis.rotate(np.eye(basis.n_features)) * basis.eigenvalues)


# --------------------------------------------------------------------------- bases


@pytest.mark.parametrize("kind", BASES)
def test_smoothness_is_that_of_the_stored_basis(kind, rng):
    basis, dense = pairs_of_bases(rng)[kind]
    scale = dense.eigenvalues.max()
    result, expected = np.sort(basis.eigenvalues), np.sort(dense.eigenvalues)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-10 * scale)
    np.testing.assert_allclose(
        smoothness_matrix(basis), smoothness_matrix(dense), rtol=0, atol=1e-10 * scale
    )


@pytest.mark.parametrize("kind", BASES)
def test_rotation_is_orthogonal_for_rows_of_any_dimensions(kind, rng):
    basis, _ = pairs_of_bases(rng)[kind]
    rows = rng.normal(size=(3, 4, SHAPE.n_features))
    before, rotated = rows.copy(), basis.rotate(rows)
    np.testing.assert_allclose(basis.unrotate(rotated), rows, atol=1e-13)
    np.testing.assert_allclose(rotated[1, 2], basis.rotate(rows[1, 2]), atol=1e-14)
    V = basis.rotate(np.eye(SHAPE.n_features))
    np.testing.assert_allclose(V.T @ V, np.eye(SHAPE.n_features), atol=1e-13)
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("kind", BASES)
def test_variances_are_the_diagonal_of_the_rotated_covariance(kind, rng):
    basis, _ = pairs_of_bases(rng)[kind]
    variances = rng.uniform(size=(3, SHAPE.n_features))
    V = basis.rotate(np.eye(SHAPE.n_features))
    expected = [np.diag(V @ np.diag(row) @ V.T) for row in variances]
    result = basis.unrotate_variances(variances)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 6))
def test_grid_is_the_pixel_graph_of_every_shape(channels, height, width):
    shape = po.ImageShape(channels, height, width)
    basis = GridFeatures(shape)
    expected = 2 * shape.pixel_graph().laplacian.toarray()
    np.testing.assert_allclose(smoothness_matrix(basis), expected, atol=1e-13)
    assert (basis.eigenvalues == 0).sum() == channels


def test_blocks_of_images_change_nothing_but_rounding(rng, monkeypatch):
    basis, _ = pairs_of_bases(rng)["kronecker"]
    rows = rng.normal(size=(9, SHAPE.n_features))
    whole = basis.rotate(rows)
    for tables in ("AT_ONCE", "CACHED_TABLES"):
        monkeypatch.setattr(posterior, tables, Budget(16 * SHAPE.n_features))
    np.testing.assert_allclose(basis.rotate(rows), whole, atol=1e-13)


# -------------------------------------------------------------------- explanations


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("kind", BASES)
def test_explanation_is_that_of_the_stored_basis(kind, mean, rng):
    X, G = rng.normal(size=(2, 9, SHAPE.n_features))
    new = rng.normal(size=(4, SHAPE.n_features))
    weights = [(0.1, 0.0), (0.3, 0.8), (5.0, 20.0)]
    result, expected = (
        GaussianProcessExplainer(0.3, 0.8, features=features, mean=mean)
        .fit(X, G)
        .explain_path(new, weights, return_std=True)
        for features in pairs_of_bases(rng)[kind]
    )
    for one, other in zip(result, expected, strict=True):
        np.testing.assert_allclose(one.attributions, other.attributions, atol=1e-10)
        np.testing.assert_allclose(
            one.details["standard_deviation"],
            other.details["standard_deviation"],
            rtol=1e-10,
        )


def test_samples_of_images_have_their_mean(rng):
    # 12 means of 4,000 gaussian draws, each within 6 standard errors: one run in 4e7
    # would fail by chance
    shape = po.ImageShape(1, 3, 4)
    X, G = rng.normal(size=(2, 5, 12))
    fitted = GaussianProcessExplainer(0.3, 0.5, features=shape).fit(X, G)
    result = fitted.explain(X[:1] + 1.0, return_std=True)
    draws = fitted.sample(X[:1] + 1.0, 4000, random_state=3)[:, 0]
    error = np.abs(draws.mean(axis=0) - result.attributions[0])
    deviation = result.details["standard_deviation"][0]
    assert (error <= 6 * deviation / np.sqrt(4000)).all()
    # a sample variance of gaussians varies by √(2/S), relatively
    ratio = draws.var(axis=0) / deviation**2
    assert (np.abs(ratio - 1) <= 6 * np.sqrt(2 / 4000)).all()


# -------------------------------------------------------------------- hard images


def test_nothing_of_the_square_of_the_pixels_is_formed(rng):
    shape = po.ImageShape(1, 64, 64)
    kernel = RBF(3.0)(np.arange(64.0)[:, None]) + 1e-3 * np.eye(64)
    X, G = rng.normal(size=(2, 10, shape.n_features))
    for features in (shape, KroneckerFeatures.of_kernels(kernel, kernel)):
        tracemalloc.start()
        fitted = GaussianProcessExplainer(0.1, 0.3, features=features).fit(X, G)
        fitted.explain_path(X[:1] + 1, [(0.1, 0.3), (1.0, 3.0)], return_std=True)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        square = 8 * shape.n_features**2  # 134 MB
        assert peak < square / 10


def test_constant_images_are_points_on_a_line(rng):
    # images c·1 are √D |c − c'| apart
    shape = po.ImageShape(1, 9, 10)
    grey, G = rng.uniform(size=(12, 1)), rng.normal(size=(12, 90))
    explainer = GaussianProcessExplainer(0.2, lengthscale=3.0, mean="none")
    fitted = explainer.set_params(features=shape).fit(grey * np.ones(90), G)
    result = fitted.explain(0.5 * np.ones((1, 90)), return_std=True)
    kernel = ConstantKernel(1 / 0.4) * RBF(3.0 / np.sqrt(90))
    peer = GaussianProcessRegressor(kernel, alpha=1.0, optimizer=None).fit(grey, G)
    mean, deviation = peer.predict([[0.5]], return_std=True)
    np.testing.assert_allclose(result.attributions, mean, atol=1e-10)
    np.testing.assert_allclose(
        result.details["standard_deviation"], deviation, rtol=1e-10
    )


def test_equal_images_without_a_lengthscale_are_refused():
    X = np.ones((4, 90))
    with pytest.raises(InvalidInput, match="all points coincide"):
        GaussianProcessExplainer(features=po.ImageShape(1, 9, 10)).fit(X, X)


def test_distances_among_doubled_and_near_images_are_right_and_symmetric(rng):
    X = 10.0 + np.repeat(rng.normal(size=(6, 500)), 3, axis=0)
    X[2] += 1e-7
    result = cross_distances(X, X)
    np.testing.assert_allclose(result, cdist(X, X), rtol=1e-11)
    np.testing.assert_array_equal(result, result.T)
    assert result[0, 1] == 0 < result[0, 2]


# -------------------------------------------------------------------- eigenbases


@pytest.mark.parametrize("n", [1, 2, 3, 40])
@pytest.mark.parametrize("rank", [1, 40])
def test_eigenbasis_is_one_and_rotates_few_columns_as_it_does_many(n, rank, rng):
    root = rng.normal(size=(n, rank))
    K = root @ root.T
    basis = KernelEigenbasis.of(K.copy())
    U, scale = basis.vectors, la.norm(K, 2)
    np.testing.assert_allclose(U.T @ U, np.eye(n), atol=1e-13)
    np.testing.assert_allclose((U * basis.eigenvalues) @ U.T, K, atol=1e-13 * scale)
    expected = la.eigvalsh(K)
    np.testing.assert_allclose(basis.eigenvalues, expected, atol=1e-13 * scale)
    columns = rng.normal(size=(n, 50))
    np.testing.assert_allclose(basis.rotate(columns), U.T @ columns, atol=1e-12)
    np.testing.assert_allclose(
        basis.rotate(columns[:, :1]), U.T @ columns[:, :1], atol=1e-12
    )


def test_a_kernel_that_is_not_positive_is_refused():
    with pytest.raises(InvalidInput, match="not positive semidefinite"):
        KernelEigenbasis.of(np.array([[1.0, 2.0], [2.0, 1.0]]))


# -------------------------------------------------------------------- bad input


def test_shapes_of_other_sizes_are_named():
    X = np.arange(12.0).reshape(2, 6)
    with pytest.raises(InvalidInput, match="features: expected 6 features"):
        GaussianProcessExplainer(features=po.ImageShape(1, 2, 2)).fit(X, X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 2)), np.eye(3)), "row_kernel: expected a positive definite"),
        ((np.eye(2), np.ones((2, 3))), "column_kernel: expected a symmetric"),
        ((np.eye(2), np.eye(3), 0), "channels: expected an integer >= 1"),
    ],
)
def test_kernels_that_cannot_be_used_are_named(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        KroneckerFeatures.of_kernels(*arguments)
