"""Points on curves: computed when first read, and then proved."""

import copy
import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
from exact_csv import read_csv
from heavy_edges import heavy

import propopt as po
from propopt.base.errors import (
    InvalidInput,
    SolverFailure,
    UncertifiedWarning,
    UnsolvedWarning,
)
from propopt.losses import Program
from propopt.results.curvature import Eigenbasis
from propopt.results.explanation import is_lazy
from propopt.solvers import Krylov, Task
from propopt.solvers.curves import Nodes, Spectral
from propopt.solvers.solver import Measurement
from propopt.tables.frames import Labels


NAMES, ROWS = ("age", "dose"), tuple("pqrstuvwx")
G = pd.DataFrame(
    np.random.default_rng(3).normal(size=(9, 2)), columns=NAMES, index=ROWS
)
OBJECTIVE = po.GradientMatching(G) + po.PairwiseRobustness(po.chain_graph(9))
THREE = {"pairwise_robustness": [0.1, 1.0, 10.0]}
each_curve = pytest.mark.parametrize("solver", ["spectral", "krylov", "factored"])


def middle(solver="spectral"):
    return po.sweep(OBJECTIVE, THREE, solver=solver, tolerance=1e-4).optimized[1]


def was_read(point):
    return not is_lazy(point)


@pytest.fixture
def solved(monkeypatch):
    """The arguments of each solve."""
    solve, calls = Task.solve, []
    monkeypatch.setattr(Task, "solve", lambda *a: calls.append(a) or solve(*a))
    return calls


@each_curve
def test_everything_but_attributions_is_known_without_solving(solver, solved):
    curve = po.sweep(OBJECTIVE, THREE, solver=solver, tolerance=1e-4)
    curve.to_frame()
    curve.front()
    point = curve.optimized[1]
    assert point.labels == Labels(ROWS, NAMES)
    assert (point.shape, point.units, point.evaluations) == ((9, 2), "gradient", 0)
    assert (point.solver, point.details, point.multipliers) == (solver, {}, {})
    assert point.rates == point.weights == OBJECTIVE.weights
    assert point.certificate.kind == "curve"
    assert f"solver={solver}" in repr(point)
    assert repr(point).startswith("Explanation(optimized, 9 points × 2 features, ")
    unread = vars(point)["attributions"]
    with pytest.raises(InvalidInput, match="labels: expected 9 names of points, got 1"):
        po.Explanation(attributions=unread, method="mine", labels=Labels(("a",)))
    assert not solved
    assert not was_read(point)
    assert not any(isinstance(held, np.ndarray) for held in vars(point).values())
    assert point.attributions is point.attributions
    assert len(solved) == 1
    assert set(vars(point)) == {field.name for field in dataclasses.fields(point)}


@each_curve
def test_the_knee_does_what_every_explanation_does(solver, tmp_path):
    best = po.solve(OBJECTIVE, tolerance=1e-9)
    makers = {
        "measured": lambda e: e.measured(po.Sparsity()),
        "certified": lambda e: e.certified(OBJECTIVE),
        "scaled": lambda e: e.scaled([2.0, 3.0]),
        "grouped": lambda e: e.grouped({"both": NAMES}),
        "replaced": lambda e: dataclasses.replace(e, units="output"),
        "copied": lambda e: copy.deepcopy(e),
    }
    for name, make in makers.items():
        result, expected = make(middle(solver)), make(best)
        assert isinstance(result, po.Explanation)
        pd.testing.assert_frame_equal(
            result.to_frame(), expected.to_frame(), rtol=1e-6, obj=name
        )
        assert result.losses == pytest.approx(expected.losses, rel=1e-6)
        assert (result.units, result.weights) == (expected.units, expected.weights)
    middle(solver).save(tmp_path / "knee")
    loaded = po.Explanation.load(tmp_path / "knee", objective=OBJECTIVE)
    assert loaded.gap <= 1e-4


def test_what_is_made_of_an_unread_point_has_the_proof_and_not_the_claim(tmp_path):
    def loaded(point):
        point.save(tmp_path / "a")
        return po.Explanation.load(tmp_path / "a")

    for make in (
        loaded,
        lambda e: dataclasses.replace(e, method="mine"),
        lambda e: e.measured(OBJECTIVE),
        lambda e: po.Explanation(**{**vars(e), "certificate": None}),  # no claim
    ):
        result = make(middle("krylov"))
        _ = result.attributions
        assert result.certificate == po.certify(OBJECTIVE, result)
        assert result.losses == OBJECTIVE.breakdown(result)


def test_a_card_and_losses_are_those_of_attributions_once_they_are_read():
    point = middle("krylov")
    claimed, card = dict(point.losses), point._repr_html_()
    assert was_read(point)
    assert point.losses != claimed
    assert point.losses == OBJECTIVE.breakdown(point.attributions)
    proof = po.certify(OBJECTIVE.with_weights(point.weights), point.attributions)
    assert point.certificate == proof
    for value in point.losses.values():
        assert f"{value:.6g}" in card
    assert f"gap {point.gap:.1e} (optimization) · target given as numbers" in card


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda e: e])
def test_an_unread_point_is_pickled_unread(copied):
    point = middle()
    again = pickle.loads(pickle.dumps(copied(point)))
    of_fields = po.Explanation(**vars(point))
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
        po.Explanation(method="mine")


# ---- proofs

WEIGHTS = {"pairwise_robustness": np.geomspace(1e-2, 1e2, 9)}


@pytest.fixture
def objective(rng):
    graph = po.knn_graph(rng.normal(size=(40, 3)), 4)
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


MISTAKES = {
    f"{what.__name__} {sign}": what(1 + sign)
    for what in (losses_off_by, eigenvalues_off_by)
    for sign in (1e-4, -1e-4)
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_closed_form_that_is_wrong_by_a_little_is_found_out(
    mistake, objective, monkeypatch
):
    right = po.sweep(objective, WEIGHTS, solver="krylov", tolerance=1e-12)
    monkeypatch.setattr(*mistake)
    wrong = po.sweep(objective, WEIGHTS, solver="spectral")
    with pytest.warns(UncertifiedWarning, match="these losses count"):
        wrong.prove()
    for place in (0, 2, 4, 6, 8):
        point, best = wrong.optimized[place], right.optimized[place]
        assert point.certificate.kind == "strong convexity"
        assert point.certificate.lower_bound <= best.objective * (1 + 1e-12)
        assert point.objective >= best.objective * (1 - 1e-12)
        assert point.losses == objective.breakdown(point.attributions)


def test_curves_that_are_right_are_proved_at_five_points_without_a_word(objective):
    for solver in ("spectral", "krylov"):
        curve = po.sweep(objective, WEIGHTS, solver=solver, tolerance=1e-9)
        before = curve.values
        curve.prove()
        np.testing.assert_allclose(curve.values, before, rtol=1e-8)
        assert curve.certified(1e-9)
        kinds = [point.certificate.kind for point in curve.optimized]
        assert kinds == ["strong convexity", "curve"] * 4 + ["strong convexity"]
    curve = po.sweep(objective, {"pairwise_robustness": np.geomspace(1e-3, 1e3, 101)})
    curve.prove()
    read = [n for n, point in enumerate(curve.optimized) if was_read(point)]
    assert read == [0, 25, 50, 75, 100]
    po.TradeOffs(optimized=(), baselines=(), losses=("sparsity",)).prove()  # of nothing


def test_a_bar_that_was_forgotten_is_found_out(rng, monkeypatch):
    """With an excess of zero the curve of a heavy edge would claim what is wrong."""
    S, G = heavy(rng, 1e13, 200)
    objective = po.GradientMatching(G) + po.PairwiseRobustness(po.graph_from_matrix(S))
    monkeypatch.setattr("propopt.results.curvature.refine", lambda *_: None)
    monkeypatch.setattr(Nodes, "rounding", lambda *_: 0.0)
    curve = po.sweep(objective, {"pairwise_robustness": [1e-2]}, solver="spectral")
    assert curve.optimized[0].gap == 0.0
    with pytest.warns(UncertifiedWarning, match="these losses count"):
        curve.prove()
    assert curve.optimized[0].gap > 0.0


def test_a_claim_beyond_the_tolerance_is_proved_at_once(objective, monkeypatch):
    for kind in (Krylov, Spectral):
        curve = type(kind().prepare(Program(objective.losses)))
        measure = curve.measure

        def vague(self, weights, tolerance, measure=measure):
            result = measure(self, weights, tolerance)
            return Measurement(
                losses=result.losses, excess=1e-3 * weights @ result.losses
            )

        monkeypatch.setattr(curve, "measure", vague)
        result = po.sweep(objective, WEIGHTS, solver=kind().name)
        assert result.certified(1e-6)
        assert all(map(was_read, result.optimized))


def test_what_cannot_be_proved_keeps_its_claim_and_says_so(objective, monkeypatch):
    curve = po.sweep(objective, WEIGHTS)
    monkeypatch.setattr(Task, "solve", fail)
    with pytest.warns(UnsolvedWarning, match="no step was left"):
        curve.prove()
    assert not any(map(was_read, curve.optimized))
    assert curve.certified(1e-6)


REPORTED = """\
data:
  grid: {low: -1, high: 1, per_dimension: 9, dimensions: 1}
function: {name: power, degree: 3}
objective:
  gradient_matching: 1
  pairwise_robustness: {graph: {kind: chain}}
sweep:
  pairwise_robustness: [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
"""


def run(tmp_path):
    (tmp_path / "cubic.yaml").write_text(REPORTED)
    problem = po.problems.read_problem(tmp_path / "cubic.yaml").build()
    return problem, po.problems.run_problem(problem, tmp_path, quiet=True)


def test_a_run_of_a_problem_file_proves_its_curve(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(*losses_off_by(1 - 1e-4))
    problem, curve = run(tmp_path)
    assert "these losses count" in capsys.readouterr().err
    written = read_csv(tmp_path / "cubic.csv")
    for place in (0, 2, 4, 6, 8):
        losses = problem.objective.breakdown(curve.optimized[place].attributions)
        assert written["loss.gradient_matching"][place] == losses["gradient_matching"]


def test_a_run_stopped_while_it_proves_loses_no_point(tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(po.TradeOffs, "prove", stop)
    assert run(tmp_path)[1].interrupted
    assert len(read_csv(tmp_path / "cubic.csv")) == 9
