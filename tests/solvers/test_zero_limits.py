"""Limits of zero: linear constraints, whose answers are known or small programs."""

import cvxpy as cp
import numpy as np
import pytest

import propopt as po
from propopt.base.errors import Infeasible, Refused
from propopt.solvers.centred import Restricted
from propopt.solvers.curves import Spectral


RNG = np.random.default_rng(0)
N, D = 30, 3
X = RNG.normal(size=(N, 2))
X[N // 2 :] += 10.0
GRAPH = po.knn_graph(X, 4)  # two components, of 15 points each
LABELS = GRAPH.components.labels
FEATURES = po.group_graph([0, 0, 1])
G = RNG.normal(size=(N, D)) + 5.0
MATCHING = po.GradientMatching(G)
ROBUSTNESS = po.PairwiseRobustness(GRAPH)
SMOOTHNESS = po.Smoothness(FEATURES)
SPARSITY = po.Sparsity()
FAR = po.PairwiseRobustness(po.chain_graph(N), name="far")


def means(W):
    return np.stack([W[LABELS[n] == LABELS].mean(axis=0) for n in range(len(W))])


def means_over_features(W):
    M = W.copy()
    M[:, :2] = W[:, :2].mean(axis=1, keepdims=True)
    return M


def is_proven(best):
    return best.gap <= 1e-6 and best.certificate.violation == 0.0


ALONE = {
    "robustness": (1.0 * MATCHING, ROBUSTNESS, means(G)),
    "largest difference": (
        1.0 * MATCHING,
        po.MaxDifferenceRobustness(GRAPH),
        means(G),
    ),
    "largest differences": (
        1.0 * MATCHING,
        po.MaxDifferenceRobustness(GRAPH, aggregate="sum", norm="l1"),
        means(G),
    ),
    "smoothness": (1.0 * MATCHING, SMOOTHNESS, means_over_features(G)),
    "matching": (1.0 * ROBUSTNESS, MATCHING, G),
    "matching in l1": (1.0 * ROBUSTNESS, po.GradientMatching(G, norm="l1"), G),
    "sparsity": (MATCHING + ROBUSTNESS, SPARSITY, np.zeros((N, D))),
    "lattice": (
        1.0 * MATCHING,
        po.PairwiseRobustness(po.graphs.LatticeGraph((5, 6))),
        np.tile(G.mean(axis=0), (N, 1)),
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_limit_of_zero_has_its_trivial_answer_with_proof(name):
    objective, loss, wanted = ALONE[name]
    best = po.solve(objective, subject_to=[loss <= 0])
    np.testing.assert_allclose(best.attributions, wanted, rtol=1e-13, atol=0)
    assert best.gap <= 1e-13
    assert best.certificate.violation == 0.0
    assert best.multipliers == {loss.name: np.inf}


@pytest.mark.parametrize("offset", [1e4, 1e6])
def test_means_are_exact_beside_an_offset(offset):
    objective = po.GradientMatching(G + offset)
    best = po.solve(objective, subject_to=[ROBUSTNESS <= 0])
    rest = G - means(G)
    assert best.objective == pytest.approx(np.vdot(rest, rest), rel=1e-9)
    assert best.certificate.violation == 0.0


BESIDE = {
    "smoothness": MATCHING + 0.5 * SMOOTHNESS,
    "another graph": MATCHING + 0.5 * FAR,
    "sparsity": MATCHING + 2.0 * SPARSITY,
    "l1 and sparsity": po.GradientMatching(G, norm="l1") + 0.5 * SPARSITY,
    "largest differences": MATCHING
    + po.MaxDifferenceRobustness(po.chain_graph(N), name="steps"),
}


@pytest.mark.parametrize(
    "bounded", [ROBUSTNESS, SMOOTHNESS], ids=["points", "features"]
)
@pytest.mark.parametrize("name", BESIDE)
def test_other_losses_beside_a_limit_of_zero_agree_with_cvxpy(name, bounded):
    objective = BESIDE[name]
    if bounded.name in objective.weights:
        pytest.skip("one loss cannot be both")
    best = po.solve(objective, subject_to=[bounded <= 0])
    W = cp.Variable((N, D))
    residual = bounded.map(W)
    problem = cp.Problem(cp.Minimize(objective.expression(W)), [residual == 0])
    problem.solve(solver="CLARABEL")
    assert best.objective == pytest.approx(problem.value, rel=1e-6)
    assert is_proven(best)


def test_two_limits_of_zero_leave_what_is_constant_for_both():
    best = po.solve(1.0 * MATCHING, subject_to=[ROBUSTNESS <= 0, SMOOTHNESS <= 0])
    wanted = means_over_features(means(G))
    np.testing.assert_allclose(best.attributions, wanted, rtol=1e-13)
    assert best.gap <= 1e-13
    both = po.solve(1.0 * MATCHING, subject_to=[ROBUSTNESS <= 0, FAR <= 0])
    np.testing.assert_allclose(both.attributions, np.tile(G.mean(axis=0), (N, 1)))


@pytest.mark.parametrize("bound", [SMOOTHNESS <= 0.5, SPARSITY <= 200.0])
def test_another_bound_holds_beside_a_limit_of_zero(bound):
    best = po.solve(1.0 * MATCHING, subject_to=[ROBUSTNESS <= 0, bound])
    assert is_proven(best)
    assert best.losses[bound.loss.name] == pytest.approx(bound.limit, rel=1e-6)
    assert np.isfinite(best.multipliers[bound.loss.name])
    for own in np.unique(LABELS):
        assert (np.ptp(best.attributions[own == LABELS], axis=0) == 0.0).all()


def test_faithfulness_is_bounded_beside_a_limit_of_zero():
    rest = G - means(G)
    smallest = float(np.vdot(rest, rest))
    matching = po.GradientMatching(G)
    tight = matching <= smallest + 1.0
    best = po.solve(1.0 * SMOOTHNESS, subject_to=[ROBUSTNESS <= 0, tight])
    assert is_proven(best)
    assert best.losses["gradient_matching"] == pytest.approx(tight.limit, rel=1e-6)
    with pytest.raises(Infeasible, match=f"smallest attainable .* {smallest:.6g}"):
        po.solve(
            1.0 * SMOOTHNESS, subject_to=[ROBUSTNESS <= 0, matching <= 0.9 * smallest]
        )


def test_limits_of_zero_that_no_explanation_meets_are_infeasible():
    with pytest.raises(Infeasible, match="brings gradient_matching and sparsity"):
        po.solve(1.0 * ROBUSTNESS, subject_to=[MATCHING <= 0, SPARSITY <= 0])
    with pytest.raises(Infeasible, match="under gradient_matching <= 0 the smallest"):
        po.solve(1.0 * SMOOTHNESS, subject_to=[MATCHING <= 0, ROBUSTNESS <= 1e-3])


@pytest.mark.parametrize("solver", ["CLARABEL", "spectral", "krylov", "factored"])
def test_a_named_solver_is_given_what_the_limit_leaves(solver):
    far = po.PairwiseRobustness(po.chain_graph(D * 10), name="far")
    objective = MATCHING + 0.5 * far
    best = po.solve(objective, solver, subject_to=[SMOOTHNESS <= 0])
    assert best.solver == f"{solver}, restricted"
    assert is_proven(best)
    with pytest.raises(Refused, match="no limit is zero"):
        po.solve(objective, Restricted(Spectral()))


def test_kernels_are_bounded_by_zero_too():
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2.0) + 0.1 * np.eye(N)
    free = po.KernelRobustness(K)
    best = po.solve(1.0 * MATCHING, subject_to=[free <= 0])
    np.testing.assert_allclose(best.attributions, np.tile(G.mean(axis=0), (N, 1)))
    assert is_proven(best)
    tied = po.KernelRobustness(K, mean="none")
    best = po.solve(1.0 * MATCHING, subject_to=[tied <= 0])
    assert (best.attributions == 0.0).all()


def test_certify_knows_what_limits_of_zero_leave():
    bounds = [ROBUSTNESS <= 0]
    proof = po.certify(1.0 * MATCHING, means(G), bounds=bounds)
    rest = G - means(G)
    assert proof.lower_bound == pytest.approx(np.vdot(rest, rest), rel=1e-12)
    worse = po.certify(1.0 * MATCHING, means(G) + 0.1, bounds=bounds)
    assert worse.lower_bound <= np.vdot(rest, rest) * (1 + 1e-12)
    assert worse.gap > 1e-3
    outside = po.certify(1.0 * MATCHING, G, bounds=bounds)
    assert outside.violation > 1.0


def test_a_sweep_of_limits_begins_at_zero():
    limits = [0.0, 1.0, 10.0]
    curve = po.sweep(1.0 * MATCHING, limits={ROBUSTNESS: limits}, baselines=[mine()])
    result = curve.to_frame()["loss.pairwise_robustness"][:3]
    np.testing.assert_allclose(result, limits, rtol=1e-6)
    assert [point.solver for point in curve.optimized] == [
        "spectral, restricted",
        "one_bound",
        "one_bound",
    ]
    assert np.isfinite(curve.distances()["excess"][0])
    assert (np.diff(curve.to_frame()["objective"][:3]) < 0).all()


def mine():
    return po.Explanation(attributions=np.ones((N, D)), method="mine")


def test_totals_that_a_limit_of_zero_meets_by_itself_are_left_to_it():
    apart = po.Completeness(np.zeros(N), weights=[1.0, -1.0, 0.0])
    best = po.solve(MATCHING + ROBUSTNESS, subject_to=[SMOOTHNESS <= 0.0, apart])
    alone = po.solve(MATCHING + ROBUSTNESS, subject_to=[SMOOTHNESS <= 0.0])
    np.testing.assert_array_equal(best.attributions, alone.attributions)
    assert is_proven(best)
    assert set(best.multipliers) == {"smoothness", "completeness"}
