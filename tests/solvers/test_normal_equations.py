"""Conjugate gradients: the optimum of squared losses of every kind, and its proof."""

import itertools
import time

import numpy as np
import pytest
from catalogue import gaussian_kernel

import propopt as po
from propopt.losses import Program
from propopt.losses.graphs.grids import LatticeGraph
from propopt.solvers import complete
from propopt.solvers.normal_equations import NormalEquations


N, D = 12, 3
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, D))
F = np.sin(X).sum(axis=1)
LOSSES: dict[str, po.PropertyLoss] = {
    "gradient": po.GradientMatching(np.cos(X)),
    "function": po.FunctionMatching(X, F),
    "local": po.FunctionMatching(
        X,
        RNG.normal(size=(N, 5)),
        perturbations=RNG.normal(size=(N, 5, D)),
        sample_weights=np.linspace(0.5, 1, 5),
        name="local",
    ),
    "knn": po.PairwiseRobustness(po.knn_graph(X, 4)),
    "kernel": po.KernelRobustness(gaussian_kernel(X, 1.0) + 1e-2 * np.eye(N)),
    "lattice": po.PairwiseRobustness(LatticeGraph((3, 4)), name="lattice"),
    "chain": po.Smoothness(po.chain_graph(D)),
}


def solved(objective, tolerance=1e-6):
    prepared = NormalEquations().prepare(Program(objective.losses))
    return prepared.solve(objective.coefficients, tolerance)


def test_scales_of_data_and_extreme_weights_are_certified():
    for size, strength in itertools.product((1e-6, 1e6), repeat=2):
        objective = po.FunctionMatching(X, size * F) + strength * LOSSES["knn"]
        assert po.certify(objective, solved(objective).W).gap <= 1e-6
    objective = sum(LOSSES[name] for name in ("gradient", "function", "knn"))
    alone = {"function_matching": 0.0, "pairwise_robustness": 0.0}
    result = solved(objective.with_weights(alone), tolerance=1e-14)
    np.testing.assert_allclose(result.W, np.cos(X))


APART = np.concatenate([X, 100 + X[:2]])  # two points cannot fix three attributions
TWO_PARTS = po.threshold_graph(APART, 50.0)
PARTS = po.PairwiseRobustness(TWO_PARTS)
SEEN = po.KernelRobustness(gaussian_kernel(X, 1.0) + np.eye(N), mean="none")
UNDETERMINED = {
    "function": [LOSSES["function"]],
    "parts": [po.FunctionMatching(APART, F[[*range(N), 0, 1]]), PARTS],
}
TAKEN = {
    "function, chain": [LOSSES["function"], LOSSES["chain"]],  # one equation each
    "local": [LOSSES["local"]],
    **{k: [LOSSES["function"], LOSSES[k]] for k in ("knn", "lattice", "kernel")},
    "kernel without mean": [po.FunctionMatching(np.ones((N, D)), F), SEEN],
}


@pytest.mark.parametrize("limit", [0, 10_000])
@pytest.mark.parametrize("name", [*UNDETERMINED, *TAKEN])
def test_what_is_undetermined_is_refused(name, limit, monkeypatch):
    monkeypatch.setattr(complete, "DENSE_LIMIT", limit)
    assert TWO_PARTS.n_components == 2
    program = Program(tuple((UNDETERMINED | TAKEN)[name]))
    refusal = NormalEquations().refusal(program)
    assert (refusal is None) == (name in TAKEN)
    assert name in TAKEN or "undetermined" in refusal


def test_function_matching_on_a_large_graph_takes_seconds():
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(20_000, 4))
    objective = po.FunctionMatching(Z, np.sin(Z).sum(axis=1)) + 0.1 * (
        po.PairwiseRobustness(po.knn_graph(Z, 8))
    )
    began = time.perf_counter()
    best = po.solve(objective, NormalEquations())
    assert time.perf_counter() - began < 20
    assert best.gap <= 1e-6
