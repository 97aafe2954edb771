"""Bounds: multipliers as weights, limits that cannot hold or of zero."""

import cvxpy as cp
import numpy as np
import pytest
from catalogue import LOSSES, SHAPE, G
from oracles import reference_optimum

import propopt as po
from propopt.base.errors import Infeasible


gradient, sparsity = LOSSES["gradient l2"], LOSSES["sparsity"]
robustness, largest = LOSSES["pairwise, gaussian"], LOSSES["difference, max l2"]
BOUNDED = [
    (robustness, 0.3),
    (sparsity, 0.5),
    (largest, 0.2),
    (LOSSES["difference, sum linf"], 0.4),
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


def test_attainable_bound_is_feasible():
    rest = [robustness <= 0.01 * robustness.value(G)]
    attainable = reference_optimum(1.0 * gradient, SHAPE, rest)
    best = po.solve(1.0 * sparsity, subject_to=[gradient <= 1.001 * attainable, *rest])
    assert best.certificate.violation <= 1e-6


# ---- limits of zero: linear constraints, whose answers are known or small programs


RNG = np.random.default_rng(0)
N, D = 30, 3
X = RNG.normal(size=(N, 2))
X[N // 2 :] += 10.0
GRAPH = po.graphs.knn_graph(X, 4)  # two components, of 15 points each
LABELS = GRAPH.components.labels
FEATURES = po.graphs.group_graph([0, 0, 1])
T = RNG.normal(size=(N, D)) + 5.0
MATCHING = po.GradientMatching(T)
ROBUSTNESS = po.PairwiseRobustness(GRAPH)
SMOOTHNESS = po.Smoothness(FEATURES)
FAR = po.PairwiseRobustness(po.graphs.chain_graph(N), name="far")
LATTICE = po.PairwiseRobustness(po.graphs.LatticeGraph((5, 6)))
KERNEL = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2.0) + 0.1 * np.eye(N)


def means(W):
    return np.stack([W[LABELS[n] == LABELS].mean(axis=0) for n in range(len(W))])


def means_over_features(W):
    M = W.copy()
    M[:, :2] = W[:, :2].mean(axis=1, keepdims=True)
    return M


def is_proven(best):
    return best.gap <= 1e-6 and best.certificate.violation == 0.0


REST = T - means(T)
LEAST = float(np.vdot(REST, REST))
MEAN = np.tile(T.mean(axis=0), (N, 1))
EDGES = po.losses.MaxDifferenceRobustness(GRAPH)
SUMS = po.losses.MaxDifferenceRobustness(GRAPH, aggregate="sum", norm="l1")
ALONE = {
    "robustness": (1.0 * MATCHING, [ROBUSTNESS], means(T)),
    "largest difference": (1.0 * MATCHING, [EDGES], means(T)),
    "largest differences": (1.0 * MATCHING, [SUMS], means(T)),
    "smoothness": (1.0 * MATCHING, [SMOOTHNESS], means_over_features(T)),
    "matching": (1.0 * ROBUSTNESS, [MATCHING], T),
    "matching in l1": (1.0 * ROBUSTNESS, [po.GradientMatching(T, norm="l1")], T),
    "sparsity": (MATCHING + ROBUSTNESS, [sparsity], np.zeros((N, D))),
    "lattice": (1.0 * MATCHING, [LATTICE], MEAN),
    "kernel": (1.0 * MATCHING, [po.losses.KernelRobustness(KERNEL)], MEAN),
    "kernel, no mean": (
        1.0 * MATCHING,
        [po.losses.KernelRobustness(KERNEL, mean="none")],
        np.zeros((N, D)),
    ),
    "two": (1.0 * MATCHING, [ROBUSTNESS, SMOOTHNESS], means_over_features(means(T))),
    "two graphs": (1.0 * MATCHING, [ROBUSTNESS, FAR], MEAN),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_limit_of_zero_has_its_trivial_answer_with_proof(name):
    objective, losses, wanted = ALONE[name]
    best = po.solve(objective, subject_to=[loss <= 0 for loss in losses])
    np.testing.assert_allclose(best.attributions, wanted, rtol=1e-13, atol=0)
    assert best.gap <= 1e-13
    assert best.certificate.violation == 0.0
    assert best.multipliers == {loss.name: np.inf for loss in losses}


STEPS = po.losses.MaxDifferenceRobustness(po.graphs.chain_graph(N), name="steps")
COMBINED = {
    "smoothness": MATCHING + 0.5 * SMOOTHNESS,
    "another graph": MATCHING + 0.5 * FAR,
    "sparsity": MATCHING + 2.0 * sparsity,
    "l1 and sparsity": po.GradientMatching(T, norm="l1") + 0.5 * sparsity,
    "largest differences": MATCHING + STEPS,
}


@pytest.mark.parametrize("bounded", [ROBUSTNESS, SMOOTHNESS], ids=["points", "feats"])
@pytest.mark.parametrize("name", COMBINED)
def test_other_losses_with_a_limit_of_zero_agree_with_cvxpy(name, bounded):
    objective = COMBINED[name]
    if bounded.name in objective.weights:
        return  # one loss cannot be both
    best = po.solve(objective, subject_to=[bounded <= 0])
    W = cp.Variable((N, D))
    problem = cp.Problem(cp.Minimize(objective.expression(W)), [bounded.map(W) == 0])
    problem.solve(solver="CLARABEL")
    assert best.objective == pytest.approx(problem.value, rel=1e-6)
    assert is_proven(best)


@pytest.mark.parametrize("bound", [SMOOTHNESS <= 0.5, sparsity <= 200.0])
def test_another_bound_holds_with_a_limit_of_zero(bound):
    best = po.solve(1.0 * MATCHING, subject_to=[ROBUSTNESS <= 0, bound])
    assert is_proven(best)
    assert best.losses[bound.loss.name] == pytest.approx(bound.limit, rel=1e-6)
    assert np.isfinite(best.multipliers[bound.loss.name])
    for ours in np.unique(LABELS):
        assert (np.ptp(best.attributions[ours == LABELS], axis=0) == 0.0).all()


def test_faithfulness_is_bounded_with_a_limit_of_zero():
    tight = MATCHING <= LEAST + 1.0
    best = po.solve(1.0 * SMOOTHNESS, subject_to=[ROBUSTNESS <= 0, tight])
    assert is_proven(best)
    assert best.losses["gradient_matching"] == pytest.approx(tight.limit, rel=1e-6)


INFEASIBLE = {
    f"smallest attainable .* {LEAST:.6g}": (
        SMOOTHNESS,
        [ROBUSTNESS <= 0, MATCHING <= 0.9 * LEAST],
    ),
    "brings gradient_matching and sparsity": (
        ROBUSTNESS,
        [MATCHING <= 0, sparsity <= 0],
    ),
    "under gradient_matching <= 0 the smallest": (
        SMOOTHNESS,
        [MATCHING <= 0, ROBUSTNESS <= 1e-3],
    ),
}


@pytest.mark.parametrize("message", INFEASIBLE)
def test_limits_of_zero_that_no_explanation_meets_are_infeasible(message):
    loss, bounds = INFEASIBLE[message]
    with pytest.raises(Infeasible, match=message):
        po.solve(1.0 * loss, subject_to=bounds)


@pytest.mark.parametrize("solver", ["CLARABEL", "spectral", "krylov", "factored"])
def test_a_named_solver_is_given_what_the_limit_leaves(solver):
    best = po.solve(MATCHING + 0.5 * FAR, solver, subject_to=[SMOOTHNESS <= 0])
    assert best.solver == f"{solver}, restricted"
    assert is_proven(best)


def test_certify_knows_what_limits_of_zero_leave():
    bounds = [ROBUSTNESS <= 0]
    proof = po.proofs.certify(1.0 * MATCHING, means(T), bounds=bounds)
    assert proof.lower_bound == pytest.approx(LEAST, rel=1e-12)
    worse = po.proofs.certify(1.0 * MATCHING, means(T) + 0.1, bounds=bounds)
    assert worse.lower_bound <= LEAST * (1 + 1e-12)
    assert worse.gap > 1e-3
    assert po.proofs.certify(1.0 * MATCHING, T, bounds=bounds).violation > 1.0


def test_a_sweep_of_limits_begins_at_zero():
    limits, mine = [0.0, 1.0, 10.0], np.ones((N, D))
    curve = po.sweep(1.0 * MATCHING, limits={ROBUSTNESS: limits}, baselines=[mine])
    result = curve.to_frame()["loss.pairwise_robustness"][:3]
    np.testing.assert_allclose(result, limits, rtol=1e-6)
    solvers = [point.solver for point in curve.optimized]
    assert solvers == ["spectral, restricted", "one_bound", "one_bound"]
    assert np.isfinite(curve.distances()["excess"][0])
    assert (np.diff(curve.to_frame()["objective"][:3]) < 0).all()


def test_totals_that_a_limit_of_zero_meets_by_itself_are_left_to_it():
    apart = po.losses.Completeness(np.zeros(N), weights=[1.0, -1.0, 0.0])
    best = po.solve(MATCHING + ROBUSTNESS, subject_to=[SMOOTHNESS <= 0.0, apart])
    alone = po.solve(MATCHING + ROBUSTNESS, subject_to=[SMOOTHNESS <= 0.0])
    np.testing.assert_array_equal(best.attributions, alone.attributions)
    assert is_proven(best)
    assert set(best.multipliers) == {"smoothness", "completeness"}
