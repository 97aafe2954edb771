"""Eigenbases: one block for each component, constants first and exact."""

import numpy as np
import pytest
import scipy.linalg as la

import propopt as po
from propopt.losses.linear_algebra import Components
from propopt.results.curvature import Eigenbasis


def basis_of(S):
    graph = po.graph_from_matrix(S)
    return Eigenbasis(graph.differences.gram, graph.components, graph.n_nodes)


def matrix_of(basis, size):
    return basis.backward(np.eye(size))


def blocks(rng, *scales):
    parts = [scale * rng.uniform(0.5, 1.0, size=(5, 5)) for scale in scales]
    S = np.triu(la.block_diag(*parts, np.zeros((2, 2))), 1)
    return S + S.T


@pytest.mark.parametrize("scales", [(1.0,), (1.0, 1.0), (1e-7, 1e7, 1.0)])
def test_a_basis_is_orthonormal_and_diagonal(scales, rng):
    S = blocks(rng, *scales)
    order = rng.permutation(len(S))  # components need not be in one piece
    S = S[np.ix_(order, order)]
    basis, n = basis_of(S), len(S)
    U = matrix_of(basis, n)
    np.testing.assert_allclose(U.T @ U, np.eye(n), atol=1e-13)
    np.testing.assert_allclose(basis.forward(np.eye(n)), U.T, atol=1e-13)
    P = 2.0 * po.graph_from_matrix(S).laplacian.toarray()
    apart = P @ U - U * basis.values
    assert (la.norm(apart, axis=0) <= basis.errors + 1e-15 * la.norm(P)).all()


def test_each_component_has_one_zero_and_the_others_keep_their_digits(rng):
    S = blocks(rng, 1.0)[:5, :5]
    alone = basis_of(S).values
    scales = [1e-9, 1.0, 1e9]
    basis = basis_of(la.block_diag(*(scale * S for scale in scales)))
    assert basis.values[:3].tolist() == [0.0, 0.0, 0.0]
    assert basis.errors[:3].tolist() == [0.0, 0.0, 0.0]
    for scale, values in zip(scales, np.split(basis.values[3:], 3), strict=True):
        np.testing.assert_allclose(values, scale * alone[1:], rtol=1e-13)


def test_a_large_constant_comes_back_to_the_last_digit(rng):
    basis = basis_of(blocks(rng, 1.0, 3.0))
    constant = np.repeat([[1e15 / 3], [-7e14 / 9], [0.1], [0.2]], [5, 5, 1, 1], axis=0)
    turned = basis.forward(constant)
    assert not turned[4:].any()
    np.testing.assert_allclose(basis.backward(turned), constant, rtol=3e-16)


def test_no_coupling_is_no_work(rng):
    X = rng.normal(size=(4, 2))
    for basis in (Eigenbasis(None, None, 4), basis_of(np.zeros((4, 4)))):
        assert basis.values.tolist() == [0.0] * 4
        np.testing.assert_array_equal(basis.forward(X), X)
        np.testing.assert_array_equal(basis.backward(X), X)


def test_without_free_constants_all_eigenvalues_are_those_of_the_matrix(rng):
    A = rng.normal(size=(6, 6))
    basis = Eigenbasis(A @ A.T, None, 6)
    np.testing.assert_allclose(basis.values, la.eigvalsh(A @ A.T), rtol=1e-10)


@pytest.mark.parametrize("bridge", [1e-6, 1e-9, 1e-14])
def test_a_weak_bridge_between_clusters_keeps_its_digits(bridge, rng):
    # clusters of 5 joined by one edge s: λ = 2s(1/5 + 1/5) + O(s²), whatever is within
    S = blocks(rng, 1.0, 1.0)[:10, :10]
    S[4, 5] = S[5, 4] = bridge
    basis = basis_of(S)
    weakest = np.sort(basis.values)[1]
    assert weakest == pytest.approx(0.8 * bridge, rel=10 * bridge + 1e-9, abs=0)
    assert abs(weakest - 0.8 * bridge) <= basis.errors[1:].min() + 10 * bridge**2


def test_eigenvectors_that_are_none_have_large_errors(rng, monkeypatch):
    eigh = la.eigh
    S = blocks(rng, 1.0)

    def spoiled(P):
        values, vectors = eigh(P)
        return values * (1 + 1e-4), vectors

    assert basis_of(S).errors.max() < 1e-12
    monkeypatch.setattr(la, "eigh", spoiled)
    assert basis_of(S).errors.max() > 1e-4


def test_negative_similarities_have_a_basis_too():
    S = np.array([[0.0, 2.0, -0.5], [2.0, 0.0, 2.0], [-0.5, 2.0, 0.0]])
    basis = basis_of(S)
    expected = la.eigvalsh(2.0 * (np.diag(S.sum(axis=1)) - S))
    np.testing.assert_allclose(np.sort(basis.values), expected, atol=1e-12)


def test_parts_list_their_members_in_order():
    members = Components(np.array([1, 0, 1, 2, 0])).members()
    assert [nodes.tolist() for nodes in members] == [[1, 4], [0, 2], [3]]
