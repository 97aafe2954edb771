"""Rows of given sums, and single entries: every way to solve them, with its proof."""

import pickle

import cvxpy as cp
import golden_chains
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from catalogue import POINT_GRAPHS, SHAPE
from catalogue import G as T
from hypothesis import given, settings

import propopt as po
from propopt.base.errors import Infeasible, InvalidInput
from propopt.explaining.targets import Targets, nearest_explanation
from propopt.losses.algebra import PropertyLoss
from propopt.losses.completeness import Totals
from propopt.losses.faithfulness import Estimate
from propopt.losses.maps import OverFeatures, Squared


N, D = 16, 5


class FeatureKernel(PropertyLoss):
    """tr(W CᵀC Wᵀ) for a C that sees constants."""

    penalty, name = Squared(), "feature_kernel"

    def __init__(self, C):
        self.map = OverFeatures(C)


@pytest.mark.parametrize("seed", range(3))
def test_the_least_of_a_loss_among_complete_ones_is_that_of_clarabel(seed):
    rng = np.random.default_rng(seed)
    total, C = rng.normal(size=4), rng.normal(size=(D + 2, D))
    ours = Totals.of(po.losses.Program((), (po.losses.Completeness(total).bound(D),)))
    W = cp.Variable((4, D))
    value = cp.Problem(
        cp.Minimize(cp.sum_squares(W @ C.T)), [cp.sum(W, axis=1) == total]
    )
    value.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10)
    assert ours.least(FeatureKernel(C)) == pytest.approx(value.value, rel=1e-6)


def instance(seed):
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(N, D))
    return rng, rng.normal(size=(N, 2)), G, G.sum(axis=1) + 0.3 * rng.normal(size=N)


def smooth(seed):
    """Feature terms of five instances: a kernel, graphs, and one in two parts."""
    rng, _, _, _ = instance(seed)
    return {
        0: FeatureKernel(rng.normal(size=(D, D))),
        1: po.Smoothness(po.graphs.chain_graph(D)),
        2: po.Smoothness(po.graphs.group_graph([0, 0, 1, 1, 1])),
        3: FeatureKernel(rng.normal(size=(2, D))),
        4: po.Smoothness(po.graphs.complete_graph(D)),
    }[seed]


def robust(seed):
    _, X, _, _ = instance(seed)
    if seed % 2:
        return po.PairwiseRobustness(po.graphs.knn_graph(X, 3))
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return po.losses.KernelRobustness(np.exp(-squares / 2) + 1e-2 * np.eye(N))


def reference(objective, total, weights=None, accuracy=1e-13):
    """W, the optimum and the multipliers, by Clarabel with the equality as it is."""
    W = cp.Variable((N, D))
    v = np.ones(D) if weights is None else weights
    equality = W @ v == total
    problem = cp.Problem(cp.Minimize(objective.expression(W)), [equality])
    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    problem.solve(solver="CLARABEL", **dict.fromkeys(names, accuracy))
    return W.value, problem.value, equality.dual_value


_, _, G, TOTAL = instance(1)
COMPLETE = [po.losses.Completeness(TOTAL)]
MATCHING = po.GradientMatching(G)


# ---- a small instance that is known to twelve digits

T4 = np.array([1.0, 0.5, -0.25, 0.0])
W4 = [
    [0.687922966640, 0.178741755454, 0.133335277906],
    [0.380436538873, 0.375596144089, -0.256032682962],
    [-0.210859819296, 0.344774226281, -0.383914406985],
    [-0.374166352883, 0.217554540842, 0.156611812041],
]


@pytest.mark.parametrize("solver", ["auto", "spectral", "factored", "krylov"])
def test_a_golden_instance(solver):
    settings = {"subject_to": [po.losses.Completeness(T4)], "tolerance": 1e-13}
    best = po.solve(golden_chains.objective(), solver, **settings)
    np.testing.assert_allclose(best.attributions, W4, atol=1e-9)
    assert best.objective == pytest.approx(6.501799480975892, abs=1e-9)
    prices = best.details["completeness.multiplier"]
    np.testing.assert_allclose(prices, [-1 / 2, -1 / 3, 11 / 6, -1 / 3], atol=1e-9)
    left = best.details["irreducible.pairwise_robustness"]
    assert left == pytest.approx(0.583333333333, abs=1e-9)
    assert best.details["irreducible.smoothness"] == 0.0
    assert best.solver.endswith("complete")


@pytest.mark.parametrize("weighted", [False, True], ids=["sum", "weighted sum"])
@pytest.mark.parametrize("seed", range(5))
def test_closed_forms_agree_with_clarabel(seed, weighted):
    rng, _, G, t = instance(seed)
    v = rng.uniform(0.2, 2.0, D) if weighted else None
    objective = 1.3 * po.GradientMatching(G) + 0.4 * robust(seed) + 0.7 * smooth(seed)
    best = po.solve(
        objective, subject_to=[po.losses.Completeness(t, v)], tolerance=1e-10
    )
    W, optimum, y = reference(objective, t, v)
    np.testing.assert_allclose(best.attributions, W, atol=1e-8)
    assert best.objective == pytest.approx(optimum, rel=1e-10)
    np.testing.assert_allclose(best.details["completeness.multiplier"], y, atol=1e-7)
    sees_totals = weighted or seed in (0, 3)  # C u is not zero
    assert best.solver == ("splitting" if sees_totals else "spectral, complete")
    assert best.gap <= 1e-12
    assert best.certificate.violation <= 1e-14


LARGEST = po.losses.MaxDifferenceRobustness(
    po.graphs.knn_graph(instance(1)[1], 3), name="largest"
)
SUMS = po.losses.MaxDifferenceRobustness(LARGEST.graph, "sum", name="largest")
KINKED = {
    "sparsity": [po.Sparsity()],
    "largest difference": [LARGEST],
    "largest differences": [SUMS],
    "both": [po.Sparsity(), LARGEST],
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("coupled", [False, True], ids=["", "smooth"])
@pytest.mark.parametrize("kind", KINKED)
@pytest.mark.parametrize("weighted", [False, True], ids=["sum", "weighted sum"])
def test_kinked_losses_agree_with_clarabel(kind, coupled, weighted, monkeypatch):
    # nothing else is asked where the steps run out
    monkeypatch.setattr("propopt.solvers.splitting.CLARABEL_ROWS", 0)
    rng, _, G, t = instance(1)
    v = rng.uniform(0.2, 2.0, D) if weighted else None
    objective = po.GradientMatching(G) + 0.3 * robust(1)
    objective += 0.2 * coupled * smooth(0)
    objective += sum(0.4 * loss for loss in KINKED[kind])
    best = po.solve(
        objective, subject_to=[po.losses.Completeness(t, v)], tolerance=1e-6
    )
    _, optimum, _ = reference(objective, t, v, accuracy=1e-8)
    assert best.solver == "splitting"
    assert best.gap <= 1e-6
    assert best.objective == pytest.approx(optimum, rel=2e-6)
    assert np.abs(po.losses.Completeness(t, v).gaps(best)).max() <= 1e-10


def test_sparse_complete_attributions_have_exact_zeros():
    objective = MATCHING + 0.3 * robust(1) + 0.8 * po.Sparsity()
    best = po.solve(objective, subject_to=COMPLETE)
    assert (best.attributions == 0.0).sum() >= 10
    assert np.abs(best.attributions.sum(axis=1) - TOTAL).max() <= 1e-12


@pytest.mark.parametrize(
    "matching",
    [po.GradientMatching(G, norm="l1"), po.losses.FunctionMatching(G, TOTAL)],
    ids=["l1", "function"],
)
def test_other_losses_are_given_to_a_backend_with_the_equality(matching):
    objective = matching + 0.3 * robust(1)
    best = po.solve(objective, subject_to=COMPLETE)
    _, optimum, y = reference(objective, TOTAL, accuracy=1e-10)
    assert best.solver == "conic"
    assert best.gap <= 1e-6
    assert best.objective == pytest.approx(optimum, rel=1e-6)
    np.testing.assert_allclose(best.details["completeness.multiplier"], y, atol=1e-4)
    assert best.certificate.violation <= 1e-14


def test_a_further_bound_has_a_root_on_the_curve():
    loss = robust(1)
    key = "irreducible.pairwise_robustness"
    least = po.solve(MATCHING + loss, subject_to=COMPLETE).details[key]
    best = po.solve(MATCHING, subject_to=[*COMPLETE, loss <= 1.5 * least])
    assert best.solver == "one_bound, complete"
    assert best.gap <= 1e-6
    assert best.losses["pairwise_robustness"] == pytest.approx(1.5 * least, rel=1e-6)
    price = best.multipliers["pairwise_robustness"]
    same = po.solve(MATCHING + price * loss, subject_to=COMPLETE)
    np.testing.assert_allclose(best.attributions, same.attributions, atol=1e-9)
    with pytest.raises(Infeasible, match="the smallest attainable value of pairwise"):
        po.solve(MATCHING, subject_to=[*COMPLETE, loss <= 1e-3])
    limits = {"pairwise_robustness": [150.0, 200.0]}
    curve = po.sweep(MATCHING + loss, limits=limits, subject_to=COMPLETE)
    result = [point.losses["pairwise_robustness"] for point in curve.optimized]
    np.testing.assert_allclose(result, [150.0, 200.0], rtol=1e-6)


@pytest.mark.parametrize("feature_term", [1, 0], ids=["graph", "kernel"])
def test_sweeps_equal_single_solves(feature_term):
    loss = robust(1)
    objective = MATCHING + loss + 0.3 * smooth(feature_term)
    weights = {loss.name: np.geomspace(1e-2, 1e2, 5)}
    for point in po.sweep(objective, weights, subject_to=COMPLETE).optimized:
        assert feature_term == 0 or point.certificate.kind == "curve"
        assert f"irreducible.{loss.name}" in point.details
        claimed = point.objective
        single = po.solve(objective.with_weights(point.weights), subject_to=COMPLETE)
        assert claimed == pytest.approx(single.objective, rel=1e-10)
        np.testing.assert_allclose(point.attributions, single.attributions, atol=1e-10)
        assert point.gap <= 1e-10
        assert any("multiplier" in key for key in single.details)
        for key, value in single.details.items():
            np.testing.assert_allclose(point.details[key], value, atol=1e-9)


NUMBERS = st.floats(-10, 10).map(lambda x: round(x, 9))
"""No numbers whose squares are no longer any."""


@settings(max_examples=40, deadline=None)
@given(
    hnp.arrays(float, (6, 4), elements=NUMBERS),
    hnp.arrays(float, 6, elements=NUMBERS),
    st.floats(1e-3, 1e3),
)
def test_rows_add_up_and_nothing_complete_is_better(G, total, weight):
    robustness = po.PairwiseRobustness(po.graphs.chain_graph(6))
    objective = po.GradientMatching(G) + weight * robustness
    constraint = po.losses.Completeness(total)
    best = po.solve(objective, subject_to=[constraint])
    scale = 1.0 + np.abs(G).max() + np.abs(total).max()
    assert np.abs(constraint.gaps(best)).max() <= 1e-13 * scale
    free = po.solve(objective)
    # columns that are used share what the totals miss of the unconstrained optimum
    used = G.any(axis=0) if G.any() else np.ones(4, dtype=bool)
    missed = total - free.attributions.sum(axis=1)
    np.testing.assert_allclose(
        best.attributions,
        free.attributions + missed[:, None] * used / used.sum(),
        atol=1e-9 * scale,
    )
    step = np.random.default_rng(0).normal(size=(6, 4)) * used
    step -= used * step.sum(axis=1, keepdims=True) / used.sum()
    other = objective.value(best.attributions + 1e-3 * step)
    assert other >= best.objective * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_complete_explanation_that_is_not_optimal_is_bounded_by_its_slope(seed):
    rng, _, G, t = instance(seed)
    objective = po.GradientMatching(G) + 0.4 * robust(seed) + 0.7 * smooth(seed)
    best = po.solve(objective, subject_to=[po.losses.Completeness(t)])
    step = rng.normal(size=(N, D))
    W = best.attributions + 0.1 * (step - step.mean(axis=1, keepdims=True))
    proof = po.proofs.certify(objective, W, bounds=[po.losses.Completeness(t)])
    assert proof.lower_bound <= best.objective * (1 + 1e-12)
    slope = sum(c * loss.gradient_at(W) for c, loss in objective.terms)
    slope -= slope.mean(axis=1, keepdims=True)
    wanted = objective.value(W) - np.vdot(slope, slope) / 4.0
    assert proof.lower_bound == pytest.approx(max(wanted, 0.0), rel=1e-9)
    assert np.linalg.norm(W - best.attributions) <= proof.distance
    off = best.attributions.copy()
    off[2, 1] += 1e-3  # rows that do not add up
    proof = po.proofs.certify(objective, off, bounds=[po.losses.Completeness(t)])
    size = np.abs(off).sum(axis=1).max()
    assert proof.violation == pytest.approx(1e-3 / size, rel=1e-6)
    assert not proof.holds(1e-6)


def named(total, index):
    return po.losses.Completeness(pd.Series(total, index=list(index)))


def test_names_of_other_tables_are_refused():
    table = pd.DataFrame(golden_chains.G, columns=list("abc"), index=list("wxyz"))
    objective = po.GradientMatching(table) + 0.5 * po.Sparsity()
    best = po.solve(objective, subject_to=[named(T4, "wxyz")])
    assert best.labels.features == ("a", "b", "c")
    with pytest.raises(InvalidInput, match="its points have other names"):
        po.solve(objective, subject_to=[named(T4, "xwyz")])
    W = pd.DataFrame([[1.0, 1.0], [1.0, 2.0]], index=["y", "x"], columns=["a", "b"])
    np.testing.assert_array_equal(named([3.0, 0.0], "xy").gaps(W), [0.0, 2.0])
    same = pickle.loads(pickle.dumps(po.losses.Completeness(T4)))
    np.testing.assert_array_equal(same.total, T4)


ROBUST4 = 1.0 * po.PairwiseRobustness(po.graphs.chain_graph(4))
PRESENT = np.random.default_rng(3).random(SHAPE) < 0.6
TOTALS = np.where(PRESENT, T, 0.0).sum(axis=1) + np.linspace(-1.0, 1.0, SHAPE[0])


# ---- columns that nothing uses


def unused(seed=0):
    """Φ whose second column is zero, totals that it misses, and a graph."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(N, D))
    phi[:, 1] = 0.0
    return phi, phi.sum(axis=1) + 0.3, po.graphs.knn_graph(rng.normal(size=(N, 2)), 4)


ROBUST = {
    "pairwise": po.PairwiseRobustness,
    "max": po.losses.MaxDifferenceRobustness,
    "sparse": lambda graph: 0.1 * po.Sparsity() + po.PairwiseRobustness(graph),
}


@pytest.mark.parametrize("robust", ROBUST.values(), ids=ROBUST)
def test_a_column_that_the_target_never_uses_stays_zero(robust):
    phi, total, graph = unused()
    objective = po.GradientMatching(phi) + robust(graph)
    constraint = po.losses.Completeness(total)
    name = objective.losses[-1].name
    curve = po.sweep(objective, {name: [0.1, 2.0]}, subject_to=[constraint])
    for best in (po.solve(objective, subject_to=[constraint]), *curve.optimized):
        assert (best.attributions[:, 1] == 0.0).all()
        assert (best.attributions[:, [0, 2, 3, 4]] != 0.0).any(axis=0).all()
        np.testing.assert_allclose(best.attributions.sum(axis=1), total, atol=1e-12)
        assert best.gap <= 1e-6


def test_explain_has_the_same_rule_and_smoothness_ties_all_columns():
    phi, total, graph = unused()
    robust = po.PairwiseRobustness(graph)
    objective = po.GradientMatching(phi) + 0.5 * robust
    constraint = po.losses.Completeness(total)
    best = po.solve(objective, subject_to=[constraint])
    estimate = Estimate(values=phi, source="given", units="output")
    exact = Targets(estimate=estimate, base=np.zeros(N), prediction=total)
    explained = nearest_explanation(exact, robust, robustness=0.5)
    np.testing.assert_allclose(explained.attributions, best.attributions, atol=1e-12)
    smooth = po.Smoothness(
        po.graphs.chain_graph(D)
    )  # ties all columns, which then add up
    best = po.solve(objective + smooth, subject_to=[constraint])
    assert (best.attributions[:, 1] != 0.0).all()
    np.testing.assert_allclose(best.attributions.sum(axis=1), total, atol=1e-12)


def test_a_target_of_nothing_is_the_least_that_adds_up():
    nothing = po.GradientMatching(np.zeros((4, 3))) + 0.0 * ROBUST4
    least = np.tile(T4[:, None] / 3, 3)
    best = po.solve(nothing, subject_to=[po.losses.Completeness(T4)])
    np.testing.assert_allclose(best.attributions, least)
    best = po.solve(ROBUST4, subject_to=[po.losses.Completeness(T4, np.ones(3))])
    np.testing.assert_allclose(best.attributions, least)
    assert best.gap <= 1e-9


# ---- programs of entries: solvers of points are given single entries of W


TARGETS = np.where(PRESENT, T, 0.0)
SHARED = po.losses.SharedRobustness(POINT_GRAPHS["knn"], PRESENT)
ENTRIES, SPARSITY = po.GradientMatching(TARGETS), po.Sparsity()
OVER_PRESENT = [po.losses.Completeness(TOTALS, PRESENT.astype(float))]


def test_curves_agree_with_clarabel():
    weights = {SHARED.name: np.logspace(-3, 3, 7)}
    for best in po.sweep(ENTRIES + SHARED, weights, progress=False).explanations:
        same = ENTRIES + best.weights[SHARED.name] * SHARED
        alone = po.solve(same, "CLARABEL", tolerance=1e-8)
        assert best.objective == pytest.approx(alone.objective, rel=1e-6)
        assert best.certificate.holds(1e-6)
    assert po.solve(ENTRIES + SHARED).solver == "spectral, of entries"
    assert po.solve(ENTRIES + SHARED + SPARSITY).solver == "lasso, of entries"


@pytest.mark.parametrize("limit", [0.5, 2.0])
def test_a_bound_on_shared_robustness_holds_and_is_certified(limit):
    best = po.solve(1.0 * ENTRIES, subject_to=[limit >= SHARED])
    assert best.certificate.holds(1e-5)
    assert best.losses[SHARED.name] == pytest.approx(limit, rel=1e-5)
    again = po.solve(1.0 * ENTRIES, "CLARABEL", subject_to=[limit >= SHARED])
    assert best.objective == pytest.approx(again.objective, rel=1e-5)


def test_targets_of_entries_that_are_not_coupled_stay_as_they_are():
    best = po.solve(po.GradientMatching(T) + 5.0 * SHARED, tolerance=1e-10)
    np.testing.assert_array_equal(best.attributions[~PRESENT], T[~PRESENT])
    assert best.certificate.holds(1e-10)
    sums = po.losses.Completeness(TARGETS.sum(axis=1), PRESENT.astype(float))
    best = po.solve(ENTRIES + 0.0 * SHARED, subject_to=[sums])
    np.testing.assert_allclose(best.attributions, TARGETS, atol=1e-12)


@pytest.mark.parametrize("weight", [0.01, 0.5, 30.0])
def test_rows_add_up_over_what_is_present(weight):
    objective = ENTRIES + weight * SHARED
    best = po.solve(objective, subject_to=OVER_PRESENT, tolerance=1e-10)
    assert best.solver == "entries, complete"
    assert best.certificate.holds(1e-10)
    assert best.certificate.kind == "strong convexity"
    assert np.abs(OVER_PRESENT[0].gaps(best.attributions)).max() < 1e-13
    assert not best.attributions[~PRESENT].any()
    conic = po.solve(objective, "CLARABEL", subject_to=OVER_PRESENT, tolerance=1e-8)
    np.testing.assert_allclose(best.attributions, conic.attributions, atol=1e-4)
    assert conic.certificate.holds(1e-8)


@pytest.mark.parametrize("complete", [*OVER_PRESENT, po.losses.Completeness(TOTALS)])
@pytest.mark.parametrize("sparse", [0.0, 1.0])
def test_sparse_attributions_and_absent_words_add_up_too(complete, sparse):
    objective = ENTRIES + SHARED + sparse * SPARSITY
    best = po.solve(objective, subject_to=[complete])
    assert best.certificate.holds(1e-6)
    assert np.abs(complete.gaps(best.attributions)).max() < 1e-10
