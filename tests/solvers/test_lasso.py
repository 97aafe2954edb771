"""Sparse attributions as Clarabel has them, with exact zeros; conjugate gradients."""

import numpy as np
import pytest
from catalogue import gaussian_kernel

import propopt as po
from propopt.losses import Program
from propopt.losses.graphs.grids import GridGaussianGraph, LatticeGraph
from propopt.solvers import Solution, minimum_norm
from propopt.solvers.lasso import Lasso
from propopt.solvers.normal_equations import NormalEquations


TOLERANCE = 1e-6
GRAPHS = ("knn", "gaussian", "lattice", "grid gaussian")


def robustness(kind: str, X: np.ndarray) -> po.losses.PropertyLoss:
    axes = [np.arange(3), np.linspace(0, 2, len(X) // 3)]
    graph = {
        "knn": lambda: po.graphs.knn_graph(X, 2),
        "gaussian": lambda: po.graphs.gaussian_graph(X),
        "lattice": lambda: LatticeGraph((3, len(X) // 3)),
        "grid gaussian": lambda: GridGaussianGraph(axes, 0.8),
    }[kind]
    return po.PairwiseRobustness(graph())


def sparse_objective(n: int = 60, d: int = 4, graph: str = "knn", seed: int = 3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    G = np.sin(X) + 0.3 * rng.normal(size=(n, d))
    smooth, sparse = 0.3 * po.Smoothness(po.graphs.chain_graph(d)), 0.4 * po.Sparsity()
    return po.GradientMatching(G) + 0.5 * robustness(graph, X) + smooth + sparse


def solved(objective, start=None, tolerance=TOLERANCE):
    prepared = Lasso().prepare(Program(objective.losses))
    return prepared.solve(objective.coefficients, tolerance, start)


def gap(objective: po.losses.Objective, result: Solution) -> float:
    return po.proofs.certify(objective, result.W, duals=result.duals).gap


@pytest.mark.parametrize("graph", GRAPHS)
def test_zeros_are_exact_up_to_the_weight_that_takes_all(graph):
    objective = sparse_objective(graph=graph)
    result = solved(objective, tolerance=1e-10)
    zeros = result.W == 0.0
    assert 0.05 < zeros.mean() < 1.0
    assert np.abs(result.W[~zeros]).min() > 1e-9  # none is zero only to rounding
    # complementarity: |U| = λ with the sign of W wherever W is not zero
    slopes = 0.4 * np.sign(result.W[~zeros])
    np.testing.assert_allclose(result.duals["sparsity"][~zeros], slopes, rtol=1e-3)
    twice = 2.0 * objective  # from 2a|G| on
    largest = 4 * np.abs(objective.losses[0].G).max()
    none = twice.with_weights({"sparsity": largest})
    assert not solved(none).W.any()
    assert gap(none, solved(none)) == 0.0
    assert solved(none.with_weights({"sparsity": 0.99 * largest})).W.any()
    # at a weight of zero it is the closed form
    squared = objective.with_weights({"sparsity": 0.0})
    result = solved(squared, tolerance=1e-12)
    expected = po.solve(sum(c * f for c, f in squared.terms if c), "spectral")
    np.testing.assert_allclose(result.W, expected.attributions, atol=1e-5)
    assert not solved(objective.with_weights({"gradient_matching": 0.0})).W.any()


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (5, 1)])
def test_without_couplings_it_is_a_soft_threshold(shape, rng):
    G = rng.normal(size=shape)
    objective = 2.0 * po.GradientMatching(G) + 1.0 * po.Sparsity()
    expected = np.sign(G) * np.maximum(np.abs(G) - 0.25, 0.0)
    np.testing.assert_allclose(solved(objective).W, expected, atol=1e-12)
    nothing = po.GradientMatching(0.0 * G) + 1.0 * po.Sparsity()
    assert gap(nothing, solved(nothing)) == 0.0


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("swept", ["sparsity", "robustness", "smoothness"])
def test_paths_are_certified_from_warm_starts(graph, swept):
    objective = sparse_objective(graph=graph)
    name = {"robustness": objective.losses[1].name}.get(swept, swept)
    prepared = Lasso().prepare(Program(objective.losses))
    start = None
    for weight in np.geomspace(1.0, 1e-3, 8):
        point = objective.with_weights({name: weight})
        start = prepared.solve(point.coefficients, 1e-6, start)
        assert gap(point, start) <= TOLERANCE


N, D = 12, 3
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, D))
F = np.sin(X).sum(axis=1)
LOSSES: dict[str, po.losses.PropertyLoss] = {
    "gradient": po.GradientMatching(np.cos(X)),
    "function": po.losses.FunctionMatching(X, F),
    "local": po.losses.FunctionMatching(
        X,
        RNG.normal(size=(N, 5)),
        perturbations=RNG.normal(size=(N, 5, D)),
        name="local",
    ),
    "knn": po.PairwiseRobustness(po.graphs.knn_graph(X, 4)),
    "kernel": po.losses.KernelRobustness(gaussian_kernel(X, 1.0) + 1e-2 * np.eye(N)),
    "lattice": po.PairwiseRobustness(LatticeGraph((3, 4)), name="lattice"),
    "chain": po.Smoothness(po.graphs.chain_graph(D)),
}


APART = np.concatenate([X, 100 + X[:2]])  # two points cannot fix three attributions
TWO_PARTS = po.graphs.threshold_graph(APART, 50.0)
PARTS = po.PairwiseRobustness(TWO_PARTS)
SEEN = po.losses.KernelRobustness(gaussian_kernel(X, 1.0) + np.eye(N), mean="none")
TWO_KINDS = [po.losses.FunctionMatching(APART, F[[*range(N), 0, 1]]), PARTS]
UNDETERMINED = {"function": [LOSSES["function"]], "parts": TWO_KINDS}
TAKEN = {
    "function, chain": [LOSSES["function"], LOSSES["chain"]],  # one equation each
    "local": [LOSSES["local"]],
    **{k: [LOSSES["function"], LOSSES[k]] for k in ("knn", "lattice", "kernel")},
    "kernel without mean": [po.losses.FunctionMatching(np.ones((N, D)), F), SEEN],
}


@pytest.mark.parametrize("limit", [0, 10_000])
@pytest.mark.parametrize("name", [*UNDETERMINED, *TAKEN])
def test_what_is_undetermined_is_refused(name, limit, monkeypatch):
    monkeypatch.setattr(minimum_norm, "DENSE_LIMIT", limit)
    assert TWO_PARTS.n_components == 2
    program = Program(tuple((UNDETERMINED | TAKEN)[name]))
    refusal = NormalEquations().refusal(program)
    assert (refusal is None) == (name in TAKEN)
    assert name in TAKEN or "undetermined" in refusal
