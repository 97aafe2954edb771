"""The front between solved weights: against solvers, against Clarabel, and refusals."""

import numpy as np
import pytest

import propopt as po
from propopt.base.text import Reason
from propopt.proofs.fronts import MOST_ERROR, ExactFront


RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 5))
G = np.sin(X @ RNG.normal(size=(5, 5)))
ROBUST = po.PairwiseRobustness(po.graphs.knn_graph(X, 4))
SMOOTH = po.Smoothness(po.graphs.correlation_graph(X))
COMPLETE = po.losses.Completeness(G.sum(axis=1))

WEIGHTS = np.logspace(-2, 2, 17)
PROGRAMS = {
    "robust": (po.GradientMatching(G) + ROBUST, ROBUST, []),
    "robust beside smooth": (
        po.GradientMatching(G) + 0.3 * SMOOTH + ROBUST,
        ROBUST,
        [],
    ),
    "smooth beside robust": (
        po.GradientMatching(G) + 0.2 * ROBUST + SMOOTH,
        SMOOTH,
        [],
    ),
    "rows add up": (2.0 * po.GradientMatching(G) + ROBUST, ROBUST, [COMPLETE]),
}


def front_of(name, weights=WEIGHTS, solve=None):
    objective, loss, totals = PROGRAMS[name]
    curve = po.sweep(objective, {loss.name: weights}, subject_to=totals)
    return ExactFront.of(curve.optimized, loss.name, solve)


@pytest.mark.parametrize("name", PROGRAMS)
def test_attributions_and_losses_between_are_those_that_solvers_find(name):
    objective, loss, totals = PROGRAMS[name]
    front = front_of(name)
    assert front.error <= MOST_ERROR
    assert front.n_proved == len(WEIGHTS) - 1
    assert len(front.theta) < len(WEIGHTS)
    for weight in np.geomspace(*front.ends, 12):
        reported = objective.with_weights({loss.name: float(weight)})
        best = po.solve(reported, subject_to=totals)
        size = np.abs(best.attributions).max()
        off = np.abs(front.attributions(weight) - best.attributions).max()
        assert off <= front.error * size
        losses = front.losses(weight)
        for key, value in reported.breakdown(best.attributions).items():
            assert losses[key] == pytest.approx(value, rel=1e-6)
        if totals:
            sums = front.attributions(weight).sum(axis=1)
            np.testing.assert_allclose(sums, COMPLETE.total, atol=1e-12)


def test_the_stated_error_is_no_less_than_that_to_clarabel():
    front, loss = front_of("robust"), ROBUST
    weight = float(np.sqrt(WEIGHTS[7] * WEIGHTS[8]))
    objective = po.GradientMatching(G) + weight * loss
    exact = po.solve(objective, po.solvers.Conic("CLARABEL"), tolerance=1e-10)
    off = np.linalg.norm(front.attributions(weight) - exact.attributions)
    size = np.abs(exact.attributions).max()
    assert off <= front.error * size + exact.certificate.distance < 1e-3 * size


def test_too_few_weights_are_refused_or_solved_between():
    few = WEIGHTS[::8]
    refused = front_of("robust", few)
    assert isinstance(refused, Reason)
    assert "may be" in refused.reason
    front = front_of("robust", few, po.solve)
    assert front.error <= MOST_ERROR
    best = po.solve(po.GradientMatching(G) + 0.7 * ROBUST).attributions
    off = np.abs(front.attributions(0.7) - best).max()
    assert off <= 1e-6 * np.abs(best).max()


def test_what_has_no_such_front_says_why():
    sparse = po.GradientMatching(G) + po.Sparsity()
    curve = po.sweep(sparse, {"sparsity": [0.1, 1.0, 2.0]})
    assert "not a squared loss" in ExactFront.of(curve.optimized, "sparsity").reason
    bounded = po.sweep(
        po.GradientMatching(G) + SMOOTH,
        {"smoothness": [0.1, 1.0, 2.0]},
        subject_to=[ROBUST <= 1.0],
    )
    assert "bounds" in ExactFront.of(bounded.optimized, "smoothness").reason
    assert "fewer than" in front_of("robust", WEIGHTS[:2]).reason
    alone = po.results.Explanation(attributions=G, method="mine")
    assert "not available" in ExactFront.of([alone], "smoothness").reason
