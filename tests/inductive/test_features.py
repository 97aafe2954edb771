"""Bases of similar features: eigenbases, stored or by transforms."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from inductive_cases import MEANS, close, similar_features
from scipy import fft

import propopt as po
from propopt.inductive import (
    DenseFeatures,
    FeatureBasis,
    GaussianProcessExplainer,
    IndependentFeatures,
)


@pytest.mark.parametrize("kind", ["kernel", "chain", "gaussian", "groups"])
def test_basis_is_an_eigenbasis_of_smoothness(kind, rng):
    similar, P = similar_features(kind, 5, rng)
    basis = (
        DenseFeatures.of_kernel(similar)
        if kind == "kernel"
        else DenseFeatures.of_graph(similar)
    )
    W = rng.normal(size=(4, 5))
    rotated = basis.rotate(W)
    np.testing.assert_allclose(basis.unrotate(rotated), W, atol=1e-12)
    np.testing.assert_allclose(
        (basis.eigenvalues * rotated**2).sum(), np.trace(W @ P @ W.T), rtol=1e-10
    )
    s = rng.uniform(size=(2, 5))
    V = basis.unrotate(np.eye(5)).T
    expected = [np.diag(V @ np.diag(row) @ V.T) for row in s]
    np.testing.assert_allclose(basis.unrotate_variances(s), expected, atol=1e-12)


def test_components_of_a_graph_are_exact_zeros():
    basis = DenseFeatures.of_graph(po.group_graph([0, 0, 1, 1, 1, 2]))
    assert (basis.eigenvalues == 0).sum() == 3


def test_many_independent_features_need_no_square_matrix(rng):
    X = rng.normal(size=(5, 200_000))
    explainer = GaussianProcessExplainer(
        features=IndependentFeatures(200_000), lengthscale=100.0
    ).fit(X, X)
    result = explainer.explain(X[:2] + 0.1, return_std=True)
    assert result.attributions.shape == (2, 200_000)


@dataclasses.dataclass(frozen=True)
class Cosines(FeatureBasis):
    """The chain's basis by fast transforms: V is never formed to rotate."""

    count: int

    @property
    def eigenvalues(self) -> np.ndarray:
        return 4 - 4 * np.cos(np.pi * np.arange(self.count) / self.count)

    def rotate(self, rows: np.ndarray) -> np.ndarray:
        return fft.dct(rows, norm="ortho")

    def unrotate(self, rows: np.ndarray) -> np.ndarray:
        return fft.idct(rows, norm="ortho")

    def unrotate_variances(self, variances: np.ndarray) -> np.ndarray:
        # cos² = (1 + cos 2·)/2, evaluated at the middles of cells
        position = (2 * np.arange(self.count) + 1) / (2 * self.count)
        wave = np.cos(2 * np.pi * np.outer(np.arange(self.count), position))
        share = (1 + wave) / self.count
        share[0] = 1 / self.count
        return variances @ share


@pytest.mark.parametrize("mean", MEANS)
def test_a_basis_by_transforms_gives_what_a_dense_one_gives(mean, rng):
    X, G = rng.normal(size=(2, 9, 6))
    new = rng.normal(size=(4, 6))
    by_graph, by_cosines = (
        GaussianProcessExplainer(0.3, 0.8, features=features, mean=mean)
        .fit(X, G)
        .explain(new, return_std=True)
        for features in (po.chain_graph(6), Cosines(6))
    )
    assert close(by_cosines.attributions, by_graph.attributions, 1e-12)
    assert close(
        by_cosines.details["standard_deviation"],
        by_graph.details["standard_deviation"],
        1e-12,
    )
