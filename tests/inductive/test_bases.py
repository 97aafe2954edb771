"""Bases of similar features, stored or by transforms, and images explained by them."""

import tracemalloc

import numpy as np
import pytest
import scipy.linalg as la
from hypothesis import given
from hypothesis import strategies as st
from inductive_cases import similar_features

import propopt as po
from propopt.base.resources import Budget
from propopt.inductive import (
    DenseFeatures,
    GaussianProcessExplainer,
    GridFeatures,
    IndependentFeatures,
    bases,
)
from propopt.inductive.bases import KernelEigenbasis


SHAPE = po.functions.ImageShape(channels=2, height=5, width=7)


def pair_of_bases(kind, rng):
    """A basis, mostly such that forms no V, and its smoothness P."""
    if kind == "grid":
        return GridFeatures(SHAPE), DenseFeatures.of_graph(SHAPE.pixel_graph())
    similar, P = similar_features(kind, 5, rng)
    of = DenseFeatures.of_kernel if kind == "kernel" else DenseFeatures.of_graph
    return of(similar), P


def smoothness_matrix(basis):
    """P = V diag(ς) Vᵀ, by the three actions of the basis."""
    if isinstance(basis, np.ndarray):
        return basis
    return basis.unrotate(basis.rotate(np.eye(basis.n_features)) * basis.eigenvalues)


@pytest.mark.parametrize("kind", ["kernel", "chain", "gaussian", "groups", "grid"])
def test_a_basis_is_orthogonal_and_its_smoothness_that_of_the_graph(kind, rng):
    basis, peer = pair_of_bases(kind, rng)
    P = smoothness_matrix(peer)
    scale, D = np.abs(P).max(), len(P)
    np.testing.assert_allclose(smoothness_matrix(basis), P, atol=1e-10 * scale)
    expected = np.sort(la.eigvalsh(P))
    values = np.sort(basis.eigenvalues)
    np.testing.assert_allclose(values, expected, atol=1e-10 * scale * D)
    V = basis.rotate(np.eye(D))
    np.testing.assert_allclose(V.T @ V, np.eye(D), atol=1e-13)
    variances = rng.uniform(size=(3, D))
    expected = [np.diag(V @ np.diag(row) @ V.T) for row in variances]
    result = basis.unrotate_variances(variances)
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    rows = rng.normal(size=(3, 4, D))  # of any dimensions
    before, rotated = rows.copy(), basis.rotate(rows)
    np.testing.assert_allclose(basis.unrotate(rotated), rows, atol=1e-13)
    np.testing.assert_allclose(rotated[1, 2], basis.rotate(rows[1, 2]), atol=1e-14)
    np.testing.assert_array_equal(rows, before)


@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 6))
def test_grid_is_the_pixel_graph_of_every_shape(channels, height, width):
    shape = po.functions.ImageShape(channels, height, width)
    basis = GridFeatures(shape)
    expected = 2 * shape.pixel_graph().laplacian.toarray()
    np.testing.assert_allclose(smoothness_matrix(basis), expected, atol=1e-13)
    assert (basis.eigenvalues == 0).sum() == channels


def test_components_are_exact_zeros_and_blocks_change_nothing(rng, monkeypatch):
    basis = DenseFeatures.of_graph(po.graphs.group_graph([0, 0, 1, 1, 1, 2]))
    assert (basis.eigenvalues == 0).sum() == 3
    basis, _ = pair_of_bases("grid", rng)
    rows = rng.uniform(size=(9, SHAPE.n_features))
    whole = basis.unrotate_variances(rows)
    monkeypatch.setattr(bases, "BATCH_BUDGET", Budget(16 * SHAPE.n_features))
    np.testing.assert_allclose(basis.unrotate_variances(rows), whole, atol=1e-13)


# ---- explanations
def test_nothing_of_the_square_of_the_pixels_is_formed(rng):
    shape = po.functions.ImageShape(1, 64, 64)
    X, G = rng.normal(size=(2, 10, shape.n_features))
    tracemalloc.start()
    fitted = GaussianProcessExplainer(0.1, 0.3, features=shape).fit(X, G)
    fitted.explain_path(X[:1] + 1, [(0.1, 0.3), (1.0, 3.0)], return_std=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    square = 8 * shape.n_features**2  # 134 MB
    assert peak < square / 10


def test_many_independent_features_need_no_square_matrix(rng):
    X = rng.normal(size=(5, 200_000))
    explainer = GaussianProcessExplainer(
        features=IndependentFeatures(200_000), lengthscale=100.0
    ).fit(X, X)
    result = explainer.explain(X[:2] + 0.1, return_std=True)
    assert result.attributions.shape == (2, 200_000)


# ---- eigenbases of kernels
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
