"""H⁻¹ of losses over words that documents share, against matrices written out."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import propopt as po
from propopt.base.errors import Refused
from propopt.losses.linear_algebra import Components, inverse_by_parts
from propopt.results import hessian
from propopt.results.hessian import OfEntries, QuadraticPart, smoothest


N, D = 8, 4
WEIGHTS = np.array([1.5, 0.3])


def drawn(seed=0):
    """A target, its words, and similarities of the documents; one has no word."""
    rng = np.random.default_rng(seed)
    present = rng.random((N, D)) < 0.6
    present[3] = False
    G = rng.standard_normal((N, D)) * present
    graph = po.gaussian_graph(rng.standard_normal((N, 2)), lengthscale=3.0)
    return G, present, graph


def program(*, complete: bool, seed=0):
    G, present, graph = drawn(seed)
    losses = (po.GradientMatching(G), po.SharedRobustness(graph, present))
    t = np.where(present.any(axis=1), G.sum(axis=1) + 1.0, 0.0)
    total = po.Completeness(t, present.astype(float))
    bounds = (total.bound(D),) if complete else ()
    return po.losses.Program(losses, bounds), present


def explicit(problem, present, *, complete: bool):
    """The inverse (ND, ND) on what is left: Z (ZᵀHZ)⁻¹Zᵀ for a basis Z."""
    H = sum(
        c * loss.map.flat((N, D)).toarray().T @ loss.map.flat((N, D)).toarray()
        for c, loss in zip(WEIGHTS, problem.losses, strict=True)
    )
    Z = np.eye(N * D)[:, present.ravel()]
    if complete:
        A = np.zeros((N, N * D))
        for n in range(N):
            A[n, n * D : (n + 1) * D] = present[n]
        A = A[present.any(axis=1)]
        _, s, V = np.linalg.svd(A @ Z)
        Z = Z @ V[len(s) :].T
    return Z @ np.linalg.inv(Z.T @ H @ Z) @ Z.T


@pytest.fixture(params=[False, True], ids=["free", "complete"])
def case(request):
    problem, present = program(complete=request.param)
    H = QuadraticPart(problem).hessian(WEIGHTS)
    assert isinstance(H, OfEntries)
    return H, explicit(problem, present, complete=request.param)


def test_solves_are_those_of_the_matrix(case):
    H, inverse = case
    E = np.random.default_rng(1).standard_normal((N, D))
    X = (inverse @ E.ravel()).reshape(N, D)
    np.testing.assert_allclose(H.solve(E), X, rtol=0, atol=1e-12)


def test_blocks_and_diagonal_are_those_of_the_matrix(case):
    H, inverse = case
    every = inverse.reshape(N, D, N, D)
    for n in range(N):
        np.testing.assert_allclose(H.inverse_block(n), every[n, :, n], atol=1e-12)
        some = np.array([3, 1])
        np.testing.assert_allclose(
            H.block_of(n, some), every[n, :, n][np.ix_(some, some)], atol=1e-12
        )
    diagonal = np.diag(inverse).reshape(N, D)
    np.testing.assert_allclose(H.inverse_diagonal(), diagonal, rtol=0, atol=1e-12)


def test_without_an_inverse_conjugate_gradients_solve(monkeypatch):
    problem, present = program(complete=False)
    inverse = explicit(problem, present, complete=False)
    monkeypatch.setattr(hessian, "MOST_ENTRIES", 0)
    H = QuadraticPart(problem).hessian(WEIGHTS)
    E = np.random.default_rng(1).standard_normal((N, D))
    X = (inverse @ E.ravel()).reshape(N, D)
    np.testing.assert_allclose(H.solve(E), X, rtol=0, atol=1e-11)
    with pytest.raises(Refused, match=r"inverse of \d+ numbers"):
        H.inverse_diagonal()


def test_what_cannot_be_afforded_is_refused_at_once(monkeypatch):
    problem, _ = program(complete=True)
    monkeypatch.setattr(hessian, "_MOST_ROWS", 3)
    H = QuadraticPart(problem).hessian(WEIGHTS)
    with pytest.raises(Refused, match="6 rows add up, and"):
        H.solve(np.ones((N, D)))


@pytest.mark.parametrize("complete", [False, True])
def test_the_optimum_is_that_of_a_solver(complete):
    problem, _ = program(complete=complete)
    W = QuadraticPart(problem).optimum(WEIGHTS)
    best = po.solve(
        problem.weighed(WEIGHTS), subject_to=problem.bounds, tolerance=1e-12
    )
    np.testing.assert_allclose(W, best.attributions, rtol=0, atol=1e-7)


def test_words_of_whole_points_are_refused():
    G, present, graph = drawn()
    losses = (po.GradientMatching(G), po.PairwiseRobustness(graph))
    total = po.Completeness(G.sum(axis=1), present.astype(float)).bound(D)
    part = QuadraticPart(po.losses.Program(losses, (total,)))
    with pytest.raises(Refused, match="couple whole points"):
        part.hessian(WEIGHTS)


def test_the_smoothest_is_the_least_of_a_conic_solver():
    problem, present = program(complete=True)
    matching, robust = problem.losses
    W = smoothest(problem, [robust], matching.G)
    V = cp.Variable((N, D))
    sums = [
        cp.sum(cp.multiply(V, present), axis=1) == problem.bounds[0].loss.target[:, 0]
    ]
    absent = [cp.multiply(V, ~present) == 0]
    flat = robust.map.flat((N, D)) @ V.flatten(order="C")
    least = cp.Problem(cp.Minimize(cp.sum_squares(flat)), [*sums, *absent])
    least.solve(solver="CLARABEL")
    assert robust.value_at(W) == pytest.approx(least.value, rel=1e-6)
    assert robust.value_at(W) > 1e-3
    totals = problem.bounds[0].loss.target[:, 0]
    np.testing.assert_allclose((W * present).sum(axis=1), totals, atol=1e-9)
    # among all that have its differences it is the nearest
    near = cp.Problem(
        cp.Minimize(cp.sum_squares(V - matching.G)),
        [*sums, *absent, flat == robust.map(W)],
    )
    near.solve(solver="CLARABEL")
    np.testing.assert_allclose(W, V.value, rtol=0, atol=1e-5)


def test_what_no_attributions_remove_is_told():
    problem, _ = program(complete=True)
    best = po.solve(problem.weighed(WEIGHTS), subject_to=problem.bounds)
    W = smoothest(problem, [problem.losses[1]], np.zeros((N, D)))
    left = float(best.details["irreducible.shared_robustness"])
    assert left == pytest.approx(problem.losses[1].value_at(W), rel=1e-9)
    stiff = po.solve(
        problem.weighed(np.array([1e-6, 1.0])), subject_to=problem.bounds
    ).losses["shared_robustness"]
    assert left <= stiff <= left * (1 + 1e-4)


def test_inverses_of_parts_of_all_sizes():
    rng = np.random.default_rng(2)
    sizes = [1, 3, 1, 2, 3, 5]
    factors = [rng.standard_normal((size, size)) for size in sizes]
    blocks = [sp.csr_array(A @ A.T + np.eye(len(A))) for A in factors]
    order = rng.permutation(sum(sizes))
    H = sp.csr_array(sp.block_diag(blocks, format="csr")[order][:, order])
    result = inverse_by_parts(H, Components.of(H))
    np.testing.assert_allclose(result.toarray(), np.linalg.inv(H.toarray()), atol=1e-12)
    assert result.nnz == sum(s**2 for s in sizes)
