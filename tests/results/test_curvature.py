"""H⁻¹ and the bases that it is had by, against matrices written out."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.linalg as la
from refusals import refusals

import propopt as po
from propopt.base.errors import Refused
from propopt.losses.linear_algebra import is_symmetric
from propopt.losses.maps import Squared
from propopt.proofs import hessian
from propopt.proofs.curvature import Eigenbasis
from propopt.proofs.hessian import CgHessian, EntryHessian, QuadraticPart, smoothest


def basis_of(S):
    graph = po.graphs.graph_from_matrix(S)
    return Eigenbasis(graph.differences.gram, graph.components, graph.n_nodes)


def blocks(rng, *scales):
    parts = [scale * rng.uniform(0.5, 1.0, size=(5, 5)) for scale in scales]
    S = np.triu(la.block_diag(*parts, np.zeros((2, 2))), 1)
    return S + S.T


def test_each_component_has_one_zero_and_the_others_keep_their_digits(rng):
    S = blocks(rng, 1.0)[:5, :5]
    alone = basis_of(S).values
    scales = [1e-9, 1.0, 1e9]
    basis = basis_of(la.block_diag(*(scale * S for scale in scales)))
    assert basis.values[:3].tolist() == [0.0, 0.0, 0.0]
    assert basis.errors[:3].tolist() == [0.0, 0.0, 0.0]
    for scale, values in zip(scales, np.split(basis.values[3:], 3), strict=True):
        np.testing.assert_allclose(values, scale * alone[1:], rtol=1e-13)


def test_a_weak_bridge_between_clusters_keeps_its_digits(rng, monkeypatch):
    # clusters of 5 joined by one edge s: λ = 2s(1/5 + 1/5) + O(s²), whatever is within
    S = blocks(rng, 1.0, 1.0)[:10, :10]
    for bridge in (1e-6, 1e-9, 1e-14):
        S[4, 5] = S[5, 4] = bridge
        basis = basis_of(S)
        weakest = np.sort(basis.values)[1]
        assert weakest == pytest.approx(0.8 * bridge, rel=10 * bridge + 1e-9, abs=0)
        assert abs(weakest - 0.8 * bridge) <= basis.errors[1:].min() + 10 * bridge**2
    # eigenvalues that are none have large errors
    eigh = la.eigh
    monkeypatch.setattr(la, "eigh", lambda P: (1.0001 * eigh(P)[0], eigh(P)[1]))
    assert basis.errors.max() < 1e-12
    assert basis_of(S).errors.max() > 1e-4


def test_what_is_symmetric_is_so_to_a_share_of_its_largest_entry():
    for apart, expected in ((0.9e-8, True), (1.1e-8, False)):
        matrix = np.array([[5.0, 1.0], [1.0 + 5.0 * apart, 5.0]])
        assert is_symmetric(matrix) is expected


RNG = np.random.default_rng(0)
EVERY, PRESENT = np.ones((7, 4), bool), RNG.random((8, 4)) < 0.6
PRESENT[3] = False  # a document without a word


def matching(present):
    return po.GradientMatching(RNG.standard_normal(present.shape) * present)


def close(present, lengthscale):
    return po.graphs.gaussian_graph(RNG.standard_normal((len(present), 2)), lengthscale)


ROBUST = po.PairwiseRobustness(close(EVERY, 1.0))
SMOOTH = po.Smoothness(po.graphs.chain_graph(4))
OF_POINTS = (matching(EVERY), ROBUST, SMOOTH, po.Sparsity()), EVERY
SHARED = po.losses.SharedRobustness(close(PRESENT, 3.0), PRESENT)
OF_WORDS = (matching(PRESENT), SHARED), PRESENT


def program(losses, present, *, complete):
    T = losses[0].G
    t = np.where(present.any(axis=1), T.sum(axis=1) + 1.0, 0.0)
    total = po.losses.Completeness(t, present.astype(float)).bound(T.shape[1])
    return po.losses.Program(losses, (total,) if complete else ())


def weights_of(problem):
    return np.array([1.5, 0.3, 0.7, 0.2])[: len(problem.losses)]


def explicit(problem, present):
    """The inverse (ND, ND) on what is left: Z (ZᵀHZ)⁻¹Zᵀ for a basis Z."""
    N, D = present.shape
    flat = [(c, loss.map.flat((N, D)).toarray())
            for c, loss in zip(weights_of(problem), problem.losses, strict=True)
            if isinstance(loss.penalty, Squared)]  # fmt: skip
    H = sum(c * A.T @ A for c, A in flat)
    Z = np.eye(N * D)[:, present.ravel()]
    if problem.bounds:
        A = np.zeros((N, N * D))
        for n in range(N):
            A[n, n * D : (n + 1) * D] = present[n]
        A = A[present.any(axis=1)]
        _, s, V = np.linalg.svd(A @ Z)
        Z = Z @ V[len(s) :].T
    return Z @ np.linalg.inv(Z.T @ H @ Z) @ Z.T


CASES = {
    "eigenbases": (OF_POINTS, False, {}),
    "conjugate gradients": (OF_POINTS, False, {"MAX_SPECTRAL_SIZE": 0}),
    "words": (OF_WORDS, False, {}),
    "complete words": (OF_WORDS, True, {}),
    "words, conjugate gradients": (OF_WORDS, False, {"MOST_ENTRIES": 0}),
}


@pytest.mark.parametrize("name", CASES)
def test_inverses_are_those_of_the_matrix(name, monkeypatch):
    (losses, present), complete, settings = CASES[name]
    for key, value in settings.items():
        monkeypatch.setattr(hessian, key, value)
    problem, (N, D) = program(losses, present, complete=complete), present.shape
    H = QuadraticPart(problem).hessian(weights_of(problem))
    inverse = explicit(problem, present)
    E = np.random.default_rng(1).standard_normal((N, D))
    X = (inverse @ E.ravel()).reshape(N, D)
    np.testing.assert_allclose(H.solve(E), X, rtol=0, atol=1e-11)
    every, some = inverse.reshape(N, D, N, D), np.array([3, 1])
    assert isinstance(H, CgHessian) == (name == "conjugate gradients")
    if name == "words, conjugate gradients":
        with pytest.raises(Refused, match=r"with \d+ numbers, above"):
            H.inverse_diagonal()
        return
    for n in range(N):
        np.testing.assert_allclose(H.inverse_block(n), every[n, :, n], atol=1e-11)
    if name == "conjugate gradients":
        with pytest.raises(Refused, match="28 linear solves"):
            H.inverse_diagonal()
        return
    diagonal = np.diag(inverse).reshape(N, D)
    np.testing.assert_allclose(H.inverse_diagonal(), diagonal, rtol=1e-11, atol=1e-12)
    if "words" in name:
        assert isinstance(H, EntryHessian)
        for n in range(N):
            block = every[n, :, n][np.ix_(some, some)]
            np.testing.assert_allclose(H.block_of(n, some), block, atol=1e-12)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "inverses"))
def test_what_has_no_inverse_or_none_that_can_be_afforded_is_refused(
    line, message, monkeypatch
):
    monkeypatch.setattr(hessian, "_MOST_ROWS", 3)

    def inverse(losses, present, weights=None, *, complete=False):
        problem = program(losses, present, complete=complete)
        weights = weights_of(problem) if weights is None else np.array(weights)
        return QuadraticPart(problem).hessian(weights)

    with pytest.raises(Refused, match=message):
        eval(line, globals() | {"inverse": inverse})


def test_the_smoothest_is_the_least_of_a_conic_solver():
    problem, present = program(*OF_WORDS, complete=True), OF_WORDS[1]
    matching, robust = problem.losses
    W = smoothest(problem, [robust], matching.G)
    V = cp.Variable(present.shape)
    totals = problem.bounds[0].loss.target[:, 0]
    sums = cp.sum(cp.multiply(V, present), axis=1) == totals
    limits = [sums, cp.multiply(V, ~present) == 0]
    flat = robust.map.flat(present.shape) @ V.flatten(order="C")
    least = cp.Problem(cp.Minimize(cp.sum_squares(flat)), limits)
    least.solve(solver="CLARABEL")
    left = robust.value_at(W)
    assert left == pytest.approx(least.value, rel=1e-6)
    assert left > 1e-3
    np.testing.assert_allclose((W * present).sum(axis=1), totals, atol=1e-9)
    # among all that have its differences it is the nearest
    distance = cp.Minimize(cp.sum_squares(V - matching.G))
    cp.Problem(distance, [*limits, flat == robust.map(W)]).solve(solver="CLARABEL")
    np.testing.assert_allclose(W, V.value, rtol=0, atol=1e-5)
    # and what no attributions remove is told
    best = po.solve(problem.weighed(weights_of(problem)), subject_to=problem.bounds)
    reported = float(best.details["irreducible.shared_robustness"])
    assert reported == pytest.approx(left, rel=1e-9)
