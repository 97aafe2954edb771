"""Bounds: multipliers as weights, and limits that cannot hold."""

import numpy as np
import pytest
from catalogue import LOSSES, SHAPE, G
from oracles import reference_optimum

import propopt as po
from propopt.base.errors import Infeasible


gradient, sparsity = LOSSES["gradient l2"], LOSSES["sparsity"]
robustness, largest = LOSSES["pairwise, gaussian"], LOSSES["difference, max"]
BOUNDED = [
    (robustness, 0.3),
    (sparsity, 0.5),
    (largest, 0.2),
    (LOSSES["difference, sum"], 0.4),
    (LOSSES["smoothness, chain"], 0.1),
    (LOSSES["kernel"], 0.05),
    (LOSSES["function"], 0.1),
]


@pytest.mark.parametrize(
    ("loss", "fraction"), BOUNDED, ids=lambda value: getattr(value, "name", value)
)
def test_multiplier_as_weight_reproduces_the_constrained_optimum(loss, fraction):
    bound = loss <= fraction * loss.value(G)
    best = po.solve(1.0 * gradient, subject_to=[bound])
    assert best.certificate.holds(1e-6)
    assert list(best.losses) == ["gradient_matching", loss.name]
    assert list(best.weights) == ["gradient_matching"]
    assert best.losses[loss.name] == pytest.approx(bound.limit, rel=1e-6)
    price = best.multipliers[loss.name]
    assert price > 0
    weighted = po.solve(gradient + price * loss)
    total = gradient.value(best.attributions) + price * loss.value(best.attributions)
    assert total == pytest.approx(weighted.objective, rel=1e-6)
    np.testing.assert_allclose(weighted.attributions, best.attributions, atol=2e-3)


def test_slack_bounds_cost_nothing_and_several_hold_together():
    free = po.solve(gradient + 0.5 * robustness)
    bound = sparsity <= 2 * sparsity.value(free.attributions)
    best = po.solve(gradient + 0.5 * robustness, subject_to=[bound])
    assert best.objective == pytest.approx(free.objective, rel=1e-6)
    assert best.multipliers["sparsity"] == pytest.approx(0, abs=1e-6)
    tight = sparsity <= 0.5 * sparsity.value(G)
    bounds = [robustness <= 0.3 * robustness.value(G), tight]
    best = po.solve(1.0 * gradient, subject_to=bounds)
    assert best.certificate.holds(1e-6)
    least = reference_optimum(1.0 * gradient, SHAPE, bounds)
    assert best.objective == pytest.approx(least, rel=1e-6)


CONFLICTS = {
    "local": ([LOSSES["function, local"]], []),
    "faithful and robust": ([gradient], [(robustness, 0.01)]),
    "faithful and sparse": ([gradient], [(sparsity, 0.2)]),
    "faithful and even": ([gradient], [(largest, 0.01)]),
}


@pytest.mark.parametrize(("first", "others"), CONFLICTS.values(), ids=CONFLICTS)
def test_infeasible_bound_names_the_smallest_attainable_value(first, others):
    rest = [loss <= fraction * loss.value(G) for loss, fraction in others]
    attainable = reference_optimum(1.0 * first[0], SHAPE, rest)
    bound = first[0] <= 0.5 * attainable
    objective = 1.0 * po.GradientMatching(-G, name="other")
    with pytest.raises(Infeasible) as raised:
        po.solve(objective, subject_to=[bound, *rest])
    named = ", ".join(map(repr, rest)) or "no other bound"
    sentence = f"{bound} cannot hold: under {named} the smallest attainable value of "
    sentence += f"{bound.loss.name} is "
    assert sentence in str(raised.value)
    number = str(raised.value).split(sentence)[1].split(";")[0]
    assert float(number) == pytest.approx(attainable, rel=1e-5)
