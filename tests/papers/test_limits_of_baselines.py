"""The paper's statement that no baseline beats the optimum."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import propopt as po
from propopt.explaining.explainers import Gradient, Lime, SmoothGrad, aggregate
from propopt.functions import PAPER_FUNCTIONS, Function
from propopt.losses.graphs import grid


def paper_function(name: str) -> Function:
    return PAPER_FUNCTIONS[name](3) if name == "power" else PAPER_FUNCTIONS[name]()


@cache
def baselines(name: str) -> tuple[np.ndarray, np.ndarray, list[po.Explanation]]:
    function = paper_function(name)
    X = grid(-2, 2, 4, 2)
    made = [Gradient().explain(function, X)]
    for scale in (1e-3, 0.1, 0.5, 1.0, 3.0):
        own = {"scale": scale, "n_samples": 200}
        ball, bare = {"distribution": "ball"}, {"fit_intercept": False}
        rivals = [SmoothGrad(**own), SmoothGrad(**own, **ball)]
        rivals += [Lime(**own), Lime(**own, **bare)]
        made += [rival.explain(function, X) for rival in rivals]
    return X, function.gradient(X), made


def objectives(
    X: np.ndarray, G: np.ndarray, values: np.ndarray
) -> dict[str, po.Objective]:
    gradient = po.GradientMatching(G)
    graph = po.gaussian_graph(X)
    near = po.knn_graph(X, 3)
    return {
        "pairwise": gradient + po.PairwiseRobustness(graph),
        "sparsity": gradient + po.Sparsity(),
        "max": gradient + po.MaxDifferenceRobustness(near),
        "function": po.FunctionMatching(X, values) + po.PairwiseRobustness(graph),
    }


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", ["pairwise", "sparsity", "max", "function"])
@pytest.mark.parametrize("name", PAPER_FUNCTIONS)
def test_no_baseline_beats_the_optimum(name, kind):
    X, G, made = baselines(name)
    objective = objectives(X, G, paper_function(name).value(X))[kind]
    last = list(objective.weights)[-1]
    for weight in (1e-2, 1.0, 1e2):
        weighed = objective.with_weights({last: weight})
        best = po.solve(weighed)
        assert best.certificate.holds(1e-6)
        optimum = best.certificate.value - best.gap * best.certificate.scale
        for rival in [*made, aggregate(weighed, made[:6])]:
            assert weighed.value(rival.attributions) >= optimum * (1 - 1e-12)
