"""Conjugate gradients, components and what LAPACK reports, each by itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import propopt
import propopt as po
from propopt.base.errors import SolverFailure
from propopt.inductive.bases import KernelEigenbasis
from propopt.losses import linear_algebra
from propopt.losses.linear_algebra import Components, conjugate_gradients
from propopt.solvers.edge_newton import Composite, Term, factorise, shifted_inverse
from propopt.solvers.splitting import Admm


@pytest.fixture
def system():
    """(H, b) with eigenvalues from 1 to 1e3."""
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(30, 30)))
    return Q @ np.diag(np.geomspace(1.0, 1e3, 30)) @ Q.T, rng.normal(size=30)


def solved(H, b, x, **options):
    asked = {"precondition": np.copy, "most_steps": 300, "reduction": 1e-26} | options
    residual = b - H @ x
    return conjugate_gradients(lambda v: H @ v, x, residual, **asked)


def test_it_solves_a_system_in_place_from_any_start(system):
    H, b = system
    for x in (np.zeros(30), np.ones(30)):
        assert solved(H, b, x)
        np.testing.assert_allclose(x, np.linalg.solve(H, b), rtol=1e-10, atol=1e-10)


def test_each_column_is_a_system_of_its_own(system):
    H, b = system
    shifts = np.array([1e-3, 1.0, 1e4])
    B = np.column_stack([b, np.zeros(30), 1e8 * b])
    X = np.zeros_like(B)
    done = conjugate_gradients(
        lambda V: H @ V + shifts * V,
        X,
        B.copy(),
        precondition=np.copy,
        most_steps=300,
        reduction=1e-26,
        per_column=True,
    )
    assert done
    for j, shift in enumerate(shifts):
        expected = np.linalg.solve(H + shift * np.eye(30), B[:, j])
        np.testing.assert_allclose(X[:, j], expected, rtol=1e-9)


def test_a_preconditioner_that_is_the_inverse_takes_one_step(system):
    H, b = system
    x = np.zeros(30)
    inverse = np.linalg.inv(H)
    assert solved(
        H, b, x, precondition=lambda r: inverse @ r, most_steps=1, reduction=1e-20
    )
    np.testing.assert_allclose(x, np.linalg.solve(H, b), rtol=1e-10)


def test_steps_that_run_out_are_said(system):
    H, b = system
    x = np.zeros(30)
    assert not solved(H, b, x, most_steps=3)
    assert np.linalg.norm(b - H @ x) > 1e-3


def test_the_need_of_the_caller_is_asked_before_each_step_and_ends_it(system):
    H, b = system
    observed = []

    def is_enough(x, residual):
        observed.append((x.copy(), residual.copy()))
        return len(observed) == 4

    assert solved(H, b, np.zeros(30), is_enough=is_enough)
    assert len(observed) == 4
    np.testing.assert_array_equal(observed[0], (np.zeros(30), b))
    for x, residual in observed:
        np.testing.assert_allclose(residual, b - H @ x, atol=1e-10)


def test_the_energy_at_the_end_is_the_share_that_was_asked_for(system):
    H, b = system
    for reduction in (1e-2, 1e-6):
        x = np.zeros(30)
        assert solved(H, b, x, reduction=reduction)
        residual = b - H @ x
        assert residual @ residual <= 1.001 * reduction * (b @ b)
        assert residual @ residual >= 1e-4 * reduction * (b @ b)


def test_a_preconditioner_may_hold_x_to_a_constraint(system):
    H, b = system
    price = 0.0

    def keeps_sum(r):
        nonlocal price
        mean = r.mean()
        price += mean
        r -= mean
        return r.copy()

    x = np.full(30, 1.0 / 30)
    assert solved(H, b, x, precondition=keeps_sum)
    assert x.sum() == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(b - H @ x, np.full(30, price), atol=1e-8)


def test_a_singular_system_ends_where_nothing_more_can_be_done():
    H = np.diag([1.0, 0.0])
    x = np.zeros(2)
    assert solved(H, np.ones(2), x, most_steps=50)
    assert np.isfinite(x).all()


def test_what_is_not_finite_ends_at_once():
    x = np.zeros(2)
    calls = []

    def product(v):
        calls.append(v)
        return v

    conjugate_gradients(
        product, x, np.full(2, np.nan), precondition=np.copy, most_steps=100
    )
    assert len(calls) <= 1


@given(st.integers(0, 10_000), st.integers(1, 30), st.sampled_from([0.0, 1.0, 1e8]))
def test_a_split_adds_up_and_the_rest_has_mean_zero(seed, n_points, offset):
    rng = np.random.default_rng(seed)
    labels = np.unique(rng.integers(0, 4, n_points), return_inverse=True)[1]
    parts = Components(labels)
    W = rng.normal(size=(n_points, 3)) + offset
    means, R = parts.split(W)
    assert parts.spread(means) + R == pytest.approx(W, rel=1e-15, abs=1e-14)
    for part in range(parts.count):
        assert means[part] == pytest.approx(W[labels == part].mean(axis=0), rel=1e-14)
        total = np.abs(R[labels == part].sum(axis=0))
        assert (total <= 1e-14 * n_points * np.ptp(W, axis=0)).all()


@pytest.mark.parametrize(
    "loss",
    [
        po.PairwiseRobustness(po.threshold_graph([[0.0], [1.0], [5.0], [6.0]], 2.0)),
        po.PairwiseRobustness(po.graphs.LatticeGraph((2, 2))),
        po.PairwiseRobustness(po.grid_gaussian_graph([[0.0], [1.0], [2.0], [4.0]])),
        po.KernelRobustness(np.exp(-np.abs(np.subtract.outer(range(4), range(4))))),
        po.MaxDifferenceRobustness(po.chain_graph(4), aggregate="sum"),
    ],
    ids=lambda loss: f"{loss.name}-{type(loss.map).__name__}",
)
def test_maps_take_what_is_constant_on_their_components_to_zero(loss):
    parts = loss.map.components
    values = parts.spread(np.arange(1.0, parts.count + 1)[:, None])
    W = np.broadcast_to(values, (4, 1))
    assert loss.map(W) == pytest.approx(0.0, abs=1e-12)


def test_components_of_constants_of_couplings_of_any_sign_and_of_features():
    parts = Components(np.array([0, 1, 0, 1, 1]))
    W = np.array([[0.1], [1e17 / 3], [0.1], [1e17 / 3], [1e17 / 3]])
    assert not parts.centred(W).any()
    S = sp.csr_array(np.diag([1.0, 0.0, -1.0], 1) + np.diag([1.0, 0.0, -1.0], -1))
    assert Components.of(S).labels.tolist() == [0, 0, 1, 1]
    assert Components.of(S).sizes.tolist() == [2, 2]
    graph = po.group_graph(["a", "b", "a"])
    assert po.Smoothness(graph).map.components.labels.tolist() == [0, 1, 0]


SYMMETRIC = np.cov(np.random.default_rng(4).normal(size=(7, 40)))


def test_the_inverse_is_that_of_scipy():
    result = linear_algebra.positive_inverse(np.array(SYMMETRIC, order="F"))
    np.testing.assert_allclose(result, la.inv(SYMMETRIC), rtol=1e-12)
    np.testing.assert_array_equal(result, result.T)


@pytest.mark.parametrize("n_points", [1, 2, 7])
def test_the_tridiagonal_matrix_is_similar_to_the_matrix(n_points):
    matrix = SYMMETRIC[:n_points, :n_points]
    basis = KernelEigenbasis.of(np.array(matrix))
    rebuilt = basis.vectors @ np.diag(basis.eigenvalues) @ basis.vectors.T
    np.testing.assert_allclose(rebuilt, matrix, rtol=0, atol=1e-14 * la.norm(SYMMETRIC))


@pytest.mark.parametrize("worst", [-1e-3, -1.0, 0.0])
def test_a_system_that_is_not_positive_definite_is_a_failure_and_no_number(worst):
    P = np.diag([1.0, 2.0, worst])
    message = r"LAPACK's dpotrf: .*not positive definite .*\(info = 3\)"
    with pytest.raises(SolverFailure, match=message):
        shifted_inverse(P, 0.0)


@pytest.mark.parametrize(
    ("routine", "n_results", "use"),
    [
        ("dpotri", 2, lambda: linear_algebra.positive_inverse(np.eye(3))),
        ("dsytrd_lwork", 2, lambda: KernelEigenbasis.of(np.eye(3))),
        ("dsytrd", 5, lambda: KernelEigenbasis.of(np.eye(3))),
        ("dormqr", 3, lambda: KernelEigenbasis.of(np.eye(3)).vectors),
    ],
)
def test_what_a_routine_reports_is_read(monkeypatch, routine, n_results, use):
    def failing(*_, **__):
        return (*[np.ones(1)] * (n_results - 1), -4)

    monkeypatch.setattr(linear_algebra.lapack, routine, failing)
    message = rf"LAPACK's {routine}: argument 4 cannot be used \(info = -4\)"
    with pytest.raises(SolverFailure, match=message):
        use()


@pytest.mark.parametrize("weight", [1.0, 1e6, 1e13, 1e18, 1e200])
def test_a_heavy_graph_never_makes_attributions_larger(weight):
    P = weight * np.asarray(po.chain_graph(30).laplacian.toarray())
    R = np.random.default_rng(1).normal(size=(30, 2))
    W = factorise(P, np.ones(2), "dense").solve(R)
    assert la.norm(W) <= la.norm(R)  # (I + P)⁻¹ is a contraction


def test_penalties_of_admm_stay_where_systems_keep_digits(rng):
    G = rng.normal(size=(12, 2))
    term = Term.of(po.MaxDifferenceRobustness(po.chain_graph(12)), as_dense=True)
    program = Composite(G=G, P=None, Q=None, terms=(term,), layout="dense")
    agreed = np.ones((12, 2)) + 1e-15 * G  # all differences are rounding
    admm = Admm(program, agreed, [np.ones_like(term.map(G))])
    assert admm.run(300, tolerance=1e-9).gap <= 1e-6
    (penalty,) = admm.rho
    assert penalty * term.gram.diagonal().max() / 2 <= 1e8 * (1 + 1e-9)


def test_lapack_is_called_in_one_file():
    files = Path(propopt.__file__).parent.rglob("*.py")
    calls = ("linalg import lapack", "la.lapack", "get_lapack_funcs")
    texts = {file.name: file.read_text() for file in files}
    callers = [name for name, text in texts.items() if any(c in text for c in calls)]
    assert callers == ["linear_algebra.py"]
