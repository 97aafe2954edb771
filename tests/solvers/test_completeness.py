"""Rows of given sums: closed forms, curves, splitting and cones, with their proof."""

import pickle

import cvxpy as cp
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import propopt as po
from propopt.base.errors import Infeasible, InvalidInput
from propopt.explaining.targets import Targets, nearest_explanation
from propopt.losses.algebra import PropertyLoss
from propopt.losses.faithfulness import Estimate
from propopt.losses.maps import OverFeatures, Squared


N, D = 16, 5


class FeatureKernel(PropertyLoss):
    """tr(W CᵀC Wᵀ) for a C that sees constants."""

    def __init__(self, C):
        self.name = "feature_kernel"
        self._map = OverFeatures(C)

    @property
    def map(self):
        return self._map

    @property
    def penalty(self):
        return Squared()


def instance(seed):
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(N, D))
    return rng, rng.normal(size=(N, 2)), G, G.sum(axis=1) + 0.3 * rng.normal(size=N)


def smooth(seed):
    """Feature terms of five instances: a kernel, graphs, and one in two parts."""
    rng, _, _, _ = instance(seed)
    return {
        0: FeatureKernel(rng.normal(size=(D, D))),
        1: po.Smoothness(po.chain_graph(D)),
        2: po.Smoothness(po.group_graph([0, 0, 1, 1, 1])),
        3: FeatureKernel(rng.normal(size=(2, D))),
        4: po.Smoothness(po.complete_graph(D)),
    }[seed]


def robust(seed):
    _, X, _, _ = instance(seed)
    if seed % 2:
        return po.PairwiseRobustness(po.knn_graph(X, 3))
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return po.KernelRobustness(np.exp(-squares / 2) + 1e-2 * np.eye(N))


def reference(objective, total, weights=None, accuracy=1e-13):
    """W, the optimum and the multipliers, by Clarabel with the equality as it is."""
    W = cp.Variable((N, D))
    v = np.ones(D) if weights is None else weights
    equality = W @ v == total
    problem = cp.Problem(cp.Minimize(objective.expression(W)), [equality])
    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    problem.solve(solver="CLARABEL", **dict.fromkeys(names, accuracy))
    return W.value, problem.value, equality.dual_value


# --- a small instance that is known to twelve digits ---------------------------------

G4 = np.array([[1, -0.5, 0.25], [0.5, 0.75, -1], [0, 2, -0.5], [-1, 0.25, 0.5]])
T4 = np.array([1.0, 0.5, -0.25, 0.0])
OBJECTIVE4 = (
    po.GradientMatching(G4)
    + 0.5 * po.PairwiseRobustness(po.chain_graph(4))
    + 0.25 * po.Smoothness(po.chain_graph(3))
)
W4 = [
    [0.687922966640, 0.178741755454, 0.133335277906],
    [0.380436538873, 0.375596144089, -0.256032682962],
    [-0.210859819296, 0.344774226281, -0.383914406985],
    [-0.374166352883, 0.217554540842, 0.156611812041],
]


@pytest.mark.parametrize("solver", ["auto", "spectral", "factored", "krylov"])
def test_a_known_instance(solver):
    best = po.solve(
        OBJECTIVE4, solver, subject_to=[po.Completeness(T4)], tolerance=1e-13
    )
    np.testing.assert_allclose(best.attributions, W4, atol=1e-9)
    assert best.objective == pytest.approx(6.501799480975892, abs=1e-9)
    np.testing.assert_allclose(
        best.details["completeness.multiplier"],
        [-1 / 2, -1 / 3, 11 / 6, -1 / 3],
        atol=1e-9,
    )
    left = best.details["irreducible.pairwise_robustness"]
    assert left == pytest.approx(0.583333333333, abs=1e-9)
    assert best.details["irreducible.smoothness"] == 0.0
    assert best.solver.endswith("complete")


# --- against Clarabel ----------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True], ids=["sum", "weighted sum"])
@pytest.mark.parametrize("seed", range(5))
def test_closed_forms_agree_with_clarabel(seed, weighted):
    rng, _, G, t = instance(seed)
    v = rng.uniform(0.2, 2.0, D) if weighted else None
    objective = 1.3 * po.GradientMatching(G) + 0.4 * robust(seed) + 0.7 * smooth(seed)
    best = po.solve(objective, subject_to=[po.Completeness(t, v)], tolerance=1e-10)
    W, optimum, y = reference(objective, t, v)
    np.testing.assert_allclose(best.attributions, W, atol=1e-8)
    assert best.objective == pytest.approx(optimum, rel=1e-10)
    np.testing.assert_allclose(best.details["completeness.multiplier"], y, atol=1e-7)
    assert best.solver == "spectral, complete"
    assert best.gap <= 1e-12
    assert best.certificate.violation <= 1e-14


KINKED = {
    "sparsity": [po.Sparsity()],
    "largest difference": [
        po.MaxDifferenceRobustness(po.knn_graph(instance(1)[1], 3), name="largest")
    ],
    "largest differences": [
        po.MaxDifferenceRobustness(
            po.knn_graph(instance(1)[1], 3), "sum", "l1", name="largest"
        )
    ],
    "both": [
        po.Sparsity(),
        po.MaxDifferenceRobustness(po.knn_graph(instance(1)[1], 3), name="largest"),
    ],
}


@pytest.mark.parametrize("coupled", [False, True], ids=["", "smooth"])
@pytest.mark.parametrize("kind", KINKED)
@pytest.mark.parametrize("weighted", [False, True], ids=["sum", "weighted sum"])
def test_kinked_losses_are_certified_and_agree_with_clarabel(
    kind, coupled, weighted, monkeypatch
):
    # nothing else is asked where the steps run out
    monkeypatch.setattr("propopt.solvers.splitting.CLARABEL_ROWS", 0)
    rng, _, G, t = instance(1)
    v = rng.uniform(0.2, 2.0, D) if weighted else None
    objective = po.GradientMatching(G) + 0.3 * robust(1)
    if coupled:
        objective += 0.2 * smooth(0)
    objective += sum(0.4 * loss for loss in KINKED[kind])
    best = po.solve(objective, subject_to=[po.Completeness(t, v)], tolerance=1e-6)
    _, optimum, _ = reference(objective, t, v, accuracy=1e-8)
    assert best.solver == "splitting"
    assert best.gap <= 1e-6
    assert best.objective == pytest.approx(optimum, rel=2e-6)
    assert np.abs(po.Completeness(t, v).gaps(best)).max() <= 1e-10


def test_sparse_complete_attributions_have_exact_zeros():
    _, _, G, t = instance(1)
    objective = po.GradientMatching(G) + 0.3 * robust(1) + 0.8 * po.Sparsity()
    best = po.solve(objective, subject_to=[po.Completeness(t)])
    assert (best.attributions == 0.0).sum() >= 10
    assert np.abs(best.attributions.sum(axis=1) - t).max() <= 1e-12


@pytest.mark.parametrize(
    "objective",
    [
        po.GradientMatching(instance(1)[2], norm="l1") + 0.3 * robust(1),
        po.FunctionMatching(instance(1)[2], instance(1)[3]) + 0.3 * robust(1),
    ],
    ids=["l1", "function"],
)
def test_other_losses_are_given_to_a_backend_with_the_equality(objective):
    _, _, _, t = instance(1)
    best = po.solve(objective, subject_to=[po.Completeness(t)])
    _, optimum, y = reference(objective, t, accuracy=1e-10)
    assert best.solver == "conic"
    assert best.gap <= 1e-6
    assert best.objective == pytest.approx(optimum, rel=1e-6)
    np.testing.assert_allclose(best.details["completeness.multiplier"], y, atol=1e-4)
    assert best.certificate.violation <= 1e-14


# --- beside other bounds -------------------------------------------------------------


def test_a_bound_beside_it_has_a_root_on_the_curve():
    _, _, G, t = instance(1)
    loss = robust(1)
    least = po.solve(
        po.GradientMatching(G) + loss, subject_to=[po.Completeness(t)]
    ).details["irreducible.pairwise_robustness"]
    best = po.solve(
        po.GradientMatching(G), subject_to=[po.Completeness(t), loss <= 1.5 * least]
    )
    assert best.solver == "one_bound, complete"
    assert best.gap <= 1e-6
    assert best.losses["pairwise_robustness"] == pytest.approx(1.5 * least, rel=1e-6)
    same = po.solve(
        po.GradientMatching(G) + best.multipliers["pairwise_robustness"] * loss,
        subject_to=[po.Completeness(t)],
    )
    np.testing.assert_allclose(best.attributions, same.attributions, atol=1e-9)


def test_a_limit_below_what_totals_leave_is_infeasible_and_says_what_is_left():
    _, _, G, t = instance(1)
    loss = robust(1)
    constraints = [po.Completeness(t), loss <= 1e-3]
    with pytest.raises(Infeasible, match="the smallest attainable value of pairwise"):
        po.solve(po.GradientMatching(G), subject_to=constraints)


def test_equal_explanations_need_equal_totals():
    _, _, G, t = instance(1)
    flat = po.PairwiseRobustness(po.complete_graph(N)) <= 0.0
    with pytest.raises(Infeasible, match="the totals differ there"):
        po.solve(po.GradientMatching(G), subject_to=[po.Completeness(t), flat])
    best = po.solve(
        po.GradientMatching(G), subject_to=[po.Completeness(np.full(N, 2.0)), flat]
    )
    mean = G.mean(axis=0)
    wanted = np.tile(mean + (2.0 - mean.sum()) / D, (N, 1))
    np.testing.assert_allclose(best.attributions, wanted, atol=1e-12)
    assert best.gap <= 1e-12


# --- sweeps --------------------------------------------------------------------------


@pytest.mark.parametrize("feature_term", [1, 0], ids=["graph", "kernel"])
def test_sweeps_equal_single_solves(feature_term):
    _, _, G, t = instance(1)
    loss = robust(1)
    objective = po.GradientMatching(G) + loss + 0.3 * smooth(feature_term)
    weights = np.geomspace(1e-2, 1e2, 5)
    constraints = [po.Completeness(t)]
    curve = po.sweep(objective, {loss.name: weights}, subject_to=constraints)
    for weight, point in zip(weights, curve.optimized, strict=True):
        claimed = point.objective
        single = po.solve(
            objective.with_weights({loss.name: weight}), subject_to=constraints
        )
        assert claimed == pytest.approx(single.objective, rel=1e-10)
        np.testing.assert_allclose(point.attributions, single.attributions, atol=1e-10)
        assert point.gap <= 1e-10
        for name in ("multiplier", "irreducible"):
            keys = [key for key in single.details if name in key]
            assert keys
            for key in keys:
                np.testing.assert_allclose(
                    point.details[key], single.details[key], atol=1e-9
                )


def test_sweeps_of_squared_losses_know_the_curve():
    _, _, G, t = instance(1)
    objective = po.GradientMatching(G) + robust(1)
    curve = po.sweep(
        objective, {"pairwise_robustness": [0.1, 1.0]}, subject_to=[po.Completeness(t)]
    )
    assert {point.certificate.kind for point in curve.optimized} == {"curve"}
    assert "irreducible.pairwise_robustness" in curve.optimized[0].details


def test_limits_can_be_swept_beside_it():
    _, _, G, t = instance(1)
    objective = po.GradientMatching(G) + robust(1)
    curve = po.sweep(
        objective,
        limits={"pairwise_robustness": [150.0, 200.0]},
        subject_to=[po.Completeness(t)],
    )
    result = [point.losses["pairwise_robustness"] for point in curve.optimized]
    np.testing.assert_allclose(result, [150.0, 200.0], rtol=1e-6)


# --- laws ----------------------------------------------------------------------------


NUMBERS = st.floats(-10, 10).map(lambda x: round(x, 9))
"""No numbers whose squares are no longer any."""


@settings(max_examples=40, deadline=None)
@given(
    hnp.arrays(float, (6, 4), elements=NUMBERS),
    hnp.arrays(float, 6, elements=NUMBERS),
    st.floats(1e-3, 1e3),
)
def test_rows_add_up_and_nothing_complete_is_better(G, total, weight):
    robustness = po.PairwiseRobustness(po.chain_graph(6))
    objective = po.GradientMatching(G) + weight * robustness
    constraint = po.Completeness(total)
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


def test_totals_of_the_free_optimum_change_nothing():
    _, _, G, _ = instance(1)
    objective = po.GradientMatching(G) + 0.4 * robust(1) + 0.7 * smooth(1)
    free = po.solve(objective)
    best = po.solve(
        objective, subject_to=[po.Completeness(free.attributions.sum(axis=1))]
    )
    np.testing.assert_allclose(best.attributions, free.attributions, atol=1e-12)
    assert np.abs(best.details["completeness.multiplier"]).max() <= 1e-11


def test_the_multiplier_is_how_fast_the_optimum_falls():
    _, _, G, t = instance(1)
    objective = po.GradientMatching(G) + 0.4 * robust(1) + 0.7 * smooth(0)
    y = po.solve(objective, subject_to=[po.Completeness(t)]).details[
        "completeness.multiplier"
    ]
    step = 1e-5 * np.eye(N)[3]
    up, down = (
        po.solve(objective, subject_to=[po.Completeness(t + s)]).objective
        for s in (step, -step)
    )
    assert (up - down) / 2e-5 == pytest.approx(-y[3], rel=1e-6)


# --- proofs --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_complete_explanation_that_is_not_optimal_is_bounded_by_its_slope(seed):
    rng, _, G, t = instance(seed)
    objective = po.GradientMatching(G) + 0.4 * robust(seed) + 0.7 * smooth(seed)
    best = po.solve(objective, subject_to=[po.Completeness(t)])
    step = rng.normal(size=(N, D))
    W = best.attributions + 0.1 * (step - step.mean(axis=1, keepdims=True))
    proof = po.certify(objective, W, bounds=[po.Completeness(t)])
    assert proof.lower_bound <= best.objective * (1 + 1e-12)
    slope = sum(c * loss.gradient_at(W) for c, loss in objective.terms)
    slope -= slope.mean(axis=1, keepdims=True)
    wanted = objective.value(W) - np.vdot(slope, slope) / 4.0
    assert proof.lower_bound == pytest.approx(max(wanted, 0.0), rel=1e-9)
    assert np.linalg.norm(W - best.attributions) <= proof.distance


def test_rows_that_do_not_add_up_are_a_violation():
    _, _, G, t = instance(1)
    objective = po.GradientMatching(G) + 0.4 * robust(1)
    best = po.solve(objective, subject_to=[po.Completeness(t)])
    off = best.attributions.copy()
    off[2, 1] += 1e-3
    proof = po.certify(objective, off, bounds=[po.Completeness(t)])
    size = np.abs(off).sum(axis=1).max()
    assert proof.violation == pytest.approx(1e-3 / size, rel=1e-6)
    assert not proof.holds(1e-6)


def test_totals_of_zero_have_no_violation_but_rounding():
    _, _, G, _ = instance(1)
    best = po.solve(
        po.GradientMatching(G) + robust(1), subject_to=[po.Completeness(np.zeros(N))]
    )
    assert best.certificate.violation <= 1e-15
    assert best.gap <= 1e-12


# --- doors ---------------------------------------------------------------------------


def test_names_are_kept_and_those_of_other_tables_refused():
    G = pd.DataFrame(G4, columns=list("abc"), index=list("wxyz"))
    objective = po.GradientMatching(G) + 0.5 * po.Sparsity()
    best = po.solve(
        objective, subject_to=[po.Completeness(pd.Series(T4, index=list("wxyz")))]
    )
    assert best.labels.features == ("a", "b", "c")
    with pytest.raises(InvalidInput, match="its points have other names"):
        po.solve(
            objective, subject_to=[po.Completeness(pd.Series(T4, index=list("xwyz")))]
        )


def test_gaps_are_in_the_order_of_the_totals():
    constraint = po.Completeness(pd.Series([3.0, 0.0], index=["x", "y"]))
    W = pd.DataFrame([[1.0, 1.0], [1.0, 2.0]], index=["y", "x"], columns=["a", "b"])
    np.testing.assert_array_equal(constraint.gaps(W), [0.0, 2.0])


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ([po.Completeness([1.0, 2.0])], "completeness has 2"),
        ([po.Completeness(T4, [1.0, 1.0])], "completeness has 2"),
        ([po.Completeness(T4), po.Completeness(T4, name="again")], "give one of them"),
        ([po.Sparsity()], "expected bounds"),
    ],
)
def test_what_does_not_fit_is_refused(constraints, message):
    with pytest.raises(InvalidInput, match=message):
        po.solve(OBJECTIVE4, subject_to=constraints)


@pytest.mark.parametrize("total", [[np.nan, 1.0], [[1.0]], "ab", [1e200]])
def test_totals_that_are_no_numbers_are_refused(total):
    with pytest.raises(InvalidInput, match="total"):
        po.Completeness(total)


def test_weights_must_weigh_something():
    with pytest.raises(InvalidInput, match="all are zero"):
        po.Completeness(T4, [0.0, 0.0, 0.0])


def test_an_objective_that_knows_no_features_needs_weights():
    objective = 1.0 * po.PairwiseRobustness(po.chain_graph(4))
    with pytest.raises(InvalidInput, match="give weights"):
        po.solve(objective, subject_to=[po.Completeness(T4)])
    best = po.solve(objective, subject_to=[po.Completeness(T4, np.ones(3))])
    np.testing.assert_allclose(best.attributions, np.tile(T4[:, None] / 3, 3))
    assert best.gap <= 1e-9


def test_constraints_can_be_pickled():
    same = pickle.loads(pickle.dumps(po.Completeness(T4)))
    np.testing.assert_array_equal(same.total, T4)


# --- columns that nothing uses -------------------------------------------------------


def unused(seed=0):
    """Φ whose second column is zero, totals that it misses, and a graph."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(N, D))
    phi[:, 1] = 0.0
    return phi, phi.sum(axis=1) + 0.3, po.knn_graph(rng.normal(size=(N, 2)), 4)


ROBUST = {
    "pairwise": po.PairwiseRobustness,
    "max": po.MaxDifferenceRobustness,
    "sparse": lambda graph: 0.1 * po.Sparsity() + po.PairwiseRobustness(graph),
}


@pytest.mark.parametrize("robust", ROBUST.values(), ids=ROBUST)
def test_a_column_that_the_target_never_uses_stays_zero(robust):
    phi, total, graph = unused()
    objective = po.GradientMatching(phi) + robust(graph)
    constraint = po.Completeness(total)
    name = objective.losses[-1].name
    curve = po.sweep(objective, {name: [0.1, 2.0]}, subject_to=[constraint])
    for best in (po.solve(objective, subject_to=[constraint]), *curve.optimized):
        assert (best.attributions[:, 1] == 0.0).all()
        assert (best.attributions[:, [0, 2, 3, 4]] != 0.0).any(axis=0).all()
        np.testing.assert_allclose(best.attributions.sum(axis=1), total, atol=1e-12)
        assert best.gap <= 1e-6


def test_it_is_the_optimum_among_those_that_leave_the_column_out():
    phi, total, graph = unused()
    objective = po.GradientMatching(phi) + 0.5 * po.PairwiseRobustness(graph)
    best = po.solve(objective, subject_to=[po.Completeness(total)])
    W = cp.Variable(phi.shape)
    least = cp.Problem(
        cp.Minimize(objective.expression(W)), [cp.sum(W, axis=1) == total, W[:, 1] == 0]
    ).solve(solver="CLARABEL")
    assert best.objective == pytest.approx(least, rel=1e-7)


def test_the_rule_is_that_of_explain():
    """``nearest_explanation`` and a sweep of the same losses are one optimum."""
    phi, total, graph = unused()
    known = Targets(
        estimate=Estimate(values=phi, source="given", units="output"),
        base=np.zeros(N),
        prediction=total,
    )
    robust = po.PairwiseRobustness(graph)
    best = nearest_explanation(known, robust, robustness=0.5)
    curve = po.sweep(
        po.GradientMatching(phi) + robust,
        {"pairwise_robustness": [0.5]},
        subject_to=[po.Completeness(total)],
    )
    np.testing.assert_array_equal(best.attributions, curve.optimized[0].attributions)


def test_smoothness_ties_all_columns_which_then_add_up():
    phi, total, graph = unused()
    robust, smooth = po.PairwiseRobustness(graph), po.Smoothness(po.chain_graph(D))
    objective = po.GradientMatching(phi) + robust + smooth
    best = po.solve(objective, subject_to=[po.Completeness(total)])
    assert (best.attributions[:, 1] != 0.0).all()
    np.testing.assert_allclose(best.attributions.sum(axis=1), total, atol=1e-12)


def test_a_target_of_nothing_is_the_least_that_adds_up():
    robust = po.PairwiseRobustness(po.chain_graph(4))
    objective = po.GradientMatching(np.zeros((4, 3))) + 0.0 * robust
    best = po.solve(objective, subject_to=[po.Completeness(T4)])
    np.testing.assert_allclose(best.attributions, np.tile(T4[:, None] / 3, 3))
