"""What LAPACK reports is believed: no result of a routine that failed is used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.linalg as la

import propopt
import propopt as po
from propopt.base.errors import SolverFailure
from propopt.inductive.bases import KernelEigenbasis
from propopt.losses import linear_algebra
from propopt.solvers.edge_newton import Composite, Term, factorise, shifted_inverse
from propopt.solvers.splitting import Admm


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
