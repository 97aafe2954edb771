"""Points on exact curves: ordinary explanations, computed when they are first read."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.base.errors import InvalidInput, SolverFailure
from propopt.results.explanation import is_lazy
from propopt.solvers import Task
from propopt.tables.frames import Labels


NAMES, ROWS = ("age", "dose"), tuple("pqrstuvwx")
G = pd.DataFrame(
    np.random.default_rng(3).normal(size=(9, 2)), columns=NAMES, index=ROWS
)
OBJECTIVE = po.GradientMatching(G) + po.PairwiseRobustness(po.chain_graph(9))
WEIGHTS = {"pairwise_robustness": [0.1, 1.0, 10.0]}
CURVES = ("spectral", "krylov", "factored")
each_curve = pytest.mark.parametrize("solver", CURVES)


def middle(solver="spectral"):
    return po.sweep(OBJECTIVE, WEIGHTS, solver=solver, tolerance=1e-4).optimized[1]


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
    point = middle(solver)
    assert point.labels == Labels(ROWS, NAMES)
    assert (point.shape, point.units, point.evaluations) == ((9, 2), "gradient", 0)
    assert (point.solver, point.details, point.multipliers) == (solver, {}, {})
    assert point.rates == point.weights == OBJECTIVE.weights
    assert point.certificate.kind == "curve"
    assert f"solver={solver}" in repr(point)
    assert repr(point).startswith("Explanation(optimized, 9 points × 2 features, ")
    assert not solved
    assert not was_read(point)
    assert not any(isinstance(held, np.ndarray) for held in vars(point).values())


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


def saved_and_loaded(point, path):
    point.save(path)
    return po.Explanation.load(path)


def test_what_is_made_of_an_unread_point_has_the_proof_and_not_the_claim(tmp_path):
    makers = {
        "replaced": lambda e: dataclasses.replace(e, method="mine"),
        "measured": lambda e: e.measured(OBJECTIVE),
        "loaded": lambda e: (
            e.save(tmp_path / "a") or po.Explanation.load(tmp_path / "a")
        ),
    }
    for make in makers.values():
        result = make(middle("krylov"))
        assert result.certificate == po.certify(OBJECTIVE, result)
        assert result.losses == OBJECTIVE.breakdown(result)


def test_the_card_of_a_notebook_shows_the_losses_of_what_it_draws():
    point = middle("krylov")
    card = point._repr_html_()
    assert was_read(point)
    for value in point.losses.values():
        assert f"{value:.6g}" in card
    assert f"gap {point.gap:.1e} (optimization) · target given as numbers" in card


def test_attributions_are_kept_once_they_are_read(solved):
    point = middle()
    assert point.attributions is point.attributions
    assert len(solved) == 1
    assert set(vars(point)) == {field.name for field in dataclasses.fields(point)}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda e: e])
def test_an_unread_point_is_pickled_unread(copied):
    point = middle()
    again = pickle.loads(pickle.dumps(copied(point)))
    assert not was_read(again)
    assert again.losses == point.losses
    np.testing.assert_array_equal(again.attributions, point.attributions)
    assert again.certificate == point.certificate


def test_a_point_that_was_read_is_pickled_without_its_curve():
    point = middle()
    _ = point.attributions
    data = pickle.dumps(point)
    assert b"Task" not in data
    assert not pickle.loads(data).attributions.flags.writeable


def test_the_fields_of_an_unread_point_make_another():
    point = middle()
    again = po.Explanation(**vars(point))
    assert not was_read(again)
    np.testing.assert_array_equal(again.attributions, point.attributions)


def test_a_failure_leaves_the_claim_and_may_pass(monkeypatch):
    point = middle()
    claim = point.certificate

    def fail(*_):
        raise SolverFailure("no step was left")

    with monkeypatch.context() as patch:
        patch.setattr(Task, "solve", fail)
        with pytest.raises(SolverFailure, match="no step was left"):
            _ = point.attributions
    assert point.certificate is claim
    assert point.attributions.shape == (9, 2)
    assert point.certificate.kind == "strong convexity"


def test_names_of_another_shape_are_refused_before_anything_is_computed(solved):
    unread = vars(middle())["attributions"]
    with pytest.raises(InvalidInput, match="labels: expected 9 names of points, got 1"):
        po.Explanation(attributions=unread, method="mine", labels=Labels(("a",)))
    assert not solved


def test_an_explanation_has_attributions():
    with pytest.raises(TypeError, match="attributions"):
        po.Explanation(method="mine")
