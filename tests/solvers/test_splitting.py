"""ADMM with a Newton finish: the conic optimum, with proof, along paths and layouts."""

import numpy as np
import pytest
import scipy.sparse as sp

import propopt as po
from propopt.base.errors import UncertifiedWarning
from propopt.losses import Program
from propopt.losses.maps import Absolute, OverPoints
from propopt.solvers import Conic, Solution, Solver, Task
from propopt.solvers import splitting as splitting_module
from propopt.solvers.edge_newton import Composite, Term, choose_layout, edge_weights
from propopt.solvers.splitting import Splitting, minimise


REFERENCE = 1e-7  # the relative gap that is asked of Clarabel
AGGREGATES = ("max", "sum")


def gaussian_data(seed: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, d))


def natural_weight(loss: po.losses.PropertyLoss, G: np.ndarray) -> float:
    """The weight at which the loss of G is about what component means cost."""
    return float(((G - G.mean(axis=0)) ** 2).sum() / max(loss.value(G), 1e-300))


def path(loss: po.losses.PropertyLoss, G: np.ndarray) -> list[po.losses.Objective]:
    objective = po.GradientMatching(G) + 1.0 * loss
    natural = natural_weight(loss, G)
    weights = natural * np.geomspace(1e-2, 1e2, 12)
    return [objective.with_weights({loss.name: float(weight)}) for weight in weights]


def task_of(objective: po.losses.Objective, solver: Solver | None = None) -> Task:
    """All losses of an objective, for any weights."""
    return Task(Program(objective.losses), solver or Splitting())


def solved(objective: po.losses.Objective) -> Solution:
    """The optimum to eleven digits."""
    return task_of(objective).solve(objective.coefficients, 1e-11)


class Variation(po.losses.PropertyLoss):
    """Σ_{n<n'} S_nn' ‖w_n − w_n'‖₁: a loss that the package does not have."""

    penalty, name = Absolute(), "variation"

    def __init__(self, graph):
        rows = sp.triu(graph.similarities, k=1).tocoo().data[:, None] * graph.incidence
        self.map = OverPoints(sp.csr_array(rows), graph.components)


@pytest.mark.parametrize("weight", [0.05, 1.0, 20.0])
def test_a_custom_loss_is_accepted_by_its_types(weight):
    X, G = gaussian_data(3, 50, 3)
    objective = po.GradientMatching(G) + weight * Variation(po.graphs.knn_graph(X, 4))
    best = po.solve(objective)
    assert best.solver == "splitting"
    assert best.gap <= 1e-6
    reference = task_of(objective, Conic()).solve(objective.coefficients, REFERENCE)
    proof = po.proofs.certify(objective, reference.W, duals=reference.duals)
    assert proof.value >= best.certificate.lower_bound - 1e-11 * best.objective
    assert best.objective >= proof.lower_bound - 1e-11 * best.objective


def test_tight_tolerances_are_reached():
    X, G = gaussian_data(1, 60, 4)
    for aggregate in AGGREGATES:
        loss = po.losses.MaxDifferenceRobustness(po.graphs.knn_graph(X, 5), aggregate)
        for size in (0.01, 1.0, 100.0):
            weight = size * natural_weight(loss, G)
            objective = po.GradientMatching(G) + weight * loss
            assert po.solve(objective, Splitting(), tolerance=1e-11).gap <= 1e-11


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_huge_weight_gives_the_means_of_components(aggregate):
    _, G = gaussian_data(2, 9, 3)
    labels = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    loss = po.losses.MaxDifferenceRobustness(po.graphs.group_graph(labels), aggregate)
    best = po.solve(po.GradientMatching(G) + 1e7 * loss, Splitting())
    means = np.array([G[labels == label].mean(axis=0) for label in labels])
    np.testing.assert_allclose(best.attributions, means, atol=1e-4)
    even = po.solve(po.GradientMatching(means) + 1.0 * loss, Splitting())
    np.testing.assert_allclose(even.attributions, means, atol=1e-12)
    assert even.gap == 0.0


def test_sparsity_gives_zeros_that_are_exact():
    X, G = gaussian_data(3, 30, 4)
    loss = po.losses.MaxDifferenceRobustness(po.graphs.knn_graph(X, 4))
    objective = po.GradientMatching(G) + 2.0 * loss + 1.5 * po.Sparsity()
    W = po.solve(objective, Splitting()).attributions
    assert 10 < (W == 0.0).sum() < W.size


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("smooth", [0.0, 0.4])
def test_edge_weights_make_pairwise_robustness_give_the_same(aggregate, smooth):
    X, G = gaussian_data(9, 40, 3)
    loss = po.losses.MaxDifferenceRobustness(po.graphs.knn_graph(X, 4), aggregate)
    weight = natural_weight(loss, G)
    base = 2.0 * po.GradientMatching(G) + smooth * po.Smoothness(
        po.graphs.chain_graph(3)
    )
    result = solved(base + weight * loss)
    S = edge_weights(loss, result)
    assert (S >= 0).all()
    n_groups = 1 if aggregate == "max" else 40
    assert 2 * S.sum() == pytest.approx(weight * n_groups, rel=1e-6)
    if aggregate == "max":  # they lie on the longest edges
        lengths = np.linalg.norm(loss.graph.incidence @ result.W, axis=1)
        assert 0 < (S > 0).sum() < len(S)
        np.testing.assert_allclose(lengths[S > 0], lengths.max(), rtol=1e-4)
    similarities = np.zeros((40, 40))
    similarities[tuple(loss.graph.edges.T)] = S
    graph = po.graphs.graph_from_matrix(similarities + similarities.T)
    same = po.solve(base + 1.0 * po.PairwiseRobustness(graph), "spectral")
    np.testing.assert_allclose(same.attributions, result.W, atol=1e-6)


def test_warm_starts_need_fewer_systems(monkeypatch):
    X, G = gaussian_data(5, 80, 4)
    objectives = path(po.losses.MaxDifferenceRobustness(po.graphs.knn_graph(X, 5)), G)
    solved = []
    original = splitting_module.Admm.run

    def counted(self, n_steps, tolerance):
        solved.append(n_steps)
        return original(self, n_steps, tolerance)

    monkeypatch.setattr(splitting_module.Admm, "run", counted)
    task = task_of(objectives[0])
    for objective in objectives:
        task.solve(objective.coefficients, 1e-6)
    cold = sum(solved)
    solved.clear()
    start = None
    for objective in objectives:
        start = task.solve(objective.coefficients, 1e-6, start)
    assert sum(solved) <= 0.5 * cold


def test_losses_may_have_no_weight():
    X, G = gaussian_data(7, 12, 3)
    robust, largest = po.graphs.knn_graph(X, 2), po.graphs.knn_graph(X, 3)
    losses = [
        po.GradientMatching(G),
        po.losses.MaxDifferenceRobustness(largest),
        po.Sparsity(),
    ]
    losses += [po.PairwiseRobustness(robust), po.Smoothness(po.graphs.chain_graph(3))]
    start = Solution(W=np.zeros_like(G))  # without duals it is no obstacle
    for retained in np.ndindex(2, 2, 2, 2):
        terms = zip((1.0, *retained), losses, strict=True)
        objective = po.losses.Objective(tuple((float(c), loss) for c, loss in terms))
        result = task_of(objective).solve(objective.coefficients, 1e-7, start)
        assert po.proofs.certify(objective, result.W, duals=result.duals).holds(1e-7)
        best = po.solve(objective, Conic()).objective
        assert objective.value(result.W) == pytest.approx(best, rel=1e-5)
    program = Program((losses[0], losses[2]))
    result = Splitting().prepare(program).solve(np.array([0.0, 1.0]), 1e-6)
    np.testing.assert_array_equal(result.W, np.zeros_like(G))


def test_programs_that_run_out_of_steps_are_given_to_clarabel_or_reported(monkeypatch):
    monkeypatch.setattr(splitting_module, "ADMM_STEPS", 5)
    X, G = gaussian_data(12, 20, 3)
    loss = po.losses.MaxDifferenceRobustness(po.graphs.knn_graph(X, 4))
    objective = po.GradientMatching(G) + 3.0 * loss + 0.3 * po.Sparsity()
    assert po.solve(objective, Splitting()).gap <= 1e-6
    monkeypatch.setattr(splitting_module, "CLARABEL_ROWS", 0)
    with pytest.warns(UncertifiedWarning):
        po.solve(objective, Splitting())


def test_large_narrow_graphs_are_solved_by_sparse_factors():
    rng = np.random.default_rng(13)
    X = np.sort(rng.uniform(size=(3000, 1)), axis=0)
    G = np.sin(9 * X) + rng.normal(size=(3000, 2))
    loss = po.losses.MaxDifferenceRobustness(po.graphs.knn_graph(X, 2))
    assert choose_layout([loss.map.gram]) == "lu"
    objective = po.GradientMatching(G) + 20.0 * loss
    assert po.solve(objective, Splitting()).gap <= 1e-6


@pytest.mark.parametrize("smooth", [False, True])
def test_every_layout_has_the_same_optimum(smooth):
    X, G = gaussian_data(16, 40, 3)
    loss = po.losses.MaxDifferenceRobustness(po.graphs.knn_graph(X, 4))
    Q = po.graphs.chain_graph(3).laplacian.toarray() if smooth else None
    values = []
    for layout in ("dense", "lu", "cg"):
        term = Term.of(loss, as_dense=layout == "dense")
        result = minimise(Composite(G, None, Q, (term,), layout), 1e-10)
        assert result.gap <= 1e-10
        values.append(result.value)
    assert values == pytest.approx(3 * [values[0]], rel=2e-10)
