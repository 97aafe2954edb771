"""A program is checked, offered, compiled and diagonalised once for all its weights."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import OBJECTIVES, D, N
from cvxpy.reductions.solvers.solving_chain import SolvingChain

import propopt as po
from propopt.results import curvature


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


@pytest.mark.parametrize(
    "name",
    [
        "gradient, pairwise, sparsity",
        "gradient, max",
        "gradient l1, max linf",
        "function, pairwise",
    ],
)
def test_a_sweep_compiles_once(name, compilations):
    objective = OBJECTIVES[name]
    last = list(objective.weights)[-1]
    weights = {last: np.geomspace(0.01, 100, 25)}
    curve = po.sweep(objective, weights, solver="conic")
    assert len(curve.optimized) == 25
    assert len(compilations) == 1


def test_separate_solves_compile_each_time(compilations):
    for _ in range(3):
        po.solve(OBJECTIVES["gradient, max"], "conic")
    assert len(compilations) == 3


def test_spectral_sweep_finds_its_eigenbasis_once(monkeypatch):
    calls = []
    original = curvature.la.eigh

    def eigh(matrix):
        calls.append(matrix.shape)
        return original(matrix)

    monkeypatch.setattr(curvature.la, "eigh", eigh)
    objective = OBJECTIVES["gradient, pairwise, smoothness"]
    po.sweep(objective, {"pairwise_robustness": np.geomspace(0.01, 100, 25)})
    assert calls == [(N, N), (D, D)]
