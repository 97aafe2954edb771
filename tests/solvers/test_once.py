"""What is validated, refused, compiled once and never copied, however many weights."""

from collections import Counter

import numpy as np
import pytest
from catalogue import LOSSES, OBJECTIVES, G
from cvxpy.reductions.solvers.solving_chain import SolvingChain
from oracles import subclasses

import propopt as po
import propopt.base.checks
import propopt.explaining.sweeping
import propopt.losses.algebra
import propopt.proofs.certificate
from propopt.base.errors import SolverFailure
from propopt.losses import Program
from propopt.solvers import Solution, Solver, Task


gradient, robustness = LOSSES["gradient l2"], LOSSES["pairwise, gaussian"]
SWEPT = {
    "gradient, pairwise, smoothness": "pairwise_robustness",
    "gradient, pairwise, sparsity": "sparsity",
    "gradient, max": LOSSES["difference, max"].name,
    "function, pairwise": "pairwise_robustness",
    "gradient l1, pairwise": "pairwise_robustness",
}
each_program = pytest.mark.parametrize("name", SWEPT)


@pytest.fixture
def requested(monkeypatch):
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


def most(counts):
    """How often the solver that was asked most was asked, whatever the program."""
    totals = Counter()
    for (name, _), count in counts.items():
        totals[name] += count
    return max(totals.values())


@each_program
def test_a_solve_and_a_sweep_ask_each_solver_at_most_once(name, requested):
    po.solve(OBJECTIVES[name])
    assert most(requested) == 1
    requested.clear()
    curve = po.sweep(OBJECTIVES[name], {SWEPT[name]: np.geomspace(0.1, 1, 9)})
    assert [e.attributions.shape for e in curve.optimized] == 9 * [G.shape]
    assert most(requested) == 1


@each_program
def test_attributions_of_a_solver_are_not_copied_nor_read(name, monkeypatch):
    objective = OBJECTIVES[name]
    task = Task(Program(objective.losses))
    solution = task.solve(objective.coefficients, 1e-6)
    best = task.explain(solution, objective.coefficients, 1e-6, 0.0)
    assert np.shares_memory(best.attributions, solution.W)
    assert not best.attributions.flags.writeable
    monkeypatch.setattr("propopt.losses.algebra.aligned", None)  # what a user gives
    po.solve(objective)
    po.solve(objective, subject_to=[LOSSES["kernel"] <= 1.0])


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


def with_nan(number):
    W = G.copy()
    W[0, 0] = number
    return Solution(W=W)


IMPOSSIBLE = [
    *(("attributions that are not", with_nan(x)) for x in (np.nan, np.inf, -np.inf)),
    ("a multiplier that is not", Solution(W=G.copy(), multipliers=(-1e-9,))),
    ("a multiplier that is not", Solution(W=G.copy(), multipliers=(np.nan,))),
]


@pytest.mark.parametrize(("what", "solution"), IMPOSSIBLE)
def test_what_no_solver_can_give_is_a_failure(what, solution):
    with pytest.raises(SolverFailure, match=f"wrong gave {what}"):
        po.solve(1.0 * gradient, Wrong(solution), subject_to=[robustness <= 1.0])


@pytest.fixture
def compilations(monkeypatch):
    """One entry for each time that cvxpy takes a program through all its reductions."""
    result = []
    original = SolvingChain.apply

    def apply(self, problem, verbose=False):
        result.append(problem)
        return original(self, problem, verbose)

    monkeypatch.setattr(SolvingChain, "apply", apply)
    return result


COMPILED = ("gradient, pairwise, sparsity", "gradient, max", "function, pairwise")


@pytest.mark.parametrize("name", [*COMPILED, "gradient l1, sparsity"])
def test_a_sweep_compiles_once(name, compilations):
    objective = OBJECTIVES[name]
    weights = {list(objective.weights)[-1]: np.geomspace(0.01, 100, 25)}
    assert len(po.sweep(objective, weights, solver="conic").optimized) == 25
    assert len(compilations) == 1
    po.solve(objective, "conic")
    assert len(compilations) == 2
