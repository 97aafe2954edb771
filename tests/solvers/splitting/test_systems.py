"""The linear systems of splitting, in each layout, and Newton's steps on them."""

from __future__ import annotations

import numpy as np
import pytest
from max_differences import gaussian_data

import propopt as po
from propopt.solvers.edge_newton import (
    Composite,
    EdgeNewton,
    Term,
    choose_layout,
    factorise,
)
from propopt.solvers.splitting import Splitting, minimise


def test_large_narrow_graphs_are_solved_by_sparse_factors():
    rng = np.random.default_rng(13)
    X = np.sort(rng.uniform(size=(3000, 1)), axis=0)
    G = np.sin(9 * X) + rng.normal(size=(3000, 2))
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 2))
    assert choose_layout([loss.map.gram]) == "lu"
    objective = po.GradientMatching(G) + 20.0 * loss
    assert po.solve(objective, Splitting()).gap <= 1e-6


SHIFTS = {"one": np.full(3, 1.5), "several": np.array([1.0, 2.5, 2.5])}


@pytest.mark.parametrize("layout", ["dense", "lu", "cg"])
@pytest.mark.parametrize("shifts", SHIFTS.values(), ids=SHIFTS)
def test_systems_are_solved_in_every_layout(layout, shifts):
    X, R = gaussian_data(14, 40, 3)
    P = po.PairwiseRobustness(po.knn_graph(X, 4)).map.gram
    W = factorise(P, shifts, layout).solve(R)
    np.testing.assert_allclose(P @ W + W * shifts, R, atol=1e-9)


@pytest.mark.parametrize("shifts", SHIFTS.values(), ids=SHIFTS)
def test_resistances_are_quadratic_forms_of_the_inverse(shifts):
    X, _ = gaussian_data(15, 12, 3)
    P = po.PairwiseRobustness(po.knn_graph(X, 4)).map.gram.toarray()
    tails, heads = np.array([0, 3, 5]), np.array([4, 1, 2])
    B = np.eye(12)[tails] - np.eye(12)[heads]
    system = factorise(P, shifts, "dense")
    result = np.broadcast_to(system.resistances(tails, heads), (3, 3))
    for j, shift in enumerate(shifts):
        exact = np.diag(B @ np.linalg.inv(P + shift * np.eye(12)) @ B.T)
        np.testing.assert_allclose(result[:, j], exact, rtol=1e-10)


def newton_program(layout: str, smooth: bool) -> Composite:
    X, G = gaussian_data(16, 40, 3)
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 4))
    features = po.chain_graph(3).laplacian.toarray() if smooth else None
    return Composite(
        G=G,
        P=None,
        Q=features,
        terms=(Term.of(loss, as_dense=layout == "dense"),),
        layout=layout,
    )


@pytest.mark.parametrize("layout", ["dense", "lu", "cg"])
@pytest.mark.parametrize("smooth", [False, True])
def test_every_layout_has_the_same_optimum(layout, smooth):
    result = minimise(newton_program(layout, smooth), 1e-10)
    expected = minimise(newton_program("dense", smooth), 1e-10)
    assert result.gap <= 1e-10
    assert result.value == pytest.approx(expected.value, rel=2e-10)


def test_newton_never_lowers_the_dual_value():
    program = newton_program("dense", smooth=False)
    newton = EdgeNewton(program)
    rng = np.random.default_rng(0)
    Y = rng.normal(size=program.terms[0].map(program.G).shape)
    bounds = [
        point.value - point.excess
        for point in (newton.run([Y], n_steps, 0.0) for n_steps in range(6))
    ]
    assert bounds[-1] > bounds[0]
    assert bounds[-1] == pytest.approx(minimise(program, 1e-10).value, rel=1e-6)
