"""The best mixture of explanations."""

from __future__ import annotations

import numpy as np
import pytest

from propopt.base.arrays import Array, Points
from propopt.base.errors import InvalidInput
from propopt.explaining.explainers import Gradient, Lime, SmoothGrad, aggregate
from propopt.functions import Power, Sine
from propopt.losses import (
    GradientMatching,
    MaxDifferenceRobustness,
    Objective,
    PairwiseRobustness,
    PropertyLoss,
    Sparsity,
)
from propopt.losses.graphs.points import complete_graph
from propopt.results.explanation import Explanation


@pytest.fixture
def candidates(X):
    settings = [
        Gradient(),
        SmoothGrad(scale=0.5),
        SmoothGrad(scale=1.5),
        Lime(scale=2.0),
    ]
    return [explainer.explain(Power(3), X) for explainer in settings]


def objectives(X: Points) -> list[Objective]:
    matching = 1.0 * GradientMatching(Power(3).gradient(X))
    graph = complete_graph(len(X))
    others: list[PropertyLoss] = [
        PairwiseRobustness(graph),
        Sparsity(),
        MaxDifferenceRobustness(graph),
        MaxDifferenceRobustness(graph, norm="linf"),
    ]
    return [matching + 0.5 * other for other in others]


@pytest.mark.parametrize("which", range(4))
def test_no_mixture_beats_the_aggregate(which, X, candidates):
    objective = objectives(X)[which]
    mixture = aggregate(objective, candidates)
    stack = np.array([part.attributions for part in candidates])
    shares = np.random.default_rng(0).dirichlet(np.ones(4), size=500)
    rivals = [*np.tensordot(shares, stack, axes=1), *stack]
    best = min(objective.value(rival) for rival in rivals)
    assert mixture.objective is not None
    assert mixture.objective <= best * (1 + 1e-8)


def test_the_aggregate_is_the_mixture_that_it_says(X, candidates):
    best = aggregate(objectives(X)[0], candidates)
    shares = best.details["shares"]
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)
    mixture = sum(
        share * part.attributions
        for share, part in zip(shares, candidates, strict=True)
    )
    np.testing.assert_allclose(best.attributions, mixture)
    assert best.losses == objectives(X)[0].breakdown(best.attributions)


def test_an_explanation_that_is_already_best_is_kept(X, candidates):
    matching = GradientMatching(Power(3).gradient(X))
    best = aggregate(matching, candidates)
    np.testing.assert_array_equal(best.details["shares"], [1, 0, 0, 0])
    assert aggregate(matching, candidates[1:2]).details["shares"] == [1.0]


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_the_aggregate_does_not_depend_on_units(size, X, candidates):
    graph = complete_graph(len(X))
    gradients = Power(3).gradient(X)

    def shares(unit: float) -> Array:
        objective = GradientMatching(unit * gradients) + PairwiseRobustness(graph)
        scaled = [
            Explanation(attributions=unit * part.attributions, method="scaled")
            for part in candidates
        ]
        return aggregate(objective, scaled).details["shares"]

    np.testing.assert_allclose(shares(size), shares(1.0), atol=1e-6)


def test_explanations_of_different_shape_are_not_mixed(X):
    parts = [Gradient().explain(Sine(), points) for points in (X, X[:2])]
    with pytest.raises(InvalidInput, match=r"got \(2, 3\), \(6, 3\)"):
        aggregate(Sparsity(), parts)
    with pytest.raises(InvalidInput, match=r"at least one, .* got none"):
        aggregate(Sparsity(), [])


def test_a_mixture_has_the_units_that_all_have_and_the_calls_of_all():
    def made(units: str, evaluations: int) -> Explanation:
        return Explanation(
            attributions=np.full((2, 2), float(evaluations)),
            method="some",
            units=units,
            evaluations=evaluations,
        )

    objective = GradientMatching(np.full((2, 2), 1.5))
    alike = aggregate(objective, [made("gradient", 1), made("gradient", 2)])
    assert (alike.units, alike.evaluations) == ("gradient", 3)
    with pytest.raises(InvalidInput, match=r"'gradient' \(some\) and 'output'"):
        aggregate(objective, [made("gradient", 1), made("output", 2)])
    known = GradientMatching(np.full((2, 2), 1.5), units="output")
    parts = [made("output", 1), np.ones((2, 2))]
    assert aggregate(known, parts).units == "output"
