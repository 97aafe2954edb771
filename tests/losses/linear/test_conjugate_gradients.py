"""The one routine of conjugate gradients, by itself."""

import numpy as np
import pytest

from propopt.losses.linear_algebra import conjugate_gradients


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
