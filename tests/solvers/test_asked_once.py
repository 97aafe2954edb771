"""What is validated once, refused once and never copied, however many weights."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from catalogue import LOSSES, OBJECTIVES, G
from oracles import subclasses

import propopt as po
import propopt.base.checks
import propopt.explaining.sweeping
import propopt.losses.algebra
import propopt.results.certificate
from propopt.base.checks import read_nonnegative
from propopt.base.errors import SolverFailure
from propopt.losses import Program
from propopt.solvers import Solution, Solver, Task
from propopt.solvers.centred import Transposed


gradient, robustness = LOSSES["gradient l2"], LOSSES["pairwise, gaussian"]
SWEPT = {
    "gradient, pairwise, smoothness": "pairwise_robustness",
    "gradient, pairwise, sparsity": "sparsity",
    "gradient, max": LOSSES["difference, max l2"].name,
    "function, pairwise": "pairwise_robustness",
    "gradient l1, pairwise": "pairwise_robustness",
}
each_program = pytest.mark.parametrize("name", SWEPT)


@pytest.fixture
def asked(monkeypatch):
    """How often each solver was asked, by the program and its own name."""
    counts = Counter()

    def counted(kind, method):
        original = getattr(kind, method)

        def answer(self, program):
            counts[kind.__name__, id(program)] += 1
            programs.append(program)  # so that no other has its id
            return original(self, program)

        monkeypatch.setattr(kind, method, answer)

    programs = []
    for kind in subclasses(Solver):
        counted(kind, "refusal" if "refusal" in vars(kind) else "take")
    return counts


def times(counts):
    """How often each solver was asked, whatever the program."""
    totals = Counter()
    for (name, _), count in counts.items():
        totals[name] += count
    return totals


@each_program
def test_a_sweep_asks_each_solver_at_most_once(name, asked):
    curve = po.sweep(OBJECTIVES[name], {SWEPT[name]: np.geomspace(0.1, 1, 9)})
    assert [e.attributions.shape for e in curve.optimized] == 9 * [G.shape]
    assert asked
    assert max(times(asked).values()) == 1


@each_program
def test_a_solve_asks_each_solver_at_most_once(name, asked):
    po.solve(OBJECTIVES[name])
    assert max(times(asked).values()) == 1


def test_a_sweep_of_limits_asks_each_solver_at_most_once(asked):
    limits = np.linspace(0.1, 0.9, 9) * robustness.value(G)
    curve = po.sweep(1.0 * gradient, limits={robustness: limits})
    assert {e.solver for e in curve.optimized} == {"one_bound"}
    assert max(times(asked).values()) == 1


def test_a_solver_by_name_is_asked_at_most_once(asked):
    bound = robustness <= 0.5 * robustness.value(G)
    for solver in ("one_bound", "conic"):
        po.solve(1.0 * gradient, solver, subject_to=[bound])
    assert max(times(asked).values()) == 1


def test_points_and_features_are_exchanged_for_solvers_that_are_asked_once(asked):
    solver = Transposed(po.solvers.Auto())
    best = po.solve(gradient + 0.5 * robustness, solver)
    assert best.solver == "spectral, transposed"
    assert max(times(asked).values()) == 1


def test_what_a_limit_of_zero_leaves_is_offered_once(asked):
    sparse = gradient + 0.1 * LOSSES["sparsity"]
    best = po.solve(sparse, subject_to=[robustness <= 0])
    assert best.solver.endswith(", restricted")
    assert max(asked.values()) == 1


@pytest.mark.parametrize("kind", ["weights", "limits"])
def test_numbers_are_read_once_however_many_weights(kind, monkeypatch):
    counts = Counter()

    def counted(value, label):
        counts["read"] += 1
        return read_nonnegative(value, label)

    for module in (
        propopt.losses.algebra,
        propopt.results.certificate,
        propopt.base.checks,
    ):
        monkeypatch.setattr(module, "read_nonnegative", counted)
    observed = []
    for number in (2, 20):
        counts.clear()
        share = np.linspace(0.1, 0.9, number) * robustness.value(G)
        if kind == "weights":
            sparse = gradient + LOSSES["sparsity"]
            curve = po.sweep(sparse, {"sparsity": share})
        else:
            curve = po.sweep(1.0 * gradient, limits={robustness: share})
        assert len([e.attributions for e in curve.optimized]) == number
        observed.append(counts["read"])
    assert observed[0] == observed[1] <= 10


@each_program
def test_attributions_of_a_solver_are_not_copied(name):
    objective = OBJECTIVES[name]
    task = Task(Program(objective.losses))
    weights = objective.coefficients
    solution = task.solve(weights, 1e-6)
    best = task.explain(solution, weights, 1e-6, 0.0)
    assert np.shares_memory(best.attributions, solution.W)
    assert not best.attributions.flags.writeable


@each_program
def test_attributions_of_a_solver_are_not_read_as_if_a_user_gave_them(
    name, monkeypatch
):
    def read(*_):
        pytest.fail("attributions were read")

    monkeypatch.setattr("propopt.losses.algebra.aligned", read)
    bounds = [LOSSES["kernel"] <= 1.0]
    po.solve(OBJECTIVES[name])
    po.solve(OBJECTIVES[name], subject_to=bounds)


class Wrong(Solver):
    """A solver with an answer that cannot be right."""

    def __init__(self, solution):
        self.solution = solution

    name = "wrong"

    def refusal(self, program):
        del program

    def prepare(self, program):
        del program
        return self

    def solve(self, weights, tolerance, start=None):
        del weights, tolerance, start
        return self.solution


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_attributions_that_are_not_finite_are_a_failure(number):
    W = G.copy()
    W[0, 0] = number
    with pytest.raises(SolverFailure, match="wrong gave attributions that are not"):
        po.solve(gradient + robustness, Wrong(Solution(W=W)))


@pytest.mark.parametrize("price", [-1e-9, np.nan])
def test_a_multiplier_below_zero_is_a_failure(price):
    solution = Solution(W=G.copy(), multipliers=(price,))
    with pytest.raises(SolverFailure, match="wrong gave a multiplier that is not"):
        po.solve(1.0 * gradient, Wrong(solution), subject_to=[robustness <= 1.0])
