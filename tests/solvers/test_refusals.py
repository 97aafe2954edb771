"""What each structured solver refuses, with the reason."""

from __future__ import annotations

import numpy as np
import pytest

import propopt as po
from propopt.losses import Program
from propopt.solvers.curves import Spectral
from propopt.solvers.entries import Entries
from propopt.solvers.factored import Factored
from propopt.solvers.lasso import Lasso
from propopt.solvers.normal_equations import NormalEquations
from propopt.solvers.splitting import Splitting


SHAPE = (6, 2)
X, G = np.random.default_rng(11).normal(size=(2, *SHAPE))
GRADIENT, LINEAR = po.GradientMatching(G), po.GradientMatching(G, norm="l1")
FUNCTION = po.FunctionMatching(X, X[:, 0])
SPARSITY = po.Sparsity()
LARGEST = po.MaxDifferenceRobustness(po.chain_graph(6))
NEAR = po.PairwiseRobustness(po.chain_graph(6), name="near")
FAR = po.PairwiseRobustness(po.complete_graph(6))
LATTICE = po.PairwiseRobustness(po.graphs.LatticeGraph((2, 3)))
KERNEL = po.KernelRobustness(np.eye(6))
SHARED = po.SharedRobustness(po.chain_graph(6), np.ones(SHAPE))
SMOOTHNESS = po.Smoothness(po.chain_graph(2))

REFUSED = [
    (Lasso(), [GRADIENT], "it takes one sparsity loss"),
    (Lasso(), [SPARSITY], "no squared gradient-matching loss"),
    (Lasso(), [LINEAR, SPARSITY], "gradient_matching is neither a squared loss nor"),
    (Lasso(), [GRADIENT, LARGEST, SPARSITY], "is neither a squared loss nor sparsity"),
    (Lasso(), [GRADIENT, SPARSITY, po.Sparsity(name="more")], "there are 2"),
    (Lasso(), [FUNCTION, SPARSITY], "is none of W itself"),
    (Splitting(), [GRADIENT, NEAR, FAR, SPARSITY], "it takes one robustness loss"),
    (Splitting(), [LINEAR, LARGEST], "is not squared, sparsity or a largest"),
    (Splitting(), [GRADIENT, FUNCTION, SPARSITY], "is none of W itself"),
    (Splitting(), [NEAR, SPARSITY], "there is no squared gradient-matching"),
    (Splitting(), [GRADIENT, LATTICE, SPARSITY], "whose edges are not stored"),
    (NormalEquations(), [GRADIENT, SPARSITY], "is not a squared"),
    (NormalEquations(), [FUNCTION], "undetermined"),
    (Factored(), [GRADIENT], "no robustness loss whose graph is stored"),
    (Factored(), [GRADIENT, LATTICE], "no robustness loss whose graph is stored"),
    (Factored(), [GRADIENT, KERNEL], "no robustness loss whose graph is stored"),
    (Entries(Spectral()), [GRADIENT, NEAR], "no loss couples single entries"),
    (Entries(Spectral()), [GRADIENT, SHARED, SMOOTHNESS], "no sum over entries"),
]


@pytest.mark.parametrize(("solver", "losses", "reason"), REFUSED)
def test_refusals_are_sentences(solver, losses, reason):
    program = Program(tuple(losses), sizes=SHAPE)
    assert reason in (solver.refusal(program) or "")


TAKEN = [
    (Lasso(), (GRADIENT, SPARSITY)),
    (NormalEquations(), (GRADIENT,)),
    (Splitting(), (GRADIENT, LARGEST)),
]


@pytest.mark.parametrize(("solver", "losses"), TAKEN)
def test_bounds_are_refused(solver, losses):
    program = Program(losses, (NEAR <= 1.0,), SHAPE)
    assert "takes no bounds" in (solver.refusal(program) or "")


@pytest.mark.parametrize(("solver", "losses"), TAKEN[:2])
def test_programs_beyond_memory_are_refused(solver, losses):
    huge = Program(losses, sizes=(10**9, 10))
    assert "GiB" in (solver.refusal(huge) or "")
