"""Lattices by cosine transforms, against dense linear algebra."""

import numpy as np
import pytest
import scipy.linalg as la

import propopt as po
from propopt.losses import Program, linear_algebra, operators
from propopt.losses.algebra import TrivialLosses
from propopt.losses.operators import LatticeLaplacian
from propopt.solvers.curves import Nodes, Spectral, condensed


CASES = {
    "path": ((7,), (2.0,)),
    "two": ((2,), (3.0,)),
    "one point": ((1,), (1.0,)),
    "one and two": ((1, 2), (1.0, 0.3)),
    "plane": ((4, 6), (1.0, 0.25)),
    "box": ((2, 3, 4), (1.0, 2.0, 0.5)),
    "planes apart": ((3, 4, 2), (0.0, 1.0, 1.0)),
    "columns apart": ((3, 4), (1.0, 0.0)),
    "four axes": ((2, 1, 3, 3), (1.0, 1.0, 2.0, 3.0)),
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def similarities(box, weights):
    """Point by point: one step along one axis."""
    index = np.arange(np.prod(box)).reshape(box)
    S = np.zeros((index.size, index.size))
    for here, n in np.ndenumerate(index):
        for axis, size in enumerate(box):
            step = here[axis] + 1
            if step < size:
                there = index[(*here[:axis], step, *here[axis + 1 :])]
                S[n, there] = S[there, n] = weights[axis]
    return S


def laplacian(case):
    S = similarities(*case)
    return 2.0 * (np.diag(S.sum(axis=1)) - S)


@each_case
def test_graph_is_that_of_its_points(case, rng):
    graph, S = po.graphs.LatticeGraph(*case), similarities(*case)
    np.testing.assert_array_equal(graph.similarities.toarray(), S)
    assert graph.n_edges == np.count_nonzero(S) / 2
    assert graph.total == pytest.approx(S.sum(), rel=1e-15)
    stored = po.graphs.graph_from_matrix(S)
    assert graph.n_components == stored.n_components
    np.testing.assert_array_equal(graph.components.labels, stored.components.labels)
    W = rng.normal(size=(len(S), 3))
    loss, other = po.PairwiseRobustness(graph), po.PairwiseRobustness(stored)
    assert loss.value(W) == pytest.approx(other.value(W), rel=1e-14, abs=1e-300)
    assert loss.gradient(W) == pytest.approx(other.gradient(W), rel=1e-13, abs=1e-13)


@each_case
@pytest.mark.parametrize("slab", [operators.SLAB, 5])
def test_products_and_transforms(case, slab, rng, monkeypatch):
    monkeypatch.setattr(operators, "SLAB", slab)
    lattice, P = LatticeLaplacian(*case), laplacian(case)
    W = rng.normal(size=(len(P), 3))
    atol = 1e-14 * (1.0 + lattice.largest)
    close = {"rtol": 0, "atol": 10 * atol}
    np.testing.assert_allclose(lattice @ W, P @ W, **close)
    np.testing.assert_allclose(lattice @ W[:, 0], P @ W[:, 0], **close)
    assert lattice.energy(W) == pytest.approx(np.vdot(W, P @ W), rel=1e-13, abs=atol)
    U = lattice.forward(np.eye(len(P)))
    np.testing.assert_allclose(U @ U.T, np.eye(len(P)), rtol=0, atol=1e-14)
    np.testing.assert_allclose(U @ P @ U.T, np.diag(lattice.eigenvalues), **close)
    np.testing.assert_allclose(lattice.forward(W[:, 1]), U @ W[:, 1], **close)
    assert lattice.backward(lattice.forward(W)) == pytest.approx(W, abs=1e-14)
    assert lattice.eigenvalues.max(initial=0.0) <= lattice.largest


def test_columns_apart_are_transformed_alone(rng):
    """They cost nothing, and the rounding of one column never reaches another."""
    apart = LatticeLaplacian((3, 4), (1.0, 0.0))
    alone = LatticeLaplacian((3,), (1.0,))
    W = rng.normal(size=(3, 4))
    together = apart.forward(W.ravel()).reshape(3, 4)
    np.testing.assert_array_equal(together, alone.forward(W))
    assert apart.transform_rounding == alone.transform_rounding
    assert apart.product_rounding(1.0) == alone.product_rounding(1.0)


PI = np.longdouble("3.14159265358979323846264338327950288")


def cosines(n):
    """Eigenvectors (n, n) and eigenvalues of a path, in extended precision."""
    j, k = np.arange(n, dtype=np.longdouble), np.arange(n, dtype=np.longdouble)[:, None]
    angles = PI * np.fmod((2 * j + 1) * k, 4 * n) / (2 * n)
    U = np.cos(angles) * np.sqrt(np.longdouble(2) / n)
    U[0] /= np.sqrt(np.longdouble(2))
    return U, 8 * np.sin(PI * j / (2 * n)) ** 2


@pytest.mark.parametrize("n", [5, 97, 128, 1009])
def test_rounding_of_transforms_is_within_its_bound(n, rng):
    """Against extended precision, which is a thousand times finer."""
    lattice = LatticeLaplacian((n,), (1.0,))
    x = rng.normal(size=(n, 2))
    U, _ = cosines(n)
    wrong = np.linalg.norm((lattice.forward(x) - U @ x).astype(float))
    assert wrong <= lattice.transform_rounding * np.linalg.norm(x)
    assert lattice.transform_rounding < 1e-13


def test_excess_covers_the_rounding_of_transforms():
    """A large part that costs next to nothing leaves its rounding in a small one.

    All numbers are multiples of 2⁻²⁸ below 2²², so that differences are exact.
    """
    m, n, slight = 12, 15, 2.0**-50
    (U, across), (V, along) = cosines(m), cosines(n)
    theta = np.longdouble(slight) * across[:, None] + along
    graph = po.graphs.LatticeGraph((m, n), weights=(slight, 1.0))
    worst = 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        G = rng.integers(-(2**21), 2**21, (m, 1)) + np.zeros((m, n))
        G += rng.integers(0, 2**28, (m, n)) / 2**28
        objective = po.GradientMatching(G.reshape(-1, 1)) + po.PairwiseRobustness(graph)
        curve = Spectral().prepare(Program(objective.losses))
        result = curve.measure(np.ones(2), 1e-6)
        tau = (U @ G.astype(np.longdouble) @ V.T) ** 2
        F = (tau * theta / (1 + theta)).sum()
        error = abs(result.losses.astype(np.longdouble).sum() - F)
        assert error <= result.excess <= 1e-5 * F
        worst = max(worst, float(error / F))
    assert worst > 1e-12  # ten times what the digits of sums are allowed


@each_case
@pytest.mark.parametrize("smooth", [False, True])
def test_optimum_is_that_of_the_dense_system(case, smooth, rng):
    P, k = laplacian(case), 3
    Q = 2.0 * po.graphs.chain_graph(k).laplacian.toarray()
    G = rng.normal(size=(len(P), k))
    objective = po.GradientMatching(G)
    objective += po.PairwiseRobustness(po.graphs.LatticeGraph(*case))
    objective += (1.0 if smooth else 0.0) * po.Smoothness(po.graphs.chain_graph(k))
    program = Program(objective.losses)
    curve = Spectral().prepare(program)
    assert po.solvers.Auto().select(program).name == "spectral"
    for b in (1e-9, 1e-2, 1.0, 1e4):
        c = 0.7 * smooth
        H = np.kron(np.eye(len(P)) + b * P, np.eye(k)) + c * np.kron(np.eye(len(P)), Q)
        pull = b * (P @ G) + c * (G @ Q)
        W = G - la.solve(H, pull.ravel(), assume_a="pos").reshape(G.shape)
        weights = np.array([1.0, b, c])
        # the condition of H times rounding
        atol = 4e-16 * np.linalg.cond(H) * np.abs(G).max() + 1e-14
        np.testing.assert_allclose(curve.solve(weights, 1e-6).W, W, rtol=0, atol=atol)
        exact = np.array([loss.value(W) for loss in objective.losses])
        result = curve.measure(weights, 1e-6)
        np.testing.assert_allclose(result.losses, exact, rtol=1e-7, atol=1e-11)
        F = float(weights @ exact)
        assert abs(weights @ result.losses - F) <= result.excess + 1e-13 * F
        assert result.excess <= 1e-11 * F + 1e-25


def test_one_solve_leaves_its_target_and_its_slabs_no_trace(rng, monkeypatch):
    G = rng.normal(size=(60, 3)) + 5.0
    graph = po.graphs.LatticeGraph((5, 12))
    objective = po.GradientMatching(G) + 3.0 * po.PairwiseRobustness(graph)
    target = objective.losses[0].target
    before = target.copy()
    best = po.solve(objective)
    np.testing.assert_array_equal(target, before)
    assert best.attributions.flags.c_contiguous
    H = np.eye(60) + 3.0 * laplacian(((5, 12), (1.0, 1.0)))
    W = la.solve(H, before, assume_a="pos")
    np.testing.assert_allclose(best.attributions, W, rtol=0, atol=1e-13)
    monkeypatch.setattr(linear_algebra, "SLAB", 7)
    monkeypatch.setattr(operators, "SLAB", 7)
    few = po.solve(objective)
    assert few.certificate.gap <= 1e-13
    assert few.losses == pytest.approx(best.losses, rel=1e-14)
    np.testing.assert_allclose(few.attributions, W, rtol=0, atol=1e-13)
    trivial = TrivialLosses.of(objective.losses)
    assert trivial.zero[0] == pytest.approx((before**2).sum(), rel=1e-14)
    apart = before - before.mean(axis=0)
    assert trivial.mean[0] == pytest.approx((apart**2).sum(), rel=1e-13)


# ---- many masses as few
ABC = np.array(
    [(1.0, b, c) for b in (1e-14, 1e-6, 0.1, 1.0, 1e3, 1e9) for c in (0.0, 0.3)]
)


def nodes(theta, nu, tau):
    none = np.zeros((len(theta), 1))
    return Nodes(theta[:, None], nu, tau, none, np.zeros(len(nu)))


def test_binned_masses_have_the_same_sums(rng):
    nu = np.array([0.0, 2.0])
    for theta in (
        10.0 ** rng.uniform(-12, 6, 5000),
        np.append(np.zeros(7), rng.random(4000)),
        np.full(3000, 0.5),
        np.zeros(2500),
        np.exp2(rng.integers(-3, 4, 3000)),
    ):
        tau = rng.random((len(theta), 2)) ** 8
        few, masses = condensed(theta, tau)
        every, other = nodes(theta, nu, tau), nodes(few, nu, masses)
        assert len(few) <= 11 * 8 * 61 + 1
        for abc in ABC:
            np.testing.assert_allclose(
                other.losses(abc), every.losses(abc), rtol=2e-14, atol=1e-300
            )
            assert other.optimum(abc) == pytest.approx(every.optimum(abc), rel=2e-14)
