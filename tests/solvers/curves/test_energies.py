"""What errors of targets cost, from the curves of solvers."""

import numpy as np
import pytest

import propopt as po
from propopt.losses.faithfulness import Estimate
from propopt.results import hessian
from propopt.results.hessian import QuadraticPart
from propopt.solvers.curves import Krylov, energy_on_curve
from propopt.solvers.factored import Factored


N, D = 300, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 2))
BLOCKS = np.sin(X[:, :1]) + RNG.standard_normal((10, N, D))
DRAWN = Estimate.of_blocks(BLOCKS, source="noise", n_draws=100)
OBJECTIVE = (
    po.GradientMatching(DRAWN)
    + po.PairwiseRobustness(po.knn_graph(X, 6))
    + po.Smoothness(po.chain_graph(D))
)
PROGRAM = po.losses.Program(OBJECTIVE.losses)
WEIGHTS = [np.array([2.0, b, 0.3]) for b in (1e-3, 1.0, 1e3)]


@pytest.mark.parametrize("solver", [Krylov(), Factored()])
def test_the_energy_is_that_of_the_inverse(solver):
    E = BLOCKS[0] - BLOCKS[1]
    energy = energy_on_curve(PROGRAM, solver, E)
    for weights in WEIGHTS:
        expected = 4.0 * np.vdot(E, QuadraticPart(PROGRAM).hessian(weights).solve(E))
        assert energy(weights) == pytest.approx(expected, rel=1e-5)


def swept(solver):
    weights = {"pairwise_robustness": [0.1, 10.0, 1000.0]}
    return po.sweep(OBJECTIVE, weights, solver=solver).optimized


def test_large_graphs_have_the_target_errors_of_small_ones():
    for one, two in zip(swept("krylov"), swept("spectral"), strict=True):
        assert one.target.value == pytest.approx(two.target.value, rel=1e-6)
        # degrees are known from nine numbers, or from 45
        assert 0.2 < one.target.degrees / two.target.degrees < 5.0


def test_large_graphs_have_the_standard_errors_of_small_ones(monkeypatch):
    small = swept("spectral")[1].standard_errors
    monkeypatch.setattr(hessian, "MOST_DIAGONALIZED", 0)
    large = swept("krylov")[1].standard_errors
    np.testing.assert_allclose(large, small, rtol=1e-6)


def test_an_eigenbasis_is_computed_once(monkeypatch):
    points = swept("spectral")
    monkeypatch.setattr(hessian, "eigenbases", None)  # nobody needs another
    assert all(point.target.value > 0.0 for point in points)
