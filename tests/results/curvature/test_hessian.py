"""The inverse Hessian, against the matrix itself."""

import numpy as np
import pytest

import propopt as po
from propopt.results import hessian
from propopt.results.hessian import Iterated, QuadraticPart


def part_of(N=7, D=4, seed=0):
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((N, D))
    points = po.gaussian_graph(rng.standard_normal((N, 2)), lengthscale=1.0)
    objective = (
        po.GradientMatching(G)
        + po.PairwiseRobustness(points)
        + po.Smoothness(po.chain_graph(D))
        + po.Sparsity()
    )
    return QuadraticPart(po.losses.Program(objective.losses))


WEIGHTS = np.array([1.5, 0.3, 0.7, 0.2])


def explicit(part, weights):
    """H as a matrix (ND, ND), from the maps of the squared losses."""
    N, D = part.program.shape
    total = np.zeros((N * D, N * D))
    for weight, loss in zip(weights[:3], part.program.losses[:3], strict=True):
        B = loss.map.flat((N, D)).toarray()
        total += weight * B.T @ B
    return total


@pytest.fixture(params=["eigenbases", "conjugate gradients"])
def part(request, monkeypatch):
    if request.param == "conjugate gradients":
        monkeypatch.setattr(hessian, "MOST_DIAGONALIZED", 0)
    return part_of()


def test_solves_and_energies_are_those_of_the_matrix(part):
    E = np.random.default_rng(1).standard_normal(part.program.shape)
    H, inverse = part.hessian(WEIGHTS), np.linalg.inv(explicit(part, WEIGHTS))
    X = (inverse @ E.ravel()).reshape(E.shape)
    np.testing.assert_allclose(H.solve(E), X, rtol=0, atol=1e-11)


def test_blocks_are_those_of_the_matrix(part):
    N, D = part.program.shape
    H, inverse = part.hessian(WEIGHTS), np.linalg.inv(explicit(part, WEIGHTS))
    blocks = inverse.reshape(N, D, N, D)
    for n in range(N):
        np.testing.assert_allclose(H.inverse_block(n), blocks[n, :, n], atol=1e-11)


def test_the_diagonal_is_that_of_the_matrix():
    part = part_of()
    result = part.hessian(WEIGHTS).inverse_diagonal()
    expected = np.diag(np.linalg.inv(explicit(part, WEIGHTS))).reshape(result.shape)
    np.testing.assert_allclose(result, expected, rtol=1e-11)


def test_without_gradient_matching_there_is_no_inverse():
    with pytest.raises(po.errors.Refused, match="no inverse"):
        part_of().hessian(np.array([0.0, 1.0, 1.0, 1.0]))


def test_the_diagonal_by_iteration_is_refused_with_the_number_of_systems(monkeypatch):
    monkeypatch.setattr(hessian, "MOST_DIAGONALIZED", 0)
    H = part_of().hessian(WEIGHTS)
    assert isinstance(H, Iterated)
    with pytest.raises(po.errors.Refused, match="28 systems"):
        H.inverse_diagonal()
