"""Conjugate gradients, components and what LAPACK reports, each by itself."""

import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import propopt as po
from propopt.base.errors import SolverFailure
from propopt.inductive.bases import KernelEigenbasis
from propopt.losses import linear_algebra
from propopt.losses.linear_algebra import Components, conjugate_gradients
from propopt.solvers.edge_newton import Composite, Term, factorise, shifted_inverse
from propopt.solvers.splitting import Admm


@pytest.mark.parametrize("per_column", [False, True])
def test_conjugate_gradients_overwrite_and_report_a_lack_of_steps(per_column):
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(30, 30)))
    H, B = Q @ np.diag(np.geomspace(1.0, 1e3, 30)) @ Q.T, rng.normal(size=(30, 3))
    B[:, 1:] *= [0.0, 1e8]  # each column is a system of its own
    B = B if per_column else B[:, :1]
    for begin, most_steps in ((0.0, 300), (1.0, 300), (0.0, 3)):
        X = np.full_like(B, begin)
        done = conjugate_gradients(
            lambda V: H @ V,
            X,
            B - H @ X,
            precondition=np.copy,
            most_steps=most_steps,
            reduction=1e-26,
            per_column=per_column,
        )
        assert done == (most_steps == 300)
        if done:
            expected = np.linalg.solve(H, B)
            np.testing.assert_allclose(X, expected, rtol=1e-9, atol=1e-9)


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


def test_components_of_constants_of_couplings_of_any_sign_and_of_features():
    parts = Components(np.array([0, 1, 0, 1, 1]))
    W = np.array([[0.1], [1e17 / 3], [0.1], [1e17 / 3], [1e17 / 3]])
    assert not parts.centred(W).any()
    S = sp.csr_array(np.diag([1.0, 0.0, -1.0], 1) + np.diag([1.0, 0.0, -1.0], -1))
    assert Components.of(S).labels.tolist() == [0, 0, 1, 1]
    assert Components.of(S).sizes.tolist() == [2, 2]
    graph = po.graphs.group_graph(["a", "b", "a"])
    assert po.Smoothness(graph).map.components.labels.tolist() == [0, 1, 0]


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
    message = rf"LAPACK's {routine}: argument 4 is invalid \(info = -4\)"
    with pytest.raises(SolverFailure, match=message):
        use()


@pytest.mark.parametrize("weight", [1.0, 1e6, 1e13, 1e18, 1e200])
def test_a_heavy_graph_never_makes_attributions_larger(weight):
    P = weight * np.asarray(po.graphs.chain_graph(30).laplacian.toarray())
    R = np.random.default_rng(1).normal(size=(30, 2))
    W = factorise(P, np.ones(2), "dense").solve(R)
    assert la.norm(W) <= la.norm(R)  # (I + P)⁻¹ is a contraction


def test_penalties_of_admm_stay_where_systems_keep_digits(rng):
    G = rng.normal(size=(12, 2))
    term = Term.of(
        po.losses.MaxDifferenceRobustness(po.graphs.chain_graph(12)), as_dense=True
    )
    program = Composite(G=G, P=None, Q=None, terms=(term,), layout="dense")
    agreed = np.ones((12, 2)) + 1e-15 * G  # all differences are rounding
    admm = Admm(program, agreed, [np.ones_like(term.map(G))])
    assert admm.run(300, tolerance=1e-9).gap <= 1e-6
    (penalty,) = admm.rho
    assert penalty * term.gram.diagonal().max() / 2 <= 1e8 * (1 + 1e-9)
