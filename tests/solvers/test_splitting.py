"""ADMM with a Newton finish: the conic optimum, with proof, on many programs."""

from __future__ import annotations

import numpy as np
import pytest

import propopt as po
from propopt.errors import InvalidInput, Refused, UncertifiedWarning
from propopt.losses import Program
from propopt.solvers import Conic, Solution, Task
from propopt.solvers.splitting import admm as admm_module
from propopt.solvers.splitting import solver as splitting_module
from propopt.solvers.splitting.composite import Composite, Term
from propopt.solvers.splitting.edge_newton import EdgeNewton
from propopt.solvers.splitting.edge_weights import edge_weights
from propopt.solvers.splitting.solver import Splitting, minimise
from propopt.solvers.splitting.systems import choose_layout, factorise


REFERENCE = 1e-7  # the relative gap that is asked of Clarabel
NORMS = ("l2", "l1", "linf")
AGGREGATES = ("max", "sum")


def gaussian_data(seed: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, d))


def natural_weight(loss: po.PropertyLoss, G: np.ndarray) -> float:
    """The weight at which the loss of G is about what component means cost."""
    return float(((G - G.mean(axis=0)) ** 2).sum() / max(loss.value(G), 1e-300))


def some_graph(rng: np.random.Generator, X: np.ndarray) -> po.graphs.Graph:
    n = len(X)
    match int(rng.integers(4)):
        case 0:
            return po.complete_graph(n)
        case 1:
            return po.chain_graph(n)
        case 2:
            return po.knn_graph(X, min(3, n - 1))
        case _:
            return po.group_graph(np.concatenate([[0, 0], rng.integers(0, 3, n - 2)]))


def random_losses(
    rng: np.random.Generator, X: np.ndarray, G: np.ndarray
) -> list[tuple[float, po.PropertyLoss]]:
    """Losses with weights relative to their natural size."""
    terms: list[tuple[float, po.PropertyLoss]] = []
    n_differences = int(rng.integers(0, 3))
    for k in range(n_differences):
        loss = po.MaxDifferenceRobustness(
            some_graph(rng, X),
            AGGREGATES[rng.integers(2)],
            NORMS[rng.integers(3)],
            name=f"difference_{k}",
        )
        reach = 6 if rng.random() < 0.3 else 2
        terms.append((natural_weight(loss, G) * 10 ** rng.uniform(-reach, reach), loss))
    if n_differences == 0 or rng.random() < 0.4:
        size = np.abs(G).mean() * 10 ** rng.uniform(-3, 0.5)
        terms.append((float(size), po.Sparsity()))
    return terms + random_couplings(rng, X)


def random_couplings(
    rng: np.random.Generator, X: np.ndarray
) -> list[tuple[float, po.PropertyLoss]]:
    n, d = X.shape
    points = [
        None,
        po.PairwiseRobustness(po.knn_graph(X, 1)),
        po.PairwiseRobustness(po.gaussian_graph(rng.normal(size=(n, d)))),
        po.KernelRobustness(
            np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2)) + 1e-3 * np.eye(n),
            mean=("none", "per_feature")[rng.integers(2)],
        ),
    ][rng.integers(4)]
    features = [
        None,
        po.Smoothness(po.chain_graph(d)),
        po.Smoothness(po.correlation_graph(rng.normal(size=(n + 1, d)))),
    ][rng.integers(3)]
    return [
        (10 ** rng.uniform(-2, 1.5), loss)
        for loss in (points, features)
        if loss is not None
    ]


def random_objective(seed: int) -> po.Objective:
    """Data scales 1e-6 to 1e6, weights up to 1e±6 of their natural size and more."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 16)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d))
    if rng.random() < 0.2:
        X[n // 2 :] = X[0]
    G = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-6, 7)
    if rng.random() < 0.3:
        G += 10 * np.abs(G).max()
    objective = po.Objective.of(po.GradientMatching(G))
    for weight, loss in random_losses(rng, X, G):
        objective = objective + weight * loss
    return 10.0 ** rng.integers(-6, 7) * objective


@pytest.mark.parametrize("block", range(21))
def test_random_programs_have_the_conic_optimum_with_proof(block):
    for seed in range(10 * block, 10 * block + 10):
        objective = random_objective(seed)
        best = po.solve(objective, Splitting())
        assert best.certificate.kind == "strong convexity"
        assert best.gap <= 1e-6, seed
        reference = Task(objective, solver=Conic()).solve(objective, REFERENCE)
        proof = po.certify(objective, reference.W, duals=reference.duals)
        rounding = 1e-11 * best.objective
        assert best.objective >= proof.lower_bound - rounding, seed
        assert proof.value >= best.certificate.lower_bound - rounding, seed


def test_tight_tolerances_are_reached():
    for seed in range(40):
        best = po.solve(random_objective(seed), Splitting(), tolerance=1e-8)
        assert best.gap <= 1e-8, seed


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_newton_reaches_almost_full_accuracy(aggregate, size):
    X, G = gaussian_data(1, 60, 4)
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 5), aggregate)
    objective = po.GradientMatching(G) + size * natural_weight(loss, G) * loss
    assert po.solve(objective, Splitting(), tolerance=1e-11).gap <= 1e-11


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_huge_weight_gives_the_means_of_components(aggregate, norm):
    _, G = gaussian_data(2, 9, 3)
    labels = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    loss = po.MaxDifferenceRobustness(po.group_graph(labels), aggregate, norm)
    best = po.solve(po.GradientMatching(G) + 1e7 * loss, Splitting())
    means = np.array([G[labels == label].mean(axis=0) for label in labels])
    np.testing.assert_allclose(best.attributions, means, atol=1e-4)


def test_two_points_of_one_feature_move_towards_each_other():
    G = np.array([[0.0], [1.0]])
    loss = po.MaxDifferenceRobustness(po.chain_graph(2))
    best = po.solve(po.GradientMatching(G) + 1.0 * loss, Splitting(), tolerance=1e-12)
    # x² + (1 − y)² + (y − x)² is least at x = 1/3, y = 2/3
    np.testing.assert_allclose(best.attributions, [[1 / 3], [2 / 3]], atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_equal_gradients_stay_as_they_are(value):
    G = np.full((5, 2), value)
    loss = po.MaxDifferenceRobustness(po.chain_graph(5))
    best = po.solve(po.GradientMatching(G) + 1.0 * loss, Splitting())
    np.testing.assert_allclose(best.attributions, G, atol=1e-12)
    assert best.gap == 0.0


def test_sparsity_gives_zeros_that_are_exact():
    X, G = gaussian_data(3, 30, 4)
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 4))
    objective = po.GradientMatching(G) + 2.0 * loss + 1.5 * po.Sparsity()
    W = po.solve(objective, Splitting()).attributions
    assert 10 < (W == 0.0).sum() < W.size


def path(loss: po.PropertyLoss, G: np.ndarray) -> list[po.Objective]:
    objective = po.GradientMatching(G) + 1.0 * loss
    natural = natural_weight(loss, G)
    weights = natural * np.geomspace(1e-2, 1e2, 12)
    return [objective.with_weights({loss.name: float(weight)}) for weight in weights]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_path_with_warm_starts_is_certified(aggregate, norm):
    X, G = gaussian_data(4, 25, 3)
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 4), aggregate, norm)
    objectives = path(loss, G)
    task = Task(objectives[0], solver=Splitting(), all_losses=True)
    start: Solution | None = None
    for objective in objectives:
        start = task.solve(objective, 1e-7, start)
        proof = po.certify(objective, start.W, duals=start.duals)
        assert proof.holds(1e-7)


def test_warm_starts_need_fewer_systems(monkeypatch):
    X, G = gaussian_data(5, 80, 4)
    objectives = path(po.MaxDifferenceRobustness(po.knn_graph(X, 5)), G)
    solved = []
    original = admm_module.Admm.run

    def counted(self, n_steps, tolerance):
        solved.append(n_steps)
        return original(self, n_steps, tolerance)

    monkeypatch.setattr(admm_module.Admm, "run", counted)
    task = Task(objectives[0], solver=Splitting(), all_losses=True)
    for objective in objectives:
        task.solve(objective, 1e-6)
    cold = sum(solved)
    solved.clear()
    start = None
    for objective in objectives:
        start = task.solve(objective, 1e-6, start)
    assert sum(solved) <= 0.5 * cold


def test_start_without_duals_is_no_obstacle():
    X, G = gaussian_data(6, 12, 2)
    objective = po.GradientMatching(G) + 1.0 * po.MaxDifferenceRobustness(
        po.knn_graph(X, 3)
    )
    task = Task(objective, solver=Splitting())
    found = task.solve(objective, 1e-6, Solution(W=np.zeros_like(G)))
    assert po.certify(objective, found.W, duals=found.duals).holds(1e-6)


def test_losses_may_have_no_weight():
    X, G = gaussian_data(7, 12, 3)
    losses = [
        po.GradientMatching(G),
        po.MaxDifferenceRobustness(po.knn_graph(X, 3)),
        po.Sparsity(),
        po.PairwiseRobustness(po.knn_graph(X, 2)),
        po.Smoothness(po.chain_graph(3)),
    ]
    for kept in np.ndindex(2, 2, 2, 2):
        terms = zip((1.0, *kept), losses, strict=True)
        objective = po.Objective(tuple((float(c), loss) for c, loss in terms))
        task = Task(objective, solver=Splitting(), all_losses=True)
        found = task.solve(objective, 1e-7)
        assert po.certify(objective, found.W, duals=found.duals).holds(1e-7)
        best = po.solve(objective, Conic()).objective
        assert objective.value(found.W) == pytest.approx(best, rel=1e-5)


def test_program_without_gradient_matching_weight_is_zero():
    _, G = gaussian_data(8, 6, 2)
    program = Program((po.GradientMatching(G), po.Sparsity()))
    found = Splitting().prepare(program).solve(np.array([0.0, 1.0]), 1e-6)
    np.testing.assert_array_equal(found.W, np.zeros_like(G))


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("smooth", [0.0, 0.4])
def test_edge_weights_make_pairwise_robustness_give_the_same(aggregate, smooth):
    X, G = gaussian_data(9, 40, 3)
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 4), aggregate)
    smoothness = po.Smoothness(po.chain_graph(3))
    weight = natural_weight(loss, G)
    base = 2.0 * po.GradientMatching(G) + smooth * smoothness
    task = Task(base + weight * loss, solver=Splitting())
    found = task.solve(task.objective, 1e-11)
    S = edge_weights(loss, found)
    assert (S >= 0).all()
    n_groups = 1 if aggregate == "max" else 40
    assert 2 * S.sum() == pytest.approx(weight * n_groups, rel=1e-6)
    similarities = np.zeros((40, 40))
    similarities[tuple(loss.graph.edges.T)] = S
    graph = po.graph_from_matrix(similarities + similarities.T)
    same = po.solve(base + 1.0 * po.PairwiseRobustness(graph), "spectral")
    np.testing.assert_allclose(same.attributions, found.W, atol=1e-6)


def test_edge_weights_lie_on_the_longest_edges():
    X, G = gaussian_data(10, 30, 2)
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 4))
    task = Task(po.GradientMatching(G) + 5.0 * loss, solver=Splitting())
    found = task.solve(task.objective, 1e-11)
    lengths = np.linalg.norm(loss.graph.incidence @ found.W, axis=1)
    loaded = edge_weights(loss, found) > 0
    assert 0 < loaded.sum() < len(loaded)
    np.testing.assert_allclose(lengths[loaded], lengths.max(), rtol=1e-4)


def test_edge_weights_need_the_squared_norm_and_its_dual():
    graph = po.chain_graph(3)
    linear = po.MaxDifferenceRobustness(graph, norm="l1")
    with pytest.raises(InvalidInput, match="only 'l2'"):
        edge_weights(linear, Solution(W=np.zeros((3, 1))))
    squared = po.MaxDifferenceRobustness(graph)
    with pytest.raises(InvalidInput, match="no dual of 'max_difference"):
        edge_weights(squared, Solution(W=np.zeros((3, 1))))


def refused_programs() -> dict[str, tuple[list[po.PropertyLoss], list[po.Bound]]]:
    X, G = gaussian_data(11, 6, 2)
    gradient, sparsity = po.GradientMatching(G), po.Sparsity()
    difference = po.MaxDifferenceRobustness(po.chain_graph(6))
    near = po.PairwiseRobustness(po.chain_graph(6), name="near")
    far = po.PairwiseRobustness(po.complete_graph(6))
    linear = po.GradientMatching(G, norm="l1")
    function = po.FunctionMatching(X, X[:, 0])
    lattice = po.PairwiseRobustness(po.graphs.LatticeGraph((2, 3)), name="lattice")
    return {
        "it takes no bounds": ([gradient, difference], [near <= 1.0]),
        "it takes one robustness loss": ([gradient, near, far, sparsity], []),
        "is not squared, sparsity or a largest": ([linear, difference], []),
        "has a linear map of its own": ([gradient, function, sparsity], []),
        "there is no squared gradient-matching": ([near, sparsity], []),
        "whose edges are not stored": ([gradient, lattice, sparsity], []),
    }


@pytest.mark.parametrize("reason", refused_programs())
def test_refusals_are_sentences(reason):
    losses, bounds = refused_programs()[reason]
    program = Program(tuple(losses), tuple(bounds), (6, 2))
    assert reason in (Splitting().refusal(program) or "")


def test_solving_repeats_the_refusal():
    _, G = gaussian_data(11, 6, 2)
    objective = po.GradientMatching(G, norm="l1") + po.Sparsity()
    with pytest.raises(Refused, match="splitting cannot solve this"):
        po.solve(objective, Splitting())


def test_programs_that_run_out_of_steps_are_given_to_clarabel(monkeypatch):
    monkeypatch.setattr(splitting_module, "ADMM_STEPS", 5)
    objective = random_objective(17)
    assert po.solve(objective, Splitting()).gap <= 1e-6


def test_large_programs_that_run_out_of_steps_are_reported(monkeypatch):
    monkeypatch.setattr(splitting_module, "ADMM_STEPS", 5)
    monkeypatch.setattr(splitting_module, "CLARABEL_ROWS", 0)
    X, G = gaussian_data(12, 20, 3)
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 4), norm="linf")
    with pytest.warns(UncertifiedWarning):
        po.solve(po.GradientMatching(G) + 3.0 * loss, Splitting())


def test_large_narrow_graphs_are_solved_by_sparse_factors():
    rng = np.random.default_rng(13)
    X = np.sort(rng.uniform(size=(3000, 1)), axis=0)
    G = np.sin(9 * X) + rng.normal(size=(3000, 2))
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 2))
    assert choose_layout([loss.map.gram]) == "lu"
    objective = po.GradientMatching(G) + 20.0 * loss
    assert po.solve(objective, Splitting()).gap <= 1e-6


SHIFTS = {"one": np.full(3, 1.5), "several": np.array([1.0, 2.5, 2.5])}


@pytest.mark.parametrize("layout", ["dense", "lu", "cg"])
@pytest.mark.parametrize("shifts", SHIFTS.values(), ids=SHIFTS)
def test_systems_are_solved_in_every_layout(layout, shifts):
    X, R = gaussian_data(14, 40, 3)
    P = po.PairwiseRobustness(po.knn_graph(X, 4)).map.gram
    W = factorise(P, shifts, layout).solve(R)
    np.testing.assert_allclose(P @ W + W * shifts, R, atol=1e-9)


@pytest.mark.parametrize("shifts", SHIFTS.values(), ids=SHIFTS)
def test_resistances_are_quadratic_forms_of_the_inverse(shifts):
    X, _ = gaussian_data(15, 12, 3)
    P = po.PairwiseRobustness(po.knn_graph(X, 4)).map.gram.toarray()
    tails, heads = np.array([0, 3, 5]), np.array([4, 1, 2])
    B = np.eye(12)[tails] - np.eye(12)[heads]
    system = factorise(P, shifts, "dense")
    found = np.broadcast_to(system.resistances(tails, heads), (3, 3))
    for j, shift in enumerate(shifts):
        exact = np.diag(B @ np.linalg.inv(P + shift * np.eye(12)) @ B.T)
        np.testing.assert_allclose(found[:, j], exact, rtol=1e-10)


def newton_program(layout: str, smooth: bool) -> Composite:
    X, G = gaussian_data(16, 40, 3)
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 4))
    features = po.chain_graph(3).laplacian.toarray() if smooth else None
    return Composite(
        G=G,
        points=None,
        features=features,
        terms=(Term.of(loss, as_dense=layout == "dense"),),
        layout=layout,
    )


@pytest.mark.parametrize("layout", ["dense", "lu", "cg"])
@pytest.mark.parametrize("smooth", [False, True])
def test_every_layout_has_the_same_optimum(layout, smooth):
    found = minimise(newton_program(layout, smooth), 1e-10)
    expected = minimise(newton_program("dense", smooth), 1e-10)
    assert found.gap <= 1e-10
    assert found.value == pytest.approx(expected.value, rel=2e-10)


def test_newton_never_lowers_the_dual_value():
    program = newton_program("dense", smooth=False)
    newton = EdgeNewton(program)
    rng = np.random.default_rng(0)
    Y = rng.normal(size=program.terms[0].map(program.G).shape)
    bounds = [
        point.value - point.excess
        for point in (newton.run([Y], n_steps, 0.0) for n_steps in range(6))
    ]
    assert bounds[-1] > bounds[0]
    assert bounds[-1] == pytest.approx(minimise(program, 1e-10).value, rel=1e-6)
