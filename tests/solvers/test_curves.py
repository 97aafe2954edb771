"""Exact curves without attributions, to the last digit; their points, once read."""

import copy
import dataclasses
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.linalg as la
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from oracles import exact_optimum

import propopt as po
from propopt.base.errors import (
    InvalidInput,
    SolverFailure,
    UncertifiedWarning,
    UnsolvedWarning,
)
from propopt.losses import Program
from propopt.proofs.curvature import Eigenbasis
from propopt.solvers import Krylov, Task, curves
from propopt.solvers.curves import Nodes, Spectral, choose_curve_solver
from propopt.solvers.solver import Measurement
from propopt.tables.frames import Labels


def heavy(rng, weight, n_points):
    """A graph with one edge far above all others, and gradients alike at its ends."""
    S = po.graphs.knn_graph(rng.normal(size=(n_points, 3)), 6).similarities.tolil()
    S[0, 1] = S[1, 0] = weight
    G = rng.normal(size=(n_points, 2))
    G[1] = G[0]
    return S.tocsr(), G


SOLVERS = [Krylov(), Spectral()]
each_solver = pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)


@pytest.fixture
def X(rng):
    return rng.normal(size=(40, 3))


@pytest.fixture
def G(rng):
    return rng.normal(size=(40, 5))


def graphs(X):
    yield po.graphs.gaussian_graph(X)
    yield po.graphs.knn_graph(X, 4)
    yield po.graphs.LatticeGraph((5, 8))
    yield po.graphs.GridGaussianGraph([np.linspace(0, 1, 5), np.linspace(0, 2, 8)], 0.5)
    yield po.graphs.chain_graph(40)


def objective(G, graph):
    smooth = po.Smoothness(po.graphs.chain_graph(5))
    return po.GradientMatching(G) + po.PairwiseRobustness(graph) + smooth


def test_curves_agree_and_their_excess_bounds_the_distance_to_the_optimum(X, G):
    for graph in graphs(X):
        program = Program(objective(G, graph).losses)
        exact, lanczos = Spectral().prepare(program), Krylov().prepare(program)
        for b in (0.0, 1e-3, 1.0, 1e3):
            for c in (0.0, 0.1, 10.0):
                weights = np.array([1.0, b, c])
                one, two = (x.measure(weights, 1e-9) for x in (exact, lanczos))
                ours, other = one.losses, two.losses
                np.testing.assert_allclose(other, ours, rtol=1e-6, atol=1e-12)
        weights = np.array([1.0, 30.0, 0.2])
        best = weights @ exact.measure(weights, 1e-9).losses
        for tolerance in (1e-1, 1e-2, 1e-4, 1e-8):
            result = lanczos.measure(weights, tolerance)
            value = weights @ result.losses
            assert value - result.excess <= best * (1 + 1e-12)
            assert best <= value * (1 + 1e-12)
            assert result.excess <= tolerance * value


def test_auto_takes_an_eigenbasis_for_few_points_and_krylov_for_many(rng):
    points = rng.uniform(-5, 5, size=(700, 2))
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    chosen = {
        "krylov": po.PairwiseRobustness(
            po.graphs.knn_graph(rng.normal(size=(20_000, 3)), 8)
        ),
        "spectral": po.PairwiseRobustness(po.graphs.chain_graph(20)),
        "factored": po.PairwiseRobustness(po.graphs.chain_graph(20_000)),
        "factored ": po.PairwiseRobustness(
            po.graphs.knn_graph(rng.normal(size=(20_000, 1)), 3)
        ),
        "spectral ": po.losses.KernelRobustness(
            np.exp(-squares / 4.5) + 1e-8 * np.eye(700)
        ),
    }
    for name, loss in chosen.items():
        matching = po.GradientMatching(np.ones((loss.n_points, 2)))
        program = Program((matching, loss))
        assert po.solvers.Auto().select(program).name == name.strip()


def test_lanczos_that_does_not_converge_says_so(rng, monkeypatch):
    monkeypatch.setattr("propopt.solvers.curves.MOST_STEPS", 20)
    G = rng.normal(size=(2000, 1))
    objective = po.GradientMatching(G) + po.PairwiseRobustness(
        po.graphs.chain_graph(2000)
    )
    with pytest.raises(SolverFailure, match=r"Lanczos did not converge in \d+ steps"):
        po.sweep(objective, {"pairwise_robustness": [1e6]}, solver="krylov")


def test_gradients_that_are_constant_on_components_do_not_change(rng):
    apart = po.graphs.graph_from_matrix(
        np.kron(np.eye(2), np.ones((300, 300))) - np.eye(600)
    )
    whole = po.graphs.knn_graph(rng.normal(size=(600, 2)), 6)
    steps = np.repeat([[1.0], [-3.0]], 300, axis=0)
    for graph, G in ((whole, np.ones((600, 2))), (apart, steps)):
        objective = po.GradientMatching(G) + po.PairwiseRobustness(graph)
        weights = {"pairwise_robustness": [0.1, 10.0]}
        result = po.sweep(objective, weights, solver="krylov")
        # P g is rounding: so is everything that Lanczos sees
        np.testing.assert_allclose(result.values, 0.0, atol=1e-12)
        assert result.certified(1e-6)
        np.testing.assert_allclose(result.optimized[0].attributions, G, rtol=1e-9)


def curve_of(objective, solver):
    return solver.prepare(Program(objective.losses))


def optimum(objective, solver, weights, tolerance=1e-12):
    """The objective on the curve, and its bar."""
    result = curve_of(objective, solver).measure(np.array(weights), tolerance)
    return float(weights @ result.losses), result.excess


@pytest.mark.parametrize("offset", [1e4, 1e5, 1e6])
@pytest.mark.parametrize(("solver", "n_points"), [(Krylov(), 3000), (Spectral(), 300)])
def test_an_offset_costs_no_digits(solver, n_points, offset, rng):
    graph = po.graphs.knn_graph(rng.normal(size=(n_points, 3)), 6)
    G = rng.normal(size=(n_points, 3)) + offset
    smooth = po.Smoothness(po.graphs.chain_graph(3))

    def objective(G):
        return po.GradientMatching(G) + po.PairwiseRobustness(graph) + smooth

    for weight in (1e-2, 1.0, 1e3):
        weights = np.array([1.0, weight, 0.3])
        result, _ = optimum(objective(G), solver, weights)
        # G − offset is exact, and constants cost nothing
        without, _ = optimum(objective(G - offset), solver, weights)
        assert result == pytest.approx(without, rel=1e-11, abs=0)


@each_solver
def test_attributions_keep_the_offset_of_each_component(solver, rng):
    S = np.kron(np.eye(2), np.ones((20, 20)) - np.eye(20))
    R = rng.normal(size=(40, 2))
    offset = np.repeat([[1e6, -3e6], [2e5, 0.0]], 20, axis=0)
    robust = po.PairwiseRobustness(po.graphs.graph_from_matrix(S))
    G = R + offset
    weights = np.array([1.0, 0.7])
    plain = curve_of(po.GradientMatching(G - offset) + robust, solver)
    moved = curve_of(po.GradientMatching(G) + robust, solver)
    expected = plain.solve(weights, 1e-13).W + offset
    # to the last digit of numbers of that size
    np.testing.assert_allclose(moved.solve(weights, 1e-13).W, expected, rtol=4e-16)


def test_a_curve_goes_on_after_attributions_of_a_large_table(rng, monkeypatch):
    monkeypatch.setattr(curves, "_RETAINED", 0)
    graph = po.graphs.knn_graph(rng.normal(size=(200, 3)), 4)
    objective = po.GradientMatching(rng.normal(size=(200, 5)))
    objective = objective + po.PairwiseRobustness(graph)
    curve, closed = (curve_of(objective, x) for x in (Krylov(), Spectral()))
    for weight, tolerance in ((0.1, 1e-3), (1e3, 1e-10), (1e-2, 1e-10)):
        weights = np.array([1.0, weight])
        losses = curve.measure(weights, tolerance).losses
        expected = closed.measure(weights, tolerance).losses
        np.testing.assert_allclose(losses, expected, rtol=10.0 * tolerance)
        W = curve.solve(weights, 1e-12).W
        np.testing.assert_allclose(W, closed.solve(weights, 1e-12).W, atol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e7])  # one batch of components, and two
def test_the_order_of_rows_in_memory_does_not_change_attributions(
    scale, rng, monkeypatch
):
    S = po.graphs.knn_graph(rng.normal(size=(30, 3)), 4).similarities.toarray()
    shuffled = rng.permutation(60)
    S = la.block_diag(S, scale * S)[np.ix_(shuffled, shuffled)]
    robust = po.PairwiseRobustness(po.graphs.graph_from_matrix(S))
    objective = po.GradientMatching(rng.normal(size=(60, 5))) + robust
    weights = np.array([1.0, 0.7])
    closed = curve_of(objective, Spectral())
    monkeypatch.setattr(curves, "_IN_CACHE", 0)
    ordered = curve_of(objective, Krylov())
    np.testing.assert_allclose(
        ordered.solve(weights, 1e-15).W, closed.solve(weights, 1e-15).W, atol=1e-7
    )
    losses = ordered.measure(weights, 1e-10).losses
    expected = closed.measure(weights, 1e-10).losses
    np.testing.assert_allclose(losses, expected, rtol=1e-7)


@each_solver
@pytest.mark.parametrize("block", range(5))
def test_the_bar_of_a_curve_holds_the_optimum_whatever_the_graph(solver, block):
    for seed in range(5 * block, 5 * block + 5):
        objective, weights, exact = random_problem(np.random.default_rng(seed))
        value, excess = optimum(objective, solver, weights, tolerance=1e-9)
        assert abs(value - exact) <= excess
        assert excess >= 1e-14 * exact  # no curve knows more digits than it has
        if solver.name == "spectral":  # over sixteen decades
            value, excess = optimum(objective, solver, weights)
            assert value == pytest.approx(exact, rel=1e-9, abs=0)
            assert excess <= 1e-8 * exact


def random_problem(rng):
    """Similarities over up to 16 decades, offsets and scales, and the exact optimum."""
    n_points, n_features = int(rng.integers(2, 9)), int(rng.integers(1, 3))
    decades = rng.choice([0, 6, 10, 16]) * rng.uniform(-0.5, 0.5, (n_points, n_points))
    S = np.where(rng.random(decades.shape) < rng.choice([0.3, 1.0]), 10.0**decades, 0.0)
    S = np.triu(S, 1) + np.triu(S, 1).T
    T = np.triu(rng.uniform(0.1, 10.0, (n_features, n_features)), 1)
    T += T.T
    G = rng.normal(size=(n_points, n_features)) * 10.0 ** rng.integers(-6, 7)
    G += rng.choice([0.0, 1e3, 1e6])
    b, c = 10.0 ** rng.uniform(-8, 8), 10.0 ** rng.uniform(-4, 4)
    robust = po.PairwiseRobustness(po.graphs.graph_from_matrix(S))
    smooth = po.Smoothness(po.graphs.graph_from_matrix(T))
    objective = po.GradientMatching(G) + robust + smooth
    return objective, np.array([1.0, b, c]), float(exact_optimum(G, b * S, c * T))


def with_equal_ends(S, G, weight):
    """The best explanation with W[0] = W[1], and its objective."""
    n_points = len(G)
    S = S.tolil()
    S[0, 1] = S[1, 0] = 0.0
    laplacian = 2.0 * po.graphs.graph_from_matrix(S.tocsr()).laplacian
    indices = np.maximum(np.arange(n_points) - 1, 0)
    merged = sp.csr_array((np.ones(n_points), (np.arange(n_points), indices)))
    hessian = merged.T @ (sp.eye_array(n_points) + weight * laplacian) @ merged
    W = merged @ spla.spsolve(sp.csc_array(hessian), merged.T @ G)
    return float(((W - G) ** 2).sum() + weight * np.vdot(W, laplacian @ W))


HEAVY = [
    (solver, n_points, edge)
    for solver, n_points in ((Krylov(), 1000), (Spectral(), 200))
    for edge in (1e6, 1e10, 1e13, 1e17)
]


@pytest.mark.parametrize(("solver", "n_points", "edge"), HEAVY)
@pytest.mark.filterwarnings("ignore::propopt.base.errors.UncertifiedWarning")
def test_no_curve_claims_more_than_a_feasible_explanation(solver, n_points, edge, rng):
    S, G = heavy(rng, edge, n_points)
    objective = po.GradientMatching(G) + po.PairwiseRobustness(
        po.graphs.graph_from_matrix(S)
    )
    for weight in (1e-2, 1.0, 1e2):
        weights = np.array([1.0, weight])
        value, excess = optimum(objective, solver, weights, tolerance=1e-6)
        reference = with_equal_ends(S, G, weight)
        assert value - excess <= reference * (1 + 1e-9)
        # the heavy edge forces its ends together: nothing much better is possible
        assert value + excess >= reference * (1 - 1e-2 / edge - 1e-9)
        if solver.name == "spectral" and edge > 1e6:  # it sees past the edge
            value, excess = optimum(objective, solver, weights)
            assert value == pytest.approx(reference, rel=1e-12 + 1e-2 / edge)
            assert excess <= 1e-11 * reference


def test_what_a_heavy_edge_hides_is_announced(rng):
    S, G = heavy(rng, 1e17, 1000)
    objective = po.GradientMatching(G) + po.PairwiseRobustness(
        po.graphs.graph_from_matrix(S)
    )
    with pytest.warns(UncertifiedWarning, match="certified gap"):
        result = po.sweep(objective, {"pairwise_robustness": [1.0]}, solver="krylov")
    reference = with_equal_ends(S, G, 1.0)
    (point,) = result.optimized
    assert point.gap > 1e-6
    assert point.certificate.lower_bound <= reference * (1 + 1e-9)
    assert point.objective >= reference * (1 - 1e-9)


NAMES, ROWS = ("age", "dose"), tuple("pqrstuvwx")
NUMBERS = np.random.default_rng(3).normal(size=(9, 2))
FRAME = pd.DataFrame(NUMBERS, columns=NAMES, index=ROWS)
OBJECTIVE = po.GradientMatching(FRAME) + po.PairwiseRobustness(po.graphs.chain_graph(9))
THREE = {"pairwise_robustness": [0.1, 1.0, 10.0]}
each_curve = pytest.mark.parametrize("solver", ["spectral", "krylov", "factored"])


def middle(solver="spectral"):
    return po.sweep(OBJECTIVE, THREE, solver=solver, tolerance=1e-4).optimized[1]


def was_read(point):
    return not point.is_lazy("attributions")


@pytest.fixture
def solved(monkeypatch):
    """The arguments of each solve."""
    solve, calls = Task.solve, []
    monkeypatch.setattr(Task, "solve", lambda *a: calls.append(a) or solve(*a))
    return calls


@each_curve
def test_everything_but_attributions_is_available_without_solving(solver, solved):
    curve = po.sweep(OBJECTIVE, THREE, solver=solver, tolerance=1e-4)
    curve.to_frame()
    curve.front()
    point = curve.optimized[1]
    assert point.labels == Labels(ROWS, NAMES)
    assert (point.shape, point.units, point.evaluations) == ((9, 2), "gradient", 0)
    assert (point.solver, point.details, point.multipliers) == (solver, {}, {})
    assert point.rates == point.weights == OBJECTIVE.weights
    assert point.certificate.kind == "curve"
    assert repr(point).startswith("Explanation(optimized, 9 rows × 2 features, ")
    unread = point.unread("attributions")
    with pytest.raises(InvalidInput, match="labels: expected 9 names of points, got 1"):
        po.results.Explanation(
            attributions=unread, method="mine", labels=Labels(("a",))
        )
    assert not solved
    assert not was_read(point)
    assert not any(isinstance(held, np.ndarray) for held in vars(point).values())
    assert point.attributions is point.attributions
    assert len(solved) == 1
    names = {name.removesuffix(" later") for name in vars(point)}
    cached = {"shape"}
    assert names - cached == {field.name for field in dataclasses.fields(point)}


def stored(point):
    return {field.name: point.unread(field.name) for field in dataclasses.fields(point)}


def test_what_is_made_of_an_unread_point_has_the_proof_and_not_the_claim(tmp_path):
    def loaded(point):
        point.save(tmp_path / "a")
        return po.results.Explanation.load(tmp_path / "a")

    for make in (
        loaded,
        lambda e: dataclasses.replace(e, method="mine"),
        lambda e: e.measured(OBJECTIVE),
        lambda e: po.results.Explanation(
            **{**stored(e), "certificate": None}
        ),  # no claim
    ):
        result = make(middle("krylov"))
        _ = result.attributions
        assert result.certificate == po.proofs.certify(OBJECTIVE, result)
        assert result.losses == OBJECTIVE.breakdown(result)


def test_a_card_and_losses_are_those_of_attributions_once_they_are_read():
    point = middle("krylov")
    claimed = dict(point.losses)
    point._repr_html_()
    assert was_read(point)
    assert point.losses != claimed
    assert point.losses == OBJECTIVE.breakdown(point.attributions)
    proof = po.proofs.certify(OBJECTIVE.with_weights(point.weights), point.attributions)
    assert point.certificate == proof


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda e: e])
def test_an_unread_point_is_pickled_unread(copied):
    point = middle()
    again = pickle.loads(pickle.dumps(copied(point)))
    of_fields = po.results.Explanation(**stored(point))
    for other in (again, of_fields):
        assert not was_read(other)
        assert other.losses == point.losses
    np.testing.assert_array_equal(again.attributions, point.attributions)
    np.testing.assert_array_equal(of_fields.attributions, point.attributions)
    assert again.certificate == point.certificate
    data = pickle.dumps(point)  # it was read
    assert b"Task" not in data
    assert not pickle.loads(data).attributions.flags.writeable


def fail(*_):
    raise SolverFailure("no step was left")


def test_a_failure_leaves_the_claim_and_may_pass(monkeypatch):
    point = middle()
    claim = point.certificate
    with monkeypatch.context() as patch:
        patch.setattr(Task, "solve", fail)
        with pytest.raises(SolverFailure, match="no step was left"):
            _ = point.attributions
    assert point.certificate is claim
    assert point.attributions.shape == (9, 2)
    assert point.certificate.kind == "strong convexity"
    with pytest.raises(TypeError, match="attributions"):
        po.results.Explanation(method="mine")


WEIGHTS = {"pairwise_robustness": np.geomspace(1e-2, 1e2, 9)}


@pytest.fixture
def problem(rng):
    graph = po.graphs.knn_graph(rng.normal(size=(40, 3)), 4)
    G = rng.normal(size=(40, 3))
    return po.GradientMatching(G) + po.PairwiseRobustness(graph)


def losses_off_by(factor):
    original = Nodes.losses

    def losses(self, abc):
        return factor * original(self, abc)

    return Nodes, "losses", losses


def eigenvalues_off_by(factor):
    original = Eigenbasis.__dict__["values"].func
    return Eigenbasis, "values", property(lambda self: factor * original(self))


OFF_BY = itertools.product((losses_off_by, eigenvalues_off_by), (1e-4, -1e-4))
MISTAKES = {f"{what.__name__} {sign}": what(1 + sign) for what, sign in OFF_BY}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_closed_form_that_is_slightly_wrong_fails(mistake, problem, monkeypatch):
    right = po.sweep(problem, WEIGHTS, solver="krylov", tolerance=1e-12)
    monkeypatch.setattr(*mistake)
    wrong = po.sweep(problem, WEIGHTS, solver="spectral")
    with pytest.warns(UncertifiedWarning, match="these losses count"):
        wrong.prove()
    for position in (0, 2, 4, 6, 8):
        point, best = wrong.optimized[position], right.optimized[position]
        assert point.certificate.kind == "strong convexity"
        assert point.certificate.lower_bound <= best.objective * (1 + 1e-12)
        assert point.objective >= best.objective * (1 - 1e-12)
        assert point.losses == problem.breakdown(point.attributions)


def test_curves_that_are_right_are_proved_at_five_points_without_a_word(problem):
    for solver in ("spectral", "krylov"):
        curve = po.sweep(problem, WEIGHTS, solver=solver, tolerance=1e-9)
        before = curve.values
        curve.prove()
        np.testing.assert_allclose(curve.values, before, rtol=1e-8)
        assert curve.certified(1e-9)
        kinds = [point.certificate.kind for point in curve.optimized]
        assert kinds == ["strong convexity", "curve"] * 4 + ["strong convexity"]
    curve = po.sweep(problem, {"pairwise_robustness": np.geomspace(1e-3, 1e3, 101)})
    curve.prove()
    read = [n for n, point in enumerate(curve.optimized) if was_read(point)]
    assert read == [0, 25, 50, 75, 100]
    po.TradeOffs(optimized=(), baselines=(), losses=("sparsity",)).prove()  # of nothing


def test_large_attributions_are_proved_and_not_retained(problem, monkeypatch, tmp_path):
    small, large = (po.sweep(problem, WEIGHTS, solver="krylov") for _ in range(2))
    small.prove()
    monkeypatch.setattr("propopt.explaining.trade_offs._MOST_RETAINED", 0)
    large.prove()
    assert not any(map(was_read, large.optimized))
    for one, other in zip(small.optimized, large.optimized, strict=True):
        assert one.losses == other.losses
        assert one.certificate == other.certificate
        assert one.attributions.tobytes() == other.attributions.tobytes()
    large.save(tmp_path / "large.npz")  # which needs all of them
    assert len(po.TradeOffs.load(tmp_path / "large.npz").optimized) == 9


def test_a_missing_excess_is_detected(rng, monkeypatch):
    """With an excess of zero the curve of a heavy edge would claim what is wrong."""
    S, G = heavy(rng, 1e13, 200)
    robust = po.PairwiseRobustness(po.graphs.graph_from_matrix(S))
    problem = po.GradientMatching(G) + robust
    monkeypatch.setattr("propopt.proofs.curvature.refine", lambda *_: None)
    monkeypatch.setattr(Nodes, "rounding", lambda *_: 0.0)
    curve = po.sweep(problem, {"pairwise_robustness": [1e-2]}, solver="spectral")
    assert curve.optimized[0].gap == 0.0
    with pytest.warns(UncertifiedWarning, match="these losses count"):
        curve.prove()
    assert curve.optimized[0].gap > 0.0


def test_a_claim_beyond_the_tolerance_is_proved_at_once(problem, monkeypatch):
    for kind in (Krylov, Spectral):
        curve = type(kind().prepare(Program(problem.losses)))
        measure = curve.measure

        def vague(self, weights, tolerance, measure=measure):
            result = measure(self, weights, tolerance)
            excess = 1e-3 * weights @ result.losses
            return Measurement(losses=result.losses, excess=excess)

        monkeypatch.setattr(curve, "measure", vague)
        result = po.sweep(problem, WEIGHTS, solver=kind().name)
        assert result.certified(1e-6)
        assert all(map(was_read, result.optimized))


def test_what_cannot_be_proved_keeps_its_claim_and_says_so(problem, monkeypatch):
    curve = po.sweep(problem, WEIGHTS)
    monkeypatch.setattr(Task, "solve", fail)
    with pytest.warns(UnsolvedWarning, match="no step was left"):
        curve.prove()
    assert not any(map(was_read, curve.optimized))
    assert curve.certified(1e-6)


def test_attributions_do_not_depend_on_what_was_measured_before(rng):
    X = rng.normal(size=(600, 10))
    robust = po.PairwiseRobustness(po.graphs.gaussian_graph(X))
    program = Program((po.GradientMatching(rng.normal(size=(600, 10))), robust))
    chosen = choose_curve_solver(program)
    assert isinstance(chosen, Krylov)
    weights = np.array([1.0, 1.0])
    alone = chosen.prepare(program).solve(weights, 1e-9).W
    prepared = chosen.prepare(program)
    prepared.measure(weights, 1e-9)
    np.testing.assert_array_equal(prepared.solve(weights, 1e-9).W, alone)
