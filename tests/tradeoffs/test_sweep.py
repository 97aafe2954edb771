"""Sweeps: many weights at once, what is kept when something stops, and the table."""

from __future__ import annotations

import csv
import os
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import propopt as po
from propopt.errors import (
    InterruptedWarning,
    InvalidInput,
    Refused,
    SolverFailure,
    TrivialObjectiveWarning,
    UnsolvedWarning,
)
from propopt.solvers import Prepared, Solver


WEIGHTS = [0.01, 0.1, 1.0, 10.0, 100.0]


@pytest.fixture
def X(rng):
    return rng.normal(size=(12, 3))


@pytest.fixture
def objective(X):
    return po.GradientMatching(3 * X**2) + po.PairwiseRobustness(po.knn_graph(X, 3))


@pytest.fixture
def rough(X):
    """An objective that no closed form solves."""
    graph = po.knn_graph(X, 3)
    return po.GradientMatching(3 * X**2) + po.PairwiseRobustness(graph) + po.Sparsity()


def explanation(method="lime", *, losses=(), **fields):
    named = {f"loss{n}": float(value) for n, value in enumerate(losses)}
    return po.Explanation(
        attributions=np.zeros((2, 2)), method=method, losses=named, **fields
    )


def table_of(rows):
    """Trade-offs of baselines with these losses, one row each."""
    baselines = tuple(explanation(losses=row) for row in rows)
    names = tuple(f"loss{n}" for n in range(len(rows[0])))
    return po.TradeOffs(optimized=(), baselines=baselines, losses=names)


class Scripted(Solver):
    """A solver that does what a script says at each solve: an error, or a solution."""

    def __init__(self, solver, script):
        self.solver = solver
        self.script = dict(script)
        self.solved = []
        self.starts = []

    @property
    def name(self):
        return "scripted"

    def refusal(self, program):
        return self.solver.refusal(program)

    def prepare(self, program):
        return ScriptedProgram(self, self.solver.prepare(program))


class ScriptedProgram(Prepared):
    def __init__(self, owner, prepared):
        self.owner = owner
        self.prepared = prepared

    def solve(self, weights, tolerance, start=None):
        number = len(self.owner.solved)
        self.owner.solved.append(weights)
        self.owner.starts.append(start)
        if number in self.owner.script:
            raise self.owner.script[number]
        return self.prepared.solve(weights, tolerance, start)


# ---- weights


def test_combinations_in_order_the_last_name_fastest(X):
    objective = (
        po.GradientMatching(X)
        + po.PairwiseRobustness(po.chain_graph(12))
        + po.Smoothness(po.chain_graph(3))
    )
    curve = po.sweep(objective, {"smoothness": [3, 1], "pairwise_robustness": [0, 2]})
    found = [
        (e.weights["smoothness"], e.weights["pairwise_robustness"])
        for e in curve.optimized
    ]
    assert found == [(3, 0), (3, 2), (1, 0), (1, 2)]
    assert all(e.weights["gradient_matching"] == 1.0 for e in curve.optimized)


def test_a_single_weight_may_be_a_number(objective):
    curve = po.sweep(
        objective, {"gradient_matching": 2, "pairwise_robustness": np.array([1.0, 2.0])}
    )
    assert [e.weights for e in curve.optimized] == [
        {"gradient_matching": 2.0, "pairwise_robustness": 1.0},
        {"gradient_matching": 2.0, "pairwise_robustness": 2.0},
    ]


def test_no_weights_is_one_solve(objective):
    (best,) = po.sweep(objective, {}).optimized
    np.testing.assert_array_equal(best.attributions, po.solve(objective).attributions)


def test_a_single_loss_is_an_objective(X):
    (best,) = po.sweep(po.GradientMatching(X), {"gradient_matching": 3}).optimized
    assert best.weights == {"gradient_matching": 3.0}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"robustness": [1]}, "no loss is called 'robustness'"),
        ({"pairwise_robustness": []}, "pairwise_robustness has no values"),
        ({"pairwise_robustness": [1, -1]}, "expected a finite number >= 0, got -1"),
        (
            {"pairwise_robustness": [1, np.nan]},
            "expected a finite number >= 0, got nan",
        ),
        (
            {"pairwise_robustness": [1, np.inf]},
            "expected a finite number >= 0, got inf",
        ),
        ({"pairwise_robustness": "strong"}, "expected a number, got 'strong'"),
        ({"pairwise_robustness": [[1, 2]]}, "expected a number, got"),
        (
            {"gradient_matching": [1, 0], "pairwise_robustness": [1, 0]},
            "all are zero at {'gradient_matching': 0, 'pairwise_robustness': 0}",
        ),
    ],
)
def test_bad_weights_are_refused_before_any_work(objective, weights, message):
    solver = Scripted(po.solvers.Spectral(), {})
    with pytest.raises(InvalidInput, match=message):
        po.sweep(objective, weights, never_made(), solver=solver)
    assert solver.solved == []


def never_made():
    pytest.fail("a baseline was made")
    yield


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"solver": "simplex"}, InvalidInput),
        ({"tolerance": 0}, InvalidInput),
        ({"n_jobs": 0}, InvalidInput),
        ({"solver": "spectral"}, Refused),
    ],
)
def test_bad_settings_are_refused_before_any_work(rough, settings, error):
    with pytest.raises(error):
        po.sweep(rough, {}, never_made(), **settings)


# ---- results


def test_sweep_finds_what_solve_finds(objective):
    curve = po.sweep(objective, {"pairwise_robustness": WEIGHTS})
    for best in curve.optimized:
        alone = po.solve(objective.with_weights(best.weights))
        np.testing.assert_allclose(best.attributions, alone.attributions, atol=1e-12)


def test_warm_starts_change_nothing_beyond_the_gap(rough):
    solver = Scripted(po.solvers.Conic(), {})
    curve = po.sweep(rough, {"sparsity": WEIGHTS[:4]}, solver=solver)
    assert solver.starts[0] is None
    assert all(start is not None for start in solver.starts[1:])
    for best in curve.optimized:
        cold = po.solve(rough.with_weights(best.weights), "conic")
        gap = best.gap + cold.gap + 1e-12
        assert abs(best.objective / cold.objective - 1.0) <= gap
    assert curve.certified(1e-6)
    assert not curve.certified(1e-300)


def without_seconds(curve):
    return curve.to_frame().drop(columns="seconds")


@pytest.mark.parametrize("kind", ["objective", "rough"])
def test_two_processes_give_the_same_table(request, kind):
    objective = request.getfixturevalue(kind)
    weights = {"pairwise_robustness": WEIGHTS}
    baselines = [explanation_of(objective)]
    solver = "conic" if kind == "rough" else "auto"
    one, two = (
        without_seconds(
            po.sweep(objective, weights, baselines, solver=solver, n_jobs=n_jobs)
        )
        for n_jobs in (1, 2)
    )
    # a block starts cold where a single worker starts warm: the same within the gap
    pd.testing.assert_frame_equal(
        one.drop(columns="gap"), two.drop(columns="gap"), rtol=1e-5, atol=1e-6
    )
    if kind == "objective":
        pd.testing.assert_frame_equal(one, two)


def test_warnings_of_other_processes_are_given_here(objective):
    weights = {"gradient_matching": [0], "pairwise_robustness": [1, 2]}
    with pytest.warns(TrivialObjectiveWarning) as caught:
        po.sweep(objective, weights, n_jobs=2)
    assert len(caught) == 2


def explanation_of(objective, attributions=1.0):
    shape = objective.losses[0].G.shape
    filled = np.broadcast_to(attributions, shape)
    return po.Explanation(attributions=filled, method="given")


def test_backend_of_joblib_is_respected(rough):
    weights = {"pairwise_robustness": WEIGHTS}
    threads = []
    one = po.sweep(rough, weights, solver="conic")
    with joblib.parallel_config(backend="threading", n_jobs=2):
        seen = Seen(po.solvers.Conic(), threads)
        two = po.sweep(rough, weights, solver=seen)
    assert set(threads) == {os.getpid()}
    assert len(threads) == 2  # a program for each of two blocks
    pd.testing.assert_frame_equal(
        without_seconds(one).drop(columns="gap"),
        without_seconds(two).drop(columns="gap"),
        rtol=1e-5,
        atol=1e-6,
    )


class Seen(Solver):
    """Notes the process of each program."""

    def __init__(self, solver, processes):
        self.solver = solver
        self.processes = processes
        self.name_ = solver.name

    @property
    def name(self):
        return self.name_

    def refusal(self, program):
        return self.solver.refusal(program)

    def prepare(self, program):
        self.processes.append(os.getpid())
        return self.solver.prepare(program)


def test_names_of_a_frame_reach_the_result(X):
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"row {n}" for n in range(12)])
    function = po.wrap(lambda table: np.asarray(table["a"] * table["b"]))
    objective = po.GradientMatching(function.gradient(frame)) + po.Sparsity()
    curve = po.sweep(objective, {"sparsity": [0.1]}, n_jobs=1)
    table = curve.optimized[0].to_frame()
    assert list(table.columns) == ["a", "b", "c"]
    assert list(table.index) == list(frame.index)


def test_zero_explanation_is_warned_about(objective):
    with pytest.warns(TrivialObjectiveWarning):
        curve = po.sweep(
            objective, {"gradient_matching": [0, 1], "pairwise_robustness": [1]}
        )
    assert curve.optimized[0].losses["pairwise_robustness"] == 0.0
    assert curve.optimized[1].losses["pairwise_robustness"] > 0.0


# ---- when something stops


def test_interruption_keeps_what_is_done(objective):
    solver = Scripted(po.solvers.Spectral(), {3: KeyboardInterrupt()})
    weights = {"pairwise_robustness": WEIGHTS}
    baseline = explanation_of(objective)
    with pytest.warns(InterruptedWarning, match="3 of 5 weights are done"):
        curve = po.sweep(objective, weights, [baseline], solver=solver)
    assert curve.interrupted
    assert [e.weights["pairwise_robustness"] for e in curve.optimized] == WEIGHTS[:3]
    assert [e.method for e in curve.baselines] == ["given"]
    assert "interrupted" in repr(curve)
    assert len(curve.to_frame()) == 4


def test_interruption_among_the_baselines_keeps_those_made(objective, tmp_path):
    def made():
        yield explanation_of(objective)
        raise KeyboardInterrupt

    with pytest.warns(InterruptedWarning, match="0 of 1 weights"):
        curve = po.sweep(objective, {}, made())
    assert curve.interrupted
    assert [e.method for e in curve.explanations] == ["given"]
    curve.to_csv(tmp_path / "curve.csv")
    assert len(pd.read_csv(tmp_path / "curve.csv")) == 1


def test_interruption_before_anything_is_done(objective):
    solver = Scripted(po.solvers.Spectral(), {0: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        po.sweep(objective, {}, solver=solver)


def test_failure_at_one_weight_keeps_the_others(objective):
    solver = Scripted(po.solvers.Spectral(), {1: SolverFailure("the backend gave up")})
    weights = {"pairwise_robustness": WEIGHTS}
    with pytest.warns(UnsolvedWarning, match="1 of 5 weights were not solved"):
        curve = po.sweep(objective, weights, solver=solver)
    found = [e.weights["pairwise_robustness"] for e in curve.optimized]
    assert found == [0.01, 1.0, 10.0, 100.0]
    assert curve.failures == (
        "1 * gradient_matching + 0.1 * pairwise_robustness: the backend gave up",
    )
    assert not curve.interrupted


def test_failure_at_every_weight_raises_the_first(objective):
    failures = {n: SolverFailure(f"failure {n}") for n in range(5)}
    solver = Scripted(po.solvers.Spectral(), failures)
    with pytest.raises(SolverFailure, match="failure 0"):
        po.sweep(objective, {"pairwise_robustness": WEIGHTS}, solver=solver)
    assert len(solver.solved) == 5


def test_progress_goes_to_standard_error(objective, capfd):
    weights = {"pairwise_robustness": WEIGHTS}
    po.sweep(objective, weights)
    assert capfd.readouterr() == ("", "")
    po.sweep(objective, weights, progress=True)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "5/5" in printed.err


# ---- the front and the distances to it

NUMBERS = st.floats(0, 1e3).map(lambda value: round(value, 0))
ROWS = st.integers(1, 3).flatmap(
    lambda k: st.lists(st.tuples(*k * [NUMBERS]), min_size=1, max_size=12)
)


def beaten(row, rows):
    return any(
        all(a <= b for a, b in zip(other, row, strict=True))
        and any(a < b for a, b in zip(other, row, strict=True))
        for other in rows
    )


@given(ROWS)
def test_front_by_brute_force(rows):
    curve = table_of(rows)
    expected = [not beaten(row, rows) for row in rows]
    assert curve.on_front.tolist() == expected
    assert curve.to_frame()["on_front"].tolist() == expected
    kept = [list(e.losses.values()) for e in curve.front().explanations]
    assert kept == [list(row) for row in rows if not beaten(row, rows)]
    assert curve.front().on_front.all()


def test_equal_rows_are_both_on_the_front():
    assert table_of([(1, 2), (1, 2), (1, 3)]).on_front.tolist() == [True, True, False]


def test_every_optimum_is_on_the_front(objective, rng):
    rough = explanation_of(objective, 9 * rng.normal(size=(12, 3)))
    curve = po.sweep(objective, {"pairwise_robustness": WEIGHTS}, [rough])
    assert curve.on_front.tolist() == [True] * 5 + [False]
    front = curve.front()
    assert front.optimized == curve.optimized
    assert front.baselines == ()


def test_baselines_are_measured_on_the_same_losses(objective):
    baseline = explanation_of(objective)
    curve = po.sweep(objective, {}, (b for b in [baseline]))
    (measured,) = curve.baselines
    assert measured.losses == objective.breakdown(baseline.attributions)
    assert measured.objective is None
    assert measured.gap is None


def test_distances_by_brute_force(objective, rng):
    shape = objective.losses[0].G.shape
    baselines = [
        po.Explanation(
            attributions=rng.normal(size=shape), method="noise", parameters={"seed": n}
        )
        for n in range(4)
    ]
    curve = po.sweep(objective, {"pairwise_robustness": WEIGHTS}, baselines)
    distances = curve.distances()
    for n, baseline in enumerate(baselines):
        excesses = {
            weight: objective.with_weights({"pairwise_robustness": weight}).value(
                baseline.attributions
            )
            / best.objective
            - 1.0
            for weight, best in zip(WEIGHTS, curve.optimized, strict=True)
        }
        row = distances.iloc[n]
        nearest = min(excesses, key=excesses.get)
        assert row["excess"] == pytest.approx(excesses[nearest])
        assert row["weight.pairwise_robustness"] == nearest
        assert row["parameter.seed"] == n
        assert row["excess"] >= 0.0
    assert distances["parameter.seed"].dtype == "Int64"


def test_distances_where_the_optimum_costs_nothing(X):
    objective = po.GradientMatching(X)
    same = po.Explanation(attributions=X, method="same")
    other = po.Explanation(attributions=X + 1, method="other")
    curve = po.sweep(objective, {}, [same, other])
    assert curve.distances()["excess"].tolist() == [0.0, np.inf]


def test_no_baselines_no_distances(objective):
    assert po.sweep(objective, {}).distances().empty


# ---- the table


def settings_of_every_kind():
    return [
        explanation("gradient", losses=(4, 5), seconds=0.1),
        explanation(
            "lime",
            losses=(1 / 3, 1e-300),
            parameters={"scale": 0.1, "n_samples": 100, "fit_intercept": True},
        ),
        explanation(
            "smoothgrad",
            losses=(np.pi * 1e17, 5e-324),
            parameters={"scale": 0.1 + 0.2, "n_samples": 7, "distribution": "ball"},
        ),
    ]


@pytest.fixture
def curve():
    names = ("loss0", "loss1")
    best = explanation(
        "optimized",
        losses=(0.1, 0.7),
        weights={"loss0": 1.0, "loss1": 1 / 7},
        seconds=1e-5 / 3,
    )
    return po.TradeOffs(
        optimized=(best,), baselines=tuple(settings_of_every_kind()), losses=names
    )


def read_csv(path):
    with warnings.catch_warnings():
        # exact in all versions of pandas; the newest does it without being told
        warnings.filterwarnings("ignore", message=".*float_precision")
        return pd.read_csv(path, float_precision="round_trip")


COLUMNS = [
    "method",
    "weight.loss0",
    "weight.loss1",
    "parameter.scale",
    "parameter.n_samples",
    "parameter.fit_intercept",
    "parameter.distribution",
    "loss.loss0",
    "loss.loss1",
    "objective",
    "gap",
    "on_front",
    "seconds",
]


def test_columns_of_the_table(curve, tmp_path):
    assert list(curve.to_frame()) == COLUMNS
    curve.to_csv(tmp_path / "curve.csv")
    header = (tmp_path / "curve.csv").read_text().splitlines()[0]
    assert header == ",".join(COLUMNS)


def test_csv_as_text(curve, tmp_path):
    curve.to_csv(tmp_path / "curve.csv")
    with open(tmp_path / "curve.csv", newline="") as file:
        optimum, gradient, lime, smooth = csv.DictReader(file)
    assert optimum["on_front"] == "True"
    assert float(optimum["weight.loss1"]) == 1 / 7
    assert float(optimum["objective"]) == 0.1 + 0.7 / 7
    assert float(optimum["seconds"]) == 1e-5 / 3
    assert {gradient[name] for name in COLUMNS[1:7]} == {""}
    assert gradient["gap"] == gradient["objective"] == ""
    assert lime["parameter.n_samples"] == "100"
    assert lime["parameter.fit_intercept"] == "True"
    assert float(lime["loss.loss0"]) == 1 / 3
    assert smooth["parameter.fit_intercept"] == ""
    assert smooth["parameter.distribution"] == "ball"
    assert float(smooth["parameter.scale"]) == 0.1 + 0.2
    assert float(smooth["loss.loss1"]) == 5e-324


@given(
    st.lists(
        st.tuples(*2 * [st.floats(min_value=0, allow_infinity=False)], st.floats(0, 9)),
        min_size=1,
        max_size=5,
    )
)
def test_floats_read_back_to_the_same_value(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("table") / "curve.csv"
    baselines = tuple(
        explanation(losses=row[:2], parameters={"scale": row[2]}) for row in rows
    )
    curve = po.TradeOffs(optimized=(), baselines=baselines, losses=("loss0", "loss1"))
    curve.to_csv(path)
    read = read_csv(path)
    names = ["loss.loss0", "loss.loss1", "parameter.scale"]
    np.testing.assert_array_equal(read[names].to_numpy(float), np.array(rows))
    with open(path, newline="") as file:
        text = [[float(row[name]) for name in names] for row in csv.DictReader(file)]
    np.testing.assert_array_equal(text, np.array(rows))


def test_gap_of_a_real_sweep(objective, tmp_path):
    curve = po.sweep(
        objective, {"pairwise_robustness": WEIGHTS}, [explanation_of(objective)]
    )
    curve.to_csv(tmp_path / "curve.csv")
    read = read_csv(tmp_path / "curve.csv")
    pd.testing.assert_frame_equal(read, curve.to_frame(), check_dtype=False)
    assert (read["gap"][:5] <= 1e-9).all()
    assert np.isnan(read["gap"][5])
    assert (read["seconds"][:5] > 0).all()
    assert read["method"].tolist() == 5 * ["optimized"] + ["given"]


def test_losses_of_bounds_are_no_columns(X):
    bound = po.Sparsity() <= 3.0
    curve = po.sweep(po.GradientMatching(X), {}, subject_to=[bound])
    assert curve.optimized[0].losses["sparsity"] == pytest.approx(3.0, abs=1e-4)
    assert [c for c in curve.to_frame() if c.startswith("loss.")] == [
        "loss.gradient_matching"
    ]


def test_repr(objective):
    text = repr(po.sweep(objective, {}))
    assert text.startswith("<TradeOffs of gradient_matching, pairwise_robustness: 1 ")
    assert text.endswith("1 optimized, 0 baselines>")


def test_no_warning_where_all_is_well(rough):
    weights = {"sparsity": [0.1, 1], "pairwise_robustness": [0.1, 1]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(po.sweep(rough, weights).optimized) == 4


def test_the_knee_lies_farthest_below_the_chord(rng):
    X, G = rng.normal(size=(2, 20, 2))
    objective = po.GradientMatching(G) + po.PairwiseRobustness(po.gaussian_graph(X))
    curve = po.sweep(objective, {"pairwise_robustness": np.geomspace(1e-4, 1e3, 41)})
    chosen = curve.optimized.index(curve.knee())
    assert 0 < chosen < 40
    low = curve.values.min(axis=0)
    span = curve.values.max(axis=0) - low
    sums = ((curve.values - low) / span).sum(axis=1)
    assert sums[chosen] == sums.min()


def test_the_knee_of_a_loss_that_does_not_exist_is_refused(rng):
    curve = po.sweep(1.0 * po.GradientMatching(rng.normal(size=(3, 2))))
    with pytest.raises(InvalidInput, match="no loss is called 'sparsity'"):
        curve.knee("sparsity")
