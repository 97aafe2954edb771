"""Conjugate gradients: the optimum of squared losses of every kind, and its proof."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from catalogue import gaussian_kernel
from oracles import normal_equations

import propopt as po
from propopt.losses import Program
from propopt.losses.graphs.grids import LatticeGraph
from propopt.solvers import Solution, complete
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
DETERMINED = [
    names
    for size in (1, 2, 3, 4)
    for names in itertools.combinations(LOSSES, size)
    if {"gradient", "function", "local"} & set(names)
    and NormalEquations().refusal(Program(tuple(LOSSES[n] for n in names))) is None
]


def solved(
    objective: po.Objective, start: Solution | None = None, tolerance: float = 1e-6
) -> Solution:
    weights = np.array(list(objective.weights.values()))
    prepared = NormalEquations().prepare(Program(objective.losses))
    return prepared.solve(weights, tolerance, start)


def weighted(names: tuple[str, ...], scale: float = 1.0) -> po.Objective:
    """The losses with weights of different sizes."""
    return sum(scale * 3.0**-i * LOSSES[name] for i, name in enumerate(names))


def test_most_combinations_are_determined():
    assert len(DETERMINED) > 60


@pytest.mark.sampled(20)
@pytest.mark.parametrize("names", DETERMINED, ids="-".join)
def test_it_solves_the_normal_equations(names):
    objective = weighted(names)
    result = solved(objective, tolerance=1e-12)
    expected = normal_equations(objective, (N, D))
    np.testing.assert_allclose(result.W, expected, rtol=1e-5, atol=1e-5)
    assert po.certify(objective, result.W).gap <= 1e-9


@pytest.mark.parametrize("names", [("function", "knn"), ("function", "kernel")])
def test_it_is_the_smallest_minimiser_as_there_is_one(names):
    objective = weighted(names)
    expected = po.solve(objective, "minimum_norm").attributions
    np.testing.assert_allclose(solved(objective).W, expected, atol=1e-6)


@pytest.mark.parametrize("size", [1e-6, 1e6])
@pytest.mark.parametrize("strength", [1e-6, 1e6])
def test_scales_of_data_and_extreme_weights_are_certified(size, strength):
    objective = po.FunctionMatching(X, size * F) + strength * LOSSES["knn"]
    result = solved(objective)
    assert po.certify(objective, result.W).gap <= 1e-6


def test_a_start_nearby_saves_work():
    objective = weighted(("gradient", "function", "knn"))
    first = solved(objective)
    again = solved(objective, start=first)
    np.testing.assert_array_equal(again.W, first.W)


def test_losses_of_weight_zero_take_no_part():
    objective = weighted(("gradient", "function", "knn")).with_weights(
        {"function_matching": 0.0, "pairwise_robustness": 0.0}
    )
    np.testing.assert_allclose(solved(objective, tolerance=1e-14).W, np.cos(X))


def test_a_start_is_not_changed():
    start = Solution(W=np.ones((N, D)))
    solved(weighted(("gradient", "knn")), start=start)
    assert (start.W == 1.0).all()


@pytest.mark.parametrize("limit", [0, 10_000])
@pytest.mark.parametrize(
    ("names", "open_"),
    [
        (("function",), True),
        (("function", "chain"), False),  # equal features, and then one equation each
        (("local",), False),
        (("function", "knn"), False),
        (("function", "lattice"), False),
        (("function", "kernel"), False),
    ],
)
def test_what_is_undetermined_is_refused(names, open_, limit, monkeypatch):
    monkeypatch.setattr(complete, "DENSE_LIMIT", limit)
    program = Program(tuple(LOSSES[name] for name in names))
    refusal = NormalEquations().refusal(program)
    assert (refusal is not None and "undetermined" in refusal) == open_


@pytest.mark.parametrize("limit", [0, 10_000])
def test_each_component_has_to_be_determined(limit, monkeypatch):
    monkeypatch.setattr(complete, "DENSE_LIMIT", limit)
    Z = np.concatenate([X, 100 + X[:2]])  # two points cannot fix three attributions
    graph = po.threshold_graph(Z, 50.0)
    assert graph.n_components == 2
    losses = (po.FunctionMatching(Z, Z[:, 0]), po.PairwiseRobustness(graph))
    assert "undetermined" in (NormalEquations().refusal(Program(losses)) or "")


@pytest.mark.parametrize("limit", [0, 10_000])
def test_a_kernel_with_no_mean_determines_all(limit, monkeypatch):
    monkeypatch.setattr(complete, "DENSE_LIMIT", limit)
    ones = np.ones((N, D))
    kernel = po.KernelRobustness(gaussian_kernel(X, 1.0) + np.eye(N), mean="none")
    losses = (po.FunctionMatching(ones, F), kernel)
    assert NormalEquations().refusal(Program(losses)) is None


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
