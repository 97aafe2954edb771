"""Linear maps: one text for arrays and for cvxpy, an adjoint and a matrix."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from catalogue import MAPS, SHAPE
from oracles import subclasses

from propopt.losses.maps import (
    ImplicitOverPoints,
    LinearMap,
    OverFeatures,
    OverPoints,
    dense_matrix,
)


each_map = pytest.mark.parametrize("A", MAPS.values(), ids=MAPS)
with_gram = {
    name: A
    for name, A in MAPS.items()
    if isinstance(A, OverPoints | ImplicitOverPoints | OverFeatures)
}


def test_every_map_is_in_the_catalogue():
    assert subclasses(LinearMap) == {type(A) for A in MAPS.values()}


@each_map
def test_adjoint_has_the_inner_products_of_the_map(A, rng):
    W = rng.normal(size=SHAPE)
    R = rng.normal(size=A(W).shape)
    assert np.vdot(A(W), R) == pytest.approx(np.vdot(W, A.adjoint(R)), rel=1e-12)


@each_map
def test_adjoint_has_the_shape_of_the_attributions(A, rng):
    assert A.adjoint(A(rng.normal(size=SHAPE))).shape == SHAPE


@each_map
def test_map_is_linear(A, rng):
    V, W = rng.normal(size=(2, *SHAPE))
    np.testing.assert_allclose(A(2 * V - W), 2 * A(V) - A(W), atol=1e-12)


@each_map
def test_map_of_an_expression_is_the_map_of_its_value(A, rng):
    W = rng.normal(size=SHAPE)
    variable = cp.Variable(SHAPE)
    variable.value = W
    np.testing.assert_allclose(A(variable).value, A(W), atol=1e-12)


@each_map
def test_map_of_an_expression_has_the_shape_of_that_of_an_array(A):
    assert A(cp.Variable(SHAPE)).shape == A(np.zeros(SHAPE)).shape


@each_map
def test_flat_is_the_matrix_on_row_major_attributions(A, rng):
    W = rng.normal(size=SHAPE)
    np.testing.assert_allclose(A.flat(SHAPE) @ W.ravel(), A(W).ravel(), atol=1e-12)


@each_map
def test_flat_rows_is_the_number_of_residuals(A):
    assert A.flat_rows(SHAPE) == A(np.zeros(SHAPE)).size == A.flat(SHAPE).shape[0]


@pytest.mark.parametrize("A", with_gram.values(), ids=with_gram)
def test_gram_is_the_matrix_times_itself(A):
    explicit = A.explicit() if isinstance(A, ImplicitOverPoints) else A
    matrix = dense_matrix(explicit.matrix)
    np.testing.assert_allclose(dense_matrix(A.gram), matrix.T @ matrix, atol=1e-12)


@each_map
def test_energy_is_the_squared_size_of_the_residuals(A, rng):
    W = rng.normal(size=SHAPE)
    assert A.energy(W) == pytest.approx((A(W) ** 2).sum(), rel=1e-12)


@each_map
def test_normal_is_the_adjoint_of_the_map(A, rng):
    W = rng.normal(size=SHAPE)
    np.testing.assert_allclose(A.normal(W), A.adjoint(A(W)), atol=1e-12)


@each_map
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_gradient_is_the_adjoint_of_the_map_whatever_the_mean(A, offset, rng):
    W = rng.normal(size=SHAPE) + offset
    declared = A.rounding(W).gradient
    exact = A.adjoint(A(W))
    error = np.linalg.norm(A.gradient(W) - exact)
    assert error <= declared + 1e-14 * np.linalg.norm(exact)


@each_map
def test_rounding_is_small_and_not_negative(A, rng):
    W = rng.normal(size=SHAPE)
    rounding = A.rounding(W)
    assert 0.0 <= rounding.residual <= 1e-13 * np.linalg.norm(W)
    assert 0.0 <= rounding.gradient <= 1e-12 * np.linalg.norm(W)


@each_map
def test_map_does_not_change_its_input(A, rng):
    W = rng.normal(size=SHAPE)
    before = W.copy()
    A.adjoint(A(W))
    np.testing.assert_array_equal(W, before)
