"""Aims against Clarabel under the same limits, grids of weights, and what they mean."""

import cvxpy as cp
import numpy as np
import pytest
from catalogue import LOSSES, SHAPE, G
from oracles import reference_optimum, solve_tightly

import propopt as po


MATCHING = LOSSES["gradient l2"]
ROBUST, SMOOTH = LOSSES["pairwise, gaussian"], LOSSES["smoothness, chain"]
SPARSE, LARGEST = LOSSES["sparsity"], LOSSES["difference, max"]
COMBINED = po.PairwiseRobustness(ROBUST.graph, offset=np.sin(G), name="offset")
MEAN = np.broadcast_to(G.mean(axis=0), SHAPE)  # costs robustness nothing
TOTALS = [po.losses.Completeness(G.sum(axis=1) + 1.0)]


def optimum(objective, *bounds):
    return reference_optimum(po.losses.Objective.of(objective), SHAPE, bounds)


def close(value):
    return pytest.approx(value, rel=2e-6)


SHARES = {
    "one root": (MATCHING + ROBUST, {ROBUST: 0.6}),
    "a tenth": (MATCHING + 0.3 * SMOOTH, {ROBUST: 0.1}),
    "sizes": (MATCHING + 0.2 * ROBUST, {SPARSE: 0.75}),
    "two": (1.0 * MATCHING, {ROBUST: 0.4, SPARSE: 0.2}),
    "three": (1.0 * MATCHING, {ROBUST: 0.4, SMOOTH: 0.3, SPARSE: 0.2}),
    "nearly all": (1.0 * MATCHING, {ROBUST: 0.999}),
    "offset": (MATCHING + COMBINED, {COMBINED: 0.5}),
}


@pytest.mark.parametrize(("objective", "shares"), SHARES.values(), ids=SHARES)
def test_shares_are_limits_between_the_ends(objective, shares):
    requested = {loss: f"-{100 * share:g}%" for loss, share in shares.items()}
    best = po.solve(objective, aim=requested)
    limits = {loss: (1 - share) * loss.value(G) for loss, share in shares.items()}
    rest = sum(c * loss for c, loss in objective.terms if loss not in shares)
    assert best.certificate.holds(1e-6)
    least = optimum(rest, *(loss <= limit for loss, limit in limits.items()))
    assert best.objective == pytest.approx(least, rel=2e-6)
    for loss, limit in limits.items():
        assert loss.value(best.attributions) <= limit * (1 + 1e-6) + 1e-12
    assert best.parameters["aim"].startswith(f"{next(iter(shares)).name} ")


def test_ends_of_faithfulness_and_of_largest_differences():
    far = MATCHING.value(MEAN)
    best = po.solve(MATCHING + ROBUST, aim={"gradient_matching": "-80%"})
    assert best.losses["gradient_matching"] == close(0.2 * far)
    assert best.objective == close(optimum(1.0 * ROBUST, 0.2 * far >= MATCHING))
    assert best.shares().faithfulness_kept == {
        "gradient_matching": pytest.approx(0.8, abs=1e-6)
    }
    best = po.solve(MATCHING + LARGEST, aim={LARGEST.name: "-50%"})
    assert best.losses[LARGEST.name] == close(0.25 * LARGEST.value(G))
    assert best.shares().removed[LARGEST.name] == pytest.approx(0.5, abs=1e-6)


def test_where_rows_add_up_the_removable_part_is_shared():
    complete = G + (1.0 / SHAPE[1])
    W = cp.Variable(SHAPE)
    sums = [cp.sum(W, axis=1) == G.sum(axis=1) + 1.0]
    least = cp.Problem(cp.Minimize(ROBUST.expression(W)), sums)
    solve_tightly(least)
    best = po.solve(MATCHING + ROBUST, aim={ROBUST.name: "-50%"}, subject_to=TOTALS)
    half = (ROBUST.value(complete) + least.value) / 2
    assert best.losses[ROBUST.name] == close(half)
    limits = [*sums, ROBUST.expression(W) <= half]
    program = cp.Problem(cp.Minimize(MATCHING.expression(W)), limits)
    solve_tightly(program)
    assert best.objective == close(program.value)


ORDERS = {
    "two": (MATCHING + ROBUST, [ROBUST, MATCHING], 0.05),
    "three": (MATCHING + ROBUST + SMOOTH, [MATCHING, SMOOTH, ROBUST], 0.1),
    "robust first": (MATCHING + ROBUST + SMOOTH, [ROBUST, SMOOTH], 0.01),
    "with sizes": (MATCHING + 0.5 * ROBUST + SPARSE, [MATCHING, SPARSE], 0.2),
}


@pytest.mark.parametrize(("objective", "order", "within"), ORDERS.values(), ids=ORDERS)
def test_order_is_a_chain_of_programs(objective, order, within):
    rest = [(c, loss) for c, loss in objective.terms if loss not in order]
    *first, last = order
    if rest:
        first = order
    else:
        rest = [(1.0, last)]
    limits = []
    far = MEAN if SPARSE not in objective.losses else np.zeros(SHAPE)
    if SMOOTH in objective.losses:
        far = np.full(SHAPE, G.mean())
    for loss in first:
        end = far if loss is MATCHING else G
        least = optimum(loss, *limits)
        limits.append(loss <= max(least, 0.0) + within * loss.value(end))
    names = [loss.name for loss in order]
    best = po.solve(objective, aim=po.solvers.Aim.order(names, within=within))
    assert best.certificate.holds(1e-6)
    value = optimum(sum(c * loss for c, loss in rest), *limits)
    assert best.objective == pytest.approx(value, rel=1e-5)
    reported = [best.parameters[f"limit.{bound.loss.name}"] for bound in limits]
    assert reported == pytest.approx([b.limit for b in limits], rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    "objective", [MATCHING + ROBUST, MATCHING + 0.3 * ROBUST + 0.1 * SMOOTH]
)
def test_the_knee_is_farthest_from_the_chord_of_a_dense_grid(objective):
    best = po.solve(objective, aim="knee")
    (_, first), *others = objective.terms
    far = MEAN if len(others) == 1 else np.full(SHAPE, G.mean())
    A, B = first.value(far), sum(c * loss.value(G) for c, loss in others)
    names = [loss.name for _, loss in others]

    def distance(losses):
        rest = sum(c * losses[loss.name] for c, loss in others)
        return (1 - losses[first.name] / A - rest / B) / np.sqrt(2)

    reported, most = (
        best.parameters[k] for k in ("distance from the chord", "at most")
    )
    assert reported == pytest.approx(distance(best.losses), rel=1e-9)
    assert reported <= most <= reported + 1e-9
    grid = [
        distance(po.solve(objective.with_weights({first.name: rate})).losses)
        for rate in np.geomspace(0.05, 100.0, 200)
    ]
    assert max(grid) <= most + 1e-12
    assert max(grid) == pytest.approx(reported, abs=2e-4)
    rates = [best.weights[name] / c for name, (c, _) in zip(names, others, strict=True)]
    assert rates == pytest.approx([best.weights[first.name] * A / B] * len(rates))
