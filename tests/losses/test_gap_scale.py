"""What a gap is relative to: no offset hides it, and an optimum of zero has one."""

import cvxpy as cp
import numpy as np
import pytest

import propopt as po
from propopt.base.errors import SolverFailure


OFFSETS = [0.0, 1e3, 1e6]


def problem(rng, offset, n_points=40):
    X = rng.normal(size=(n_points, 2))
    graph = po.knn_graph(X, 4)
    return po.GradientMatching(X + offset) + 3.0 * po.PairwiseRobustness(graph)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("excess", [1e-6, 1e-3])
def test_an_offset_of_the_gradients_does_not_hide_an_excess(rng, offset, excess):
    objective = problem(rng, offset)
    best = po.solve(objective, tolerance=1e-12)
    D = rng.normal(size=best.attributions.shape)
    # F(W + sD) − F(W) = s²(‖D‖² + 3 robustness(D)) at the minimum W
    curvature = (D**2).sum() + 3.0 * objective.losses[1].value(D)
    step = np.sqrt(excess * best.objective / curvature)
    other = po.certify(objective, best.attributions + step * D)
    truth = (other.value - best.objective) / other.value
    assert truth == pytest.approx(excess, rel=1e-2)
    assert other.gap >= truth * (1 - 1e-3)


@pytest.mark.parametrize("offset", OFFSETS)
def test_an_offset_does_not_change_what_is_certified(rng, offset):
    objective = problem(rng, offset)
    certificate = po.solve(objective).certificate
    assert certificate.scale == certificate.value
    assert certificate.gap <= 1e-9


@pytest.mark.parametrize("constant", [0.0, 1.0, 1e6])
def test_an_optimum_of_zero_is_certified(rng, constant):
    graph = po.knn_graph(rng.normal(size=(30, 2)), 4)
    G = np.full((30, 3), constant)
    objective = po.GradientMatching(G) + 1e3 * po.PairwiseRobustness(graph)
    with_smoothness = objective + 10.0 * po.Smoothness(po.chain_graph(3))
    for each in (objective, with_smoothness):
        assert po.solve(each).gap <= 1e-6


def test_a_status_that_cvxpy_does_not_know_is_a_failure(rng, monkeypatch):
    def solve(*_args, **_options):
        raise ValueError("Cannot unpack invalid solution: Solution(status=UNKNOWN)")

    monkeypatch.setattr(cp.Problem, "solve", solve)
    with pytest.raises(SolverFailure, match="CLARABEL stopped without an answer"):
        po.solve(problem(rng, 0.0), "CLARABEL")
