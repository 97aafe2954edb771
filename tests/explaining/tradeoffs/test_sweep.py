"""Sweeps: weights and limits by name or loss, in any number of processes; files."""

import dataclasses
import os
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
from crafted_archives import header_of, members_of
from refusals import refusals
from sweeps import (
    WEIGHTS,
    Scripted,
    Seen,
    explanation,
    explanation_of,
    never_made,
    without_seconds,
)

import propopt as po
from propopt.base.errors import (
    InterruptedWarning,
    InvalidInput,
    Refused,
    SolverFailure,
    TrivialObjectiveWarning,
    UnsolvedWarning,
)
from propopt.losses.faithfulness import Estimate
from propopt.solvers.curves import Spectral


NAME = "pairwise_robustness"
EACH = {NAME: WEIGHTS}


def same(one, other, **tolerance):
    tables = map(without_seconds, (one, other))
    pd.testing.assert_frame_equal(*tables, **tolerance)


def test_combinations_in_order_the_last_name_fastest(X):
    robust = po.PairwiseRobustness(po.graphs.chain_graph(12))
    objective = (
        po.GradientMatching(X) + robust + po.Smoothness(po.graphs.chain_graph(3))
    )
    weights = {"smoothness": [3, 1], NAME: np.array([0, 2]), "gradient_matching": 2}
    weights_of = [[*e.weights.values()] for e in po.sweep(objective, weights).optimized]
    assert weights_of == [[2, 0, 3], [2, 2, 3], [2, 0, 1], [2, 2, 1]]
    (best,) = po.sweep(objective, {}).optimized
    np.testing.assert_array_equal(best.attributions, po.solve(objective).attributions)
    (best,) = po.sweep(po.GradientMatching(X), {"gradient_matching": 3}).optimized
    assert best.weights == {"gradient_matching": 3.0}


def test_a_loss_is_known_by_its_name_and_as_itself(objective, capfd):
    matching, robustness = objective.losses
    limits = np.linspace(0.1, 0.9, 4) * robustness.value(matching.G)
    weighed = po.sweep(objective, {NAME: WEIGHTS})
    assert capfd.readouterr() == ("", "")
    same(weighed, po.sweep(objective, {robustness: WEIGHTS}, progress=True))
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "5/5" in printed.err
    same(weighed, po.sweep(matching, {robustness: WEIGHTS}))  # need not be in it
    limited = po.sweep(objective, limits={NAME: limits})
    same(limited, po.sweep(objective, limits={robustness: limits}))
    # with limits it leaves the sum
    same(limited, po.sweep(matching + 7.0 * robustness, limits={NAME: limits}))
    for best, limit in zip(limited.optimized, limits, strict=True):
        alone = po.solve(1.0 * matching, subject_to=[robustness <= limit])
        assert best.attributions.tobytes() == alone.attributions.tobytes()
        assert best.losses[NAME] == pytest.approx(limit, rel=1e-6)
        assert best.weights == {"gradient_matching": 1.0}


def test_weights_and_limits_are_combined_by_name(rough):
    matching, robustness, sparsity = rough.losses
    limits = [0.2 * robustness.value(matching.G), 0.4 * robustness.value(matching.G)]
    curve = po.sweep(rough, {"sparsity": [0.1, 1.0]}, limits={NAME: limits})
    losses = [round(best.losses[NAME] / limits[0], 4) for best in curve.optimized]
    weights = [best.weights["sparsity"] for best in curve.optimized]
    combinations = list(zip(weights, losses, strict=True))
    assert combinations == [(0.1, 1), (0.1, 2), (1.0, 1), (1.0, 2)]
    assert curve.losses == ("gradient_matching", sparsity.name, NAME)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "sweep"))
def test_what_cannot_be_swept_is_refused_before_any_work(objective, line, message):
    solver = Scripted(Spectral(), {})

    def sweep(**settings):
        settings = {"solver": solver, **settings}
        return po.sweep(objective, baselines=never_made(), **settings)

    another = po.PairwiseRobustness(po.graphs.chain_graph(12))  # of the same name
    names = {"sweep": sweep, "another": another, "robust": objective.losses[1]}
    with pytest.raises((InvalidInput, Refused), match=message):
        eval(line, {**globals(), **names})
    assert solver.solved == []


def test_warm_starts_change_nothing_beyond_the_gap(objective, rough):
    for best in po.sweep(objective, EACH).optimized:
        alone = po.solve(objective.with_weights(best.weights))
        np.testing.assert_allclose(best.attributions, alone.attributions, atol=1e-12)
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


def test_threads_give_the_same_table(rough):
    threads = []
    with joblib.parallel_config(backend="threading", n_jobs=2):
        observed = Seen(po.solvers.Conic(), threads)
        two = po.sweep(rough, EACH, solver=observed)
    assert threads == 2 * [os.getpid()]  # a program for each of two blocks
    # a block starts cold where a single worker starts warm
    one = po.sweep(rough, EACH, solver="conic")
    tables = (without_seconds(x).drop(columns="gap") for x in (one, two))
    pd.testing.assert_frame_equal(*tables, rtol=1e-5, atol=1e-6)


def test_zero_explanations_are_warned_about_from_any_process(objective, rough):
    weights = {"gradient_matching": [0, 1], NAME: [1, 2]}
    for n_jobs in (1, 2):
        with pytest.warns(TrivialObjectiveWarning) as caught:
            curve = po.sweep(objective, weights, n_jobs=n_jobs)
        assert len(caught) == 2
        zero = [best.losses[NAME] == 0.0 for best in curve.optimized]
        assert zero == [True, True, False, False]
    weights = {"sparsity": [0.1, 1], NAME: [0.1, 1]}
    assert len(po.sweep(rough, weights).optimized) == 4  # warnings are errors


def test_what_workers_find_has_its_program_and_its_errors():
    blocks = np.random.default_rng(3).normal(1.0, 0.1, (5, 9, 2))
    target = Estimate.of_blocks(blocks, source="noise", n_draws=50)
    objective = po.GradientMatching(target) + po.PairwiseRobustness(
        po.graphs.chain_graph(9)
    )
    weights = {"pairwise_robustness": [0.1, 1.0]}
    sweep = partial(po.sweep, objective, weights, solver="CLARABEL")
    for one, two in zip(sweep().optimized, sweep(n_jobs=2).optimized, strict=True):
        assert two.program.losses == objective.losses
        assert two.target == one.target
        np.testing.assert_array_equal(two.standard_errors, one.standard_errors)
        assert two.target.n_blocks == 5


def test_interruption_keeps_what_is_done(objective, tmp_path):
    baseline = explanation_of(objective)
    solver = Scripted(Spectral(), {3: KeyboardInterrupt()})
    with pytest.warns(InterruptedWarning, match="3 of 5 weights are done"):
        curve = po.sweep(objective, EACH, [baseline], solver=solver)
    assert curve.interrupted
    assert [e.weights[NAME] for e in curve.optimized] == WEIGHTS[:3]
    assert [e.method for e in curve.baselines] == ["given"]
    assert len(curve.to_frame()) == 4

    def made():
        yield baseline
        raise KeyboardInterrupt

    with pytest.warns(InterruptedWarning, match="0 of 1 weights"):
        curve = po.sweep(objective, {}, made())
    assert curve.interrupted
    assert [e.method for e in curve.explanations] == ["given"]
    curve.to_csv(tmp_path / "curve.csv")
    assert len(pd.read_csv(tmp_path / "curve.csv")) == 1
    with pytest.raises(KeyboardInterrupt):  # before anything is done
        po.sweep(objective, {}, solver=Scripted(Spectral(), {0: KeyboardInterrupt()}))


def test_failure_at_one_weight_keeps_the_others(objective):
    solver = Scripted(Spectral(), {1: SolverFailure("the backend gave up")})
    with pytest.warns(UnsolvedWarning, match="1 of 5 weights were not solved"):
        curve = po.sweep(objective, EACH, solver=solver)
    assert [e.weights[NAME] for e in curve.optimized] == [0.01, 1.0, 10.0, 100.0]
    failure = "1 * gradient_matching + 0.1 * pairwise_robustness: the backend gave up"
    assert curve.failures == (failure,)
    assert not curve.interrupted
    solver = Scripted(Spectral(), {n: SolverFailure(f"failure {n}") for n in range(5)})
    with pytest.raises(SolverFailure, match="failure 0"):
        po.sweep(objective, EACH, solver=solver)
    assert len(solver.solved) == 5


NAMES, ROWS = ["age", "dose"], list("pqrst")
NUMBERS = np.random.default_rng(5).normal(size=(5, 2))
G = pd.DataFrame(NUMBERS, columns=NAMES, index=ROWS)
ROBUST = po.PairwiseRobustness(po.graphs.chain_graph(5))
OBJECTIVE = po.GradientMatching(G) + ROBUST
CUBE = po.functions.Power(3)


def swept():
    noisy = po.explainers.SmoothGrad(scale=0.1, n_samples=5).explain(CUBE, G)
    weights = {"pairwise_robustness": [0.1, 1.0, 10.0]}
    return po.sweep(OBJECTIVE, weights, [noisy, 2.0 * G])


@pytest.fixture
def sound(tmp_path):
    swept().save(tmp_path / "sound")
    return tmp_path / "sound.npz"


def test_columns_of_the_table_are_those_of_all_explanations():
    lime = {"scale": 0.1, "n_samples": 100, "fit_intercept": True}
    smooth = {"scale": 0.1 + 0.2, "n_samples": 7, "relative": False}
    weights = {"loss0": 1.0, "loss1": 1 / 7}
    best = explanation("optimized", losses=(0.1, 0.7), weights=weights)
    others = (
        explanation("gradient", losses=(4, 5)),
        explanation("lime", losses=(1 / 3, 1e-300), parameters=lime),
        explanation("smoothgrad", losses=(1e17, 5e-324), parameters=smooth),
    )
    names = ("loss0", "loss1")
    table = po.TradeOffs(optimized=(best,), baselines=others, losses=names).to_frame()
    parameters = [f"parameter.{name}" for name in {**lime, **smooth}]
    of_weights, of_losses = ([f"{x}.{n}" for n in names] for x in ("weight", "loss"))
    last = ["objective", "gap"]
    last += ["sampling_error", "sampling_excess", "on_front", "seconds", "target"]
    assert list(table) == ["method", *of_weights, *parameters, *of_losses, *last]
    assert table["objective"][0] == 0.1 + 0.7 / 7
    assert table["on_front"][0]
    assert table.loc[1, [*of_weights, *parameters, "objective", "gap"]].isna().all()
    assert table[parameters].iloc[2].tolist()[:3] == [*lime.values()]
    # losses of bounds are no columns
    curve = po.sweep(po.GradientMatching(G), {}, subject_to=[po.Sparsity() <= 3.0])
    assert curve.optimized[0].losses["sparsity"] == pytest.approx(3.0, abs=1e-4)
    assert "loss.sparsity" not in curve.to_frame()


def test_attributions_on_curves_are_computed_and_proved_for_it(tmp_path):
    curve = po.sweep(OBJECTIVE, {"pairwise_robustness": np.geomspace(0.1, 10.0, 9)})
    assert all(best.is_lazy("attributions") for best in curve.optimized)
    curve.save(tmp_path / "curve")
    again = po.TradeOffs.load(tmp_path / "curve")
    assert [e.certificate.kind for e in again.optimized] == ["strong convexity"] * 9
    for best in again.optimized:
        weighed = OBJECTIVE.with_weights(best.weights)
        assert best.certificate == po.proofs.certify(weighed, best)


def test_names_that_explanations_share_are_stored_once(sound):
    header = header_of(members_of(sound))
    assert header["shared"] == [{"points": ROWS, "features": NAMES}]
    parts = [*header["optimized"], *header["baselines"]]
    assert [part["labels"] for part in parts] == [0] * 5
    again = po.TradeOffs.load(sound)
    assert again.optimized[0].labels is again.baselines[0].labels


def test_trade_offs_of_nothing_interrupted_or_under_limits_come_back(tmp_path):
    nothing = po.TradeOffs(optimized=(), baselines=(), losses=("gradient_matching",))
    few = {"optimized": swept().optimized[:1], "failures": ("no answer",)}
    stopped = dataclasses.replace(nothing, **few, interrupted=True)
    bounded = po.sweep(po.GradientMatching(G), limits={ROBUST: [0.05, 0.1]})
    for curve in (nothing, stopped, bounded):
        curve.save(tmp_path / "curve")
        again = po.TradeOffs.load(tmp_path / "curve")
        assert repr(again) == repr(curve)
        assert again.failures == curve.failures
        for one, other in zip(again.optimized, curve.optimized, strict=True):
            assert one.multipliers == other.multipliers


def test_a_point_without_attributions_is_left_out_and_told(tmp_path, monkeypatch):
    curve = swept()
    _ = [curve.optimized[place].attributions for place in (0, 2)]

    def refused(*_):
        raise SolverFailure("no step was left")

    monkeypatch.setattr("propopt.results.explanation.LazyAttributions.proved", refused)
    with pytest.warns(UnsolvedWarning, match="weight 2 of 3 were not computed"):
        curve.save(tmp_path / "curve")
    again = po.TradeOffs.load(tmp_path / "curve")
    assert [e.weights["pairwise_robustness"] for e in again.optimized] == [0.1, 10.0]
    assert "no attributions were computed" in again.failures[0]
    assert len(again.baselines) == 2


def test_more_attributions_than_memory_holds_are_refused(tmp_path, monkeypatch):
    curve, free = swept(), "propopt.base.resources.free_memory"
    monkeypatch.setattr(free, lambda: 3 * 5 * 2 * 8 - 1.0)
    with pytest.raises(Refused, match="attributions of 3 explanations"):
        curve.save(tmp_path / "curve")
    assert all(best.is_lazy("attributions") for best in curve.optimized)
    monkeypatch.setattr(free, lambda: 3 * 5 * 2 * 8.0)
    curve.save(tmp_path / "curve")
