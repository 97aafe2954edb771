"""Certificates of curves come from attributions, wherever those are known."""

import numpy as np
import pytest
from exact_csv import read_csv
from heavy_edges import heavy

import propopt as po
from propopt.base.errors import SolverFailure, UncertifiedWarning, UnsolvedWarning
from propopt.losses import Program
from propopt.results.curvature import Eigenbasis
from propopt.results.explanation import is_lazy
from propopt.solvers import Krylov, Task
from propopt.solvers.curves import Nodes, Spectral
from propopt.solvers.solver import Measurement


WEIGHTS = {"pairwise_robustness": np.geomspace(1e-2, 1e2, 9)}


@pytest.fixture
def objective(rng):
    graph = po.knn_graph(rng.normal(size=(40, 3)), 4)
    G = rng.normal(size=(40, 3))
    return po.GradientMatching(G) + po.PairwiseRobustness(graph)


def was_read(point):
    return not is_lazy(point)


def losses_off_by(factor):
    original = Nodes.losses

    def losses(self, abc):
        return factor * original(self, abc)

    return Nodes, "losses", losses


def eigenvalues_off_by(factor):
    original = Eigenbasis.__dict__["values"].func
    return Eigenbasis, "values", property(lambda self: factor * original(self))


@pytest.mark.parametrize(
    "mistake",
    [
        losses_off_by(1 + 1e-4),
        losses_off_by(1 - 1e-4),
        eigenvalues_off_by(1 + 1e-4),
        eigenvalues_off_by(1 - 1e-4),
    ],
    ids=["losses high", "losses low", "eigenvalues high", "eigenvalues low"],
)
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


def test_curves_that_are_right_are_proved_without_a_word(objective):
    for solver in ("spectral", "krylov"):
        curve = po.sweep(objective, WEIGHTS, solver=solver, tolerance=1e-9)
        before = curve.values
        curve.prove()
        np.testing.assert_allclose(curve.values, before, rtol=1e-8)
        assert curve.certified(1e-9)
        kinds = [point.certificate.kind for point in curve.optimized]
        assert kinds == ["strong convexity", "curve"] * 4 + ["strong convexity"]


def test_a_point_has_the_losses_of_its_attributions_once_they_are_read(objective):
    curve = po.sweep(objective, WEIGHTS, solver="krylov", tolerance=1e-3)
    point = curve.optimized[5]
    claimed = dict(point.losses)
    W = point.attributions
    assert point.losses == {loss.name: loss.value(W) for loss in objective.losses}
    assert point.losses != claimed
    proof = po.certify(objective.with_weights(point.weights), W)
    assert point.certificate == proof


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


def test_the_ends_and_three_points_between_are_proved(objective):
    curve = po.sweep(objective, {"pairwise_robustness": np.geomspace(1e-3, 1e3, 101)})
    curve.prove()
    read = [n for n, point in enumerate(curve.optimized) if was_read(point)]
    assert read == [0, 25, 50, 75, 100]


def test_what_cannot_be_proved_keeps_its_claim_and_says_so(objective, monkeypatch):
    curve = po.sweep(objective, WEIGHTS)

    def fail(*_):
        raise SolverFailure("no step was left")

    monkeypatch.setattr(Task, "solve", fail)
    with pytest.warns(UnsolvedWarning, match="no step was left"):
        curve.prove()
    assert not any(map(was_read, curve.optimized))
    assert curve.certified(1e-6)


def test_nothing_is_proved_of_nothing():
    po.TradeOffs(optimized=(), baselines=(), losses=("sparsity",)).prove()


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


def test_a_run_of_a_problem_file_proves_its_curve(tmp_path, monkeypatch, capsys):
    (tmp_path / "cubic.yaml").write_text(REPORTED)
    monkeypatch.setattr(*losses_off_by(1 - 1e-4))
    problem = po.problems.read_problem(tmp_path / "cubic.yaml").build()
    curve = po.problems.run_problem(problem, tmp_path, quiet=True)
    assert "these losses count" in capsys.readouterr().err
    written = read_csv(tmp_path / "cubic.csv")
    for place in (0, 2, 4, 6, 8):
        losses = problem.objective.breakdown(curve.optimized[place].attributions)
        assert written["loss.gradient_matching"][place] == losses["gradient_matching"]


def test_a_run_stopped_while_it_proves_loses_no_point(tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    (tmp_path / "cubic.yaml").write_text(REPORTED)
    monkeypatch.setattr(po.TradeOffs, "prove", stop)
    problem = po.problems.read_problem(tmp_path / "cubic.yaml").build()
    curve = po.problems.run_problem(problem, tmp_path, quiet=True)
    assert curve.interrupted
    assert len(read_csv(tmp_path / "cubic.csv")) == 9
