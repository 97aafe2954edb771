"""Programs of entries: solvers of points are given single entries of W."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import POINT_GRAPHS, SHAPE, G

import propopt as po
from propopt.losses import Program
from propopt.solvers import Task


PRESENT = np.random.default_rng(3).random(SHAPE) < 0.6
TARGETS = np.where(PRESENT, G, 0.0)
SHARED = po.SharedRobustness(POINT_GRAPHS["knn"], PRESENT)
MATCHING, SPARSITY = po.GradientMatching(TARGETS), po.Sparsity()


def test_whole_curves_of_weights_are_known():
    curve = po.sweep(
        MATCHING + 1.0 * SHARED, {SHARED.name: np.logspace(-3, 3, 13)}, progress=False
    )
    for best in curve.explanations:
        alone = po.solve(
            MATCHING + best.weights[SHARED.name] * SHARED, "CLARABEL", tolerance=1e-8
        )
        assert best.objective == pytest.approx(alone.objective, rel=1e-6)
        assert best.certificate.holds(1e-6)


def test_the_solver_is_named_with_what_it_was_given():
    assert po.solve(MATCHING + SHARED).solver == "spectral, of entries"
    assert po.solve(MATCHING + SHARED + SPARSITY).solver == "lasso, of entries"


@pytest.mark.parametrize("limit", [0.5, 2.0])
def test_a_bound_on_it_holds_and_is_certified(limit):
    best = po.solve(1.0 * MATCHING, subject_to=[limit >= SHARED])
    again = po.solve(1.0 * MATCHING, "CLARABEL", subject_to=[limit >= SHARED])
    assert best.certificate.holds(1e-5)
    assert best.losses[SHARED.name] == pytest.approx(limit, rel=1e-5)
    assert best.objective == pytest.approx(again.objective, rel=1e-5)


def test_a_limit_of_zero_leaves_one_value_for_each_word_that_is_connected():
    best = po.solve(1.0 * MATCHING, subject_to=[SHARED <= 0.0])
    parts = SHARED.entry_graph.components
    means = parts.spread(parts.split(TARGETS[PRESENT][:, None])[0])[:, 0]
    np.testing.assert_allclose(best.attributions[PRESENT], means, atol=1e-4)


def test_targets_of_entries_that_are_not_coupled_stay_as_they_are():
    best = po.solve(po.GradientMatching(G) + 5.0 * SHARED, tolerance=1e-10)
    np.testing.assert_array_equal(best.attributions[~PRESENT], G[~PRESENT])
    assert best.certificate.holds(1e-10)


def test_a_warm_start_ends_at_the_same_optimum():
    task = Task(Program((MATCHING, SHARED, SPARSITY)), "auto")
    weights = np.array([1.0, 0.7, 0.3])
    start = task.solve(np.array([1.0, 0.5, 0.2]), 1e-12)
    warm, cold = task.solve(weights, 1e-12, start), task.solve(weights, 1e-12)
    np.testing.assert_allclose(warm.W, cold.W, atol=1e-5)


def test_many_documents_are_solved_at_once():
    rng = np.random.default_rng(0)
    present = rng.random((120, 400)) < 0.1
    targets = np.where(present, rng.normal(size=present.shape), 0.0)
    graph = po.knn_graph(rng.normal(size=(120, 3)), 8)
    robust = po.SharedRobustness(graph, present)
    best = po.solve(po.GradientMatching(targets) + robust, tolerance=1e-9)
    assert best.certificate.holds(1e-9)
    assert not best.attributions[~present].any()


def kkt(weight: float, totals: np.ndarray) -> np.ndarray:
    """The complete optimum from one dense system, by formulas of its own."""
    n_points, n_features = SHAPE
    S = SHARED.graph.similarities.toarray()
    H = np.eye(n_points * n_features)
    for n, m in zip(*np.nonzero(S), strict=True):
        for j in np.flatnonzero(PRESENT[n] & PRESENT[m]):
            p, q = n * n_features + j, m * n_features + j
            H[p, p] += 2.0 * weight * S[n, m]
            H[p, q] -= 2.0 * weight * S[n, m]
    A = np.zeros((n_points, H.shape[0]))
    for n in range(n_points):
        A[n, n * n_features : (n + 1) * n_features] = PRESENT[n]
    full = np.block([[H, A.T], [A, np.zeros((n_points, n_points))]])
    rhs = np.concatenate([TARGETS.ravel(), totals])
    return np.linalg.solve(full, rhs)[: H.shape[0]].reshape(SHAPE)


TOTALS = TARGETS.sum(axis=1) + np.linspace(-1.0, 1.0, SHAPE[0])


@pytest.mark.parametrize("weight", [0.01, 0.5, 30.0])
def test_rows_add_up_over_what_is_present(weight):
    complete = po.Completeness(TOTALS, PRESENT.astype(float))
    objective = MATCHING + weight * SHARED
    best = po.solve(objective, subject_to=[complete], tolerance=1e-10)
    assert best.solver == "entries, complete"
    assert best.certificate.holds(1e-10)
    assert best.certificate.kind == "strong convexity"
    assert np.abs(complete.gaps(best.attributions)).max() < 1e-13
    assert not best.attributions[~PRESENT].any()
    np.testing.assert_allclose(best.attributions, kkt(weight, TOTALS), atol=1e-5)


def test_the_backend_finds_the_same_complete_attributions():
    complete = po.Completeness(TOTALS, PRESENT.astype(float))
    own, conic = (
        po.solve(MATCHING + SHARED, solver, subject_to=[complete], tolerance=1e-8)
        for solver in ("auto", "CLARABEL")
    )
    np.testing.assert_allclose(own.attributions, conic.attributions, atol=1e-4)
    assert conic.certificate.holds(1e-8)


def test_sparse_attributions_add_up_too():
    complete = po.Completeness(TOTALS, PRESENT.astype(float))
    best = po.solve(MATCHING + SHARED + SPARSITY, subject_to=[complete])
    assert best.certificate.holds(1e-6)
    assert np.abs(complete.gaps(best.attributions)).max() < 1e-10


def test_a_complete_target_stays_as_it_is_without_robustness():
    complete = po.Completeness(TARGETS.sum(axis=1), PRESENT.astype(float))
    best = po.solve(MATCHING + 0.0 * SHARED, subject_to=[complete])
    np.testing.assert_allclose(best.attributions, TARGETS, atol=1e-12)


def test_a_row_without_features_adds_up_to_zero_or_is_refused():
    weights = PRESENT.astype(float)
    weights[2] = 0.0
    po.Completeness(np.where(np.arange(SHAPE[0]) == 2, 0.0, TOTALS), weights)
    with pytest.raises(po.errors.InvalidInput, match="row 2 has no weights"):
        po.Completeness(TOTALS, weights)


def test_shared_weights_of_all_features_add_up_beside_shared_robustness():
    best = po.solve(MATCHING + SHARED, subject_to=[po.Completeness(TOTALS)])
    assert best.certificate.holds(1e-6)
    np.testing.assert_allclose(best.attributions.sum(axis=1), TOTALS, atol=1e-12)
