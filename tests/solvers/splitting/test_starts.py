"""Splitting along a path of weights: warm starts, and what runs out of steps."""

from __future__ import annotations

import numpy as np
import pytest
from max_differences import (
    AGGREGATES,
    NORMS,
    gaussian_data,
    path,
    random_objective,
    task_of,
)

import propopt as po
from propopt.base.errors import UncertifiedWarning
from propopt.losses import Program
from propopt.solvers import Conic, Solution
from propopt.solvers import splitting as admm_module
from propopt.solvers import splitting as splitting_module
from propopt.solvers.splitting import Splitting


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_path_with_warm_starts_is_certified(aggregate, norm):
    X, G = gaussian_data(4, 25, 3)
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 4), aggregate, norm)
    objectives = path(loss, G)
    task = task_of(objectives[0])
    start: Solution | None = None
    for objective in objectives:
        start = task.solve(objective.coefficients, 1e-7, start)
        proof = po.certify(objective, start.W, duals=start.duals)
        assert proof.holds(1e-7)


def test_warm_starts_need_fewer_systems(monkeypatch):
    X, G = gaussian_data(5, 80, 4)
    objectives = path(po.MaxDifferenceRobustness(po.knn_graph(X, 5)), G)
    solved = []
    original = admm_module.Admm.run

    def counted(self, n_steps, tolerance):
        solved.append(n_steps)
        return original(self, n_steps, tolerance)

    monkeypatch.setattr(admm_module.Admm, "run", counted)
    task = task_of(objectives[0])
    for objective in objectives:
        task.solve(objective.coefficients, 1e-6)
    cold = sum(solved)
    solved.clear()
    start = None
    for objective in objectives:
        start = task.solve(objective.coefficients, 1e-6, start)
    assert sum(solved) <= 0.5 * cold


def test_start_without_duals_is_no_obstacle():
    X, G = gaussian_data(6, 12, 2)
    objective = po.GradientMatching(G) + 1.0 * po.MaxDifferenceRobustness(
        po.knn_graph(X, 3)
    )
    start = Solution(W=np.zeros_like(G))
    result = task_of(objective).solve(objective.coefficients, 1e-6, start)
    assert po.certify(objective, result.W, duals=result.duals).holds(1e-6)


def test_losses_may_have_no_weight():
    X, G = gaussian_data(7, 12, 3)
    losses = [
        po.GradientMatching(G),
        po.MaxDifferenceRobustness(po.knn_graph(X, 3)),
        po.Sparsity(),
        po.PairwiseRobustness(po.knn_graph(X, 2)),
        po.Smoothness(po.chain_graph(3)),
    ]
    for kept in np.ndindex(2, 2, 2, 2):
        terms = zip((1.0, *kept), losses, strict=True)
        objective = po.Objective(tuple((float(c), loss) for c, loss in terms))
        result = task_of(objective).solve(objective.coefficients, 1e-7)
        assert po.certify(objective, result.W, duals=result.duals).holds(1e-7)
        best = po.solve(objective, Conic()).objective
        assert objective.value(result.W) == pytest.approx(best, rel=1e-5)


def test_program_without_gradient_matching_weight_is_zero():
    _, G = gaussian_data(8, 6, 2)
    program = Program((po.GradientMatching(G), po.Sparsity()))
    result = Splitting().prepare(program).solve(np.array([0.0, 1.0]), 1e-6)
    np.testing.assert_array_equal(result.W, np.zeros_like(G))


def test_programs_that_run_out_of_steps_are_given_to_clarabel(monkeypatch):
    monkeypatch.setattr(splitting_module, "ADMM_STEPS", 5)
    objective = random_objective(17)
    assert po.solve(objective, Splitting()).gap <= 1e-6


def test_large_programs_that_run_out_of_steps_are_reported(monkeypatch):
    monkeypatch.setattr(splitting_module, "ADMM_STEPS", 5)
    monkeypatch.setattr(splitting_module, "CLARABEL_ROWS", 0)
    X, G = gaussian_data(12, 20, 3)
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 4), norm="linf")
    with pytest.warns(UncertifiedWarning):
        po.solve(po.GradientMatching(G) + 3.0 * loss, Splitting())
